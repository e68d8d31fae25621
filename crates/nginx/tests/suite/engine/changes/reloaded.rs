//! Changes that are another nginx.conf.

use super::allowed::{BROKEN, is_broken};
use super::walk::{ALIASES, PASSING, SPARE, Step, World, location, raw};
use model::policy::{
    AuthBasic, AuthScheme, Cors, CustomHeaders, LimitKey, Limits, Origins, Password, Policy,
    Redirect, RequestLimit, Rewrite, TlsRedirect, Users,
};
use model::{
    Alias, Backend, Brotli, Gzip, Location, Part, Pattern, ServerName, SetHeader, Template,
    UpstreamId,
};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

pub(super) const KINDS: &[Step] = &[
    ("another upstream", upstream),
    ("an upstream of a new name", new_upstream),
    ("a host", host),
    ("a path", path),
    ("denied", denied),
    ("an alias", alias),
    ("a rewrite", rewrite),
    ("a redirect", redirect),
    ("redirects to HTTPS", to_https),
    ("header fields", headers),
    ("CORS", cors),
    ("limits", limits),
    ("sizes of bodies", bodies),
    ("time-outs and retries", timeouts),
    ("who stands in", stand_in),
    ("a password file", passwords),
    ("a snippet", snippet),
    ("a snippet that is broken or mended", broken),
    ("the ConfigMap: header fields", global_headers),
    ("the ConfigMap: connections", global_connections),
    ("the ConfigMap: TLS", global_tls),
    ("the ConfigMap: compression", global_compression),
    ("the ConfigMap: workers", global_workers),
    ("the ConfigMap: snippets", global_snippets),
];

fn literal(text: String) -> Template {
    Template::from_parts(vec![Part::Text(text)])
}

fn upstream(world: &mut World) {
    let id = UpstreamId::new(world.any(&SPARE));
    world.edit_location(|location, _| location.backend = Backend::Upstream(id));
}

/// A Service is replaced by one of another name, and the old one goes with all that hung on it.
fn new_upstream(world: &mut World) {
    let id = UpstreamId::new(format!("demo-new{}-80", world.fresh()));
    world.set_endpoints(&id, |endpoints, all, rng| {
        endpoints.ready = vec![all[rng.usize(..all.len())]];
    });
    let mut gone = None;
    world.edit_location(|location, _| {
        if let Backend::Upstream(old) = &location.backend {
            gone = Some(old.clone()).filter(|old| old.as_str().starts_with("demo-new"));
        }
        location.backend = Backend::Upstream(id);
    });
    sweep(world, gone);
}

/// Takes an upstream away that nobody names any more.
fn sweep(world: &mut World, id: Option<UpstreamId>) {
    let Some(id) = id else { return };
    let servers = world.configuration.servers.values();
    let mut locations = servers.flat_map(|server| server.locations.iter());
    let is_named = locations.any(|location| {
        location.backend == Backend::Upstream(id.clone())
            || location.canary.as_ref().is_some_and(|canary| canary.upstream == id)
            || location.policy.default_backend.as_ref() == Some(&id)
    });
    if !is_named {
        world.configuration.upstreams.remove(&id);
    }
}

fn host(world: &mut World) {
    let host = world.any(&PASSING);
    if world.configuration.servers.remove(&ServerName::new(host)).is_none() {
        return world.add_host(host);
    }
    sweep(world, Some(UpstreamId::new(format!("demo-{host}-80"))));
}

fn path(world: &mut World) {
    let path = world.any(&["/p1", "/p2"]);
    let id = UpstreamId::new(world.any(&SPARE));
    world.edit_server(|server, _| {
        let before = server.locations.len();
        server.locations.retain(|location| location.path != path);
        if server.locations.len() == before {
            let location = location(server.name.as_str(), path, id);
            server.locations.push(Arc::new(location));
        }
    });
}

fn denied(world: &mut World) {
    let id = UpstreamId::new(world.any(&SPARE));
    world.edit_location(|location, world| {
        if let Backend::Denied(_) = location.backend {
            location.backend = Backend::Upstream(id);
        } else if world.rarely() {
            location.backend = Backend::Denied("its Secret is missing".to_owned());
        }
    });
}

fn alias(world: &mut World) {
    let alias = Alias::Name(ServerName::new(world.any(&ALIASES)));
    let servers = &world.configuration.servers;
    if servers.values().any(|server| server.aliases.contains(&alias)) {
        for name in world.hosts() {
            let mut server = model::Server::clone(&world.configuration.servers[&name]);
            server.aliases.retain(|other| *other != alias);
            world.configuration.servers.insert(name, Arc::new(server));
        }
        return;
    }
    world.edit_server(|server, _| server.aliases.push(alias));
}

fn rewrite(world: &mut World) {
    let number = world.fresh();
    world.edit_location(|location, _| {
        let rewrite = match location.policy.rewrite {
            Some(_) => None,
            None => Some(Rewrite {
                pattern: Pattern::new(&location.path, true).expect("a pattern"),
                target: literal(format!("/rewritten/{number}")),
                prefix: None,
            }),
        };
        location.policy = Arc::new(Policy { rewrite, ..Policy::clone(&location.policy) });
    });
}

fn redirect(world: &mut World) {
    let target = literal(format!("https://elsewhere.test/{}", world.fresh()));
    world.edit_policy(|policy, world| {
        let status = world.any(&[301, 302, 308]);
        policy.redirect = match policy.redirect {
            None if world.rarely() => Some(Redirect { status, target: target.into() }),
            _ => None,
        };
    });
}

fn to_https(world: &mut World) {
    world.edit_policy(|policy, world| {
        let with_certificate = !policy.tls_redirect.with_certificate && world.rarely();
        policy.tls_redirect = TlsRedirect { with_certificate, ..TlsRedirect::NEVER };
    });
}

fn header(name: &str, world: &mut World) -> Vec<SetHeader> {
    let value = literal(world.fresh().to_string());
    let header = SetHeader { name: name.to_owned(), value: value.into() };
    world.any(&[vec![], vec![header]])
}

fn headers(world: &mut World) {
    world.edit_policy(|policy, world| {
        policy.custom_headers = CustomHeaders(header("X-Walk", world).into())
    });
}

fn cors(world: &mut World) {
    world.edit_policy(|policy, world| {
        policy.cors = world.rng.bool().then(|| {
            Cors {
                origins: Origins::Any,
                credentials: world.rng.bool(),
                methods: format!("GET, M{}", world.fresh()),
                headers: "X-A".to_owned(),
                expose: None,
                max_age: 60,
            }
            .into()
        });
    });
}

/// Limits that nobody reaches, and what tells clients apart.
fn limits(world: &mut World) {
    world.edit_policy(|policy, world| {
        let limit = RequestLimit { rate: 1_000_000_000, burst: 5_000_000_000 };
        let key = Template::parse("$http_host").expect("a variable");
        policy.limits = Limits {
            per_second: world.any(&[None, Some(limit)]),
            per_minute: world.any(&[None, Some(limit)]),
            connections: world.any(&[None, Some(1000), Some(2000)]),
            key: world.any(&[LimitKey::Address, LimitKey::Text(key)]),
            ..Limits::default()
        };
    });
}

fn bodies(world: &mut World) {
    world.edit_policy(|policy, world| {
        policy.body.max_size = world.any(&[None, Some(1 << 20), Some(10_000)]);
        policy.body.request_buffering = world.rng.bool();
        policy.body.response_buffering = world.rng.bool();
        policy.body.request_buffer = world.any(&[None, Some(1024), Some(1 << 16)]);
    });
}

fn timeouts(world: &mut World) {
    world.edit_policy(|policy, world| {
        policy.timeouts.read = Duration::from_secs(world.rng.u64(60..120));
        policy.retries.tries = world.rng.u32(1..5);
    });
}

fn stand_in(world: &mut World) {
    let id = UpstreamId::new(world.any(&SPARE));
    world.edit_policy(|policy, _| {
        policy.default_backend = match policy.default_backend {
            Some(_) => None,
            None => Some(id),
        };
    });
}

/// Clients know the password; the file is another one each time.
fn passwords(world: &mut World) {
    let other = format!("user{}", world.fresh()).into_bytes().into_boxed_slice();
    world.edit_policy(|policy, world| {
        policy.auth_basic = world.rng.bool().then(|| {
            let known = (b"u"[..].into(), Password::Plain(b"p"[..].into()));
            let users = BTreeMap::from([known, (other, Password::Plain(b"x"[..].into()))]);
            AuthBasic {
                scheme: AuthScheme::Basic,
                realm: "walk".to_owned(),
                users: Arc::new(Users(users)),
            }
            .into()
        });
    });
}

fn snippet(world: &mut World) {
    let text = format!("more_set_headers \"X-Snippet: {}\";", world.fresh());
    world.edit_policy(|policy, world| {
        policy.raw = world.rng.bool().then(|| raw(&text)).flatten();
    });
}

/// Breaks a location, or mends all that are broken.
fn broken(world: &mut World) {
    if world.rng.bool() {
        let text = world.any(&BROKEN);
        return world.edit_policy(|policy, _| policy.raw = raw(text));
    }
    for name in world.hosts() {
        let mut server = model::Server::clone(&world.configuration.servers[&name]);
        for location in &mut server.locations {
            if is_broken(location) {
                let policy = Policy { raw: None, ..Policy::clone(&location.policy) };
                let mended = Location { policy: Arc::new(policy), ..Location::clone(location) };
                *location = Arc::new(mended);
            }
        }
        world.configuration.servers.insert(name, Arc::new(server));
    }
}

fn global_headers(world: &mut World) {
    world.edit_global(|global, world| {
        global.add_headers = header("X-Global", world);
        global.server_tokens = world.rng.bool();
    });
}

fn global_connections(world: &mut World) {
    world.edit_global(|global, world| {
        global.keep_alive.requests = world.any(&[1, 10, 1000]);
        global.upstream_keep_alive.connections = world.any(&[0, 1, 320]);
        global.limits.body_buffer = world.any(&[8 << 10, 16 << 10]);
        global.limits.header_line = world.any(&[8 << 10, 16 << 10]);
    });
}

fn global_tls(world: &mut World) {
    world.edit_global(|global, world| {
        global.tls.session_cache_size = world.any(&[1 << 20, 10 << 20]);
        global.tls.session_cache = world.rng.bool();
        global.tls.record_size = world.any(&[4 << 10, 16 << 10]);
        global.http2 = world.rng.bool();
    });
}

fn global_compression(world: &mut World) {
    world.edit_global(|global, world| {
        global.compression.gzip = world.rng.bool().then(Gzip::default);
        global.compression.brotli = world.rng.bool().then(Brotli::default);
    });
}

fn global_workers(world: &mut World) {
    world.edit_global(|global, world| {
        global.listeners.threads = world.any(&[None, NonZeroU16::new(1), NonZeroU16::new(3)]);
        global.listeners.connections = world.any(&[None, Some(1000)]);
    });
}

fn global_snippets(world: &mut World) {
    let number = world.fresh();
    world.edit_global(|global, world| {
        let text = |name: &str| Some(format!("more_set_headers \"{name}: {number}\";").into());
        let raw = global.raw.get_or_insert_default();
        match world.rng.u8(..3) {
            0 => raw.location = text("X-Everywhere"),
            1 => raw.server = text("X-Server"),
            _ => raw.http = text("X-Http"),
        }
    });
}
