//! All servers by host, in persistent maps: another host costs little, and old versions stay as they were.

use foldhash::fast::FixedState;
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use model::ServerName;
use std::sync::Arc;

/// Names come from the configuration, not from clients, so the hash need not be keyed.
type Names<T> = GenericHashMap<Arc<str>, Arc<T>, FixedState, DefaultSharedPtr>;

/// The servers of a generation by host; `T` is a server as its engine compiled it.
pub struct Routes<T> {
    exact: Names<T>,
    /// By what follows `*.`.
    wildcard: Names<T>,
    catch_all: Option<Arc<T>>,
}

impl<T> std::fmt::Debug for Routes<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routes").field("hosts", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Routes<T> {
    /// A copy in which `name` leads to `server`, or nowhere. Costs time by the logarithm of the number of hosts.
    #[must_use]
    pub fn with(&self, name: &ServerName, server: Option<Arc<T>>) -> Self {
        let mut routes = self.clone();
        if *name == ServerName::catch_all() {
            routes.catch_all = server;
            return routes;
        }
        let (names, key) = match name.as_str().strip_prefix("*.") {
            Some(parent) => (&mut routes.wildcard, parent),
            None => (&mut routes.exact, name.as_str()),
        };
        match server {
            Some(server) => names.insert(Arc::from(key), server),
            None => names.remove(key),
        };
        routes
    }

    /// The server for `host`, as [`crate::host::parse`] gives its name: that of the name itself, else the wildcard of
    /// its parent, which covers exactly one label of letters, digits, `_` and `-`, else the catch-all.
    pub fn find(&self, host: &str) -> Option<&Arc<T>> {
        self.exact.get(host).or_else(|| self.find_wildcard(host)).or(self.catch_all.as_ref())
    }

    fn find_wildcard(&self, host: &str) -> Option<&Arc<T>> {
        if self.wildcard.is_empty() {
            return None;
        }
        let (label, parent) = host.split_once('.')?;
        let is_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if label.is_empty() || !label.bytes().all(is_label) {
            return None;
        }
        self.wildcard.get(parent)
    }

    /// How many hosts there are, the catch-all included.
    pub fn len(&self) -> usize {
        self.exact.len() + self.wildcard.len() + usize::from(self.catch_all.is_some())
    }

    /// Whether there is no host at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// Not derived: neither needs anything of `T`.
impl<T> Clone for Routes<T> {
    fn clone(&self) -> Self {
        Self {
            exact: self.exact.clone(),
            wildcard: self.wildcard.clone(),
            catch_all: self.catch_all.clone(),
        }
    }
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self { exact: Names::default(), wildcard: Names::default(), catch_all: None }
    }
}

#[cfg(test)]
mod tests {
    use super::Routes;
    use model::ServerName;
    use std::sync::Arc;

    fn routes(names: &[&'static str]) -> Routes<&'static str> {
        names.iter().fold(Routes::default(), |routes, name| {
            routes.with(&ServerName::new(*name), Some(Arc::new(*name)))
        })
    }

    fn found(routes: &Routes<&'static str>, host: &str) -> Option<&'static str> {
        routes.find(host).map(|server| **server)
    }

    #[test]
    fn an_exact_name_wins_over_a_wildcard_and_that_over_the_catch_all() {
        let routes = routes(&["_", "*.a.test", "x.a.test"]);
        assert_eq!(found(&routes, "x.a.test"), Some("x.a.test"));
        assert_eq!(found(&routes, "y.a.test"), Some("*.a.test"));
        assert_eq!(found(&routes, "b.test"), Some("_"));
    }

    #[test]
    fn a_wildcard_covers_exactly_one_label() {
        let routes = routes(&["*.lw.test", "*.sub.lw.test"]);
        assert_eq!(found(&routes, "sub.lw.test"), Some("*.lw.test"));
        assert_eq!(found(&routes, "x.sub.lw.test"), Some("*.sub.lw.test"));
        assert_eq!(found(&routes, "a-_9.lw.test"), Some("*.lw.test"));
        for host in ["lw.test", ".lw.test", "y.x.lw.test", "a~b.lw.test", "*.lw.test", "lw"] {
            assert_eq!(found(&routes, host), None, "{host}");
        }
    }

    #[test]
    fn replacing_a_server_leaves_older_versions_as_they_were() {
        let old = routes(&["a.test"]);
        let new = old.with(&ServerName::new("a.test"), Some(Arc::new("another")));
        let none = new.with(&ServerName::new("a.test"), None);
        let answers = [&old, &new, &none].map(|routes| found(routes, "a.test"));
        assert_eq!(answers, [Some("a.test"), Some("another"), None]);
    }
}
