//! Threads open and close the ports of Gateways by themselves: here they say that they have, so that what is told to be
//! served is.

use std::time::Duration;
use tokio::sync::watch;

/// How long is waited for threads that are busy; they follow all the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// Which generation's ports are to be open, and how many threads have them.
#[derive(Debug, Default)]
pub(crate) struct Openings {
    asked: watch::Sender<u64>,
    done: watch::Sender<(u64, usize)>,
}

impl Openings {
    /// What a thread follows.
    pub(crate) fn asked(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }

    /// A thread has followed.
    pub(crate) fn done(&self, number: u64) {
        self.done.send_modify(|(latest, threads)| {
            if number > *latest {
                (*latest, *threads) = (number, 1);
            } else if number == *latest {
                *threads += 1;
            }
        });
    }

    /// Asks all threads, and waits for them for a while.
    pub(crate) async fn ask(&self, number: u64, threads: usize) {
        let mut done = self.done.subscribe();
        self.asked.send_replace(number);
        let all = done.wait_for(|(latest, count)| {
            *latest > number || (*latest == number && *count >= threads)
        });
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            tracing::warn!("the ports of Gateways are still being opened and closed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Openings;

    #[tokio::test]
    async fn all_threads_are_waited_for_and_what_is_late_counts_for_nothing() {
        let openings = Openings::default();
        let mut asked = openings.asked();
        let threads = async {
            asked.changed().await.expect("it is asked");
            let number = *asked.borrow_and_update();
            openings.done(number - 1);
            openings.done(number);
            openings.done(number);
        };
        tokio::join!(openings.ask(7, 2), threads);
        assert_eq!(*openings.done.borrow(), (7, 2));
    }
}
