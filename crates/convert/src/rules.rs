//! A location as rules of a route: its match, what is done, and who gets the request.

use crate::keys::NO_ACTION;
use crate::lost::{Ledger, Weight};
use crate::paths::Path;
use crate::rewrites::{self, Rewritten};
use crate::tls::Policies;
use crate::{backends, filters, gateway, grpc, redirects};
use model::policy::{Policy, Protocol, Rewrite};
use model::{Backend, Configuration, Location, Server, ServiceRef, Template};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, json};
use std::collections::HashSet;

/// What a location needs besides itself.
pub(crate) struct Room<'a, 'l> {
    pub(crate) configuration: &'a Configuration,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) ledger: &'a mut Ledger<'l>,
    pub(crate) policies: &'a mut Policies,
    /// Whether the class is ours: others may read expressions otherwise, and ask them at another time.
    pub(crate) is_ours: bool,
}

/// Rules of a location, as they are over HTTPS; [`Said::plain`] makes those over HTTP of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// Whether nothing gets through: something guards it that cannot be said.
    pub(crate) is_closed: bool,
    /// Whether it is the root that no Ingress has written.
    pub(crate) is_nobodys: bool,
    pub(crate) is_grpc: bool,
    pub(crate) path: Option<Path>,
    pub(crate) rules: Vec<Value>,
    /// The rule that adds a slash, before anything else.
    pub(crate) slash: Option<Value>,
}

impl Said {
    /// Lets nothing through.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        for rule in self.rules.iter_mut().filter_map(Value::as_object_mut) {
            rule.remove("backendRefs");
            rule.remove("filters");
        }
    }
}

const KEEP: &str = "leave this Ingress as it is: Ingresses and routes may share a host";

/// What a location says.
pub(crate) fn said(
    room: &mut Room<'_, '_>,
    server: &Server,
    location: &Location,
    of: &ObjectKey,
) -> Said {
    let policy = &*location.policy;
    let is_denied = matches!(location.backend, Backend::Denied(_) | Backend::Broken(_));
    let has_guard = room.ledger.guard(of, policy) | guarded(room, server, of);
    let mut redirect = policy.redirect.as_ref().and_then(|redirect| {
        let told = redirects::to(&redirect.target, redirect.status);
        let key = room.ledger.redirecting(of);
        told.map_err(|why| lost(room, of, key, Weight::Closed, why)).ok()
    });
    // What nobody has written is answered with 404, whatever its path becomes.
    let counts =
        |rewrite: &&Rewrite| location.path != "/" || !is_nobodys(location) || rewrite.is_redirect();
    let rewrite = policy.rewrite.as_ref().filter(counts);
    let is_unsaid = policy.redirect.is_some() && redirect.is_none();
    let is_told = redirect.is_some() || rewrite.is_some_and(Rewrite::is_redirect);
    let (is_grpc, can_speak) = match &location.service {
        Some(service) if has_guard || is_denied || !is_told => {
            let leads = !has_guard && !is_denied && !is_unsaid;
            spoken(room, server, (location, service, leads), of)
        }
        _ => (false, true),
    };
    let mut draft = Draft {
        path: Path::of(server, location),
        own: Vec::new(),
        url: serde_json::Map::new(),
        is_closed: is_unsaid || has_guard || !can_speak,
        is_grpc,
    };
    if let Some(rewrite) = rewrite {
        redirect = rewritten(room, location, rewrite, of, &mut draft).or(redirect);
    }
    if let Some(why) = draft.path.mistake() {
        lost(room, of, &format!("path {}", location.path), Weight::Lost, why);
        let is_closed = draft.is_closed || is_denied;
        return Said { is_closed, path: Some(draft.path), ..Said::default() };
    }
    upstream_host(room, policy, of, &mut draft);
    if !draft.url.is_empty() {
        draft.own.push(json!({"type": "URLRewrite", "urlRewrite": draft.url}));
    }
    draft.own.extend(more(room, policy, draft.is_grpc, of));
    if let Some(redirect) = redirect.filter(|_| !has_guard && !is_denied) {
        let Draft { path, mut own, .. } = draft;
        own.retain(|filter| {
            !matches!(filter["type"].as_str(), Some("URLRewrite" | "RequestMirror"))
        });
        own.push(redirect);
        spelled_otherwise(room, policy, of);
        let rule = json!({"matches": [{"path": path.value()}], "filters": own});
        return Said { path: Some(path), rules: vec![rule], ..Said::default() };
    }
    backed(room, server, location, of, draft)
}

/// What is known of a rule while it is put together.
struct Draft {
    path: Path,
    /// Its filters, but for the URLRewrite.
    own: Vec<Value>,
    url: serde_json::Map<String, Value>,
    is_closed: bool,
    is_grpc: bool,
}

/// Says a rewrite; it may be a redirect.
fn rewritten(
    room: &mut Room<'_, '_>,
    location: &Location,
    rewrite: &Rewrite,
    of: &ObjectKey,
    draft: &mut Draft,
) -> Option<Value> {
    let mut redirect = None;
    let is_shut =
        draft.is_closed || matches!(location.backend, Backend::Denied(_) | Backend::Broken(_));
    let unsaid = match rewrites::rewrite(location, rewrite) {
        // A prefix has fewer requests than its expression, and is asked at another time: of what nobody gets through
        // nothing may go to another path.
        Rewritten::Path { path: Some(path), modifier, .. } if is_shut => {
            opened_later(room, of, &path, modifier.as_ref());
            None
        }
        Rewritten::Path { modifier: Some(_), .. } if draft.is_grpc => {
            Some("a GRPCRoute rewrites no path".to_owned())
        }
        Rewritten::Path { path, modifier, note: told } => {
            draft.path = path.unwrap_or_else(|| draft.path.clone());
            draft.url.extend(modifier.map(|modifier| ("path".to_owned(), modifier)));
            if let Some(told) = told {
                note(room, of, "rewrite-target", &told);
            }
            None
        }
        Rewritten::Redirect(target) => match redirects::to(&literal(&target), 302) {
            Ok(filter) => {
                redirect = Some(filter);
                None
            }
            Err(why) => Some(why.to_owned()),
        },
        Rewritten::Unsaid(why) => Some(why),
    };
    if let Some(why) = unsaid {
        draft.is_closed = true;
        lost(room, of, "rewrite-target", Weight::Closed, &why);
    }
    match rewrite.prefix.as_ref().map(Template::literal) {
        Some(Some(prefix)) if !prefix.is_empty() => {
            draft.own.push(filters::request("X-Forwarded-Prefix", prefix));
        }
        Some(None) => {
            let why = "a field has no groups and no variables";
            lost(room, of, "x-forwarded-prefix", Weight::Lost, why);
        }
        Some(Some(_)) | None => {}
    }
    redirect
}

/// Notes what a closed rule would need if it was opened.
fn opened_later(room: &mut Room<'_, '_>, of: &ObjectKey, path: &Path, modifier: Option<&Value>) {
    let to = modifier.and_then(|modifier| modifier["replacePrefixMatch"].as_str());
    let rewrite =
        to.map(|to| format!(" and a URLRewrite of the prefix to {to}")).unwrap_or_default();
    let reason = format!(
        "closed rules have the expression itself: whoever gives them backendRefs writes {} {}{rewrite}",
        path.value()["type"].as_str().unwrap_or_default(),
        path.value()["value"].as_str().unwrap_or_default(),
    );
    room.ledger.add(Some(of), "rewrite-target", Weight::Note, reason, NO_ACTION);
}

/// The host that backends are told.
fn upstream_host(room: &mut Room<'_, '_>, policy: &Policy, of: &ObjectKey, draft: &mut Draft) {
    let is_odd = |host: &str| !redirects::is_host(&host.to_ascii_lowercase());
    let why = match policy.upstream_host.as_ref().map(Template::literal) {
        Some(_) if draft.is_grpc => "a GRPCRoute tells backends no other host",
        Some(Some(host)) if is_odd(host) => "a URLRewrite names a host, and that without port",
        Some(None) => "a URLRewrite has no variables",
        Some(Some(host)) => {
            draft.url.insert("hostname".to_owned(), json!(host.to_ascii_lowercase()));
            return;
        }
        None => return,
    };
    lost(room, of, "upstream-vhost", Weight::Lost, why);
}

fn note(room: &mut Room<'_, '_>, of: &ObjectKey, key: &str, why: &str) {
    room.ledger.add(Some(of), key, Weight::Note, why, NO_ACTION);
}

/// Whether a location is the root that no Ingress has written.
fn is_nobodys(location: &Location) -> bool {
    location.backend == Backend::NotFound && location.service.is_none()
}

/// What is done with that root: whatever no route takes is answered with 404, too, unless a host with a
/// wildcard would take it.
fn nobodys(room: &mut Room<'_, '_>, server: &Server, of: &ObjectKey, path: Path) -> Said {
    let name = server.name.as_str();
    let names = gateway::host_names(server);
    let covers = |other: &str| {
        let end = other.strip_prefix('*');
        other == "_" || end.is_some_and(|end| names.iter().any(|name| name.ends_with(end)))
    };
    let has_it = |other: &Server| {
        covers(other.name.as_str()) || gateway::host_names(other).iter().any(|name| covers(name))
    };
    let others = room.configuration.servers.values();
    let mut others =
        others.filter(|other| other.name != server.name && gateway::owner(other).is_some());
    let mut rules = Vec::new();
    if others.any(|other| has_it(other)) {
        rules.push(json!({"matches": [{"path": path.value()}]}));
        let reason = format!(
            "what no path of {name} takes gets 500 in place of 404, lest another host has it"
        );
        room.ledger.add(Some(of), "spec.rules.host", Weight::Note, reason, NO_ACTION);
    }
    Said { is_nobodys: true, path: Some(path), rules, ..Said::default() }
}

/// What is said of that root where its Ingress has a guard: a rule as closed as those of its paths, but whoever opened
/// it would open the whole host.
fn shut_root(room: &mut Room<'_, '_>, server: &Server, of: &ObjectKey) {
    let name = &server.name;
    let reason = format!(
        "/ is no path of an Ingress at {name}, and has its guard: what no path takes gets 500 in place of 404, or of what \
         the guard answers"
    );
    let remedy = "give the rule for / no backendRefs, whatever the others get: all of the host would go there";
    room.ledger.add(Some(of), "spec.rules.host", Weight::Note, reason, remedy);
}

/// What redirects to an address cannot do to the letter.
fn spelled_otherwise(room: &mut Room<'_, '_>, policy: &Policy, of: &ObjectKey) {
    let keeps = |redirect: &model::policy::Redirect| {
        redirect.target.parts().iter().any(|part| !matches!(part, model::Part::Text(_)))
    };
    if policy.redirect.as_ref().is_some_and(|redirect| !keeps(redirect)) {
        let reason =
            "the new address keeps the query of the request, and has a slash where it has no path";
        let key = room.ledger.redirecting(of);
        room.ledger.add(Some(of), key, Weight::Note, reason, NO_ACTION);
    }
}

/// Whether the host as a whole has a guard.
fn guarded(room: &mut Room<'_, '_>, server: &Server, of: &ObjectKey) -> bool {
    if server.client_certificate.is_some() {
        lost(room, of, "auth-tls-secret", Weight::Closed, "the host asks clients for certificates");
    }
    if server.snippet.is_some() {
        lost(
            room,
            of,
            "server-snippet",
            Weight::Closed,
            "the host has a snippet, and nobody knows here what it guards",
        );
    }
    server.client_certificate.is_some() || server.snippet.is_some()
}

/// CORS, fields of answers and mirrors.
fn more(room: &mut Room<'_, '_>, policy: &Policy, is_grpc: bool, of: &ObjectKey) -> Vec<Value> {
    let mut own = Vec::new();
    match policy.cors.as_deref().map(filters::cors) {
        Some(_) if is_grpc => {
            lost(room, of, "enable-cors", Weight::Lost, "a GRPCRoute knows no CORS")
        }
        Some(Ok(filter)) => {
            own.push(filter);
            let reason = "browsers are told the same in other words: methods, fields and age in answers to preflights \
                          only, the origin itself in place of a star beside credentials, Vary on all, and a preflight of an \
                          origin that is not allowed is answered here";
            room.ledger.add(Some(of), "enable-cors", Weight::Otherwise, reason, NO_ACTION);
        }
        Some(Err(why)) => lost(room, of, "enable-cors", Weight::Lost, &why),
        None => {}
    }
    // One of them is kept for what is said over HTTPS.
    let most = if room.configuration.global.hsts.is_some() { 15 } else { 16 };
    let (filter, unsaid) = filters::answer(&policy.custom_headers.0, most);
    own.extend(filter);
    for name in unsaid {
        lost(
            room,
            of,
            "custom-headers",
            Weight::Lost,
            &format!("{name}: a field has no variables, and a filter {most} fields"),
        );
    }
    match policy.mirror.as_ref().map(|mirror| filters::mirror(mirror, &of.namespace, room.snapshot))
    {
        Some(Ok(filter)) => {
            own.push(filter);
            let reason = "copies have host and X-Forwarded fields of the request, and what no rule has is not copied";
            room.ledger.add(Some(of), "mirror-target", Weight::Note, reason, NO_ACTION);
        }
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
    draft: Draft,
) -> Said {
    let Draft { path, own, mut is_closed, is_grpc, .. } = draft;
    let policy = &*location.policy;
    let service = location.service.as_deref();
    if is_nobodys(location) {
        if !is_closed {
            return nobodys(room, server, of, path);
        }
        shut_root(room, server, of);
    }
    if let Backend::Denied(why) | Backend::Broken(why) = &location.backend {
        if !is_closed {
            lost(room, of, &format!("path {}", location.path), Weight::Closed, why);
        }
        is_closed = true;
    }
    let main = service.map(|service| backends::of(service, &of.namespace, room.snapshot));
    let canary = location.canary.as_deref().and_then(|canary| {
        let (_, other) =
            backends::of_canary(canary, server.name.as_str(), location, room.snapshot)?;
        Some((canary, other))
    });
    let test = match grpc::matches(&path) {
        Ok(test) if is_grpc => test.map(|test| ("method", test)),
        Err(why) if is_grpc => {
            // What nobody gets through is closed to whatever is no call, too.
            if is_closed {
                let rules = vec![json!({"matches": [{"path": path.value()}]})];
                return Said { is_closed, path: Some(path), rules, ..Said::default() };
            }
            lost(room, of, "backend-protocol", Weight::Lost, why);
            return Said { path: Some(path), ..Said::default() };
        }
        _ => Some(("path", path.value())),
    };
    if canary.is_some() {
        let reason = "while the Service of a share has no endpoints, the share fails, and goes to no other one";
        note(room, of, "canary", reason);
    }
    if is_grpc {
        note(room, of, "backend-protocol", "a GRPCRoute takes calls only: other requests get 404");
    }
    let shares = match main {
        Some(Ok(main)) if !is_closed => backends::shares(main, canary),
        Some(Err(why)) if !is_closed => {
            lost(room, of, &format!("path {}", location.path), Weight::Lost, &why);
            vec![(None, Vec::new())]
        }
        _ => vec![(None, Vec::new())],
    };
    // Where nothing gets through, no copy does.
    let is_kept = |filter: &Value| !is_closed && (!is_grpc || is_of_grpc(filter));
    let kept: Vec<Value> = own.into_iter().filter(is_kept).collect();
    let limit = limit(policy);
    if let Some(limit) = limit.as_ref().filter(|_| is_grpc) {
        let why = format!("a GRPCRoute has no time-out, and {limit} cannot be said");
        lost(room, of, "proxy-read-timeout", Weight::Lost, &why);
    }
    let limit = limit.filter(|_| !is_grpc);
    let rules = shares.into_iter().map(|share| rule(test.as_ref(), share, &kept, limit.as_deref()));
    Said { is_closed, is_grpc, path: Some(path), rules: rules.collect(), ..Said::default() }
}

/// The redirect of a folder's name to the folder, unless somebody else has the name: a prefix of a route has both, and
/// an exact path itself alone. Of a folder that is closed nobody is told; its name goes to no shorter path either.
pub(crate) fn to_slash(taken: &HashSet<&str>, location: &Location, said: &Said) -> Option<Value> {
    let (path, is_exact) = match said.path.as_ref()? {
        Path::Exact(path) => (path, true),
        Path::Prefix(path) => (path, false),
        Path::Regex(_) => return None,
    };
    let name = path.strip_suffix('/').filter(|name| !name.is_empty())?;
    let is_as_written = *path == location.path && !taken.contains(name);
    if !is_as_written || said.is_grpc || said.rules.is_empty() {
        return None;
    }
    let mut rule = json!({"matches": [{"path": Path::Exact(name.to_owned()).value()}]});
    if said.is_closed {
        // What is denied is not passed on, so that nothing is added to its name (nginx's auto_redirect).
        let is_passed_on = !matches!(location.backend, Backend::Denied(_));
        return (is_exact && is_passed_on).then_some(rule);
    }
    rule["filters"] = json!([redirects::to_path(path, 301)]);
    Some(rule)
}

/// How backends are spoken to: whether by gRPC, and whether a route can say it.
fn spoken(
    room: &mut Room<'_, '_>,
    server: &Server,
    (location, service, leads): (&Location, &ServiceRef, bool),
    of: &ObjectKey,
) -> (bool, bool) {
    let policy = &*location.policy;
    let (is_grpc, is_tls) = match policy.protocol {
        Protocol::Http => (false, false),
        Protocol::Https => (false, true),
        Protocol::Grpc => (true, false),
        Protocol::Grpcs => (true, true),
        Protocol::AutoHttp | Protocol::Fcgi => {
            lost(room, of, "backend-protocol", Weight::Closed, "routes speak HTTP/1.1 or HTTP/2");
            return (false, false);
        }
    };
    let canary = location.canary.as_deref().and_then(|canary| {
        backends::of_canary(canary, server.name.as_str(), location, room.snapshot)
    });
    let canary = canary.map(|(service, _)| service);
    for service in [Some(service), canary.as_ref()].into_iter().flatten() {
        let port = backends::spoken_to(service, room.snapshot);
        let told = if is_tls {
            let remedy = "set proxy-ssl-verify: on, proxy-ssl-secret with ca.crt and proxy-ssl-name, lead to a port that \
                          nobody speaks to in clear, and convert again";
            room.policies.add(port, &policy.upstream_tls, of).map_err(|why| (why, remedy))
        } else if leads {
            let remedy = "lead to another port of the Service, or to another Service";
            room.policies.in_clear(port, of).map_err(|why| (why, remedy))
        } else {
            Ok(())
        };
        if let Err((why, remedy)) = told {
            room.ledger.add(Some(of), "backend-protocol", Weight::Closed, why, remedy);
            return (is_grpc, false);
        }
    }
    (is_grpc, true)
}

/// One rule: its match of a path or method, the header and the backends of a share, its filters and its time-out.
fn rule(
    test: Option<&(&str, Value)>,
    (header, backends): (Option<Value>, Vec<Value>),
    filters: &[Value],
    limit: Option<&str>,
) -> Value {
    let mut one = serde_json::Map::new();
    one.extend(test.map(|(field, test)| ((*field).to_owned(), test.clone())));
    one.extend(header.map(|header| ("headers".to_owned(), json!([header]))));
    let mut rule = json!({});
    if !one.is_empty() {
        rule["matches"] = json!([one]);
    }
    if !filters.is_empty() {
        rule["filters"] = json!(filters);
    }
    if !backends.is_empty() {
        rule["backendRefs"] = json!(backends);
    }
    if let Some(limit) = limit {
        rule["timeouts"] = json!({"backendRequest": limit});
    }
    rule
}

fn is_of_grpc(filter: &Value) -> bool {
    const KNOWN: [&str; 3] = ["RequestHeaderModifier", "ResponseHeaderModifier", "RequestMirror"];
    filter["type"].as_str().is_some_and(|kind| KNOWN.contains(&kind))
}

/// How long a try may take, where that is not what holds for all.
fn limit(policy: &Policy) -> Option<String> {
    let seconds = policy.timeouts.read.as_secs();
    (seconds != 60 && seconds > 0).then(|| match seconds {
        ..=99_999 => format!("{seconds}s"),
        more => format!("{}h", (more / 3600).min(99_999)),
    })
}
