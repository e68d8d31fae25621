//! Free ports of this machine.

use std::net::{TcpListener, TcpStream};

/// A TCP port of 127.0.0.1 that nothing listens on. It has just ended a connection: for a minute the system gives it to
/// nobody who does not ask for it by number, so that no connection of another test takes it meanwhile.
///
/// # Panics
/// When the machine has no port left.
#[must_use]
pub fn free() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the system has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let client = TcpStream::connect(address).expect("somebody listens");
    let (server, _) = listener.accept().expect("a client is there");
    // Who closes first keeps the address in TIME-WAIT (RFC 9293 section 3.6.1).
    drop(server);
    drop(listener);
    drop(client);
    address.port()
}
