//! Readiness: the process is ready once nobody blocks it any more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// Knows what the process still waits for. Clones share it.
#[derive(Clone, Debug)]
pub struct Ready {
    /// What is waited for, by the number of the block.
    waiting: Arc<watch::Sender<BTreeMap<u64, What>>>,
    next: Arc<AtomicU64>,
}

/// Says what is waited for.
#[derive(Clone)]
struct What(Arc<dyn Fn() -> String + Send + Sync>);

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0())
    }
}

/// Keeps the process from being ready until it is dropped.
#[derive(Debug)]
#[must_use = "a block that is dropped at once blocks nothing"]
pub struct Block {
    ready: Ready,
    number: u64,
}

impl Ready {
    /// Nothing blocks yet: take the blocks before anyone asks.
    pub fn new() -> Self {
        Self { waiting: Arc::new(watch::Sender::new(BTreeMap::new())), next: Arc::default() }
    }

    /// Blocks readiness while the result lives. `what` completes "waiting for …".
    pub fn block(&self, what: impl Into<String>) -> Block {
        let what = what.into();
        self.block_saying(move || what.clone())
    }

    /// The same, where `what` is asked each time that somebody wants to know.
    pub fn block_saying(&self, what: impl Fn() -> String + Send + Sync + 'static) -> Block {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let what = What(Arc::new(what));
        self.waiting.send_modify(|waiting| {
            waiting.insert(number, what);
        });
        Block { ready: self.clone(), number }
    }

    /// Whether nothing blocks.
    pub fn is_ready(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// What is still waited for, oldest first.
    pub fn waiting(&self) -> Vec<String> {
        let waiting: Vec<What> = self.waiting.borrow().values().cloned().collect();
        waiting.iter().map(|What(say)| say()).collect()
    }

    /// Returns as soon as nothing blocks.
    pub async fn wait(&self) {
        let mut waiting = self.waiting.subscribe();
        // The sender lives in `self`, so this cannot fail while we wait.
        let _ = waiting.wait_for(BTreeMap::is_empty).await;
    }
}

impl Default for Ready {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.ready.waiting.send_modify(|waiting| {
            waiting.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[tokio::test]
    async fn the_process_is_ready_once_every_block_is_dropped() {
        let ready = Ready::new();
        let listeners = ready.block("the listeners");
        let objects = ready.clone().block("the objects");
        assert_eq!(ready.waiting(), ["the listeners", "the objects"]);
        drop(listeners);
        assert!(!ready.is_ready());
        let waiter = tokio::spawn({
            let ready = ready.clone();
            async move { ready.wait().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(objects);
        waiter.await.expect("it does not panic");
        assert!(ready.is_ready());
    }

    #[test]
    fn what_is_waited_for_is_asked_each_time() {
        let (ready, count) = (Ready::new(), Arc::new(AtomicU64::new(3)));
        let left = count.clone();
        let _block = ready.block_saying(move || format!("{} kinds", left.load(Ordering::Relaxed)));
        assert_eq!(ready.waiting(), ["3 kinds"]);
        count.store(1, Ordering::Relaxed);
        assert_eq!(ready.waiting(), ["1 kinds"]);
    }

    #[test]
    fn two_blocks_of_one_name_are_two() {
        let ready = Ready::new();
        let (first, second) = (ready.block("a thread"), ready.block("a thread"));
        drop(first);
        assert_eq!(ready.waiting(), ["a thread"]);
        drop(second);
        assert!(ready.is_ready());
    }
}
