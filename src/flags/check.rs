//! Flags of `check`.

use super::{Classes, Source};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags of `check`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway check ./manifests
  kubectl get ingress,ingressclass,service,configmap,secret -A -o yaml | fairway check -
  fairway check --kubeconfig ~/.kube/config --format markdown > report.md

Exit codes: 0 nothing found that --fail-on names; 1 something could not be read, or no Ingress is ours;
2 something was found.")]
pub(crate) struct Check {
    /// Folders (or files) of YAML or JSON; - is standard input.
    #[arg(value_name = "PATH", conflicts_with_all = ["kubeconfig", "apiserver_host"])]
    pub(crate) paths: Vec<PathBuf>,
    /// How to print what was found.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Exit with 2 if an Ingress is at least this far from ingress-nginx.
    #[arg(long, value_enum, default_value_t = FailOn::NeedsNginx)]
    pub(crate) fail_on: FailOn,
    /// List Ingresses that are served identically and have no notes, too.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) classes: Classes,
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
}

/// What fails a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Nothing.
    Never,
    /// Ingresses that are not served, or whose paths answer 503.
    Refused,
    /// And those that need the nginx engine.
    NeedsNginx,
    /// And those that are served otherwise on purpose.
    Differs,
}
