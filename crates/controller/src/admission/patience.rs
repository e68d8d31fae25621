//! A connection that ends where nobody takes what is written to it.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A stream to which nothing waits to be written for longer than a while.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Until when something may be taken of what waits.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// A stream that waits for so long.
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, until: None }
    }
}

impl<S: Unpin> Patient<S> {
    /// What a step comes to that writes, unless it has waited for too long.
    fn poll_write_step<T>(
        &mut self,
        cx: &mut Context<'_>,
        step: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = step(Pin::new(&mut self.stream), cx) {
            self.until = None;
            return Poll::Ready(done);
        }
        #[expect(clippy::disallowed_methods, reason = "whoever takes nothing is left by the clock")]
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        ready!(until.as_mut().poll(cx));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_step(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_step(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_step(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::Patient;
    use std::io::ErrorKind;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_left_and_who_is_slow_is_not() {
        let (near, mut far) = duplex(1);
        let mut patient = Patient::new(near, Duration::from_secs(8));
        let slow = async {
            for _ in 0..5 {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the clock of the test stands still"
                )]
                sleep(Duration::from_secs(7)).await;
                far.read_u8().await.expect("something is written");
            }
        };
        let (written, ()) = tokio::join!(patient.write_all(b"12345"), slow);
        written.expect("each byte was taken in time");
        let left = patient.write_all(b"12").await.expect_err("nobody takes it");
        assert_eq!(left.kind(), ErrorKind::TimedOut);
    }
}
