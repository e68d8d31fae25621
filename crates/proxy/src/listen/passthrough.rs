//! TLS connections that are not ended here but carried on to a Service (compat/behaviour.md section 19).

use crate::connection::Connection;
use crate::generation::{Generation, Onward};
use crate::told::About;
use crate::under_way;
use crate::worker::Worker;
use model::ServerName;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use stream::Held;
use stream::client_hello::{self, Wish};
use stream::onward::{self, NoWay};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use upstream::{Group, Unfinished};
use wire::backlog::Backlog;
use wire::{Control, Io};

/// What is told of who got no place, or lost it.
const FULL: &str = "TLS connections are turned away or ended for others: as many as may be are carried on (docs/limits.md)";

/// What a connection that is carried on holds: about two buffers of 8 KiB. By itself it is not worth an end: it goes
/// with all others of whoever's namespace holds most, and nobody who holds more by far goes for a flood of these.
const TAKES: usize = 15 << 10;
const _: () = assert!(TAKES < under_way::WORTH);
/// What lies at least for a client that takes nothing: a buffer of ours, and what the system has for it.
const LIES: usize = 64 << 10;

/// Where the client's server name leads, if its host is passed through. Nothing is taken off the connection.
pub(super) async fn wished(tcp: &TcpStream, generation: &Generation) -> io::Result<Option<Onward>> {
    let limit = generation.global().limits.header_timeout;
    Ok(match timeout(limit, client_hello::peek(tcp)).await?? {
        Wish::Name(name) => generation.passthrough.get(&ServerName::new(name)).cloned(),
        Wish::Nothing | Wish::Unknown => None,
    })
}

/// Takes a place for the connection and carries it on, until both sides have ended it, somebody else has the place, or
/// it is told to end.
pub(super) async fn pass(
    client: Io,
    connection: &Connection,
    worker: &Worker,
    onward: &Onward,
) -> io::Result<()> {
    let control = &connection.control;
    let mut ends = Ends { io: client, control };
    let client = Booked::new(&mut ends.io, control);
    let cut = poll_fn(|cx| if control.poll_cut(cx) { Poll::Ready(()) } else { Poll::Pending });
    tokio::select! {
        passed = in_place(client, connection, worker, onward) => passed,
        () = cut => Ok(()),
    }
}

/// The same, whatever it is told.
async fn in_place(
    client: impl AsyncRead + AsyncWrite + Unpin,
    connection: &Connection,
    worker: &Worker,
    onward: &Onward,
) -> io::Result<()> {
    let own = SocketAddr::from((Ipv4Addr::UNSPECIFIED, worker.listen.https_port));
    let at = connection.door().unwrap_or(own);
    let from = connection.counted_as();
    let Some(place) = worker.shared.carried.wait(&onward.namespace, at, from).await else {
        tell(worker, &onward.group, FULL, None);
        return Ok(());
    };
    // Both ends go as they are told to before anybody hears of it here.
    let lost = async {
        place.lost().await;
        connection.control.reset();
    };
    tokio::select! {
        carried = carry(client, connection, worker, (onward, &place)) => carried,
        () = lost => {
            tell(worker, &onward.group, FULL, None);
            Ok(())
        }
    }
}

/// One end of a connection that is carried on: it goes with a reset where the connection is told to, and else the
/// system does not keep for long what it does not take.
struct Ends<'a> {
    io: Io,
    control: &'a Control,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.io.leaves(self.control);
    }
}

/// A client's connection that is carried on, in the book of what is held: what moves is noted there, too, so that where
/// memory is short the silent ones go first, and those whose clients leave lying what comes for them.
struct Booked<'a, C> {
    client: C,
    control: &'a Control,
    /// Whether something lies for the client.
    lies: bool,
}

impl<'a, C> Booked<'a, C> {
    fn new(client: C, control: &'a Control) -> Self {
        control.under_way.hold(TAKES);
        Self { client, control, lies: false }
    }

    fn lies(&mut self, lies: bool) {
        match (std::mem::replace(&mut self.lies, lies), lies) {
            (false, true) => self.control.backlog.hold(LIES),
            (true, false) => self.control.backlog.forget(LIES),
            _ => {}
        }
    }
}

/// So much came and went.
fn moves(book: &Backlog, bytes: usize) {
    book.hold(bytes);
    book.release(bytes);
}

impl<C> Drop for Booked<'_, C> {
    fn drop(&mut self) {
        self.lies(false);
        self.control.under_way.forget(TAKES);
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Booked<'_, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.client).poll_read(cx, buffer);
        let came = buffer.filled().len() - before;
        moves(&self.control.under_way, came);
        read
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Booked<'_, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.client).poll_write(cx, bytes);
        self.lies(written.is_pending());
        if let Poll::Ready(Ok(count)) = written {
            moves(&self.control.under_way, count);
            moves(&self.control.backlog, count);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_shutdown(cx)
    }
}

/// Carries the connection on; under TLS of its own, where that is asked for.
async fn carry(
    client: impl AsyncRead + AsyncWrite + Unpin,
    connection: &Connection,
    worker: &Worker,
    (Onward { group, tls, namespace, tires }, place): (&Onward, &Held),
) -> io::Result<()> {
    let patience = tires.then(|| worker.generation().global().streams.idle);
    let (tcp, _own) = match onward::onward(|| group.pick(), connection.hops()).await {
        Ok(way) => way,
        Err(NoWay { what, error }) => {
            tell(worker, group, what, error.as_ref());
            return Ok(());
        }
    };
    let io = match tls {
        None => Io::Plain(tcp),
        Some(profile) => {
            let unfinished = Unfinished::of(&worker.pool, namespace, connection.cause());
            let shaken = Box::pin(upstream::secure(tcp, profile, unfinished)).await;
            shaken.map_err(io::Error::other).inspect_err(|error| {
                tell(worker, group, "TLS towards a backend fails", Some(error));
            })?
        }
    };
    let mut upstream = Ends { io, control: &connection.control };
    Box::pin(place.pipe(client, &mut upstream.io, patience)).await
}

/// The line of the error log, once a minute for each upstream and reason: a stranger makes as many connections as there
/// is time for.
fn tell(worker: &Worker, group: &Group, what: &'static str, error: Option<&io::Error>) {
    let upstream = &group.id;
    if let Some(line) =
        worker.shared.told.line(Some(&upstream.as_str().into()), About::Carried(what))
    {
        let error = error.map(tracing::field::display);
        tracing::warn!(%upstream, error, before = line.left_out, "{what} (told once a minute)");
    }
}

#[cfg(test)]
mod tests {
    use super::{Booked, Ends, LIES, TAKES};
    use rustix::net::sockopt::{socket_linger, tcp_user_timeout};
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use std::pin::Pin;
    use std::task::{Context, Waker};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};
    use tokio::net::{TcpListener, TcpStream};
    use wire::{Control, Io, backlog};

    #[tokio::test]
    async fn what_an_end_does_not_take_stays_for_little_time_or_goes_with_a_reset() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        for (resets, wanted) in [(false, (None, 30_000)), (true, (Some(Duration::ZERO), 0))] {
            let tcp = TcpStream::connect(address).await.expect("it listens");
            let same = tcp.as_fd().try_clone_to_owned().expect("another handle");
            let control = Control::default();
            if resets {
                control.reset();
            }
            drop(Ends { io: Io::Plain(tcp), control: &control });
            let linger = socket_linger(&same).expect("known");
            assert_eq!((linger, tcp_user_timeout(&same).expect("a number")), wanted);
        }
    }

    #[tokio::test]
    async fn what_is_carried_on_is_in_the_book_with_what_moves_of_it() {
        let (control, (mut client, near)) = (Control::default(), duplex(64));
        let mut near = Booked::new(near, &control);
        client.write_all(b"question").await.expect("there is room");
        near.read_exact(&mut [0; 8]).await.expect("it comes");
        near.write_all(b"answers").await.expect("there is room");
        control.under_way.look();
        assert_eq!((control.under_way.held(), control.under_way.speed()), (TAKES, 15));
        drop(near);
        assert_eq!(control.under_way.held(), 0);
    }

    #[tokio::test]
    async fn whose_client_takes_nothing_is_among_those_that_leave_things_lying() {
        let (control, (mut client, near)) = (Control::default(), duplex(64));
        let mut near = Booked::new(near, &control);
        let mut cx = Context::from_waker(Waker::noop());
        near.write_all(&[7; 64]).await.expect("there is room");
        control.backlog.look();
        assert!(Pin::new(&mut near).poll_write(&mut cx, &[7; 8]).is_pending());
        assert!(Pin::new(&mut near).poll_write(&mut cx, &[7; 8]).is_pending());
        assert_eq!(control.backlog.held(), LIES);
        control.backlog.look();
        control.backlog.look();
        assert_eq!(backlog::worst([&control].into_iter(), |one| &one.backlog).len(), 1);
        client.read_exact(&mut [0; 64]).await.expect("it lies there");
        near.write_all(&[7; 8]).await.expect("there is room");
        assert_eq!(control.backlog.held(), 0);
        near.write_all(&[7; 56]).await.expect("there is room");
        assert!(Pin::new(&mut near).poll_write(&mut cx, &[7; 8]).is_pending());
        drop(near);
        assert_eq!(control.backlog.held(), 0, "it ended");
    }
}
