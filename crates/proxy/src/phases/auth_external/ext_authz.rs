//! Guards that are asked with a call of Envoy's `ext_authz` (`envoy.service.auth.v3.Authorization/Check`), as far as
//! its messages are told and understood here. What an answer asks for beyond that closes the request.

use super::super::Stop;
use super::super::access::Verdict;
use super::super::request_headers::is_own;
use super::of_route::{ask, each, keep, of_client, over_http2, refusal, size, target};
use crate::authenticator::Guard;
use crate::error::Error;
use crate::exchange::Exchange;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use prost::Message;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;
use upstream::Unfinished;
use wire::{Body, Frame, Length, Response, Spool, since_epoch};

const METHOD: &[u8] = b"/envoy.service.auth.v3.Authorization/Check";
/// Bytes of an answer at most.
const ANSWER: usize = 64 << 10;
/// Fields that each list of an answer may name, as a filter may.
const FIELDS: usize = 64;
/// How long an answer may take once it has begun.
const PATIENCE: Duration = Duration::from_secs(60);
/// What stands before a message of gRPC: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Asks.
pub(super) async fn check(exchange: &mut Exchange, guard: &Guard) -> Result<Verdict, Stop> {
    let body = whole(exchange.request.body.as_spool().filter(|_| guard.policy.body)).await?;
    let framed = framed(&CheckRequest { attributes: Some(attributes(exchange, guard, body)) })?;
    let length = framed.len();
    let mut spool = Spool::default();
    let worker = &exchange.worker;
    let whose = exchange.spot().location.namespace();
    let pushed = spool.push(framed, length, worker.scratch(), &whose).await;
    pushed.map_err(|error| failed(error.to_string()))?;
    spool.end(None);
    let fields = [
        (Bytes::from_static(b"host"), exchange.forwarded.host.clone()),
        (Bytes::from_static(b"content-type"), Bytes::from_static(b"application/grpc")),
        (Bytes::from_static(b"te"), Bytes::from_static(b"trailers")),
    ];
    let head = over_http2(&Method::POST, METHOD, &fields, guard.way.tls.is_some());
    let answer = ask(exchange, guard, &Method::POST, (head, Some(&spool))).await?;
    let heard = timeout(PATIENCE, heard(exchange, answer)).await;
    let answer = heard.map_err(|_| failed("its answer does not end".to_owned()))??;
    decide(exchange, answer)
}

/// A message as it is sent.
fn framed(message: &CheckRequest) -> Result<Bytes, Error> {
    let mut framed = BytesMut::with_capacity(PREFIX + message.encoded_len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
    message.encode(&mut framed).map_err(|error| failed(error.to_string()))?;
    Ok(framed.freeze())
}

fn failed(why: String) -> Error {
    Error::Authenticator(why)
}

/// The body of the request: the rule bounds it.
async fn whole(spool: Option<&Spool>) -> Result<Bytes, Error> {
    let Some(spool) = spool else { return Ok(Bytes::new()) };
    let (mut body, mut read) = (Body::spool(spool.again()), BytesMut::new());
    while let Some(frame) = body.frame().await.map_err(Error::RequestBody)? {
        if let Frame::Data(data) = frame {
            read.extend_from_slice(&data);
        }
    }
    Ok(read.freeze())
}

fn attributes(exchange: &Exchange, guard: &Guard, body: Bytes) -> Attributes {
    let named = &guard.policy.headers;
    let wanted = |name: &[u8]| {
        named.is_empty() || named.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    let mut headers = BTreeMap::<String, String>::new();
    each(exchange, wanted, |name, value| {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = String::from_utf8_lossy(value);
        let between = if name == "cookie" { "; " } else { ", " };
        let known = headers.entry(name).or_default();
        if !known.is_empty() {
            known.push_str(between);
        }
        known.push_str(&value);
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let now = since_epoch();
    let http = HttpRequest {
        id: text(&exchange.request_id),
        method: exchange.request.method.to_string(),
        headers,
        path: text(&target(exchange, "")),
        host: text(&exchange.forwarded.host),
        scheme: text(&exchange.forwarded.scheme),
        size: match exchange.request.body.length() {
            Length::Known(length) => i64::try_from(length).unwrap_or(-1),
            Length::Unknown => -1,
        },
        protocol: exchange.request.version.as_str().to_owned(),
        raw_body: body.into(),
    };
    let connection = &exchange.connection;
    Attributes {
        source: Some(Peer::at(exchange.client.to_string(), connection.peer.port())),
        destination: Some(Peer::at(connection.local.ip().to_string(), connection.local.port())),
        request: Some(AskedRequest {
            time: Some(Timestamp { seconds: now.as_secs().cast_signed(), nanos: 0 }),
            http: Some(http),
        }),
    }
}

/// The message of an answer that was a success of gRPC. While it comes it counts as a head does that is not whole.
async fn heard(exchange: &Exchange, mut answer: Response) -> Result<CheckResponse, Error> {
    if answer.status != StatusCode::OK {
        return Err(failed(format!("it answered {}", answer.status.as_u16())));
    }
    let mut status = answer.headers.get("grpc-status").map(<[u8]>::to_vec);
    let (whose, cause) = (exchange.spot().location.namespace(), exchange.connection.cause());
    let mut unfinished = Unfinished::of(&exchange.worker.pool, &whose, cause);
    let mut read = BytesMut::new();
    loop {
        match answer.body.frame().await {
            Ok(Some(Frame::Data(data))) => read.extend_from_slice(&data),
            Ok(Some(Frame::Trailers(fields))) => {
                status = fields.get("grpc-status").map(<[u8]>::to_vec).or(status);
            }
            Ok(None) => break,
            Err(error) => return Err(failed(error.to_string())),
        }
        if read.len() > ANSWER {
            return Err(failed(format!("its answer is longer than {ANSWER} bytes")));
        }
        unfinished.holds(read.capacity()).map_err(|error| failed(error.to_string()))?;
    }
    match status.as_deref() {
        Some(b"0") => message(read.freeze()),
        Some(other) => {
            Err(failed(format!("its call ended with status {}", String::from_utf8_lossy(other))))
        }
        None => Err(failed("its call ended without a status".to_owned())),
    }
}

fn message(mut read: Bytes) -> Result<CheckResponse, Error> {
    if read.len() < PREFIX {
        return Err(failed("its answer has no message".to_owned()));
    }
    let (compressed, length) = (read.get_u8(), read.get_u32());
    if compressed != 0 || length as usize != read.len() {
        return Err(failed("its answer is no single message in clear".to_owned()));
    }
    CheckResponse::decode(read).map_err(|error| failed(error.to_string()))
}

/// What becomes of the request.
fn decide(exchange: &mut Exchange, answer: CheckResponse) -> Result<Verdict, Stop> {
    let CheckResponse { status, denied, allowed } = answer;
    // Nothing at all is no permission.
    let is_good = status.map_or(allowed.is_some(), |status| status.code == 0);
    let too_many = || failed(format!("its answer has more than {FIELDS} fields in a list"));
    if denied.as_ref().is_some_and(|denied| denied.headers.len() > FIELDS) {
        return Err(too_many().into());
    }
    if !is_good || denied.is_some() {
        return Ok(Verdict::Refuse(Box::new(refused(denied.unwrap_or_default()))));
    }
    let allowed = allowed.unwrap_or_default();
    if !allowed.query_set.is_empty() || !allowed.query_removed.is_empty() {
        let why = "it asks for another query, which is not made";
        return Err(failed(why.to_owned()).into());
    }
    let lists = [allowed.headers.len(), allowed.removed.len(), allowed.of_answer.len()];
    if lists.iter().any(|length| *length > FIELDS) {
        return Err(too_many().into());
    }
    let mut headers = Vec::new();
    for option in &allowed.headers {
        let (name, value, appends) = told(option).ok_or_else(no_field)?;
        if is_own(name.as_str().as_bytes()) {
            continue;
        }
        let name = Bytes::copy_from_slice(name.as_str().as_bytes());
        let is_first = !headers.iter().any(|(known, _)| *known == name);
        if appends && is_first {
            let kept = of_client(&exchange.request.headers, &String::from_utf8_lossy(&name));
            headers.extend(kept.map(|kept| (name.clone(), kept)));
        } else if !appends {
            headers.retain(|(known, _)| *known != name);
        }
        headers.push((name, value));
    }
    let removed = allowed.removed.iter().map(|name| HeaderName::from_bytes(name.as_bytes()));
    let removed = removed.map(|name| Ok(name.map_err(|_| no_field())?.as_str().to_owned()));
    let removed = removed.collect::<Result<Vec<_>, Error>>()?;
    let answer = allowed.of_answer.iter().map(|option| told(option).ok_or_else(no_field));
    let answer = answer.collect::<Result<Vec<_>, _>>()?;
    let answer = answer.into_iter();
    let answer = answer.filter(|(name, ..)| !model::is_of_connection(name.as_str().as_bytes()));
    let answer: Vec<_> = answer
        .map(|(name, value, _)| (Bytes::copy_from_slice(name.as_str().as_bytes()), value))
        .collect();
    keep(
        exchange,
        size(&headers) + removed.iter().map(String::len).sum::<usize>() + size(&answer),
    )?;
    let notes = &mut exchange.visit.authenticated;
    (notes.headers, notes.removed, notes.answer) = (headers, removed, answer);
    Ok(Verdict::Pass)
}

/// Without it the client's own field of that name could go on in place of what was said of the client.
fn no_field() -> Error {
    failed("its answer has a header that cannot be one".to_owned())
}

/// The answer to whoever may not pass.
fn refused(denied: Denied) -> Response {
    let code = denied.status.and_then(|status| u16::try_from(status.code).ok());
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.filter(|status| status.as_u16() >= 200).unwrap_or(StatusCode::FORBIDDEN);
    let mut response = refusal(status, denied.body.into());
    for (name, value, _) in denied.headers.iter().filter_map(told) {
        if !model::is_of_connection(name.as_str().as_bytes()) {
            response.headers.push(name.as_str(), value);
        }
    }
    response
}

/// A field of an answer, with whether it stands beside others of its name; none if it cannot be one.
fn told(option: &HeaderOption) -> Option<(HeaderName, Bytes, bool)> {
    let header = option.header.as_ref()?;
    let name = HeaderName::from_bytes(header.key.as_bytes()).ok()?;
    let value =
        if header.value.is_empty() { &header.raw_value[..] } else { header.value.as_bytes() };
    HeaderValue::from_bytes(value).ok()?;
    let appends = option.append.as_ref().is_some_and(|append| append.value);
    Some((name, Bytes::copy_from_slice(value), appends))
}

impl Peer {
    fn at(address: String, port: u16) -> Self {
        let socket = SocketAddress { address, port: u32::from(port) };
        Self { address: Some(Address { socket: Some(socket) }) }
    }
}

#[derive(Clone, PartialEq, Message)]
struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    attributes: Option<Attributes>,
}

#[derive(Clone, PartialEq, Message)]
struct Attributes {
    #[prost(message, optional, tag = "1")]
    source: Option<Peer>,
    #[prost(message, optional, tag = "2")]
    destination: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    request: Option<AskedRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct Peer {
    #[prost(message, optional, tag = "1")]
    address: Option<Address>,
}

#[derive(Clone, PartialEq, Message)]
struct Address {
    #[prost(message, optional, tag = "1")]
    socket: Option<SocketAddress>,
}

#[derive(Clone, PartialEq, Message)]
struct SocketAddress {
    #[prost(string, tag = "2")]
    address: String,
    #[prost(uint32, tag = "3")]
    port: u32,
}

#[derive(Clone, PartialEq, Message)]
struct AskedRequest {
    #[prost(message, optional, tag = "1")]
    time: Option<Timestamp>,
    #[prost(message, optional, tag = "2")]
    http: Option<HttpRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct HttpRequest {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    method: String,
    #[prost(btree_map = "string, string", tag = "3")]
    headers: BTreeMap<String, String>,
    #[prost(string, tag = "4")]
    path: String,
    #[prost(string, tag = "5")]
    host: String,
    #[prost(string, tag = "6")]
    scheme: String,
    #[prost(int64, tag = "9")]
    size: i64,
    #[prost(string, tag = "10")]
    protocol: String,
    #[prost(bytes = "vec", tag = "12")]
    raw_body: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    status: Option<Status>,
    #[prost(message, optional, tag = "2")]
    denied: Option<Denied>,
    #[prost(message, optional, tag = "3")]
    allowed: Option<Allowed>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Denied {
    #[prost(message, optional, tag = "1")]
    status: Option<Status>,
    #[prost(message, repeated, tag = "2")]
    headers: Vec<HeaderOption>,
    #[prost(string, tag = "3")]
    body: String,
}

#[derive(Clone, PartialEq, Message)]
struct Allowed {
    #[prost(message, repeated, tag = "2")]
    headers: Vec<HeaderOption>,
    #[prost(string, repeated, tag = "5")]
    removed: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    of_answer: Vec<HeaderOption>,
    #[prost(bytes = "vec", repeated, tag = "7")]
    query_set: Vec<Vec<u8>>,
    #[prost(string, repeated, tag = "8")]
    query_removed: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct HeaderOption {
    #[prost(message, optional, tag = "1")]
    header: Option<HeaderPair>,
    #[prost(message, optional, tag = "2")]
    append: Option<BoolValue>,
}

#[derive(Clone, PartialEq, Message)]
struct HeaderPair {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
    #[prost(bytes = "vec", tag = "3")]
    raw_value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct BoolValue {
    #[prost(bool, tag = "1")]
    value: bool,
}
