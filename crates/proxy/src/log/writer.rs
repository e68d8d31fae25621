//! The thread that writes a log, and what others hold of it.

use super::sink::{self, Sink};
use arc_swap::ArcSwap;
use model::LogTarget;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Pieces that may wait for a slow reader.
const WAITING: usize = 4096;
/// Bytes of memory that these may take: a piece is as long as its last line makes it.
const BYTES: usize = 16 << 20;

/// A handle on the thread that writes a log.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pieces: SyncSender<Piece>,
    wanted: Arc<Wanted>,
}

/// What the thread is to follow.
#[derive(Debug)]
struct Wanted {
    target: ArcSwap<LogTarget>,
    reopen: AtomicBool,
    /// Memory that the pieces take which wait.
    waiting: AtomicUsize,
    /// Lines that found no room, or that their target did not take.
    dropped: AtomicU64,
}

#[derive(Debug)]
enum Piece {
    /// Whole lines, with their syslog severity if it is not the target's.
    Lines(Option<u8>, Vec<u8>),
    /// Something changed: look at what is wanted.
    Look,
    /// Say so once all before it is written.
    Settled(SyncSender<()>),
}

impl Writer {
    /// Starts the thread `name`, which writes to `target`.
    pub(crate) fn start(name: &str, target: LogTarget) -> io::Result<Self> {
        let (writer, receiver) = Self::new(target);
        let own = writer.wanted.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&receiver, &own))?;
        Ok(writer)
    }

    fn new(target: LogTarget) -> (Self, Receiver<Piece>) {
        let (pieces, receiver) = sync_channel(WAITING);
        let wanted = Wanted {
            target: ArcSwap::from_pointee(target),
            reopen: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
        };
        (Self { pieces, wanted: Arc::new(wanted) }, receiver)
    }

    /// Hands over lines; false if they were dropped since too many wait already. Never blocks.
    pub(crate) fn write(&self, severity: Option<u8>, lines: Vec<u8>) -> bool {
        let size = lines.capacity();
        let has_room = self.wanted.waiting.fetch_add(size, Ordering::Relaxed) + size <= BYTES;
        let lines = if has_room {
            match self.pieces.try_send(Piece::Lines(severity, lines)) {
                Err(
                    TrySendError::Full(Piece::Lines(_, lines))
                    | TrySendError::Disconnected(Piece::Lines(_, lines)),
                ) => lines,
                Ok(()) | Err(_) => return true,
            }
        } else {
            lines
        };
        self.wanted.waiting.fetch_sub(size, Ordering::Relaxed);
        self.wanted.dropped.fetch_add(sink::count(&lines), Ordering::Relaxed);
        false
    }

    /// Lines that were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.wanted.dropped.load(Ordering::Relaxed)
    }

    /// Lines go to `target` from now on.
    pub(crate) fn follow(&self, target: &LogTarget) {
        if **self.wanted.target.load() != *target {
            self.wanted.target.store(Arc::new(target.clone()));
            // A full queue wakes the thread anyway.
            let _ = self.pieces.try_send(Piece::Look);
        }
    }

    /// Opens the file again, which somebody moved away.
    pub(crate) fn reopen(&self) {
        self.wanted.reopen.store(true, Ordering::Release);
        let _ = self.pieces.try_send(Piece::Look);
    }

    /// Waits until what was handed over is written, but not for ever.
    pub(crate) fn settle(&self, patience: Duration) {
        let (settled, wait) = sync_channel(1);
        if self.pieces.try_send(Piece::Settled(settled)).is_ok() {
            // It is late either way.
            let _ = wait.recv_timeout(patience);
        }
    }
}

fn run(pieces: &Receiver<Piece>, wanted: &Wanted) {
    let mut target = wanted.target.load_full();
    let mut sink = Sink::open(&target);
    for piece in pieces {
        let reopen = wanted.reopen.swap(false, Ordering::AcqRel);
        let now = wanted.target.load_full();
        if reopen || !Arc::ptr_eq(&now, &target) || sink.wants_another_try() {
            target = now;
            sink = Sink::open(&target);
        }
        match piece {
            Piece::Lines(severity, lines) => {
                let lost = sink.write(severity, &lines);
                wanted.waiting.fetch_sub(lines.capacity(), Ordering::Relaxed);
                wanted.dropped.fetch_add(lost, Ordering::Relaxed);
            }
            Piece::Look => {}
            Piece::Settled(settled) => drop(settled.try_send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Piece, Writer};
    use model::LogTarget;
    use std::time::Duration;

    #[test]
    fn what_waits_for_a_slow_reader_has_a_bound_of_bytes_however_long_its_lines_are() {
        let (writer, receiver) = Writer::new(LogTarget::Stdout);
        // A line of a hostile client, in memory that has doubled.
        let piece = || {
            let mut lines = Vec::with_capacity(256 << 10);
            lines.extend([b'x'; 100 << 10]);
            lines.push(b'\n');
            lines
        };
        let kept = (0..256).filter(|_| writer.write(None, piece())).count();
        assert_eq!((kept, writer.dropped()), (BYTES / (256 << 10), 256 - kept as u64));
        let held: usize = receiver
            .try_iter()
            .map(|piece| if let Piece::Lines(_, lines) = piece { lines.capacity() } else { 0 })
            .sum();
        assert_eq!(held, BYTES);
    }

    #[test]
    fn what_was_written_makes_room() {
        let writer = Writer::start("log", LogTarget::File("/dev/null".to_owned())).expect("a log");
        for _ in 0..4 {
            let piece = || vec![b'\n'; 1 << 20];
            assert!((0..BYTES >> 20).all(|_| writer.write(None, piece())), "there is room again");
            writer.settle(Duration::from_secs(20));
        }
    }
}
