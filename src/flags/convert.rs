//! Flags of `convert`.

use super::{Classes, Source};
use clap::Args;
use std::path::PathBuf;

/// Flags of `convert`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway convert ./manifests > gateway.yaml
  kubectl get ingress,ingressclass,service,configmap,secret -A -o yaml \\
    | fairway convert - > gateway.yaml
  kubectl fairway convert --gateway-namespace infra --output ./gateway
  kubectl apply --dry-run=server -f gateway.yaml

What the Gateway API cannot say stands as a comment above the object: CLOSED where a guard is lost (the rules have \
no backendRefs then, so that nothing is open that was not open), LOST where a feature is, NOTE where a corner is \
otherwise, OTHERWISE where answers are others in form; each with Ingress, key, reason and remedy. Ingresses and routes \
may share a host: of the same path it is the Ingress's, until that is deleted; where a route is the more special one \
(expressions, rewrites), it counts at once. docs/convert.md has the rules.

Exit codes: 0 everything is said; 1 something could not be read, or no Ingress is ours; 2 something is lost.")]
pub(crate) struct Convert {
    /// Folders (or files) of YAML or JSON; - is standard input.
    #[arg(value_name = "PATH", conflicts_with_all = ["kubeconfig", "context", "apiserver_host"])]
    pub(crate) paths: Vec<PathBuf>,
    /// Write a file for each object into this folder instead of all to standard output.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The GatewayClass of the Gateways; the default one is written as well where it is not there.
    #[arg(long, value_name = "NAME", default_value = convert::CLASS)]
    pub(crate) gateway_class: String,
    /// The name of the Gateway; beyond 64 listeners there is one more, called NAME-2.
    #[arg(long, value_name = "NAME", default_value = "fairway")]
    pub(crate) gateway_name: String,
    /// The namespace of the Gateway.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) gateway_namespace: String,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) classes: Classes,
}
