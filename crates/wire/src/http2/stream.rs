//! The client's side of one stream, shared by the task that answers it and the body that is still being read.

use super::BodyStream;
use super::held::Piece;
use super::{Incoming, to_map};
use crate::owed::Debt;
use crate::{Control, Headers};
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::StatusCode;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Bytes of a request's body that are read and dropped behind an answer, and how long.
const DISCARD: usize = 1 << 20;
const MOMENT: Duration = Duration::from_secs(1);

/// A stream of a client.
#[derive(Debug)]
pub struct ClientStream {
    respond: RefCell<SendResponse<Piece>>,
    body: Incoming,
    /// Its request is a head alone: the h2 crate takes a lock to say so.
    is_bare: bool,
    /// The client waits for `100 Continue`.
    continue_first: Cell<bool>,
    /// Bytes of the body that came.
    received: Cell<u64>,
    /// Bytes that were read for nothing.
    discarded: Cell<usize>,
    control: Rc<Control>,
    debt: Debt,
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.debt.answer(&self.control.owed);
    }
}

impl AsRef<Incoming> for ClientStream {
    fn as_ref(&self) -> &Incoming {
        &self.body
    }
}

impl ClientStream {
    /// A stream that has begun.
    pub fn new(respond: SendResponse<Piece>, body: RecvStream, control: &Rc<Control>) -> Rc<Self> {
        let body = Incoming::new(body);
        Rc::new(Self {
            respond: RefCell::new(respond),
            is_bare: body.is_end(),
            body,
            continue_first: Cell::new(false),
            received: Cell::new(0),
            discarded: Cell::new(0),
            control: control.clone(),
            debt: Debt::default(),
        })
    }

    /// Bytes of the body that came.
    pub fn body_received(&self) -> u64 {
        self.received.get()
    }

    /// Notes that the client sends its body only once it is told to.
    pub fn expects_continue(&self) {
        self.continue_first.set(true);
    }

    /// Ready when the client has reset the stream, or the connection ended.
    pub fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>> {
        self.respond.borrow_mut().poll_reset(cx)
    }

    /// Sends an interim answer (1xx). One that cannot go is no loss.
    pub fn interim(&self, status: StatusCode, headers: &Headers) {
        let mut answer = http::Response::new(());
        *answer.status_mut() = status;
        *answer.headers_mut() = to_map(headers);
        let _ = self.respond.borrow_mut().send_informational(answer);
    }

    /// Sends the head of the answer.
    pub fn answer(
        &self,
        head: http::Response<()>,
        ended: bool,
    ) -> Result<SendStream<Piece>, h2::Error> {
        self.continue_first.set(false);
        self.debt.answer(&self.control.owed);
        self.respond.borrow_mut().send_response(head, ended)
    }

    /// Turns the stream away as if it had never come.
    pub fn refuse(&self) {
        self.respond.borrow_mut().send_reset(Reason::REFUSED_STREAM);
    }

    /// Ends the stream without an answer.
    pub fn close(&self) {
        self.debt.answer(&self.control.owed);
        self.respond.borrow_mut().send_reset(Reason::INTERNAL_ERROR);
    }

    /// Whether nothing more comes of the request.
    pub fn is_end(&self) -> bool {
        self.is_bare || self.body.is_end()
    }

    /// Reads and drops what comes of the request's body; ready at its end, or when it is too much.
    pub fn poll_discard(&self, cx: &mut Context<'_>) -> Poll<()> {
        while self.discarded.get() <= DISCARD {
            let Some(Ok(data)) = ready!(self.body.poll_data(cx)) else { break };
            self.discarded.set(self.discarded.get() + data.len());
            let size = data.len();
            let _ = self.body.with_body(|body| body.flow_control().release_capacity(size));
        }
        Poll::Ready(())
    }

    /// Does so for a moment behind an answer that is complete. What is left open when the stream is dropped is reset
    /// (RFC 9113 section 8.1), and some clients that read answer and reset at once lose the answer (libcurl 7.88).
    pub async fn discard_rest(&self) {
        if !self.is_end() {
            // Whether it ended or time did: the stream may go now.
            let _ = tokio::time::timeout(MOMENT, poll_fn(|cx| self.poll_discard(cx))).await;
        }
    }
}

impl BodyStream for Rc<ClientStream> {
    /// A client that waits for permission gets it now.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let data = self.body.poll_data(cx);
        if self.continue_first.take() && data.is_pending() {
            self.interim(StatusCode::CONTINUE, &Headers::default());
        }
        self.debt.waits(&self.control.owed, data.is_pending());
        if let Poll::Ready(Some(Ok(data))) = &data {
            self.control.owed.came(data.len());
            self.received.set(self.received.get() + data.len() as u64);
        }
        data
    }

    fn with_body<T>(&mut self, act: impl FnOnce(&mut RecvStream) -> T) -> T {
        self.body.with_body(act)
    }

    fn is_end(&self) -> bool {
        ClientStream::is_end(self)
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
