//! Other names of servers, where exact hosts do not match: nginx's wildcards and patterns
//! (ngx_http_server_names, ngx_hash_find_combined).

use crate::routes::Names;
use imbl::OrdMap;
use model::{Alias, Pattern, ServerName, Spent, Steps};
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
    /// By server and place among its aliases, which is the order in which nginx tries them.
    patterns: OrdMap<(ServerName, usize), (Pattern, Arc<T>)>,
}

impl<T> Aliases<T> {
    /// The aliases of `owner` lead to `server`, or nowhere.
    pub(crate) fn set(&mut self, owner: &ServerName, aliases: &[Alias], server: Option<&Arc<T>>) {
        for (place, alias) in aliases.iter().enumerate() {
            let (names, key) = match alias {
                Alias::Name(name) => (&mut self.names, name.as_str()),
                Alias::Below(parent) => (&mut self.below, &**parent),
                Alias::Beginning(start) => (&mut self.beginning, &**start),
                Alias::Pattern(pattern) => {
                    let key = (owner.clone(), place);
                    match server {
                        Some(server) => {
                            self.patterns.insert(key, (pattern.clone(), Arc::clone(server)))
                        }
                        None => self.patterns.remove(&key),
                    };
                    continue;
                }
            };
            match server {
                Some(server) => names.insert(Arc::from(key), Arc::clone(server)),
                None => names.remove(key),
            };
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
        let before = |owner: &ServerName| limit.is_none_or(|limit| owner.as_str() < limit);
        let patterns = self.patterns.iter().take_while(|((owner, _), _)| before(owner));
        for (_, (pattern, server)) in patterns {
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
