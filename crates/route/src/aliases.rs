//! Other names of servers, where exact hosts do not match: nginx's wildcards and patterns
//! (ngx_http_server_names, ngx_hash_find_combined).

use crate::routes::Names;
use imbl::OrdMap;
use model::{Alias, Pattern, ServerName, Spent, Steps, fixed_end};
use std::sync::Arc;

/// Longer names than DNS has (RFC 1035 section 2.3.4) are looked for by their exact text only.
const LONGEST: usize = 255;

/// Other names of servers.
pub(crate) struct Aliases<T> {
    names: Names<T>,
    /// By what follows `*.`.
    below: Names<T>,
    /// By what precedes `.*`.
    beginning: Names<T>,
    /// By what every name ends with in which they match: a name meets those only that it may be one of, so that those
    /// of others cost it nothing.
    patterns: OrdMap<Box<str>, OfEnd<T>>,
}

/// Patterns by server and place among its aliases, which is the order in which nginx tries them.
type OfEnd<T> = OrdMap<(ServerName, usize), (Pattern, Arc<T>)>;

impl<T> Aliases<T> {
    /// The aliases of `owner` lead to `server`, or nowhere.
    pub(crate) fn set(&mut self, owner: &ServerName, aliases: &[Alias], server: Option<&Arc<T>>) {
        for (place, alias) in aliases.iter().enumerate() {
            let (names, key) = match alias {
                Alias::Name(name) => (&mut self.names, name.as_str()),
                Alias::Below(parent) => (&mut self.below, &**parent),
                Alias::Beginning(start) => (&mut self.beginning, &**start),
                Alias::Pattern(pattern) => {
                    let of_server = server.map(|server| (pattern.clone(), Arc::clone(server)));
                    self.set_pattern((owner.clone(), place), pattern.source(), of_server);
                    continue;
                }
            };
            match server {
                Some(server) => names.insert(Arc::from(key), Arc::clone(server)),
                None => names.remove(key),
            };
        }
    }

    fn set_pattern(
        &mut self,
        key: (ServerName, usize),
        source: &str,
        now: Option<(Pattern, Arc<T>)>,
    ) {
        let end = fixed_end(source).into_boxed_str();
        let mut of_end = self.patterns.get(&end).cloned().unwrap_or_default();
        match now {
            Some(now) => of_end.insert(key, now),
            None => of_end.remove(&key),
        };
        if of_end.is_empty() {
            self.patterns.remove(&end);
        } else {
            self.patterns.insert(end, of_end);
        }
    }

    /// The server with exactly this name.
    pub(crate) fn named(&self, host: &str) -> Option<&Arc<T>> {
        self.names.get(host)
    }

    /// The server of the longest wildcard: one at the beginning goes before one at the end.
    pub(crate) fn wildcard(&self, host: &str) -> Option<&Arc<T>> {
        if (self.below.is_empty() && self.beginning.is_empty()) || host.len() > LONGEST {
            return None;
        }
        let dots = || host.match_indices('.').map(|(at, _)| at).filter(|at| *at > 0);
        let below = dots().find_map(|at| self.below.get(&host[at + 1..]));
        below.or_else(|| dots().rev().find_map(|at| self.beginning.get(&host[..at])))
    }

    /// The server of the first pattern that matches, of servers whose name sorts before `limit`.
    pub(crate) fn pattern(
        &self,
        host: &str,
        limit: Option<&str>,
        steps: &Steps,
    ) -> Result<Option<&Arc<T>>, Spent> {
        // Who names no host gets the catch-all (ngx_http_process_request_headers looks for no server then).
        if self.patterns.is_empty() || host.is_empty() || host.len() > LONGEST {
            return Ok(None);
        }
        let is_before = |owner: &ServerName| limit.is_none_or(|limit| owner.as_str() < limit);
        let ends = (0..=host.len()).filter_map(|at| self.patterns.get(host.get(at..)?));
        let begun = ends.filter_map(|of_end| {
            let mut rest = of_end.iter();
            Some((rest.next()?, rest))
        });
        let mut ends: Vec<_> = begun.collect();
        // Of all ends the next one in the order of servers.
        while let Some(at) = (0..ends.len()).min_by_key(|at| ends[*at].0.0) {
            let (next, rest) = &mut ends[at];
            let ((owner, _), (pattern, server)) = *next;
            match rest.next() {
                Some(after) => *next = after,
                None => drop(ends.swap_remove(at)),
            }
            if !is_before(owner) {
                break;
            }
            if pattern.try_match(host.as_bytes(), steps)? {
                return Ok(Some(server));
            }
        }
        Ok(None)
    }

    /// Whether there is any pattern.
    pub(crate) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }
}

// Not derived: neither needs anything of `T`.
impl<T> Clone for Aliases<T> {
    fn clone(&self) -> Self {
        Self {
            names: self.names.clone(),
            below: self.below.clone(),
            beginning: self.beginning.clone(),
            patterns: self.patterns.clone(),
        }
    }
}

impl<T> Default for Aliases<T> {
    fn default() -> Self {
        Self {
            names: Names::default(),
            below: Names::default(),
            beginning: Names::default(),
            patterns: OrdMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Aliases;
    use model::{Alias, ServerName, Steps};
    use std::sync::Arc;

    #[test]
    fn patterns_that_cannot_match_a_name_take_no_steps_of_it_and_others_come_in_their_order() {
        let mut all = Aliases::default();
        let set = |all: &mut Aliases<String>, owner: &str, text: &str, is_there: bool| {
            let alias = Alias::parse(text).expect("an alias");
            let server = Arc::new(owner.to_owned());
            all.set(&ServerName::new(owner), &alias, is_there.then_some(&server));
        };
        let (long, end, any) = (r"~^.*a.*b\.e\.test$", r"~shop.*\.test$", "~shop");
        set(&mut all, "a.test", long, true);
        set(&mut all, "b.test", end, true);
        set(&mut all, "c.test", any, true);
        let found = |all: &Aliases<String>, host: &str, limit| {
            all.pattern(host, limit, &Steps::default()).ok().flatten().map(|one| one.to_string())
        };
        assert!(all.pattern("x.example", None, &Steps::new(0)).is_err(), "c may match");
        assert_eq!(found(&all, "shop.victim.test", None).as_deref(), Some("b.test"));
        assert_eq!(found(&all, "shop.a.b.e.test", None).as_deref(), Some("a.test"));
        assert_eq!(found(&all, "shop.example", None).as_deref(), Some("c.test"));
        assert_eq!(found(&all, "shop.example", Some("c.test")), None, "those before it only");
        set(&mut all, "c.test", any, false);
        set(&mut all, "b.test", end, false);
        assert_eq!(all.pattern("shop.victim.test", None, &Steps::new(0)).ok(), Some(None));
        assert!(all.has_patterns());
        set(&mut all, "a.test", long, false);
        assert!(!all.has_patterns());
    }
}
