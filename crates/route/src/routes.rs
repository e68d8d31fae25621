//! All servers by host, in persistent maps: another host costs little, and old versions stay as they were.

use crate::aliases::Aliases;
use foldhash::fast::FixedState;
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use model::{Alias, ServerName, Spent, Steps};
use std::sync::Arc;

/// Names come from the configuration, not from clients, so the hash need not be keyed.
pub(crate) type Names<T> = GenericHashMap<Arc<str>, Arc<T>, FixedState, DefaultSharedPtr>;

/// The servers of a generation by host; `T` is a server as its engine compiled it.
pub struct Routes<T> {
    exact: Names<T>,
    /// By what follows `*.`.
    wildcard: Names<T>,
    aliases: Aliases<T>,
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
            Some(parent) => (&mut routes.wildcard, Arc::from(parent)),
            None => (&mut routes.exact, name.text().clone()),
        };
        match server {
            Some(server) => names.insert(key, server),
            None => names.remove(&key),
        };
        routes
    }

    /// A copy in which the aliases of `owner` lead to `server`, or nowhere. Where an alias moves from one server to
    /// another, it is to be taken away there before it is given here.
    #[must_use]
    pub fn with_aliases(
        &self,
        owner: &ServerName,
        aliases: &[Alias],
        server: Option<&Arc<T>>,
    ) -> Self {
        let mut routes = self.clone();
        routes.aliases.set(owner, aliases, server);
        routes
    }

    /// The server for `host`, as `wire::host::parse` gives its name: that of the name itself, else the longest
    /// wildcard among the aliases, else what [`Self::find_pattern`] says, else the catch-all. Patterns take their steps
    /// from those of the request; where these do not last, nobody knows whose host it is.
    pub fn find(&self, host: &str, steps: &Steps) -> Result<Option<&Arc<T>>, Spent> {
        let named = self
            .exact
            .get(host)
            .or_else(|| self.aliases.named(host))
            .or_else(|| self.aliases.wildcard(host));
        match named {
            Some(_) => Ok(named),
            None => Ok(self.find_pattern(host, steps)?.or(self.catch_all.as_ref())),
        }
    }

    /// A wildcard host is a regular expression in ingress-nginx, which takes its turn among the patterns of aliases by
    /// the name of its server (compat/behaviour.md section 4).
    fn find_pattern(&self, host: &str, steps: &Steps) -> Result<Option<&Arc<T>>, Spent> {
        let wildcard = self.find_wildcard(host);
        if !self.aliases.has_patterns() {
            return Ok(wildcard);
        }
        let name =
            wildcard.and_then(|_| host.split_once('.')).map(|(_, parent)| format!("*.{parent}"));
        Ok(self.aliases.pattern(host, name.as_deref(), steps)?.or(wildcard))
    }

    /// The wildcard host of the parent, which covers exactly one label of letters, digits, `_` and `-`.
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

    /// Whether a wildcard host covers a name.
    pub fn has_wildcard(&self, host: &str) -> bool {
        self.find_wildcard(host).is_some()
    }

    /// Whether names may have to be looked for among patterns.
    pub fn has_patterns(&self) -> bool {
        self.aliases.has_patterns()
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
            aliases: self.aliases.clone(),
            catch_all: self.catch_all.clone(),
        }
    }
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self {
            exact: Names::default(),
            wildcard: Names::default(),
            aliases: Aliases::default(),
            catch_all: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Routes;
    use model::{Alias, ServerName, Spent, Steps};
    use std::sync::Arc;

    fn routes(names: &[&'static str]) -> Routes<&'static str> {
        names.iter().fold(Routes::default(), |routes, name| {
            routes.with(&ServerName::new(*name), Some(Arc::new(*name)))
        })
    }

    fn found(routes: &Routes<&'static str>, host: &str) -> Option<&'static str> {
        routes.find(host, &Steps::default()).expect("steps").map(|server| **server)
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

    fn aliased(
        routes: Routes<&'static str>,
        owner: &'static str,
        aliases: &[&str],
    ) -> Routes<&'static str> {
        let aliases: Vec<Alias> =
            aliases.iter().flat_map(|alias| Alias::parse(alias).expect("an alias")).collect();
        routes.with_aliases(&ServerName::new(owner), &aliases, Some(&Arc::new(owner)))
    }

    #[test]
    fn exact_names_go_before_wildcards_and_those_before_patterns() {
        let routes = routes(&["_", "a.test", "b.test", "*.b.test"]);
        let routes =
            aliased(routes, "a.test", &["x.b.test", "*.b.test", "*.y.b.test", "w.*", "w.b.*"]);
        let routes = aliased(routes, "b.test", &["~w", "~^.y", "*.test"]);
        let cases = [
            ("x.b.test", "a.test"),
            ("b.test", "b.test"),
            ("z.b.test", "a.test"),
            ("deep.z.b.test", "a.test"),
            ("other.test", "b.test"),
            ("w.anything", "a.test"),
            ("w.b.c", "a.test"),
            ("woman", "b.test"),
            ("my", "b.test"),
            ("test", "_"),
            (".test", "_"),
        ];
        for (host, server) in cases {
            assert_eq!(found(&routes, host), Some(server), "{host}");
        }
    }

    #[test]
    fn whoever_names_no_host_gets_the_catch_all_whatever_a_pattern_says() {
        let routes = aliased(routes(&["_", "a.test"]), "a.test", &["~.*"]);
        assert_eq!((found(&routes, ""), found(&routes, "x")), (Some("_"), Some("a.test")));
    }

    #[test]
    fn a_wildcard_host_takes_its_turn_among_the_patterns() {
        let routes = routes(&["*.b.test", "m.test", "*.a.test"]);
        let routes = aliased(routes, "*.a.test", &["~^x\\.b\\.test$"]);
        let routes = aliased(routes, "m.test", &["~^x\\.a\\.test$", "~^y"]);
        assert_eq!(found(&routes, "x.b.test"), Some("*.a.test"), "*.a.test sorts before *.b.test");
        assert_eq!(found(&routes, "x.a.test"), Some("*.a.test"), "m.test sorts after *.a.test");
        assert_eq!(found(&routes, "y.c.test"), Some("m.test"));
    }

    #[test]
    fn aliases_that_are_taken_away_lead_nowhere() {
        let all = ["x.test", "*.x.test", "x.*", "~x", ".z.test"];
        let with = aliased(routes(&[]), "a.test", &all);
        let aliases: Vec<Alias> =
            all.iter().flat_map(|alias| Alias::parse(alias).expect("an alias")).collect();
        let without = with.with_aliases(&ServerName::new("a.test"), &aliases, None);
        for host in ["x.test", "y.x.test", "x.y", "ax", "z.test", "y.z.test"] {
            assert_eq!(found(&with, host), Some("a.test"), "{host}");
            assert_eq!(found(&without, host), None, "{host}");
        }
    }

    #[test]
    fn a_name_that_is_too_hard_for_the_patterns_leads_nowhere() {
        let hard = aliased(routes(&["_", "a.test"]), "a.test", &["~^(?:(a|a)\\1?)*z$", "~b"]);
        let name = "a".repeat(200);
        assert_eq!(hard.find(&name, &Steps::default()), Err(Spent));
        assert_eq!((found(&hard, "aaz"), found(&hard, "b")), (Some("a.test"), Some("a.test")));
        let steps = Steps::new(10);
        assert_eq!(
            hard.find("a.test", &steps).map(|server| server.map(|name| **name)),
            Ok(Some("a.test"))
        );
        assert_eq!(steps.left(), 10, "a name of its own takes no steps");
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
