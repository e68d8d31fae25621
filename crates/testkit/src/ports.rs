//! Free ports of this machine.

use std::net::Ipv4Addr;
use std::os::fd::IntoRawFd;
use tokio::net::TcpSocket;

/// A TCP port that nothing listens on, at whichever address. This process keeps it until it ends, by a socket that does
/// not listen: so the system gives it to nobody who does not ask for it by number, while a server that asks so gets it,
/// if it lets addresses be reused (`SO_REUSEADDR`) as servers do.
///
/// # Panics
/// When the machine has no port left.
#[must_use]
pub fn free() -> u16 {
    let socket = TcpSocket::new_v4().expect("the system has a socket");
    socket.set_reuseaddr(true).expect("a socket can share its address");
    socket.bind((Ipv4Addr::UNSPECIFIED, 0).into()).expect("the system has a free port");
    let address = socket.local_addr().expect("a bound socket has an address");
    // Kept: nobody closes what it is now.
    let _held = socket.into_raw_fd();
    address.port()
}
