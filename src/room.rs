//! What this process may use of the machine: found out once at start, for all that serve traffic.

use crate::flags::Listeners;
use anyhow::{Context, Result};
use runtime::limits;
use std::num::NonZeroUsize;
use translate::Sockets;

/// Sockets of listeners of Gateways at most, in percent of the file descriptors.
const LISTENERS: u64 = 25;

/// Below so many open files a warning says so.
const FEW_FILES: u64 = 4096;

/// Threads and file descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Threads that carry traffic.
    pub(crate) threads: usize,
    /// Whether `--worker-threads` says how many.
    pub(crate) fixed: bool,
    /// File descriptors at most; none is no bound.
    pub(crate) files: Option<u64>,
}

impl Room {
    /// Raises the limit of open files as far as it goes.
    pub(crate) fn find(threads: Option<NonZeroUsize>) -> Result<Self> {
        let files = limits::raise_open_files().context("cannot read the limit of open files")?;
        let fixed = threads.is_some();
        let threads = threads.unwrap_or_else(limits::worker_threads).get();
        Ok(Self { threads, fixed, files: files.now })
    }

    /// Says what there is to use; `memory` in bytes, if there is a bound.
    pub(crate) fn tell(&self, memory: Option<u64>) {
        let (version, threads, open_files) = (crate::version::short(), self.threads, self.files);
        let memory_mib = memory.map(|bytes| bytes >> 20);
        tracing::info!(%version, threads, open_files, memory_mib, "starting");
        if let Some(open_files) = open_files.filter(|files| *files < FEW_FILES) {
            tracing::warn!(
                open_files,
                "few files may be open, and every connection is one: clients and upstreams share about {} of them; \
                 raise the limit of the container runtime (LimitNOFILE, ulimit -n)",
                self.share(90)
            );
        }
    }

    /// So many percent of the file descriptors.
    pub(crate) fn share(&self, percent: u64) -> usize {
        let share = self.files.map_or(u64::MAX, |files| files.saturating_mul(percent) / 100);
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    /// What listeners of Gateways may open.
    pub(crate) fn sockets(&self, listeners: &Listeners) -> Sockets {
        Sockets {
            most: self.share(LISTENERS) as u64,
            threads: self.threads as u64,
            fixed_threads: self.fixed,
            addresses: listeners.bind_address.len() as u64,
        }
    }
}
