//! Watches memory and file descriptors and says how hard the process is pressed, before the system does
//! (docs/overload.md).

mod reading;

pub use reading::{Descriptors, Memory};

use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often it is looked.
const PERIOD: Duration = Duration::from_millis(100);

/// How hard the process is pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There is enough of everything.
    #[default]
    Normal,
    /// It becomes scarce: what is kept for convenience goes.
    High,
    /// It is all but gone: nothing new is taken.
    Full,
}

/// What there is least of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    /// Memory.
    Memory,
    /// File descriptors.
    Descriptors,
}

impl Scarce {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Descriptors => "file descriptors",
        }
    }
}

/// What is watched.
#[derive(Debug)]
pub struct Watched {
    /// Memory; none where it has no bound.
    pub memory: Option<Memory>,
    /// File descriptors; none where they have no bound.
    pub descriptors: Option<Descriptors>,
}

/// A level with the shares, between 0 and 1, from which on it counts and below which it no longer does: between the two
/// nothing changes, or it would change with every look.
const STEPS: [(Level, f64, f64); 2] = [(Level::Full, 0.95, 0.92), (Level::High, 0.90, 0.85)];

impl Level {
    /// The level after this one, where so much of something is used.
    fn next(self, used: f64) -> Self {
        let holds = |(level, from, until): &(Self, f64, f64)| {
            used >= *from || (self >= *level && used >= *until)
        };
        STEPS.iter().find(|step| holds(step)).map_or(Self::Normal, |(level, ..)| *level)
    }
}

impl Watched {
    /// What this process has bounds for. `memory` is what it shall use at most; none lets its control group decide.
    pub fn of_this_process(memory: Option<u64>, descriptors: Option<u64>) -> Self {
        let memory = memory.map(Memory::own).or_else(Memory::of_control_group);
        Self { memory, descriptors: descriptors.map(Descriptors::new) }
    }

    /// How much memory there may be.
    pub fn memory_bound(&self) -> Option<u64> {
        self.memory.as_ref().and_then(Memory::bound)
    }

    /// The share of what is used most, and what that is.
    fn used(&self) -> (f64, Scarce) {
        let memory = self.memory.as_ref().and_then(Memory::used).unwrap_or_default();
        let descriptors = self.descriptors.as_ref().and_then(Descriptors::used).unwrap_or_default();
        if memory >= descriptors {
            (memory, Scarce::Memory)
        } else {
            (descriptors, Scarce::Descriptors)
        }
    }

    /// Calls `tell` with the level, and what it is reached by, whenever they change. Never ends.
    pub async fn watch(self, tell: impl Fn(Level, Scarce)) {
        let mut level = Level::Normal;
        let mut told = Scarce::Memory;
        let mut looks = interval(PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let (used, scarce) = self.used();
            let next = level.next(used);
            if next == level && (level == Level::Normal || scarce == told) {
                continue;
            }
            (level, told) = (next, scarce);
            tell(level, scarce);
            let what = scarce.name();
            let percent = (used * 100.0).round();
            match next {
                Level::Normal => tracing::info!("{what}: {percent} % are used, enough again"),
                Level::High => tracing::warn!(
                    "{what}: {percent} % are used; idle connections end, and others after their answer"
                ),
                Level::Full => tracing::error!(
                    "{what}: {percent} % are used; new connections and requests are turned away"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Descriptors, Level, Memory, Scarce, Watched};
    use std::sync::mpsc::sync_channel;

    #[test]
    fn levels_come_with_their_share_and_go_only_well_below_it() {
        use Level::{Full, High, Normal};
        let mut level = Normal;
        let levels =
            [0.5, 0.89, 0.90, 0.86, 0.94, 0.95, 0.93, 0.91, 0.86, 0.84, 0.99, 0.1].map(|used| {
                level = level.next(used);
                level
            });
        assert_eq!(
            levels,
            [Normal, Normal, High, High, High, Full, Full, High, High, Normal, Full, Normal]
        );
    }

    #[tokio::test]
    async fn a_process_that_uses_more_than_it_may_is_told_so() {
        let watched = Watched::of_this_process(Some(1), None);
        let (tell, told) = sync_channel(8);
        let watching = tokio::spawn(watched.watch(move |level, _| {
            let _ = tell.send(level);
        }));
        let first = tokio::task::spawn_blocking(move || told.recv()).await;
        assert_eq!(first.expect("no panic").expect("a level"), Level::Full);
        watching.abort();
    }

    #[test]
    fn what_is_used_most_decides() {
        let watched = |memory: u64, descriptors: u64| Watched {
            memory: Some(Memory::own(memory)),
            descriptors: Some(Descriptors::new(descriptors)),
        };
        assert_eq!(watched(1, u64::MAX).used().1, Scarce::Memory);
        assert_eq!(watched(u64::MAX, 1).used().1, Scarce::Descriptors);
    }
}
