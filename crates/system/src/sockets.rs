//! Listening sockets: how one is opened, what to do about an address that cannot be had, and how connections are
//! accepted. Every port of the process is opened here.

use shares::Lines;
use socket2::{Domain, Protocol, Socket, Type};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

/// Connections that may wait to be accepted.
pub const BACKLOG: i32 = 4096;

/// Pause after a failed accept, mostly for want of descriptors: trying again at once would only burn the processor.
pub const PAUSE: Duration = Duration::from_millis(50);

/// All addresses of the machine, of IPv4 and of IPv6.
pub const EVERYWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// What a socket is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Opening {
    /// UDP; otherwise TCP.
    pub datagrams: bool,
    /// Others may listen at the same address and port: other threads (SO_REUSEPORT).
    pub shared: bool,
    /// The machine may get the address later (IP_FREEBIND).
    pub ahead: bool,
}

impl Opening {
    /// For TCP, and for nobody else.
    pub const ALONE: Self = Self { datagrams: false, shared: false, ahead: false };
    /// For TCP, one of several.
    pub const SHARED: Self = Self { datagrams: false, shared: true, ahead: false };

    /// Binds a socket that does not block. It does not listen yet: [`BACKLOG`]. An address of IPv6 takes nothing of
    /// IPv4.
    ///
    /// # Errors
    /// What the system says: [`lacks_ipv6`] and [`remedy`] know what it means.
    pub fn bind(self, address: SocketAddr) -> io::Result<Socket> {
        let (kind, protocol) = if self.datagrams {
            (Type::DGRAM, Protocol::UDP)
        } else {
            (Type::STREAM, Protocol::TCP)
        };
        let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        // For UDP it would share the port with somebody else.
        socket.set_reuse_address(!self.datagrams)?;
        socket.set_reuse_port(self.shared)?;
        if self.ahead && address.is_ipv6() {
            socket.set_freebind_v6(true)?;
        } else if self.ahead {
            socket.set_freebind_v4(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(socket)
    }
}

/// Listens at one address. All addresses of IPv6 (`::`) take IPv4 as well, and are those of IPv4 alone where the
/// machine has no IPv6.
///
/// # Errors
/// What the system says.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let bound = match TcpListener::bind(address) {
        Err(error) if address.ip() == EVERYWHERE[1] && lacks_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
        }
        other => other,
    };
    let listener = bound?;
    // Whoever asks whether this process lives waits a second where there is no place in the queue.
    Socket::from(listener.try_clone()?).listen(BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Whether an address of IPv6 could not be had since the machine has no IPv6.
pub fn lacks_ipv6(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable)
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

/// What to do about an address that cannot be had. `choose` says how another port is chosen, `check` what the address
/// comes from.
pub fn remedy(error: &io::Error, choose: &str, check: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("another program uses the port: stop it or {choose}")
        }
        io::ErrorKind::PermissionDenied => {
            format!("ports below 1024 need the capability NET_BIND_SERVICE: grant it or {choose}")
        }
        _ => format!("check {check}"),
    }
}

/// Whose address it is, where places or tries are shared among clients: nobody has fewer than 2^64 of IPv6.
pub fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)))
        }
        old => old,
    }
}

/// Something that accepts connections.
pub trait Accept {
    /// A connection, and who it is from.
    type Connection;

    /// The next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

impl Accept for tokio::net::TcpListener {
    type Connection = (tokio::net::TcpStream, SocketAddr);

    async fn next(&self) -> io::Result<Self::Connection> {
        self.accept().await
    }
}

impl Accept for tokio::net::UnixListener {
    type Connection = tokio::net::UnixStream;

    async fn next(&self) -> io::Result<Self::Connection> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// The next connection. Errors are about one connection, or pass: they are told to `failed`, and after a [`PAUSE`] it
/// is tried again.
pub async fn accept<L: Accept>(listener: &L, mut failed: impl FnMut(&io::Error)) -> L::Connection {
    loop {
        match listener.next().await {
            Ok(connection) => return connection,
            Err(error) => {
                failed(&error);
                #[expect(
                    clippy::disallowed_methods,
                    reason = "nothing tells when descriptors are free again"
                )]
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A listener, and what was told of its errors: while descriptors are short there is one after each [`PAUSE`].
#[derive(Debug)]
pub struct Acceptor<L> {
    listener: L,
    lines: Lines,
}

impl<L: Accept> Acceptor<L> {
    /// Nothing is told yet.
    pub fn new(listener: L) -> Self {
        Self { listener, lines: Lines::new(std::time::Instant::now()) }
    }

    /// The next connection, as by [`accept`]. One error a minute is told, with how many were not since the one before.
    pub async fn next(&mut self, mut tell: impl FnMut(&io::Error, u64)) -> L::Connection {
        accept(&self.listener, |error| {
            if let Some(line) = self.lines.line(std::time::Instant::now(), 1) {
                tell(error, line.left_out);
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn port(socket: &Socket) -> SocketAddr {
        socket.local_addr().expect("it is bound").as_socket().expect("an address of IP")
    }

    #[test]
    fn a_port_is_shared_only_with_those_who_share_it() {
        let first = Opening::SHARED.bind(ANY).expect("a free port");
        let second = Opening::SHARED.bind(port(&first)).expect("the same port");
        assert_eq!(port(&first), port(&second));
        first.listen(BACKLOG).expect("it listens");
        let error = Opening::ALONE.bind(port(&first)).expect_err("it is not shared");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let told = remedy(&error, "choose one with --http-port", "--http-port");
        assert_eq!(told, "another program uses the port: stop it or choose one with --http-port");
    }

    #[test]
    fn as_many_wait_in_the_queue_of_a_port_as_in_that_of_traffic() {
        let listener = listen(ANY).expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        // Nobody accepts. One more than the standard library's queue would be refused or left waiting.
        let wait = Duration::from_secs(1);
        let connect = |_| std::net::TcpStream::connect_timeout(&at, wait).expect("there is room");
        let all: Vec<_> = (0..200).map(connect).collect();
        assert_eq!(all.len(), 200);
    }

    #[test]
    fn datagrams_share_nothing() {
        let datagrams = Opening { datagrams: true, ..Opening::ALONE };
        let first = datagrams.bind(ANY).expect("a free port");
        datagrams.bind(port(&first)).expect_err("it is taken");
    }

    #[test]
    fn an_address_that_the_machine_does_not_have_may_come_later() {
        // For documentation (RFC 5737): nobody has it.
        let address = SocketAddr::from(([192, 0, 2, 1], 0));
        let error = Opening::ALONE.bind(address).expect_err("nobody has it");
        assert!(lacks_ipv6(&error), "{error}");
        Opening { ahead: true, ..Opening::ALONE }.bind(address).expect("ahead of the address");
    }

    /// Fails twice as a process without descriptors does, then there is a connection.
    struct Busy(Cell<u8>);

    // The test's runtime has one thread.
    impl Accept for Busy {
        type Connection = ();

        fn next(&self) -> impl Future<Output = io::Result<()>> + Send {
            let left = self.0.replace(self.0.get().saturating_sub(1));
            let errno = rustix::io::Errno::MFILE.raw_os_error();
            std::future::ready(match left {
                0 => Ok(()),
                _ => Err(io::Error::from_raw_os_error(errno)),
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_accepted_is_tried_again_after_a_pause() {
        let began = tokio::time::Instant::now();
        let mut failures = 0;
        accept(&Busy(Cell::new(2)), |_| failures += 1).await;
        assert_eq!((failures, began.elapsed() / 2 >= PAUSE), (2, true));
    }
}
