//! A process of the test cluster: its output goes to a log file, and it ends when it is told to.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

/// A running process with a log file.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; both its outputs are added to the file `log`.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        Self::start_apart(command, log, log)
    }

    /// As [`Process::start`], but what it prints to stdout goes to the file `out`.
    pub fn start_apart(command: &mut Command, log: &Path, out: &Path) -> Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(append(out)?)
            .stderr(append(log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {:?}", command.as_std().get_program()))?;
        Ok(Self { child, log: log.to_path_buf() })
    }

    /// The number of the process; none once it has ended.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Everything that the process has written so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for the end of the process; may be given up and asked again.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        self.child.wait().await.context("wait for a process")
    }

    /// Sends SIGTERM; a process that has ended already is left alone.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Stops the process in its tracks: SIGSTOP.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a paused process go on: SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Ends the process without a word: SIGKILL.
    pub async fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill().await.context("send SIGKILL")?;
        self.ended().await
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
            return Ok(());
        };
        kill_process(pid, signal).with_context(|| format!("send {signal:?}"))
    }

    /// Lets the process stand still (SIGSTOP), or go on (SIGCONT).
    pub fn stand_still(&self, still: bool) -> Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let signal = if still { Signal::STOP } else { Signal::CONT };
        kill_process(id.context("the process has ended")?, signal).context("send a signal")
    }

    /// SIGTERM, and SIGKILL when the process is still there after `grace`.
    pub async fn stop(&mut self, grace: Duration) -> Result<ExitStatus> {
        self.terminate()?;
        if let Ok(status) = tokio::time::timeout(grace, self.child.wait()).await {
            return status.context("wait for a process");
        }
        self.kill().await
    }
}

fn append(path: &Path) -> Result<File> {
    let file = File::options().create(true).append(true).open(path);
    file.with_context(|| format!("open {}", path.display()))
}
