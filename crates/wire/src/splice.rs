//! Long answers in clear: their bytes go from the upstream's connection to the client's through a pipe of the kernel,
//! and are copied nowhere (splice(2)).

use crate::descriptors::{pipes, upstream_fits};
use crate::{Io, now, since, time_passes, turn};
use rustix::io::Errno;
use rustix::pipe::{
    PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
};
use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::time::Instant;

/// Bytes that must be to come: for fewer of them copies cost no more.
const LONG: u64 = 128 << 10;
/// Bytes that a pipe holds, where the system allows it.
const HOLDS: usize = 256 << 10;
/// Bytes that one must hold: through less, copies cost no more. A user who has many pipes gets new ones of 8 KiB
/// (`pipe-user-pages-soft`; whatever else runs as that user counts, too).
const WORTH: usize = 64 << 10;
/// How long a thread that got none asks for no other one.
const PAUSE: Duration = Duration::from_secs(1);
/// Pipes that a thread has; who finds none copies.
const MOST: usize = 64;
/// Those that it keeps for the next ones.
const KEPT: usize = 32;
/// What passes through a pipe takes a part of the time that copies take.
const CHEAPER: usize = 4;

thread_local! {
    /// Empty ones.
    static IDLE: RefCell<Vec<Ends>> = const { RefCell::new(Vec::new()) };
    /// How many there are besides.
    static USED: Cell<usize> = const { Cell::new(0) };
    /// When one was last asked for and not to be had.
    static REFUSED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Pipes that all threads have.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// Whether the system does it for sockets, once that is known. Some sandboxes do not.
static WORKS: OnceLock<bool> = OnceLock::new();

fn works() -> bool {
    let found = WORKS.get().copied().or_else(|| is_told_by(passes_bytes()));
    found.is_some_and(|works| *WORKS.get_or_init(|| works))
}

/// What a trial tells for good: nothing, if there was no room for it.
fn is_told_by(trial: io::Result<bool>) -> Option<bool> {
    const SHORT: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    match trial {
        Err(error) if Errno::from_io_error(&error).is_some_and(|it| SHORT.contains(&it)) => None,
        trial => Some(trial.unwrap_or(false)),
    }
}

fn passes_bytes() -> io::Result<bool> {
    let ((mut one, from), (to, mut other)) = (UnixStream::pair()?, UnixStream::pair()?);
    let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
    one.write_all(b"byte")?;
    let mut came = [0; 4];
    let count = pass(from, &into, came.len())?;
    if count != came.len() || pass(&out, to, count)? != count {
        return Ok(false);
    }
    other.read_exact(&mut came)?;
    Ok(came == *b"byte")
}

fn pass(from: impl AsFd, to: impl AsFd, most: usize) -> Result<usize, Errno> {
    splice(from, None, to, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)
}

/// Where bytes come out of a pipe, and where they go in.
#[derive(Debug)]
struct Ends {
    out: OwnedFd,
    into: OwnedFd,
}

impl Drop for Ends {
    fn drop(&mut self) {
        ALL.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A pipe, and how much is in it.
#[derive(Debug)]
pub struct Pipe {
    /// None once it is over.
    ends: Option<Ends>,
    held: usize,
}

impl Pipe {
    /// One for so many bytes that are to come, if that is worth it and there is one.
    pub fn for_bytes(count: u64) -> Option<Self> {
        Self::idle_or(count, || made(pipes()))
    }

    fn idle_or(count: u64, new: impl FnOnce() -> Option<Ends>) -> Option<Self> {
        if count < LONG || USED.get() >= MOST {
            return None;
        }
        let ends = IDLE.with_borrow_mut(Vec::pop).or_else(new)?;
        USED.set(USED.get() + 1);
        Some(Self { ends: Some(ends), held: 0 })
    }

    /// How many there are in this process, of all threads.
    pub fn count() -> usize {
        ALL.load(Ordering::Relaxed)
    }

    /// Bytes in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Fills it, while it is empty, with up to `most` bytes of what comes over a connection in clear; how many. Zero at
    /// its end.
    pub fn poll_fill(
        &mut self,
        io: &Io,
        most: u64,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let (Io::Plain(tcp), Some(Ends { into, .. })) = (io, &self.ends) else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        ready!(turn::poll_room(cx));
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(HOLDS);
        loop {
            ready!(tcp.poll_read_ready(cx))?;
            match tcp.try_io(Interest::READABLE, || Ok(pass(tcp, into, most)?)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                filled => {
                    self.held = *filled.as_ref().unwrap_or(&0);
                    turn::moved(self.held / CHEAPER);
                    time_passes();
                    return Poll::Ready(filled);
                }
            }
        }
    }

    /// Empties it into a connection in clear.
    pub fn poll_empty(&mut self, io: &Io, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (Io::Plain(tcp), Some(Ends { out, .. })) = (io, &self.ends) else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        while self.held > 0 {
            ready!(tcp.poll_write_ready(cx))?;
            match tcp.try_io(Interest::WRITABLE, || Ok(pass(out, tcp, self.held)?)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(count) => self.held -= count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A new pipe, if the process may have it, of so many at most. Whoever is told that it may not asks again for each
/// piece of an answer.
fn made(most: usize) -> Option<Ends> {
    if ALL.load(Ordering::Relaxed) >= most {
        return None;
    }
    if REFUSED.get().is_some_and(|at| since(at) < PAUSE) {
        return None;
    }
    let ends = if works() { of_size(HOLDS) } else { None };
    REFUSED.set(ends.is_none().then(now));
    ends
}

/// A new pipe, of this size where the system allows it, if it is worth it and leaves enough descriptors to others.
fn of_size(size: usize) -> Option<Ends> {
    let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
    let holds = fcntl_setpipe_size(&into, size).or_else(|_| fcntl_getpipe_size(&into)).ok()?;
    if holds < WORTH || !upstream_fits(&out) || !upstream_fits(&into) {
        return None;
    }
    ALL.fetch_add(1, Ordering::Relaxed);
    Some(Ends { out, into })
}

impl Drop for Pipe {
    fn drop(&mut self) {
        USED.set(USED.get().saturating_sub(1));
        if self.held == 0
            && let Some(ends) = self.ends.take()
        {
            IDLE.with_borrow_mut(|idle| {
                if idle.len() < KEPT {
                    idle.push(ends);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ALL, Ends, HOLDS, IDLE, KEPT, LONG, MOST, PAUSE, Pipe, REFUSED, WORTH, is_told_by, made,
        of_size,
    };
    use crate::{Io, now};
    use rustix::io::Errno;
    use std::fs::File;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::sync::atomic::Ordering;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Both ends of a connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
        (one.expect("connected"), other.expect("accepted").0)
    }

    #[tokio::test]
    async fn bytes_go_from_one_connection_to_the_other_and_the_end_is_seen() {
        let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
        let (from, to) = (Io::Plain(from), Io::Plain(to));
        let sent: Vec<u8> = (0..3 << 20).map(|at: u32| (at >> 3 ^ at >> 11) as u8).collect();
        let sending = async {
            sender.write_all(&sent).await.expect("written");
            drop(sender);
        };
        let passing = async {
            let mut pipe = Pipe::for_bytes(LONG).expect("this system has it");
            let mut passed = 0;
            loop {
                let count =
                    poll_fn(|cx| pipe.poll_fill(&from, u64::MAX, cx)).await.expect("filled");
                assert!(count <= HOLDS && pipe.held() == count, "{count}");
                if count == 0 {
                    break;
                }
                poll_fn(|cx| pipe.poll_empty(&to, cx)).await.expect("emptied");
                passed += count;
            }
            drop(to);
            passed
        };
        let mut came = Vec::new();
        let (_, passed, _) = tokio::join!(sending, passing, receiver.read_to_end(&mut came));
        assert!(passed == sent.len() && came == sent, "{passed}");
    }

    /// What takes nothing of what pipes of a user may hold together, whoever else has some.
    fn no_pipe() -> Option<Ends> {
        let nowhere = || File::open("/dev/null").expect("it is there").into();
        ALL.fetch_add(1, Ordering::Relaxed);
        Some(Ends { out: nowhere(), into: nowhere() })
    }

    #[test]
    fn a_thread_has_so_many_pipes_and_keeps_fewer() {
        let pipe = |count| Pipe::idle_or(count, no_pipe);
        assert!(pipe(LONG - 1).is_none(), "copies cost no more");
        let all: Vec<_> = (0..MOST).map_while(|_| pipe(LONG)).collect();
        assert_eq!((all.len(), pipe(LONG).is_none()), (MOST, true));
        drop(all);
        assert_eq!(IDLE.with_borrow(Vec::len), KEPT);
        let mut full = pipe(LONG).expect("there is one");
        full.held = 1;
        drop(full);
        assert_eq!(IDLE.with_borrow(Vec::len), KEPT - 1, "nobody else gets what is in it");
    }

    #[test]
    fn a_system_that_is_short_of_files_may_splice_all_the_same() {
        assert_eq!(is_told_by(Err(Errno::MFILE.into())), None);
        assert_eq!(is_told_by(Err(Errno::INVAL.into())), Some(false));
        assert_eq!((is_told_by(Ok(false)), is_told_by(Ok(true))), (Some(false), Some(true)));
    }

    #[test]
    fn descriptors_are_for_others_first() {
        let one = made(usize::MAX).expect("there is one");
        assert!(made(1).is_none(), "that was all");
        drop(one);
    }

    #[test]
    fn a_small_pipe_is_none_and_who_gets_none_waits_before_asking_again() {
        assert_eq!((of_size(WORTH / 2).is_none(), of_size(WORTH).is_some()), (true, true));
        REFUSED.set(Some(now()));
        assert!(Pipe::for_bytes(LONG).is_none(), "it was told no just now");
        REFUSED.set(now().checked_sub(PAUSE));
        drop(Pipe::for_bytes(LONG).expect("there is one"));
        REFUSED.set(Some(now()));
        assert!(Pipe::for_bytes(LONG).is_some(), "one that is there need not be asked for");
    }
}
