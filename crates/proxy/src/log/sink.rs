//! What takes the lines of a log: a standard stream, a file, a syslog server.

use super::syslog::Datagrams;
use model::LogTarget;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long a standard stream stands in before a file or server is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What takes the lines, and how it went.
pub(super) struct Sink {
    kind: Kind,
    /// When the target began to fail; standard output stands in for what could not be opened.
    failed: Option<Instant>,
    /// Whether the last write failed, which is said once.
    broken: bool,
}

enum Kind {
    Stdout,
    Stderr,
    File(File),
    Syslog(Box<Datagrams>),
}

impl Sink {
    /// Opens the target; standard output stands in for what cannot be opened.
    pub(super) fn open(target: &LogTarget) -> Self {
        let opened = match target {
            LogTarget::Stdout => Ok(Kind::Stdout),
            LogTarget::Stderr => Ok(Kind::Stderr),
            LogTarget::File(path) => {
                let file = OpenOptions::new().append(true).create(true).open(path);
                file.map(Kind::File)
            }
            LogTarget::Syslog(syslog) => {
                Datagrams::open(syslog).map(|datagrams| Kind::Syslog(Box::new(datagrams)))
            }
        };
        match opened {
            Ok(kind) => Self { kind, failed: None, broken: false },
            Err(error) => {
                say(target, &error, "cannot be opened: standard output takes the lines instead");
                Self { kind: Kind::Stdout, failed: Some(Instant::now()), broken: false }
            }
        }
    }

    /// Whether the target began to fail some time ago.
    pub(super) fn wants_another_try(&self) -> bool {
        self.failed.is_some_and(|since| since.elapsed() >= RETRY)
    }

    /// Writes whole lines.
    pub(super) fn write(&mut self, severity: Option<u8>, lines: &str) {
        let written = match &mut self.kind {
            Kind::Stdout => all(&mut io::stdout().lock(), lines),
            Kind::Stderr => all(&mut io::stderr().lock(), lines),
            Kind::File(file) => all(file, lines),
            Kind::Syslog(datagrams) => datagrams.send(severity, lines),
        };
        match written {
            Ok(()) => self.broken = false,
            Err(error) if !self.broken => {
                self.broken = true;
                if matches!(self.kind, Kind::Syslog(_)) {
                    // Its name may mean another address by now.
                    self.failed = Some(Instant::now());
                }
                tracing::warn!(target: "log", %error, "lines of a log cannot be written");
            }
            Err(_) => {}
        }
    }
}

fn all(out: &mut impl Write, lines: &str) -> io::Result<()> {
    out.write_all(lines.as_bytes())?;
    out.flush()
}

/// Not under the name of this crate: such messages may go to the very log that is in trouble.
fn say(target: &LogTarget, error: &io::Error, what: &str) {
    let place = match target {
        LogTarget::Stdout | LogTarget::Stderr => "",
        LogTarget::File(path) => path,
        LogTarget::Syslog(syslog) => &syslog.server,
    };
    tracing::warn!(target: "log", %error, place, "a log {what}");
}
