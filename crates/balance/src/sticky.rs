//! Clients that stay with an endpoint: what a session cookie of ingress-nginx means, so that sessions survive its
//! replacement (compat/behaviour.md section 9).

use crate::Ring;
use md5::{Digest, Md5};
use model::policy::AffinityMode;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Draws of a new session before it is given up to find an endpoint that has not failed.
const DRAWS: usize = 20;
/// Draws at most, however many endpoints are about to end.
const MOST_DRAWS: usize = 1000;
/// Endpoints of which all are looked at, whichever have failed.
const FEW: usize = 64;
/// Between the parts of a cookie's value.
const BAR: char = '|';
/// Between the two times of its third part.
const DASH: char = '-';

/// 32 hexadecimal digits.
type Key = [u8; 32];

/// The value of a session cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie<'a> {
    /// The endpoint, in the words of [`AffinityMode`].
    pub endpoint: &'a str,
    /// The upstream ([`upstream_key`]): it tells the main side from the canary, and a share of a route from others.
    pub upstream: Option<&'a str>,
    /// When it began and when it was used last, in seconds since 1970: sessions of routes that end say so.
    pub times: Option<(u64, u64)>,
}

impl<'a> Cookie<'a> {
    /// Reads a value; none if there is nothing in it.
    pub fn read(value: &'a str) -> Option<Self> {
        let mut parts = value.split(BAR).filter(|part| !part.is_empty());
        let (endpoint, upstream) = (parts.next()?, parts.next());
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let times = parts.next().and_then(|times| times.split_once(DASH));
        let times = times.and_then(|(began, used)| number(began).zip(number(used)));
        Some(Self { endpoint, upstream, times })
    }

    /// The value as it is written.
    pub fn written(endpoint: &str, upstream: &str) -> String {
        format!("{endpoint}{BAR}{upstream}")
    }

    /// The value of this one.
    pub fn value(&self) -> String {
        let value = Self::written(self.endpoint, self.upstream.unwrap_or_default());
        match self.times {
            Some((began, used)) => format!("{value}{BAR}{began:x}{DASH}{used:x}"),
            None => value,
        }
    }
}

/// The second part of the cookies of an upstream.
pub fn upstream_key(upstream: &str) -> String {
    let inner = text(&digest(&[upstream]));
    text(&digest(&[&inner, upstream]))
}

/// What a request says of its session.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// What the cookie means.
    pub mode: AffinityMode,
    /// The first part of its value; none for a new client.
    pub session: Option<&'a str>,
    /// Endpoints that this request was tried at.
    pub failed: &'a [SocketAddr],
    /// Whether a failed try ends the session.
    pub change_on_failure: bool,
}

/// Where a request of a session goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// To the endpoint of its session.
    Same(SocketAddr),
    /// To another one, with this first part of a new cookie.
    New(SocketAddr, String),
}

/// The endpoints of an upstream by what cookies call them. Endpoints that are about to end keep the sessions they have
/// and get no new ones (compat/decisions.md).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    /// Those that take new sessions first.
    endpoints: Vec<SocketAddr>,
    open: usize,
    /// What the upstream is called, which is in what cookies call its endpoints.
    upstream: Box<str>,
    ring: Ring,
    keys: Vec<(Key, u32)>,
}

impl Sessions {
    /// Sessions of the upstream called `upstream`: `open` endpoints take new ones, `ending` ones keep theirs.
    pub fn new(upstream: &str, open: &[SocketAddr], ending: &[SocketAddr]) -> Self {
        Self { upstream: upstream.into(), ..Self::default() }.following(open, ending)
    }

    /// The same where those before are known, of the same upstream: of endpoints that stay nothing is computed again.
    pub fn following(&self, open: &[SocketAddr], ending: &[SocketAddr]) -> Self {
        let endpoints = [open, ending].concat();
        let known = self.keys.iter().map(|(key, number)| (self.endpoints[*number as usize], *key));
        let known: HashMap<SocketAddr, Key> = known.collect();
        let key = |endpoint: &SocketAddr| {
            known.get(endpoint).copied().unwrap_or_else(|| key(&self.upstream, *endpoint))
        };
        let mut keys: Vec<(Key, u32)> = endpoints.iter().map(key).zip(0..).collect();
        keys.sort_unstable();
        let ring = Ring::following(&endpoints, &self.endpoints, &self.ring);
        Self { upstream: self.upstream.clone(), ring, open: open.len(), endpoints, keys }
    }

    /// The endpoint for a request. `draw` makes the text of a new balanced session, `random` gives a number below its
    /// argument. None if no endpoint is left that has not failed.
    pub fn choose(
        &self,
        claim: Claim<'_>,
        mut draw: impl FnMut(usize) -> String,
        mut random: impl FnMut(usize) -> usize,
    ) -> Option<Kept> {
        let Claim { mode, session, failed, change_on_failure } = claim;
        let leave = change_on_failure && !failed.is_empty();
        if let Some(endpoint) = session.and_then(|session| self.find(mode, session))
            && !leave
        {
            return Some(Kept::Same(endpoint));
        }
        match mode {
            AffinityMode::Balanced => {
                // Endpoints that are about to end are drawn, too, and not taken.
                let draws = DRAWS * self.endpoints.len().div_ceil(self.open.max(1));
                let mut drawn = (0..draws.min(MOST_DRAWS)).filter_map(|number| {
                    let session = draw(number);
                    let at = self.ring.find(session.as_bytes())?;
                    Some((at, session))
                });
                let open = |at: usize| at < self.open && !failed.contains(&self.endpoints[at]);
                let (at, session) = drawn.find(|(at, _)| open(*at))?;
                Some(Kept::New(self.endpoints[at], session))
            }
            AffinityMode::Persistent => {
                let endpoint = self.left(failed, &mut random)?;
                Some(Kept::New(endpoint, text(&key(&self.upstream, endpoint))))
            }
        }
    }

    /// Any endpoint that takes new sessions and has not failed. Of very many it is drawn, and drawn again where it has
    /// failed: to go through all of them costs each try of a request as much as there are.
    fn left(
        &self,
        failed: &[SocketAddr],
        mut random: impl FnMut(usize) -> usize,
    ) -> Option<SocketAddr> {
        let open = &self.endpoints[..self.open];
        let is_left = |endpoint: &SocketAddr| !failed.contains(endpoint);
        let draws = if open.len() > FEW { DRAWS } else { 0 };
        let drawn = (0..draws).map(|_| open[random(open.len())]).find(is_left);
        drawn.or_else(|| {
            let left: Vec<_> = open.iter().copied().filter(is_left).collect();
            left.get(random(left.len().max(1))).copied()
        })
    }

    /// The endpoint that a session names, while it is there.
    pub fn find(&self, mode: AffinityMode, session: &str) -> Option<SocketAddr> {
        let at = match mode {
            AffinityMode::Balanced => self.ring.find(session.as_bytes())?,
            AffinityMode::Persistent => {
                let at = self.keys.binary_search_by(|(key, _)| key[..].cmp(session.as_bytes()));
                self.keys[at.ok()?].1 as usize
            }
        };
        Some(self.endpoints[at])
    }
}

/// What persistent cookies call an endpoint.
fn key(upstream: &str, endpoint: SocketAddr) -> Key {
    digest(&[upstream, &endpoint.to_string()])
}

fn digest(parts: &[&str]) -> Key {
    let mut md5 = Md5::new();
    parts.iter().for_each(|part| md5.update(part));
    let mut key = [0; 32];
    hex::encode_to_slice(md5.finalize(), &mut key).expect("16 bytes are 32 digits");
    key
}

fn text(key: &Key) -> String {
    key.iter().map(|digit| char::from(*digit)).collect()
}

/// Whether a browser, by its `User-Agent`, takes `SameSite=None` for what it is (ingress-nginx: util.same_site).
pub fn takes_same_site_none(user_agent: &str) -> bool {
    let says = |text: &str| user_agent.contains(text);
    let old_chrome = ["Chrome/4", "Chrome/5", "Chrome/6"].into_iter().any(says);
    let ios_12 = says("CPU iPhone OS 12") || says("iPad; CPU OS 12");
    let mojave = says("Macintosh") && says("Intel Mac OS X 10_14") && says("Safari");
    !(old_chrome || ios_12 || (mojave && !says("Chrome")))
}

#[cfg(test)]
mod tests {
    use super::{Claim, Cookie, Kept, Sessions, takes_same_site_none};
    use model::policy::AffinityMode::{self, Balanced, Persistent};
    use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use std::net::SocketAddr;

    fn addresses(hosts: std::ops::Range<u8>) -> Vec<SocketAddr> {
        hosts.map(|host| SocketAddr::from(([10, 77, 0, host], 8000))).collect()
    }

    fn choose(
        sessions: &Sessions,
        mode: AffinityMode,
        session: Option<&str>,
        failed: &[SocketAddr],
        change: bool,
        seed: usize,
    ) -> Option<Kept> {
        sessions.choose(
            Claim { mode, session, failed, change_on_failure: change },
            |number| format!("{seed}.{number}"),
            |below| seed % below,
        )
    }

    fn session(kept: Option<Kept>) -> Option<(SocketAddr, String)> {
        match kept? {
            Kept::New(endpoint, session) => Some((endpoint, session)),
            Kept::Same(_) => None,
        }
    }

    #[test]
    fn a_cookie_has_two_parts_and_the_second_may_be_missing() {
        let both = Cookie { endpoint: "a", upstream: Some("b"), times: None };
        assert_eq!((Cookie::read("a|b"), both.value().as_str()), (Some(both), "a|b"));
        assert_eq!(Cookie::read("a"), Some(Cookie { upstream: None, ..both }));
        assert_eq!(Cookie::read("|"), None);
        let timed = Cookie { times: Some((10, 255)), ..both };
        assert_eq!((Cookie::read("a|b|a-ff"), timed.value().as_str()), (Some(timed), "a|b|a-ff"));
        for untold in ["a|b|", "a|b|a", "a|b|-", "a|b|a-x", "a|b|a-fffffffffffffffff"] {
            assert_eq!(Cookie::read(untold), Some(both), "{untold}");
        }
    }

    #[test]
    fn a_persistent_session_ends_with_its_endpoint() {
        let before = Sessions::new("demo-echo-80", &addresses(1..4), &[]);
        let (endpoint, cookie) =
            session(choose(&before, Persistent, None, &[], false, 1)).expect("a new session");
        assert_eq!(endpoint, addresses(2..3)[0]);
        let grown = Sessions::new("demo-echo-80", &addresses(0..9), &[]);
        assert_eq!(
            choose(&grown, Persistent, Some(&cookie), &[], false, 0),
            Some(Kept::Same(endpoint))
        );
        let without = Sessions::new("demo-echo-80", &addresses(5..9), &[]);
        let (other, new) = session(choose(&without, Persistent, Some(&cookie), &[], false, 0))
            .expect("a new session");
        assert!(other != endpoint && new != cookie);
        let elsewhere = Sessions::new("demo-other-80", &addresses(1..4), &[]);
        assert!(session(choose(&elsewhere, Persistent, Some(&cookie), &[], false, 0)).is_some());
    }

    #[test]
    fn browsers_that_mistake_none_are_known() {
        for mistakes in [
            "UCWEB/2.0 Chrome/57.0",
            "(iPad; CPU OS 12_2 like Mac OS X)",
            "(Macintosh; Intel Mac OS X 10_14_6) Safari/605",
        ] {
            assert!(!takes_same_site_none(mistakes), "{mistakes}");
        }
        for right in [
            "",
            "(iPhone; CPU iPhone OS 13_3)",
            "(Macintosh; Intel Mac OS X 10_14_6) Chrome/80 Safari/537",
        ] {
            assert!(takes_same_site_none(right), "{right}");
        }
    }

    proptest! {
        #[test]
        fn what_is_given_is_kept(
            mode in prop_oneof![Just(Balanced), Just(Persistent)], open in 1u8..9, ending in 0u8..4, seed in any::<u16>(),
        ) {
            let sessions = Sessions::new("u", &addresses(0..open), &addresses(100..100 + ending));
            let new = session(choose(&sessions, mode, None, &[], false, usize::from(seed)));
            prop_assert!(new.is_some());
            if let Some((endpoint, cookie)) = new {
                prop_assert!(addresses(0..open).contains(&endpoint));
                prop_assert_eq!(choose(&sessions, mode, Some(&cookie), &[], true, 0), Some(Kept::Same(endpoint)));
            }
        }

        #[test]
        fn sessions_that_follow_others_are_the_same_as_new_ones(
            before in (0u8..40, 0u8..8), after in (0u8..40, 0u8..8), shift in 0u8..8,
        ) {
            let (first, open) = (addresses(0..before.0), addresses(shift..shift + after.0));
            let (ending, last) = (addresses(100..100 + before.1), addresses(100..100 + after.1));
            let following = Sessions::new("u", &first, &ending).following(&open, &last);
            prop_assert_eq!(following, Sessions::new("u", &open, &last));
        }

        #[test]
        fn an_endpoint_that_ends_keeps_its_sessions_until_it_is_gone(
            mode in prop_oneof![Just(Balanced), Just(Persistent)], count in 2u8..9, at in any::<prop::sample::Index>(), seed in any::<u16>(),
        ) {
            let all = addresses(0..count);
            let before = Sessions::new("u", &all, &[]);
            let (endpoint, cookie) = session(choose(&before, mode, None, &[], false, usize::from(seed))).expect("endpoints are there");
            let ending = all[at.index(all.len())];
            let open: Vec<SocketAddr> = all.iter().copied().filter(|endpoint| *endpoint != ending).collect();
            let during = Sessions::new("u", &open, &[ending]);
            prop_assert_eq!(choose(&during, mode, Some(&cookie), &[], false, 0), Some(Kept::Same(endpoint)));
            let new = session(choose(&during, mode, None, &[], false, usize::from(seed)));
            prop_assert!(new.is_none_or(|(endpoint, _)| endpoint != ending));
        }

        #[test]
        fn no_failed_endpoint_is_tried_twice_unless_the_session_says_so(
            mode in prop_oneof![Just(Balanced), Just(Persistent)], count in 1u8..6, seed in any::<u16>(),
        ) {
            let all = addresses(0..count);
            let sessions = Sessions::new("u", &all, &[]);
            let seed = usize::from(seed);
            let (first, cookie) = session(choose(&sessions, mode, None, &[], false, seed)).expect("endpoints are there");
            prop_assert_eq!(choose(&sessions, mode, Some(&cookie), &[first], false, seed), Some(Kept::Same(first)));
            for session in [None, Some(cookie.as_str())] {
                match choose(&sessions, mode, session, &[first], true, seed) {
                    Some(Kept::New(other, _)) => prop_assert!(other != first),
                    Some(Kept::Same(_)) => prop_assert!(false, "the session was to end"),
                    None => prop_assert!(count == 1 || mode == Balanced),
                }
            }
            prop_assert_eq!(choose(&sessions, mode, None, &all, false, seed), None);
        }
    }
}
