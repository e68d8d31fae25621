//! Flags of `check`.

use super::{Classes, GeoIp, Source};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags of `check`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway check ./manifests
  kubectl get ingress,ingressclass,service,configmap,secret -A -o yaml \\
    | fairway check -
  kustomize build overlays/prod | fairway check -
  fairway check --kubeconfig ~/.kube/config --format markdown > report.md
  fairway check ./manifests --log access.log --log yesterday.log.gz
  kubectl logs -n ingress-nginx deploy/ingress-nginx-controller \\
    | fairway check --kubeconfig ~/.kube/config --log -

With --log, each request that ingress-nginx has logged goes through the phases of Fairway with nothing sent to \
anybody, and what is decided is compared with what was logged: Ingress and Service, redirects, refusals. docs/prove.md \
says what a log can prove.

Exit codes: 0 nothing found that --fail-on names; 1 something could not be read, or no Ingress is ours; \
2 something was found. With --log: 1 too many lines could not be read, or a log is cut; \
2 a request is decided otherwise (with --fail-on differs: or alike, but on purpose not in everything).")]
pub(crate) struct Check {
    /// Folders (or files) of YAML or JSON; - is standard input.
    #[arg(value_name = "PATH", conflicts_with_all = ["kubeconfig", "context", "apiserver_host"])]
    pub(crate) paths: Vec<PathBuf>,
    /// How to print what was found.
    #[arg(long, visible_alias = "output", value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Exit with 2 if an Ingress is at least this far from ingress-nginx.
    #[arg(long, value_enum, default_value_t = FailOn::NeedsNginx)]
    pub(crate) fail_on: FailOn,
    /// List Ingresses that are served identically and have no notes, too.
    #[arg(long)]
    pub(crate) all: bool,
    /// Access logs of ingress-nginx, plain or gzip; - is standard input; may be repeated. Requests are compared
    /// instead of Ingresses.
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    pub(crate) log: Vec<PathBuf>,
    /// Their format as nginx has it, `$host "$request" $status …`; by default log-format-upstream of the ConfigMap.
    #[arg(long, value_name = "FORMAT", requires = "log", help_heading = "Logs")]
    pub(crate) log_format: Option<String>,
    /// Let examples show query strings, which may hold tokens.
    #[arg(long, requires = "log", help_heading = "Logs")]
    pub(crate) show_queries: bool,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) classes: Classes,
    #[command(flatten)]
    pub(crate) geoip: GeoIp,
}

/// How to print what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines for reading.
    Table,
    /// For programs; every Ingress is in it.
    Json,
    /// For a report or an issue.
    Markdown,
    /// With --log: an object of JSON for each request.
    Lines,
}

/// What fails a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Nothing.
    Never,
    /// Ingresses that are not served, or whose paths answer 503 with either engine; refused objects of the Gateway API
    /// and keys of the ConfigMap.
    Refused,
    /// And those that need the nginx engine.
    NeedsNginx,
    /// And those that are served otherwise on purpose.
    Differs,
}
