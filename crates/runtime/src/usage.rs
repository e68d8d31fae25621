//! What a process takes of the machine, as /proc says.

use procfs::process::{LimitValue, Process};
use procfs::{ProcResult, WithCurrentSystemInfo};

/// What a process takes of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Seconds of processors, in the kernel and outside of it.
    pub cpu_seconds: f64,
    /// The same of its children that have ended.
    pub ended_children_cpu_seconds: f64,
    /// Bytes of memory that it holds.
    pub resident_bytes: u64,
    /// Bytes of memory that it may address.
    pub virtual_bytes: u64,
    /// Files and sockets that are open.
    pub open_files: u64,
    /// How many there may be; none is no bound.
    pub most_open_files: Option<u64>,
    /// Threads.
    pub threads: u64,
    /// When it started, in seconds since the epoch.
    pub started: f64,
    /// Bytes that it had read from disks.
    pub read_bytes: u64,
    /// Bytes that it had written to disks.
    pub written_bytes: u64,
}

impl Usage {
    /// What this process takes now; none where /proc does not say.
    pub fn now() -> Option<Self> {
        let own = Process::myself().and_then(|own| read(&own));
        own.inspect_err(|error| tracing::debug!(%error, "/proc does not tell about us")).ok()
    }

    /// What another process takes now; none once it has ended, or where /proc does not say.
    pub fn of(pid: i32) -> Option<Self> {
        Process::new(pid).and_then(|process| read(&process)).ok()
    }
}

fn read(process: &Process) -> ProcResult<Usage> {
    let stat = process.stat()?;
    let ticks = procfs::ticks_per_second() as f64;
    let most = match process.limits()?.max_open_files.soft_limit {
        LimitValue::Unlimited => None,
        LimitValue::Value(most) => Some(most),
    };
    // A container may be kept from reading what it did with disks.
    let io = process.io().ok();
    Ok(Usage {
        cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
        ended_children_cpu_seconds: (stat.cutime + stat.cstime) as f64 / ticks,
        resident_bytes: stat.rss_bytes().get(),
        virtual_bytes: stat.vsize,
        open_files: process.fd_count()? as u64,
        most_open_files: most,
        threads: u64::try_from(stat.num_threads).unwrap_or(0),
        started: procfs::boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
        read_bytes: io.map_or(0, |io| io.read_bytes),
        written_bytes: io.map_or(0, |io| io.write_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::Usage;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn this_process_runs_since_a_moment_ago() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
        let usage = Usage::now().expect("this machine has /proc");
        assert!((now - usage.started).abs() < 3600.0, "{usage:?} at {now}");
        assert!(usage.threads >= 1 && usage.open_files >= 3, "{usage:?}");
        assert!(usage.resident_bytes > 1 << 20 && usage.virtual_bytes > usage.resident_bytes);
    }
}
