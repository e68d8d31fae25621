//! Where to listen.

use clap::{ArgAction, Args};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

/// What carries HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EngineName {
    /// This process.
    Native,
    /// A supervised nginx.
    Nginx,
}

/// Where to listen.
#[derive(Args, Debug)]
#[command(next_help_heading = "Listeners")]
pub(crate) struct Listeners {
    /// Port for HTTP; 0 lets the system choose.
    #[arg(long, value_name = "PORT", default_value_t = 80)]
    pub(crate) http_port: u16,
    /// Port for HTTPS; 0 lets the system choose.
    #[arg(long, value_name = "PORT", default_value_t = 443)]
    pub(crate) https_port: u16,
    /// Addresses for both, separated by commas; all of IPv4 and IPv6 by default.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) bind_address: Vec<IpAddr>,
    /// Address of the admin server (health, configuration); all by default.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true, value_parser = host)]
    pub(crate) healthz_host: IpAddr,
    /// Port of the admin server; 0 lets the system choose.
    #[arg(long, value_name = "PORT", default_value_t = 10254)]
    pub(crate) healthz_port: u16,
    /// A file with a token: whoever shows it reads the admin pages that are for this machine from elsewhere, too. It is
    /// read anew for each request.
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// A file with a secret: requests with it in X-Fairway-Trace are answered with every decision about them.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_secret_file: Option<PathBuf>,
    /// What carries HTTP: this process (native), or a supervised nginx for raw snippets and nginx modules.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineName::Native)]
    pub(crate) engine: EngineName,
    /// The private folder of --engine=nginx: its configuration, sockets and keys; by default fairway-nginx among
    /// temporary files.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) nginx_directory: Option<PathBuf>,
    /// Reloads of --engine=nginx in a second at most: one in 3.3 s by default, 0 for no bound. What needs no reload
    /// waits only behind one that waits for its turn.
    #[arg(long, value_name = "RATE", default_value_t = 0.3, value_parser = rate)]
    pub(crate) sync_rate_limit: f32,
    /// Serve nothing: requests are taken for copies, thought through and counted, and nothing is sent to anybody; no
    /// Lease, no status, no Events, no webhook, no TCP or UDP ports.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) shadow: bool,
    /// Path of the health check.
    #[arg(long, value_name = "PATH", default_value = "/healthz", value_parser = path)]
    pub(crate) health_check_path: String,
}

/// No request has a path without a slash, and no probe would find it.
fn path(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err(format!("a path starts with a slash: write /{text}"))
    }
}

/// Nothing waits longer.
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Listeners {
    /// The time from one reload to the next at least.
    pub(crate) fn pace(&self) -> Duration {
        match self.sync_rate_limit {
            0.0 => Duration::ZERO,
            rate => Duration::try_from_secs_f32(1.0 / rate).unwrap_or(DAY).min(DAY),
        }
    }
}

/// So many in a second.
fn rate(text: &str) -> Result<f32, String> {
    let rate = text.parse().ok().filter(|rate: &f32| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "expected a number from 0 on, such as 0.3".to_owned())
}

/// An address; empty means all, IPv4 and IPv6.
pub(super) fn host(text: &str) -> Result<IpAddr, String> {
    match text.trim_start_matches('[').trim_end_matches(']') {
        "" => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        address => address.parse().map_err(|_| "expected an IP address".to_owned()),
    }
}
