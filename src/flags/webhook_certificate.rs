//! Flags of `webhook-certificate`.

use clap::Args;
use objects::ObjectKey;
use std::path::PathBuf;

/// Flags of `webhook-certificate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Running it again changes nothing, until a tenth of the certificate's ten years is left or --host \
names something new: then it is renewed, without a moment at which the API server believes none.

Examples:
  fairway webhook-certificate --secret=ingress/fairway-admission \\
    --host=fairway-admission.ingress.svc
  fairway webhook-certificate --secret=ingress/fairway-admission \\
    --host=fairway-admission.ingress.svc \\
    --webhook=fairway-admission --kubeconfig ~/.kube/config"
)]
pub(crate) struct WebhookCertificate {
    /// The Secret that Pods mount; it gets the keys ca, cert and key.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = secret)]
    pub(crate) secret: ObjectKey,
    /// The names by which the API server calls the webhook, separated by commas.
    #[arg(long, value_name = "NAME", required = true, value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// The ValidatingWebhookConfiguration that has to believe it; without it, only the Secret is seen to.
    #[arg(long, value_name = "NAME")]
    pub(crate) webhook: Option<String>,
    /// A kubeconfig file; in a Pod its service account is used without one.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

fn secret(text: &str) -> Result<ObjectKey, String> {
    super::object::object(text)?.ok_or_else(|| "expected namespace/name".to_owned())
}
