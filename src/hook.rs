//! `fairway wait-shutdown`: the preStop hook. It returns when the controller of this container has ended, so that the
//! Pod lives as long as requests do.

use crate::flags::{WaitShutdown, means_run};
use crate::say::note;
use anyhow::{Context, Result, ensure};
use runtime::farewell;

/// The process that a container lives as long as.
const FIRST: i32 = 1;

/// Asks the controller to end and waits for it.
pub(crate) fn run(flags: &WaitShutdown) -> Result<()> {
    let mut found = farewell::find(means_run).context("cannot look for the controller in /proc")?;
    let numbers: Vec<i32> = found.iter().map(|process| process.number).collect();
    let meant = meant(numbers, flags.pid)?;
    found.retain(|process| meant.contains(&process.number));
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
        flags.timeout.unwrap_or_default().as_secs()
    );
    Ok(())
}

/// Which of the controllers that run here are to end. Where none of them is the first process there is no container
/// around them, and several may be anybody's.
fn meant(found: Vec<i32>, pid: Option<i32>) -> Result<Vec<i32>> {
    if let Some(pid) = pid {
        ensure!(found.contains(&pid), "process {pid} is no controller that runs here");
        return Ok(vec![pid]);
    }
    let is_container = found.contains(&FIRST);
    let names: Vec<String> = found.iter().map(ToString::to_string).collect();
    ensure!(
        found.len() < 2 || is_container,
        "several controllers run here, and none was asked to end: name one with --pid ({})",
        names.join(", ")
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn of_several_controllers_outside_of_a_container_one_has_to_be_named() {
        assert!(meant(Vec::new(), None).expect("none is fine").is_empty());
        assert_eq!(meant(vec![7], None).expect("one is meant"), [7]);
        assert_eq!(meant(vec![1, 7], None).expect("a container"), [1, 7]);
        assert_eq!(meant(vec![7, 8], Some(8)).expect("it is named"), [8]);
        let error = meant(vec![7, 8], None).expect_err("which one?").to_string();
        assert!(error.ends_with("name one with --pid (7, 8)"), "{error}");
        assert!(meant(vec![7], Some(9)).is_err());
    }
}
