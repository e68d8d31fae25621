//! One timer per connection, moved instead of made anew: moving a deadline back costs nothing until the old one passes.

use crate::now::{now, time_passes};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline that moves.
#[derive(Debug)]
pub struct Timer {
    deadline: Cell<Instant>,
    /// None until somebody waits.
    armed: RefCell<Option<Armed>>,
}

/// What the event loop was told: at the deadline, or at one that stood before it.
#[derive(Debug)]
struct Armed {
    sleep: Pin<Box<Sleep>>,
    wakes: Waker,
}

/// The deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl Timer {
    /// A timer that runs out after `wait`.
    pub fn new(wait: Duration) -> Self {
        Self { deadline: Cell::new(after(wait)), armed: RefCell::default() }
    }

    /// Moves the deadline to `wait` from now. Whoever waits for it polls it again.
    pub fn reset(&self, wait: Duration) {
        self.deadline.set(after(wait));
    }

    /// Whether the deadline passed; wakes when it does.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Elapsed> {
        let deadline = self.deadline.get();
        let mut armed = self.armed.borrow_mut();
        let Armed { sleep, wakes } = armed.get_or_insert_with(|| Armed {
            sleep: Box::pin(sleep_until(deadline)),
            wakes: Waker::noop().clone(),
        });
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        } else if wakes.will_wake(cx.waker()) && !sleep.is_elapsed() {
            // It is yet to wake this task. The clock would not say so: a thread that keeps the time may be told of the
            // end of a sleep before its own time reaches it, and nobody would wake the task again.
            return Poll::Pending;
        }
        loop {
            // A task that finds work whenever it looks has used up its turn when it asks. Nobody would begin to wait
            // for it then, and it would never be told.
            if pin!(unconstrained(sleep.as_mut())).poll(cx).is_pending() {
                wakes.clone_from(cx.waker());
                return Poll::Pending;
            }
            time_passes();
            if sleep.deadline() >= deadline {
                return Poll::Ready(Elapsed);
            }
            sleep.as_mut().reset(deadline);
        }
    }

    /// What `future` gives, if it does so within `wait`.
    pub async fn within<F: Future>(&self, wait: Duration, future: F) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        let mut started = false;
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            if !started {
                self.reset(wait);
                started = true;
            }
            self.poll(cx).map(Err)
        })
        .await
    }
}

/// `wait` from now, or what is as good as never.
fn after(wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    now() + wait.min(YEAR)
}

#[cfg(test)]
mod tests {
    use super::Timer;
    use std::future::poll_fn;
    use std::time::Duration;
    use tokio::time::Instant;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_deadline_moves_both_ways_while_somebody_waits() {
        let (timer, start) = (Timer::new(5 * SECOND), Instant::now());
        let mut moves = [9 * SECOND, 2 * SECOND, 4 * SECOND].into_iter();
        poll_fn(|cx| {
            if let Some(wait) = moves.next() {
                timer.reset(wait);
                assert!(timer.poll(cx).is_pending());
                cx.waker().wake_by_ref();
                return std::task::Poll::Pending;
            }
            timer.poll(cx)
        })
        .await;
        assert_eq!(start.elapsed().as_secs(), 4);
    }

    #[test]
    fn a_thread_that_is_busy_and_keeps_an_old_time_is_told_all_the_same() {
        // What a thread keeps, it keeps for all tests on it.
        let waited = std::thread::spawn(|| {
            let started = std::time::Instant::now();
            let is_busy = std::rc::Rc::new(std::cell::Cell::new(true));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let local = tokio::task::LocalSet::new();
            crate::keep_time();
            local.block_on(&runtime.expect("there is a runtime"), async {
                // Nothing comes in and the thread never rests, so nobody says that time passes.
                let busy = is_busy.clone();
                let other = tokio::task::spawn_local(async move {
                    while busy.get() && started.elapsed() < 30 * SECOND {
                        tokio::task::yield_now().await;
                    }
                    assert!(!busy.replace(false), "the deadline was never told");
                });
                let waits = tokio::task::spawn_local(async move {
                    let timer = Timer::new(SECOND / 100);
                    poll_fn(|cx| timer.poll(cx)).await;
                    is_busy.set(false);
                });
                other.await.expect("nothing panics");
                waits.await.expect("nothing panics");
            });
        });
        waited.join().expect("the timer ends");
    }

    #[test]
    fn a_deadline_passes_for_a_task_that_always_finds_work() {
        let (work, never_ends) = tokio::sync::mpsc::channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let mut work = (work, never_ends);
        let started = std::time::Instant::now();
        runtime.expect("there is a runtime").block_on(async {
            let timer = Timer::new(SECOND / 100);
            poll_fn(|cx| {
                assert!(started.elapsed() < 30 * SECOND, "the deadline was never told");
                // Ends only where the turn of the task does.
                let _ = work.0.try_send(());
                while work.1.poll_recv(cx).is_ready() {
                    let _ = work.0.try_send(());
                }
                timer.poll(cx)
            })
            .await;
        });
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_last_is_woken() {
        let (timer, start) = (std::rc::Rc::new(Timer::new(3 * SECOND)), Instant::now());
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let other = timer.clone();
                let first = async move {
                    poll_fn(|cx| std::task::Poll::Ready(other.poll(cx).is_pending())).await
                };
                assert!(tokio::task::spawn_local(first).await.is_ok_and(|pending| pending));
                poll_fn(|cx| timer.poll(cx)).await;
            })
            .await;
        assert_eq!(start.elapsed().as_secs(), 3);
    }
}
