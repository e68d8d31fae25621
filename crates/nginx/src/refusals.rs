//! What a reload came to grief of that a test did not find: nginx notes it in a file, wherever its other lines go.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long it takes until nothing more comes: nginx tries five times to listen, every half a second, and notes each.
const QUIET: Duration = Duration::from_secs(2);

/// What a master notes from now on.
#[derive(Debug)]
pub(crate) struct Refusals {
    file: PathBuf,
    master: i32,
    /// How long the file was, and since when.
    last: (u64, Instant),
}

impl Refusals {
    /// Forgets what is there.
    pub(crate) fn from_now(file: PathBuf, master: i32) -> Self {
        // One that is not there yet has nothing in it.
        drop(OpenOptions::new().write(true).truncate(true).open(&file));
        Self { file, master, last: (0, Instant::now()) }
    }

    /// Why the master does not take what it was asked to read, once it has said so.
    pub(crate) fn reason(&mut self) -> Option<String> {
        let length = fs::metadata(&self.file).map_or(0, |found| found.len());
        if length != self.last.0 {
            self.last = (length, Instant::now());
        }
        if length == 0 || self.last.1.elapsed() < QUIET {
            return None;
        }
        let text = fs::read(&self.file).unwrap_or_default();
        first(&String::from_utf8_lossy(&text), self.master)
    }
}

/// The first line of a process in what was noted: tests and workers note theirs in the same file. What nginx ignores by
/// its own words is no reason.
fn first(text: &str, pid: i32) -> Option<String> {
    let (begin, other) = (format!("[emerg] {pid}#"), "ignored");
    let own = text.lines().filter_map(|line| line.split_once(&begin));
    let mut said = own.filter_map(|(_, rest)| rest.split_once(": "));
    said.find_map(|(_, what)| (!what.ends_with(other)).then(|| what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn the_first_thing_that_the_master_says_is_the_reason() {
        let text = "2026/11/30 13:45:47 [emerg] 70#70: unexpected end of file in /d/next.conf:3\n\
            2026/11/30 13:45:47 [emerg] 7#7: setsockopt(IPV6_V6ONLY) [::]:80 failed, ignored\n\
            2026/11/30 13:45:47 [emerg] 7#7: bind() to 0.0.0.0:81 failed (98: Address already in use)\n\
            2026/11/30 13:45:47 [emerg] 7#7: still could not bind()\n";
        let reason = "bind() to 0.0.0.0:81 failed (98: Address already in use)";
        assert_eq!(first(text, 7).as_deref(), Some(reason));
        assert_eq!(first(text, 8), None);
    }
}
