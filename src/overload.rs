//! Overload: what the process is short of decides what the engine and TCP and UDP services take on.

use proxy::{Native, Pressure};
use runtime::overload::{Level, Scarce, Watched};
use std::sync::Arc;
use std::time::Duration;
use stream::{Memory, Streams};
use tokio::sync::watch;
use tokio::time::interval;

/// How often clients of limits are forgotten that were away for long.
const FORGETS: Duration = Duration::from_secs(10);

/// How often those of TCP and UDP services end where memory is short.
const ENDS: Duration = Duration::from_millis(500);

/// How short memory is.
#[derive(Debug)]
pub(crate) struct Overload {
    /// The bound of memory in bytes, if there is one.
    pub(crate) bound: Option<u64>,
    memory: watch::Receiver<Memory>,
}

impl Overload {
    /// Of an engine that is not watched.
    pub(crate) fn unwatched() -> Self {
        Self { bound: None, memory: watch::channel(Memory::Enough).1 }
    }

    /// Lets TCP and UDP services follow it from now on.
    pub(crate) fn press(&self, streams: &Arc<Streams>) {
        let (mut memory, streams) = (self.memory.clone(), streams.clone());
        tokio::spawn(async move {
            loop {
                let is_short = |memory: &Memory| *memory != Memory::Enough;
                if memory.wait_for(is_short).await.is_err() {
                    return;
                }
                let mut ticks = interval(ENDS);
                loop {
                    ticks.tick().await;
                    let now = *memory.borrow_and_update();
                    streams.press(now);
                    if now == Memory::Enough {
                        break;
                    }
                }
            }
        });
    }
}

/// Lets the engine follow memory and file descriptors from now on; `memory` is `--memory-limit`.
pub(crate) fn follow(
    engine: &Arc<Native>,
    memory: Option<u64>,
    descriptors: Option<u64>,
) -> Overload {
    let engine = engine.clone();
    let watched = Watched::of_this_process(memory, descriptors);
    let bound = watched.memory_bound();
    if let Some(bytes) = bound {
        engine.bound_memory(bytes);
    }
    let remembering = engine.clone();
    tokio::spawn(async move {
        let mut ticks = interval(FORGETS);
        loop {
            ticks.tick().await;
            remembering.forget_clients();
        }
    });
    let (tell, memory) = watch::channel(Memory::Enough);
    tokio::spawn(watched.watch(move |level, scarce| {
        tell.send_replace(match (scarce, level) {
            (Scarce::Descriptors, _) | (_, Level::Normal) => Memory::Enough,
            (Scarce::Memory, Level::High) => Memory::Short,
            (Scarce::Memory, Level::Full) => Memory::Gone(bound.unwrap_or(u64::MAX)),
        });
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
    Overload { bound, memory }
}
