//! What a level says nothing about, it has from the level around it.

use serde::Serialize;

/// How values of two levels, or of two texts for one level, become one.
pub trait Inherit {
    /// Takes from the level around what is not said here.
    fn inherit(&mut self, outer: &Self);

    /// Adds what another text says for the same level, behind this one: lists grow, and a value that both say is the
    /// other's.
    fn join(&mut self, behind: &Self);
}

/// A value that is said once: the inner one counts.
impl<T: Clone> Inherit for Option<T> {
    fn inherit(&mut self, outer: &Self) {
        if self.is_none() {
            self.clone_from(outer);
        }
    }

    fn join(&mut self, behind: &Self) {
        if behind.is_some() {
            self.clone_from(behind);
        }
    }
}

/// A list that replaces: one entry of the inner level hides all those of the outer one.
impl<T: Clone> Inherit for Vec<T> {
    fn inherit(&mut self, outer: &Self) {
        if self.is_empty() {
            self.clone_from(outer);
        }
    }

    fn join(&mut self, behind: &Self) {
        self.extend(behind.iter().cloned());
    }
}

/// Whether something is so here; it does not come from outside.
impl Inherit for bool {
    fn inherit(&mut self, _outer: &Self) {}

    fn join(&mut self, behind: &Self) {
        *self |= behind;
    }
}

/// A list that adds: entries of the outer level come first, so that inner ones have the last word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stacked<T>(pub Vec<T>);

impl<T> Default for Stacked<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> Inherit for Stacked<T> {
    fn inherit(&mut self, outer: &Self) {
        self.0.splice(0..0, outer.0.iter().cloned());
    }

    fn join(&mut self, behind: &Self) {
        self.0.join(&behind.0);
    }
}

/// Declares structs of inheritable values.
macro_rules! settings {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $kind:ty,)* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
            }

            impl $crate::snippet::Inherit for $name {
                fn inherit(&mut self, outer: &Self) {
                    $($crate::snippet::Inherit::inherit(&mut self.$field, &outer.$field);)*
                }

                fn join(&mut self, behind: &Self) {
                    $($crate::snippet::Inherit::join(&mut self.$field, &behind.$field);)*
                }
            }

            impl $crate::snippet::Pieces for $name {
                fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s $crate::snippet::Piece)) {
                    $($crate::snippet::Pieces::pieces(&self.$field, see);)*
                }
            }
        )*
    };
}

pub(super) use settings;
