//! What was compared already, a line for each request: a comparison that was broken off goes on there.

use super::kept::Kept;
use super::run::Outcome;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of a line at most; no outcome has as many.
const LONGEST: u64 = 4 << 20;

/// The first line: what the others are about.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    old: String,
    new: String,
    requests: usize,
    /// Of all requests, so that no other list is taken for this one.
    sum: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    number: usize,
    outcome: Outcome,
}

/// Why a state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is another one's.
    #[error("it belongs to other requests or controllers: name another file, or remove it")]
    Another,
    /// It is no state.
    #[error("line 1 is not what a comparison writes: name another file, or remove it")]
    NoState,
}

/// A file that is written as requests are compared.
#[derive(Debug)]
pub struct State {
    file: File,
    /// What it has already.
    pub(super) known: Kept,
}

impl State {
    /// Opens or begins a state.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn open(
        path: &Path,
        old: &str,
        new: &str,
        requests: &super::Requests,
    ) -> Result<Self, StateError> {
        let head = Head {
            old: old.to_owned(),
            new: new.to_owned(),
            requests: requests.list.len(),
            sum: sum(requests),
        };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut reader = BufReader::new(&file);
        let mut text = Vec::new();
        let mut whole = reader.by_ref().take(LONGEST).read_until(b'\n', &mut text)?;
        if whole == 0 {
            writeln!(file, "{}", serde_json::to_string(&head).map_err(io::Error::other)?)?;
            return Ok(Self { file, known: Kept::default() });
        }
        let found: Head = serde_json::from_slice(&text).map_err(|_| StateError::NoState)?;
        if found != head {
            return Err(StateError::Another);
        }
        let mut known = Kept::default();
        loop {
            text.clear();
            let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut text)?;
            // A line that was being written when it was broken off is written again.
            let row: Option<Row> = serde_json::from_slice(&text).ok();
            match row.filter(|row| text.ends_with(b"\n") && row.number < head.requests) {
                // What was not compared is tried again.
                Some(row) if row.outcome.not_compared.is_some() => {}
                Some(row) if known.has(row.number) => {}
                Some(row) => known.add(row.number, row.outcome),
                None => break,
            }
            whole += read;
        }
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { file, known })
    }

    /// Notes an outcome.
    pub(super) fn note(&mut self, number: usize, outcome: &Outcome) -> io::Result<()> {
        let row = Row { number, outcome: outcome.clone() };
        writeln!(self.file, "{}", serde_json::to_string(&row).map_err(io::Error::other)?)
    }
}

/// A sum that does not tell what it is of.
fn sum(requests: &super::Requests) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for send in &requests.list {
        for text in [&send.method, &send.host, &send.target, &send.body] {
            sum.update(text.as_bytes());
            sum.update(b"\0");
        }
    }
    sum.finalize()
}
