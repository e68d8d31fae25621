//! File descriptors, shared out: clients leave some to upstreams, and both leave some to the rest of the process
//! (docs/overload.md).

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Descriptors of clients stay below the first number, those of upstreams below the second. The system gives the lowest
/// number that is free, so a number tells how many are taken; they belong to the process, and so does this.
static DESCRIPTORS: [AtomicI32; 2] = [AtomicI32::new(i32::MAX), AtomicI32::new(i32::MAX)];

/// Pipes for long answers, which do without where there are none.
static PIPES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Percent of the descriptors that clients may reach, and parts of them that are left to the admin server and the rest.
const CLIENTS: u64 = 90;
const RESERVE: u64 = 32;
/// Descriptors for each pipe: two of them are a sixteenth of all.
const FOR_A_PIPE: u64 = 32;

/// Says how many files the process may have open.
pub fn bound(most: u64) {
    let number = |bound| i32::try_from(bound).unwrap_or(i32::MAX);
    DESCRIPTORS[0].store(number(most.saturating_mul(CLIENTS) / 100), Ordering::Relaxed);
    let reserve = (most / RESERVE).clamp(8, 256);
    DESCRIPTORS[1].store(number(most.saturating_sub(reserve)), Ordering::Relaxed);
    PIPES.store(usize::try_from(most / FOR_A_PIPE).unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// How many pipes all threads together may have, about.
pub(crate) fn pipes() -> usize {
    PIPES.load(Ordering::Relaxed)
}

/// Whether a client's socket leaves enough descriptors to the others.
pub fn client_fits(socket: &impl AsRawFd) -> bool {
    socket.as_raw_fd() < DESCRIPTORS[0].load(Ordering::Relaxed)
}

/// Whether a socket towards an upstream does.
pub fn upstream_fits(socket: &impl AsRawFd) -> bool {
    socket.as_raw_fd() < DESCRIPTORS[1].load(Ordering::Relaxed)
}
