//! Where to listen.

use clap::Args;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

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
    /// Path of the health check.
    #[arg(long, value_name = "PATH", default_value = "/healthz")]
    pub(crate) health_check_path: String,
}

/// An address; empty means all, IPv4 and IPv6.
pub(super) fn host(text: &str) -> Result<IpAddr, String> {
    match text.trim_start_matches('[').trim_end_matches(']') {
        "" => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        address => address.parse().map_err(|_| "expected an IP address".to_owned()),
    }
}
