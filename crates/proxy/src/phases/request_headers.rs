//! The head of the request towards the upstream: what ingress-nginx sets, then what the client sent
//! (compat/behaviour.md section 15). Framing fields are always our own.

use super::alike::Names;
use super::{client_address, client_fields, errors, hops, route_filters};
use crate::exchange::{Authenticated, Exchange};
use crate::known::{Forwarded, Lines};
use crate::request_id::RequestId;
use crate::snippet::{Heads, Told};
use crate::variables;
use bytes::{BufMut, Bytes, BytesMut};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri};
use model::Variable;
use model::policy::{ConnectionHeader, GuardAsked, HttpVersion, Policy, Protocol};
use model::snippet::{PassTarget, Scope};
use upstream::Head;
use wire::http1::write;
use wire::http2::append;
use wire::{Field, Length, NameSet, TrailerRule, Written, is_token_byte, percent, tokens};

/// What Fairway says about the client and its request; nobody else may.
const DESCRIBING: NameSet = NameSet::new(&[
    "x-request-id",
    "x-real-ip",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-scheme",
    "x-original-forwarded-for",
    "x-original-forwarded-host",
    "x-forwarded-for-proxy-protocol",
]);

/// Whether a field of the client does not travel on: it ends here, or Fairway sets it itself.
pub(super) fn is_own(name: &[u8]) -> bool {
    client_fields::ends_here(name) || DESCRIBING.has(name)
}

/// The fields of the client that travel on.
fn travelling<'a>(
    exchange: &'a Exchange,
    hops: Option<&'a Bytes>,
) -> impl Iterator<Item = Field<'a>> {
    let original_uri = exchange.generation.global().original_uri_header;
    let configured = &exchange.generation.request_headers;
    let prefix = exchange.visit.forwarded_prefix.is_some();
    // Who asks for a password keeps it from the application (compat/behaviour.md section 15).
    let policy = &exchange.spot().location.policy;
    let password = policy.auth_basic.is_some();
    let (said, decided) = (said(policy), decided(&exchange.visit.authenticated));
    let span = exchange.span.as_deref();
    let told = exchange.told();
    let edits = route_filters::of_request(exchange);
    let none = exchange.effects().is_some_and(|effects| !effects.passes_headers);
    client_fields::end_to_end(&exchange.request.headers).filter(move |field| {
        let replaced = none
            || told.is_some_and(|told| told.has(field.name))
            || field.is_one_of(&DESCRIBING)
            || (original_uri && field.is("x-original-uri"))
            || (prefix && field.is("x-forwarded-prefix"))
            || (password && field.is("authorization"))
            || said.as_ref().is_some_and(|said| said.have(field.name))
            || decided.as_ref().is_some_and(|decided| decided.have(field.name))
            || span.is_some_and(|span| span.replaces(field.name))
            || (exchange.visit.stands_in && errors::is_about(field))
            || hops::is_replaced(hops, field)
            || configured.has(field.name)
            || edits.is_some_and(|edits| route_filters::replaces(edits, field.name));
        !replaced
    })
}

/// Whether all fields of the client travel on: none is of those that never do, and nobody here says others in their
/// place. So it is with most requests, whose lines are one copy then.
fn all_travel(exchange: &Exchange) -> bool {
    let policy = &exchange.spot().location.policy;
    let nobody_else = exchange.snippet.is_none()
        && exchange.span.is_none()
        && policy.auth_external.is_none()
        && policy.auth_basic.is_none()
        && policy.route.is_none()
        && exchange.visit.forwarded_prefix.is_none()
        && !exchange.visit.stands_in
        && !exchange.generation.global().original_uri_header
        && exchange.generation.request_headers.is_empty();
    nobody_else && exchange.request.headers.iter().all(|field| !is_own(field.name))
}

/// What the authenticator says about the client, who cannot say it itself.
pub(super) fn said(policy: &Policy) -> Option<Names<'_>> {
    let is_asked = policy.auth_external.is_some() || policy.route.is_some();
    if is_asked { Names::of(names_said(policy)) } else { None }
}

fn names_said(policy: &Policy) -> impl Iterator<Item = &[u8]> {
    let asked = policy.auth_external.as_ref();
    let guard = policy.route.as_ref().and_then(|filters| filters.guard.as_ref());
    let of_route = guard.and_then(|guard| match &guard.asked {
        GuardAsked::Http { said, .. } => Some(said),
        GuardAsked::Grpc => None,
    });
    let names = asked.map(|asked| &asked.response_headers).into_iter().chain(of_route).flatten();
    names.map(String::as_bytes)
}

/// The fields of which a guard of a route said what becomes of them in this request.
fn decided(notes: &Authenticated) -> Option<Names<'_>> {
    if notes.headers.is_empty() && notes.removed.is_empty() {
        return None;
    }
    let headers = notes.headers.iter().map(|(name, _)| &name[..]);
    Names::of(headers.chain(notes.removed.iter().map(String::as_bytes)))
}

/// The protocol that the client asks to change to, if that may be passed on: never HTTP of any version, in clear (RFC
/// 9113 3.1) or in TLS (RFC 2817), in which requests would come past all guards.
pub(super) fn upgrade(exchange: &Exchange) -> Option<Bytes> {
    let wanted = exchange.request.headers.joined("upgrade")?;
    if exchange.told().is_some_and(Told::forbids_upgrade) {
        return None;
    }
    let is_wanted = tokens(&wanted).all(is_harmless);
    is_wanted.then_some(wanted)
}

/// Whether it is a protocol as RFC 9110 section 7.8 writes it, a token and maybe a version, and none of HTTP. Servers
/// read past bytes that are no part of a token, each its own ones: with one of them before it `h2c` is h2c to some.
fn is_harmless(protocol: &[u8]) -> bool {
    let is_token = |part: &[u8]| !part.is_empty() && part.iter().all(|&byte| is_token_byte(byte));
    let mut parts = protocol.splitn(2, |&byte| byte == b'/');
    let lower = protocol.to_ascii_lowercase();
    let is_http = [&b"h2"[..], b"http", b"tls"].iter().any(|begin| lower.starts_with(begin));
    parts.all(is_token) && !is_http
}

/// The fields that are sent by configuration or by Fairway itself; those of `proxy-set-headers` replace the others
/// (compat/decisions.md row 17), and those of snippets replace all of them. A location that snippets have gets theirs
/// alone, unless it stands in one of an Ingress and says nothing itself.
fn set_all(exchange: &Exchange, mut put: impl FnMut(&[u8], &[u8])) {
    if exchange.snippet.is_none() {
        return set_by_fairway(exchange, put);
    }
    let told = exchange.told();
    let told_host = told.and_then(Told::host);
    if told_host.is_some() || is_by_itself(exchange) {
        put(b"Host", &host(exchange));
    }
    if !is_by_itself(exchange) {
        set_by_fairway(exchange, |name, value| {
            let is_said = if name.eq_ignore_ascii_case(b"host") {
                told_host.is_some()
            } else {
                told.is_some_and(|told| told.has(name))
            };
            if !is_said {
                put(name, value);
            }
        });
    }
    for (name, value) in told.into_iter().flat_map(Told::fields) {
        put(name, value);
    }
}

/// Whether only snippets say what the upstream is told (nginx: `proxy_set_header` of one level hides all others).
fn is_by_itself(exchange: &Exchange) -> bool {
    let Some(level) = exchange.level().filter(|level| level.own) else { return false };
    let says = |scope: &Scope| !scope.settings.headers.proxy_set.is_empty();
    exchange.spot().location.origin.is_none() || level.scope.as_deref().is_some_and(says)
}

/// The host that an upstream is told where nobody says one: nginx's `$proxy_host`.
fn proxy_host(exchange: &Exchange) -> Bytes {
    if exchange.snippet.as_ref().is_some_and(|running| running.ingress.is_some()) {
        // A location of the controller's has set it.
        let mut name = String::new();
        variables::push(&Variable::ProxyHost, exchange, &mut name);
        return variables::in_header(name.as_bytes());
    }
    let pass = exchange.level().and_then(|level| level.settings.pass.as_ref());
    match pass.map(|pass| (&pass.target, if pass.tls { 443 } else { 80 })) {
        Some((PassTarget::Service { namespace, name, port }, usual)) => {
            let port = Some(port).filter(|port| **port != usual);
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("{name}.{namespace}.svc.cluster.local{port}").into()
        }
        Some((PassTarget::Balancer, _)) | None => Bytes::from_static(b"upstream_balancer"),
    }
}

fn set_by_fairway(exchange: &Exchange, mut put: impl FnMut(&[u8], &[u8])) {
    let configured = &exchange.generation.request_headers;
    let edits = route_filters::of_request(exchange);
    let is_edited = |name: &[u8]| edits.is_some_and(|edits| route_filters::replaces(edits, name));
    let mut own = |name: &[u8], value: &[u8]| {
        if !configured.has(name) && !is_edited(name) {
            put(name, value);
        }
    };
    own(b"Host", &host(exchange));
    set(exchange, |name, value| own(name.as_bytes(), value));
    if let Some(span) = &exchange.span {
        span.inject(span.attempt, |name, value| own(name.as_bytes(), value));
    }
    for (name, value) in &exchange.visit.authenticated.headers {
        own(name, value);
    }
    configured.each(variables::filler(exchange), |name, value| {
        if !value.is_empty() && !is_edited(name) {
            put(name, &value);
        }
    });
}

/// The fields that the filters of a route bring.
fn brought(exchange: &Exchange) -> impl Iterator<Item = (&[u8], &[u8])> {
    route_filters::of_request(exchange).into_iter().flat_map(route_filters::brought)
}

/// The fields that Fairway sets, in the order of ingress-nginx.
pub(super) fn set(exchange: &Exchange, mut put: impl FnMut(&'static str, &[u8])) {
    let global = exchange.generation.global();
    let real = &global.real_ip;
    identity(exchange, &mut put);
    let received = exchange.request.headers.joined(&real.forwarded_for_header);
    let client = exchange.client_text();
    put("X-Real-IP", &client);
    if real.forwarded_headers && real.full_forwarded_for {
        let said = variables::forwarded_for(exchange);
        let said = said.map(|said| variables::in_header(said.as_bytes()));
        let value = said.unwrap_or_else(|| full_forwarded_for(exchange));
        if !value.is_empty() {
            put("X-Forwarded-For", &value);
        }
    } else {
        put("X-Forwarded-For", &client);
    }
    way_in(&exchange.forwarded, &mut put);
    original(exchange, received.as_ref(), put);
}

/// `$full_x_forwarded_for`, where no snippet makes it: the header of this name, whichever is believed, and who is
/// connected (nginx.tmpl: `map $http_x_forwarded_for`).
pub(crate) fn full_forwarded_for(exchange: &Exchange) -> Bytes {
    let direct = exchange.connection.source().ip().to_string();
    match exchange.request.headers.joined("x-forwarded-for") {
        Some(others) => [&others[..], b", ", direct.as_bytes()].concat().into(),
        None => direct.into(),
    }
}

/// Who asks, and which request it is.
fn identity(exchange: &Exchange, mut put: impl FnMut(&'static str, &[u8])) {
    super::client_certificate::headers(exchange, &mut put);
    if !exchange.request_id.is_empty() {
        put("X-Request-ID", &exchange.request_id);
    }
}

/// How the client came in.
fn way_in(forwarded: &Forwarded, mut put: impl FnMut(&'static str, &[u8])) {
    put("X-Forwarded-Host", &forwarded.host);
    if !forwarded.port.is_empty() {
        put("X-Forwarded-Port", &forwarded.port);
    }
    put("X-Forwarded-Proto", &forwarded.scheme);
    put("X-Forwarded-Scheme", &forwarded.scheme);
    put("X-Scheme", &forwarded.scheme);
}

/// What the client asked for, and what others said of it before; `received` is its forwarded-for header.
fn original(
    exchange: &Exchange,
    received: Option<&Bytes>,
    mut put: impl FnMut(&'static str, &[u8]),
) {
    let global = exchange.generation.global();
    let real = &global.real_ip;
    if global.original_uri_header {
        put("X-Original-URI", exchange.received());
    }
    if let Some(received) = received {
        put("X-Original-Forwarded-For", received);
    }
    if let Some(prefix) = &exchange.visit.forwarded_prefix {
        put("X-Forwarded-Prefix", prefix);
    }
    if let Some(received) = exchange.request.headers.joined(&real.forwarded_host_header) {
        put("X-Original-Forwarded-Host", &received);
    }
    if let Some(told) = client_address::told_by_proxy_protocol(exchange) {
        put("X-Forwarded-For-Proxy-Protocol", &told);
    }
    if exchange.visit.stands_in {
        errors::about(exchange, StatusCode::SERVICE_UNAVAILABLE, put);
    }
}

/// The host that the upstream is told (`upstream-vhost`), unless a snippet says another.
fn host(exchange: &Exchange) -> Bytes {
    if let Some(host) = exchange.told().and_then(Told::host) {
        return host.clone();
    }
    if is_by_itself(exchange) {
        return proxy_host(exchange);
    }
    let own = || exchange.forwarded.host.clone();
    let Some(template) = &exchange.spot().location.policy.upstream_host else { return own() };
    let text = variables::of_request(template, exchange);
    if text.is_empty() { own() } else { variables::in_header(text.as_bytes()) }
}

/// Path and query towards the upstream: as received, unless a rewrite or dot segments changed them.
fn target(exchange: &Exchange) -> &Bytes {
    exchange.visit.rewritten.as_ref().unwrap_or(&exchange.request.target)
}

/// The query towards the upstream, without `?`.
pub(super) fn query(exchange: &Exchange) -> Option<&[u8]> {
    let target = target(exchange);
    let start = target.iter().position(|&byte| byte == b'?')?;
    Some(&target[start + 1..])
}

/// The head for an upstream that speaks this protocol; none if there is no way to say it: a path that was made here
/// must not end the request line, whoever made it.
pub(super) fn head(exchange: &Exchange) -> Option<Head> {
    let breaks = |byte: &u8| byte.is_ascii_control() || *byte == b' ';
    if exchange.visit.rewritten.as_ref().is_some_and(|path| path.iter().any(breaks)) {
        return None;
    }
    match exchange.spot().location.policy.protocol {
        Protocol::Grpc => http2(exchange, false),
        Protocol::Grpcs => http2(exchange, true),
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => {
            Some(http1(exchange, upgrade(exchange)))
        }
        Protocol::Fcgi => Some(Head::FastCgi(super::fastcgi::head(exchange))),
    }
}

/// The head of a copy, with all that the upstream is told; a copy never changes the protocol.
pub(super) fn of_copy(exchange: &Exchange, over_http2: bool) -> Option<Head> {
    if over_http2 {
        return http2(exchange, false);
    }
    Some(http1(exchange, None))
}

fn http1(exchange: &Exchange, upgrade: Option<Bytes>) -> Head {
    let request = &exchange.request;
    let policy = &exchange.spot().location.policy;
    let old = policy.http_version == HttpVersion::Http10;
    let mut out = Written::with_room(request.head_size + 512);
    if request.method == Method::GET {
        out.put_slice(b"GET ");
    } else {
        out.put_slice(request.method.as_str().as_bytes());
        out.put_u8(b' ');
    }
    out.put_slice(target(exchange));
    out.put_slice(if old { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    if !at_once(exchange, &mut out) {
        set_all(exchange, |name, value| write::field(&mut out, name, value));
    }
    if let Some(wanted) = &upgrade {
        write::field(&mut out, b"Upgrade", wanted);
    }
    let closes = exchange.told().is_some_and(Told::closes)
        || (policy.connection_header.is_none() && variables::connection_ends(exchange));
    let connection: &[u8] = match policy.connection_header {
        _ if closes && upgrade.is_none() => b"close",
        Some(ConnectionHeader::Close) => b"close",
        Some(ConnectionHeader::KeepAlive) => b"keep-alive",
        None if upgrade.is_some() => b"upgrade",
        None if old || !exchange.worker.pool.keeps() => b"close",
        None => b"",
    };
    if !connection.is_empty() {
        write::field(&mut out, b"Connection", connection);
    }
    let length = request.body.length();
    match length {
        Length::Unknown => write::field(&mut out, b"Transfer-Encoding", b"chunked"),
        Length::Known(0) if !wants_length(&request.method) => {}
        Length::Known(length) => write::content_length(&mut out, length),
    }
    let hops = hops::value(exchange);
    if let Some(hops) = &hops {
        write::field(&mut out, hops::NAME.as_bytes(), hops);
    }
    if hops.is_none() && all_travel(exchange) {
        request.headers.write(&mut out);
    } else {
        travelling(exchange, hops.as_ref()).for_each(|field| field.write(&mut out));
    }
    // What is added stands behind what the client sent.
    for (name, value) in brought(exchange) {
        write::field(&mut out, name, value);
    }
    out.put_slice(b"\r\n");
    Head::Http1(out, length)
}

/// Appends the fields that Fairway sets, if that is all there is to it: nothing that is configured stands in their
/// place, and nobody else is named before the client.
fn at_once(exchange: &Exchange, out: &mut BytesMut) -> bool {
    let (generation, real) = (&exchange.generation, &exchange.generation.global().real_ip);
    let appends = real.forwarded_headers && real.full_forwarded_for;
    let is_usual = exchange.told().is_none_or(Told::is_empty)
        && !is_by_itself(exchange)
        && exchange.span.is_none()
        && generation.request_headers.is_empty()
        && route_filters::of_request(exchange).is_none()
        && !appends;
    if !is_usual {
        return false;
    }
    let known = known_lines(exchange);
    match (&exchange.spot().location.policy.upstream_host, known) {
        (None, Some(known)) if exchange.told().is_none() => out.put_slice(&known.host),
        _ => write::line(out, b"Host: ", &host(exchange)),
    }
    super::client_certificate::headers(exchange, |name, value| {
        write::field(out, name.as_bytes(), value);
    });
    number(&exchange.request_id, out);
    match known {
        Some(known) => out.put_slice(&known.way),
        None => way(exchange, out),
    }
    let received = exchange.request.headers.joined(&real.forwarded_for_header);
    let put = |name: &str, value: &[u8]| write::field(out, name.as_bytes(), value);
    original(exchange, received.as_ref(), put);
    for (name, value) in &exchange.visit.authenticated.headers {
        write::field(out, name, value);
    }
    true
}

/// Appends X-Request-ID; one of our own is copied as a whole line.
#[inline]
fn number(id: &RequestId, out: &mut BytesMut) {
    match id {
        RequestId::Own(digits) => {
            let mut line = *b"X-Request-ID: ................................\r\n";
            line[14..46].copy_from_slice(digits);
            out.put_slice(&line);
        }
        RequestId::Given(given) if given.is_empty() => {}
        RequestId::Given(given) => write::line(out, b"X-Request-ID: ", given),
    }
}

/// What requests say that came as this one, and of whose client nothing else is known than its connection.
#[inline]
fn known_lines(exchange: &Exchange) -> Option<&Lines> {
    let known = &exchange.known;
    let is_known =
        exchange.client == exchange.connection.peer.ip() && known.came(&exchange.forwarded);
    let write = || {
        let (mut host, mut lines) = (BytesMut::new(), BytesMut::new());
        write::line(&mut host, b"Host: ", &exchange.forwarded.host);
        way(exchange, &mut lines);
        Lines { host: host[..].into(), way: lines[..].into() }
    };
    is_known.then(|| known.lines.get_or_init(write))
}

/// Appends X-Real-IP to X-Scheme.
fn way(exchange: &Exchange, out: &mut BytesMut) {
    let text = exchange.client_text();
    write::field(out, b"X-Real-IP", &text);
    write::field(out, b"X-Forwarded-For", &text);
    way_in(&exchange.forwarded, |name, value| {
        write::field(out, name.as_bytes(), value);
    });
}

/// Methods that define a meaning for a body say so when it is empty (RFC 9110 section 8.6).
fn wants_length(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// How many fields Fairway adds to a request, mostly.
const USUAL: usize = 12;
/// Bytes of their values, mostly.
const VALUES: usize = 256;

/// The `:path`. What may not stand there is percent-encoded, which means the same.
fn path(target: &Bytes) -> Option<PathAndQuery> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>`".contains(&byte);
    let encoded = |_| PathAndQuery::try_from(percent::encoded(target, is_plain));
    PathAndQuery::from_maybe_shared(target.clone()).or_else(encoded).ok()
}

/// In clear, as nginx's grpc_pass: the host travels as a field, without `:authority`. Under TLS the scheme must be
/// said, and with it the authority.
fn http2(exchange: &Exchange, secure: bool) -> Option<Head> {
    let request = &exchange.request;
    let path = path(target(exchange))?;
    let host = host(exchange);
    let authority = std::str::from_utf8(&host).ok()?;
    let mut head = Request::new(());
    *head.method_mut() = request.method.clone();
    if secure {
        *head.uri_mut() = Uri::builder()
            .scheme("https")
            .authority(authority)
            .path_and_query(path)
            .build()
            .ok()?;
        *head.version_mut() = http::Version::HTTP_2;
    } else {
        *head.uri_mut() = path.into();
        *head.version_mut() = http::Version::HTTP_11;
    }
    let headers = head.headers_mut();
    headers.reserve(request.headers.len() + USUAL);
    // One piece of memory for what is written here and passes.
    let mut values = BytesMut::with_capacity(VALUES);
    let mut put = |name: &[u8], value: &[u8]| {
        append(headers, name, value, || {
            values.extend_from_slice(value);
            values.split().freeze()
        });
    };
    set_all(exchange, |name, value| {
        if !(secure && name.eq_ignore_ascii_case(b"host")) {
            put(name, value);
        }
    });
    if request.headers.has_token("te", "trailers") {
        put(b"te", b"trailers");
    }
    if let Length::Known(length) = request.body.length()
        && length > 0
    {
        put(b"content-length", length.to_string().as_bytes());
    }
    let hops = hops::value(exchange);
    if let Some(hops) = &hops {
        put(hops::NAME.as_bytes(), hops);
    }
    for field in travelling(exchange, hops.as_ref()) {
        append(headers, field.name, field.value, || request.headers.kept(&field));
    }
    for (name, value) in brought(exchange) {
        append(headers, name, value, || Bytes::copy_from_slice(value));
    }
    let trailers = (!request.body.is_empty()).then(|| trailers(exchange));
    Some(Head::Http2(Box::new((head, trailers))))
}

/// Trailers towards a gRPC service: those that could have come in the head, but for what says who asks or from where
/// (RFC 9110 section 6.5.1).
fn trailers(exchange: &Exchange) -> TrailerRule {
    const HEAD_ONLY: NameSet = NameSet::new(&[
        "authorization",
        "cookie",
        "x-original-uri",
        "x-forwarded-prefix",
        "traceparent",
        "tracestate",
    ]);
    let (generation, location) = (exchange.generation.clone(), exchange.spot().location.clone());
    let told = exchange.told().cloned().unwrap_or_default();
    let said = exchange.place.as_ref().and_then(|place| place.site.own_heads());
    let names = Heads::of(generation.global(), said).names;
    let notes = &exchange.visit.authenticated;
    let decided = notes.headers.iter().map(|(name, _)| name.to_vec());
    let removed = notes.removed.iter().map(|name| name.clone().into_bytes());
    let decided: Vec<Vec<u8>> = decided.chain(removed).collect();
    TrailerRule::new(move |field| {
        !(is_own(field.name)
            || !names.keep(field.name)
            || decided.iter().any(|name| client_fields::is_alike(field.name, name))
            || told.has(field.name)
            || field.is_one_of(&HEAD_ONLY)
            // One by one: trailers come once.
            || names_said(&location.policy).any(|name| client_fields::is_alike(field.name, name))
            || errors::is_about(field)
            || location
                .policy
                .route
                .as_ref()
                .is_some_and(|filters| route_filters::replaces(&filters.request, field.name))
            || generation.request_headers.has(field.name))
    })
}

#[cfg(test)]
mod tests {
    use super::{is_harmless, number};
    use crate::numbers::Numbers;
    use crate::request_id::RequestId;
    use bytes::{Bytes, BytesMut};
    use wire::http1::write;
    use wire::tokens;

    #[test]
    fn an_id_of_our_own_is_written_as_any_other_one() {
        let written = |id: &RequestId| {
            let mut out = BytesMut::new();
            number(id, &mut out);
            out
        };
        let own = Numbers::default().random_id();
        let given = RequestId::from(Bytes::copy_from_slice(&own));
        let mut field = BytesMut::new();
        write::field(&mut field, b"X-Request-ID", &own);
        assert!(own.len() == 32 && own.iter().all(u8::is_ascii_hexdigit));
        assert!(written(&own) == field && written(&given) == field);
        assert!(written(&RequestId::default()).is_empty());
    }

    #[test]
    fn nothing_that_a_server_could_read_as_http2_is_asked_for() {
        let passes = |wanted: &[u8]| tokens(wanted).all(is_harmless);
        for wanted in [&b"websocket"[..], b"WebSocket, foo/1.0", b",websocket", b"foo/tls"] {
            assert!(passes(wanted), "{}", wanted.escape_ascii());
        }
        for wanted in [
            &b"h2c"[..],
            b"H2C/1",
            b"websocket, h2",
            b"\xa0h2c",
            b"\x85h2c",
            b"\x1fh2c",
            b"websocket,\x0bh2c",
            b"h 2c",
            b"\"h2c\"",
            b"(h2c)",
            b"/h2c",
            b"foo/h2c bar",
            b"TLS/1.2",
            b"tls",
            b"TLS/1.0, HTTP/1.1",
            b"websocket, HTTP/2.0",
            b"https",
        ] {
            assert!(!passes(wanted), "{}", wanted.escape_ascii());
        }
    }
}
