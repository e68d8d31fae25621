//! Numbers that a thread draws and writes for its requests.

use crate::request_id::RequestId;
use bytes::Bytes;
use std::cell::RefCell;

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
    pub(crate) fn random_id(&self) -> RequestId {
        let random = self.random.borrow_mut().u128(..).to_ne_bytes();
        let (halves, _) = random.as_chunks::<4>();
        let mut id = [0; 32];
        for (digits, half) in id.as_chunks_mut::<8>().0.iter_mut().zip(halves) {
            *digits = hexadecimal(u32::from_ne_bytes(*half));
        }
        RequestId::Own(id)
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

/// Eight hexadecimal digits in lower case, the lowest first, all of them made at once.
fn hexadecimal(number: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Each half of a byte in a byte of its own.
    let mut spread = u64::from(number);
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // One where it is above 9: `a` stands 39 behind what follows `9`.
    let letters = (spread + 6 * EACH) >> 4 & EACH;
    (spread + u64::from(b'0') * EACH + 39 * letters).to_le_bytes()
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

#[cfg(test)]
mod tests {
    use super::hexadecimal;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 1, 9, 10, 0x9abc_def0, 0xffff_ffff, 0x0123_4567, 0x89ab_cdef] {
            let text: String = format!("{number:08x}").chars().rev().collect();
            assert_eq!(hexadecimal(number), text.as_bytes());
        }
    }
}
