//! `custom-http-errors`: answers of some statuses are replaced by those of an error backend (ngx_http_core_module,
//! error_page; compat/behaviour.md section 17). A refusal stays one: the error backend only words it.

use super::failed::{answer_error, response_of};
use super::{Stop, choose_backend, client_fields, hops, read_body, request_headers};
use crate::error::Error;
use crate::exchange::{Exchange, Paged, Place};
use crate::generation::{ErrorPages, Spot};
use crate::variables;
use bytes::{BufMut, Bytes};
use http::StatusCode;
use model::policy::{Policy, Protocol, Timeouts};
use model::{DEFAULT_BACKEND, UpstreamId, Variable};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use upstream::{Call, Group, Head, Way, call};
use wire::http1::write;
use wire::{Body, Field, Headers, Length, Response, Source, Spool, Written};

/// Fields that tell about an error, in lower case: clients cannot bring them along.
const ABOUT: [&str; 7] = [
    "x-code",
    "x-format",
    "x-namespace",
    "x-ingress-name",
    "x-service-name",
    "x-service-port",
    "x-request-id",
];
/// Further ones that an error backend gets from the proxy.
const OWN: [&str; 2] = ["x-original-uri", "x-forwarded-for"];

/// A request that has come back to this process more often has no error page: it could come back as well.
const PAGED: u8 = 1;

/// What counts towards error backends: nginx's own time-outs. What a location says of its upstream does not reach the
/// one that nginx.tmpl has for error pages (`@custom_…`).
static TOWARDS: LazyLock<Policy> = LazyLock::new(|| {
    let minute = Duration::from_secs(60);
    let timeouts = Timeouts { connect: minute, send: minute, read: minute };
    Policy { timeouts, ..Policy::default() }
});

/// Whether an answer is to be replaced.
pub(super) fn has_page(exchange: &Exchange, response: &Response) -> bool {
    exchange.place.as_ref().is_some_and(|place| pages(exchange, place.spot(), response).is_some())
}

/// The answer of the error backend, where this one is to be replaced.
pub(super) async fn replace(exchange: &mut Exchange, response: &mut Response) {
    let spot = exchange.place.as_ref().map(Place::spot);
    let Some(pages) = spot.and_then(|spot| pages(exchange, spot, response)) else { return };
    let group = pages.groups.iter().find(|group| !group.is_empty()).cloned();
    exchange.visit.paged = true;
    if let Some(trace) = &exchange.trace {
        let by = group.as_ref().map(|group| group.id.clone());
        trace.page.replace(Some((response.status, by)));
    }
    if exchange.is_dry() {
        return;
    }
    // Its upstream is let go of before another one is asked, and its head, of which a challenge stays that the client
    // cannot answer without (ngx_http_upstream_intercept_errors).
    response.body = Body::empty();
    exchange.replaces_answers();
    let challenges: Vec<Bytes> = challenges(response).map(Bytes::copy_from_slice).collect();
    response.headers = Headers::default();
    let (status, close) = (response.status, response.close);
    // In the log it is the answer to a request that nginx leads on, not another try.
    let by = group.as_ref().map_or_else(|| UpstreamId::new(DEFAULT_BACKEND), |it| it.id.clone());
    exchange.onward.paged = Some(Box::new(Paged { tries: exchange.log.tries.len(), by }));
    let mut page = match group {
        Some(group) => ask(exchange, group, status, close).await,
        // The built-in default backend (compat/behaviour.md section 6).
        None => Response::page(StatusCode::NOT_FOUND),
    };
    if !page.headers.has("www-authenticate") {
        for challenge in &challenges {
            page.headers.add("WWW-Authenticate", challenge);
        }
    }
    page.close |= close;
    *response = page;
}

/// What a client has to answer, of an answer that is replaced.
pub(super) fn challenges(response: &Response) -> impl Iterator<Item = &[u8]> {
    let is_asked = response.status == StatusCode::UNAUTHORIZED;
    response.headers.all("www-authenticate").filter(move |_| is_asked)
}

/// The error pages for an answer, if it is to be replaced.
pub(super) fn pages<'a>(
    exchange: &Exchange,
    spot: &'a Spot,
    response: &Response,
) -> Option<&'a ErrorPages> {
    let pages = spot.extras().errors.as_deref()?;
    // Each time that a request comes back it could be two.
    if exchange.connection.hops() > PAGED {
        return None;
    }
    // What a snippet has said is no error, whatever its status is.
    let is_said = || exchange.snippet.as_ref().is_some_and(|running| running.said);
    if response.source == Source::Own && (is_barred(exchange, response.status) || is_said()) {
        return None;
    }
    let http = speaks_http(&spot.location.policy);
    let may_be = response.source == Source::Own || (pages.errors.intercept && http);
    (may_be && pages.errors.statuses.contains(&response.status.as_u16())).then_some(pages)
}

/// Whether answers of the upstream are looked at, too: as a snippet says, else as the controller does.
pub(super) fn intercepts(exchange: &Exchange) -> bool {
    let policy = &exchange.spot().location.policy;
    let said = exchange.level().and_then(|level| match policy.protocol {
        Protocol::Grpc | Protocol::Grpcs => level.settings.grpc.intercept_errors,
        Protocol::Fcgi => level.settings.fastcgi.intercept_errors,
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => {
            level.settings.proxy.intercept_errors
        }
    });
    said.unwrap_or_else(|| {
        speaks_http(policy) && policy.errors.as_ref().is_some_and(|it| it.intercept)
    })
}

/// nginx has switches of their own for gRPC and FastCGI, which ingress-nginx never sets.
fn speaks_http(policy: &Policy) -> bool {
    !matches!(policy.protocol, Protocol::Grpc | Protocol::Grpcs | Protocol::Fcgi)
}

/// Whether it is the refusal of an address of `block-cidrs`: such an address gets no error page, either (nginx.tmpl:
/// `deny` at the level of http, which counts in named locations, too).
fn is_barred(exchange: &Exchange, status: StatusCode) -> bool {
    let barred = &exchange.generation.global().block.addresses;
    status == StatusCode::FORBIDDEN && !barred.is_empty() && barred.contains(exchange.client)
}

/// The same request, to `/` of the error backend.
async fn ask(
    exchange: &mut Exchange,
    group: Arc<Group>,
    status: StatusCode,
    broken: bool,
) -> Response {
    if let Err(error) = hops::goes_on(exchange) {
        return answer_error(exchange, &error);
    }
    // What a client sends after a message that is none is no body.
    if broken {
        exchange.release_body();
    } else if let Err(stop) = read_body::spool(exchange).await {
        return response_of(exchange, stop);
    }
    let body = std::mem::replace(&mut exchange.request.body, Body::empty()).into_spool().ok();
    let size = body.as_ref().map(Spool::size);
    let head = head(exchange, status, size);
    let whose = exchange.spot().location.namespace();
    let method = exchange.request.method.clone();
    let request = Call {
        method: &method,
        head: Head::Http1(head, Length::Known(size.unwrap_or_default())),
        body: body.as_ref(),
        policy: &TOWARDS,
        whose: &whose,
        cause: exchange.connection.cause(),
    };
    let way = Way { group, tls: None };
    let mut tries = Vec::new();
    let answer = call(&exchange.worker.pool, &way, &request, &mut tries).await;
    exchange.log.tries.extend(tries);
    answer.iter().for_each(|page| exchange.keeps(&page.headers));
    answer.unwrap_or_else(|error| answer_error(exchange, &error.into()))
}

/// nginx speaks HTTP/1.0 here, as ingress-nginx sets no other version for error pages.
fn head(exchange: &Exchange, status: StatusCode, length: Option<u64>) -> Written {
    let request = &exchange.request;
    let mut out = Written::with_room(request.head_size + 512);
    out.put_slice(request.method.as_str().as_bytes());
    out.put_slice(b" /");
    if let Some(query) = request_headers::query(exchange).filter(|query| !query.is_empty()) {
        out.put_u8(b'?');
        out.put_slice(query);
    }
    out.put_slice(b" HTTP/1.0\r\n");
    about(exchange, status, |name, value| write::field(&mut out, name.as_bytes(), value));
    write::field(&mut out, b"X-Original-URI", exchange.received());
    write::field(&mut out, b"X-Forwarded-For", &exchange.client_text());
    write::field(&mut out, b"Host", &exchange.forwarded.host);
    write::field(&mut out, b"Connection", b"close");
    if let Some(length) = length {
        write::content_length(&mut out, length);
    }
    let hops = hops::value_of_bare(exchange);
    if let Some(hops) = &hops {
        write::field(&mut out, hops::NAME.as_bytes(), hops);
    }
    for field in client_fields::unchanged(exchange) {
        let replaced = hops::is_replaced(hops.as_ref(), &field);
        if !(replaced || is_about(&field) || OWN.iter().any(|name| field.is(name))) {
            field.write(&mut out);
        }
    }
    out.put_slice(b"\r\n");
    out
}

/// Whether a field tells about an error.
pub(super) fn is_about(field: &Field<'_>) -> bool {
    ABOUT.iter().any(|name| field.is(name))
}

/// What an error backend is told about the error; fields without value are left out.
pub(super) fn about(
    exchange: &Exchange,
    status: StatusCode,
    mut put: impl FnMut(&'static str, &[u8]),
) {
    put("X-Code", status.as_str().as_bytes());
    let known = [
        ("X-Format", Variable::RequestHeader("accept".to_owned())),
        ("X-Namespace", Variable::Namespace),
        ("X-Ingress-Name", Variable::IngressName),
        ("X-Service-Name", Variable::ServiceName),
        ("X-Service-Port", Variable::ServicePort),
    ];
    for (name, variable) in known {
        let mut value = String::new();
        variables::push(&variable, exchange, &mut value);
        if !value.is_empty() {
            put(name, value.as_bytes());
        }
    }
    if !exchange.request_id.is_empty() {
        put("X-Request-ID", &exchange.request_id);
    }
}

/// A location whose upstream has no endpoints answers 503, before limits and guards are asked, unless its
/// `default-backend` stands in (compat/behaviour.md section 6).
pub(super) fn stand_in(exchange: &mut Exchange) -> Result<(), Stop> {
    let spot = exchange.spot();
    let stands_in = spot.extras().stand_in.as_ref().is_some_and(|it| !it.group.is_empty());
    let Some(group) = choose_backend::main(exchange).filter(|_| !stands_in) else {
        exchange.visit.stands_in = true;
        return Ok(());
    };
    Err(Error::NoEndpoints(group.nobody()).into())
}
