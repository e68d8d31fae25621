//! Waiting for something to become true, without guessing how long it takes.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks `probe` again and again until it gives a value; nothing after `patience`.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    mut probe: impl FnMut() -> F,
) -> Option<T> {
    let end = Instant::now() + patience;
    loop {
        if let Some(value) = probe().await {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_gives_the_value_as_soon_as_there_is_one() {
        let mut asked = 0;
        let found = eventually(Duration::from_secs(5), || {
            asked += 1;
            let now = asked;
            async move { (now == 3).then_some(now) }
        });
        assert_eq!(found.await, Some(3));
    }

    #[tokio::test]
    async fn it_gives_up_when_patience_ends() {
        let never = eventually(Duration::from_millis(30), || async { None::<()> });
        assert_eq!(never.await, None);
    }
}
