//! `fairway webhook-certificate`: makes the webhook's certificate and tells the API server of it.

use crate::flags::WebhookCertificate as Flags;
use crate::say;
use anyhow::Result;
use controller::webhook_certificate::{Outcome, WebhookCertificate, ensure};
use kubernetes::ClientOptions;

/// Does it, and says in a line what was done.
pub(crate) fn run(flags: Flags) -> Result<()> {
    let Flags { secret, host: hosts, webhook, kubeconfig, context } = flags;
    let wanted = WebhookCertificate { secret, hosts, webhook };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let options = ClientOptions { kubeconfig, context, ..ClientOptions::default() };
        anyhow::Ok(ensure(kubernetes::client(&options).await?, &wanted).await?)
    })?;
    let done = match outcome {
        Outcome::Made => "made",
        Outcome::Kept => "was there",
        Outcome::Renewed => "renewed",
    };
    let (namespace, name) = (&wanted.secret.namespace, &wanted.secret.name);
    say::line(format_args!("the certificate in Secret {namespace}/{name} {done}"))?;
    Ok(())
}
