//! The end of the last replica: Ingresses that nobody serves any more tell no address.

use super::address::{Address, sorted};
use super::plan::{Plan, Write};
use super::write::{Outcome, Writer};
use super::{AT_A_TIME, StatusOptions};
use crate::lease::Leadership;
use futures_util::StreamExt;
use objects::{Ingress, ObjectKey};
use std::sync::Arc;
use std::time::Duration;

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long a lead that was given back takes to be taken.
const HANDOVER: Duration = Duration::from_secs(5);
/// Tries for one Ingress that changes at the same time.
const TRIES: usize = 3;

/// Whether no other replica stays.
pub(super) async fn is_last(options: &StatusOptions) -> bool {
    let replicas = match options.pod.replicas(&options.client).await {
        Ok(replicas) => replicas,
        Err(reason) => {
            tracing::warn!(
                reason,
                "the status of Ingresses stays: other replicas cannot be listed"
            );
            return false;
        }
    };
    let mut names = replicas.into_iter().filter_map(|pod| pod.metadata.name);
    let other = names.find(|name| *name != options.pod.name);
    if let Some(other) = &other {
        tracing::info!(other, "the status of Ingresses stays: another replica does");
    }
    other.is_none()
}

/// Whether this replica leads, or does within a moment: the one that led may have ended just before.
pub(super) async fn leads_soon(mut leadership: Leadership) -> bool {
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
        match writer.write(&write).await {
            Outcome::Written => return true,
            // The loop has ended, so the latest version has to be asked for.
            Outcome::Conflict | Outcome::Failed(_) | Outcome::Silent(_) => {}
            Outcome::Gone | Outcome::Refused(_) | Outcome::NotLeader => return false,
        }
        match writer.version_with(&write.key, ours).await {
            Some(version) => write.version = version,
            None => return false,
        }
    }
    false
}
