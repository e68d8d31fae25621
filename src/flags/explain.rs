//! Flags of `explain`.

use super::{Classes, Source};
use clap::{Args, ValueEnum};
use std::net::IpAddr;

/// Flags of `explain`.
#[derive(Args, Debug)]
#[command(
    after_help = "Nothing is sent to anybody: authenticators are taken to agree, and the upstream to answer 200. No name is looked up.

Ends with 0 if the request is explained, whatever becomes of it; with 1 if there is no answer, or if files of --manifests could not be read, which may be why it is that one.

Examples:
  fairway explain 'https://shop.example/cart?x=1' --manifests ./manifests
  fairway explain http://shop.example/ --kubeconfig ~/.kube/config \\
    -H 'Cookie: canary=always' --client 203.0.113.7
  fairway explain https://shop.example/ --manifests . --sni other.example \\
    --method POST --http2"
)]
pub(crate) struct Explain {
    /// The URL, as a client writes it.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The method.
    #[arg(long, short = 'X', value_name = "METHOD", default_value = "GET")]
    pub(crate) method: String,
    /// A header field; may be repeated. `Host: …` stands for another host than the URL's.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The client's address.
    #[arg(long, value_name = "ADDRESS", default_value = "192.0.2.1")]
    pub(crate) client: IpAddr,
    /// The name in the TLS handshake, if not the URL's host; empty for none.
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// The request comes over HTTP/2.
    #[arg(long)]
    pub(crate) http2: bool,
    /// How to print the decisions.
    #[arg(long, visible_alias = "output", value_enum, default_value_t = Output::Text)]
    pub(crate) format: Output,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) classes: Classes,
}

/// How to print decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Lines for reading.
    Text,
    /// For programs.
    Json,
}
