//! Databases about the addresses of clients.

use clap::Args;
use std::path::PathBuf;

/// The databases that MaxMind has for nginx (ingress-nginx knows no others either).
const EDITIONS: [&str; 10] = [
    "GeoIP2-Anonymous-IP",
    "GeoIP2-ASN",
    "GeoIP2-City",
    "GeoIP2-Connection-Type",
    "GeoIP2-Country",
    "GeoIP2-Domain",
    "GeoIP2-ISP",
    "GeoLite2-ASN",
    "GeoLite2-City",
    "GeoLite2-Country",
];

/// Databases about the addresses of clients.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "GeoIP2")]
pub(crate) struct GeoIp {
    /// Databases that use-geoip2 of the ConfigMap reads, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = edition,
        default_value = "GeoLite2-City,GeoLite2-ASN")]
    pub(crate) maxmind_edition_ids: Vec<String>,
    /// Where they are: a file with the name of each and the ending .mmdb. Nothing is downloaded.
    #[arg(long, value_name = "FOLDER", default_value = "/etc/ingress-controller/geoip")]
    pub(crate) geoip_directory: PathBuf,
}

impl GeoIp {
    /// Whether all databases are there.
    pub(crate) fn are_there(&self) -> bool {
        let file = |name: &String| self.geoip_directory.join(format!("{}.mmdb", name.trim()));
        self.maxmind_edition_ids.iter().all(|name| file(name).is_file())
    }
}

fn edition(name: &str) -> Result<String, String> {
    if EDITIONS.contains(&name.trim()) {
        Ok(name.trim().to_owned())
    } else {
        Err(format!("no such database; there are {}", EDITIONS.join(", ")))
    }
}
