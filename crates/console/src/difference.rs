//! What changed in meaning from one Configuration to the next, object by object.

use crate::query::{shown, told};
use crate::served::backend;
use imbl::OrdMap;
use model::{
    Certificate, Changes, Configuration, Endpoints, Location, PathKind, Server, Upstream, beginning,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Characters of a value that are told.
const LONGEST: usize = 240;
/// Addresses that are told of what came and of what went.
const ADDRESSES: usize = 8;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// A host is served.
    HostAdded,
    /// A host is not served any more.
    HostRemoved,
    /// A path is served.
    PathAdded,
    /// A path is not served any more.
    PathRemoved,
    /// A path belongs to another Ingress.
    Owner,
    /// A path leads elsewhere.
    Backend,
    /// Another setting of a path, a host or of everything.
    Setting,
    /// An upstream has other endpoints.
    Endpoints,
    /// A certificate came, went or was renewed.
    Certificate,
    /// A port for TCP or UDP leads elsewhere.
    Stream,
}

/// A change in meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Difference {
    /// What changed.
    pub(crate) what: What,
    /// Whose it is: host and path, upstream, certificate, or port.
    pub(crate) subject: String,
    /// The object that asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<String>,
    /// The setting, as `/configuration` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) setting: Option<String>,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
}

/// Differences up to a bound.
struct List {
    all: Vec<Difference>,
    most: usize,
    more: bool,
}

/// The first of all differences, and whether there are more.
pub(crate) fn differences(
    old: &Configuration,
    new: &Configuration,
    changes: &Changes,
    most: usize,
) -> (Vec<Difference>, bool) {
    let mut list = List { all: Vec::new(), most, more: false };
    each(&mut list, &changes.servers, &old.servers, &new.servers, server);
    if changes.global {
        settings(
            &mut list,
            &mut |setting, from, to| Difference {
                setting: Some(setting),
                from,
                to,
                ..Difference::new(What::Setting, "everything")
            },
            &value(&*old.global),
            &value(&*new.global),
        );
    }
    each(&mut list, &changes.upstreams, &old.upstreams, &new.upstreams, upstream);
    each(&mut list, &changes.certificates, &old.certificates, &new.certificates, certificate);
    if changes.default_certificate {
        let told =
            |configuration: &Configuration| configuration.default_certificate.as_ref().map(shown);
        let difference = Difference::new(What::Certificate, "the default certificate");
        list.add(Difference { from: told(old), to: told(new), ..difference });
    }
    each(&mut list, &changes.streams, &old.streams, &new.streams, |list, port, from, to| {
        let told =
            |stream: Option<&Arc<model::Stream>>| stream.map(|stream| text(&value(&**stream)));
        let difference = Difference::new(What::Stream, format!("port {port:?}"));
        list.add(Difference { from: told(from), to: told(to), ..difference });
    });
    (list.all, list.more)
}

fn each<K: Ord + Clone, V>(
    list: &mut List,
    names: &[K],
    old: &OrdMap<K, Arc<V>>,
    new: &OrdMap<K, Arc<V>>,
    tell: impl Fn(&mut List, &K, Option<&Arc<V>>, Option<&Arc<V>>),
) {
    for name in names {
        if list.is_full() {
            list.more = true;
            return;
        }
        tell(list, name, old.get(name), new.get(name));
    }
}

fn server<N: Borrow<str>>(
    list: &mut List,
    name: &N,
    old: Option<&Arc<Server>>,
    new: Option<&Arc<Server>>,
) {
    let host = shown(name.borrow());
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (old, new) => {
            let what = if new.is_some() { What::HostAdded } else { What::HostRemoved };
            let server = new.or(old);
            let owner = server.and_then(|server| server.locations.iter().find_map(owner));
            return list.add(Difference { object: owner, ..Difference::new(what, host) });
        }
    };
    let bare = |server: &Server| {
        let mut value = value(&Server { locations: Vec::new(), ..server.clone() });
        if let Value::Object(fields) = &mut value {
            fields.remove("locations");
        }
        value
    };
    let mut told = |setting, from, to| Difference {
        setting: Some(setting),
        from,
        to,
        ..Difference::new(What::Setting, host.clone())
    };
    settings(list, &mut told, &bare(old), &bare(new));
    let of = |server: &Server| -> BTreeMap<(String, PathKind), Arc<Location>> {
        let all = server.locations.iter().rev();
        all.map(|one| ((one.path.clone(), one.kind), one.clone())).collect()
    };
    let (old, new) = (of(old), of(new));
    for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        location(list, &host, old.get(key), new.get(key));
    }
}

fn owner(location: &Arc<Location>) -> Option<String> {
    location.origin.as_deref().map(shown)
}

fn location(list: &mut List, host: &str, old: Option<&Arc<Location>>, new: Option<&Arc<Location>>) {
    let Some(either) = new.or(old) else { return };
    let subject = shown(format_args!("{host}{}", either.path));
    let difference =
        |what| Difference { object: owner(either), ..Difference::new(what, subject.clone()) };
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (Some(old), None) => {
            return list
                .add(Difference { from: Some(backend(old)), ..difference(What::PathRemoved) });
        }
        _ => {
            return list
                .add(Difference { to: Some(backend(either)), ..difference(What::PathAdded) });
        }
    };
    if Arc::ptr_eq(old, new) || old == new {
        return;
    }
    if old.origin != new.origin {
        list.add(Difference { from: owner(old), to: owner(new), ..difference(What::Owner) });
    }
    if old.backend != new.backend {
        let (from, to) = (Some(backend(old)), Some(backend(new)));
        list.add(Difference { from, to, ..difference(What::Backend) });
    }
    let mut told = |setting, from, to| Difference {
        setting: Some(setting),
        from,
        to,
        ..difference(What::Setting)
    };
    settings(list, &mut told, &value(&old.canary), &value(&new.canary));
    let before = list.all.len();
    settings(list, &mut told, &value(&*old.policy), &value(&*new.policy));
    if old.policy != new.policy && list.all.len() == before {
        list.add(told("a value that is not shown".to_owned(), None, None));
    }
}

fn upstream<N: Borrow<str>>(
    list: &mut List,
    name: &N,
    old: Option<&Arc<Upstream>>,
    new: Option<&Arc<Upstream>>,
) {
    let all = |endpoints: &Endpoints| -> BTreeSet<String> {
        let draining = endpoints.draining.iter().map(|address| format!("{address} (draining)"));
        endpoints.ready.iter().map(ToString::to_string).chain(draining).collect()
    };
    let of = |upstream: Option<&Arc<Upstream>>| {
        upstream.map(|upstream| all(&upstream.endpoints)).unwrap_or_default()
    };
    let (before, now) = (of(old), of(new));
    let told = |mut some: Vec<&String>| {
        let more = some.len().saturating_sub(ADDRESSES);
        some.truncate(ADDRESSES);
        let some = some.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        match (some.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(some),
            (false, more) => Some(format!("{some} and {more} more")),
        }
    };
    list.add(Difference {
        from: told(before.difference(&now).collect()),
        to: told(now.difference(&before).collect()),
        ..Difference::new(What::Endpoints, shown(name.borrow()))
    });
}

fn certificate<N: Borrow<str>>(
    list: &mut List,
    name: &N,
    old: Option<&Arc<Certificate>>,
    new: Option<&Arc<Certificate>>,
) {
    let told = |certificate: &Arc<Certificate>| {
        let names = certificate.names.join(", ");
        short(shown(format_args!("{names}, expires at {}", certificate.not_after)))
    };
    let difference = Difference::new(What::Certificate, shown(name.borrow()));
    list.add(Difference { from: old.map(told), to: new.map(told), ..difference });
}

/// Each setting that differs, by its name with dots.
fn settings(
    list: &mut List,
    tell: &mut impl FnMut(String, Option<String>, Option<String>) -> Difference,
    old: &Value,
    new: &Value,
) {
    walk(list, tell, &mut Vec::new(), old, new);
}

fn walk<'a>(
    list: &mut List,
    tell: &mut impl FnMut(String, Option<String>, Option<String>) -> Difference,
    path: &mut Vec<&'a str>,
    old: &'a Value,
    new: &'a Value,
) {
    if old == new {
        return;
    }
    let fields = |value: &'a Value| value.as_object();
    let both = match (fields(old), fields(new)) {
        (Some(old), Some(new)) if duration(old).is_none() => Some((old, new)),
        _ => None,
    };
    let Some((old, new)) = both.filter(|_| path.len() < 4) else {
        let told = |value: &Value| (!value.is_null()).then(|| text(value));
        return list.add(tell(path.join("."), told(old), told(new)));
    };
    for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        path.push(name);
        walk(
            list,
            tell,
            path,
            old.get(name).unwrap_or(&Value::Null),
            new.get(name).unwrap_or(&Value::Null),
        );
        path.pop();
    }
}

/// As JSON. What opens a door is hidden by its type.
pub(crate) fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// A time, as it serialises.
fn duration(fields: &serde_json::Map<String, Value>) -> Option<Duration> {
    let part = |name| fields.get(name).and_then(Value::as_u64);
    let (seconds, nanos) = part("secs").zip(part("nanos"))?;
    (fields.len() == 2).then(|| Duration::new(seconds, u32::try_from(nanos).unwrap_or(0)))
}

/// A value as a person reads it.
pub(crate) fn text(value: &Value) -> String {
    short(match value {
        Value::String(text) => told(text),
        Value::Object(fields) if let Some(time) = duration(fields) => format!("{time:?}"),
        other => told(other),
    })
}

/// Not longer than a person reads.
pub(crate) fn short(text: String) -> String {
    beginning(&text, LONGEST).into_owned()
}

impl Difference {
    fn new(what: What, subject: impl Into<String>) -> Self {
        Self { what, subject: subject.into(), object: None, setting: None, from: None, to: None }
    }
}

impl List {
    fn is_full(&self) -> bool {
        self.all.len() >= self.most
    }

    fn add(&mut self, difference: Difference) {
        if self.is_full() {
            self.more = true;
        } else {
            self.all.push(difference);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, What, differences};
    use model::policy::{Policy, Timeouts};
    use model::{
        Backend, Changes, Configuration, Endpoints, Kind, Location, Origin, PathKind, Server,
        ServerName, Upstream, UpstreamId,
    };
    use std::sync::Arc;
    use std::time::Duration;

    fn location(path: &str, to: &str, connect: u64) -> Arc<Location> {
        let timeouts = Timeouts { connect: Duration::from_secs(connect), ..Timeouts::default() };
        Arc::new(Location {
            path: path.to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::Upstream(UpstreamId::new(to)),
            canary: None,
            service: None,
            origin: Some(Origin::new(Kind::Ingress, "shop", "web").into()),
            policy: Arc::new(Policy { timeouts, ..Policy::default() }),
        })
    }

    fn configuration(locations: Vec<Arc<Location>>, endpoints: &[&str]) -> Configuration {
        let (name, id) = (ServerName::new("shop.test"), UpstreamId::new("a"));
        let server = Server { locations, ..Server::new(name.clone()) };
        let ready = endpoints.iter().map(|address| address.parse().expect("an address")).collect();
        let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
        let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
        Configuration {
            servers: [(name, Arc::new(server))].into_iter().collect(),
            upstreams: [(id, Arc::new(upstream))].into_iter().collect(),
            ..Configuration::default()
        }
    }

    fn told(old: &Configuration, new: &Configuration, most: usize) -> (Vec<Difference>, bool) {
        differences(old, new, &Changes::between(old, new), most)
    }

    #[test]
    fn each_difference_says_whose_it_is_and_what_it_was_and_is() {
        let old =
            configuration(vec![location("/", "a", 5), location("/old", "a", 5)], &["10.0.0.1:80"]);
        let new =
            configuration(vec![location("/", "b", 7), location("/new", "a", 5)], &["10.0.0.2:80"]);
        let (all, more) = told(&old, &new, 40);
        assert!(!more);
        let line = |one: &Difference| {
            let told = |text: &Option<String>| text.clone().unwrap_or_default();
            format!(
                "{:?} {} {} {} > {}",
                one.what,
                one.subject,
                told(&one.setting),
                told(&one.from),
                told(&one.to)
            )
        };
        let lines: Vec<String> = all.iter().map(line).collect();
        assert_eq!(lines[0], "Backend shop.test/  a > b");
        assert_eq!(lines[1], "Setting shop.test/ timeouts.connect 5s > 7s");
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "PathAdded shop.test/new   > a",
                "PathRemoved shop.test/old  a > ",
                "Endpoints a  10.0.0.1:80 > 10.0.0.2:80",
            ]
        );
        assert_eq!(all[0].object.as_deref(), Some("Ingress shop/web"));
        assert_eq!(told(&old, &new, 2).0.len(), 2);
        assert!(told(&old, &new, 2).1, "there are more");
        assert!(told(&old, &old, 40).0.is_empty());
    }

    #[test]
    fn a_host_that_comes_is_one_difference() {
        let new = configuration(vec![location("/", "a", 5)], &[]);
        let old = Configuration { servers: Default::default(), ..new.clone() };
        let (all, _) = told(&old, &new, 40);
        assert_eq!((all.len(), all[0].what), (1, What::HostAdded));
        assert_eq!(all[0].object.as_deref(), Some("Ingress shop/web"));
    }
}
