//! Whether most kinds were lost at the same time, as when an API server goes: what comes first afterwards is half of
//! what has changed.

use crate::watch::WatchId;
use std::time::Duration;
use tokio::time::Instant;

/// How long a Snapshot is held back at most, once the first kind is followed again after most were lost: until the
/// others are, it would say that what an Ingress names now is not there. So it is while kinds appear or go.
pub(super) const RESUMES: Duration = Duration::from_secs(5);

/// Which watches are lost, and what follows from that.
#[derive(Debug)]
pub(super) struct Outage {
    /// Which watches were listed and are not followed now.
    lost: Vec<bool>,
    /// Most were lost at the same time, and some still are.
    is_one: bool,
    /// Until when the Snapshot is held back, once the first of those is followed again.
    until: Option<Instant>,
}

impl Outage {
    pub(super) fn new(watches: usize) -> Self {
        Self { lost: vec![false; watches], is_one: false, until: None }
    }

    /// A watch that was listed is not followed any more, for whatever reason: an API server that starts forbids for a
    /// moment what it allows. So many are listed.
    pub(super) fn lose(&mut self, watch: WatchId, listed: usize) {
        self.lost[watch] = true;
        // Those that stay lost are no reason to overlook the next outage.
        let is_over = self.until.is_some_and(|until| until <= Instant::now());
        if self.count() > listed / 2 && (!self.is_one || is_over) {
            (self.is_one, self.until) = (true, None);
        }
    }

    /// A watch follows, or has nothing to follow.
    pub(super) fn follow(&mut self, watch: WatchId) {
        let was_lost = std::mem::replace(&mut self.lost[watch], false);
        if self.count() == 0 {
            (self.is_one, self.until) = (false, None);
        } else if was_lost && self.is_one {
            self.until.get_or_insert_with(|| Instant::now() + RESUMES);
        }
    }

    /// Until when the Snapshot is held back, which may be over.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    fn count(&self) -> usize {
        self.lost.iter().filter(|lost| **lost).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{Outage, RESUMES};
    use std::time::Duration;
    use tokio::time::{Instant, advance};

    const LISTED: usize = 5;

    fn lost(watches: &[usize]) -> Outage {
        let mut outage = Outage::new(LISTED);
        watches.iter().for_each(|watch| outage.lose(*watch, LISTED));
        outage
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_never_lost_does_not_begin_the_time_of_the_others() {
        let mut outage = lost(&[0, 1, 2]);
        outage.follow(4);
        assert_eq!(outage.until(), None, "half a minute later the three come back");
        advance(Duration::from_secs(30)).await;
        outage.follow(0);
        assert_eq!(outage.until(), Some(Instant::now() + RESUMES));
        outage.follow(1);
        outage.follow(2);
        assert_eq!(outage.until(), None, "all are followed");
    }

    #[tokio::test(start_paused = true)]
    async fn where_one_stays_lost_the_next_outage_is_held_back_too() {
        let mut outage = lost(&[0, 1, 2]);
        outage.follow(0);
        outage.follow(1);
        advance(RESUMES * 2).await;
        outage.lose(2, LISTED);
        assert!(outage.until().is_some_and(|until| until < Instant::now()), "one is no outage");
        outage.lose(0, LISTED);
        outage.lose(1, LISTED);
        assert_eq!(outage.until(), None, "another one has begun");
        outage.follow(1);
        assert_eq!(outage.until(), Some(Instant::now() + RESUMES));
        // Nothing prolongs it.
        outage.lose(1, LISTED);
        outage.follow(1);
        assert_eq!(outage.until(), Some(Instant::now() + RESUMES));
    }
}
