//! `mirror-target`: copies of requests that are let in (ngx_http_mirror_module). A copy never delays or changes the
//! answer: it has its own task, its own time, and is left out where there are too many.

use super::{client_fields, hops};
use crate::exchange::Exchange;
use crate::generation::{Copies, Generation};
use crate::variables;
use crate::worker::Worker;
use bytes::{BufMut, Bytes, BytesMut};
use http::Method;
use model::Location;
use model::policy::Protocol;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use upstream::{Call, Destination, call, host_of};
use wire::Spool;
use wire::http1::write;

/// Time for a copy as a whole, its answer included.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of an answer that are read before the connection is ended.
const ANSWER: u64 = 1 << 20;

/// Whether the body must be read whole for its copy. A gRPC stream never is: its copy has none.
pub(super) fn wants_body(exchange: &Exchange) -> bool {
    let spot = exchange.spot();
    let streams = matches!(spot.location.policy.protocol, Protocol::Grpc | Protocol::Grpcs);
    spot.mirror.as_ref().is_some_and(|copies| copies.mirror.body) && !streams
}

/// Sends a copy on its way.
pub(super) fn copy(exchange: &Exchange) {
    let Some(copies) = &exchange.spot().mirror else { return };
    // A copy that comes back is not copied again: it would go round for ever.
    if exchange.is_dry() || exchange.connection.turns() > 0 || !hops::may_be_copied(exchange) {
        return;
    }
    let origin = exchange.spot().location.origin.as_ref();
    let Some(entry) = exchange.worker.mirrors.enter(origin) else { return };
    let body = exchange.request.body.as_spool().filter(|_| copies.mirror.body).map(Spool::again);
    let authority = variables::text_of(&copies.destination.url.authority, exchange);
    let job = Copy {
        method: exchange.request.method.clone(),
        head: head(exchange, copies, &authority, body.as_ref().map(Spool::size)),
        body,
        authority,
        destination: copies.destination.clone(),
        location: exchange.spot().location.clone(),
        worker: exchange.worker.clone(),
        generation: exchange.generation.clone(),
    };
    tokio::task::spawn_local(async move {
        // What comes of it is nobody's business.
        let _ = timeout(PATIENCE, job.run()).await;
        drop(entry);
    });
}

/// nginx speaks HTTP/1.0 here, and passes on what the client sent and nothing else.
fn head(exchange: &Exchange, copies: &Copies, authority: &str, length: Option<u64>) -> Bytes {
    let request = &exchange.request;
    let target = variables::text_of(&copies.destination.url.target, exchange);
    let has_variables = copies.destination.url.target.literal().is_none();
    let mut out = BytesMut::with_capacity(request.head_size + 128);
    out.put_slice(request.method.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(&line_target(&target, has_variables, request));
    out.put_slice(b" HTTP/1.0\r\n");
    let host = match &copies.mirror.host {
        Some(host) => variables::text_of(host, exchange),
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
    out.freeze()
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

/// A copy on its way. It keeps what it needs of the request alive.
struct Copy {
    method: Method,
    head: Bytes,
    body: Option<Spool>,
    authority: String,
    destination: Arc<Destination>,
    location: Arc<Location>,
    worker: Rc<Worker>,
    generation: Arc<Generation>,
}

impl Copy {
    async fn run(self) {
        let _generation = self.generation;
        let Some(way) = self
            .destination
            .way_to(&self.authority, self.worker.names(), &self.location.namespace())
            .await
        else {
            return;
        };
        let request = Call {
            method: &self.method,
            head: self.head,
            body: self.body.as_ref(),
            policy: &self.location.policy,
            // What has come back is not copied.
            turns: 0,
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
