//! One status of the Gateway API's objects, read and written where it differs.

use super::document::Wanted;
use super::services::Scribe;
use super::which::{Id, api};
use super::write::{MANAGER, Outcome, outcome};
use crate::call::ask;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use serde_json::Value;
use std::time::Duration;

/// How long the API server may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Reads an object and writes its status where that differs, and where `may` says so of the one that it has; `Gone`
/// where there is nothing to do.
pub(super) async fn write(
    scribe: Scribe,
    (which, key): &Id,
    wanted: &Wanted,
    may: impl Fn(&Value) -> bool,
) -> Result<Outcome, Outcome> {
    if let Wanted::Service(service, _) = wanted {
        return scribe.write(key, service.as_deref()).await;
    }
    let Scribe { client, leadership, controller, .. } = scribe;
    let left = leadership.remaining().ok_or(Outcome::NotLeader)?;
    let api = api(client, *which, key);
    let mut found = outcome(ask(left.min(PATIENCE), api.get(&key.name)).await)?;
    let generation = found.metadata.generation.unwrap_or_default();
    if wanted.generation().is_some_and(|judged| judged != generation) {
        return Ok(Outcome::Gone);
    }
    let before = &found.data["status"];
    let status = wanted.within(before, &controller, Timestamp::now());
    if *before == status || !may(before) {
        return Ok(Outcome::Gone);
    }
    let older = wanted.for_older(&status, before);
    let stands = older.as_ref() == Some(before);
    found.data["status"] = status;
    let as_fairway = PostParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
    let left = leadership.remaining().ok_or(Outcome::NotLeader)?;
    let update = api.replace_status(&key.name, &as_fairway, &found);
    match (outcome(ask(left.min(PATIENCE), update).await), older) {
        (Err(Outcome::Refused(_)), _) if stands => return Ok(Outcome::Gone),
        (Err(Outcome::Refused(_)), Some(older)) => {
            found.data["status"] = older;
            let left = leadership.remaining().ok_or(Outcome::NotLeader)?;
            let update = api.replace_status(&key.name, &as_fairway, &found);
            outcome(ask(left.min(PATIENCE), update).await)?;
        }
        (answer, _) => drop(answer?),
    }
    Ok(Outcome::Written)
}
