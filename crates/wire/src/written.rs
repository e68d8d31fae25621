//! Heads on their way out: what is written for one message is gone before the next one is written, so that a thread
//! has one piece of memory for all of them.

use bytes::{Bytes, BytesMut};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// Bytes of a piece of memory that a thread keeps at most.
const KEPT: usize = 4 << 10;

thread_local! {
    static SPARE: Cell<Option<BytesMut>> = const { Cell::new(None) };
}

/// A message, or the beginning of one, in memory of its thread, which has it back once this is dropped.
#[derive(Clone, Debug, Default)]
pub struct Written(BytesMut);

impl Written {
    /// Nothing yet, and room for so many bytes.
    #[inline]
    pub fn with_room(bytes: usize) -> Self {
        let mut room = SPARE.take().unwrap_or_default();
        room.reserve(bytes);
        Self(room)
    }

    /// The bytes, which somebody keeps: no other message gets their memory.
    pub fn freeze(mut self) -> Bytes {
        std::mem::take(&mut self.0).freeze()
    }
}

impl Deref for Written {
    type Target = BytesMut;

    #[inline]
    fn deref(&self) -> &BytesMut {
        &self.0
    }
}

impl DerefMut for Written {
    #[inline]
    fn deref_mut(&mut self) -> &mut BytesMut {
        &mut self.0
    }
}

impl From<Bytes> for Written {
    fn from(bytes: Bytes) -> Self {
        Self(bytes.into())
    }
}

impl Drop for Written {
    #[inline]
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.0);
        if (1..=KEPT).contains(&room.capacity()) {
            room.clear();
            // A thread that ends keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(Some(room)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Written};
    use bytes::BufMut;

    #[test]
    fn what_was_written_is_gone_and_its_memory_serves_again_unless_somebody_keeps_it() {
        let mut first = Written::with_room(100);
        first.put_slice(b"first");
        let at = first.as_ptr();
        drop(first);
        let mut second = Written::with_room(50);
        assert!(second.is_empty() && second.as_ptr() == at);
        second.put_slice(b"second");
        let mut third = Written::with_room(50);
        assert!(third.as_ptr() != at);
        third.put_slice(b"third");
        let kept = second.freeze();
        drop(third);
        let fourth = Written::with_room(50);
        assert!(fourth.is_empty() && fourth.as_ptr() != at);
        assert_eq!(&kept[..], b"second");
        drop(Written::with_room(KEPT + 1));
        assert_eq!(Written::with_room(0).capacity(), 0, "what is large is given back");
    }
}
