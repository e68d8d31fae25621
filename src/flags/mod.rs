//! What can be said on the command line: the flags of ingress-nginx, and a few of our own.

mod accepted;
mod check;
mod classes;
#[cfg(test)]
mod documentation;
mod explain;
mod geoip;
mod listen;
mod metrics;
mod source;
mod status;
mod webhook;
mod webhook_certificate;

pub(crate) use check::{Check, FailOn, Format};
pub(crate) use classes::Classes;
pub(crate) use explain::{Explain, Output};
pub(crate) use geoip::GeoIp;
pub(crate) use listen::{EngineName, Listeners};
pub(crate) use metrics::Metrics;
pub(crate) use source::Source;
pub(crate) use status::Status;
pub(crate) use webhook::Webhook;
pub(crate) use webhook_certificate::WebhookCertificate;

use clap::{Args, Parser, Subcommand};
use kubernetes::objects::ObjectKey;
use std::ffi::OsString;
use std::time::Duration;

/// An ingress controller for Kubernetes: the drop-in successor to ingress-nginx.
#[derive(Debug, Parser)]
#[command(name = "fairway", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve what a cluster, or a folder of YAML, says. This is what flags without a command mean, too.
    Run(Box<Run>),
    /// Tell for each Ingress whether it is served as ingress-nginx served it, and why not.
    Check(Box<Check>),
    /// Tell why a request goes where it goes: every decision, with the Ingress and annotation behind it.
    Explain(Box<Explain>),
    /// Print what a folder of YAML means: the configuration as JSON, its problems on standard error.
    Translate(Box<Translate>),
    /// Make the certificate of the admission webhook, and tell the API server to believe it.
    WebhookCertificate(Box<WebhookCertificate>),
}

/// Flags of `run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway run --manifests ./manifests --http-port 8080 --https-port 8443
  fairway run --kubeconfig ~/.kube/config --configmap ingress-nginx/ingress-nginx-controller
  fairway --ingress-class=nginx            (in a Pod: the cluster it runs in)")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) classes: Classes,
    #[command(flatten)]
    pub(crate) listeners: Listeners,
    #[command(flatten)]
    pub(crate) geoip: GeoIp,
    #[command(flatten)]
    pub(crate) webhook: Webhook,
    #[command(flatten)]
    pub(crate) status: Status,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    /// Seconds between SIGTERM and the moment no new connections are taken; /healthz fails at once.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds, help_heading = "Process")]
    pub(crate) shutdown_grace_period: Duration,
    /// Threads that serve traffic; by default one for each processor that the cgroup grants.
    #[arg(long, value_name = "N", help_heading = "Process")]
    pub(crate) worker_threads: Option<std::num::NonZeroUsize>,
    /// Memory that the process may use, such as 512Mi; by default what its cgroup grants. Near it load is shed.
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Process")]
    pub(crate) memory_limit: Option<u64>,
    /// How much to log: 0 is normal, 2 tells about each change, 5 about each connection. RUST_LOG goes before it.
    #[arg(long, short = 'v', value_name = "LEVEL", default_value_t = 0, help_heading = "Process")]
    pub(crate) v: u8,
    #[command(flatten)]
    pub(crate) accepted: accepted::Accepted,
}

/// Flags of `translate`.
#[derive(Args, Debug)]
pub(crate) struct Translate {
    /// Folders (or files) of YAML or JSON.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) manifests: Vec<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) classes: Classes,
}

/// Started with flags alone, or with nothing, the program means `run` (as `/nginx-ingress-controller --flags` did).
pub(crate) fn with_command(mut arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let program = arguments.next().unwrap_or_else(|| "fairway".into());
    let rest: Vec<OsString> = arguments.collect();
    let general = ["--help", "-h", "--version", "-V"];
    let first = rest.first().and_then(|first| first.to_str()).unwrap_or("--");
    let implied = first.starts_with('-') && !general.contains(&first) && (!rest.is_empty());
    let command = implied.then(|| OsString::from("run"));
    std::iter::once(program).chain(command).chain(rest).collect()
}

/// Whole seconds, or a duration such as `90s`, `5m`, `1h`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, ms)| text.strip_suffix(unit).map(|number| (number, *ms)))
        .unwrap_or((text, 1000));
    let number: u64 = number
        .parse()
        .map_err(|_| "expected seconds, such as 30, or a duration, such as 5m".to_owned())?;
    Ok(Duration::from_millis(number.saturating_mul(unit)))
}

/// A number of bytes, as Kubernetes writes them: `536870912`, `512Mi`, `1G`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("k", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, bytes)| text.strip_suffix(unit).map(|number| (number, *bytes)))
        .unwrap_or((text, 1));
    let number: Option<u64> = number.parse().ok().filter(|number| *number > 0);
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "expected a number of bytes, such as 512Mi or 1G".to_owned())
}

/// `namespace/name`.
pub(crate) fn object(text: &str) -> Result<Option<ObjectKey>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(Some(ObjectKey::new(namespace, name)))
        }
        _ => Err("expected namespace/name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_written_as_kubernetes_writes_them() {
        let sizes = ["1000", "512Ki", "64Mi", "2Gi", "1k", "3M", "1G"].map(|text| bytes(text).ok());
        let wanted = [1000, 512 << 10, 64 << 20, 2 << 30, 1000, 3_000_000, 1_000_000_000];
        assert_eq!(sizes, wanted.map(Some));
        for wrong in ["", "0", "-1", "1.5Gi", "Mi", "1Xi", "99999999999Gi", "64 Mi"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }
}
