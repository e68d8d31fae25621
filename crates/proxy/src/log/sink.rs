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
    /// The file or server that it is.
    place: String,
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
            Ok(kind) => Self { kind, place: place(target).to_owned(), failed: None, broken: false },
            Err(error) => {
                let place = place(target);
                let keys = match target {
                    LogTarget::Syslog(_) => "syslog-host and syslog-port",
                    LogTarget::File(_) | LogTarget::Stdout | LogTarget::Stderr => {
                        "access-log-path and error-log-path"
                    }
                };
                // Not under the name of this crate: such messages may go to the very log that is in trouble.
                tracing::warn!(
                    target: "log", %error, place,
                    "a log cannot be opened: standard output takes the lines instead; look at {keys} of the ConfigMap, \
                     and at the rights of that place"
                );
                let failed = Some(Instant::now());
                Self { kind: Kind::Stdout, place: String::new(), failed, broken: false }
            }
        }
    }

    /// Whether the target began to fail some time ago.
    pub(super) fn wants_another_try(&self) -> bool {
        self.failed.is_some_and(|since| since.elapsed() >= RETRY)
    }

    /// Writes whole lines, and says how many of them are lost.
    pub(super) fn write(&mut self, severity: Option<u8>, lines: &[u8]) -> u64 {
        let written = match &mut self.kind {
            Kind::Stdout => all(&mut io::stdout().lock(), lines),
            Kind::Stderr => all(&mut io::stderr().lock(), lines),
            Kind::File(file) => all(file, lines),
            Kind::Syslog(datagrams) => datagrams.send(severity, &String::from_utf8_lossy(lines)),
        };
        let Err(Lost { lines, error }) = written else {
            self.broken = false;
            return 0;
        };
        if !self.broken {
            self.broken = true;
            if matches!(self.kind, Kind::Syslog(_)) {
                // Its name may mean another address by now.
                self.failed = Some(Instant::now());
            }
            let place = &self.place;
            tracing::warn!(target: "log", %error, place, "lines of a log cannot be written");
        }
        lines
    }
}

/// Lines that could not be written, and why the first of them could not.
pub(super) struct Lost {
    pub(super) lines: u64,
    pub(super) error: io::Error,
}

/// All of the lines, of which each counts as lost where not all are written.
fn all(out: &mut impl Write, lines: &[u8]) -> Result<(), Lost> {
    let written = out.write_all(lines).and_then(|()| out.flush());
    written.map_err(|error| Lost { lines: count(lines), error })
}

/// How many lines these are.
pub(super) fn count(lines: &[u8]) -> u64 {
    lines.split_inclusive(|&byte| byte == b'\n').count() as u64
}

fn place(target: &LogTarget) -> &str {
    match target {
        LogTarget::Stdout | LogTarget::Stderr => "",
        LogTarget::File(path) => path,
        LogTarget::Syslog(syslog) => &syslog.server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_full_disk_does_not_take_are_lost_one_by_one() {
        let mut full = Sink::open(&LogTarget::File("/dev/full".to_owned()));
        assert_eq!([full.write(None, b"a\nb\n"), full.write(None, b"c\n")], [2, 1]);
        let mut free = Sink::open(&LogTarget::File("/dev/null".to_owned()));
        assert_eq!(free.write(None, b"a\nb\n"), 0);
    }
}
