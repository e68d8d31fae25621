//! What came of an answer and is not whole: beyond a little it counts for the connection of the request that it is for,
//! like all else that its requests under way hold (docs/overload.md).

use crate::Control;
use std::rc::Rc;

/// Bytes in the book of a connection, until this is dropped.
#[derive(Debug)]
pub struct Counted {
    book: Rc<Control>,
    size: usize,
}

impl Counted {
    /// Bytes that count as what every request holds.
    pub const FREE: usize = 16 << 10;

    /// So many bytes are held now, whatever `counted` was before. Without a book they are nobody's.
    pub fn keep(counted: &mut Option<Self>, book: Option<&Rc<Control>>, size: usize) {
        if size <= Self::FREE {
            *counted = None;
        } else if let Some(counted) = counted {
            counted.resize(size);
        } else if let Some(book) = book {
            book.under_way.hold(size);
            *counted = Some(Self { book: book.clone(), size });
        }
    }

    fn resize(&mut self, size: usize) {
        let before = std::mem::replace(&mut self.size, size);
        self.book.under_way.hold(size.saturating_sub(before));
        self.book.under_way.release(before.saturating_sub(size));
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.book.under_way.release(self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::Counted;
    use crate::Control;
    use std::rc::Rc;

    const FREE: usize = Counted::FREE;

    #[test]
    fn what_is_there_counts_as_long_as_it_is_much() {
        let (book, mut counted) = (Rc::<Control>::default(), None);
        for (size, held) in [(FREE, 0), (FREE + 1, FREE + 1), (9 * FREE, 9 * FREE), (7, 0)] {
            Counted::keep(&mut counted, Some(&book), size);
            assert_eq!(book.under_way.held(), held);
        }
        Counted::keep(&mut counted, None, 2 * FREE);
        assert!(counted.is_none(), "it is nobody's");
        Counted::keep(&mut counted, Some(&book), 3 * FREE);
        Counted::keep(&mut counted, Some(&book), 2 * FREE);
        assert_eq!(book.under_way.held(), 2 * FREE);
        drop(counted);
        assert_eq!(book.under_way.held(), 0);
    }
}
