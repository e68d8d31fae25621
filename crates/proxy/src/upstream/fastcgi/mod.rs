//! One try over FastCGI (ngx_http_fastcgi_module): a connection for each request, as nginx's default has it.

mod body;
mod head;
mod record;

pub use body::FastCgiBody;
pub use head::{head_end, parse};
pub use record::{Params, Records, Said};

use super::{Connection, Failed, Head, Outgoing, Target, Try, TryError};
use crate::http::{Body, Frame, Response, Source};
use crate::outbox::Outbox;
use bytes::{Buf, Bytes, BytesMut};
use head::CgiHead;
use http::{Method, StatusCode};
use model::policy::Timeouts;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Bytes gathered before they are written.
const COALESCED: usize = 64 << 10;

/// Sends a request over a new connection.
pub(super) async fn send(
    target: &Target,
    request: &mut Outgoing<'_>,
    journal: &Rc<Try>,
) -> Result<Response, Failed> {
    let timeouts = request.policy.timeouts;
    let fail = |error, sent| Failed { error, sent, refused: false, reused: false };
    let Head::FastCgi(head) = request.head.clone() else {
        return Err(fail(TryError::InvalidHeader, false));
    };
    let connection = Connection::open(target, timeouts.connect).await;
    let connection = connection.map_err(|error| fail(error, false))?;
    journal.connected(false);
    let mut outbox = Outbox::default();
    outbox.push(head);
    let mut exchange = Exchange {
        connection,
        outbox,
        body: request.body,
        queued: false,
        sent: false,
        timeouts,
        limit: request.policy.body.response_header,
        records: Records::default(),
        head: BytesMut::new(),
        complaints: Complaints::of(target),
    };
    let answer = exchange.run().await.map_err(|error| fail(error, true))?;
    journal.answered(answer.0.status.as_u16());
    Ok(answered(exchange, answer, request.method, journal))
}

/// A request on its way out while its answer may come in.
struct Exchange<'r> {
    connection: Connection,
    outbox: Outbox,
    body: &'r mut Body,
    /// Everything is in the outbox.
    queued: bool,
    sent: bool,
    timeouts: Timeouts,
    limit: usize,
    records: Records,
    /// What came of the head so far.
    head: BytesMut,
    complaints: Complaints,
}

impl Exchange<'_> {
    /// The head of the answer, and what came after it already.
    async fn run(&mut self) -> Result<(CgiHead, Bytes), TryError> {
        let mut unsent = usize::MAX;
        let mut armed = false;
        poll_fn(|cx| {
            if !self.sent {
                match self.poll_send(cx) {
                    Poll::Ready(Ok(())) => (self.sent, armed) = (true, false),
                    Poll::Ready(Err(error @ TryError::RequestBody(_))) => {
                        return Poll::Ready(Err(error));
                    }
                    // The upstream may have answered before it stopped reading.
                    Poll::Ready(Err(_)) | Poll::Pending => {}
                }
            }
            if let Poll::Ready(head) = self.poll_head(cx) {
                return Poll::Ready(head);
            }
            let writing = self.outbox.remaining();
            if !armed || writing < unsent {
                (armed, unsent) = (true, writing);
                let Timeouts { send, read, .. } = self.timeouts;
                self.connection.timer.reset(if self.sent { read } else { send });
            }
            let step =
                if self.sent { "reading the head of the answer" } else { "sending the request" };
            self.connection.timer.poll(cx).map(|_| Err(TryError::Timeout(step)))
        })
        .await
    }

    /// Sends the body, which was read whole: only the upstream is waited for.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TryError>> {
        loop {
            if !self.queued && self.outbox.remaining() < COALESCED {
                match ready!(self.body.poll_frame(cx)).map_err(TryError::RequestBody)? {
                    Some(Frame::Data(data)) => record::stdin(data, &mut self.outbox),
                    // CGI has no trailers.
                    Some(Frame::Trailers(_)) => {}
                    None => {
                        record::end_of_stdin(&mut self.outbox);
                        self.queued = true;
                    }
                }
                continue;
            }
            let written = self.connection.io.poll_write_all(cx, &mut self.outbox);
            ready!(written).map_err(|_| TryError::Closed)?;
            if self.queued {
                let flushed = self.connection.io.poll_flush_all(cx);
                return flushed.map_err(|_| TryError::Closed);
            }
        }
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(CgiHead, Bytes), TryError>> {
        loop {
            let Connection { io, buffer, .. } = &mut self.connection;
            while let Some(said) = self.records.next(buffer).map_err(|_| TryError::InvalidHeader)? {
                match said {
                    Said::Stdout(data) => self.head.extend_from_slice(&data),
                    Said::Stderr(data) => self.complaints.hear(&data),
                    Said::End => return Poll::Ready(Err(TryError::InvalidHeader)),
                }
                match head_end(&self.head) {
                    Some(end) if end <= self.limit => {
                        let head = self.head.split_to(end);
                        let head = parse(&head).map_err(|_| TryError::InvalidHeader)?;
                        let rest = std::mem::take(&mut self.head).freeze();
                        return Poll::Ready(Ok((head, rest)));
                    }
                    None if self.head.len() <= self.limit => {}
                    _ => return Poll::Ready(Err(TryError::InvalidHeader)),
                }
            }
            match ready!(io.poll_read_head(cx, buffer)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(TryError::Closed)),
                Ok(_) => {}
            }
        }
    }
}

/// The answer as phases see it, its body still attached to the connection where there is one.
fn answered(
    exchange: Exchange<'_>,
    (head, first): (CgiHead, Bytes),
    method: &Method,
    journal: &Rc<Try>,
) -> Response {
    let Exchange { connection, records, timeouts, complaints, .. } = exchange;
    let bodyless = *method == Method::HEAD
        || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let mut response = Response {
        status: head.status,
        reason: head.reason,
        headers: head.headers,
        body: Body::empty(),
        source: Source::Upstream,
        announced_length: head.length.filter(|_| bodyless && head.status != StatusCode::NO_CONTENT),
        close: false,
    };
    if bodyless || head.length == Some(0) {
        journal.end();
        return response;
    }
    let body = FastCgiBody {
        connection: Some(connection),
        records,
        first,
        remaining: head.length,
        read: timeouts.read,
        waiting: false,
        complaints,
        journal: journal.clone(),
    };
    response.body = Body::fastcgi(body);
    response
}

/// What a responder writes to its standard error, on its way to the error log. A bound keeps one request from
/// filling it.
#[derive(Debug)]
struct Complaints {
    upstream: std::net::SocketAddr,
    /// Bytes that may still be logged.
    allowed: usize,
}

/// Bytes of complaints that are logged for one request.
const COMPLAINTS: usize = 8 << 10;

impl Complaints {
    fn of(target: &Target) -> Self {
        Self { upstream: target.address, allowed: COMPLAINTS }
    }

    fn hear(&mut self, data: &[u8]) {
        let heard = &data[..data.len().min(self.allowed)];
        self.allowed -= heard.len();
        if !heard.is_empty() {
            let text = String::from_utf8_lossy(heard);
            tracing::error!(upstream = %self.upstream, stderr = ?text.trim_end(), "FastCGI sent in stderr");
        }
    }
}
