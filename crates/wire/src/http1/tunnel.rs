//! After a 101 the connection carries something else: bytes both ways until one side ends or both are silent. Where it
//! is WebSocket, the end of the process is told to both sides before it comes.

use super::transport::Client;
use super::websocket::{Frames, GOING_AWAY, GOING_AWAY_MASKED};
use crate::backlog::Backlog;
use crate::io::Io;
use crate::turn;
use crate::{Control, Timer, Upgraded};
use bytes::{Buf, BytesMut};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Bytes that passed through a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnel {
    /// From the client.
    pub received: u64,
    /// To the client.
    pub sent: u64,
}

/// Bytes one direction holds before its receiver must take them.
const HELD: usize = 64 << 10;

/// How long a client may take to read the farewell.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long the other side may be silent once one has said that nothing more comes from it. nginx ends both at once.
const ONE_SIDED: Duration = Duration::from_secs(5);

/// Moves bytes until both sides are done, one of them fails, or both are silent for the upstream's read time-out. At
/// the end of the process a `websocket` gets a close frame, code 1001, as soon as no other frame is on its way.
pub async fn tunnel(
    mut client: Client,
    upgraded: Upgraded,
    control: &Control,
    websocket: bool,
) -> Tunnel {
    let (client, read_ahead) = client.parts();
    let read_ahead = std::mem::take(read_ahead);
    let timer = Timer::new(upgraded.idle);
    let mut down = Direction::new(upgraded.buffer, websocket);
    let mut up = Direction::new(read_ahead, websocket);
    let (mut told, mut one_sided) = (false, false);
    let (mut lies, mut waits) = (Kept::of(&control.backlog), Kept::of(&control.under_way));
    let mut upstream = upgraded.io;
    poll_fn(|cx| {
        if control.poll_cut(cx) {
            return Poll::Ready(());
        }
        if websocket && !told && control.is_over() {
            told = true;
            (up.farewell, down.farewell) = (Some(GOING_AWAY_MASKED), Some(GOING_AWAY));
        }
        let moved = [up.step(cx, client, &mut upstream), down.step(cx, &mut upstream, client)];
        lies.is(down.held.len());
        waits.is(up.held.len());
        if moved.contains(&Step::Failed) || (up.ended && down.ended) {
            return Poll::Ready(());
        }
        let ends = !std::mem::replace(&mut one_sided, up.ended || down.ended) && one_sided;
        if ends || moved.contains(&Step::Moved) {
            let idle = if one_sided { upgraded.idle.min(ONE_SIDED) } else { upgraded.idle };
            timer.reset(idle.max(Duration::from_millis(1)));
        }
        timer.poll(cx).map(|_| ())
    })
    .await;
    if told {
        // What the client still says would turn our end into a reset, and the farewell would be lost.
        let mut waste = BytesMut::new();
        let rest = poll_fn(|cx| {
            while let Ok(1..) = ready!(client.poll_read_head(cx, &mut waste)) {
                waste.clear();
            }
            Poll::Ready(())
        });
        let _ = timer.within(FAREWELL, rest).await;
    }
    [&*client, &upstream].iter().for_each(|side| side.leaves(control));
    Tunnel { received: up.moved, sent: down.moved }
}

/// What a direction holds, where connections are asked for it when memory is short.
struct Kept<'a> {
    ledger: &'a Backlog,
    size: usize,
}

impl<'a> Kept<'a> {
    fn of(ledger: &'a Backlog) -> Self {
        Self { ledger, size: 0 }
    }

    fn is(&mut self, size: usize) {
        match size.checked_sub(self.size) {
            Some(more) => self.ledger.hold(more),
            None => self.ledger.release(self.size - size),
        }
        self.size = size;
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.ledger.forget(self.size);
    }
}

struct Direction {
    held: BytesMut,
    moved: u64,
    eof: bool,
    ended: bool,
    /// Where frames end, if there are any.
    frames: Option<Frames>,
    /// The last frame, to be sent as soon as one ends.
    farewell: Option<&'static [u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    Moved,
    Failed,
}

impl Direction {
    fn new(held: BytesMut, websocket: bool) -> Self {
        let mut frames = websocket.then(Frames::default);
        frames.iter_mut().for_each(|frames| frames.pass(&held));
        Self { held, moved: 0, eof: false, ended: false, frames, farewell: None }
    }

    /// Says the last word, if it is time and no frame is on its way.
    fn take_leave(&mut self) {
        let between = self.frames.as_ref().is_some_and(Frames::is_between);
        if between
            && !self.eof
            && let Some(farewell) = self.farewell.take()
        {
            self.held.extend_from_slice(farewell);
            self.eof = true;
        }
    }

    /// Moves what can be moved without waiting.
    fn step(&mut self, cx: &mut Context<'_>, from: &mut Io, to: &mut Io) -> Step {
        let mut step = Step::Idle;
        while !self.ended {
            self.take_leave();
            let before = self.held.len();
            let written = to.poll_write_all(cx, &mut self.held);
            self.moved += (before - self.held.remaining()) as u64;
            if self.held.len() < before {
                step = Step::Moved;
            }
            match written {
                Poll::Ready(Err(_)) => return Step::Failed,
                Poll::Pending if self.held.len() >= HELD || self.eof => return step,
                Poll::Pending | Poll::Ready(Ok(())) => {}
            }
            if self.eof {
                match to.poll_close(cx) {
                    Poll::Ready(_) => self.ended = true,
                    Poll::Pending => return step,
                }
                continue;
            }
            let read = match turn::poll_room(cx) {
                Poll::Ready(()) => from.poll_read_head(cx, &mut self.held),
                Poll::Pending => Poll::Pending,
            };
            match read {
                Poll::Ready(Ok(0)) => self.eof = true,
                Poll::Ready(Ok(count)) => {
                    turn::moved(count);
                    step = Step::Moved;
                    let fresh = &self.held[self.held.len() - count..];
                    self.frames.iter_mut().for_each(|frames| frames.pass(fresh));
                }
                Poll::Ready(Err(_)) => return Step::Failed,
                Poll::Pending => {
                    return match to.poll_flush_all(cx) {
                        Poll::Ready(Err(_)) => Step::Failed,
                        _ => step,
                    };
                }
            }
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::{HELD, ONE_SIDED, tunnel};
    use crate::http1::Client;
    use crate::io::Io;
    use crate::{Control, Room, Upgraded};
    use bytes::BytesMut;
    use std::io::ErrorKind;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    /// Both ends of a connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound"));
        let (client, accepted) = tokio::join!(client, listener.accept());
        (client.expect("connected"), accepted.expect("accepted").0)
    }

    #[tokio::test]
    async fn what_a_client_leaves_lying_counts_for_its_connection() {
        let ((mut client_end, ours), (mut upstream, theirs)) = (pair().await, pair().await);
        let control = Rc::<Control>::default();
        let client = Client::new(Io::Plain(ours), BytesMut::new(), control.clone());
        let place = Room::new(1).lend(&"".into());
        let idle = Duration::from_secs(60);
        let upgraded = Upgraded { io: Io::Plain(theirs), buffer: BytesMut::new(), idle, place };
        let fill = async {
            let piece = vec![0; 64 << 10];
            while control.backlog.held() < HELD {
                // The tunnel reads no more once it holds so much.
                let written =
                    tokio::time::timeout(Duration::from_millis(10), upstream.write(&piece));
                drop(written.await);
            }
            control.reset();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = fill => {}
            moved = tunnel(client, upgraded, &control, false) => assert!(moved.sent > 0),
        }
        assert_eq!(control.backlog.held(), 0, "it ended");
        let read = client_end.read_to_end(&mut Vec::new()).await;
        assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::ConnectionReset));
    }

    #[tokio::test(start_paused = true)]
    async fn where_one_side_has_ended_the_other_one_goes_on_but_is_not_waited_for_in_silence() {
        let ((mut peer, ours), (mut upstream, theirs)) = (pair().await, pair().await);
        let control = Rc::<Control>::default();
        let client = Client::new(Io::Plain(ours), BytesMut::new(), control.clone());
        let place = Room::new(1).lend(&"".into());
        let idle = Duration::from_secs(60);
        let upgraded = Upgraded { io: Io::Plain(theirs), buffer: BytesMut::new(), idle, place };
        peer.shutdown().await.expect("it says that it is at its end");
        let begun = Instant::now();
        let tunnel = tunnel(client, upgraded, &control, false);
        let answers = async {
            let heard = upstream.read(&mut [0; 8]).await;
            assert_eq!(heard.expect("it hears of that"), 0);
            upstream.write_all(b"late").await.expect("it answers");
            peer.read_exact(&mut [0; 4]).await.expect("what comes is passed on");
        };
        let (moved, ()) = tokio::join!(tunnel, answers);
        assert_eq!(moved.sent, 4);
        assert!(begun.elapsed() < 2 * ONE_SIDED, "it waited {:?}", begun.elapsed());
    }
}
