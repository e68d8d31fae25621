//! Names of fields as an application may take them: looking a name up takes about as long however many there are.

use model::is_alike;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// So many names are compared one by one, which is what most locations have.
const FEW: usize = 8;

/// Names that nobody but their owner says.
#[derive(Debug)]
pub(super) struct Names<'a> {
    few: Vec<&'a [u8]>,
    many: HashSet<Alike<'a>>,
}

impl<'a> Names<'a> {
    /// These; none where there are none.
    #[inline(never)]
    pub(super) fn of(names: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let few: Vec<&[u8]> = names.collect();
        match few.len() {
            0 => None,
            1..=FEW => Some(Self { few, many: HashSet::new() }),
            _ => Some(Self { many: few.into_iter().map(Alike).collect(), few: Vec::new() }),
        }
    }

    /// Whether an application may take `name` for one of them.
    #[inline(never)]
    pub(super) fn have(&self, name: &[u8]) -> bool {
        self.few.iter().any(|known| Alike(name) == Alike(known))
            || (!self.many.is_empty() && self.many.contains(&Alike(name)))
    }
}

/// A name that equals those that are alike.
#[derive(Debug)]
struct Alike<'a>(&'a [u8]);

impl PartialEq for Alike<'_> {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        tests::COMPARED.set(tests::COMPARED.get() + 1);
        is_alike(self.0, other.0)
    }
}

impl Eq for Alike<'_> {}

impl Hash for Alike<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut plain = [0; 64];
        for part in self.0.chunks(plain.len()) {
            for (to, from) in plain.iter_mut().zip(part) {
                *to = if *from == b'_' { b'-' } else { from.to_ascii_lowercase() };
            }
            state.write(&plain[..part.len()]);
        }
        state.write_usize(self.0.len());
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use std::cell::Cell;

    thread_local! {
        /// How many pairs of names were compared.
        pub(super) static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn names_are_known_in_every_spelling_however_many_there_are() {
        let long = format!("X-{}", "a_".repeat(100));
        for count in [1, 8, 9, 2000] {
            let names: Vec<String> =
                (1..count).map(|number| format!("X-Name-{number}")).chain([long.clone()]).collect();
            let all = names.iter().map(String::as_bytes);
            let known = Names::of(all).expect("there are some");
            assert!(known.have(long.to_ascii_uppercase().as_bytes()));
            assert!(known.have(long.replace('_', "-").as_bytes()));
            assert!(!known.have(&long.as_bytes()[..long.len() - 1]) && !known.have(b"X-Name-"));
            assert_eq!(known.have(b"x_name-1"), count > 1);
        }
        assert!(Names::of([].into_iter()).is_none());
    }

    #[test]
    fn each_field_is_not_compared_with_each_of_many_names() {
        let names: Vec<String> = (1000..3000).map(|number| format!("x-aa{number}")).collect();
        let fields: Vec<String> = (1000..2000).map(|number| format!("x-bb{number}")).collect();
        let known = Names::of(names.iter().map(String::as_bytes)).expect("there are some");
        assert!(!fields.iter().any(|field| known.have(field.as_bytes())));
        assert!(COMPARED.get() < 50_000, "{} of two million", COMPARED.get());
    }
}
