//! Lines of the log about one sharer, a namespace or a kind of trouble: so many in each minute, whoever else writes.
//! What is left out is counted, and told with the first line of the next minute.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a number of lines is for.
pub const MINUTE: Duration = Duration::from_secs(60);
/// How many sharers and troubles are kept; who comes later shares one with the others.
const KEPT: usize = 4096;
/// How often those are looked for whose minute is over.
const SWEEP: Duration = Duration::from_secs(1);

/// The lines of one sharer.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    began: Instant,
    written: u64,
    left_out: u64,
}

/// A line that may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// How many were left out since the line before.
    pub left_out: u64,
    /// Whether it is the last one of its minute.
    pub is_last: bool,
}

impl Lines {
    /// Nothing is written; the first minute begins.
    pub fn new(now: Instant) -> Self {
        Self { began: now, written: 0, left_out: 0 }
    }

    /// Whether the minute is over, so that nothing is lost with these but the number of what was left out.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.began + MINUTE
    }

    /// One more line, if there may be one: `most` is how many a minute has.
    pub fn line(&mut self, now: Instant, most: u64) -> Option<Line> {
        if self.is_over(now) {
            (self.began, self.written) = (now, 0);
        }
        if self.written >= most {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(Line { left_out: std::mem::take(&mut self.left_out), is_last: self.written == most })
    }
}

/// The lines of many sharers, each about several troubles.
#[derive(Debug)]
pub struct LinesOf<A>(Mutex<All<A>>);

#[derive(Debug)]
struct All<A> {
    lines: HashMap<(Arc<str>, A), Lines>,
    /// When it was last looked for those whose minute is over: all of them are gone through.
    swept: Option<Instant>,
}

impl<A> Default for LinesOf<A> {
    fn default() -> Self {
        Self(Mutex::new(All { lines: HashMap::new(), swept: None }))
    }
}

impl<A: Eq + Hash> LinesOf<A> {
    /// One more line about a sharer and its trouble, if there may be one: `most` is how many a minute has.
    pub fn line(&self, whose: Arc<str>, about: A, most: u64, now: Instant) -> Option<Line> {
        let mut all = self.0.lock();
        let All { lines: all, swept } = &mut *all;
        let mut key = (whose, about);
        if !all.contains_key(&key) && all.len() >= KEPT {
            if swept.is_none_or(|last| now >= last + SWEEP) {
                *swept = Some(now);
                all.retain(|_, lines| !lines.is_over(now));
            }
            if all.len() >= KEPT {
                key.0 = Arc::default();
            }
        }
        all.entry(key).or_insert_with(|| Lines::new(now)).line(now, most)
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Line, Lines, LinesOf, MINUTE};
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn however_many_sharers_there_are_what_is_kept_is_bounded() {
        let (lines, start) = (LinesOf::default(), Instant::now());
        let line = |number| lines.line(Arc::from(format!("n{number}")), (), 1, start);
        assert_eq!((0..2 * KEPT).filter_map(line).count(), KEPT + 1, "those after share one");
        let kept = || lines.0.lock().lines.len();
        assert_eq!(kept(), KEPT + 1);
        lines.line(Arc::from("later"), (), 600, start + MINUTE);
        assert_eq!(kept(), 1, "what has its minute behind it goes");
    }

    #[test]
    fn a_minute_has_so_many_lines_and_the_next_one_tells_what_was_left_out() {
        let start = Instant::now();
        let mut lines = Lines::new(start);
        let line = |left_out, is_last| Some(Line { left_out, is_last });
        assert_eq!(lines.line(start, 2), line(0, false));
        assert_eq!(lines.line(start, 2), line(0, true));
        assert!((0..5).all(|_| lines.line(start, 2).is_none()) && !lines.is_over(start));
        assert!(lines.is_over(start + MINUTE));
        assert_eq!(lines.line(start + MINUTE, 2), line(5, false));
        assert_eq!(lines.line(start + MINUTE, 2), line(0, true));
    }
}
