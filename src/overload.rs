//! Overload: what the process is short of decides what the engine takes on.

use proxy::{Native, Pressure};
use runtime::overload::{Level, Scarce, Watched};
use std::sync::Arc;
use std::time::Duration;

/// How often clients of limits are forgotten that were away for long.
const FORGETS: Duration = Duration::from_secs(10);

/// Lets the engine follow memory and file descriptors from now on; `memory` is `--memory-limit`. The bound of memory in
/// bytes, if there is one.
pub(crate) fn follow(
    engine: &Arc<Native>,
    memory: Option<u64>,
    descriptors: Option<u64>,
) -> Option<u64> {
    let engine = engine.clone();
    let watched = Watched::of_this_process(memory, descriptors);
    let bound = watched.memory_bound();
    if let Some(bytes) = bound {
        engine.bound_memory(bytes);
    }
    let remembering = engine.clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(FORGETS);
        loop {
            ticks.tick().await;
            remembering.forget_clients();
        }
    });
    tokio::spawn(watched.watch(move |level, scarce| {
        let pressure = match level {
            Level::Normal => Pressure::Normal,
            Level::High => Pressure::High,
            Level::Full => Pressure::Full,
        };
        match scarce {
            Scarce::Memory => engine.press(pressure),
            Scarce::Descriptors => engine.press_for_files(pressure),
        }
    }));
    bound
}
