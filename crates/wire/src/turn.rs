//! How much of bodies a thread moves in one turn of its event loop. Whoever has more waits for the next turn, behind
//! those who wait already: whatever came meanwhile is seen after that much, however many bodies are on their way.

use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;
use tokio::task::yield_now;

/// Bytes of bodies in one turn, and one piece more at most.
const MOST: usize = 64 << 10;
/// Waiting bodies that are asked in one turn: each moves a piece of up to `MOST`.
const ASKED: usize = 4;
/// Of those who wait, the last ones that are compared with a newcomer.
const LOOKED_AT: usize = 16;
/// Those who wait at most; beyond it the first one is asked at once.
const LONGEST: usize = 4096;

/// Who waits for a turn of a thread's event loop. Shared with nobody but the task that counts turns.
#[derive(Default)]
struct Turn {
    /// How many were counted.
    number: AtomicUsize,
    waiting: Mutex<VecDeque<Waker>>,
    /// Whether turns are counted: only while somebody waits.
    is_counted: AtomicBool,
}

thread_local! {
    /// What this thread has moved in its turn. Asked for each piece: so it is a number, and no part of what is shared.
    static MOVED: Cell<usize> = const { Cell::new(0) };
    /// The turn that this was in.
    static SEEN: Cell<usize> = const { Cell::new(0) };
    static TURN: Arc<Turn> = Arc::default();
}

/// Ready when a piece of a body may be moved in this turn.
pub(crate) fn poll_room(cx: &mut Context<'_>) -> Poll<()> {
    if MOVED.get() < MOST { Poll::Ready(()) } else { TURN.with(|turn| turn.poll_next(cx)) }
}

/// Bytes of a body were moved.
pub(crate) fn moved(count: usize) {
    MOVED.set(MOVED.get().saturating_add(count));
}

impl Turn {
    /// Waits for a later turn, unless this is one already.
    #[cold]
    fn poll_next(self: &Arc<Self>, cx: &mut Context<'_>) -> Poll<()> {
        let number = self.number.load(Ordering::Relaxed);
        if SEEN.replace(number) != number {
            MOVED.set(0);
            return Poll::Ready(());
        }
        let Ok(here) = Handle::try_current() else { return Poll::Ready(()) };
        let mut waiting = self.waiting.lock();
        // Whoever is asked for several reasons waits once.
        if !waiting.iter().rev().take(LOOKED_AT).any(|waker| waker.will_wake(cx.waker())) {
            waiting.push_back(cx.waker().clone());
        }
        // Whoever is polled for other reasons waits several times, and may be asked too often.
        let first = (waiting.len() > LONGEST).then(|| waiting.pop_front()).flatten();
        drop(waiting);
        first.into_iter().for_each(Waker::wake);
        if !self.is_counted.swap(true, Ordering::Relaxed) {
            here.spawn(self.clone().count());
        }
        Poll::Pending
    }

    /// Begins turn after turn until nobody waits.
    async fn count(self: Arc<Self>) {
        loop {
            // What yields goes on when the event loop has looked what came, and not before.
            yield_now().await;
            let mut waiting = self.waiting.lock();
            let asked = waiting.len().min(ASKED);
            let asked: Vec<Waker> = waiting.drain(..asked).collect();
            if asked.is_empty() {
                self.is_counted.store(false, Ordering::Relaxed);
                return;
            }
            drop(waiting);
            self.number.fetch_add(1, Ordering::Relaxed);
            asked.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Io;
    use bytes::BytesMut;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::{LocalSet, spawn_local, yield_now};

    const CONNECTIONS: usize = 16;
    const PIECE: usize = 64 << 10;

    /// A connection on which as much as the system holds waits to be read, and how much that is.
    async fn full(listener: &TcpListener) -> (Io, usize) {
        let address = listener.local_addr().expect("bound");
        let (sender, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (sender, (own, _)) = (sender.expect("connected"), accepted.expect("accepted"));
        let mut sent = 0;
        sender.writable().await.expect("it takes bytes");
        while let Ok(count) = sender.try_write(&[7; PIECE]) {
            sent += count;
        }
        (Io::Plain(own), sent)
    }

    #[tokio::test]
    async fn however_many_bodies_are_on_their_way_few_bytes_are_moved_before_others_are_seen() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let (mut all, mut sent) = (Vec::new(), 0);
        for _ in 0..CONNECTIONS {
            let (io, waiting) = full(&listener).await;
            all.push(io);
            sent += waiting;
        }
        assert!(sent > 2 * CONNECTIONS * PIECE, "hardly anything waits: {sent}");
        let (moved, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let tasks = LocalSet::new();
        let readers = all.into_iter().map(|mut io| {
            let moved = moved.clone();
            tasks.spawn_local(async move {
                let mut buffer = BytesMut::new();
                let mut read = async || {
                    buffer.clear();
                    poll_fn(|cx| io.poll_read_body(cx, &mut buffer, usize::MAX)).await
                };
                while let Ok(count @ 1..) = read().await {
                    moved.set(moved.get() + count);
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        let seen = most.clone();
        let reading = async move {
            // What yields is woken once the event loop has looked what came.
            spawn_local(async move {
                loop {
                    let before = moved.get();
                    yield_now().await;
                    seen.set(seen.get().max(moved.get() - before));
                }
            });
            for reader in readers {
                reader.await.expect("it reads to the end");
            }
        };
        tasks.run_until(reading).await;
        let most = most.get();
        // The end of one turn and the beginning of the next one, with a last piece in each.
        assert!(most > 0 && most <= 4 * PIECE, "{most} of {sent} bytes");
    }
}
