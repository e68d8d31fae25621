//! The end of the last replica: Ingresses and Gateways that nobody serves any more tell no address.

use super::AT_A_TIME;
use super::address::{Address, sorted};
use super::plan::{Plan, Write};
use super::write::{Outcome, Writer};
use crate::lease::Leadership;
use crate::pod::OwnPod;
use futures_util::StreamExt;
use kube::Client;
use objects::{Ingress, ObjectKey};
use std::sync::Arc;
use std::time::Duration;

/// How long all of it may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(25);
/// How long a lead that was given back takes to be taken.
const HANDOVER: Duration = Duration::from_secs(5);
/// Tries for one object that changes at the same time.
pub(super) const TRIES: usize = 3;
/// How long the API server is left alone that had an error, or said nothing.
const PAUSE: Duration = Duration::from_millis(500);

/// Whether this replica takes the addresses of these objects away: no other one stays, and it leads, or does soon.
pub(super) async fn may_clear(
    what: &str,
    client: &Client,
    pod: &OwnPod,
    leadership: &Leadership,
) -> bool {
    let replicas = match pod.replicas(client).await {
        Ok(replicas) => replicas,
        Err(reason) => {
            tracing::warn!(reason, "the status of {what} stays: other replicas cannot be listed");
            return false;
        }
    };
    let mut names = replicas.into_iter().filter_map(|pod| pod.metadata.name);
    let other = names.find(|name| *name != pod.name);
    if let Some(other) = &other {
        tracing::info!(other, "the status of {what} stays: another replica does");
    }
    other.is_none() && leads_soon(leadership.clone()).await
}

/// Whether this replica leads, or does within a moment: the one that led may have ended just before.
async fn leads_soon(mut leadership: Leadership) -> bool {
    let leads = async {
        while !leadership.is_leader() {
            leadership.changed().await;
        }
    };
    tokio::time::timeout(HANDOVER, leads).await.is_ok()
}

/// Takes our addresses away from all Ingresses that tell them.
pub(super) async fn clear(plan: &Plan, writer: &Writer) {
    let Some(ours) = plan.wanted().filter(|ours| !ours.is_empty()) else { return };
    // As ingress-nginx has it: several addresses mean several who serve.
    if ours.len() > 1 {
        return tracing::info!("the status of Ingresses stays: it has more than one address");
    }
    let known = plan.known();
    let of_ours = |ingress: &Arc<Ingress>| *sorted(ingress.addresses.clone()) == **ours;
    let served = known.served.iter().filter_map(|key| known.snapshot.ingresses.get(key));
    let all: Vec<Arc<Ingress>> = served.filter(|ingress| of_ours(ingress)).cloned().collect();
    let clearing = futures_util::stream::iter(all)
        .map(async |ingress| {
            let Ingress { meta, .. } = &*ingress;
            clear_one(writer, meta.key.clone(), meta.resource_version.clone(), ours).await
        })
        .buffer_unordered(AT_A_TIME)
        .filter(|done| std::future::ready(*done))
        .count();
    match tokio::time::timeout(PATIENCE, clearing).await {
        Ok(count) => {
            tracing::info!(ingresses = count, "no replica stays: their status is empty now")
        }
        Err(_) => tracing::warn!("there was no time to empty the status of all Ingresses"),
    }
}

async fn clear_one(writer: &Writer, key: ObjectKey, version: Arc<str>, ours: &[Address]) -> bool {
    let mut write = Write { key, version, addresses: Arc::default() };
    for _ in 0..TRIES {
        if let Some(is_written) = settled(writer.write(&write).await).await {
            return is_written;
        }
        // The loop has ended, so the latest version has to be asked for.
        match writer.version_with(&write.key, ours).await {
            Some(version) => write.version = version,
            None => return false,
        }
    }
    false
}

/// Whether a last status is written; none where it is to be tried again, now that a while has passed where that helps.
pub(super) async fn settled(outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Written => Some(true),
        Outcome::Gone | Outcome::Refused(_) | Outcome::Kept(_) | Outcome::NotLeader => Some(false),
        Outcome::Conflict => None,
        Outcome::Failed(_) | Outcome::Forbidden(_) | Outcome::Silent(_) => {
            #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
