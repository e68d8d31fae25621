//! What the ConfigMap says about listeners and the threads behind them. Flags go before it.

use serde::Serialize;
use std::net::IpAddr;
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
