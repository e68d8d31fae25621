//! The binary under test as a child process.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

/// How long a controller may take to end after it was asked to.
const FAREWELL: Duration = Duration::from_secs(5);

/// A running controller; it is killed when this is dropped, and its nginx with it.
#[derive(Debug)]
pub struct Started {
    child: Child,
    log: PathBuf,
    /// The folder of its nginx, if it is told one.
    nginx: Option<PathBuf>,
}

impl Started {
    /// Starts `binary` with `arguments`; what it prints is added to the file `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn new(binary: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log);
        let file = file.with_context(|| format!("{}: cannot be written", log.display()))?;
        let child = Command::new(binary)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{}: cannot be started", binary.display()))?;
        Ok(Self { child, log: log.to_owned(), nginx: nginx_directory(arguments) })
    }

    /// Starts `fairway run` on a folder of objects, with more flags.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn on_folder(binary: &Path, folder: &Path, flags: &[String], log: &Path) -> Result<Self> {
        let own = ["run".to_owned(), "--manifests".to_owned(), folder.display().to_string()];
        Self::new(binary, &[&own, flags].concat(), log)
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Everything in the log so far.
    #[must_use]
    pub fn logs(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(kill_process(id.context("the controller has ended")?, signal)?)
    }

    /// Asks it to end, and ends it if it does not in a few seconds; gives its exit code if it had one.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn stop(mut self) -> Result<Option<i32>> {
        // One that has ended already needs no signal.
        let _ended = self.signal(Signal::TERM);
        match tokio::time::timeout(FAREWELL, self.child.wait()).await {
            Ok(status) => Ok(status?.code()),
            Err(_) => {
                self.child.kill().await?;
                Ok(None)
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(nginx) = &self.nginx else { return };
        // First, or it would start another one; one that has ended already needs no signal.
        let _ended = self.child.start_kill();
        end_nginx(nginx);
    }
}

/// The folder that these arguments of a controller name for its nginx.
pub fn nginx_directory<Text: AsRef<str>>(arguments: &[Text]) -> Option<PathBuf> {
    let mut all = arguments.iter().map(AsRef::as_ref);
    all.find_map(|argument| argument.strip_prefix("--nginx-directory=")).map(PathBuf::from)
}

/// Ends the nginx in this folder: whoever is killed cannot end its own.
pub fn end_nginx(directory: &Path) {
    let master = std::fs::read_to_string(directory.join("nginx.pid")).unwrap_or_default();
    // One that has ended takes its file along.
    if let Some(master) = master.trim().parse().ok().and_then(Pid::from_raw) {
        let _ended = kill_process_group(master, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, log: &str) -> Started {
        let log = std::env::temp_dir().join(format!("testkit-{}-{log}.log", std::process::id()));
        let _absent = std::fs::remove_file(&log);
        Started::new(Path::new("sh"), &["-c".to_owned(), script.to_owned()], &log).unwrap()
    }

    #[tokio::test]
    async fn a_child_is_stopped_politely_and_its_output_kept() {
        let script = "trap 'echo bye; exit 3' TERM; echo started; while :; do sleep 0.01; done";
        let mut child = shell(script, "polite");
        let started = || async { child.logs().contains("started").then_some(()) };
        crate::eventually(Duration::from_secs(10), started)
            .await
            .expect("the child says that it started");
        assert!(child.alive());
        let log = child.log.clone();
        assert_eq!(child.stop().await.unwrap(), Some(3));
        assert_eq!(std::fs::read_to_string(log).unwrap(), "started\nbye\n");
    }

    #[tokio::test]
    async fn a_child_that_is_dropped_takes_its_nginx_along() {
        let folder = crate::manifests::Manifests::new().unwrap();
        let file = folder.folder().join("nginx.pid");
        // In a group of its own, as nginx is, and of nobody who would end it.
        let script = format!("setsid sleep 600 & echo $! > {}; wait", file.display());
        let directory = format!("--nginx-directory={}", folder.folder().display());
        let arguments = ["-c".to_owned(), script, directory];
        let log = folder.folder().join("log");
        let child = Started::new(Path::new("sh"), &arguments, &log).unwrap();
        // Of one that has ended and that nobody has waited for, there is no command line any more.
        let is_there = || {
            let pid = std::fs::read_to_string(&file).unwrap_or_default();
            let line = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.trim()));
            line.is_ok_and(|line| line.starts_with("sleep"))
        };
        let runs = || async { is_there().then_some(()) };
        crate::eventually(Duration::from_secs(10), runs).await.expect("it starts");
        drop(child);
        let is_gone = || async { (!is_there()).then_some(()) };
        crate::eventually(Duration::from_secs(10), is_gone).await.expect("it is ended");
    }

    #[tokio::test]
    async fn a_child_that_ended_is_not_alive() {
        let mut child = shell("exit 1", "ended");
        child.child.wait().await.unwrap();
        assert!(!child.alive());
        assert!(child.signal(Signal::TERM).is_err());
    }
}
