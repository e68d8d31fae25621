//! The admission webhook.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The admission webhook.
#[derive(Args, Debug)]
#[command(next_help_heading = "Admission webhook")]
pub(crate) struct Webhook {
    /// Review Ingresses on this address, as address:port or :port; off without it. See docs/webhook.md.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true, value_parser = address)]
    pub(crate) validating_webhook: WebhookAddress,
    /// PEM file with its certificate; read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) validating_webhook_certificate: Option<PathBuf>,
    /// PEM file with its key; read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) validating_webhook_key: Option<PathBuf>,
    /// PEM file with the authorities of those who may ask for reviews; anybody may without it. Read again when it
    /// changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) validating_webhook_client_ca: Option<PathBuf>,
}

/// An address, or none. (Not spelled `Option`, which clap would take for a flag that may be absent.)
pub(crate) type WebhookAddress = Option<SocketAddr>;

/// `host:port`, or `:port` for all addresses.
fn address(text: &str) -> Result<WebhookAddress, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || "expected address:port or :port, such as :8443".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    let host = super::listen::host(host).map_err(|_| wrong())?;
    Ok(Some(SocketAddr::new(host, port)))
}
