//! Where objects come from.

use clap::Args;
use std::path::PathBuf;

/// Where objects come from.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Objects")]
pub(crate) struct Source {
    /// A folder (or file) of YAML or JSON to serve instead of a cluster; followed as it changes. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifests: Vec<PathBuf>,
    /// A kubeconfig file; in a Pod its service account is used without one.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// URL of an API server that needs no credentials, `https://address:port`.
    #[arg(long, value_name = "URL")]
    pub(crate) apiserver_host: Option<String>,
    /// Certificates of the authorities that sign the API server's certificate; used with --apiserver-host.
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// Watch this namespace only.
    #[arg(long, value_name = "NAME")]
    pub(crate) watch_namespace: Option<String>,
    /// Watch namespaces whose labels match.
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) watch_namespace_selector: Option<String>,
}
