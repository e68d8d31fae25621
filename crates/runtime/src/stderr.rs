//! Standard error, written by a thread of its own: who reads it may stall, and nobody waits for that.

use crate::log::Format;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Lines that may wait for a slow reader.
const WAITING: usize = 4096;
/// Bytes of them.
const BYTES: usize = 4 << 20;

/// Lines of this process that nobody took in time.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Messages of the process that were dropped since the start.
pub fn lost_messages() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// A handle on the thread.
#[derive(Clone, Debug)]
pub(crate) struct Stderr {
    pieces: SyncSender<Piece>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Bytes of the lines that wait.
    bytes: AtomicUsize,
    /// Lines that were dropped and not told yet.
    dropped: AtomicU64,
}

#[derive(Debug)]
enum Piece {
    Line(Vec<u8>),
    /// Say so once all before it is written.
    Settled(SyncSender<()>),
}

impl Stderr {
    /// Starts the thread.
    pub(crate) fn start(format: Format) -> io::Result<Self> {
        Self::start_on(io::stderr(), format)
    }

    fn start_on(out: impl Write + Send + 'static, format: Format) -> io::Result<Self> {
        let (pieces, receiver) = sync_channel(WAITING);
        let counts = Arc::<Counts>::default();
        let own = counts.clone();
        std::thread::Builder::new()
            .name("messages".to_owned())
            .spawn(move || run(&receiver, &own, format, out))?;
        Ok(Self { pieces, counts })
    }

    /// Hands over a line; one too many is dropped. Never blocks.
    pub(crate) fn write(&self, line: &[u8]) {
        let Counts { bytes, dropped } = &*self.counts;
        let has_room = bytes.fetch_add(line.len(), Ordering::Relaxed) + line.len() <= BYTES;
        if !has_room || self.pieces.try_send(Piece::Line(line.to_vec())).is_err() {
            bytes.fetch_sub(line.len(), Ordering::Relaxed);
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was handed over is written, but not for ever.
    pub(crate) fn settle(&self, patience: Duration) {
        let (until, (settled, wait)) = (Instant::now() + patience, sync_channel(1));
        while self.pieces.try_send(Piece::Settled(settled.clone())).is_err() {
            if Instant::now() >= until {
                return;
            }
            // Nothing comes while our own end is held: this is a pause.
            let _ = wait.recv_timeout(Duration::from_millis(5));
        }
        // It is late either way.
        let _ = wait.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

fn run(pieces: &Receiver<Piece>, counts: &Counts, format: Format, mut out: impl Write) {
    for piece in pieces {
        match piece {
            // Where nobody reads any longer, there is nobody to be told.
            Piece::Line(line) => {
                drop(out.write_all(&line));
                counts.bytes.fetch_sub(line.len(), Ordering::Relaxed);
            }
            Piece::Settled(settled) => drop(settled.try_send(())),
        }
        match counts.dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            lost => {
                LOST.fetch_add(lost, Ordering::Relaxed);
                drop(out.write_all(loss(lost, format).as_bytes()));
            }
        }
    }
}

fn loss(lost: u64, format: Format) -> String {
    let text = format!("{lost} lines were dropped: nobody took them in time");
    match format {
        Format::Text => format!("{text}\n"),
        Format::Json => format!("{{\"level\":\"WARN\",\"message\":\"{text}\"}}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Stderr, WAITING};
    use crate::log::Format;
    use std::io::{self, Write};
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::time::Duration;

    /// Takes what is written, but only after somebody said so.
    struct Stalled(Receiver<()>, SyncSender<String>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_that_stalls_and_what_was_lost_is_told() {
        let (go, wait) = sync_channel(1);
        let (tell, told) = sync_channel(2 * WAITING);
        let stderr = Stderr::start_on(Stalled(wait, tell), Format::Text).expect("a thread");
        for number in 0..WAITING + 100 {
            stderr.write(format!("line {number}\n").as_bytes());
        }
        drop(go);
        stderr.settle(Duration::from_secs(20));
        let lines: String = told.try_iter().collect();
        assert!(lines.starts_with("line 0\n"), "the first line comes first");
        assert!(lines.contains(" lines were dropped: nobody took them in time\n"), "{lines}");
        let kept = lines.lines().filter(|line| line.starts_with("line ")).count();
        assert!((WAITING..WAITING + 100).contains(&kept), "{kept}");
    }

    #[test]
    fn long_lines_that_wait_have_a_bound_of_bytes() {
        let (go, wait) = sync_channel(1);
        let (tell, told) = sync_channel(2 * WAITING);
        let stderr = Stderr::start_on(Stalled(wait, tell), Format::Text).expect("a thread");
        let long = [vec![b'x'; (1 << 20) - 1], vec![b'\n']].concat();
        for _ in 0..64 {
            stderr.write(&long);
        }
        drop(go);
        stderr.settle(Duration::from_secs(20));
        let lines: Vec<String> = told.try_iter().collect();
        let kept = lines.iter().filter(|line| line.len() == long.len()).count();
        assert_eq!(kept, BYTES / long.len());
        assert!(lines.iter().any(|line| line.starts_with("60 lines were dropped")), "{kept}");
        stderr.write(b"a line\n");
        stderr.settle(Duration::from_secs(20));
        assert_eq!(told.try_iter().collect::<String>(), "a line\n");
    }
}
