//! What the certificates of a namespace may take of the process: bytes of answers, lines of the log.

use shares::Lines;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of what is stapled for one namespace, with the chains that travel beside it.
pub(super) const BYTES: usize = 8 << 20;
/// Lines about the responders of one namespace in a minute.
const LINES: u64 = 60;
/// Above so many it is worth looking for those that hold nothing.
const ENOUGH: usize = 4096;

/// The shares of all namespaces.
#[derive(Debug, Default)]
pub(super) struct Shares(HashMap<Arc<str>, Share>);

#[derive(Debug)]
struct Share {
    bytes: usize,
    lines: Lines,
}

impl Shares {
    fn of(&mut self, namespace: &Arc<str>, now: Instant) -> &mut Share {
        if self.0.len() > ENOUGH && !self.0.contains_key(namespace) {
            self.0.retain(|_, share| share.bytes > 0 || !share.lines.is_over(now));
        }
        let new = || Share { bytes: 0, lines: Lines::new(now) };
        self.0.entry(namespace.clone()).or_insert_with(new)
    }

    /// Takes so many bytes instead of those that were `held`; whether there was room.
    pub(super) fn hold(&mut self, namespace: &Arc<str>, held: &mut usize, bytes: usize) -> bool {
        let share = self.of(namespace, Instant::now());
        let others = share.bytes.saturating_sub(*held);
        let has_room = others + bytes <= BYTES;
        if has_room {
            (share.bytes, *held) = (others + bytes, bytes);
        }
        has_room
    }

    /// How many lines were left out before this one, if there may be one more.
    pub(super) fn line(&mut self, namespace: &Arc<str>, now: Instant) -> Option<u64> {
        self.of(namespace, now).lines.line(now, LINES).map(|line| line.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, LINES, Shares};
    use shares::MINUTE;
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_namespace_holds_so_many_bytes_whatever_others_hold() {
        let mut shares = Shares::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let (mut first, mut second) = (0, 0);
        assert!(shares.hold(&a, &mut first, BYTES - 10));
        assert!(!shares.hold(&a, &mut second, 11) && second == 0, "no room is left for it");
        assert!(shares.hold(&b, &mut 0, 11));
        assert!(shares.hold(&a, &mut first, 5), "one for another");
        assert!(shares.hold(&a, &mut second, 11) && (first, second) == (5, 11));
        assert!(shares.hold(&a, &mut first, 0) && shares.hold(&a, &mut second, BYTES));
    }

    #[test]
    fn a_namespace_has_its_lines_of_each_minute() {
        let (mut shares, start) = (Shares::default(), Instant::now());
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let told = (0..100).filter(|_| shares.line(&a, start).is_some()).count() as u64;
        assert_eq!((told, shares.line(&b, start)), (LINES, Some(0)));
        let later = start + MINUTE;
        assert_eq!((shares.line(&a, later), shares.line(&a, later)), (Some(100 - LINES), Some(0)));
    }
}
