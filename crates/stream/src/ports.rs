//! Sockets of TCP and UDP services: one for each address, bound without sharing the port.

use model::Transport;
use socket2::Socket;
use std::io;
use std::net::{IpAddr, SocketAddr};
use system::sockets::{BACKLOG, EVERYWHERE, Opening, lacks_ipv6};

/// Sockets on `port` of every address; none in `addresses` means all, of IPv4 and IPv6. They may be had before the
/// machine has the address (`ahead`, for Gateways).
pub(crate) fn open(
    transport: Transport,
    port: u16,
    addresses: &[IpAddr],
    ahead: bool,
) -> io::Result<Vec<Socket>> {
    let addresses = if addresses.is_empty() { &EVERYWHERE[..] } else { addresses };
    let datagrams = transport == Transport::Udp;
    // The port of an own address may be that of HTTP on all addresses; this one goes before.
    let opening = Opening { datagrams, shared: ahead && !datagrams, ahead };
    let mut sockets = Vec::new();
    for ip in addresses {
        match opening.bind(SocketAddr::new(*ip, port)) {
            Ok(socket) => {
                if !datagrams {
                    socket.listen(BACKLOG)?;
                }
                sockets.push(socket);
            }
            // A machine without IPv6 is served over IPv4 alone.
            Err(error) if *ip == EVERYWHERE[1] && lacks_ipv6(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}
