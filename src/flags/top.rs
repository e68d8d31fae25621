//! Flags of `top`.

use super::Source;
use clap::{Args, ValueEnum};
use objects::ObjectKey;
use std::path::PathBuf;

/// Flags of `top`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway top                             # the Fairway of this machine
  kubectl -n ingress-nginx exec -it deployment/ingress-nginx-controller \\
    -- /fairway top
  kubectl -n ingress-nginx port-forward \\
    deployment/ingress-nginx-controller 10254 &
  fairway top --by errors
  kubectl fairway top --pod ingress-nginx/POD --token-file token

Requests are counted with --enable-metrics=true (in the chart: controller.metrics.enabled). Through the API server, \
Fairway has to know the token (--admin-token-file), and whoever asks needs the right to get pods/proxy.")]
pub(crate) struct Top {
    /// What the list begins with.
    #[arg(long, value_enum, default_value_t = By::Rate)]
    pub(crate) by: By,
    /// Show only routes in which all of these words are found: host, path, namespace, Ingress, Service, address.
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub(crate) search: String,
    /// Routes to show; by default as many as fit, or 20.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=500))]
    pub(crate) lines: Option<u64>,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=60))]
    pub(crate) interval: u64,
    /// Look once, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// A Pod to ask through the API server, as namespace/name; without one, the Fairway of this machine is asked.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = pod)]
    pub(crate) pod: Option<ObjectKey>,
    /// The file with the token that --admin-token-file of that Fairway names.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The admin port of the Fairway that is asked; without it that of the one that runs here, else 10254.
    #[arg(long, value_name = "PORT")]
    pub(crate) healthz_port: Option<u16>,
    /// A kubeconfig file for --pod; kubectl's own without it.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// What the list begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Most requests.
    Rate,
    /// Most answers of 500 and more.
    Errors,
    /// Slowest.
    Latency,
}

impl Top {
    /// Where the API server is.
    pub(crate) fn source(&self) -> Source {
        let (kubeconfig, context) = (self.kubeconfig.clone(), self.context.clone());
        Source { kubeconfig, context, ..Source::default() }
    }
}

/// `namespace/name` of a Pod, of characters that such names have.
fn pod(text: &str) -> Result<ObjectKey, String> {
    let is_in_names =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_in_names);
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) && name != ".." => {
            Ok(ObjectKey::new(namespace, name))
        }
        _ => Err("expected namespace/name".to_owned()),
    }
}
