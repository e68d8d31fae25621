//! Hosts of Gateways and the paths of their rules: who comes into question for a request, in order.

use crate::path::canonical;
use crate::routes::Names;
use model::{Alias, Location, PathKind, RuleMatch, Server, ServerName, fixed_start};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The hosts of Gateways; `T` is a host as its engine compiled it.
pub struct RouteTable<T> {
    exact: Names<T>,
    /// By what follows `*.`.
    below: Names<T>,
    all: Option<Arc<T>>,
}

/// How special what was found is: that of the host, then that of the path. A greater one goes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// An exact name before a wildcard, that before the catch-all; then the longer one.
    pub host: (u8, usize),
    /// An exact path before a prefix; then the longer one, without a slash at its end. An expression is as special as
    /// the prefix that all begins with that it matches: `/.*` takes no path from whoever wrote it down.
    pub path: (u8, usize),
}

impl Rank {
    /// That of a host by its name in the configuration, and of a path in it.
    pub fn of(host: &ServerName, kind: PathKind, path: &str) -> Self {
        let host = match host.as_str() {
            "_" => (0, 0),
            name if name.starts_with("*.") => (1, name.len()),
            name => (2, name.len()),
        };
        Self { host, path: Self::of_path(kind, path) }
    }

    /// That of a host and of a rule in it.
    pub fn of_rule(host: &ServerName, rule: &RuleMatch) -> Self {
        match rule.pattern {
            Some(_) => Self::of(host, PathKind::Prefix, fixed_start(&rule.path)),
            None => Self::of(host, rule.kind, &rule.path),
        }
    }

    /// The same for what a server has under the name by which a request asked for it: its own, or an alias.
    pub fn within(server: &Server, asked: &str, kind: PathKind, path: &str) -> Self {
        let alias = |alias: &Alias| match alias {
            Alias::Name(name) if name.as_str() == asked => Some((2, asked.len())),
            Alias::Below(parent) => asked.strip_suffix(&**parent).and_then(|start| {
                (start.len() > 1 && start.ends_with('.')).then_some((1, parent.len() + 2))
            }),
            Alias::Beginning(start) => asked.starts_with(&**start).then_some((1, start.len() + 2)),
            Alias::Name(_) => None,
            // Any pattern comes behind the wildcards.
            Alias::Pattern(_) => Some((1, 0)),
        };
        let own = Self::of(&server.name, kind, path);
        let is_own = server.name.as_str() == asked;
        let host = match server.aliases.iter().filter_map(alias).max() {
            Some(found) if !is_own && !is_below(&server.name, asked) => found,
            _ => own.host,
        };
        Self { host, ..own }
    }

    /// That of a location of a server, for a request that asks there for a canonical path. On a host of regular
    /// expressions an exact path, too, has all that begins with it.
    pub fn of_location(server: &Server, asked: &str, location: &Location, path: &[u8]) -> Self {
        let Location { kind, path: written, .. } = location;
        if !server.regex || *kind == PathKind::Exact && written.as_bytes() == path {
            return Self::within(server, asked, *kind, written);
        }
        Self::within(server, asked, PathKind::Prefix, fixed_start(written))
    }

    /// A path is as long as what it means.
    fn of_path(kind: PathKind, path: &str) -> (u8, usize) {
        let meaning = canonical(path.as_bytes());
        let path = meaning.as_ref().map_or(path.as_bytes(), |meaning| &*meaning.path);
        let way = match kind {
            PathKind::Exact => 1,
            PathKind::Prefix => 0,
        };
        (way, path.strip_suffix(b"/").unwrap_or(path).len())
    }
}

/// Whether a wildcard host is that of a name.
fn is_below(wildcard: &ServerName, name: &str) -> bool {
    let parent = wildcard.as_str().strip_prefix('*');
    parent.is_some_and(|parent| name.len() > parent.len() && name.ends_with(parent))
}

impl<T> std::fmt::Debug for RouteTable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteTable").field("hosts", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Default for RouteTable<T> {
    fn default() -> Self {
        Self { exact: Names::default(), below: Names::default(), all: None }
    }
}

impl<T> Clone for RouteTable<T> {
    fn clone(&self) -> Self {
        Self { exact: self.exact.clone(), below: self.below.clone(), all: self.all.clone() }
    }
}

impl<T> RouteTable<T> {
    /// Leads a name to a host, or nowhere.
    pub fn set(&mut self, name: &ServerName, host: Option<Arc<T>>) {
        let name = name.as_str();
        let (names, key) = match name.strip_prefix("*.") {
            _ if name == "_" => return self.all = host,
            Some(parent) => (&mut self.below, parent),
            None => (&mut self.exact, name),
        };
        match host {
            Some(host) => names.insert(key.into(), host),
            None => names.remove(key),
        };
    }

    /// The host of exactly this name.
    pub fn get(&self, name: &ServerName) -> Option<&Arc<T>> {
        let name = name.as_str();
        match name.strip_prefix("*.") {
            _ if name == "_" => self.all.as_ref(),
            Some(parent) => self.below.get(parent),
            None => self.exact.get(name),
        }
    }

    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.exact.len() + self.below.len() + usize::from(self.all.is_some())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that a host may belong to: its own name, the wildcards above it from the longest on, the catch-all.
    pub fn find<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Arc<T>> {
        let exact = self.exact.get(host);
        let has_below = !self.below.is_empty();
        let dots = host
            .bytes()
            .enumerate()
            .filter(move |(at, byte)| has_below && *at > 0 && *byte == b'.');
        let below = dots.filter_map(|(at, _)| self.below.get(&host[at + 1..]));
        exact.into_iter().chain(below).chain(&self.all)
    }
}

/// Rules by a path, in the order of the paths: most hosts have few, for which a table is mostly room.
#[derive(Debug)]
struct ByPath(Box<[OfPath]>);

/// A path, and the numbers of its rules.
type OfPath = (Box<[u8]>, Box<[u32]>);

impl ByPath {
    fn of(all: BTreeMap<Box<[u8]>, Vec<u32>>) -> Self {
        Self(all.into_iter().map(|(path, rules)| (path, rules.into())).collect())
    }

    fn get(&self, path: &[u8]) -> &[u32] {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(path));
        found.map_or(&[], |at| &self.0[at].1)
    }
}

/// The rules of a host by their paths, without those for calls of gRPC.
#[derive(Debug)]
pub struct RulePaths(Tables);

/// The rules of a host for calls of gRPC. Of an expression, too, it counts how much is written, so that their order is
/// one of their own: that in which they stand.
#[derive(Debug)]
pub struct CallPaths(Tables);

#[derive(Debug)]
struct Tables {
    exact: ByPath,
    /// Those with an expression, whatever the path is.
    patterns: Box<[u32]>,
    /// Without a slash at the end.
    prefixes: ByPath,
    /// Bytes of the longest prefix.
    longest: usize,
}

impl RulePaths {
    /// Those of rules, whose order is kept among those of the same path.
    pub fn compile<'r>(rules: impl Iterator<Item = &'r RuleMatch>) -> Self {
        let rules = (0..).zip(rules).filter(|(_, rule)| rule.grpc.is_none());
        // Of expressions the longer one is asked first.
        Self(Tables::compile(rules, |rule| Reverse(rule.path.len())))
    }

    /// The numbers of the rules whose path a canonical path fits, in the order in which they are asked. Whether an
    /// expression matches is for whoever asks the rule.
    pub fn find<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = usize> {
        let Self(tables) = self;
        let exact = tables.exact.get(path).iter();
        let all = exact.chain(&tables.patterns).chain(tables.below(path));
        all.map(|index| *index as usize)
    }
}

impl CallPaths {
    /// Those of rules, which stand in the order in which they are asked; nothing if none is for calls.
    pub fn compile<'r>(rules: impl Iterator<Item = &'r RuleMatch>) -> Option<Self> {
        let mut rules = (0..).zip(rules).filter(|(_, rule)| rule.grpc.is_some()).peekable();
        rules.peek()?;
        Some(Self(Tables::compile(rules, |_| ())))
    }

    /// The numbers of the rules whose path a canonical path fits, in the order in which they stand. Whether an
    /// expression matches is for whoever asks the rule.
    pub fn find<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = usize> {
        let Self(tables) = self;
        // A longer service stands first, and of one service a longer method: both lists are in order.
        let mut written = tables.exact.get(path).iter().chain(tables.below(path)).peekable();
        let mut patterns = tables.patterns.iter().peekable();
        std::iter::from_fn(move || match (written.peek(), patterns.peek()) {
            (Some(one), Some(pattern)) if pattern < one => patterns.next(),
            (Some(_), _) => written.next(),
            (None, _) => patterns.next(),
        })
        .map(|index| *index as usize)
    }
}

impl Tables {
    /// Those of rules by their numbers; expressions stand in this order, then in that of their numbers.
    fn compile<'r, O: Ord>(
        rules: impl Iterator<Item = (u32, &'r RuleMatch)>,
        order: impl Fn(&RuleMatch) -> O,
    ) -> Self {
        let (mut exact, mut prefixes) = (BTreeMap::new(), BTreeMap::new());
        let (mut patterns, mut longest) = (Vec::new(), 0);
        for (index, rule) in rules {
            if rule.pattern.is_some() {
                patterns.push((order(rule), index));
                continue;
            }
            let Ok(canonical) = canonical(rule.path.as_bytes()) else { continue };
            let path = &*canonical.path;
            if rule.kind == PathKind::Exact {
                exact.entry(path.into()).or_insert_with(Vec::new).push(index);
            } else {
                let path = path.strip_suffix(b"/").unwrap_or(path);
                longest = longest.max(path.len());
                prefixes.entry(path.into()).or_insert_with(Vec::new).push(index);
            }
        }
        patterns.sort();
        let patterns = patterns.into_iter().map(|(_, index)| index).collect();
        Self { exact: ByPath::of(exact), patterns, prefixes: ByPath::of(prefixes), longest }
    }

    /// The rules of the prefixes of a canonical path, from the longest one on.
    fn below<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = &'a u32> {
        let whole = path.strip_suffix(b"/").unwrap_or(path);
        let ends = std::iter::once(whole.len());
        let slashes = whole.iter().enumerate().rev();
        let ends = ends.chain(slashes.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at));
        // What is longer than any prefix is not worth its hash.
        let below = ends.filter(|end| *end <= self.longest);
        below.flat_map(|end| self.prefixes.get(&whole[..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PathKind::{Exact, Prefix};
    use model::{GrpcMatch, Pattern, Scheme};

    fn hosts(table: &RouteTable<&'static str>, host: &str) -> Vec<&'static str> {
        table.find(host).map(|found| **found).collect()
    }

    #[test]
    fn a_host_is_looked_for_from_its_own_name_to_the_longest_wildcard_and_the_catch_all() {
        let mut table = RouteTable::default();
        for name in ["_", "*.test", "*.a.test", "x.a.test"] {
            table.set(&ServerName::new(name), Some(Arc::new(name)));
        }
        assert_eq!(hosts(&table, "x.a.test"), ["x.a.test", "*.a.test", "*.test", "_"]);
        assert_eq!(hosts(&table, "y.x.a.test"), ["*.a.test", "*.test", "_"], "at any depth");
        assert_eq!(hosts(&table, "a.test"), ["*.test", "_"], "a wildcard is not its parent");
        assert_eq!((hosts(&table, ".test"), hosts(&table, "")), (vec!["_"], vec!["_"]));
        let before = table.clone();
        table.set(&ServerName::new("_"), None);
        table.set(&ServerName::new("*.a.test"), None);
        assert_eq!(hosts(&table, "x.a.test"), ["x.a.test", "*.test"]);
        assert_eq!(before.len(), 4, "a copy stays as it was");
    }

    fn rules(paths: &[(PathKind, &str)], grpc: Option<&GrpcMatch>) -> Vec<RuleMatch> {
        paths
            .iter()
            .map(|(kind, path)| RuleMatch {
                scheme: Scheme::Http,
                kind: *kind,
                path: (*path).to_owned(),
                pattern: path.contains('(').then(|| Pattern::new(path, false).expect("a pattern")),
                grpc: grpc.cloned(),
                method: None,
                headers: Vec::new(),
                query: Vec::new(),
            })
            .collect()
    }

    fn found(paths: &[(PathKind, &str)], path: &str) -> Vec<usize> {
        let canonical = canonical(path.as_bytes()).expect("a path");
        RulePaths::compile(rules(paths, None).iter()).find(&canonical.path).collect()
    }

    #[test]
    fn an_exact_path_goes_before_prefixes_and_the_longest_of_those_first() {
        let paths =
            [(Prefix, "/"), (Prefix, "/v2/"), (Exact, "/v2"), (Prefix, "/v2"), (Exact, "/a%20b")];
        assert_eq!(found(&paths, "/v2"), [2, 1, 3, 0]);
        assert_eq!(found(&paths, "/v2/"), [1, 3, 0]);
        assert_eq!(found(&paths, "/v2/x/y"), [1, 3, 0]);
        assert_eq!(found(&paths, "/v2example"), [0], "whole segments");
        assert_eq!(found(&paths, "/V2"), [0]);
        assert_eq!(found(&paths, "/a b"), [4, 0], "one meaning of a path");
        assert_eq!(found(&[(Exact, "/")], "/x"), [0; 0]);
        let paths =
            [(Prefix, "/v"), (Exact, "(a)"), (Exact, "/v"), (Exact, "(long)"), (Exact, "(b)")];
        assert_eq!(found(&paths, "/v"), [2, 3, 1, 4, 0], "expressions stand between");
    }

    #[test]
    fn rules_for_calls_are_asked_as_they_stand_whether_written_or_expressions() {
        let mut all = rules(&[(Prefix, "/"), (Exact, "/shop.Cart/Add")], None);
        let calls = [
            (Exact, "(shop.Cart+)/Add"),
            (Exact, "/shop.Cart/Add"),
            (Prefix, "/shop.Cart"),
            (Exact, "(shop).*"),
            (Prefix, "/"),
            (Exact, "(.*)/Add"),
            (Prefix, "/"),
        ];
        let paths = CallPaths::compile(all.iter());
        assert!(paths.is_none(), "none is for calls: {paths:?}");
        all.extend(rules(&calls, Some(&GrpcMatch::default())));
        let paths = CallPaths::compile(all.iter()).expect("some are for calls");
        let found = |path: &'static [u8]| paths.find(path).collect::<Vec<_>>();
        assert_eq!(found(b"/shop.Cart/Add"), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(found(b"/shop.Cart/Take"), [2, 4, 5, 6, 7, 8]);
        assert_eq!(found(b"/other.Cart/Add"), [2, 5, 6, 7, 8]);
        let others: Vec<usize> = RulePaths::compile(all.iter()).find(b"/shop.Cart/Add").collect();
        assert_eq!(others, [1, 0], "those that are not for calls are apart");
    }

    #[test]
    fn a_special_host_counts_more_than_a_special_path() {
        let of = |host: &str, kind, path| Rank::of(&ServerName::new(host), kind, path);
        assert!(of("a.test", Prefix, "/") > of("*.long.name.test", Exact, "/x"));
        assert!(of("*.a.test", Prefix, "/") > of("_", Exact, "/x"));
        assert!(of("a.test", Exact, "/") > of("a.test", Prefix, "/long"));
        assert_eq!(of("a.test", Prefix, "/p/"), of("a.test", Prefix, "/p"));
        assert_eq!(of("a.test", Prefix, "/%61dmin"), of("a.test", Prefix, "/admin"));
    }

    #[test]
    fn a_server_counts_by_the_name_that_was_asked_for() {
        let mut server = Server::new(ServerName::new("a-very-long-name.test"));
        for item in ["*.b.test", "al.t", "begin.*"] {
            server.aliases.extend(Alias::parse(item).expect("an alias"));
        }
        let of = |asked: &str| Rank::within(&server, asked, Prefix, "/").host;
        assert_eq!(of("a-very-long-name.test"), (2, 21));
        assert_eq!(of("al.t"), (2, 4));
        assert_eq!(of("q.b.test"), Rank::of(&ServerName::new("*.b.test"), Prefix, "/").host);
        assert_eq!(of("begin.x"), (1, 7));
        assert!(of("q.b.test") < Rank::of(&ServerName::new("q.b.test"), Prefix, "/").host);
        let all = Server::new(ServerName::new("_"));
        assert_eq!(Rank::within(&all, "x.test", Prefix, "/").host, (0, 0));
    }

    #[test]
    fn an_expression_of_a_host_counts_with_what_it_begins_with() {
        let mut server = Server::new(ServerName::new("a.test"));
        let of = |server: &Server, kind, text: &str, asked: &str| {
            let location = Location {
                path: text.to_owned(),
                kind,
                whole: true,
                backend: model::Backend::NotFound,
                canary: None,
                service: None,
                origin: None,
                policy: Arc::default(),
            };
            Rank::of_location(server, "a.test", &location, asked.as_bytes()).path
        };
        assert_eq!(of(&server, Exact, "/.*", "/x"), (1, 3), "a host of plain paths");
        server.regex = true;
        assert_eq!(of(&server, Exact, "/.*", "/x"), (0, 0));
        assert_eq!(of(&server, Prefix, "/shop(/|$)(.*)", "/shop/basket"), (0, 5));
        assert_eq!(of(&server, Exact, "/tea", "/tea"), (1, 4));
        assert_eq!(of(&server, Exact, "/tea", "/teapot"), (0, 4));
    }
}
