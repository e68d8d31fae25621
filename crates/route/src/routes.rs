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
