//! What the ConfigMap says about listeners and the threads behind them. Flags go before it.

use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

/// Listeners and threads; they are made when the process starts, so changes count from the next start on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Listeners {
    /// `bind-address`: a family without an address listens on all of its addresses.
    pub addresses: Vec<IpAddr>,
    /// `disable-ipv6`.
    pub only_ipv4: bool,
    /// `worker-processes`: threads of traffic; none leaves it to the processors.
    pub threads: Option<NonZeroU16>,
    /// `max-worker-connections`: connections of clients that each thread takes; none leaves it to the open files.
    pub connections: Option<usize>,
}

impl Listeners {
    /// Every address to listen on; none means all. A family without an address of its own listens on all of its
    /// addresses (ingress-nginx, buildHTTPListener).
    pub fn everywhere(&self) -> Vec<IpAddr> {
        let Self { addresses: named, only_ipv4, .. } = self;
        if named.is_empty() && !only_ipv4 {
            return Vec::new();
        }
        let (four, six): (Vec<IpAddr>, Vec<IpAddr>) = named.iter().partition(|ip| ip.is_ipv4());
        let or_all =
            |family: Vec<IpAddr>, all: IpAddr| if family.is_empty() { vec![all] } else { family };
        let mut addresses = or_all(four, Ipv4Addr::UNSPECIFIED.into());
        if !only_ipv4 {
            addresses.extend(or_all(six, Ipv6Addr::UNSPECIFIED.into()));
        }
        addresses
    }
}
