//! Answers the request of one stream.

use crate::exchange::Exchange;
use crate::phases::{self, program};
use crate::under_way::KeptHeads;
use bytes::{Buf, Bytes};
use h2::{Reason, SendStream};
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderValue, Method, StatusCode};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use wire::http1::write::says_no_length;
use wire::http2::{
    Budget, ClientStream, Held, LIVELY, LONGEST_HEAD, Lead, Piece, poll_send_data, to_map,
};
use wire::{Body, Frame, Headers, Interims, Length, Patience, Response, Timer, error_page};

/// The most of a body that goes with its head, if it is there; and of a head that is not waited for.
const SMALL: usize = 16 << 10;
/// Bytes of a head at most.
const LONGEST: usize = LONGEST_HEAD as usize;
/// Bytes of trailers that are not waited for: those of gRPC with a message. They lie behind the whole body, as no head
/// does.
const FEW: usize = 1 << 10;
/// Bytes that the status, `Date` and `Content-Length` of an answer would take with HTTP/1. `$bytes_sent` counts all
/// lines of the head so, as for requests: how short HPACK makes them is between the session and its client.
const HEAD: u64 = 64;

/// A stream with what it shares with the others of its connection.
pub(super) struct Turn {
    stream: Rc<ClientStream>,
    held: Rc<Held>,
    budget: Rc<Budget>,
    /// Bytes of interim answers that went.
    interims: Cell<usize>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.held.give_back(self.interims.get());
    }
}

/// Why an answer could not be completed.
enum Broken {
    /// The client reset the stream.
    Reset,
    /// Anything else.
    Other,
}

impl Broken {
    fn by(reset: Result<Reason, h2::Error>) -> Self {
        reset.map_or(Self::Other, |_| Self::Reset)
    }
}

impl Turn {
    pub(super) fn new(stream: Rc<ClientStream>, held: Rc<Held>, budget: Rc<Budget>) -> Self {
        Self { stream, held, budget, interims: Cell::default() }
    }

    /// Answers a request; whether all of the answer is sent.
    pub(super) async fn serve(&self, exchange: &mut Exchange) -> bool {
        let interims = Rc::<Interims>::default();
        exchange.interims = Some(interims.clone());
        let outcome = match self.response(exchange, &interims).await {
            Ok(response) => self.deliver(exchange, response).await,
            Err(broken) => {
                exchange.log.status = 499;
                Err(broken)
            }
        };
        match outcome {
            Ok(()) => self.budget.completed(),
            Err(Broken::Reset) => self.budget.reset(),
            Err(Broken::Other) => {}
        }
        phases::finish(exchange, self.stream.body_received());
        outcome.is_ok()
    }

    /// The answer, unless the client goes away before it is there.
    async fn response(
        &self,
        exchange: &mut Exchange,
        interims: &Interims,
    ) -> Result<Response, Broken> {
        let mut serving = pin!(phases::serve(exchange));
        poll_fn(|cx| {
            let response = serving.as_mut().poll(cx);
            let interims = interims.take();
            if response.is_ready() && interims.is_empty() {
                // Whoever sends it hears of a reset.
                return response.map(Ok);
            }
            let reset = self.stream.poll_reset(cx);
            if reset.is_pending() {
                // A client that takes nothing gets no more of them.
                let takes = |size| self.held.takes_interim(&self.interims, size);
                for interim in interims.into_iter().filter(|one| takes(one.headers.size())) {
                    self.stream.interim(interim.status, &interim.headers);
                }
            }
            match response {
                Poll::Ready(response) => Poll::Ready(Ok(response)),
                Poll::Pending => reset.map(|reset| Err(Broken::by(reset))),
            }
        })
        .await
    }

    async fn deliver(&self, exchange: &mut Exchange, mut response: Response) -> Result<(), Broken> {
        exchange.log.status = response.status.as_u16();
        // What nobody has read by now nobody will.
        exchange.release_body();
        if program::closes(&response) {
            self.stream.close();
            return Err(Broken::Other);
        }
        let mut lines = response.headers.size();
        if lines > LONGEST {
            response = phases::too_long(exchange, lines);
            exchange.log.status = response.status.as_u16();
            lines = response.headers.size();
        }
        let is_long = lines > SMALL;
        let (head, mut body, ended) = head_of(exchange, response);
        if is_long {
            let limit = exchange.generation.global().limits.send_timeout;
            self.wait_for_room(limit, |cx| self.stream.poll_reset(cx)).await?;
        }
        let lead = is_long.then(|| self.held.lead(lines));
        let sending = self.stream.answer(head, ended && !is_long);
        let Ok(mut sending) = sending else { return Err(Broken::Other) };
        exchange.log.sent = HEAD + lines as u64;
        if ended {
            // What is held of the head is held as that of a piece.
            let end = is_long.then(|| self.held.piece(Bytes::new()).led_by(lead));
            let sent = end.map_or(Ok(()), |end| sending.send_data(end, true));
            return sent.map_err(|_| Broken::Other);
        }
        if !is_long && let Some(sent) = self.send_at_once(&mut sending, &mut body, exchange) {
            return sent;
        }
        let sent = self.send_body(&mut sending, &mut body, lead, exchange).await;
        if sent.is_err() {
            // An answer that broke off must not look complete.
            sending.send_reset(Reason::INTERNAL_ERROR);
        }
        sent
    }

    /// Waits until the client has taken enough for a long head or for trailers, or resets the stream.
    async fn wait_for_room(
        &self,
        limit: Duration,
        mut poll_reset: impl FnMut(&mut Context<'_>) -> Poll<Result<Reason, h2::Error>>,
    ) -> Result<(), Broken> {
        let (mut patience, timer) = (Patience::new(limit), Timer::new(limit));
        poll_fn(|cx| {
            if let Poll::Ready(reset) = poll_reset(cx) {
                return Poll::Ready(Err(Broken::by(reset)));
            }
            if self.held.poll_room(cx, |_| 0).is_ready() {
                return Poll::Ready(Ok(()));
            }
            patience.poll_exhausted(&timer, cx).map(|_| Err(Broken::Other))
        })
        .await
    }

    /// Sends a small body that is there, if the client takes all of it now: most answers need no more.
    fn send_at_once(
        &self,
        sending: &mut SendStream<Piece>,
        body: &mut Body,
        exchange: &mut Exchange,
    ) -> Option<Result<(), Broken>> {
        if !self.held.has_room() {
            return None;
        }
        let data = body.take_small(SMALL)?;
        sending.reserve_capacity(data.len());
        if sending.capacity() < data.len() {
            body.give_back(vec![Frame::Data(data)]);
            return None;
        }
        let size = data.len() as u64;
        let sent = sending.send_data(self.held.piece(data), true);
        if sent.is_ok() {
            exchange.log.sent += size;
            exchange.log.body_sent += size;
        }
        Some(sent.map_err(|_| Broken::Other))
    }

    async fn send_body(
        &self,
        sending: &mut SendStream<Piece>,
        body: &mut Body,
        mut lead: Option<Lead>,
        exchange: &mut Exchange,
    ) -> Result<(), Broken> {
        let limit = exchange.generation.global().limits.send_timeout;
        let (mut patience, timer) = (Patience::new(limit), Timer::new(limit));
        loop {
            let frame = poll_fn(|cx| {
                if let Poll::Ready(reset) = sending.poll_reset(cx) {
                    return Poll::Ready(Err(Broken::by(reset)));
                }
                if Rc::strong_count(&self.stream) == 1 {
                    // What of the request comes meanwhile must not fill the window of the others.
                    let _ = self.stream.poll_discard(cx);
                }
                let mut reserved = false;
                let room = self.held.poll_room(cx, |cx| {
                    reserved = true;
                    capacity(sending, cx)
                });
                let frame = match room {
                    Poll::Pending => {
                        patience.poll_exhausted(&timer, cx).map(|_| Err(Broken::Other))
                    }
                    Poll::Ready(()) => {
                        patience.progressed(0);
                        body.poll_frame(cx).map_err(|_| Broken::Other)
                    }
                };
                if reserved && frame.is_pending() {
                    // The connection's window is for those who have something to send.
                    sending.reserve_capacity(0);
                }
                frame
            });
            let ended = match frame.await? {
                Some(Frame::Data(data)) => {
                    let (size, last) = (data.len() as u64, !data.is_empty() && body.is_over());
                    let piece = self.held.piece(data).led_by(lead.take());
                    self.send_piece(sending, piece, last, &mut patience, &timer).await?;
                    exchange.log.sent += size;
                    exchange.log.body_sent += size;
                    if last {
                        // It hears that it is at its end, as if there had been one more frame.
                        let heard = poll_fn(|cx| Poll::Ready(body.poll_frame(cx)));
                        drop(heard.await);
                        return Ok(());
                    }
                    continue;
                }
                Some(Frame::Trailers(trailers)) if exchange.wants_trailers() => {
                    let lead = lead.take();
                    return self.send_trailers(sending, &trailers, lead, exchange, limit).await;
                }
                Some(Frame::Trailers(_)) | None => {
                    let end = self.held.piece(Bytes::new()).led_by(lead.take());
                    sending.send_data(end, true)
                }
            };
            return ended.map_err(|_| Broken::Other);
        }
    }

    /// Ends an answer with trailers. Nobody tells when they are gone, so they are held as long as what goes before
    /// them, and wait like a long head until the client has taken enough.
    async fn send_trailers(
        &self,
        sending: &mut SendStream<Piece>,
        trailers: &Headers,
        lead: Option<Lead>,
        exchange: &mut Exchange,
        limit: Duration,
    ) -> Result<(), Broken> {
        let size = trailers.size();
        if size > LONGEST {
            return Err(Broken::Other);
        }
        if lead.is_some() {
            let before = self.held.piece(Bytes::new()).led_by(lead);
            sending.send_data(before, false).map_err(|_| Broken::Other)?;
        }
        if size > FEW {
            KeptHeads::keep(&mut exchange.kept_heads, &exchange.connection, size);
            self.wait_for_room(limit, |cx| sending.poll_reset(cx)).await?;
            let before = self.held.piece(Bytes::new()).led_by(Some(self.held.lead(size)));
            sending.send_data(before, false).map_err(|_| Broken::Other)?;
        }
        sending.send_trailers(to_map(trailers)).map_err(|_| Broken::Other)
    }

    async fn send_piece(
        &self,
        sending: &mut SendStream<Piece>,
        piece: Piece,
        last: bool,
        patience: &mut Patience,
        timer: &Timer,
    ) -> Result<(), Broken> {
        let mut pending = Some(piece);
        poll_fn(|cx| {
            // Asked first: to whoever sends, a stream that was reset is only one that takes nothing.
            if let Poll::Ready(reset) = sending.poll_reset(cx) {
                return Poll::Ready(Err(Broken::by(reset)));
            }
            let left = |pending: &Option<Piece>| pending.as_ref().map_or(0, Piece::remaining);
            let before = left(&pending);
            let written = poll_send_data(sending, &mut pending, last, &self.budget, cx);
            let moved = before - left(&pending);
            if moved > 0 {
                patience.progressed(moved as u64);
            }
            if let Poll::Ready(written) = written {
                return Poll::Ready(written.map_err(|_| Broken::Other));
            }
            patience.poll_exhausted(timer, cx).map(|_| Err(Broken::Other))
        })
        .await
    }

    /// Answers what is no request, or what there is no room for.
    pub(super) fn turn_away(&self, exchange: &mut Exchange, status: StatusCode) {
        let page = error_page(status);
        let mut response = Response::page(status);
        phases::refused(exchange, &mut response);
        exchange.log.status = status.as_u16();
        let (head, _, ended) = head_of(exchange, response);
        if let Ok(mut sending) = self.stream.answer(head, ended) {
            let size = if ended { 0 } else { page.len() as u64 };
            // The client may have gone already.
            if ended || sending.send_data(self.held.piece(page), true).is_ok() {
                (exchange.log.sent, exchange.log.body_sent) = (HEAD + size, size);
            }
        }
        phases::finish(exchange, 0);
    }

    /// Reads past what is left of a request that was answered.
    pub(super) async fn discard_rest(self) {
        self.stream.discard_rest().await;
    }
}

/// The head of an answer, its body, and whether there is none.
fn head_of(exchange: &Exchange, response: Response) -> (http::Response<()>, Body, bool) {
    let to_head = exchange.request.method == Method::HEAD;
    let body = response.body;
    let mut headers = to_map(&response.headers);
    if response.headers.get("date").is_none()
        && let Some(date) = exchange.worker.clock.http_date()
    {
        headers.insert(DATE, date);
    }
    let bodyless = to_head
        || response.status.is_informational()
        || matches!(response.status.as_u16(), 204 | 304);
    let length = match (body.length(), response.announced_length) {
        (_, Some(length)) if bodyless => (!says_no_length(response.status)).then_some(length),
        (Length::Known(length), _) if !bodyless => Some(length),
        _ => None,
    };
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, number(length));
    }
    let mut answer = http::Response::new(());
    *answer.status_mut() = response.status;
    *answer.headers_mut() = headers;
    let ended = bodyless || body.is_empty();
    (answer, body, ended)
}

/// A number as the value of a field.
fn number(number: u64) -> HeaderValue {
    let digits = Bytes::copy_from_slice(itoa::Buffer::new().format(number).as_bytes());
    HeaderValue::from_maybe_shared(digits).unwrap_or_else(|_| number.into())
}

/// How much of a stream could go at once; the task is woken when that grows.
fn capacity(sending: &mut SendStream<Piece>, cx: &mut Context<'_>) -> usize {
    sending.reserve_capacity(LIVELY);
    while let Poll::Ready(Some(Ok(_))) = sending.poll_capacity(cx) {}
    sending.capacity()
}
