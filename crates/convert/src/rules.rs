//! A location as rules of a route: its match, what is done, and who gets the request.

use crate::lost::{Ledger, Weight};
use crate::paths::Path;
use crate::rewrites::{self, Rewritten};
use crate::tls::Policies;
use crate::{backends, filters, grpc, redirects};
use model::policy::{Policy, Protocol};
use model::{Backend, Configuration, Location, Server, Template};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, json};

/// What a location needs besides itself.
pub(crate) struct Room<'a, 'l> {
    pub(crate) configuration: &'a Configuration,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) ledger: &'a mut Ledger<'l>,
    pub(crate) policies: &'a mut Policies,
}

/// Rules of a location, as they are over HTTPS; [`Said::plain`] makes those over HTTP of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) is_grpc: bool,
    pub(crate) path: Option<Path>,
    pub(crate) rules: Vec<Value>,
}

const KEEP: &str = "leave this Ingress as it is: Ingresses and routes may share a host";

/// What a location says.
pub(crate) fn said(room: &mut Room<'_, '_>, server: &Server, location: &Location, of: &ObjectKey) -> Said {
    let policy = &*location.policy;
    let mut path = Path::of(server, location);
    let mut own = Vec::new();
    let mut redirect = policy.redirect.as_ref().and_then(|redirect| {
        let told = redirects::to(&redirect.target, redirect.status);
        told.map_err(|why| lost(room, of, "permanent-redirect", Weight::Closed, why)).ok()
    });
    let mut is_closed = policy.redirect.is_some() && redirect.is_none();
    let mut url = serde_json::Map::new();
    if let Some(rewrite) = &policy.rewrite {
        match rewrites::rewrite(location, rewrite) {
            Rewritten::Path { path: other, modifier, note } => {
                path = other.unwrap_or(path);
                url.extend(modifier.map(|modifier| ("path".to_owned(), modifier)));
                if let Some(note) = note {
                    room.ledger.add(Some(of), "rewrite-target", Weight::Note, note, "nothing, mostly");
                }
            }
            Rewritten::Redirect(target) => match redirects::to(&literal(&target), 302) {
                Ok(filter) => redirect = Some(filter),
                Err(why) => {
                    is_closed = true;
                    lost(room, of, "rewrite-target", Weight::Closed, why);
                }
            },
            Rewritten::Unsaid(why) => {
                is_closed = true;
                lost(room, of, "rewrite-target", Weight::Closed, &why);
            }
        }
        match rewrite.prefix.as_ref().map(Template::literal) {
            Some(Some(prefix)) if !prefix.is_empty() => own.push(filters::request("X-Forwarded-Prefix", prefix)),
            Some(None) => lost(room, of, "x-forwarded-prefix", Weight::Lost, "a field has no groups and no variables"),
            Some(Some(_)) | None => {}
        }
    }
    if let Some(why) = path.mistake() {
        lost(room, of, &format!("path {}", location.path), Weight::Lost, why);
        return Said::default();
    }
    match policy.upstream_host.as_ref().map(Template::literal) {
        Some(Some(host)) if host.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.') => {
            lost(room, of, "upstream-vhost", Weight::Lost, "a URLRewrite names a host without port");
        }
        Some(Some(host)) => drop(url.insert("hostname".to_owned(), json!(host.to_ascii_lowercase()))),
        Some(None) => lost(room, of, "upstream-vhost", Weight::Lost, "a URLRewrite has no variables"),
        None => {}
    }
    if !url.is_empty() {
        own.push(json!({"type": "URLRewrite", "urlRewrite": url}));
    }
    own.extend(more(room, policy, of));
    let is_guarded = room.ledger.guard(of, policy) || guarded(room, server, of);
    is_closed |= is_guarded;
    if let Some(redirect) = redirect.filter(|_| !is_guarded) {
        own.retain(|filter| !matches!(filter["type"].as_str(), Some("URLRewrite" | "RequestMirror")));
        own.push(redirect);
        let rule = json!({"matches": [{"path": path.value()}], "filters": own});
        return Said { is_grpc: false, path: Some(path), rules: vec![rule] };
    }
    backed(room, server, location, of, path, own, is_closed)
}

/// Whether the host as a whole has a guard.
fn guarded(room: &mut Room<'_, '_>, server: &Server, of: &ObjectKey) -> bool {
    if server.client_certificate.is_some() {
        lost(room, of, "auth-tls-secret", Weight::Closed, "the host asks clients for certificates");
    }
    if server.snippet.is_some() {
        lost(room, of, "server-snippet", Weight::Closed, "the host has a snippet, and nobody knows here what it guards");
    }
    server.client_certificate.is_some() || server.snippet.is_some()
}

/// CORS, fields of answers and mirrors.
fn more(room: &mut Room<'_, '_>, policy: &Policy, of: &ObjectKey) -> Vec<Value> {
    let mut own = Vec::new();
    match policy.cors.as_ref().map(filters::cors) {
        Some(Ok(filter)) => own.push(filter),
        Some(Err(why)) => lost(room, of, "enable-cors", Weight::Lost, &why),
        None => {}
    }
    let (filter, unsaid) = filters::answer(&policy.custom_headers.0, None);
    own.extend(filter);
    for name in unsaid {
        lost(room, of, "custom-headers", Weight::Lost, &format!("{name}: a field has no variables, and a filter 16 fields"));
    }
    match policy.mirror.as_ref().map(|mirror| filters::mirror(mirror, &of.namespace, room.snapshot)) {
        Some(Ok(filter)) => own.push(filter),
        Some(Err(why)) => lost(room, of, "mirror-target", Weight::Lost, &why),
        None => {}
    }
    own
}

fn lost(room: &mut Room<'_, '_>, of: &ObjectKey, key: &str, weight: Weight, why: &str) {
    room.ledger.add(Some(of), key, weight, why, KEEP);
}

fn literal(text: &str) -> Template {
    Template::from_parts(vec![model::Part::Text(text.to_owned())])
}

/// Rules that lead to Services; without any if they are closed.
fn backed(
    room: &mut Room<'_, '_>,
    server: &Server,
    location: &Location,
    of: &ObjectKey,
    path: Path,
    own: Vec<Value>,
    is_closed: bool,
) -> Said {
    let policy = &*location.policy;
    let service = location.service.as_ref();
    let mut is_closed = is_closed | matches!(location.backend, Backend::Denied(_) | Backend::Broken(_));
    if let (Backend::Denied(why), false) = (&location.backend, is_closed) {
        lost(room, of, &format!("path {}", location.path), Weight::Closed, why);
    }
    let (is_grpc, is_tls) = match policy.protocol {
        Protocol::Http => (false, false),
        Protocol::Https => (false, true),
        Protocol::Grpc => (true, false),
        Protocol::Grpcs => (true, true),
        Protocol::AutoHttp | Protocol::Fcgi => {
            is_closed = true;
            lost(room, of, "backend-protocol", Weight::Closed, "routes speak HTTP/1.1 or HTTP/2");
            (false, false)
        }
    };
    if is_tls
        && let Some(service) = service
        && let Err(why) = room.policies.add(service, &policy.upstream_tls, of)
    {
        is_closed = true;
        let remedy = "set proxy-ssl-verify: on, proxy-ssl-secret with ca.crt and proxy-ssl-name, and convert again";
        room.ledger.add(Some(of), "backend-protocol", Weight::Closed, why, remedy);
    }
    let main = service.and_then(|service| backends::of(service, room.snapshot));
    let canary = location.canary.as_ref().and_then(|canary| {
        let other = backends::of_canary(canary, server.name.as_str(), location, room.snapshot)?;
        Some((canary, other))
    });
    let test = match grpc::matches(&path) {
        Ok(test) if is_grpc => test.map(|test| ("method", test)),
        Err(why) if is_grpc => {
            lost(room, of, "backend-protocol", Weight::Lost, why);
            return Said::default();
        }
        _ => Some(("path", path.value())),
    };
    let shares = match main {
        Some(main) if !is_closed => backends::shares(main, canary),
        Some(_) => vec![(None, Vec::new())],
        None => {
            if !is_closed {
                lost(room, of, &format!("path {}", location.path), Weight::Lost, "its Service has no port of that name");
            }
            vec![(None, Vec::new())]
        }
    };
    let kept: Vec<Value> = own.into_iter().filter(|filter| !is_grpc || is_of_grpc(filter)).collect();
    let rules = shares.into_iter().map(|(header, backends)| {
        let mut one = serde_json::Map::new();
        one.extend(test.clone().map(|(field, test)| (field.to_owned(), test)));
        one.extend(header.map(|header| ("headers".to_owned(), json!([header]))));
        let mut rule = json!({});
        if !one.is_empty() {
            rule["matches"] = json!([one]);
        }
        if !kept.is_empty() {
            rule["filters"] = json!(kept);
        }
        if !backends.is_empty() {
            rule["backendRefs"] = json!(backends);
        }
        if let Some(limit) = limit(policy).filter(|_| !is_grpc) {
            rule["timeouts"] = json!({"backendRequest": limit});
        }
        rule
    });
    Said { is_grpc, path: Some(path), rules: rules.collect() }
}

fn is_of_grpc(filter: &Value) -> bool {
    matches!(filter["type"].as_str(), Some("RequestHeaderModifier" | "ResponseHeaderModifier"))
}

/// How long a try may take, where that is not what holds for all.
fn limit(policy: &Policy) -> Option<String> {
    let seconds = policy.timeouts.read.as_secs();
    (seconds != 60 && seconds > 0).then(|| match seconds {
        ..=99_999 => format!("{seconds}s"),
        more => format!("{}h", (more / 3600).min(99_999)),
    })
}
