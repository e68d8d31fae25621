//! Sockets of TCP and UDP services: one for each address, bound without sharing the port.

use model::Transport;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Connections that wait to be accepted at most.
const BACKLOG: i32 = 4096;

/// Sockets on `port` of every address; none in `addresses` means all, of IPv4 and IPv6.
pub(crate) fn open(
    transport: Transport,
    port: u16,
    addresses: &[IpAddr],
    ahead: bool,
) -> io::Result<Vec<Socket>> {
    let everywhere = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let addresses = if addresses.is_empty() { &everywhere[..] } else { addresses };
    let mut sockets = Vec::new();
    for ip in addresses {
        match one(transport, SocketAddr::new(*ip, port), ahead) {
            Ok(socket) => sockets.push(socket),
            // A machine without IPv6 is served over IPv4 alone.
            Err(error) if *ip == Ipv6Addr::UNSPECIFIED && is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

fn one(transport: Transport, address: SocketAddr, ahead: bool) -> io::Result<Socket> {
    let (kind, protocol) = match transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if transport == Transport::Tcp {
        // For UDP it would share the port with somebody else.
        socket.set_reuse_address(true)?;
    }
    if ahead && transport == Transport::Tcp {
        // The port may be that of HTTP on all addresses; this one goes before.
        socket.set_reuse_port(true)?;
    }
    // A machine may get the address of a Gateway later.
    if ahead && address.is_ipv6() {
        socket.set_freebind_v6(true)?;
    } else if ahead {
        socket.set_freebind_v4(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    if transport == Transport::Tcp {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable)
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

/// What to do about an error of [`open`].
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program uses the port: stop it or choose another one",
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need the capability NET_BIND_SERVICE: grant it or choose another one"
        }
        _ => "check bind-address",
    }
}
