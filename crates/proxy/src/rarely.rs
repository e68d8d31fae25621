//! Values that few requests have anything in: a word for all others, which neither begin nor end with them.

use std::ops::{Deref, DerefMut};

/// What is there without having been written.
pub(crate) trait Nothing: Sized + 'static {
    /// A value with nothing in it.
    const NOTHING: Self;

    /// The one that all share who have written none.
    fn nothing() -> &'static Self;
}

/// A value in memory of its own from when it is first written to; nothing before.
#[derive(Debug)]
pub(crate) struct Rarely<T>(Option<Box<T>>);

impl<T> Default for Rarely<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Rarely<T> {
    /// The value, if it was ever written: to take something out of it makes none.
    #[inline]
    pub(crate) fn written(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T: Nothing> Deref for Rarely<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::nothing())
    }
}

/// Who writes has memory for it from then on: what is there anyhow is not written.
impl<T: Nothing> DerefMut for Rarely<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::NOTHING))
    }
}

#[cfg(test)]
mod tests {
    use super::{Nothing, Rarely};

    impl Nothing for Vec<u8> {
        const NOTHING: Self = Self::new();

        fn nothing() -> &'static Self {
            static NOTHING: Vec<u8> = Vec::new();
            &NOTHING
        }
    }

    #[test]
    fn what_is_only_read_takes_no_memory() {
        let mut value = Rarely::<Vec<u8>>::default();
        assert!(value.is_empty() && value.0.is_none());
        value.push(1);
        assert_eq!(**value, [1]);
        value = Rarely::default();
        assert!(value.is_empty());
    }
}
