//! An HTTP/2 connection: its streams are served side by side by tasks of its thread.

use super::body::{StreamBody, poll_send_data};
use super::flood::{Budget, Guarded};
use super::{from_map, to_map};
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::http::{Body, Frame, Headers, Length, Request, Response, Version, error_page};
use crate::io::Io;
use crate::patience::Patience;
use crate::phases;
use crate::timer::Timer;
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, StatusCode};
use model::Global;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

type Session = h2::server::Connection<Guarded, Bytes>;

/// Streams reset by errors of the client before the connection ends (MadeYouReset, CVE-2025-8671).
const LOCAL_RESETS: usize = 100;
/// Streams reset before they were taken up (rapid reset, CVE-2023-44487).
const PENDING_RESETS: usize = 20;
/// Bytes of answers held for each stream.
const SEND_BUFFER: usize = 128 << 10;

/// Serves a client until the connection ends.
pub async fn serve(io: Io, connection: Rc<Connection>, worker: Rc<Worker>) {
    let generation = worker.generation();
    let global = generation.global();
    let (guarded, budget) = Guarded::new(io);
    let handshake = h2::server::Builder::new()
        .initial_window_size(64 << 10)
        .initial_connection_window_size(1 << 20)
        .max_concurrent_streams(global.http2_streams)
        .max_header_list_size(u32::try_from(global.limits.header_total).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(PENDING_RESETS)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(Some(LOCAL_RESETS))
        .handshake(guarded);
    match tokio::time::timeout(global.limits.header_timeout, handshake).await {
        Ok(Ok(session)) => Streams::new(connection, worker, budget).run(session).await,
        Ok(Err(error)) => tracing::debug!(%error, "HTTP/2 did not start"),
        Err(_) => tracing::debug!("HTTP/2 did not start in time"),
    }
}

/// The streams of a connection.
struct Streams {
    connection: Rc<Connection>,
    worker: Rc<Worker>,
    budget: Rc<Budget>,
    /// One more than the streams in flight.
    load: Rc<()>,
    head_timer: Timer,
    ending: bool,
}

enum Event {
    Stream(Box<Request>, SendResponse<Bytes>),
    Malformed(SendResponse<Bytes>),
    Quiet,
    Flood,
    Closing,
    Over,
}

impl Streams {
    fn new(connection: Rc<Connection>, worker: Rc<Worker>, budget: Rc<Budget>) -> Self {
        Self {
            connection,
            worker,
            budget,
            load: Rc::new(()),
            head_timer: Timer::new(Duration::from_secs(60)),
            ending: false,
        }
    }

    async fn run(mut self, mut session: Session) {
        let timer = Timer::new(Duration::from_secs(60));
        loop {
            match self.next(&mut session, &timer).await {
                Event::Stream(request, respond) => self.start(*request, respond, &mut session),
                Event::Malformed(respond) => refuse(respond, StatusCode::BAD_REQUEST),
                Event::Flood => {
                    session.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                    let closed = poll_fn(|cx| session.poll_closed(cx));
                    let _ = tokio::time::timeout(Duration::from_secs(1), closed).await;
                    return;
                }
                Event::Quiet | Event::Closing if !self.ending => {
                    self.ending = true;
                    session.graceful_shutdown();
                }
                Event::Quiet | Event::Closing | Event::Over => return,
            }
        }
    }

    /// What happens next on the connection.
    async fn next(&self, session: &mut Session, timer: &Timer) -> Event {
        let idle = self.worker.generation().global().keep_alive.idle.max(Duration::from_secs(1));
        let limit = self.worker.generation().global().limits.header_timeout;
        timer.reset(idle);
        poll_fn(|cx| {
            let accepted = session.poll_accept(cx);
            if self.budget.is_spent() {
                return Poll::Ready(Event::Flood);
            }
            match accepted {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    return Poll::Ready(self.judge(request, respond));
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Event::Over),
                Poll::Pending => {}
            }
            if self.head_is_late(limit, cx) {
                return Poll::Ready(Event::Flood);
            }
            if !self.ending && self.connection.poll_closing(cx) {
                return Poll::Ready(Event::Closing);
            }
            let busy = Rc::strong_count(&self.load) > 1;
            if timer.poll(cx).is_ready() {
                if !busy {
                    return Poll::Ready(Event::Quiet);
                }
                timer.reset(idle);
                let _ = timer.poll(cx);
            }
            Poll::Pending
        })
        .await
    }

    /// Whether a head that began did not end in time.
    fn head_is_late(&self, limit: Duration, cx: &mut Context<'_>) -> bool {
        let Some(since) = self.budget.head_since() else { return false };
        let left = limit.saturating_sub(since.elapsed());
        if left.is_zero() {
            return true;
        }
        // Timers round up: one that is set anew when it is due would never fire.
        self.head_timer.reset(left);
        self.head_timer.poll(cx).is_ready()
    }

    fn judge(&self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) -> Event {
        let generation = self.worker.generation();
        match to_request(request, generation.global()) {
            Some(request) => Event::Stream(Box::new(request), respond),
            None => Event::Malformed(respond),
        }
    }

    fn start(&mut self, request: Request, respond: SendResponse<Bytes>, session: &mut Session) {
        let requests = self.connection.requests.get() + 1;
        self.connection.requests.set(requests);
        let keep_alive = self.worker.generation().global().keep_alive;
        let refused = self.worker.refuses_request();
        if !self.ending
            && (refused
                || requests >= keep_alive.requests
                || self.connection.since.elapsed() >= keep_alive.age)
        {
            self.ending = true;
            session.graceful_shutdown();
        }
        if refused {
            return refuse(respond, StatusCode::SERVICE_UNAVAILABLE);
        }
        let exchange = Exchange::new(
            request,
            self.connection.clone(),
            self.worker.clone(),
            self.worker.generation(),
        );
        let load = self.load.clone();
        let witness = self.worker.witness(self.connection.peer, self.connection.serial);
        tokio::task::spawn_local(async move {
            let _witness = witness;
            one(exchange, respond).await;
            drop(load);
        });
    }
}

/// Answers what is no request, or what there is no room for.
fn refuse(mut respond: SendResponse<Bytes>, status: StatusCode) {
    let mut answer = http::Response::new(());
    *answer.status_mut() = status;
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static("text/html"));
    if let Ok(mut stream) = respond.send_response(answer, false) {
        // The client may have gone already.
        let _ = stream.send_data(error_page(status), true);
    }
}

/// The request of a stream; none if it cannot be routed.
fn to_request(request: http::Request<RecvStream>, global: &Global) -> Option<Request> {
    let (parts, stream) = request.into_parts();
    let mut headers = from_map(&parts.headers);
    let authority = match parts.uri.authority() {
        Some(authority) => Bytes::copy_from_slice(authority.as_str().as_bytes()),
        None => headers.get("host").cloned()?,
    };
    route::host::parse(&authority).ok()?;
    if headers.all("host").any(|host| !host.eq_ignore_ascii_case(&authority)) {
        return None;
    }
    let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let target = Bytes::copy_from_slice(target.as_bytes());
    let asterisk = target.as_ref() == b"*" && parts.method != Method::OPTIONS;
    if asterisk || parts.method == Method::CONNECT || parts.method == Method::TRACE {
        return None;
    }
    let head_size =
        headers.iter().map(|field| field.name.len() + field.value.len() + 4).sum::<usize>();
    let length = headers.text("content-length").and_then(|text| text.parse().ok());
    let empty = stream.is_end_stream();
    headers.retain(|field| {
        !field.is("host") && !field.is("content-length") && keeps(field.name.as_ref(), global)
    });
    join_cookies(&mut headers);
    Some(Request {
        method: parts.method,
        line: None,
        target,
        version: Version::Http2,
        authority,
        headers,
        body: match empty {
            true => Body::empty(),
            false => {
                Body::stream(StreamBody::of_request(stream, length, global.limits.body_timeout))
            }
        },
        head_size,
    })
}

/// Odd names are treated as in HTTP/1.
fn keeps(name: &[u8], global: &Global) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let underscored = |byte: &u8| plain(byte) || *byte == b'_';
    !global.ignore_invalid_headers
        || name.iter().all(plain)
        || (global.underscores_in_headers && name.iter().all(underscored))
}

/// Cookies may come in crumbs; HTTP/1 wants them joined (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut Headers) {
    if headers.all("cookie").nth(1).is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = headers.all("cookie").map(AsRef::as_ref).collect();
    let joined = crumbs.join(&b"; "[..]);
    headers.set("cookie", joined);
}

/// Answers the request of one stream.
async fn one(mut exchange: Exchange, mut respond: SendResponse<Bytes>) {
    let response = {
        let mut serving = pin!(phases::serve(&mut exchange));
        poll_fn(|cx| {
            if let Poll::Ready(response) = serving.as_mut().poll(cx) {
                return Poll::Ready(Some(response));
            }
            respond.poll_reset(cx).map(|_| None)
        })
        .await
    };
    match response {
        Some(response) => deliver(&mut exchange, response, &mut respond).await,
        None => exchange.log.status = 499,
    }
    exchange.finish(0);
}

async fn deliver(exchange: &mut Exchange, response: Response, respond: &mut SendResponse<Bytes>) {
    exchange.log.status = response.status.as_u16();
    let to_head = exchange.request.method == Method::HEAD;
    let mut body = response.body;
    let mut headers = to_map(&response.headers);
    if !headers.contains_key("date")
        && let Ok(date) = http::HeaderValue::from_maybe_shared(exchange.worker.clock.http_date())
    {
        headers.insert("date", date);
    }
    let bodyless = to_head
        || response.status.is_informational()
        || matches!(response.status.as_u16(), 204 | 304);
    let length = match (body.length(), response.announced_length) {
        (_, Some(length)) if bodyless => Some(length),
        (Length::Known(length), _) if !bodyless => Some(length),
        _ => None,
    };
    if let Some(length) = length {
        headers.insert("content-length", length.into());
    }
    let mut answer = http::Response::new(());
    *answer.status_mut() = response.status;
    *answer.headers_mut() = headers;
    let ended = bodyless || body.is_empty();
    let Ok(mut stream) = respond.send_response(answer, ended) else { return };
    exchange.log.sent = 64;
    if ended {
        // A request body that nobody read must not stay open (RFC 9113 section 8.1).
        return;
    }
    let sent = send_body(&mut stream, &mut body, exchange).await;
    if sent.is_err() {
        // An answer that broke off must not look complete.
        stream.send_reset(Reason::INTERNAL_ERROR);
    }
}

/// The stream could not be completed.
struct Broken;

async fn send_body(
    stream: &mut SendStream<Bytes>,
    body: &mut Body,
    exchange: &mut Exchange,
) -> Result<(), Broken> {
    let limit = exchange.generation.global().limits.send_timeout;
    let (mut patience, timer) = (Patience::new(limit), Timer::new(limit));
    loop {
        let frame = poll_fn(|cx| {
            if stream.poll_reset(cx).is_ready() {
                return Poll::Ready(Err(Broken));
            }
            body.poll_frame(cx).map_err(|_| Broken)
        });
        match frame.await? {
            Some(Frame::Data(data)) => {
                let size = data.len() as u64;
                let mut pending = Some(data);
                poll_fn(|cx| {
                    let left = |pending: &Option<Bytes>| pending.as_ref().map_or(0, Bytes::len);
                    let before = left(&pending);
                    let written = poll_send_data(stream, &mut pending, cx);
                    let moved = before - left(&pending);
                    if moved > 0 {
                        patience.progressed(moved as u64);
                    }
                    match written {
                        Poll::Ready(written) => Poll::Ready(written.map_err(|_| Broken)),
                        Poll::Pending => patience.poll_exhausted(&timer, cx).map(|_| Err(Broken)),
                    }
                })
                .await?;
                exchange.log.sent += size;
                exchange.log.body_sent += size;
            }
            Some(Frame::Trailers(_)) if !exchange.wants_trailers() => {
                return stream.send_data(Bytes::new(), true).map_err(|_| Broken);
            }
            Some(Frame::Trailers(trailers)) => {
                return stream.send_trailers(to_map(&trailers)).map_err(|_| Broken);
            }
            None => return stream.send_data(Bytes::new(), true).map_err(|_| Broken),
        }
    }
}

/// Whether a plain connection starts as HTTP/2 does; none if that cannot be told yet.
pub fn starts_http2(buffer: &BytesMut) -> Option<bool> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let compared = buffer.len().min(PREFACE.len());
    if buffer[..compared] != PREFACE[..compared] {
        return Some(false);
    }
    (compared == PREFACE.len()).then_some(true)
}
