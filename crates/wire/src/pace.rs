//! A body that is sent no faster than so many bytes each second (ngx_http_write_filter_module).

use crate::Timer;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// How fast a body goes.
#[derive(Debug)]
pub struct Pace {
    /// Bytes each second.
    rate: u64,
    /// Bytes that go before that counts.
    after: u64,
    since: Instant,
    sent: u64,
    timer: Timer,
    waiting: bool,
}

impl Pace {
    /// At most `rate` bytes each second from `since` on, not counting the first `after` ones.
    pub fn new(rate: u64, after: u64, since: Instant) -> Self {
        let timer = Timer::new(Duration::ZERO);
        Self { rate, after, since, sent: 0, timer, waiting: false }
    }

    /// How many bytes may go now: at least one.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            if self.waiting {
                ready!(self.timer.poll(cx));
                self.waiting = false;
            }
            let beyond = self.sent.saturating_sub(self.after);
            let earned = self.earned();
            if earned > beyond {
                let free = self.after.saturating_sub(self.sent);
                let allowance = (earned - beyond).saturating_add(free);
                return Poll::Ready(usize::try_from(allowance).unwrap_or(usize::MAX));
            }
            self.wait((beyond - earned).saturating_add(1));
        }
    }

    /// So many bytes went; the next ones wait for as long as these take.
    pub(super) fn went(&mut self, bytes: usize) {
        let before = self.sent.saturating_sub(self.after);
        self.sent = self.sent.saturating_add(bytes as u64);
        let paced = self.sent.saturating_sub(self.after) - before;
        if paced > 0 {
            self.wait(paced);
        }
    }

    /// What may have gone by now: one second's worth is always there.
    fn earned(&self) -> u64 {
        let passed = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let earned = u128::from(self.rate) * (u128::from(passed) + 1000) / 1000;
        u64::try_from(earned).unwrap_or(u64::MAX)
    }

    fn wait(&mut self, bytes: u64) {
        let milliseconds = u128::from(bytes) * 1000 / u128::from(self.rate);
        let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
        if milliseconds > 0 {
            self.timer.reset(Duration::from_millis(milliseconds.min(MOST)));
            self.waiting = true;
        }
    }
}

/// The longest pause, after which it is counted again: an hour.
const MOST: u64 = 3_600_000;

#[cfg(test)]
mod tests {
    use super::Pace;
    use crate::{Body, Frame, Length};
    use bytes::Bytes;
    use std::time::Duration;
    use tokio::time::Instant;

    /// Bytes and seconds of each piece of `size` bytes at `rate`, the first `after` of which are free.
    async fn pieces(size: usize, rate: u64, after: u64) -> Vec<(usize, f64)> {
        let started = Instant::now();
        let mut body = Body::full(Bytes::from(vec![b'x'; size]));
        body.pace(Some(Pace::new(rate, after, started)), None);
        let mut pieces = Vec::new();
        let mut left = size;
        while left > 0 {
            assert_eq!(body.length(), Length::Known(left as u64));
            let Ok(Some(Frame::Data(data))) = body.frame().await else {
                unreachable!("the body has {left} bytes more");
            };
            left -= data.len();
            pieces.push((data.len(), started.elapsed().as_secs_f64()));
        }
        assert!(body.is_empty());
        pieces
    }

    #[tokio::test(start_paused = true)]
    async fn no_number_is_too_large() {
        for (rate, after) in [(1024, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX, 0)] {
            assert_eq!(pieces(1000, rate, after).await.len(), 1, "{rate} {after}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_takes_as_long_as_its_rate_says() {
        let pieces = pieces(5000, 1000, 0).await;
        let (_, last) = pieces.last().copied().expect("pieces");
        assert!((3.9..5.1).contains(&last), "{pieces:?}");
        let by = |second: f64| -> usize {
            pieces.iter().filter(|(_, at)| *at <= second).map(|(size, _)| size).sum()
        };
        // nginx has one second's worth ready at the start.
        for second in [0.0, 1.0, 2.0, 3.0] {
            assert!(by(second) as f64 <= (second + 1.0) * 1000.0, "{second}: {pieces:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_before_the_limit_goes_at_once() {
        let pieces = pieces(5000, 1000, 4000).await;
        assert_eq!(pieces[0], (5000, 0.0), "the free bytes and the first second's");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_of_one_byte_ends_too() {
        let pieces = pieces(3, 1, 0).await;
        assert_eq!(pieces.len(), 3);
        assert!((1.9..3.1).contains(&pieces[2].1), "{pieces:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_sender_is_not_hurried_by_time_that_passed_before() {
        let since = Instant::now();
        tokio::time::advance(Duration::from_secs(2)).await;
        let mut body = Body::full(Bytes::from_static(&[b'x'; 3000]));
        body.pace(Some(Pace::new(1000, 0, since)), None);
        let Ok(Some(Frame::Data(data))) = body.frame().await else { unreachable!("a body") };
        assert_eq!(data.len(), 3000);
    }
}
