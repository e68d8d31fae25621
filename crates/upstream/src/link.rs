//! The link to an endpoint, over which bytes go, and what becomes of those that the endpoint has not taken.

use std::ops::{Deref, DerefMut};
use wire::Io;

/// What may lie in the system of requests when a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    /// Heads at most.
    Little,
    /// Bodies, all of which were handed over: whoever takes them late may still do so.
    Whole,
    /// A part of one, of which nobody can make anything.
    Part,
}

/// What leads bytes to an endpoint. What that does not take goes with its connection, however this ends: the system
/// would keep it for minutes, while its place is somebody else's.
#[derive(Debug)]
pub struct Link {
    /// None once it has another owner.
    io: Option<Io>,
    lies: Lies,
}

/// Why there is one.
const OWNED: &str = "whoever took it has all that is left of its connection";

impl Link {
    pub(super) fn new(io: Io) -> Self {
        Self { io: Some(io), lies: Lies::Little }
    }

    /// A body begins to go out.
    pub(super) fn begins(&mut self) {
        self.lies = Lies::Part;
    }

    /// Whatever began is handed over.
    pub(super) fn handed_over(&mut self) {
        if self.lies == Lies::Part {
            self.lies = Lies::Whole;
        }
    }

    /// Another handle on it.
    pub(super) fn share(&mut self) -> Io {
        let (io, other) = self.io.take().expect(OWNED).shared();
        self.io = Some(io);
        other
    }

    /// Takes the other handle away again; whether there is none any more.
    pub(super) fn unshare(&mut self) -> bool {
        self.io = self.io.take().and_then(Io::unshared);
        self.io.is_some()
    }

    /// For another owner, who knows what becomes of it.
    pub(super) fn into_io(mut self) -> Io {
        self.io.take().expect(OWNED)
    }
}

impl Deref for Link {
    type Target = Io;

    #[inline]
    fn deref(&self) -> &Io {
        self.io.as_ref().expect(OWNED)
    }
}

impl DerefMut for Link {
    #[inline]
    fn deref_mut(&mut self) -> &mut Io {
        self.io.as_mut().expect(OWNED)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        match (&self.io, self.lies) {
            (None, _) | (_, Lies::Little) => {}
            (Some(io), Lies::Whole) => io.ends(),
            (Some(io), Lies::Part) => io.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Link;
    use crate::{Cause, Head, Outgoing, Pool, Target, Try, TryError, send};
    use bytes::Bytes;
    use http::Method;
    use model::policy::Policy;
    use rustix::net::sockopt::{socket_linger, tcp_user_timeout};
    use std::io::ErrorKind;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use wire::{Body, Io, Length, Room};

    #[tokio::test]
    async fn what_lies_of_requests_goes_at_once_or_soon() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let of_bodies: [fn(&mut Link); 4] = [
            |_| {},
            |link| link.begins(),
            |link| {
                link.begins();
                link.handed_over();
            },
            |link| link.handed_over(),
        ];
        let (none, soon, at_once) = ((None, 0), (None, 30_000), (Some(Duration::ZERO), 0));
        for (does, wanted) in of_bodies.into_iter().zip([none, at_once, soon, none]) {
            for shared in [false, true] {
                let tcp = TcpStream::connect(address).await.expect("it listens");
                let same = tcp.as_fd().try_clone_to_owned().expect("another handle");
                let mut link = Link::new(Io::Plain(tcp));
                does(&mut link);
                let other = shared.then(|| link.share());
                drop(link);
                let linger = socket_linger(&same).expect("known");
                assert_eq!((linger, tcp_user_timeout(&same).expect("a number")), wanted);
                drop(other);
            }
        }
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_leaves_nothing_of_its_body_in_the_system() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        const SIZE: usize = 32 << 20;
        let head = format!("POST / HTTP/1.1\r\nContent-Length: {SIZE}\r\n\r\n");
        let mut policy = Policy::default();
        policy.timeouts.send = Duration::from_millis(10);
        let mut outgoing = Outgoing {
            method: &Method::POST,
            head: Head::Http1(Bytes::from(head).into(), Length::Known(SIZE as u64)),
            body: &mut Body::full(Bytes::from(vec![0; SIZE])),
            upgrade: false,
            interim: &|_| {},
            policy: &policy,
            whose: None,
            cause: Cause::default(),
        };
        let target = Target { address, tls: None };
        let pool = Rc::new(Pool::new(Arc::new(Room::new(9))));
        let journal = Rc::new(Try::new(address));
        let asking = send(&pool, &target, &mut outgoing, &journal);
        let (answer, taken) = tokio::join!(asking, listener.accept());
        let error = answer.map(drop).expect_err("nobody takes it").error;
        assert!(matches!(error, TryError::Timeout(_)), "{error}");
        let (mut tcp, _) = taken.expect("a connection");
        let read = tcp.read_to_end(&mut Vec::new()).await;
        assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::ConnectionReset));
    }
}
