//! What was served when: clients ask it which Configurations an answer may come from.

use model::Configuration;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// All Configurations so far, and how far they have got.
#[derive(Debug)]
pub struct Journal {
    versions: RwLock<Vec<Configuration>>,
    done: AtomicUsize,
    stopped: AtomicBool,
}

impl Journal {
    pub fn new(first: Configuration) -> Self {
        Self {
            versions: RwLock::new(vec![first]),
            done: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// The next one is about to be applied.
    pub fn begin(&self, next: Configuration) {
        self.versions.write().expect("nobody panicked").push(next);
    }

    /// It is in force.
    pub fn end(&self) {
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    /// The version that is in force for sure.
    pub fn now(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    /// Every version that has been in force since, or may be by now.
    pub fn since(&self, version: usize) -> Vec<Configuration> {
        self.versions.read().expect("nobody panicked")[version..].to_vec()
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}
