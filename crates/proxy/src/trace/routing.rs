//! Who the client is, which server and location answer, and redirects.

use super::{Phase, Story, Wanted, near_misses, shown, snippets};
use crate::exchange::Exchange;
use crate::snippet::Running;
use http::StatusCode;
use model::policy::{ClientCertificate, ClientErrorPage, Policy, Rewrite};
use model::{Backend, PathKind, Server, Steps};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::Response;

/// What asks for a redirect of an Ingress; whoever has its annotations knows which one.
pub const CONFIGURED: &str = "permanent-redirect or temporal-redirect";

pub(super) fn tell(story: &mut Story<'_>, response: &Response) {
    listener(story);
    client(story);
    if !story.reached(Phase::Location) {
        return;
    }
    server(story);
    location(story);
    snippets::programs(story);
    redirects(story, response);
}

fn listener(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let version = exchange.request.version.as_str();
    let Some(session) = &exchange.connection.tls else {
        return story.say("listener", format!("HTTP, {version}"));
    };
    let name = session.server_name.as_deref();
    story.say("listener", format!("HTTPS, {version}, SNI {}", name.unwrap_or("none")));
    story.say("certificate", certificate(exchange, name));
}

fn certificate(exchange: &Exchange, name: Option<&str>) -> String {
    let Some(id) = exchange.generation.certificates.chosen(name) else {
        return "the self-signed one of this process".to_owned();
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    match exchange.generation.configuration.certificates.get(&id).and_then(|it| it.ending(now)) {
        Some(ending) => format!("{id}: {ending}"),
        None => id.to_string(),
    }
}

fn client(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let peer = exchange.connection.peer.ip();
    let real = &exchange.generation.global().real_ip;
    let outcome = match exchange.connection.announced() {
        _ if exchange.client == peer => format!("{peer}, the peer itself"),
        Some(announced) if announced.source.ip().to_canonical() == exchange.client => {
            format!("{}, by the PROXY protocol header of {peer}", exchange.client)
        }
        _ => format!("{}, by {} of {peer}", exchange.client, real.forwarded_for_header),
    };
    story.say("client", outcome);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let forwarded = &exchange.forwarded;
    story.say(
        "forwarded as",
        format!(
            "host {}, scheme {}, port {}",
            text(&forwarded.host),
            text(&forwarded.scheme),
            if forwarded.port.is_empty() { "none".to_owned() } else { text(&forwarded.port) }
        ),
    );
}

fn server(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let host = &*exchange.host;
    if let Some(place) = &exchange.place
        && let Some(routed) = near_misses::routed(exchange, &place.site)
    {
        return match routed.host.name.as_str() {
            "_" => story.say("server", "every host, of a Gateway"),
            name => story.say("server", format!("{name} of a Gateway")),
        };
    }
    let Some(site) = exchange.generation.sites.find(host, &Steps::default()).ok().flatten() else {
        return story.say("server", format!("none: {host:?} is the host of no Ingress"));
    };
    let name = site.server.name.as_str();
    match name {
        "_" => {
            story.say("server", format!("_ (catch-all): no Ingress has host {host:?}"));
            for near in near_misses::hosts(exchange) {
                story.say("near miss", format!("host {near}"));
            }
        }
        name if name == host => story.say("server", name),
        name => story.say("server", format!("{name}, which stands for {host}")),
    }
    if site.server.regex {
        let outcome = "every path of the host is a regular expression, because one of its Ingresses has use-regex or \
            rewrite-target";
        story.say("server", outcome);
    }
}

fn location(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let path = String::from_utf8_lossy(&exchange.path).into_owned();
    let Some(place) = &exchange.place else {
        return story.say("location", without_place(story, &path));
    };
    if place.site.snippet.as_ref().is_some_and(|snippet| snippet.server == place.index()) {
        return story.say("location", "none: the host's snippet comes before");
    }
    let location = &place.spot().location;
    let own = place.spot().extras().snippet.as_ref().is_some_and(|level| level.own);
    let expression = || snippets::expression(exchange, &place.site, &location.path).filter(|_| own);
    let kind = match location.kind {
        _ if near_misses::is_expression(exchange, &place.site, place.index()) => {
            "RegularExpression"
        }
        PathKind::Exact => expression().unwrap_or("Exact"),
        PathKind::Prefix => "Prefix",
    };
    let by = match &location.origin {
        _ if own => ", which a snippet has".to_owned(),
        Some(origin) if location.is_of_host() => {
            format!(" (of the host itself: no Ingress has it; its settings are those of {origin})")
        }
        Some(origin) => format!(" of {origin}"),
        None => " (of the host itself: no Ingress has it)".to_owned(),
    };
    let outcome = match location.backend {
        Backend::NotFound if !own && !redirects_itself(&location.policy) => {
            format!("none: no path of the host covers {path}")
        }
        _ if location.path.starts_with('@') => format!("{}{by}", location.path),
        _ => format!("{path} is at {kind} {}{by}", location.path),
    };
    story.say("location", outcome);
    if own {
        return story.say("backend", "what the snippet says there");
    }
    let near = match near_misses::routed(exchange, &place.site) {
        Some(routed) => near_misses::rules(exchange, Some((routed, place.index()))),
        None => {
            let mut near = near_misses::paths(exchange, &place.site, location);
            near.extend(near_misses::rules(exchange, None));
            near
        }
    };
    near.into_iter().for_each(|near| story.say("near miss", near));
    match &location.backend {
        Backend::Upstream(id) => story.say("backend", id.as_str()),
        Backend::NotFound if redirects_itself(&location.policy) => {
            story.say("backend", "none: the rule redirects");
        }
        Backend::NotFound => story.say("backend", "none: 404"),
        Backend::Broken(reason) => story.say("backend", format!("broken, 500: {reason}")),
        Backend::Denied(reason) => story.say("backend", format!("denied, 503: {reason}")),
    }
}

/// Why a request has no location.
fn without_place(story: &Story<'_>, path: &str) -> String {
    let exchange = story.exchange;
    let found = exchange.generation.sites.find(&exchange.host, &Steps::default()).ok().flatten();
    if found.is_some_and(|site| site.server.redirects(&exchange.host)) {
        "none: every request of this name is redirected".to_owned()
    } else if route::path::canonical(exchange.request.raw_path()).is_err() {
        "none: the path is not one (RFC 3986)".to_owned()
    } else if path.is_empty() {
        "none: no host has the request".to_owned()
    } else if found.is_some_and(|site| site.clients.is_some()) {
        "none: the certificate of the client is looked at before the path".to_owned()
    } else {
        format!("none for {path}")
    }
}

/// Whether the location is one of a route that redirects, and needs no backend.
fn redirects_itself(policy: &Policy) -> bool {
    policy.route.as_ref().is_some_and(|filters| filters.redirect.is_some())
}

/// Whose endpoints there are none of, and what to do about it.
fn why_none_is_ready(story: &Story<'_>) -> String {
    let exchange = story.exchange;
    let spot = exchange.spot();
    let is_own = exchange.visit.named.is_none();
    let named = spot.group.as_ref().filter(|_| is_own).and_then(|group| group.followed());
    match (named, spot.location.service.as_deref().filter(|_| is_own)) {
        (Some(name), _) => format!("; no address of {name} is known"),
        (None, Some(service)) => format!(
            "; Service {}/{} has no EndpointSlice (label kubernetes.io/service-name) with a ready endpoint: add one, or \
             mend its selector",
            service.namespace, service.name
        ),
        (None, None) => String::new(),
    }
}

/// Who sends the request on before its location does.
fn before_location(story: &mut Story<'_>, response: &Response, to: String) {
    let exchange = story.exchange;
    let of_host = exchange.generation.sites.find(&exchange.host, &Steps::default()).ok().flatten();
    let place = exchange.place.as_ref();
    let Some(site) = place.map(|place| &place.site).or(of_host) else {
        return story.say("redirect", to);
    };
    let snippet = site.snippet.as_ref().map(|snippet| snippet.server);
    // The name with or without www. is a server of its own, which asks for no certificate.
    if place.is_none() && site.server.redirects(&exchange.host) {
        story.say("redirect", format!("{to}: from-to-www-redirect of the host"));
    } else if place.is_some_and(|place| snippet == Some(place.index())) {
        story.say("redirect", format!("{to}: as a snippet of the host says"));
    } else if let Some(by) = page_for_certificates(&site.server, response) {
        story.say_of("redirect", format!("{to}: the client shows no good certificate"), by);
    } else {
        story.say("redirect", format!("{to}: the path lacks its slash"));
    }
}

/// The annotation for whose page an answer sends a client that has shown no good certificate, with its Ingress.
fn page_for_certificates(server: &Server, response: &Response) -> Option<String> {
    const BY: &str = "auth-tls-error-page";
    let to = response.headers.get("location").filter(|_| response.status == StatusCode::FOUND)?;
    let sends = |asked: &Option<ClientCertificate>| match asked {
        Some(ClientCertificate::Verified(asked)) => {
            matches!(&asked.error_page, ClientErrorPage::Redirect(page) if page.as_bytes() == to)
        }
        Some(ClientCertificate::Closed(_)) | None => false,
    };
    let asking = || server.locations.iter().filter(|it| sends(&it.policy.client_certificate));
    // What the host asks goes before what one of its Ingresses asks besides.
    let of_host = asking().find(|it| it.policy.client_certificate == server.client_certificate);
    match of_host.or_else(|| asking().next()).and_then(|it| it.origin.as_deref()) {
        Some(origin) => Some(format!("{BY} of {origin}")),
        None => sends(&server.client_certificate).then(|| BY.to_owned()),
    }
}

/// What ended the request in the rewrite phase, and the path that it goes on with.
fn redirects(story: &mut Story<'_>, response: &Response) {
    let exchange = story.exchange;
    let to = |response: &Response| {
        let place = response.headers.get("location").map(|at| String::from_utf8_lossy(at));
        let place = shown::address(exchange, &place.unwrap_or_default());
        format!("{} to {place}", response.status.as_u16())
    };
    if story.ended(Phase::Location) && response.headers.has("location") {
        before_location(story, response, to(response));
    }
    if story.ended(Phase::AppRoot) {
        story.say("redirect", format!("{}: app-root of the host", to(response)));
    }
    if story.ended(Phase::Preflight) {
        story.say_by("preflight", response.status.to_string(), "enable-cors");
    }
    if story.ended(Phase::Redirect) {
        let is_of_route = redirects_itself(&story.exchange.spot().location.policy);
        let by = if is_of_route { "RequestRedirect" } else { CONFIGURED };
        story.say_by("redirect", to(response), by);
    }
    if story.reached(Phase::Rewrite)
        && let Some(rewritten) = &story.exchange.visit.rewritten
    {
        let path = shown::address(exchange, &String::from_utf8_lossy(rewritten));
        let by_snippet = |running: &Running| running.state.rewritten || running.state.requeried;
        let location = &story.exchange.spot().location;
        let policy = &location.policy;
        if policy.rewrite.is_some() {
            // Where no path of the host covers it, it goes nowhere, whatever it becomes.
            if location.backend != Backend::NotFound {
                story.say_by("rewrite", path, "rewrite-target")
            }
        } else if policy.route.as_ref().is_some_and(|filters| filters.path.is_some()) {
            story.say_by("rewrite", path, "URLRewrite")
        } else if story.exchange.snippet.as_deref().is_some_and(by_snippet) {
            story.say("rewrite", format!("{path}: as a snippet says"))
        } else {
            story.say("rewrite", format!("{path}: dot segments are resolved"))
        }
    }
    if story.ended(Phase::Rewrite) && response.headers.has("location") {
        let rewrite = story.exchange.spot().location.policy.rewrite.as_ref();
        if rewrite.is_some_and(Rewrite::is_redirect) && story.exchange.snippet.is_none() {
            story.say_by("redirect", to(response), "rewrite-target");
        }
    }
    if story.ended(Phase::HttpsRedirect) && response.headers.has("location") {
        let always = story.exchange.spot().location.policy.tls_redirect.always;
        let by = if always { "force-ssl-redirect" } else { "ssl-redirect" };
        story.say_by("redirect", to(response), by);
    }
    if story.ended(Phase::Endpoints) {
        let decided = format!("none is ready: {}", story.status(response));
        story.say("endpoints", format!("{decided}{}", why_none_is_ready(story)));
        let own = story.exchange.visit.named.is_none().then(|| story.exchange.spot());
        if let Some(service) = own.and_then(|spot| spot.location.service.as_deref()) {
            story.lacks(Wanted::Service(service.clone()), decided);
        }
    }
}
