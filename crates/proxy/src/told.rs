//! What the error log says of requests that failed or were turned away: for each namespace a share of each minute,
//! whoever else fails. What was left out is counted, and told with the first line of the next minute.

use shares::{Line, LinesOf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Lines in a minute about failed requests of one namespace, about those that a kind of guard refused, and about
/// rewritten paths. Of each way to be turned away by a limit there is one.
const FAILURES: u64 = 600;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum About {
    /// A request that failed.
    Failure,
    /// One that a guard refused, and which kind of guard: who is kept out by his address leaves the lines about
    /// passwords to others.
    Refusal(&'static str),
    /// What became of its path, where `enable-rewrite-log` asks for it.
    Rewrites,
    /// One that a limit of its namespace turned away, said so.
    Limit(&'static str),
    /// One that was turned away since the process has no more to give.
    Pressure,
    /// One for which there was no place for a connection to its upstream.
    Places,
    /// A TLS connection that is not ended here, and cannot be carried on: why. There are no names of namespaces for
    /// these, but of upstreams.
    Carried(&'static str),
}

impl About {
    fn most(self) -> u64 {
        match self {
            Self::Failure | Self::Refusal(_) | Self::Rewrites => FAILURES,
            Self::Limit(_) | Self::Pressure | Self::Places | Self::Carried(_) => 1,
        }
    }
}

/// What was told, of all threads.
#[derive(Debug, Default)]
pub(crate) struct Told {
    lines: LinesOf<About>,
    /// Lines about failed requests that were left out since the start.
    failures: AtomicU64,
}

impl Told {
    /// A line about a namespace, if there may be one more; nobody's is one, too.
    pub(crate) fn line(&self, namespace: Option<&Arc<str>>, about: About) -> Option<Line> {
        self.line_at(namespace, about, Instant::now())
    }

    /// Lines about failed requests that were left out since the start.
    pub(crate) fn left_out(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn line_at(&self, namespace: Option<&Arc<str>>, about: About, now: Instant) -> Option<Line> {
        let whose = namespace.cloned().unwrap_or_default();
        let line = self.lines.line(whose, about, about.most(), now);
        if line.is_none() && about == About::Failure {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::{About, FAILURES, Told};
    use shares::{Line, MINUTE};
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_namespace_has_its_share_of_each_minute_and_others_theirs() {
        let (told, start) = (Told::default(), Instant::now());
        let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
        let count = |namespace, times: u64, now| {
            (0..times).filter_map(|_| told.line_at(Some(namespace), About::Failure, now)).count()
        };
        assert_eq!(count(&a, FAILURES - 1, start), FAILURES as usize - 1);
        let last = Some(Line { left_out: 0, is_last: true });
        assert_eq!(told.line_at(Some(&a), About::Failure, start), last);
        assert_eq!((count(&a, 1000, start), count(&b, 2, start)), (0, 2));
        assert_eq!(told.left_out(), 1000);
        let rewrites = (0..2 * FAILURES)
            .filter_map(|_| told.line_at(Some(&a), About::Rewrites, start))
            .count();
        assert_eq!(rewrites, FAILURES as usize, "they are no failures");
        for guard in ["address", "password"] {
            let refused = |_: &u64| told.line_at(Some(&a), About::Refusal(guard), start).is_some();
            assert_eq!((0..2 * FAILURES).filter(refused).count(), FAILURES as usize, "{guard}");
        }
        assert_eq!(told.left_out(), 1000, "nor are refusals");
        let next = told.line_at(Some(&a), About::Failure, start + MINUTE);
        assert_eq!(next, Some(Line { left_out: 1000, is_last: false }));
    }

    #[test]
    fn each_way_to_be_turned_away_is_told_once_a_minute() {
        let (told, start) = (Told::default(), Instant::now());
        let a: Arc<str> = "a".into();
        let limits = [About::Limit("requests"), About::Limit("connections")];
        for about in limits.into_iter().chain([About::Pressure, About::Carried("nobody")]) {
            let line = |now| told.line_at(Some(&a), about, now).map(|line| line.left_out);
            let then = start + MINUTE;
            assert_eq!((line(start), line(start), line(start)), (Some(0), None, None));
            assert_eq!((line(then), line(then)), (Some(2), None));
        }
    }
}
