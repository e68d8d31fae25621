//! Binds the listeners: for each thread its own, sharing the port (SO_REUSEPORT).

use crate::shadow::Shadow;
use model::Outside;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Connections that may wait to be accepted.
pub(super) const BACKLOG: i32 = 4096;

/// Where to listen.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Addresses; none means all, IPv4 and IPv6.
    pub addresses: Vec<IpAddr>,
    /// `--http-port`; 0 lets the system choose.
    pub http_port: u16,
    /// `--https-port`; 0 lets the system choose.
    pub https_port: u16,
    /// `--health-check-path`, which the catch-all server answers.
    pub health_path: String,
    /// `--trace-secret-file`: who has this in a header is told why requests go where they go.
    pub trace_secret: Option<Vec<u8>>,
    /// Where what objects name may lead.
    pub outside: Outside,
}

/// What is known about the listeners once they are bound.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The port for HTTP.
    pub http_port: u16,
    /// The port for HTTPS.
    pub https_port: u16,
    /// The path that the catch-all server answers with 200.
    pub health_path: Arc<str>,
    /// Which requests are followed; nearly always none.
    pub followed: Option<Followed>,
    /// The name of this machine.
    pub hostname: Arc<str>,
}

/// Which requests are followed on their way through the phases.
#[derive(Clone, Debug)]
pub enum Followed {
    /// Those with this secret in a header.
    Asked(Arc<[u8]>),
    /// All: they are copies.
    Copies(Arc<Shadow>),
}

impl Listening {
    /// Where copies are counted, if this process serves nobody.
    pub fn shadow(&self) -> Option<&Arc<Shadow>> {
        match &self.followed {
            Some(Followed::Copies(shadow)) => Some(shadow),
            Some(Followed::Asked(_)) | None => None,
        }
    }
}

/// The sockets of one thread.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// For HTTP.
    pub http: Vec<Socket>,
    /// For HTTPS.
    pub https: Vec<Socket>,
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; {remedy}")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
    remedy: String,
}

/// Binds the sockets of `threads` threads. They do not accept yet.
pub(crate) fn bind(
    listen: &Listen,
    threads: usize,
) -> Result<(Vec<Sockets>, Listening), BindError> {
    let http = bind_port(listen, listen.http_port, "--http-port", threads)?;
    let https = bind_port(listen, listen.https_port, "--https-port", threads)?;
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let listening = Listening {
        health_path: listen.health_path.as_str().into(),
        followed: listen.trace_secret.as_deref().map(|secret| Followed::Asked(secret.into())),
        http_port: http.1,
        https_port: https.1,
        hostname: hostname.into(),
    };
    let sockets = http.0.into_iter().zip(https.0).map(|(http, https)| Sockets { http, https });
    Ok((sockets.collect(), listening))
}

/// The sockets of each thread for one port, and the port.
fn bind_port(
    listen: &Listen,
    port: u16,
    flag: &str,
    threads: usize,
) -> Result<(Vec<Vec<Socket>>, u16), BindError> {
    let everywhere = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let all = listen.addresses.is_empty();
    let addresses = if all { &everywhere[..] } else { &listen.addresses };
    let mut chosen = port;
    let mut threads: Vec<Vec<Socket>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, sockets) in threads.iter_mut().enumerate() {
        let first = number == 0;
        for ip in addresses {
            let address = SocketAddr::new(*ip, chosen);
            match is_free(address, first).and_then(|()| bind_one(address)) {
                Ok(socket) => {
                    let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket());
                    chosen = bound.map_or(chosen, |bound| bound.port());
                    sockets.push(socket);
                }
                // A machine without IPv6 is served over IPv4 alone.
                Err(error)
                    if (all || addresses.len() > 1)
                        && *ip == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                        && is_unsupported(&error) => {}
                Err(source) => {
                    return Err(BindError { address, remedy: remedy(&source, flag), source });
                }
            }
        }
    }
    Ok((threads, chosen))
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable)
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

fn remedy(error: &io::Error, flag: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("another program uses the port: stop it or choose one with {flag}")
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "ports below 1024 need the capability NET_BIND_SERVICE: grant it or choose a port with {flag}"
            )
        }
        _ => format!("check {flag} and --bind-address"),
    }
}

/// SO_REUSEPORT shares a port with whoever else sets it, another Fairway for one: the first thread's sockets are tried
/// without it.
fn is_free(address: SocketAddr, first: bool) -> io::Result<()> {
    if !first || address.port() == 0 {
        return Ok(());
    }
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

pub(super) fn bind_one(address: SocketAddr) -> io::Result<Socket> {
    bind_shared(address, false)
}

/// The same, even where the machine does not have the address yet.
pub(super) fn bind_ahead(address: SocketAddr) -> io::Result<Socket> {
    bind_shared(address, true)
}

fn bind_shared(address: SocketAddr, ahead: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    if ahead && address.is_ipv6() {
        socket.set_freebind_v6(true)?;
    } else if ahead {
        socket.set_freebind_v4(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

impl Sockets {
    /// Lets connections come in; they wait until the thread accepts them.
    pub(crate) fn open(&self) -> io::Result<()> {
        self.http.iter().chain(&self.https).try_for_each(|socket| socket.listen(BACKLOG))
    }

    /// The sockets as listeners of the thread's event loop.
    pub(super) fn listeners(sockets: Vec<Socket>) -> Vec<tokio::net::TcpListener> {
        let listening = sockets.into_iter().filter_map(|socket| {
            let listener = tokio::net::TcpListener::from_std(socket.into());
            listener.inspect_err(|error| tracing::error!(%error, "a listener could not start")).ok()
        });
        listening.collect()
    }
}
