//! Free ports of this machine.

use std::net::TcpListener;

/// A TCP port of 127.0.0.1 that nothing listened on a moment ago.
///
/// # Panics
/// When the machine has no port left.
#[must_use]
pub fn free() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the system has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}
