//! Hosts that somebody else has, though they are below one's own.

use crate::ServerName;
use serde::Serialize;
use std::collections::BTreeSet;

/// Hosts of more special listeners that somebody else wrote: whoever has what is above them has none of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Others(BTreeSet<ServerName>);

/// Bytes of the longest name (RFC 1035 section 2.3.4).
const LONGEST: usize = 253;

impl Others {
    /// Whether a host is one of them, or below one that is a wildcard, at any depth. A host may be as long as a client
    /// likes: what is looked up of it is no longer than a name.
    pub fn have(&self, host: &str) -> bool {
        let mut wildcard = String::new();
        let start = host.len().saturating_sub(LONGEST).max(1);
        let dots = host.bytes().enumerate().skip(start).filter(|(_, byte)| *byte == b'.');
        let mut above = dots.map(|(at, _)| {
            wildcard.clear();
            wildcard.push('*');
            wildcard.push_str(&host[at..]);
            self.0.contains(wildcard.as_str())
        });
        self.0.contains(host) || above.any(|has| has)
    }

    /// Whether one of them is below this host, which is a wildcard or `_`, and is not that host itself.
    pub fn are_below(&self, host: &str) -> bool {
        let mut all = self.0.iter().map(ServerName::as_str);
        match host.strip_prefix('*') {
            Some(above) => {
                all.any(|name| name.len() > above.len() && name != host && name.ends_with(above))
            }
            None => host == "_" && all.any(|name| name != "_"),
        }
    }

    /// Those that are no one's of two who share something.
    #[must_use]
    pub fn of_both(&self, other: &Self) -> Self {
        let own = self.0.iter().filter(|name| other.have(name.as_str()));
        let others = other.0.iter().filter(|name| self.have(name.as_str()));
        own.chain(others).cloned().collect()
    }
}

impl FromIterator<ServerName> for Others {
    fn from_iter<T: IntoIterator<Item = ServerName>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Others {
        names.iter().map(|name| ServerName::new(*name)).collect()
    }

    #[test]
    fn a_wildcard_has_every_name_below_it_and_a_name_itself_alone() {
        let all = of(&["*.shop.test", "op.test"]);
        for host in ["pay.shop.test", "a.b.shop.test", "*.b.shop.test", "*.shop.test", "op.test"] {
            assert!(all.have(host), "{host}");
        }
        for host in ["shop.test", "*.test", "a.op.test", "xshop.test", "_", ""] {
            assert!(!all.have(host), "{host}");
        }
    }

    #[test]
    fn a_host_of_any_length_is_looked_up_as_a_name() {
        let long = format!("{}pay.shop.test", "a.".repeat(20_000));
        assert!(of(&["*.shop.test"]).have(&long) && !of(&["*.else.test"]).have(&long));
    }

    #[test]
    fn what_is_below_a_host_is_not_that_host() {
        let all = of(&["*.shop.test"]);
        assert!(all.are_below("_") && all.are_below("*.test"));
        assert!(!all.are_below("*.shop.test") && !all.are_below("pay.shop.test"));
        assert!(!all.are_below("*.pay.shop.test") && !all.are_below("*.hop.test"));
        assert!(!of(&[]).are_below("_"));
        assert!(of(&["a.b"]).are_below("*.b"), "as short as the wildcard");
    }

    #[test]
    fn of_two_who_share_something_each_gives_it_what_it_has() {
        let both = of(&["*.shop.test", "op.test", "x.bank.test"])
            .of_both(&of(&["pay.shop.test", "*.bank.test"]));
        assert_eq!(both, of(&["pay.shop.test", "x.bank.test"]));
    }
}
