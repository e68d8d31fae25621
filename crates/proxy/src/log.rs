//! Access log lines on their way to standard output: gathered by each thread, written by one of its own, so that a
//! slow reader never holds up traffic.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Bytes gathered before they are handed over.
const GATHERED: usize = 16 << 10;
/// Pieces that may wait for a slow reader; then lines are dropped, and counted.
const WAITING: usize = 256;

/// One thread's end of the access log.
#[derive(Debug)]
pub struct AccessLog {
    gathered: RefCell<String>,
    dropped: Cell<u64>,
    writer: SyncSender<String>,
}

/// Starts the thread that writes to standard output.
pub fn start() -> io::Result<SyncSender<String>> {
    let (sender, receiver) = sync_channel(WAITING);
    std::thread::Builder::new().name("access-log".to_owned()).spawn(move || write(&receiver))?;
    Ok(sender)
}

fn write(receiver: &Receiver<String>) {
    let mut out = io::stdout().lock();
    for piece in receiver {
        if let Err(error) = out.write_all(piece.as_bytes()).and_then(|()| out.flush()) {
            tracing::warn!(%error, "the access log cannot be written");
        }
    }
}

impl AccessLog {
    /// A log whose lines go to `writer`.
    pub fn new(writer: SyncSender<String>) -> Self {
        Self { gathered: RefCell::default(), dropped: Cell::new(0), writer }
    }

    /// Adds the line that `fill` makes.
    pub fn line(&self, fill: impl FnOnce(&mut String)) {
        let mut gathered = self.gathered.borrow_mut();
        fill(&mut gathered);
        gathered.push('\n');
        if gathered.len() >= GATHERED {
            drop(gathered);
            self.flush();
        }
    }

    /// Hands over what was gathered.
    pub fn flush(&self) {
        let piece = self.gathered.take();
        if piece.is_empty() {
            return;
        }
        match self.writer.try_send(piece) {
            Ok(()) => {}
            Err(TrySendError::Full(piece) | TrySendError::Disconnected(piece)) => {
                let before = self.dropped.get();
                self.dropped.set(before + piece.lines().count() as u64);
                if before == 0 {
                    tracing::warn!(
                        "standard output is too slow for the access log: lines are dropped"
                    );
                }
            }
        }
    }
}
