//! How many names each namespace has followed: who has very many has each of them looked up less often, and writes no
//! more lines of the log than others.

use parking_lot::Mutex;
use shares::Lines;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// No name is looked up more often, whatever its TTL (ingress-nginx looks at all of them each second).
const LEAST: Duration = Duration::from_secs(1);
/// Lookups of all names in a second, and of those of one namespace.
const PACE: usize = 400;
const OF_ONE: usize = 100;
/// Lines about the names of one namespace in a minute.
const LINES: u64 = 60;

/// What is followed, by namespace; who has nothing is not in it.
#[derive(Debug, Default)]
pub(crate) struct Followed(Mutex<HashMap<Arc<str>, Share>>);

#[derive(Debug)]
struct Share {
    names: usize,
    lines: Lines,
}

/// A name that is followed, until it is dropped.
#[derive(Debug)]
pub(crate) struct Name {
    followed: Arc<Followed>,
    namespace: Arc<str>,
}

impl Followed {
    /// A namespace has one more.
    pub(crate) fn enter(self: &Arc<Self>, namespace: &Arc<str>) -> Name {
        let new = || Share { names: 0, lines: Lines::new(now()) };
        self.0.lock().entry(namespace.clone()).or_insert_with(new).names += 1;
        Name { followed: self.clone(), namespace: namespace.clone() }
    }
}

impl Name {
    /// How long it takes at least from one lookup to the next.
    pub(crate) fn least(&self) -> Duration {
        let shares = self.followed.0.lock();
        let names = shares.get(&self.namespace).map_or(1, |share| share.names);
        let pace = (PACE / shares.len().max(1)).clamp(1, OF_ONE);
        let pause = names.saturating_mul(1000) / pace;
        LEAST.max(Duration::from_millis(u64::try_from(pause).unwrap_or(u64::MAX)))
    }

    /// Whether a line may be written about it, and how many were left out before that one.
    pub(crate) fn line(&self) -> Option<u64> {
        let mut shares = self.followed.0.lock();
        let share = shares.get_mut(&self.namespace)?;
        share.lines.line(now(), LINES).map(|line| line.left_out)
    }
}

/// Of tokio's clock, which tests may pause.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut shares = self.followed.0.lock();
        if let Some(share) = shares.get_mut(&self.namespace) {
            share.names -= 1;
            if share.names == 0 {
                shares.remove(&self.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Followed, LEAST, LINES};
    use shares::MINUTE;
    use std::sync::Arc;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn who_has_very_many_names_has_each_looked_up_less_often_and_writes_no_more_lines() {
        let followed = Arc::new(Followed::default());
        let many: Vec<_> = (0..3000).map(|_| followed.enter(&"many".into())).collect();
        let few = followed.enter(&"few".into());
        assert_eq!((many[0].least(), few.least()), (Duration::from_secs(30), LEAST));
        assert_eq!(many.iter().filter_map(super::Name::line).count() as u64, LINES);
        assert_eq!(few.line(), Some(0));
        tokio::time::advance(MINUTE).await;
        assert_eq!((many[0].line(), many[0].line()), (Some(3000 - LINES), Some(0)));
        drop(many);
        let others: Vec<_> =
            (0..399).map(|one| followed.enter(&format!("n{one}").into())).collect();
        let second = followed.enter(&"few".into());
        assert_eq!(second.least(), Duration::from_secs(2), "all of them have 400 in a second");
        drop((few, second, others));
        assert!(followed.0.lock().is_empty());
    }
}
