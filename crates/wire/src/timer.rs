//! One timer per connection, moved instead of made anew: moving a deadline back takes no lock.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A deadline that moves.
#[derive(Debug)]
pub struct Timer {
    sleep: RefCell<Pin<Box<Sleep>>>,
}

/// The deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl Timer {
    /// A timer that runs out after `wait`.
    pub fn new(wait: Duration) -> Self {
        Self { sleep: RefCell::new(Box::pin(tokio::time::sleep(wait))) }
    }

    /// Moves the deadline to `wait` from now.
    pub fn reset(&self, wait: Duration) {
        self.sleep.borrow_mut().as_mut().reset(Instant::now() + wait);
    }

    /// Whether the deadline passed; wakes when it does.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Elapsed> {
        self.sleep.borrow_mut().as_mut().poll(cx).map(|()| Elapsed)
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
