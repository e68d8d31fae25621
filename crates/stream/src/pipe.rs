//! Carries bytes both ways between two connections until both have ended, or nothing moved for too long.

use crate::holders::Side;
use crate::room::Place;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Carries bytes both ways until nothing has moved for as long as `idle`. An end of one direction is passed on, and the
/// other one goes on (half-close). The place knows who takes nothing.
pub(crate) async fn pipe(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    upstream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    (idle, place): (Duration, &Place),
) -> io::Result<()> {
    let (began, moved) = (Instant::now(), AtomicU64::new(0));
    let takes = |side| Some((side, place));
    let mut client =
        Noted { inner: client, began, moved: &moved, over: None, takes: takes(Side::Client) };
    let mut upstream =
        Noted { inner: upstream, began, moved: &moved, over: None, takes: takes(Side::Endpoint) };
    let copying = pin!(copy_bidirectional(&mut client, &mut upstream));
    until_quiet(copying, (began, &moved), idle).await
}

/// Ends with what copies, or once nothing has moved for so long: when something did last is noted in milliseconds from
/// the beginning.
async fn until_quiet(
    mut copying: Pin<&mut impl Future<Output = io::Result<(u64, u64)>>>,
    (began, moved): (Instant, &AtomicU64),
    idle: Duration,
) -> io::Result<()> {
    loop {
        let last = began + Duration::from_millis(moved.load(Ordering::Relaxed));
        tokio::select! {
            copied = &mut copying => return copied.map(|_| ()),
            () = tokio::time::sleep_until(last + idle) => {}
        }
        if began + Duration::from_millis(moved.load(Ordering::Relaxed)) == last {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// Carries bytes both ways as [`pipe`] does, towards a server that ends a connection in its own time: once it has, and
/// the client has taken nothing for so long, it is over.
pub async fn pipe_until_over(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    server: &mut (impl AsyncRead + AsyncWrite + Unpin),
    linger: Duration,
) -> io::Result<()> {
    let (began, moved, over) = (Instant::now(), AtomicU64::new(0), Notify::new());
    let mut client = Noted { inner: client, began, moved: &moved, over: None, takes: None };
    let mut server = Noted { inner: server, began, moved: &moved, over: Some(&over), takes: None };
    let mut copying = pin!(copy_bidirectional(&mut client, &mut server));
    tokio::select! {
        copied = &mut copying => return copied.map(|_| ()),
        () = over.notified() => {}
    }
    until_quiet(copying, (began, &moved), linger).await
}

/// A connection whose moves are noted.
struct Noted<'a, S> {
    inner: &'a mut S,
    began: Instant,
    /// Milliseconds from `began` to the last move, in either direction.
    moved: &'a AtomicU64,
    /// Who is told when all of it was read.
    over: Option<&'a Notify>,
    /// The place that knows whether it takes what waits for it.
    takes: Option<(Side, &'a Place)>,
}

impl<S> Noted<'_, S> {
    fn note(&self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(passed, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut *self.inner).poll_read(cx, buffer);
        if read.is_ready() {
            self.note();
            if buffer.filled().len() == before && buffer.remaining() > 0 {
                self.over.inspect(|over| over.notify_one());
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.inner).poll_write(cx, bytes);
        if written.is_ready() {
            self.note();
        }
        if let Some((side, place)) = self.takes {
            place.took(side, written.is_ready());
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::{pipe, pipe_until_over};
    use crate::holders::Holder;
    use crate::room::{Memory, Place, Room, STALLED};
    use model::{StreamPort, Transport};
    use std::io::ErrorKind;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::sleep;

    const SECOND: Duration = Duration::from_secs(1);

    fn place() -> Place {
        place_of(&Room::new(8))
    }

    fn place_of(room: &Arc<Room>) -> Place {
        let port = StreamPort { transport: Transport::Tcp, number: 1, address: None };
        let whose = Holder::new(&"one".into(), port, IpAddr::V4(Ipv4Addr::LOCALHOST));
        room.now(&whose).expect("there is room")
    }

    #[expect(clippy::disallowed_methods, reason = "the clock is paused, and time is the matter")]
    #[tokio::test(start_paused = true)]
    async fn the_place_knows_whether_an_endpoint_takes_what_its_client_sends() {
        let ((mut client, mut near), (mut far, mut upstream)) = (duplex(1024), duplex(64));
        let room = Room::new(8);
        let place = place_of(&room);
        let lost = place.lost();
        let idle = Duration::from_secs(600);
        tokio::spawn(async move { pipe(&mut near, &mut far, (idle, &place)).await });
        let mut said = [0; 512];
        client.write_all(&said).await.expect("there is room");
        sleep(STALLED + SECOND).await;
        upstream.read_exact(&mut said).await.expect("it comes");
        sleep(SECOND).await;
        room.press(Memory::Short);
        assert_eq!(room.in_use().0, 1, "it has taken all");
        client.write_all(&said).await.expect("there is room");
        sleep(STALLED + SECOND).await;
        room.press(Memory::Short);
        assert_eq!(room.in_use().0, 0);
        lost.await;
    }

    #[tokio::test]
    async fn an_end_of_one_direction_leaves_the_other_one_open() {
        let ((mut client, mut near), (mut far, mut upstream)) = (duplex(64), duplex(64));
        let piping = tokio::spawn(async move {
            pipe(&mut near, &mut far, (Duration::from_secs(600), &place())).await
        });
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut seen = String::new();
        upstream.read_to_string(&mut seen).await.unwrap();
        assert_eq!(seen, "question");
        upstream.write_all(b"answer").await.unwrap();
        drop(upstream);
        let mut seen = String::new();
        client.read_to_string(&mut seen).await.unwrap();
        assert_eq!(seen, "answer");
        piping.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_move_in_either_direction_starts_the_patience_anew() {
        let ((client, mut near), (mut far, mut upstream)) = (duplex(64), duplex(64));
        let begin = tokio::time::Instant::now();
        let idle = Duration::from_secs(10);
        let piping = tokio::spawn(async move { pipe(&mut near, &mut far, (idle, &place())).await });
        tokio::time::advance(Duration::from_secs(8)).await;
        upstream.write_all(b"x").await.unwrap();
        let error = piping.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(begin.elapsed() >= Duration::from_secs(18), "{:?}", begin.elapsed());
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stays_when_the_server_has_ended_is_ended_and_who_is_idle_before_is_not() {
        let ((mut client, mut near), (mut far, mut server)) = (duplex(64), duplex(64));
        let begin = tokio::time::Instant::now();
        let (hour, linger) = (Duration::from_secs(3600), Duration::from_secs(30));
        let piping =
            tokio::spawn(async move { pipe_until_over(&mut near, &mut far, linger).await });
        tokio::task::yield_now().await;
        tokio::time::advance(hour).await;
        server.write_all(b"the end").await.unwrap();
        drop(server);
        let mut seen = String::new();
        client.read_to_string(&mut seen).await.unwrap();
        assert_eq!(seen, "the end");
        let error = piping.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), begin.elapsed()), (ErrorKind::TimedOut, hour + linger));
        drop(client);
    }
}
