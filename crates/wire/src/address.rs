//! Addresses as they are meant.

use std::net::{IpAddr, SocketAddr};

/// IPv4 addresses that arrive on an IPv6 socket as what they are.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(ip) => SocketAddr::new(ip.to_canonical(), address.port()),
        IpAddr::V4(_) => address,
    }
}
