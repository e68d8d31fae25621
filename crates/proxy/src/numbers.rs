//! Numbers that a thread draws and writes for its requests.

use bytes::Bytes;
use std::cell::RefCell;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// What one thread draws numbers from.
pub(crate) struct Numbers {
    /// A number that was written in decimal: a thread has few ports.
    decimal: RefCell<(u16, Bytes)>,
    random: RefCell<fastrand::Rng>,
    /// Two generators from the system's randomness: no other thread or replica draws the same numbers.
    wide: RefCell<[fastrand::Rng; 2]>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            decimal: RefCell::new((0, Bytes::from_static(b"0"))),
            random: RefCell::new(fastrand::Rng::new()),
            wide: RefCell::new(seeded()),
        }
    }
}

impl Numbers {
    /// 32 random hexadecimal digits, as nginx's `$request_id`: a label, not a secret.
    pub(crate) fn random_id(&self) -> Bytes {
        let mut id = [[0; 2]; 16];
        let random = self.random.borrow_mut().u128(..).to_ne_bytes();
        for (digits, byte) in id.iter_mut().zip(random) {
            *digits = [HEX[usize::from(byte & 15)], HEX[usize::from(byte >> 4)]];
        }
        Bytes::copy_from_slice(id.as_flattened())
    }

    /// A random number, for ids that must differ from those of all other processes: a label, not a secret.
    pub(crate) fn random_number(&self) -> u128 {
        let [high, low] = &mut *self.wide.borrow_mut();
        u128::from(high.u64(..)) << 64 | u128::from(low.u64(..))
    }

    /// A random number below `bound`, 0 for an empty range.
    pub(crate) fn below(&self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.random.borrow_mut().usize(..bound) }
    }

    /// A number in decimal.
    pub(crate) fn decimal(&self, number: u16) -> Bytes {
        match number {
            80 => Bytes::from_static(b"80"),
            443 => Bytes::from_static(b"443"),
            other => {
                let mut known = self.decimal.borrow_mut();
                if known.0 != other {
                    *known = (other, other.to_string().into());
                }
                known.1.clone()
            }
        }
    }
}

fn seeded() -> [fastrand::Rng; 2] {
    [(); 2].map(|()| {
        let mut seed = [0; 8];
        match aws_lc_rs::rand::fill(&mut seed) {
            Ok(()) => fastrand::Rng::with_seed(u64::from_ne_bytes(seed)),
            Err(_) => fastrand::Rng::new(),
        }
    })
}
