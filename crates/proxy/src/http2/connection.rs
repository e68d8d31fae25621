//! An HTTP/2 connection: its streams are served side by side by tasks of its thread.

use super::answer::Turn;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::generation::Generation;
use crate::snippet::Heads;
use crate::worker::{Entry, Worker};
use h2::Reason;
use http::StatusCode;
use model::KeepAlive;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::Instant;
use wire::http2::{
    AllIncoming, ClientFrames, ClientStream, Guarded, Held, Piece, Refused, Rules, judge,
};
use wire::{Control, Io, Request, Timer, Wear, lane};

type Session = h2::server::Connection<Guarded, Piece>;

/// Streams reset by errors of the client before the connection ends (MadeYouReset, CVE-2025-8671).
const LOCAL_RESETS: usize = 100;
/// Streams reset before they were taken up (rapid reset, CVE-2023-44487).
const PENDING_RESETS: usize = 20;
/// Bytes of a body that may come before anybody takes them.
const WINDOW: u32 = 64 << 10;
/// Bytes of answers held for each stream; for all of a connection see [`Held`].
const SEND_BUFFER: usize = 128 << 10;
/// How long a client may take to hear that the connection ends: a round trip, however slow.
const GRACE: Duration = Duration::from_secs(5);
/// What a stream costs that comes after that.
const LATE: i64 = 10;

/// Serves a client until the connection ends. How it begins is boxed: it holds room for that no longer.
pub(crate) async fn serve(io: Io, entry: Entry) {
    let Entry { connection, worker } = &entry;
    let (guarded, frames) = Guarded::client(io, &connection.control);
    let begins = begin(guarded, worker.generation(), &connection.control);
    let Some(session) = Box::pin(begins).await else { return };
    let held = Held::new(connection.control.clone());
    Streams::new(connection.clone(), worker.clone(), frames, held).run(session).await;
}

/// None where it does not begin in time, or has to end before: who waits for the preface hears of that.
async fn begin(
    guarded: Guarded,
    generation: Arc<Generation>,
    control: &Control,
) -> Option<Box<Session>> {
    let global = generation.global();
    // Bodies that nobody takes leave their windows to all others of the connection.
    let all = WINDOW.saturating_mul(global.http2_streams).clamp(1 << 20, i32::MAX as u32);
    let handshake = h2::server::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(all)
        .max_concurrent_streams(global.http2_streams)
        .max_header_list_size(u32::try_from(generation.heads.total).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(PENDING_RESETS)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(Some(LOCAL_RESETS))
        .handshake(guarded);
    let ends = async {
        poll_fn(|cx| {
            let ends = control.poll_cut(cx) || control.poll_closing(cx);
            if ends { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        // A preface may be there of which the event loop has not heard: one turn of it will tell.
        yield_now().await;
    };
    let handshake = tokio::time::timeout(global.limits.header_timeout, handshake);
    let begun = tokio::select! {
        // Who has begun hears which of its requests were taken up.
        biased;
        begun = handshake => begun,
        () = ends => return None,
    };
    match begun {
        Ok(Ok(session)) => Some(Box::new(session)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "HTTP/2 did not start");
            None
        }
        Err(_) => {
            tracing::debug!("HTTP/2 did not start in time");
            None
        }
    }
}

/// The streams of a connection.
struct Streams {
    connection: Rc<Connection>,
    worker: Rc<Worker>,
    frames: Rc<ClientFrames>,
    held: Rc<Held>,
    /// One more than the streams in flight.
    load: Rc<()>,
    head_timer: Timer,
    /// Those whose requests have bodies.
    uploads: AllIncoming<ClientStream>,
    /// How much of a tenth of its age and its requests it gives away, in 256ths: connections that began together would
    /// end together, and all of their clients' requests wait for the same handshakes (gRPC's MAX_CONNECTION_AGE does
    /// the same for the same reason).
    early: u8,
    /// Since the client was told that the connection ends.
    ending: Option<Ending>,
}

struct Ending {
    since: Instant,
    /// Streams that came all the same.
    late: u32,
}

impl Ending {
    fn is_overdue(&self) -> bool {
        self.since.elapsed() >= GRACE
    }
}

enum Event {
    Stream(Rc<ClientStream>, Result<Box<Request>, Box<Refused>>, Arc<Generation>),
    Quiet,
    Flood,
    Closing,
    /// It was asked to end at once, or has ended.
    Over,
}

impl Streams {
    fn new(
        connection: Rc<Connection>,
        worker: Rc<Worker>,
        frames: Rc<ClientFrames>,
        held: Rc<Held>,
    ) -> Self {
        let early = u8::try_from(worker.numbers.below(256)).unwrap_or(0);
        Self {
            connection,
            worker,
            frames,
            held,
            load: Rc::new(()),
            head_timer: Timer::new(Duration::from_secs(60)),
            uploads: AllIncoming::default(),
            early,
            ending: None,
        }
    }

    async fn run(mut self, mut session: Box<Session>) {
        let timer = Timer::new(Duration::from_secs(60));
        loop {
            match self.next(&mut session, &timer).await {
                Event::Stream(stream, request, generation) => {
                    self.take_up(stream, request, generation, &mut session);
                }
                Event::Flood => return shut(session, Reason::ENHANCE_YOUR_CALM).await,
                Event::Quiet | Event::Closing if self.ending.is_none() => self.end(&mut session),
                Event::Quiet => return shut(session, Reason::NO_ERROR).await,
                Event::Closing | Event::Over => return,
            }
        }
    }

    /// Tells the client that the connection ends. It may take the news to heart by acknowledging the PING that comes
    /// with it; who does not has [`GRACE`].
    fn end(&mut self, session: &mut Session) {
        if self.ending.is_none() {
            self.ending = Some(Ending { since: Instant::now(), late: 0 });
            session.graceful_shutdown();
        }
    }

    /// What happens next on the connection.
    async fn next(&self, session: &mut Session, timer: &Timer) -> Event {
        let mut waits = false;
        poll_fn(|cx| {
            if self.connection.control.poll_cut(cx) {
                return Poll::Ready(Event::Over);
            }
            // Its streams know better than itself whose it is.
            lane::take(self.connection.lane.get());
            let accepted = session.poll_accept(cx);
            if self.frames.budget.is_spent() {
                return Poll::Ready(Event::Flood);
            }
            if self.frames.loose.is_scattered() {
                self.uploads.gather();
                self.frames.loose.gathered();
            }
            match accepted {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    let (head, body) = request.into_parts();
                    let stream = ClientStream::new(respond, body, &self.connection.control);
                    if !stream.is_end() {
                        self.uploads.add(&stream);
                    }
                    let generation = self.worker.generation();
                    let rules = rules_of(&generation);
                    let request = self
                        .connection
                        .with_known_authority(|known| judge(head, &stream, rules, known));
                    return Poll::Ready(Event::Stream(stream, request.map(Box::new), generation));
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Event::Over),
                Poll::Pending => {}
            }
            // What only those need who wait is not asked for each stream.
            if !std::mem::replace(&mut waits, true) {
                timer.reset(self.patience());
            }
            self.tell_of_head();
            if self.head_is_late(cx) {
                return Poll::Ready(Event::Flood);
            }
            if self.ending.is_none() && self.connection.control.poll_closing(cx) {
                return Poll::Ready(Event::Closing);
            }
            let busy = Rc::strong_count(&self.load) > 1;
            let overdue = self.ending.as_ref().is_some_and(Ending::is_overdue);
            if overdue && !busy {
                return Poll::Ready(Event::Quiet);
            }
            if timer.poll(cx).is_ready() {
                if !busy {
                    return Poll::Ready(Event::Quiet);
                }
                timer.reset(self.patience());
                let _ = timer.poll(cx);
            }
            Poll::Pending
        })
        .await
    }

    /// Whether so many requests, or its age, are enough for the connection.
    fn is_worn(&self, requests: u32, most: KeepAlive) -> bool {
        let most = Wear { requests: most.http2_requests, age: most.age }.less(self.early);
        most.is_reached(requests.into(), self.connection.since)
    }

    /// How long the connection may be idle.
    fn patience(&self) -> Duration {
        if self.ending.is_some() {
            return GRACE;
        }
        self.worker.generation().global().keep_alive.idle.max(Duration::from_secs(1))
    }

    /// A head that has begun and is not whole counts as over HTTP/1: where memory is short it has little time.
    fn tell_of_head(&self) {
        let (control, head) = (&self.connection.control, &self.frames.head);
        let is_begun = head.since().is_some();
        let longest = || self.worker.generation().heads.total;
        control.head.set(if is_begun { head.held(longest()) } else { 0 });
        if is_begun != (control.unfinished.get() > 0) {
            control.unfinished.set(u8::from(is_begun));
        }
    }

    /// Whether a head that began did not end in time.
    fn head_is_late(&self, cx: &mut Context<'_>) -> bool {
        let Some(since) = self.frames.head.since() else { return false };
        let limit = self.worker.generation().global().limits.header_timeout;
        let left = limit.saturating_sub(since.elapsed());
        if left.is_zero() {
            return true;
        }
        // Timers round up: one that is set anew when it is due would never fire.
        self.head_timer.reset(left);
        self.head_timer.poll(cx).is_ready()
    }

    /// A stream has begun.
    fn take_up(
        &mut self,
        stream: Rc<ClientStream>,
        request: Result<Box<Request>, Box<Refused>>,
        generation: Arc<Generation>,
        session: &mut Session,
    ) {
        let requests = self.connection.requests.get().saturating_add(1);
        self.connection.requests.set(requests);
        let global = generation.global();
        if let Some(ending) = &mut self.ending {
            ending.late += 1;
            if ending.is_overdue() || ending.late > global.http2_streams.saturating_mul(2) {
                self.frames.budget.spend(LATE);
                return stream.refuse();
            }
        }
        let head = request.as_deref().unwrap_or_else(|refused| &refused.request);
        let under_way = self.worker.takes_up(&self.connection, head);
        if under_way.is_none() || self.is_worn(requests, global.keep_alive) {
            self.end(session);
        }
        let load = self.load.clone();
        let turn = Turn::new(stream, self.held.clone(), self.frames.budget.clone());
        let (connection, worker) = (self.connection.clone(), self.worker.clone());
        // Boxed: who makes tasks moves them ten times, and this one is of kilobytes. Made where it stays, at that.
        let room = Box::new_uninit();
        let answering = Box::write(room, async move {
            let _witness = worker.witness(connection.peer, connection.serial);
            let is_clean = match request {
                Ok(request) => {
                    let mut exchange = Exchange::new(*request, connection, worker, generation);
                    if under_way.is_some() {
                        turn.serve(&mut exchange).await
                    } else {
                        turn.turn_away(&mut exchange, StatusCode::SERVICE_UNAVAILABLE);
                        true
                    }
                }
                Err(refused) => {
                    let Refused { status, request } = *refused;
                    let mut exchange = Exchange::refused(request, connection, worker, generation);
                    turn.turn_away(&mut exchange, status);
                    true
                }
            };
            if is_clean {
                turn.discard_rest().await;
            }
            drop((load, under_way));
        });
        tokio::task::spawn_local(lane::in_turn(Box::into_pin(answering)));
    }
}

/// What a Configuration says about requests.
fn rules_of(generation: &Generation) -> Rules {
    let Heads { names, .. } = generation.heads;
    Rules {
        underscores: names.underscores,
        drop_odd: names.drop_odd,
        body_timeout: generation.global().limits.body_timeout,
    }
}

/// Ends a connection at once, with a reason.
async fn shut(mut session: Box<Session>, reason: Reason) {
    session.abrupt_shutdown(reason);
    let closed = poll_fn(|cx| session.poll_closed(cx));
    // A client that does not read gets no reason.
    let _ = tokio::time::timeout(Duration::from_secs(1), closed).await;
}

#[cfg(test)]
mod tests {
    use super::begin;
    use crate::compile::Compiler;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::sync::Arc;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use wire::http2::Guarded;
    use wire::{Control, Io};

    #[tokio::test]
    async fn who_has_begun_just_as_it_is_told_to_end_is_heard_first() {
        let certificate = tls::never_shown().expect("a certificate");
        let generation = Compiler::default().nothing(certificate).expect("nothing is taken");
        let generation = Arc::new(generation);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        for number in 0..16 {
            let mut client = TcpStream::connect(address).await.expect("it listens");
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
            client.write_all(preface).await.expect("written");
            let (ours, _) = listener.accept().await.expect("a connection");
            let control = Rc::new(Control::default());
            control.close_when_idle();
            let (guarded, _frames) = Guarded::client(Io::Plain(ours), &control);
            let begun = begin(guarded, generation.clone(), &control).await;
            assert!(begun.is_some(), "{number}");
        }
    }
}
