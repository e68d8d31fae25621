//! Flags of `convert`.

use super::{Classes, Source};
use clap::Args;
use objects::manifests::{is_a_label, is_a_name};
use std::path::PathBuf;

/// Flags of `convert`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway convert ./manifests > gateway.yaml
  kinds=ingress,ingressclass,service,configmap,secret,gatewayclass,gateway
  kinds=$kinds,httproute,grpcroute,tlsroute,backendtlspolicy,referencegrant
  kubectl get $kinds -A -o yaml | fairway convert - > gateway.yaml
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
    #[arg(long, value_name = "NAME", default_value = convert::CLASS, value_parser = name)]
    pub(crate) gateway_class: String,
    /// The name of the Gateway; beyond 64 listeners there is one more, called NAME-2.
    #[arg(long, value_name = "NAME", default_value = "fairway", value_parser = name)]
    pub(crate) gateway_name: String,
    /// The namespace of the Gateway.
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = label)]
    pub(crate) gateway_namespace: String,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) classes: Classes,
}

/// The name of an object, as an API server takes it.
fn name(text: &str) -> Result<String, String> {
    taken(text, is_a_name(text), "small letters, digits, - and .")
}

/// The name of a namespace, as an API server takes it.
fn label(text: &str) -> Result<String, String> {
    taken(text, is_a_label(text), "small letters, digits and -")
}

fn taken(text: &str, is_taken: bool, signs: &str) -> Result<String, String> {
    if is_taken {
        return Ok(text.to_owned());
    }
    Err(format!(
        "no API server takes this name: write {signs}, with a letter or a digit at both ends"
    ))
}

#[cfg(test)]
mod tests {
    use crate::flags::{Cli, Command};
    use clap::Parser;

    #[test]
    fn a_name_that_no_api_server_takes_is_refused_with_its_flag() {
        let read = |flag: &str| Cli::try_parse_from(["fairway", "convert", flag]);
        for name in ["gateway-class", "gateway-name", "gateway-namespace"] {
            for wrong in ["", "A_B", "-a", "a b"] {
                let told = read(&format!("--{name}={wrong}")).expect_err(wrong).to_string();
                assert!(told.contains(&format!("--{name} <NAME>")), "{told}");
                assert!(told.contains("no API server takes this name"), "{told}");
            }
        }
        assert!(read("--gateway-namespace=a.b").is_err(), "a namespace is one label");
        let read = read("--gateway-class=a.b").expect("a name").command;
        assert!(matches!(read, Command::Convert(convert) if convert.gateway_class == "a.b"));
    }
}
