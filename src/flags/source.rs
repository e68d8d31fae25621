//! Where objects come from.

use super::pflag::duration;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Seldom, since it costs the API server a list of everything, and only a watch that lies makes it worth that.
const SYNC_PERIOD: Duration = Duration::from_secs(30 * 60);

/// Where objects come from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Objects")]
pub(crate) struct Source {
    /// A folder (or file) of YAML or JSON instead of a cluster; `run` follows it as it changes. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifests: Vec<PathBuf>,
    /// A kubeconfig file; in a Pod its service account is used without one.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// URL of an API server that needs no credentials, `https://address:port`.
    #[arg(long, value_name = "URL")]
    pub(crate) apiserver_host: Option<String>,
    /// Certificates of the authorities that sign the API server's certificate; used with --apiserver-host.
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// Watch this namespace only.
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub(crate) watch_namespace: Option<String>,
    /// Watch namespaces whose labels match.
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) watch_namespace_selector: Option<String>,
    /// How often the objects of a cluster are listed anew, should a watch have left something out; 0 means 30m, too.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = period)]
    pub(crate) sync_period: Duration,
}

/// Nothing and less mean the usual one.
fn period(text: &str) -> Result<Duration, String> {
    let period = duration(text)?;
    Ok(if period.is_zero() { SYNC_PERIOD } else { period.max(Duration::from_secs(1)) })
}

/// One namespace; several are chosen by their labels.
fn namespace(text: &str) -> Result<String, String> {
    if text.contains(',') {
        return Err("expected one namespace; several are chosen by their labels, as in \
            --watch-namespace-selector=team=shop"
            .to_owned());
    }
    Ok(text.to_owned())
}
