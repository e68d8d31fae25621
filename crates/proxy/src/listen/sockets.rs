//! Binds the listeners: for each thread its own, sharing the port (SO_REUSEPORT).

use crate::shadow::Shadow;
use model::Outside;
use socket2::Socket;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use system::sockets::{BACKLOG, EVERYWHERE, Opening, lacks_ipv6, remedy};

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
    /// `--bind-address`; none: what the ConfigMap says, or all.
    pub addresses: Vec<IpAddr>,
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
        addresses: listen.addresses.clone(),
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
    let all = listen.addresses.is_empty();
    let addresses = if all { &EVERYWHERE[..] } else { &listen.addresses };
    let mut chosen = port;
    let mut threads: Vec<Vec<Socket>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, sockets) in threads.iter_mut().enumerate() {
        let first = number == 0;
        for ip in addresses {
            let address = SocketAddr::new(*ip, chosen);
            match is_free(address, first).and_then(|()| Opening::SHARED.bind(address)) {
                Ok(socket) => {
                    let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket());
                    chosen = bound.map_or(chosen, |bound| bound.port());
                    sockets.push(socket);
                }
                // A machine without IPv6 is served over IPv4 alone.
                Err(error)
                    if (all || addresses.len() > 1)
                        && *ip == EVERYWHERE[1]
                        && lacks_ipv6(&error) => {}
                Err(source) => {
                    let remedy = remedy(
                        &source,
                        &format!("choose one with {flag}"),
                        &format!("{flag} and --bind-address"),
                    );
                    return Err(BindError { address, remedy, source });
                }
            }
        }
    }
    Ok((threads, chosen))
}

/// SO_REUSEPORT shares a port with whoever else sets it, another Fairway for one: the first thread's sockets are tried
/// without it.
fn is_free(address: SocketAddr, first: bool) -> io::Result<()> {
    if !first || address.port() == 0 {
        return Ok(());
    }
    Opening::ALONE.bind(address).map(drop)
}

impl Sockets {
    /// Lets connections come in at all of them or at none; they wait until the thread accepts them.
    pub(crate) fn open(&self) -> io::Result<()> {
        let all = || self.http.iter().chain(&self.https);
        let opened = all().try_for_each(|socket| socket.listen(BACKLOG));
        if opened.is_err() {
            // Such a socket listens no more, and may again (tcp(7) of Linux). Of one that did not, it fails.
            all().for_each(|socket| drop(socket.shutdown(Shutdown::Read)));
        }
        opened
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
