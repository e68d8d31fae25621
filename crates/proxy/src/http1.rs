//! The loop of an HTTP/1 connection: a head, a request, an answer, and again.

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::generation::Generation;
use crate::phases::{self, program};
use crate::snippet::Heads;
use crate::worker::{Entry, Worker};
use bytes::{Buf, Bytes, BytesMut};
use http::{Method, StatusCode};
use model::Global;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use wire::http1::write::{self, Closing, response_framing, response_head};
use wire::http1::{
    BadRequest, Client, Framing, Limits, NoHead, Received, RequestHead, Tunnel, read_refused,
    tunnel,
};
use wire::{
    Body, BodyError, Frame, Io, Length, Outbox, Patience, Pipe, Request, Response, Source, Version,
    Wear, Written, header_too_large,
};

/// Bytes of an unread request body that are read and dropped to keep a connection.
const DISCARD: u64 = 1 << 20;
/// How long that may take, without anything coming and on the whole (nginx: lingering_timeout, lingering_time).
const DISCARD_IDLE: Duration = Duration::from_secs(5);
const DISCARD_TIME: Duration = Duration::from_secs(30);

/// Where a request is served: on which connection, by which generation, on which thread.
#[derive(Clone, Copy)]
struct Seat<'a> {
    connection: &'a Rc<Connection>,
    generation: &'a Arc<Generation>,
    worker: &'a Rc<Worker>,
}

/// What a generation allows of heads.
pub(crate) fn limits_of(generation: &Generation) -> Limits {
    let Heads { line, count, names, .. } = generation.heads;
    Limits { line, count, underscores: names.underscores, drop_odd: names.drop_odd }
}

/// Serves a client until the connection ends.
#[expect(
    clippy::manual_async_fn,
    reason = "it would hold its arguments twice, for all that is idle"
)]
pub(crate) fn serve(mut client: Rc<Client>, entry: Entry) -> impl Future<Output = ()> {
    async move {
        loop {
            let head = {
                let Entry { worker, connection } = &entry;
                next_head(&client, patience(connection, worker), worker)
            };
            let head = head.await;
            // Boxed: a connection that is idle holds nothing of what a request needs.
            client = match Box::pin(busy(client, head, &entry)).await {
                Some(Left::Stays(client)) => client,
                Some(Left::Unread(client)) if Box::pin(discard_rest(&client)).await => client,
                Some(Left::Unread(client) | Left::Lingers(client)) => {
                    return Box::pin(client.linger()).await;
                }
                None => return,
            };
            client.rest();
            client.take_turn().await;
        }
    }
}

/// How long a connection that has had several requests keeps the room for the next one.
const WARM: Duration = Duration::from_secs(1);

/// A connection after a request, if it does not end there; of the request nothing is held any more.
enum Left {
    /// It waits for the next one.
    Stays(Rc<Client>),
    /// The same, once what is left of the last one's body is read past.
    Unread(Rc<Client>),
    /// It ends as soon as the client has read what was written.
    Lingers(Rc<Client>),
}

/// Answers a request, and those that follow it closely.
async fn busy(
    mut client: Rc<Client>,
    mut head: Result<Received, NoHead>,
    Entry { connection, worker }: &Entry,
) -> Option<Left> {
    loop {
        connection.requests.set(connection.requests.get().saturating_add(1));
        // That of its arrival: the connection may have been idle while another one came into force.
        let generation = worker.generation();
        let seat = Seat { connection, generation: &generation, worker };
        let left = match begin(&client, head, seat) {
            // Here, and no function of its own: all that a request needs would be moved into that.
            Ok(Begun { request, wants_to_stay }) => {
                let has_interims = request.version == Version::Http11;
                let mut exchange =
                    Exchange::new(request, connection.clone(), worker.clone(), generation.clone());
                exchange.interims = has_interims.then(|| client.interims());
                match answer(&client, &mut exchange).await {
                    Some(mut response) => {
                        let keep = wants_to_stay
                            && may_stay(&client, &response, seat)
                            && (client.body_is_done() || can_discard(&client, &response).await);
                        let (exchange, response) = (&mut exchange, &mut response);
                        deliver(client, exchange, response, keep, generation.global()).await
                    }
                    None => {
                        // The client went away: nginx logs 499.
                        exchange.log.status = 499;
                        phases::finish(&mut exchange, client.body_received());
                        None
                    }
                }
            }
            Err(Refused { status: None, .. }) => None,
            // Boxed, as what else few requests need: room for it would be moved with every one of them.
            Err(Refused { status: Some(status), head }) => {
                Box::pin(refuse(&client, Response::page(status), &head, seat)).await;
                Some(Left::Lingers(client))
            }
        }?;
        let Left::Stays(stays) = left else { return Some(left) };
        client = stays;
        drop(generation);
        let idle = patience(connection, worker);
        if connection.requests.get() == 1 || idle <= WARM {
            connection.forget();
            connection.keep_idle_for(Some(idle));
            return Some(Left::Stays(client));
        }
        head = {
            let (mut waits, mut next) = (false, pin!(next_head(&client, WARM, worker)));
            let head = poll_fn(|cx| {
                let head = next.as_mut().poll(cx);
                waits |= head.is_pending();
                head
            });
            let head = head.await;
            if !waits {
                client.take_turn().await;
            }
            head
        };
        if matches!(head, Err(NoHead::Idle)) {
            connection.forget();
            connection.keep_idle_for(Some(idle - WARM));
            return Some(Left::Stays(client));
        }
    }
}

/// How long a connection may be silent before its next request begins.
fn patience(connection: &Connection, worker: &Worker) -> Duration {
    worker.with_generation(|generation| match connection.requests.get() {
        0 => generation.global().limits.header_timeout,
        _ => connection.take_idle().unwrap_or(generation.global().keep_alive.idle),
    })
}

/// The next head, if it begins within `idle`.
fn next_head<'a>(
    client: &'a Client,
    idle: Duration,
    worker: &Worker,
) -> impl Future<Output = Result<Received, NoHead>> + use<'a> {
    let (limit, sizes) = worker.with_generation(|generation| {
        let heads = &generation.heads;
        (generation.global().limits.header_timeout, (heads.line, heads.total))
    });
    client.head(idle, limit, sizes)
}

/// Answers whoever speaks HTTP in clear to a port for TLS, and ends the connection (nginx: 497).
pub(crate) async fn refuse_plain(io: Io, connection: Rc<Connection>, worker: &Rc<Worker>) {
    let client = Rc::new(Client::new(io, BytesMut::new(), connection.control.clone()));
    let generation = worker.generation();
    let limits = &generation.global().limits;
    let sizes = (generation.heads.line, generation.heads.total);
    let head = client.head(limits.header_timeout, limits.header_timeout, sizes).await;
    connection.requests.set(1);
    let (head, page) = match head {
        Ok(mut head) => {
            let page = match head.parse(limits_of(&generation), b"") {
                Ok(_) => Response::plain_to_tls(),
                Err(_) => Response::page(StatusCode::BAD_REQUEST),
            };
            (head.bytes, Some(page))
        }
        Err(no_head) => (client.begun(), status_for(no_head).map(Response::page)),
    };
    if let Some(page) = page {
        let seat = Seat { connection: &connection, generation: &generation, worker };
        refuse(&client, page, &head, seat).await;
        drop(head);
        client.linger().await;
    }
}

/// The status for whoever sent no head, if an answer is owed.
fn status_for(no_head: NoHead) -> Option<StatusCode> {
    Some(match no_head {
        NoHead::Over | NoHead::Idle => return None,
        NoHead::Slow => StatusCode::REQUEST_TIMEOUT,
        NoHead::TooLong { in_line: true } => StatusCode::URI_TOO_LONG,
        NoHead::TooLong { in_line: false } => header_too_large(),
        NoHead::Malformed => StatusCode::BAD_REQUEST,
    })
}

/// A request that can be answered.
struct Begun {
    request: Request,
    /// Whether its client asks for more on the same connection.
    wants_to_stay: bool,
}

/// What came instead of a request.
struct Refused {
    /// The status for whoever sent it, if an answer is owed.
    status: Option<StatusCode>,
    head: Bytes,
}

impl Refused {
    fn new(status: StatusCode, head: Bytes) -> Self {
        Self { status: Some(status), head }
    }
}

/// Reads a head, if one came and may be answered.
#[inline]
fn begin(
    client: &Rc<Client>,
    head: Result<Received, NoHead>,
    Seat { connection, generation, worker }: Seat<'_>,
) -> Result<Begun, Refused> {
    let mut head = head.map_err(|no_head| {
        let status = status_for(no_head);
        let head = status.map(|_| client.begun()).unwrap_or_default();
        Refused { status, head }
    })?;
    if worker.refuses_request(connection) {
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, head.bytes));
    }
    let limits = limits_of(generation);
    let parsed = connection.with_known_authority(|known| head.parse(limits, known));
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(BadRequest(status)) => return Err(Refused::new(status, head.bytes)),
    };
    let RequestHead { method, target, line, version, authority, headers, .. } = parsed;
    let idle = generation.global().limits.body_timeout;
    let body = client.start_body(parsed.framing, parsed.expects_continue, idle);
    let head_size = head.bytes.len();
    client.control.head.set(head_size);
    let line = Some(line);
    let request = Request { method, target, line, version, authority, headers, body, head_size };
    Ok(Begun { request, wants_to_stay: parsed.keep_alive })
}

/// The answer, unless the client goes away before it is there, or has to.
async fn answer(client: &Rc<Client>, exchange: &mut Exchange) -> Option<Response> {
    let mut serving = pin!(phases::serve(exchange));
    poll_fn(|cx| {
        // First: who must end would be told that its request is at fault, since the body of it ends here.
        if client.poll_cut(cx) {
            return Poll::Ready(None);
        }
        let response = serving.as_mut().poll(cx);
        client.pass_interims(cx);
        if let Poll::Ready(response) = response {
            return Poll::Ready(Some(response));
        }
        client.poll_gone(cx).map(|()| None)
    })
    .await
}

/// Whether the connection may stay after this answer.
fn may_stay(client: &Client, response: &Response, seat: Seat<'_>) -> bool {
    let (global, connection) = (seat.generation.global(), seat.connection);
    let most = Wear { requests: global.keep_alive.requests, age: global.keep_alive.age };
    !response.close
        && !client.control.is_closing()
        && seat.worker.keeps_connections()
        && !global.keep_alive.idle.is_zero()
        && !most.is_reached(connection.requests.get().into(), connection.since)
        && !client.awaits_continue()
}

/// Writes an answer and what follows it.
async fn deliver(
    client: Rc<Client>,
    exchange: &mut Exchange,
    response: &mut Response,
    keep: bool,
    global: &Global,
) -> Option<Left> {
    if program::closes(response) {
        exchange.log.status = response.status.as_u16();
        phases::finish(exchange, client.body_received());
        return None;
    }
    let version = exchange.request.version;
    let framing = response_framing(response, version, exchange.request.method == Method::HEAD);
    let closing = Closing { framing, keep_alive: keep && framing != Framing::Close };
    let interims = client.take_interims();
    let mut head = Written::with_room(512 + interims.len() + response.headers.added());
    head.extend_from_slice(&interims);
    response_head(&mut head, response, &closing, &exchange.worker.clock);
    exchange.log.status = response.status.as_u16();
    let mut writer = Writer::new(&client, global, exchange.wants_trailers());
    let head_size = head.len() as u64;
    if response.status == StatusCode::SWITCHING_PROTOCOLS {
        let written = writer.write(head.freeze()).await;
        let body = std::mem::replace(&mut response.body, Body::empty());
        Box::pin(upgrade(client, exchange, body, written.is_ok(), head_size)).await;
        return None;
    }
    let written = writer.message(head, framing, &mut response.body).await;
    exchange.log.sent = writer.sent;
    exchange.log.body_sent = writer.body.min(writer.sent.saturating_sub(head_size));
    let whole = written.is_ok();
    phases::finish(exchange, client.body_received());
    if !whole {
        // An answer that broke off must not look complete: the connection just ends.
        return None;
    }
    Some(match closing.keep_alive {
        true if client.body_is_done() => Left::Stays(client),
        true => Left::Unread(client),
        false => Left::Lingers(client),
    })
}

/// Hands the connection over to both sides' bytes.
async fn upgrade(
    client: Rc<Client>,
    exchange: &mut Exchange,
    body: Body,
    written: bool,
    head_size: u64,
) {
    exchange.release_body();
    let (Ok(upgraded), true) = (body.into_upgraded(), written) else {
        return phases::finish(exchange, 0);
    };
    let control = client.control.clone();
    let websocket = exchange.request.headers.text("upgrade");
    let websocket = websocket.is_some_and(|to| to.eq_ignore_ascii_case("websocket"));
    let Some(client) = Rc::into_inner(client) else { return phases::finish(exchange, 0) };
    let Tunnel { sent, .. } = tunnel(client, upgraded, &control, websocket).await;
    exchange.log.sent = head_size + sent;
    exchange.log.body_sent = sent;
    // What came behind the request is none of it (nginx: $request_length).
    phases::finish(exchange, 0);
}

/// Whether what is left of the request's body will be read past: it is short, as far as is known. An answer that says
/// that the connection stays is kept to.
async fn can_discard(client: &Rc<Client>, response: &Response) -> bool {
    let mut rest = client.rest_of_body();
    match rest.length() {
        Length::Known(left) => left <= DISCARD,
        // Somebody may still read it on behalf of an upstream.
        Length::Unknown if response.source == Source::Upstream => false,
        Length::Unknown => {
            let mut at_hand = pin!(read_past(client, &mut rest));
            poll_fn(|cx| Poll::Ready(matches!(at_hand.as_mut().poll(cx), Poll::Ready(true)))).await
        }
    }
}

/// Reads past a request body that nobody wanted; whether the connection is clean then.
async fn discard_rest(client: &Rc<Client>) -> bool {
    let mut rest = client.rest_of_body();
    let reading = read_past(client, &mut rest);
    tokio::time::timeout(DISCARD_TIME, reading).await.unwrap_or(false)
}

/// Reads a body to its end, if it is short; whether that is reached.
async fn read_past(client: &Client, rest: &mut Body) -> bool {
    let started = client.body_received();
    while client.body_received() - started <= DISCARD {
        match tokio::time::timeout(DISCARD_IDLE, rest.frame()).await {
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => return true,
            Ok(Err(_)) | Err(_) => return false,
        }
    }
    false
}

/// Answers what is not a request; the connection ends then.
async fn refuse(
    client: &Rc<Client>,
    mut response: Response,
    head: &Bytes,
    Seat { connection, generation, worker }: Seat<'_>,
) {
    let request = read_refused(head, limits_of(generation));
    let mut exchange =
        Exchange::refused(request, connection.clone(), worker.clone(), generation.clone());
    response.close = true;
    phases::refused(&mut exchange, &mut response);
    let (version, to_head) = (exchange.request.version, exchange.request.method == Method::HEAD);
    let mut out = Written::with_room(512);
    let closing =
        Closing { framing: response_framing(&response, version, to_head), keep_alive: false };
    response_head(&mut out, &response, &closing, &worker.clock);
    let mut writer = Writer::new(client, generation.global(), false);
    let _ = writer.message(out, closing.framing, &mut response.body).await;
    (exchange.log.status, exchange.log.sent, exchange.log.body_sent) =
        (response.status.as_u16(), writer.sent, writer.body);
    phases::finish(&mut exchange, 0);
}

/// Writes one message.
struct Writer<'a> {
    client: &'a Client,
    patience: Patience,
    sent: u64,
    body: u64,
    trailers: bool,
}

/// The message could not be completed: the client or the sender of its body failed.
struct Broken;

impl<'a> Writer<'a> {
    fn new(client: &'a Client, global: &Global, trailers: bool) -> Self {
        Self {
            client,
            patience: Patience::new(global.limits.send_timeout),
            sent: 0,
            body: 0,
            trailers,
        }
    }

    async fn write(&mut self, data: impl Buf) -> Result<(), Broken> {
        let size = data.remaining() as u64;
        self.client.write(data, &mut self.patience).await.map_err(|_| Broken)?;
        self.sent += size;
        Ok(())
    }

    /// Head and body; the head goes out with the first piece of the body if that is there already.
    async fn message(
        &mut self,
        mut head: Written,
        framing: Framing,
        body: &mut Body,
    ) -> Result<(), Broken> {
        let small = match framing {
            Framing::None => Some(Bytes::new()),
            Framing::Length(_) | Framing::Close => body.take_small(SMALL),
            Framing::Chunked => None,
        };
        if let Some(data) = small {
            self.body += data.len() as u64;
            head.extend_from_slice(&data);
            self.write(&head[..]).await?;
            return self.flush().await;
        }
        let mut outbox = Outbox::default();
        outbox.push(head.freeze());
        loop {
            if let Some(pipe) = self.pipe(framing, body) {
                self.write(std::mem::take(&mut outbox)).await?;
                Box::pin(self.pass(body, pipe)).await?;
                return self.is_as_said(framing, true).then_some(()).ok_or(Broken);
            }
            let ready = poll_fn(|cx| Poll::Ready(body.poll_frame(cx))).await;
            let frame = match ready {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    self.write(std::mem::take(&mut outbox)).await?;
                    self.flush().await?;
                    self.next(body).await
                }
            };
            let ended = match frame {
                Err(_) => {
                    // What is there is the client's; that it is not all of it shows in how the connection ends.
                    self.write(outbox).await?;
                    return Err(Broken);
                }
                Ok(Some(frame)) => self.queue(&mut outbox, frame, framing),
                Ok(None) => {
                    if framing == Framing::Chunked {
                        outbox.push(write::last_chunk(None));
                    }
                    true
                }
            };
            let ended = ended || (matches!(framing, Framing::Length(_)) && body.is_empty());
            if !self.is_as_said(framing, ended) {
                if self.is_as_said(framing, false) {
                    self.write(outbox).await?;
                }
                return Err(Broken);
            }
            if ended || outbox.remaining() >= GATHERED {
                self.write(std::mem::take(&mut outbox)).await?;
            }
            if ended {
                return self.flush().await;
            }
        }
    }

    /// Whether the body is as long as its head says, as far as it has come: else the next answer would make up for what
    /// is missing, or what is too much would be one.
    fn is_as_said(&self, framing: Framing, ended: bool) -> bool {
        match framing {
            Framing::Length(length) if ended => self.body == length,
            Framing::Length(length) => self.body <= length,
            Framing::None | Framing::Chunked | Framing::Close => true,
        }
    }

    /// A pipe for what is left of a body, if nobody has to look at that.
    fn pipe(&self, framing: Framing, body: &Body) -> Option<Pipe> {
        let may_be = matches!(framing, Framing::Length(_)) && self.client.takes_pipes();
        if may_be { Pipe::for_bytes(body.unseen()) } else { None }
    }

    /// Passes the rest of a body on through a pipe.
    async fn pass(&mut self, body: &mut Body, mut pipe: Pipe) -> Result<(), Broken> {
        while body.unseen() > 0 {
            let filled = poll_fn(|cx| match body.poll_fill(&mut pipe, cx) {
                Poll::Pending if self.is_over(cx) => Poll::Ready(Err(BodyError::Aborted)),
                filled => filled,
            });
            filled.await.map_err(|_| Broken)?;
            let size = pipe.held() as u64;
            let written = self.client.write_pipe(&mut pipe, &mut self.patience).await;
            let sent = size - pipe.held() as u64;
            (self.sent, self.body) = (self.sent + sent, self.body + sent);
            written.map_err(|_| Broken)?;
        }
        Ok(())
    }

    /// The next piece of a body that has to be waited for, unless the connection must end.
    async fn next(&self, body: &mut Body) -> Result<Option<Frame>, BodyError> {
        poll_fn(|cx| match body.poll_frame(cx) {
            Poll::Pending if self.is_over(cx) => Poll::Ready(Err(BodyError::Aborted)),
            frame => frame,
        })
        .await
    }

    /// Whether the connection must end, or its client has gone: an upstream may be silent for hours. Apart: it is only
    /// asked where there is time.
    #[inline(never)]
    fn is_over(&self, cx: &mut Context<'_>) -> bool {
        self.client.poll_cut(cx) || self.client.poll_gone(cx).is_ready()
    }

    /// Queues a piece of the body; whether it was the last.
    fn queue(&mut self, outbox: &mut Outbox, frame: Frame, framing: Framing) -> bool {
        match frame {
            Frame::Data(data) => {
                self.body += data.len() as u64;
                if framing == Framing::Chunked {
                    write::chunk(outbox, data);
                } else {
                    outbox.push(data);
                }
                false
            }
            Frame::Trailers(trailers) => {
                if framing == Framing::Chunked {
                    outbox.push(write::last_chunk(Some(&trailers).filter(|_| self.trailers)));
                }
                true
            }
        }
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        self.client.flush(&mut self.patience).await.map_err(|_| Broken)
    }
}

/// Bytes of a body gathered before they are written.
const GATHERED: usize = 64 << 10;
/// Bytes of a body that go out behind their head as one piece: to copy them costs less than to tell of two.
const SMALL: usize = 2 << 10;

#[cfg(test)]
mod tests {
    use super::Writer;
    use bytes::{Bytes, BytesMut};
    use model::Global;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::task::{Context, Poll};
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use wire::http1::{Client, Framing};
    use wire::{Body, BodyError, BodySource, Control, Frame, Io, Length};

    /// A body of these pieces, the last one first.
    #[derive(Debug)]
    struct Pieces(Vec<&'static [u8]>);

    impl BodySource for Pieces {
        fn poll_frame(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
            Poll::Ready(Ok(self.0.pop().map(|piece| Frame::Data(Bytes::from_static(piece)))))
        }

        fn length(&self) -> Length {
            Length::Unknown
        }
    }

    #[tokio::test]
    async fn an_answer_is_whole_if_its_body_is_as_long_as_its_head_says() {
        for (pieces, whole, came) in [
            (&[&b"lo"[..], b"hel"][..], true, "head hello"),
            (&[b"hel"], false, "head hel"),
            (&[b"hello, you"], false, ""),
        ] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let address = listener.local_addr().expect("bound");
            let mut peer = TcpStream::connect(address).await.expect("it listens");
            let (tcp, _) = listener.accept().await.expect("a connection");
            let client = Client::new(Io::Plain(tcp), BytesMut::new(), Rc::<Control>::default());
            let global = Global::default();
            let mut writer = Writer::new(&client, &global, false);
            let mut body = Body::from_source(Pieces(pieces.to_vec()));
            let head = Bytes::from("head ").into();
            let written = writer.message(head, Framing::Length(5), &mut body).await;
            assert_eq!(written.is_ok(), whole, "{pieces:?}");
            drop(client);
            let mut read = String::new();
            peer.read_to_string(&mut read).await.expect("it ends");
            assert_eq!(read, came);
        }
    }
}
