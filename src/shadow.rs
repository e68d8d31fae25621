//! `fairway run --shadow`: what would have become of copies of requests, as the log tells it; the page has all groups.

use crate::flags::Webhook;
use crate::http_engine::HttpEngine;
use proxy::Shadowed;
use std::sync::Arc;
use std::time::Duration;

/// Between two lines about what came meanwhile.
const SPAN: Duration = Duration::from_secs(60);
/// Groups that are told at the end.
const TOLD: usize = 20;

/// Says what this process is, and from now on what comes; gives back the flags of no webhook.
pub(crate) fn follow(engine: &Arc<HttpEngine>, webhook: Webhook) -> Webhook {
    tracing::warn!(
        "--shadow: nothing is served and nothing is written to the cluster; each request is taken for a copy, thought \
         through and counted (/api/v1/shadow of the admin port)"
    );
    if webhook.validating_webhook.is_some() {
        tracing::warn!("--validating-webhook has no effect with --shadow: no webhook is served");
    }
    let engine = engine.clone();
    tokio::spawn(async move {
        let mut before = Shadowed::default();
        loop {
            #[expect(clippy::disallowed_methods, reason = "a look now and then")]
            tokio::time::sleep(SPAN).await;
            let Some(now) = shadowed(&engine) else { return };
            if sum(&now) > sum(&before) {
                tracing::info!("copies in the last {} s: {}", SPAN.as_secs(), words(&now, &before));
            }
            before = now;
        }
    });
    Webhook {
        validating_webhook: None,
        validating_webhook_certificate: None,
        validating_webhook_key: None,
        validating_webhook_client_ca: None,
    }
}

/// What there is to say at the end, if these were copies.
pub(crate) fn tell_all(engine: &HttpEngine) {
    let Some(all) = shadowed(engine) else { return };
    tracing::info!("copies since the start: {}", words(&all, &Shadowed::default()));
    if all.without_client > 0 {
        tracing::info!(
            "{} of them did not say whose request they were (X-Forwarded-For, PROXY protocol): address lists and \
             limits judged who sent the copy",
            all.without_client
        );
    }
    for (decided, count) in all.groups.iter().take(TOLD) {
        let proxy::Decided { said, host, ingress, upstream, status, .. } = decided;
        let (ingress, upstream) =
            (ingress.as_deref().unwrap_or("-"), upstream.as_deref().unwrap_or("-"));
        let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let (copies, example) = (count.copies, &count.example);
        tracing::info!(copies, %host, ingress, upstream, status, %example, "{}", said.word());
    }
}

fn shadowed(engine: &HttpEngine) -> Option<Shadowed> {
    engine.native().and_then(|native| native.shadowed())
}

fn sum(all: &Shadowed) -> u64 {
    all.sums.iter().map(|(_, count)| count).sum()
}

fn words(now: &Shadowed, before: &Shadowed) -> String {
    let each = now.sums.iter().zip(before.sums);
    let each = each.map(|((word, count), (_, old))| format!("{word} {}", count - old));
    format!("{} ({})", sum(now) - sum(before), each.collect::<Vec<_>>().join(", "))
}
