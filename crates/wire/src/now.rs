//! The time as threads of traffic take it: read once for each arrival of bytes and each wake-up of the event loop, not
//! by everybody who asks.

use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;

/// What a thread knows of the time.
#[derive(Clone, Copy)]
enum Known {
    /// It asks the clock each time.
    Nothing,
    /// It has passed since it was read.
    Old,
    /// As of the last bytes, or of the last wake-up.
    At(Instant),
}

thread_local! {
    static KNOWN: Cell<Known> = const { Cell::new(Known::Nothing) };
    /// How often the event loop has waited for something and woken up.
    static WAKES: Cell<u64> = const { Cell::new(0) };
    /// How long it was last between two instants.
    static SINCE: Cell<(Option<Instant>, Option<Instant>, Duration)> =
        const { Cell::new((None, None, Duration::ZERO)) };
}

/// This thread keeps the time from now on: whoever runs its event loop says when it passes.
pub fn keep_time() {
    KNOWN.set(Known::Old);
}

/// Time has passed: bytes came, or the event loop woke up.
pub fn time_passes() {
    if matches!(KNOWN.get(), Known::At(_)) {
        KNOWN.set(Known::Old);
    }
}

/// The event loop of this thread has woken up.
pub fn wakes_up() {
    WAKES.set(WAKES.get().wrapping_add(1));
    time_passes();
}

/// The number of the wake-up that this thread is at: while it is the same, the event loop may not have looked what
/// came.
pub fn wake() -> u64 {
    WAKES.get()
}

/// The time.
pub fn now() -> Instant {
    match KNOWN.get() {
        Known::At(instant) => instant,
        Known::Nothing => Instant::now(),
        Known::Old => {
            let instant = Instant::now();
            KNOWN.set(Known::At(instant));
            instant
        }
    }
}

/// Whether `instant` was at least `age` ago: told without measuring how long.
pub fn is_older(instant: Instant, age: Duration) -> bool {
    instant.checked_add(age).is_some_and(|end| now() >= end)
}

/// How long ago `instant` was.
pub fn since(instant: Instant) -> Duration {
    let now = now();
    // Mostly nothing has come in since: much of what is measured begins and ends with the same bytes, and much with
    // what was measured last.
    if now == instant {
        return Duration::ZERO;
    }
    let (from, to, known) = SINCE.get();
    if (from, to) == (Some(instant), Some(now)) {
        return known;
    }
    let since = now.saturating_duration_since(instant);
    SINCE.set((Some(instant), Some(now), since));
    since
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, is_older, keep_time, now, time_passes};

    #[test]
    fn time_that_is_kept_stands_until_it_passes() {
        // What a thread keeps, it keeps for all tests on it.
        let checked = std::thread::spawn(|| {
            let asked = now();
            while now() == asked {}
            keep_time();
            let (kept, later) = (now(), Instant::now());
            while Instant::now() == later {}
            assert_eq!(now(), kept);
            time_passes();
            assert!(now() > kept);
        });
        checked.join().expect("nothing panics");
    }

    #[tokio::test(start_paused = true)]
    async fn an_age_is_reached_with_its_last_moment_and_none_is_endless() {
        let began = now();
        assert!(is_older(began, Duration::ZERO));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!is_older(began, Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(is_older(began, Duration::from_secs(60)) && !is_older(began, Duration::MAX));
    }
}
