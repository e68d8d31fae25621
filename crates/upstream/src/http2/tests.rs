//! The clocks of a request over HTTP/2, with a real session over loopback and a paused clock.

use super::{Claim, Part, Sent, Taken, TwoWay, WayOut, part_of};
use crate::TryError;
use bytes::Bytes;
use model::policy::Timeouts;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, Sleep, sleep_until};
use wire::http2::Guarded;
use wire::{Body, BodyError, BodySource, Frame, Io, Length, Timer};

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    send: Duration::from_secs(30),
    read: Duration::from_secs(60),
};

/// A body of so many pieces, with a pause before each.
#[derive(Debug)]
struct Drip {
    pieces: u32,
    size: usize,
    pause: Duration,
    next: Pin<Box<Sleep>>,
}

impl Drip {
    fn body(pieces: u32, size: usize, pause: Duration) -> Body {
        Body::from_source(Self {
            pieces,
            size,
            pause,
            next: Box::pin(sleep_until(Instant::now() + pause)),
        })
    }
}

impl BodySource for Drip {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        if self.pieces == 0 {
            return Poll::Ready(Ok(None));
        }
        ready!(self.next.as_mut().poll(cx));
        self.pieces -= 1;
        self.next.as_mut().reset(Instant::now() + self.pause);
        Poll::Ready(Ok(Some(Frame::Data(vec![0; self.size].into()))))
    }

    fn length(&self) -> Length {
        Length::Unknown
    }
}

/// What a server does with a request.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    AnswersAtTheEnd,
    ReadsAndSaysNothing,
    ReadsNothing,
}

async fn serve(listener: TcpListener, server: Server) {
    let (tcp, _) = listener.accept().await.expect("a connection");
    let mut session = h2::server::handshake(tcp).await.expect("HTTP/2");
    while let Some(Ok((request, mut respond))) = session.accept().await {
        spawn_local(async move {
            let mut body = request.into_body();
            if server == Server::ReadsNothing {
                return std::future::pending().await;
            }
            while let Some(Ok(data)) = body.data().await {
                body.flow_control().release_capacity(data.len()).expect("it was taken");
            }
            if server == Server::ReadsAndSaysNothing {
                return std::future::pending().await;
            }
            respond.send_response(http::Response::new(()), true).expect("the client waits");
        });
    }
}

/// The status of the answer, and the second in which it came or was given up.
async fn ask(server: Server, mut body: Body) -> (Result<u16, TryError>, u64) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let tcp = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("it listens");
    // What waits to be sent until something is acknowledged would wait for another clock.
    tcp.set_nodelay(true).expect("it is connected");
    spawn_local(serve(listener, server));
    let (io, frames) = Guarded::upstream(Io::Plain(tcp));
    let (sender, connection) =
        h2::client::Builder::new().handshake::<_, Bytes>(io).await.expect("HTTP/2");
    spawn_local(async move { drop(connection.await) });
    let mut sender = sender.ready().await.expect("there is room");
    let request = http::Request::post("http://a.test/").body(()).expect("a request");
    let (answer, stream) = sender.send_request(request, false).expect("it goes out");
    let claim = Claim::of_one(frames);
    let way_out = WayOut { stream, pending: None, trailers: None, claim, session: Sent::default() };
    let mut taken = Taken::default();
    let exchange = TwoWay { answer, way_out, body: &mut body, sent: false, taken: &mut taken };
    let began = Instant::now();
    let answer = exchange.run(&Timer::new(TIMEOUTS.connect), TIMEOUTS).await;
    (answer.map(|(answer, _)| answer.status().as_u16()), began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_body_may_come_for_longer_than_an_answer_may_be_waited_for() {
    let body = Drip::body(30, 100, Duration::from_secs(10));
    let (status, second) = LocalSet::new().run_until(ask(Server::AnswersAtTheEnd, body)).await;
    assert_eq!((status.ok(), second), (Some(200), 300));
}

#[tokio::test(start_paused = true)]
async fn the_answer_has_its_time_from_the_end_of_the_request_on() {
    let body = Drip::body(3, 100, Duration::from_secs(50));
    let (answer, second) = LocalSet::new().run_until(ask(Server::ReadsAndSaysNothing, body)).await;
    assert!(matches!(answer, Err(TryError::Timeout("reading the head of the answer"))));
    assert_eq!(second, 150 + TIMEOUTS.read.as_secs());
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_takes_nothing_is_given_up_after_the_time_for_sending() {
    let body = Drip::body(9, 60_000, Duration::ZERO);
    let (answer, second) = LocalSet::new().run_until(ask(Server::ReadsNothing, body)).await;
    assert!(matches!(answer, Err(TryError::Timeout("sending the request"))));
    assert_eq!(second, TIMEOUTS.send.as_secs());
}

/// A small body that is there after so many turns of its thread.
#[derive(Debug)]
struct After(u32);

impl BodySource for After {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        match self.0.checked_sub(1) {
            Some(turns) => {
                self.0 = turns;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(Ok(None)),
        }
    }

    fn length(&self) -> Length {
        Length::Unknown
    }
}

#[tokio::test]
async fn a_small_message_that_comes_a_read_after_its_head_shares_a_session() {
    let head = http::Request::post("http://a.test/").body(()).expect("a request");
    for (turns, part) in [(0, Part::Bytes(0)), (1, Part::Bytes(0)), (2, Part::Any)] {
        let mut body = Body::from_source(After(turns));
        assert_eq!(part_of(&head, &mut body).await.ok(), Some(part), "after {turns}");
    }
}
