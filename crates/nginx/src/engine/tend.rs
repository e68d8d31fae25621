//! What happens between changes: names lead elsewhere, and workers leave.

use super::{Inner, State};
use crate::names::Known;
use crate::process;
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often it is looked whether workers have left.
const LOOK: Duration = Duration::from_secs(1);
/// When nginx is told again of addresses that it was not to be told of.
const AGAIN: Duration = Duration::from_secs(1);

/// Tells nginx of names whose addresses have changed.
pub(super) async fn follow_names(engine: Weak<Inner>, mut changes: watch::Receiver<Known>) {
    while changes.changed().await.is_ok() {
        let Some(inner) = engine.upgrade() else { return };
        let state = inner.state.lock().await;
        if state.master.is_none() {
            // It will be told everything when it starts.
            continue;
        }
        if let Err(error) = inner.settle(&state.leaving, &state.running).await {
            tracing::warn!(%error, "nginx was not told of new addresses");
            changes.mark_changed();
            drop(state);
            sleep(AGAIN).await;
        }
    }
}

/// Takes away what only workers needed that have left.
pub(super) async fn follow_leaving(engine: Weak<Inner>) {
    loop {
        sleep(LOOK).await;
        let Some(inner) = engine.upgrade() else { return };
        let mut state = inner.state.lock().await;
        let State { master: Some(master), leaving, running, written, .. } = &mut *state else {
            continue;
        };
        if leaving.is_empty() || !leaving.forget(&process::workers(*master)) {
            continue;
        }
        if let Err(error) = inner.settle(leaving, running).await {
            // The next push takes it away.
            tracing::debug!(%error, "nginx keeps what it needs no more");
        }
        inner.directory.sweep(|file| written.files.contains_key(file) || leaving.reads(file));
    }
}
