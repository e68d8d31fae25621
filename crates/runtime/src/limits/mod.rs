//! What the system grants: open files, processors, memory.

pub(crate) mod cgroup;

pub use cgroup::Cgroup;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::num::NonZeroUsize;

/// The bound on open files, before and after it was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The soft limit that was found; none is no bound.
    pub before: Option<u64>,
    /// The soft limit in force now; none is no bound.
    pub now: Option<u64>,
}

/// Raises the soft limit on open files to the hard one, since every connection takes one or two.
pub fn raise_open_files() -> io::Result<OpenFiles> {
    let found = getrlimit(Resource::Nofile);
    if found.current != found.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: found.maximum, maximum: found.maximum })?;
    }
    Ok(OpenFiles { before: found.current, now: getrlimit(Resource::Nofile).current })
}

/// How many threads should carry traffic: as many as the processors that the process may run on, but not more than its
/// control group's quota, rounded up as ingress-nginx does, and at least one.
pub fn worker_threads() -> NonZeroUsize {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    threads_for(allowed, Cgroup::of_this_process().processors)
}

fn threads_for(allowed: usize, quota: Option<f64>) -> NonZeroUsize {
    // A quota is a small positive number, so the conversion is exact.
    let threads = quota.map_or(allowed, |quota| allowed.min(quota.ceil() as usize));
    NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::{raise_open_files, threads_for, worker_threads};

    #[test]
    fn the_soft_limit_becomes_the_hard_one_and_stays() {
        let first = raise_open_files().expect("raising up to the hard limit is always allowed");
        assert!(first.now.is_none() || first.now >= first.before);
        let second = raise_open_files().expect("raising up to the hard limit is always allowed");
        assert_eq!((second.before, second.now), (first.now, first.now));
    }

    #[test]
    fn a_quota_is_rounded_up_and_bounds_the_threads() {
        let threads = |allowed, quota| threads_for(allowed, quota).get();
        assert_eq!(threads(8, None), 8);
        assert_eq!(threads(8, Some(1.5)), 2);
        assert_eq!(threads(8, Some(0.1)), 1);
        assert_eq!(threads(2, Some(4.0)), 2);
        assert_eq!(threads(0, Some(0.0)), 1);
    }

    #[test]
    fn this_process_has_at_least_one_thread() {
        assert!(worker_threads().get() >= 1);
    }
}
