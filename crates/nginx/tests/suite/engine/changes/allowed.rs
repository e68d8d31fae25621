//! Which answers Configurations allow. A worker has its nginx.conf from one of them and what was pushed from the same
//! or a later one, so an answer is right if any such pair explains all of it.

use super::wire::{Answer, Asked};
use model::policy::{Canary, CanaryTest, Redirect};
use model::{Alias, Backend, Configuration, Location, Server, ServerName, UpstreamId};
use std::net::SocketAddr;
use std::sync::Arc;

/// What nginx does not take at a location: not known, not whole, not readable, without a line to blame, not there.
pub(super) const BROKEN: [&str; 6] = [
    "no_such_directive on;",
    "deny all; } location /x { return 200;",
    "set $x 'a\0b';",
    "limit_req zone=nowhere;",
    "include /nowhere/at/all.conf;",
    "proxy_buffering on; proxy_buffering on;",
];

/// Whether some Configuration of these explains an answer.
pub(super) fn explains(versions: &[Configuration], asked: &Asked, answer: &Answer) -> bool {
    versions.iter().enumerate().any(|(number, written)| {
        let mut pushed = versions[number..].iter();
        pushed.any(|pushed| pair_explains(written, pushed, asked, answer))
    })
}

/// Whether some Configuration of these shows this certificate for a name; `pool` has all but the one of the process.
pub(super) fn shows(
    versions: &[Configuration],
    name: &str,
    shown: &[u8],
    pool: &[Vec<u8>],
) -> bool {
    versions.iter().any(|version| {
        let default = version.default_certificate.as_ref();
        let of = |id| Some(version.certificates.get(id)?.chain[0].as_slice());
        match named(version, name).and_then(of).or_else(|| default.and_then(of)) {
            Some(wanted) => wanted == shown,
            None => pool.iter().all(|other| other != shown),
        }
    })
}

/// The Ingresses that nginx does not take.
pub(super) fn broken(configuration: &Configuration) -> Vec<String> {
    let locations = configuration.servers.values().flat_map(|server| server.locations.iter());
    let origins = locations.filter(|location| is_broken(location));
    let mut names: Vec<_> =
        origins.filter_map(|location| Some(location.origin.as_deref()?.name.to_string())).collect();
    names.sort();
    names
}

/// Whether nginx does not take what a location says; of one that is denied it gets to read nothing.
pub(super) fn is_broken(location: &Location) -> bool {
    if matches!(location.backend, Backend::Denied(_)) {
        return false;
    }
    let raw = location.policy.raw.as_ref();
    let text = raw.and_then(|raw| raw.configuration.as_deref());
    text.is_some_and(|text| BROKEN.contains(&text.as_str()))
}

fn pair_explains(
    written: &Configuration,
    pushed: &Configuration,
    asked: &Asked,
    answer: &Answer,
) -> bool {
    let found = server_of(written, &asked.host).and_then(|server| {
        let location = location_of(server, |path| is_below(&asked.path, path))?;
        Some((server, location))
    });
    let Some((server, location)) = found else { return answer.status == 404 };
    if is_broken(location) || matches!(location.backend, Backend::Denied(_)) {
        return answer.status == 503;
    }
    let policy = &location.policy;
    if policy.body.max_size.is_some_and(|most| asked.length as u64 > most) {
        return answer.status == 413;
    }
    if let Some(Redirect { status, target }) = &policy.redirect {
        return answer.status == *status && answer.field("Location") == target.literal();
    }
    let redirects = !asked.tls && policy.tls_redirect.with_certificate;
    if redirects && named(pushed, &asked.host).is_some() {
        return answer.status == 308;
    }
    let Backend::Upstream(id) = &location.backend else { return answer.status == 404 };
    let endpoints = choice(written, pushed, server, location, id, asked);
    if endpoints.is_empty() {
        return answer.status == 503;
    }
    let port = answer.field("X-Endpoint").and_then(|text| text.parse().ok());
    is_complete(asked, answer)
        && port.is_some_and(|port: u16| endpoints.iter().any(|address| address.port() == port))
        && answer.field("X-Path") == Some(path(location, asked))
        && marks(written, location).iter().all(|(name, value)| answer.field(name) == *value)
}

/// Whose endpoints may answer: those of the main side, of the canary, or of who stands in.
fn choice(
    written: &Configuration,
    pushed: &Configuration,
    server: &Server,
    location: &Location,
    id: &UpstreamId,
    asked: &Asked,
) -> Vec<SocketAddr> {
    let usable = |id: &UpstreamId| {
        let upstream = pushed.upstreams.get(id).or_else(|| written.upstreams.get(id));
        upstream.map(|upstream| upstream.endpoints.usable().to_vec()).unwrap_or_default()
    };
    // What hangs on the route is as it was pushed last, unless the route is an older worker's only.
    let now = pushed.servers.get(&server.name);
    let now = now.and_then(|server| location_of(server, |path| path == location.path));
    let same = |now: &&Arc<Location>| now.backend == location.backend && !is_broken(now);
    let route: &Location = now.filter(same).map_or(location, |now| now);
    let mut main = usable(id);
    if main.is_empty() {
        main = route.policy.default_backend.as_ref().map(usable).unwrap_or_default();
    }
    if main.is_empty() {
        return main;
    }
    let canary = route.canary.as_ref().map(|canary| (canary, usable(&canary.upstream)));
    match canary.filter(|(_, endpoints)| !endpoints.is_empty()) {
        None => main,
        Some((canary, other)) => match side(canary, asked) {
            Some(true) => other,
            Some(false) => main,
            None => [main, other].concat(),
        },
    }
}

/// Whether a request goes to the canary, where chance does not decide.
fn side(Canary { rules, .. }: &Canary, asked: &Asked) -> Option<bool> {
    let header = rules.header.as_ref().and(asked.canary);
    let by_header = match (rules.header.as_ref().map(|header| &header.test), header) {
        (Some(CanaryTest::Word), Some("always")) => Some(true),
        (Some(CanaryTest::Word), Some("never")) => Some(false),
        (Some(CanaryTest::Value(value)), Some(said)) if **value == *said => Some(true),
        _ => None,
    };
    let by_weight = match rules.weight {
        0 => Some(false),
        weight if weight >= rules.total() => Some(true),
        _ => None,
    };
    by_header.or(by_weight)
}

fn is_complete(asked: &Asked, answer: &Answer) -> bool {
    if asked.upgrade {
        return answer.status == 101;
    }
    let body = match asked.query {
        "" => format!("{} bytes came", asked.length),
        _ => "part ".repeat(10),
    };
    answer.status == 200 && answer.body == body.as_bytes()
}

fn path<'a>(location: &'a Location, asked: &'a Asked) -> &'a str {
    let rewrite = location.policy.rewrite.as_ref();
    rewrite.and_then(|rewrite| rewrite.target.literal()).unwrap_or(&asked.path)
}

/// Header fields that tell which nginx.conf answered.
fn marks<'a>(
    written: &'a Configuration,
    location: &'a Location,
) -> [(&'static str, Option<&'a str>); 5] {
    let policy = &location.policy;
    let said = |text: Option<&'a model::Secret<String>>| {
        text.and_then(|text| text.split(['"', ' ']).nth(3))
    };
    let raw = written.global.raw.as_ref();
    let snippet = policy.raw.as_ref().and_then(|raw| raw.configuration.as_ref());
    let of_header = |header: Option<&'a model::SetHeader>| header.and_then(|it| it.value.literal());
    [
        ("X-Walk", of_header(policy.custom_headers.0.first())),
        ("X-Global", of_header(written.global.add_headers.first())),
        ("X-Snippet", said(snippet)),
        ("X-Everywhere", said(raw.and_then(|raw| raw.location.as_ref()))),
        ("Access-Control-Allow-Methods", policy.cors.as_ref().map(|cors| cors.methods.as_str())),
    ]
}

fn server_of<'a>(configuration: &'a Configuration, host: &str) -> Option<&'a Arc<Server>> {
    let name = ServerName::new(host);
    let own = configuration.servers.get(&name);
    own.or_else(|| {
        let alias = Alias::Name(name);
        // Of a host with something that nginx does not take, aliases go, too.
        configuration.servers.values().find(|server| has_alias(server, &alias))
    })
}

fn has_alias(server: &Server, alias: &Alias) -> bool {
    server.aliases.contains(alias) && !server.locations.iter().any(|location| is_broken(location))
}

/// The longest path that fits.
fn location_of(server: &Server, fits: impl Fn(&str) -> bool) -> Option<&Arc<Location>> {
    let fitting = server.locations.iter().filter(|location| fits(&location.path));
    fitting.max_by_key(|location| location.path.len())
}

fn is_below(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The certificate that a host was given; it may be gone.
fn named<'a>(configuration: &'a Configuration, host: &str) -> Option<&'a model::CertificateId> {
    let name = ServerName::new(host);
    let own = configuration.servers.get(&name).and_then(|server| server.certificate.as_ref());
    own.or_else(|| {
        let alias = Alias::Name(name);
        let server = configuration.servers.values().find(|server| has_alias(server, &alias))?;
        let id = server.certificate.as_ref()?;
        let default = configuration.default_certificate.as_ref();
        let held = configuration.certificates.get(id);
        let held = held.or_else(|| configuration.certificates.get(default?));
        held.is_some_and(|certificate| certificate.covers(host)).then_some(id)
    })
}
