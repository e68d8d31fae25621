//! What changed in meaning from one Configuration to the next, object by object.

use crate::query::{shown, told};
use crate::served::backend;
use imbl::OrdMap;
use model::policy::Policy;
use model::{
    Certificate, Changes, Configuration, Endpoints, Location, PathKind, Server, Upstream, beginning,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::net::SocketAddr;
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
    /// The last two policies that were compared, which many paths of an Ingress share.
    policies: Option<(Arc<Policy>, Arc<Policy>, Vec<Said>)>,
}

/// A setting that differs: its name with dots, what it was, and what it is.
#[derive(Clone)]
struct Said {
    setting: String,
    from: Option<String>,
    to: Option<String>,
}

/// An endpoint, and whether it only serves until it is gone.
type Address = (SocketAddr, bool);

#[cfg(test)]
thread_local! {
    /// How often something was made JSON to be compared.
    pub(crate) static MADE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The first of all differences, and whether there are more.
pub(crate) fn differences(
    old: &Configuration,
    new: &Configuration,
    changes: &Changes,
    most: usize,
) -> (Vec<Difference>, bool) {
    let mut list = List { all: Vec::new(), most, more: false, policies: None };
    each(&mut list, &changes.servers, &old.servers, &new.servers, server);
    if changes.global {
        let said = settings(&value(&*old.global), &value(&*new.global), most);
        list.add_settings(&Difference::new(What::Setting, "everything"), said);
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
    let (before, now) = (bare(old), bare(new));
    if before != now {
        let said = settings(&of_server(&before), &of_server(&now), list.most);
        list.add_settings(&Difference::new(What::Setting, host.clone()), said);
    }
    for (old, new) in by_path(&old.locations, &new.locations) {
        location(list, &host, old, new);
        // A host may have a hundred thousand paths.
        if list.more {
            return;
        }
    }
}

/// What is told of a server itself.
fn bare(server: &Server) -> Server {
    Server {
        aliases: server.aliases.clone(),
        www: server.www.clone(),
        app_root: server.app_root.clone(),
        certificate: server.certificate.clone(),
        client_certificate: server.client_certificate.clone(),
        ciphers: server.ciphers.clone(),
        passthrough: server.passthrough.clone(),
        snippet: server.snippet.clone(),
        regex: server.regex,
        ..Server::new(server.name.clone())
    }
}

fn of_server(bare: &Server) -> Value {
    let mut value = value(bare);
    if let Value::Object(fields) = &mut value {
        fields.remove("locations");
    }
    value
}

/// The paths of before and now in their order, each with what it was and is. Where one is there twice, the first
/// counts.
fn by_path<'a>(
    old: &'a [Arc<Location>],
    new: &'a [Arc<Location>],
) -> impl Iterator<Item = (Option<&'a Arc<Location>>, Option<&'a Arc<Location>>)> {
    fn key<'a>(&(_, one): &(bool, &'a Arc<Location>)) -> (&'a str, PathKind) {
        (&one.path, one.kind)
    }
    let all = old.iter().map(|one| (false, one)).chain(new.iter().map(|one| (true, one)));
    let mut all: Vec<_> = all.collect();
    all.sort_by(|a, b| key(a).cmp(&key(b)));
    let mut rest = all.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = rest.next()?;
        let mut found = [None, None];
        let mut next = Some(first);
        while let Some((is_new, one)) = next {
            found[usize::from(is_new)].get_or_insert(one);
            next = rest.next_if(|other| key(other) == key(&first));
        }
        Some((found[0], found[1]))
    })
}

fn owner(location: &Arc<Location>) -> Option<String> {
    location.origin.as_deref().map(shown)
}

fn location(list: &mut List, host: &str, old: Option<&Arc<Location>>, new: Option<&Arc<Location>>) {
    let Some(either) = new.or(old) else { return };
    if old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old, new) || old == new) {
        return;
    }
    if list.is_full() {
        list.more = true;
        return;
    }
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
    if old.origin != new.origin {
        list.add(Difference { from: owner(old), to: owner(new), ..difference(What::Owner) });
    }
    if old.backend != new.backend {
        let (from, to) = (Some(backend(old)), Some(backend(new)));
        list.add(Difference { from, to, ..difference(What::Backend) });
    }
    if old.canary != new.canary {
        let said = settings(&value(&old.canary), &value(&new.canary), list.most);
        list.add_settings(&difference(What::Setting), said);
    }
    if old.policy != new.policy {
        let said = list.policies(&old.policy, &new.policy);
        list.add_settings(&difference(What::Setting), said);
    }
}

fn upstream<N: Borrow<str>>(
    list: &mut List,
    name: &N,
    old: Option<&Arc<Upstream>>,
    new: Option<&Arc<Upstream>>,
) {
    let of = |upstream: Option<&Arc<Upstream>>| {
        upstream.map(|upstream| addresses(&upstream.endpoints)).unwrap_or_default()
    };
    let (before, now) = (of(old), of(new));
    let lacking = |some: &[Address], others: &[Address]| -> Vec<Address> {
        let lacks = |one: &&Address| others.binary_search(one).is_err();
        some.iter().filter(lacks).copied().collect()
    };
    list.add(Difference {
        from: some_of(&lacking(&before, &now)),
        to: some_of(&lacking(&now, &before)),
        ..Difference::new(What::Endpoints, shown(name.borrow()))
    });
}

/// All endpoints, each once and in their order.
fn addresses(endpoints: &Endpoints) -> Vec<Address> {
    let ready = endpoints.ready.iter().map(|address| (*address, false));
    let mut all: Vec<_> = ready.chain(endpoints.draining.iter().map(|one| (*one, true))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The first few of them, and how many there are besides: only what is told is written, of perhaps 100,000.
fn some_of(addresses: &[Address]) -> Option<String> {
    let (told, more) = addresses.split_at(addresses.len().min(ADDRESSES));
    let written = told.iter().map(|(address, is_draining)| match is_draining {
        true => format!("{address} (draining)"),
        false => address.to_string(),
    });
    let written = written.collect::<Vec<_>>().join(", ");
    match (told.is_empty(), more.len()) {
        (true, _) => None,
        (false, 0) => Some(written),
        (false, more) => Some(format!("{written} and {more} more")),
    }
}

fn certificate<N: Borrow<str>>(
    list: &mut List,
    name: &N,
    old: Option<&Arc<Certificate>>,
    new: Option<&Arc<Certificate>>,
) {
    let told = |certificate: &Arc<Certificate>| {
        // No more of perhaps 30,000 than can be told.
        let names = certificate.names[..certificate.names.len().min(LONGEST)].join(", ");
        short(shown(format_args!("{names}, expires at {}", certificate.not_after)))
    };
    let difference = Difference::new(What::Certificate, shown(name.borrow()));
    list.add(Difference { from: old.map(told), to: new.map(told), ..difference });
}

/// The settings that differ of two that are not equal: one at least, up to one more than so many.
fn settings(old: &Value, new: &Value, most: usize) -> Vec<Said> {
    let mut said = Vec::new();
    walk(&mut said, most, &mut Vec::new(), old, new);
    if said.is_empty() {
        let setting = "a value that is not shown".to_owned();
        said.push(Said { setting, from: None, to: None });
    }
    said
}

fn walk<'a>(
    said: &mut Vec<Said>,
    most: usize,
    path: &mut Vec<&'a str>,
    old: &'a Value,
    new: &'a Value,
) {
    if said.len() > most || old == new {
        return;
    }
    let fields = |value: &'a Value| value.as_object();
    let both = match (fields(old), fields(new)) {
        (Some(old), Some(new)) if duration(old).is_none() => Some((old, new)),
        _ => None,
    };
    let Some((old, new)) = both.filter(|_| path.len() < 4) else {
        let told = |value: &Value| (!value.is_null()).then(|| text(value));
        return said.push(Said { setting: path.join("."), from: told(old), to: told(new) });
    };
    for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        path.push(name);
        walk(
            said,
            most,
            path,
            old.get(name).unwrap_or(&Value::Null),
            new.get(name).unwrap_or(&Value::Null),
        );
        path.pop();
    }
}

/// As JSON. What opens a door is hidden by its type.
pub(crate) fn value(of: &impl Serialize) -> Value {
    #[cfg(test)]
    MADE.set(MADE.get() + 1);
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

    /// Adds a difference like this for each setting.
    fn add_settings(&mut self, like: &Difference, settings: Vec<Said>) {
        for Said { setting, from, to } in settings {
            self.add(Difference { setting: Some(setting), from, to, ..like.clone() });
        }
    }

    /// What differs between two policies. A list of addresses in them may have a quarter of a
    /// megabyte, and ten thousand paths share it.
    fn policies(&mut self, old: &Arc<Policy>, new: &Arc<Policy>) -> Vec<Said> {
        if let Some((last_old, last_new, said)) = &self.policies
            && Arc::ptr_eq(last_old, old)
            && Arc::ptr_eq(last_new, new)
        {
            return said.clone();
        }
        let said = settings(&value(&**old), &value(&**new), self.most);
        self.policies = Some((old.clone(), new.clone(), said.clone()));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, MADE, What, differences};
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

    /// A host whose paths all have one policy with this time.
    fn of_one_policy(paths: usize, connect: u64, whole: bool) -> Configuration {
        let one = location("/", "a", connect);
        let path = |number| Location { path: format!("/{number:05}"), whole, ..(*one).clone() };
        configuration((0..paths).map(|number| Arc::new(path(number))).collect(), &[])
    }

    #[test]
    fn however_many_paths_differ_few_of_their_settings_are_written_out() {
        let made = |old: &Configuration, new: &Configuration| {
            MADE.set(0);
            (told(old, new, 40), MADE.get())
        };
        let (old, new) = (of_one_policy(10_000, 5, false), of_one_policy(10_000, 7, false));
        let ((all, more), written) = made(&old, &new);
        assert_eq!((all.len(), more, written), (40, true, 2), "they share one policy");
        assert_eq!(all[39].subject, "shop.test/00039");
        let each = |connect| {
            let paths = (0..1000).map(|number| location(&format!("/{number:05}"), "a", connect));
            configuration(paths.collect(), &[])
        };
        let ((all, more), written) = made(&each(5), &each(7));
        assert_eq!((all.len(), more, written), (40, true, 80), "each has one of its own");
        let ((all, more), written) = made(&old, &of_one_policy(10_000, 5, true));
        assert_eq!((all.len(), more, written), (0, false, 0), "what differs is no setting");
        let ((all, more), _) = made(&of_one_policy(40, 5, false), &of_one_policy(40, 7, false));
        assert_eq!((all.len(), more), (40, false), "there are just so many");
    }

    #[test]
    fn the_first_of_two_alike_counts_and_the_order_of_ingresses_does_not() {
        let old = configuration(
            vec![location("/b", "a", 5), location("/a", "a", 5), location("/a", "b", 9)],
            &[],
        );
        let new = configuration(vec![location("/a", "a", 5), location("/b", "a", 5)], &[]);
        assert!(told(&old, &new, 40).0.is_empty());
    }

    #[test]
    fn of_many_endpoints_few_are_told() {
        let address = |number: usize| format!("10.0.0.{number}:80");
        let all: Vec<String> = (1..=12).map(address).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let (old, new) = (configuration(vec![], &all), configuration(vec![], &all[..1]));
        let (gone, _) = told(&old, &new, 40);
        let eight = all[1..9].join(", ");
        assert_eq!(gone[0].from.as_deref(), Some(format!("{eight} and 3 more").as_str()));
        assert_eq!((gone.len(), &gone[0].to), (1, &None));
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
