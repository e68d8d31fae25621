//! `fairway wait-shutdown`: the preStop hook. It returns when the controller of this container has ended, so that the
//! Pod lives as long as requests do.

use crate::flags::{WaitShutdown, means_run};
use crate::say::note;
use anyhow::{Context, Result, ensure};
use runtime::farewell;

/// Asks the controller to end and waits for it.
pub(crate) fn run(flags: &WaitShutdown) -> Result<()> {
    let found = farewell::find(means_run).context("cannot look for the controller in /proc")?;
    if found.is_empty() {
        note!("fairway: no controller runs here");
    }
    for process in &found {
        note!("fairway: process {} was asked to end", process.number);
    }
    let left = farewell::end(&found, flags.timeout).context("cannot ask the controller to end")?;
    ensure!(
        left == 0,
        "the controller still runs after {} s: --timeout gives it longer, worker-shutdown-timeout of the ConfigMap gives \
         requests less",
        flags.timeout.as_secs()
    );
    Ok(())
}
