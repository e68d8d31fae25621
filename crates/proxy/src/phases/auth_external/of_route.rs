//! `ExternalAuth` of a rule of the Gateway API: a backend judges the request by its own method and path, by the fields
//! that the rule names, and by its body where it says so (GEP-1494). Where nobody can be asked, nobody is let in.

use super::super::access::Verdict;
use super::super::client_fields::{end_to_end, is_alike};
use super::super::{Stop, hops, read_body, request_headers};
use super::{drain, ext_authz};
use crate::authenticator::Guard;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::trace::Asked;
use bytes::{BufMut, Bytes};
use http::{Method, Request, StatusCode, Uri, Version};
use model::policy::GuardAsked;
use upstream::{Call, Head, call};
use wire::http1::write;
use wire::http2::append;
use wire::{Headers, Length, Response, Spool, Written};

/// A field as it is sent.
type Field = (Bytes, Bytes);

/// Asks.
pub(super) async fn check(exchange: &mut Exchange, guard: &Guard) -> Result<Verdict, Stop> {
    if let Some(trace) = &exchange.trace {
        let whom = &guard.policy.upstream;
        trace.asked.borrow_mut().push(Asked { whom: whom.to_string(), nobody: None });
        if trace.dry {
            return Ok(Verdict::Pass);
        }
    }
    if guard.policy.body {
        read_body::spool(exchange).await?;
    }
    hops::goes_on(exchange)?;
    let GuardAsked::Http { prefix, http2, said } = &guard.policy.asked else {
        return ext_authz::check(exchange, guard).await;
    };
    let body = exchange.request.body.as_spool().filter(|_| guard.policy.body);
    let target = target(exchange, prefix);
    let fields = fields(exchange, guard, body.map_or(0, Spool::size));
    let method = exchange.request.method.clone();
    let head = if *http2 {
        over_http2(&method, &target, &fields, guard.way.tls.is_some())
    } else {
        let length = Length::Known(body.map_or(0, Spool::size));
        Some(Head::Http1(over_http1(&method, &target, &fields), length))
    };
    let answer = ask(exchange, guard, &method, (head, body)).await?;
    match answer.status.as_u16() {
        200 => {
            let headers = understood(&answer, said);
            keep(exchange, size(&headers))?;
            exchange.visit.authenticated.headers = headers;
            drain(exchange, answer);
            Ok(Verdict::Pass)
        }
        // What looks like a success of the application is none.
        201..=299 => {
            drain(exchange, answer);
            Ok(Verdict::forbidden())
        }
        300..=499 => {
            exchange.keeps(&answer.headers);
            Ok(Verdict::Refuse(Box::new(answer)))
        }
        status => Err(Error::Authenticator(format!("it answered {status}")).into()),
    }
}

/// Sends the question.
pub(super) async fn ask(
    exchange: &Exchange,
    guard: &Guard,
    method: &Method,
    (head, body): (Option<Head>, Option<&Spool>),
) -> Result<Response, Error> {
    let head = head.ok_or_else(|| Error::Authenticator("the request cannot be said".to_owned()))?;
    let cause = exchange.connection.cause();
    let whose = &exchange.spot().location.namespace();
    let question = Call { head, method, body, policy: &guard.towards, whose, cause };
    let answer = call(&exchange.worker.pool, &guard.way, &question, &mut Vec::new()).await;
    answer.map_err(|error| Error::Authenticator(error.to_string()))
}

/// Path and query as the backend gets them without filters: one meaning of a path.
pub(super) fn target(exchange: &Exchange, prefix: &str) -> Vec<u8> {
    let mut target = prefix.as_bytes().to_vec();
    if exchange.dotted {
        target.extend_from_slice(route::path::encode(&exchange.path).as_bytes());
    } else {
        target.extend_from_slice(exchange.request.raw_path());
    }
    if let Some(query) = exchange.request.query() {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    target
}

/// The fields of the question: those that there always are, and what the rule names.
fn fields(exchange: &Exchange, guard: &Guard, length: u64) -> Vec<Field> {
    let mut fields = vec![
        (Bytes::from_static(b"Host"), exchange.forwarded.host.clone()),
        (Bytes::from_static(b"Content-Length"), length.to_string().into()),
    ];
    let hops = hops::value(exchange);
    let wanted = |name: &[u8]| {
        let named = guard.policy.headers.iter().any(|known| is_alike(name, known.as_bytes()));
        let is_hops = hops.is_some() && name.eq_ignore_ascii_case(hops::NAME.as_bytes());
        !is_hops && (named || name.eq_ignore_ascii_case(b"authorization"))
    };
    each(exchange, wanted, |name, value| {
        fields.push((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)));
    });
    fields.extend(hops.map(|hops| (Bytes::from_static(hops::NAME.as_bytes()), hops)));
    fields
}

/// What the backend would be told of these fields, too: what Fairway says of the client stands in place of what the
/// client says.
pub(super) fn each(
    exchange: &Exchange,
    wanted: impl Fn(&[u8]) -> bool,
    mut put: impl FnMut(&[u8], &[u8]),
) {
    request_headers::set(exchange, |name, value| {
        if wanted(name.as_bytes()) {
            put(name.as_bytes(), value);
        }
    });
    for field in end_to_end(&exchange.request.headers) {
        if wanted(field.name) && !request_headers::is_own(field.name) {
            put(field.name, field.value);
        }
    }
}

fn over_http1(method: &Method, target: &[u8], fields: &[Field]) -> Written {
    let mut out = Written::with_room(target.len() + 512);
    out.put_slice(method.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(target);
    out.put_slice(b" HTTP/1.1\r\n");
    for (name, value) in fields {
        write::field(&mut out, name, value);
    }
    out.put_slice(b"\r\n");
    out
}

/// The same in HTTP/2: in clear the host travels as a field, as towards backends.
pub(super) fn over_http2(
    method: &Method,
    target: &[u8],
    fields: &[Field],
    is_tls: bool,
) -> Option<Head> {
    let mut head = Request::new(());
    *head.method_mut() = method.clone();
    let is_host = |name: &Bytes| name.eq_ignore_ascii_case(b"host");
    let host = fields.iter().find(|(name, _)| is_host(name)).filter(|_| is_tls);
    let uri = Uri::builder().path_and_query(target);
    *head.uri_mut() = match host {
        Some((_, host)) => uri.scheme("https").authority(&host[..]).build().ok()?,
        None => uri.build().ok()?,
    };
    *head.version_mut() = if is_tls { Version::HTTP_2 } else { Version::HTTP_11 };
    for (name, value) in fields.iter().filter(|(name, _)| !(is_tls && is_host(name))) {
        append(head.headers_mut(), &name.to_ascii_lowercase(), value, || value.clone());
    }
    Some(Head::http2(head))
}

/// What the backend gets of a good answer: these fields, or all that do not describe its own message.
fn understood(answer: &Response, said: &[String]) -> Vec<Field> {
    let of_message =
        |name: &[u8]| name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"));
    if said.is_empty() {
        let all = answer.headers.iter();
        let all =
            all.filter(|field| !of_message(field.name) && !request_headers::is_own(field.name));
        return all
            .map(|field| (Bytes::copy_from_slice(field.name), Bytes::copy_from_slice(field.value)))
            .collect();
    }
    let named = said.iter().filter(|name| !request_headers::is_own(name.as_bytes()));
    let found = |name: &String| Some((name.clone().into(), answer.headers.copied(name)?));
    named.filter_map(found).collect()
}

/// Bytes that fields take: each an entry of a list, up to twice that where the list has grown, and memory of its own
/// for both texts, however short these are.
pub(super) fn size(fields: &[Field]) -> usize {
    const EACH: usize = 2 * size_of::<Field>() + 32;
    fields.iter().map(|(name, value)| EACH + name.len() + value.len()).sum()
}

/// Counts so many bytes of what was said: they stay as long as the request is under way.
pub(super) fn keep(exchange: &mut Exchange, size: usize) -> Result<(), Error> {
    if exchange.keeps_left(size) {
        return Ok(());
    }
    let why = "what authenticators have said of requests under way holds as much memory as it may";
    Err(Error::Authenticator(format!("{why} (docs/limits.md)")))
}

/// The values of a field that the client sent, in one line.
pub(super) fn of_client(headers: &Headers, name: &str) -> Option<Bytes> {
    headers.joined(name)
}

/// An answer in place of the application's.
pub(super) fn refusal(status: StatusCode, body: Bytes) -> Response {
    Response { body: wire::Body::full(body), ..Response::empty(status) }
}
