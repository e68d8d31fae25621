//! What was decided about copies of requests (`fairway run --shadow`), in groups. `trace/copies.rs` makes a copy of a
//! request.

use crate::end::End;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::SystemTime;

/// Groups that are kept apart; copies beyond them are only counted.
pub const MOST_GROUPS: usize = 1000;

/// What became of copies, by group.
#[derive(Debug, Default)]
pub struct Shadow {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    groups: HashMap<Decided, Count>,
    beyond: u64,
    sums: [u64; 4],
    /// Copies that do not say whose request they are of.
    without_client: u64,
}

/// What is said of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Said {
    /// It would have gone to an upstream.
    Upstream,
    /// It would have been redirected.
    Redirect,
    /// It would have been refused, or nobody would have been there: 400 and more.
    Refusal,
    /// It would have been answered here otherwise.
    Answer,
}

/// What tells one group from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decided {
    /// In one word.
    pub said: Said,
    /// The server that answers; `_` for the one of all other hosts.
    pub host: String,
    /// `namespace/name` of the Ingress whose path it is; none is nobody's.
    pub ingress: Option<String>,
    /// The upstream that it would have gone to.
    pub upstream: Option<String>,
    /// The status, where it would have been answered here.
    pub status: Option<u16>,
    /// Where it ended.
    pub end: End,
}

/// How often it was decided so.
#[derive(Clone, Debug)]
pub struct Count {
    /// How many copies.
    pub copies: u64,
    /// The first of them: method, host and path.
    pub example: String,
    /// When that came.
    pub first: SystemTime,
    /// When the last one came.
    pub last: SystemTime,
}

/// All of it at one moment.
#[derive(Clone, Debug, Default)]
pub struct Shadowed {
    /// The most frequent first.
    pub groups: Vec<(Decided, Count)>,
    /// Copies of groups that are not kept apart.
    pub beyond: u64,
    /// Copies, by what is said of them.
    pub sums: [(&'static str, u64); 4],
    /// Copies without X-Forwarded-For and PROXY header: their client is whoever copies.
    pub without_client: u64,
}

impl Said {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Upstream, Self::Redirect, Self::Refusal, Self::Answer];

    /// As it is told.
    pub fn word(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Redirect => "redirect",
            Self::Refusal => "refusal",
            Self::Answer => "answer",
        }
    }

    /// What is said where this status is answered, or the request is sent to an upstream.
    pub(crate) fn of(status: u16, sent: bool) -> Self {
        match status {
            _ if sent => Self::Upstream,
            300..=399 => Self::Redirect,
            400.. => Self::Refusal,
            _ => Self::Answer,
        }
    }
}

impl Shadow {
    /// A TLS connection that a real one would have carried on as it is.
    pub(crate) fn carried(&self, upstream: &str) {
        let decided = Decided {
            said: Said::Upstream,
            host: "(TLS that is passed through)".to_owned(),
            ingress: None,
            upstream: Some(upstream.to_owned()),
            status: None,
            end: End::Upstream,
        };
        self.count(decided, || "a TLS connection".to_owned());
    }

    /// A copy that does not say whose request it is of.
    pub(crate) fn without_client(&self) {
        self.seen.lock().without_client += 1;
    }

    /// One more copy about which this was decided.
    pub(crate) fn count(&self, decided: Decided, example: impl FnOnce() -> String) {
        let now = SystemTime::now();
        let mut seen = self.seen.lock();
        seen.sums[decided.said as usize] += 1;
        if let Some(count) = seen.groups.get_mut(&decided) {
            count.copies += 1;
            count.last = now;
            return;
        }
        if seen.groups.len() >= MOST_GROUPS {
            seen.beyond += 1;
            return;
        }
        let example = example();
        let Decided { said, host, ingress, upstream, status, .. } = &decided;
        let (said, ingress) = (said.word(), ingress.as_deref().unwrap_or("-"));
        let upstream = upstream.as_deref().unwrap_or("-");
        let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        tracing::info!(%host, ingress, upstream, status, example, "first copy of its kind: {said}");
        seen.groups.insert(decided, Count { copies: 1, example, first: now, last: now });
    }

    /// What was seen so far.
    pub fn seen_so_far(&self) -> Shadowed {
        let seen = self.seen.lock();
        let mut groups: Vec<_> =
            seen.groups.iter().map(|(decided, count)| (decided.clone(), count.clone())).collect();
        groups.sort_by(|(a, one), (b, two)| two.copies.cmp(&one.copies).then_with(|| a.cmp(b)));
        let sums = Said::ALL.map(|said| (said.word(), seen.sums[said as usize]));
        Shadowed { groups, beyond: seen.beyond, sums, without_client: seen.without_client }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(status: u16, sent: bool, upstream: &str) -> Decided {
        Decided {
            said: Said::of(status, sent),
            host: "_".to_owned(),
            ingress: None,
            upstream: sent.then(|| upstream.to_owned()),
            status: (!sent).then_some(status),
            end: End::Upstream,
        }
    }

    #[test]
    fn copies_are_counted_in_groups_of_which_there_are_not_too_many() {
        let shadow = Shadow::default();
        for number in 0..MOST_GROUPS + 5 {
            shadow.count(decided(200, true, &format!("demo-{number}-80")), String::new);
        }
        for status in [308, 403, 503, 200, 403] {
            shadow.count(decided(status, false, "never"), String::new);
        }
        let seen = shadow.seen_so_far();
        assert_eq!((seen.groups.len(), seen.beyond), (MOST_GROUPS, 10));
        let sums = [("upstream", 1005), ("redirect", 1), ("refusal", 3), ("answer", 1)];
        assert_eq!(seen.sums, sums);
        shadow.count(decided(200, true, "demo-7-80"), String::new);
        let first = &shadow.seen_so_far().groups[0];
        assert_eq!((first.0.upstream.as_deref(), first.1.copies), (Some("demo-7-80"), 2));
    }
}
