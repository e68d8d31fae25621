//! How far aliases reach that are more than one name: which names of others they could take. Aliases whose names end
//! alike reach alike, and what each end meets is found at once for all of them, whoever asks: a namespace may have tens
//! of thousands.

use model::{Alias, ServerName, fixed_end};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of an end that are looked at: no name is longer (RFC 1035 section 2.3.4), and each end of an end is looked up.
const LONGEST: usize = 255;

/// What the names of an alias end with; nothing where that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    end: String,
    /// Whether it may be any name at all.
    pub(crate) is_all: bool,
}

impl Reach {
    /// How far an alias reaches.
    pub(crate) fn of(alias: &Alias) -> Self {
        let mut end = match alias {
            Alias::Name(name) => name.to_string(),
            Alias::Below(parent) => format!(".{parent}"),
            Alias::Beginning(_) => return Self { end: String::new(), is_all: false },
            Alias::Pattern(pattern) => fixed_end(pattern.source()),
        };
        let rest = end.len().saturating_sub(LONGEST);
        end.drain(..end.ceil_char_boundary(rest));
        Self { is_all: end.is_empty(), end }
    }
}

/// The least of something, and the least that belongs to another namespace than that.
#[derive(Clone, Debug)]
pub(crate) struct Least<T> {
    all: Option<(Arc<str>, T)>,
    others: Option<(Arc<str>, T)>,
}

impl<T> Default for Least<T> {
    fn default() -> Self {
        Self { all: None, others: None }
    }
}

impl<T: Ord + Clone> Least<T> {
    fn add(&mut self, namespace: &Arc<str>, one: &T) {
        let made = || Some((namespace.clone(), one.clone()));
        match &mut self.all {
            None => self.all = made(),
            Some((least, value)) if least == namespace => {
                if *one < *value {
                    *value = one.clone();
                }
            }
            Some((_, value)) if *one < *value => {
                self.others = std::mem::replace(&mut self.all, made())
            }
            Some(_) => {
                if self.others.as_ref().is_none_or(|(_, value)| *one < *value) {
                    self.others = made();
                }
            }
        }
    }

    fn add_all(&mut self, more: &Self) {
        for (namespace, one) in more.all.iter().chain(&more.others) {
            self.add(namespace, one);
        }
    }

    /// The least of what does not belong to this namespace.
    pub(crate) fn besides(&self, namespace: &str) -> Option<&T> {
        let is_other = |(whose, _): &&(Arc<str>, T)| **whose != *namespace;
        self.all.as_ref().filter(is_other).or(self.others.as_ref()).map(|(_, one)| one)
    }
}

/// What aliases of one end meet.
#[derive(Clone, Debug)]
pub(crate) struct Met<A> {
    /// Hosts with a wildcard of which they could take names.
    pub(crate) hosts: Least<ServerName>,
    /// Other aliases that some name could be one of as well.
    pub(crate) aliases: Least<A>,
}

impl<A> Default for Met<A> {
    fn default() -> Self {
        Self { hosts: Least::default(), aliases: Least::default() }
    }
}

/// What aliases meet that are more than one name, by their ends.
#[derive(Debug)]
pub(crate) struct Reaches<A>(HashMap<String, Met<A>>);

impl<A: Ord + Clone> Reaches<A> {
    /// Of these aliases and hosts with wildcards, each with the namespace that has it.
    pub(crate) fn of<'a>(
        aliases: impl Iterator<Item = (&'a Arc<str>, Reach, A)>,
        hosts: impl Iterator<Item = (&'a Arc<str>, &'a ServerName)>,
    ) -> Self {
        let mut ends: HashMap<String, Least<A>> = HashMap::new();
        for (namespace, reach, alias) in aliases {
            ends.entry(reach.end).or_default().add(namespace, &alias);
        }
        let mut met: HashMap<String, Met<A>> = HashMap::new();
        for (end, own) in &ends {
            for shorter in ends_of(end) {
                let Some(theirs) = ends.get(shorter) else { continue };
                met.entry(end.clone()).or_default().aliases.add_all(theirs);
                if shorter != end {
                    met.entry(shorter.to_owned()).or_default().aliases.add_all(own);
                }
            }
        }
        let mut below: HashMap<&str, Least<ServerName>> = HashMap::new();
        for (namespace, host) in hosts {
            let Some(parent) = host.as_str().strip_prefix('*') else { continue };
            below.entry(parent).or_default().add(namespace, host);
            for end in ends_of(parent) {
                if let Some(met) = met.get_mut(end) {
                    met.hosts.add(namespace, host);
                }
            }
        }
        // A name of such a host is one label below its parent.
        for (end, met) in &mut met {
            let parent = end.find('.').map_or("", |at| &end[at..]);
            below.get(parent).iter().for_each(|hosts| met.hosts.add_all(hosts));
        }
        Self(met)
    }

    /// What an alias meets that reaches so far; none if it is not one of these.
    pub(crate) fn met(&self, reach: &Reach) -> Option<&Met<A>> {
        self.0.get(&reach.end)
    }
}

/// All that a text ends with: itself first, nothing at last.
fn ends_of(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, _)| &text[at..]).chain([""])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Reach, Reaches};
    use model::{Alias, ServerName};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn reach(text: &str) -> Reach {
        Reach::of(&Alias::parse(text).expect("an alias")[0])
    }

    /// Who alone has an alias, and who has a host with a wildcard or another alias.
    const MINE: &str = "mine";

    fn met(alias: &str, host: Option<&str>, other: Option<&str>) -> (bool, bool) {
        let (mine, theirs): (Arc<str>, Arc<str>) = (MINE.into(), "theirs".into());
        let host = host.map(ServerName::new);
        let aliases = [(&mine, alias)].into_iter().chain(other.map(|other| (&theirs, other)));
        let aliases = aliases.map(|(whose, text)| (whose, reach(text), text));
        let all = Reaches::of(aliases, host.iter().map(|host| (&theirs, host)));
        let met = all.met(&reach(alias)).expect("it is known");
        (met.hosts.besides(MINE).is_some(), met.aliases.besides(MINE).is_some())
    }

    #[test]
    fn what_may_be_a_name_of_a_wildcard_host_is_told_from_what_cannot() {
        for text in [
            "*.com",
            "*.a.com",
            "~.*",
            r"~\.com$",
            r"~^shop-\d+\.a\.com$",
            "shop.*",
            r"~x\d$",
            r"~\x41$",
        ] {
            assert!(met(text, Some("*.a.com"), None).0, "{text}");
        }
        for text in ["*.b.com", "*.x.a.com", r"~^s\d+\.b\.com$", r"~^s\d+\.x\.a\.com$", "*.aa.com"]
        {
            assert!(!met(text, Some("*.a.com"), None).0, "{text}");
        }
        assert!(reach("~.*").is_all && reach("~^a|b$").is_all);
        assert!(!reach("*.com").is_all && !reach("shop.*").is_all);
    }

    #[test]
    fn two_ends_overlap_if_one_ends_with_the_other() {
        assert!(met("*.com", None, Some(r"~^x\d+\.b\.com$")).1);
        assert!(met("shop.*", None, Some("*.com")).1);
        assert!(!met("*.a.com", None, Some("*.b.com")).1);
    }

    #[test]
    fn of_an_end_no_more_is_looked_at_than_a_name_has() {
        let long = format!("*.{}.a.com", "é".repeat(30_000));
        assert!(reach(&long).end.len() <= LONGEST);
        assert!(met(&long, None, Some("*.a.com")).1 && !met(&long, None, Some("*.b.com")).1);
    }

    proptest! {
        /// The same as whoever compares each with each.
        #[test]
        fn each_meets_what_it_would_meet_alone(
            aliases in prop::collection::vec((0..3usize, "[.]?[ab]{0,2}([.][ab]{1,2}){0,2}"), 1..12),
            hosts in prop::collection::vec((0..3usize, "([.][ab]{1,2}){1,2}"), 0..6),
        ) {
            let whose: [Arc<str>; 3] = ["x".into(), "y".into(), "z".into()];
            let hosts: Vec<_> = hosts.iter()
                .map(|(of, parent)| (&whose[*of], ServerName::new(format!("*{parent}"))))
                .collect();
            let reach = |end: &String| Reach { end: end.clone(), is_all: end.is_empty() };
            let numbered = aliases.iter().enumerate();
            let all = Reaches::of(
                numbered.map(|(age, (of, end))| (&whose[*of], reach(end), age)),
                hosts.iter().map(|(of, host)| (*of, host)),
            );
            for (of, end) in &aliases {
                let met = all.met(&reach(end)).expect("it is known");
                let others = aliases.iter().enumerate().filter(|(_, (other, _))| other != of);
                let mut overlaps = others.filter(|(_, (_, other))| end.ends_with(other.as_str()) || other.ends_with(end.as_str()));
                prop_assert_eq!(met.aliases.besides(&whose[*of]).copied(), overlaps.next().map(|(age, _)| age));
                let takes_from = |host: &ServerName| {
                    let parent = host.as_str().strip_prefix('*').expect("a wildcard");
                    match end.strip_suffix(parent) {
                        Some(label) => !label.contains('.'),
                        None => parent.ends_with(end.as_str()),
                    }
                };
                let strange = hosts.iter().filter(|(owner, _)| **owner != whose[*of]);
                let least = strange.map(|(_, host)| host).filter(|host| takes_from(host)).min();
                prop_assert_eq!(met.hosts.besides(&whose[*of]), least);
            }
        }
    }
}
