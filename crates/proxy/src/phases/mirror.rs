//! `mirror-target`: copies of requests that are let in (ngx_http_mirror_module), and those that filters of a route ask
//! for. A copy never delays or changes the answer: it has its own task, its own time, and is left out where there are
//! too many.

use super::{Stop, client_fields, hops, read_body, request_headers};
use crate::exchange::Exchange;
use crate::generation::{Copies, Generation};
use crate::overheard::{KEPT, Listener};
use crate::variables;
use crate::worker::Worker;
use bytes::BufMut;
use http::Method;
use model::{Backend, Location};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use upstream::{Call, Cause, Destination, Group, Head, Way, call, host_of};
use wire::http1::write;
use wire::{Body, Control, Length, Spool, Written, lane};

/// Time for a copy as a whole, its answer included.
const PATIENCE: Duration = Duration::from_secs(60);
/// Mirrors of a place at most: the bits of what is drawn.
const MIRRORS: usize = u32::BITS as usize;
/// Bytes of an answer that are read before the connection is ended.
const ANSWER: u64 = 1 << 20;

/// Whether the body must be read whole for its copy. A gRPC stream never is: its copy listens while it goes by.
pub(super) fn wants_body(exchange: &Exchange) -> bool {
    let of_ingress =
        exchange.spot().extras().mirror.as_ref().is_some_and(|copies| copies.mirror.body);
    (of_ingress || exchange.visit.mirrored > 0) && !read_body::streams(exchange)
}

/// Draws which mirrors of a route get a copy, before the body is read for them.
pub(super) fn draw(exchange: &mut Exchange) {
    let Some(filters) = exchange.spot().location.policy.route.as_deref() else { return };
    let mut drawn = 0;
    for (index, mirror) in filters.mirrors.iter().enumerate().take(MIRRORS) {
        if exchange.worker.numbers.below(mirror.denominator as usize) < mirror.numerator as usize {
            drawn |= 1 << index;
        }
    }
    if exchange.visit.mirrored != drawn {
        exchange.visit.mirrored = drawn;
    }
}

/// Has the copy of what no rule has sent on its way, before the built-in default backend answers: to ingress-nginx that
/// is an upstream as any other. Gives back the answer.
pub(super) async fn before_default_backend(exchange: &mut Exchange, answer: Stop) -> Stop {
    let spot = exchange.spot();
    let is_copied = spot.extras().mirror.is_some() && spot.location.backend == Backend::NotFound;
    if !is_copied || exchange.level().is_some_and(|level| level.own) {
        return answer;
    }
    if may_be_copied(exchange)
        && wants_body(exchange)
        && let Err(stop) = read_body::whole(exchange).await
    {
        return stop;
    }
    copy(exchange);
    answer
}

/// A copy that comes back is not copied again: it would go round for ever.
fn may_be_copied(exchange: &Exchange) -> bool {
    !exchange.is_dry() && exchange.connection.hops() == 0 && hops::may_be_copied(exchange)
}

/// Sends copies on their way.
pub(super) fn copy(exchange: &mut Exchange) {
    let spot = exchange.spot();
    if spot.extras().mirror.is_none() && exchange.visit.mirrored == 0 {
        return;
    }
    if !may_be_copied(exchange) {
        return;
    }
    if let Some(copies) = &spot.extras().mirror {
        let body = exchange.request.body.as_spool().filter(|_| copies.mirror.body);
        let authority = variables::as_asked(&copies.destination.url.authority, exchange);
        let size = body.map(Spool::size);
        let head = head(exchange, copies, &authority, size);
        let to = To::Url { destination: copies.destination.clone(), authority };
        if variables::fit(exchange).is_err() {
            return;
        }
        let head = Head::Http1(head, Length::Known(size.unwrap_or_default()));
        send(exchange, head, CopiedBody::of(body), to);
    }
    if exchange.visit.mirrored > 0 {
        to_mirrors(exchange);
    }
}

/// Sends the copies that filters of a route ask for.
fn to_mirrors(exchange: &mut Exchange) {
    for index in 0..MIRRORS {
        if exchange.visit.mirrored >> index & 1 == 0 {
            continue;
        }
        let spot = exchange.spot();
        let filters = spot.location.policy.route.as_deref();
        let mirror = filters.and_then(|filters| filters.mirrors.get(index));
        let Some((mirror, group)) = mirror.zip(spot.extras().mirrors.get(index)) else { continue };
        // Calls are messages of HTTP/2, and nothing in HTTP/1.1.
        if exchange.request.is_grpc() && !mirror.http2 {
            continue;
        }
        let to = To::Group(group.clone());
        let Some(head) = request_headers::of_copy(exchange, mirror.http2) else { continue };
        if variables::fit(exchange).is_err() {
            return;
        }
        let body = &exchange.request.body;
        if body.is_empty() || body.as_spool().is_some() {
            let body = CopiedBody::of(body.as_spool());
            send(exchange, head, body, to);
        } else if mirror.http2 {
            let body = std::mem::replace(&mut exchange.request.body, Body::empty());
            let (body, listener) = Listener::of(body);
            exchange.request.body = body;
            send(exchange, head, CopiedBody::Heard(listener), to);
        }
    }
}

/// The body of a copy.
enum CopiedBody {
    None,
    /// It was read whole.
    Kept(Spool),
    /// It goes by.
    Heard(Listener),
}

impl CopiedBody {
    fn of(spool: Option<&Spool>) -> Self {
        spool.map_or(Self::None, |spool| Self::Kept(spool.again()))
    }

    /// All of it; none if it cannot be had whole: half a message is none.
    async fn whole(self, worker: &Worker, whose: &Arc<str>) -> Option<Option<Spool>> {
        let listener = match self {
            Self::None => return Some(None),
            Self::Kept(spool) => return Some(Some(spool)),
            Self::Heard(listener) => listener,
        };
        let mut spool = Spool::default();
        spool.push(listener.bytes().await?, KEPT, worker.scratch(), whose).await.ok()?;
        spool.end(None);
        Some(Some(spool))
    }
}

fn send(exchange: &Exchange, head: Head, body: CopiedBody, to: To) {
    let location = &exchange.spot().location;
    let Some(entry) = exchange.worker.mirrors.enter(location.origin.as_deref()) else { return };
    let job = Copy {
        method: exchange.request.method.clone(),
        head,
        body,
        to,
        location: location.clone(),
        worker: exchange.worker.clone(),
        generation: exchange.generation.clone(),
        book: exchange.connection.control.clone(),
    };
    tokio::task::spawn_local(lane::in_turn(async move {
        // What comes of it is nobody's business.
        let _ = timeout(PATIENCE, job.run()).await;
        drop(entry);
    }));
}

/// nginx speaks HTTP/1.0 here, and passes on what the client sent and nothing else.
fn head(exchange: &Exchange, copies: &Copies, authority: &str, length: Option<u64>) -> Written {
    let request = &exchange.request;
    let target = variables::as_asked(&copies.destination.url.target, exchange);
    let has_variables = copies.destination.url.target.literal().is_none();
    let mut out = Written::with_room(request.head_size + 128);
    out.put_slice(request.method.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(&line_target(&target, has_variables, request));
    out.put_slice(b" HTTP/1.0\r\n");
    let host = match &copies.mirror.host {
        Some(host) => variables::as_asked(host, exchange),
        None => host_of(authority).to_owned(),
    };
    write::field(&mut out, b"Host", &variables::in_header(host.as_bytes()));
    write::field(&mut out, b"Connection", b"close");
    if let Some(length) = length {
        write::content_length(&mut out, length);
    }
    let hops = hops::value_of_bare(exchange);
    if let Some(hops) = &hops {
        write::field(&mut out, hops::NAME.as_bytes(), hops);
    }
    for field in client_fields::unchanged(exchange) {
        if !hops::is_replaced(hops.as_ref(), &field) {
            field.write(&mut out);
        }
    }
    out.put_slice(b"\r\n");
    out
}

/// The target of the copy's request line: with variables it is what they make of it, without them the request's query
/// follows; a URL that ends with its host has the request's own target (ngx_http_proxy_create_request).
fn line_target(target: &str, has_variables: bool, request: &wire::Request) -> Vec<u8> {
    if target.is_empty() {
        return request.target.to_vec();
    }
    let slash: &[u8] = if target.starts_with('/') { b"" } else { b"/" };
    // What a variable brings must not end the request line.
    let visible = target.bytes().filter(|byte| !byte.is_ascii_control() && *byte != b' ');
    let mut line: Vec<u8> = slash.iter().copied().chain(visible).collect();
    if let Some(query) = request.query().filter(|_| !has_variables) {
        line.push(if line.contains(&b'?') { b'&' } else { b'?' });
        line.extend_from_slice(query);
    }
    line
}

/// Where a copy goes.
enum To {
    /// To a URL, with this authority.
    Url { destination: Arc<Destination>, authority: String },
    /// To an upstream, in clear.
    Group(Arc<Group>),
}

impl To {
    async fn way(&self, worker: &Worker, whose: &Arc<str>) -> Option<Way> {
        match self {
            Self::Url { destination, authority } => {
                destination.way_to(authority, worker.names(), whose).await
            }
            Self::Group(group) => Some(Way { group: group.clone(), tls: None }),
        }
    }
}

/// A copy on its way. It keeps what it needs of the request alive.
struct Copy {
    method: Method,
    head: Head,
    body: CopiedBody,
    to: To,
    location: Arc<Location>,
    worker: Rc<Worker>,
    generation: Arc<Generation>,
    /// That of the request's connection.
    book: Rc<Control>,
}

impl Copy {
    async fn run(self) {
        let _generation = self.generation;
        let whose = self.location.namespace();
        let Some(body) = self.body.whole(&self.worker, &whose).await else { return };
        let Some(way) = self.to.way(&self.worker, &whose).await else { return };
        let request = Call {
            method: &self.method,
            head: self.head,
            body: body.as_ref(),
            policy: &self.location.policy,
            whose: &whose,
            // What has come back is not copied.
            cause: Cause { hops: 0, book: Some(&self.book) },
        };
        let Ok(mut answer) = call(&self.worker.pool, &way, &request, &mut Vec::new()).await else {
            return;
        };
        // A server whose answer is not read may take it for a failure.
        let mut read = 0;
        while let Ok(Some(frame)) = answer.body.frame().await
            && read < ANSWER
        {
            if let wire::Frame::Data(data) = frame {
                read += data.len() as u64;
            }
        }
    }
}
