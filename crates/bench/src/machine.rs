//! The machine of a measurement: what it is, and which core does what.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// What the reader of a number has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The processor's model.
    pub(crate) processor: String,
    /// How many cores there are.
    pub(crate) cores: usize,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// How many files a process may have open.
    pub(crate) open_files: u64,
}

/// Which core does what; none where there is only one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cores {
    /// The load generator and the upstream.
    pub(crate) generator: Option<usize>,
    /// The proxies.
    pub(crate) proxy: Option<usize>,
}

impl Machine {
    /// This machine.
    pub(crate) fn here() -> Result<Self> {
        let processors = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
        let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name);
        let memory = fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
        let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let memory = memory.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("read osrelease")?;
        Ok(Self {
            processor: model.trim().to_owned(),
            cores: std::thread::available_parallelism().context("count the cores")?.get(),
            kernel: kernel.trim().to_owned(),
            memory_mib: memory.unwrap_or(0) >> 10,
            open_files: raise_open_files()?,
        })
    }
}

impl Cores {
    /// Core 0 for the generator and core 1 for the proxies, where there are two.
    pub(crate) fn of(machine: &Machine) -> Self {
        if machine.cores < 2 {
            return Self::default();
        }
        Self { generator: Some(0), proxy: Some(1) }
    }

    /// What a proxy's command line begins with, so that it stays on its core.
    pub(crate) fn proxy_prefix(&self) -> Vec<String> {
        self.proxy.map_or_else(Vec::new, |core| {
            vec!["taskset".to_owned(), "-c".to_owned(), core.to_string()]
        })
    }
}

/// Raises the limit of open files as far as it goes; children inherit it.
fn raise_open_files() -> Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).context("raise the limit of open files")?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}
