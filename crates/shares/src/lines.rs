//! Lines of the log about one sharer, a namespace or a kind of trouble: so many in each minute, whoever else writes.
//! What is left out is counted, and told with the first line of the next minute.

use std::time::{Duration, Instant};

/// What a number of lines is for.
pub const MINUTE: Duration = Duration::from_secs(60);

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

#[cfg(test)]
mod tests {
    use super::{Line, Lines, MINUTE};
    use std::time::Instant;

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
