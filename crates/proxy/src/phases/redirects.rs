//! Redirects: of a whole host, to the path with a slash, configured ones, from HTTP to HTTPS (compat/behaviour.md
//! section 12, in this order; ngx_http_rewrite_module's `return`, ngx_http_header_filter's absolute redirects).

use super::Stop;
use crate::exchange::Exchange;
use crate::generation::Site;
use crate::snippet::Running;
use crate::trace::Phase;
use crate::variables;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use model::policy::TlsRedirect;
use wire::Response;

/// The name with or without `www.` (`from-to-www-redirect`): a server of its own in nginx, which asks for nothing.
pub(super) fn www(exchange: &Exchange, site: &Site) -> Result<(), Stop> {
    let server = &site.server;
    if !server.redirects(&exchange.host) {
        return Ok(());
    }
    let location = to_www(exchange, server.name.as_str());
    Err(Response::redirect(proxy_status(exchange), location).into())
}

/// `app-root`, before a location is looked for.
pub(super) fn app_root(exchange: &mut Exchange, site: &Site) -> Result<(), Stop> {
    let Some(target) = &site.server.app_root else { return Ok(()) };
    if exchange.path.as_ref() != b"/" {
        return Ok(());
    }
    exchange.enter(Phase::AppRoot);
    exchange.visit.early = true;
    let host = String::from_utf8_lossy(&exchange.request.authority);
    let target = variables::text_of(target, exchange);
    let location = format!("{}://{host}{target}", own_scheme(exchange));
    Err(Response::redirect(StatusCode::FOUND, in_location(&location)).into())
}

/// nginx answers a path that only its slash keeps from a location with a redirect to the path with the slash.
pub(super) fn to_slash(exchange: &Exchange) -> Response {
    let policy = &exchange.spot().location.policy;
    let path = route::path::encode(&exchange.path).into_owned().into_bytes();
    let mut location = BytesMut::from(&*absolute(exchange, policy.relative_redirects, path));
    location.extend_from_slice(b"/");
    if let Some(query) = exchange.request.query() {
        location.extend_from_slice(b"?");
        location.extend_from_slice(query);
    }
    Response::redirect(StatusCode::MOVED_PERMANENTLY, location.freeze())
}

/// `permanent-redirect` and `temporal-redirect`.
pub(super) fn configured(exchange: &mut Exchange) -> Result<(), Stop> {
    if exchange.spot().location.policy.redirect.is_some() {
        // The program of a snippet came before.
        exchange.enter(Phase::Redirect);
    }
    let policy = &exchange.spot().location.policy;
    let Some(redirect) = &policy.redirect else { return Ok(()) };
    let target = variables::of_request(&redirect.target, exchange);
    let location = absolute(exchange, policy.relative_redirects, target.into_bytes());
    let status = StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::FOUND);
    Err(Response::redirect(status, variables::in_header(&location)).into())
}

/// `ssl-redirect` and `force-ssl-redirect`.
pub(super) fn to_https(exchange: &Exchange) -> Result<(), Stop> {
    let location = &exchange.spot().location;
    let mut said = location.policy.tls_redirect;
    let running = exchange.snippet.as_deref();
    let never = running.and_then(|running| said_by_snippets(exchange, running, &mut said));
    let TlsRedirect { with_certificate, always, preserve_trailing_slash, with_port } = said;
    if exchange.forwarded.scheme.as_ref() != b"http" || !(with_certificate || always) {
        return Ok(());
    }
    let global = exchange.generation.global();
    let is_listed =
        || global.no_tls_redirect.iter().any(|prefix| location.path.starts_with(prefix));
    if never.unwrap_or_else(is_listed) {
        return Ok(());
    }
    if !always && !is_certified(exchange) {
        return Ok(());
    }
    let port = with_port.then_some(exchange.worker.listen.https_port);
    let location = target(exchange, port, preserve_trailing_slash);
    Err(Response::redirect(proxy_status(exchange), location).into())
}

/// What `set` says in place of what the location does (lua_ingress.lua); whether nobody is redirected, if that is said.
/// In a location of a snippet nobody redirects.
fn said_by_snippets(
    exchange: &Exchange,
    running: &Running,
    redirect: &mut TlsRedirect,
) -> Option<bool> {
    if exchange.level().is_some_and(|level| level.own) {
        return None;
    }
    let own = |name: &str| running.state.own(name);
    let is = |name: &str| own(name).map(|value| value == "true");
    redirect.always = is("force_ssl_redirect").unwrap_or(redirect.always);
    redirect.with_certificate = is("ssl_redirect").unwrap_or(redirect.with_certificate);
    redirect.with_port = is("use_port_in_redirects").unwrap_or(redirect.with_port);
    let keeps = own("preserve_trailing_slash").map(|value| value != "false");
    redirect.preserve_trailing_slash = keeps.unwrap_or(redirect.preserve_trailing_slash);
    is("force_no_ssl_redirect")
}

/// Whether there is a certificate for the host.
fn is_certified(exchange: &Exchange) -> bool {
    let site = exchange.place.as_ref().map(|place| &place.site);
    let owner = || site.and_then(|site| site.server.owner.as_ref());
    let has = || exchange.generation.certificates.has(&exchange.host, owner());
    match site {
        Some(site) if exchange.known.is_at(site) => *exchange.known.certified.get_or_init(has),
        Some(_) | None => has(),
    }
}

/// `http-redirect-code`.
fn proxy_status(exchange: &Exchange) -> StatusCode {
    let status = exchange.generation.global().redirect_status;
    StatusCode::from_u16(status).unwrap_or(StatusCode::PERMANENT_REDIRECT)
}

fn own_scheme(exchange: &Exchange) -> &'static str {
    if exchange.connection.tls.is_some() { "https" } else { "http" }
}

/// A Location as nginx sends it: before one that starts with a slash stands the address of this server, unless
/// redirects are relative, here or everywhere (ngx_http_header_filter).
pub(super) fn absolute(exchange: &Exchange, relative: bool, location: Vec<u8>) -> Vec<u8> {
    let relative = relative || exchange.generation.global().relative_redirects;
    if relative || location.first() != Some(&b'/') {
        return location;
    }
    let scheme = own_scheme(exchange);
    let said = exchange.level().map(|level| &level.settings.answers);
    let by_name = said.is_some_and(|said| said.server_name_in_redirect == Some(true));
    let name = exchange.place.as_ref().map(|place| place.site.server.name.as_str());
    let host = match name.filter(|name| by_name && !name.is_empty() && *name != "_") {
        Some(name) => name.to_owned(),
        None if exchange.host.is_empty() => exchange.connection.local.ip().to_string(),
        None => exchange.host.to_string(),
    };
    let usual = if scheme == "https" { 443 } else { 80 };
    let with_port = said
        .and_then(|said| said.port_in_redirect)
        .unwrap_or(exchange.spot().location.policy.tls_redirect.with_port);
    let mut address = match exchange.connection.local.port() {
        port if with_port && port != usual => format!("{scheme}://{host}:{port}"),
        _ => format!("{scheme}://{host}"),
    }
    .into_bytes();
    address.extend_from_slice(&location);
    address
}

/// `<scheme>://<host>:<port>` with the target of the request, without one `/` at its end. Scheme and port are those
/// of the connection, unless trusted headers name them.
fn to_www(exchange: &Exchange, host: &str) -> Bytes {
    let scheme = exchange.forwarded_header("x-forwarded-proto");
    let port = exchange.forwarded_header("x-forwarded-port");
    let own_port = || match exchange.connection.local.port() {
        port if port == exchange.worker.listen.https_port => exchange.worker.numbers.decimal(443),
        port => exchange.worker.numbers.decimal(port),
    };
    let mut location = BytesMut::from(scheme.as_deref().unwrap_or(own_scheme(exchange).as_bytes()));
    location.extend_from_slice(b"://");
    location.extend_from_slice(host.as_bytes());
    location.extend_from_slice(b":");
    location.extend_from_slice(&port.unwrap_or_else(own_port));
    let uri = &exchange.request.target;
    location.extend_from_slice(uri.strip_suffix(b"/").unwrap_or(uri));
    location.freeze()
}

/// `https://` with host and target of the request; a `/` at the end goes away unless it is to be kept.
fn target(exchange: &Exchange, port: Option<u16>, keep_slash: bool) -> Bytes {
    let host = &exchange.forwarded.host;
    let host = host.split(|&byte| byte == b':').next().unwrap_or_default();
    let uri = exchange.received();
    let uri = if keep_slash { uri.as_ref() } else { uri.strip_suffix(b"/").unwrap_or(uri) };
    let mut location = BytesMut::from(&b"https://"[..]);
    location.extend_from_slice(host);
    if let Some(port) = port {
        location.extend_from_slice(format!(":{port}").as_bytes());
    }
    location.extend_from_slice(uri);
    location.freeze()
}

/// A location as a header field may have it: variables may bring in anything, a path decoded for one.
fn in_location(text: &str) -> Bytes {
    variables::in_header(&route::path::bytes(text))
}
