//! Profiles of the running process.

use clap::{ArgAction, Args};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// ingress-nginx's port for profiles.
const PORT: u16 = 10245;

/// Profiles of the running process.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Process")]
pub(crate) struct Profiling {
    /// Answer /debug/pprof/profile and /debug/pprof/heap on the admin port, to this machine alone [default: true].
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    profiling: Option<bool>,
    /// Answer them on this port, too; asked for by naming it, --profiler-address or --profiling [ingress-nginx: 10245].
    #[arg(long, value_name = "PORT")]
    profiler_port: Option<u16>,
    /// The address of that port [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    profiler_address: Option<IpAddr>,
}

impl Profiling {
    /// Whether profiles can be had at all.
    pub(crate) fn is_on(&self) -> bool {
        self.profiling.unwrap_or(true)
    }

    /// The listener of their own. Nothing listens that is not asked for: ingress-nginx's port is open where one of its
    /// flags stands on the command line.
    pub(crate) fn listener(&self) -> Option<SocketAddr> {
        let Self { profiling, profiler_port, profiler_address } = self;
        let asked = profiling.is_some() || profiler_port.is_some() || profiler_address.is_some();
        let ip = profiler_address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let address = SocketAddr::new(ip, self.port());
        (asked && self.is_on()).then_some(address)
    }

    /// The port that is kept for profiles, open or not.
    pub(crate) fn port(&self) -> u16 {
        self.profiler_port.unwrap_or(PORT)
    }
}
