//! A log from its first line to its last: requests, and what is none.

use super::format::Format;
use super::lines::{LONGEST, Line, Lines, open};
use super::record::Record;
use std::io;
use std::path::Path;

/// So many lines that cannot be read, and none that can, are of another format.
const PATIENCE: u64 = 100;
/// One of so many lines may be unreadable.
const FEW: u64 = 10;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file.
    #[error("cannot read {0}: {1}")]
    Io(String, io::Error),
    /// It begins with so many lines of another format.
    #[error(
        "{0}: its first {PATIENCE} lines are not of the log format: give log-format-upstream of the controller's \
         ConfigMap as --log-format"
    )]
    AnotherFormat(String),
}

/// What a line is.
#[derive(Debug)]
pub enum Seen {
    /// A request, as it was logged.
    Request(Box<Record>),
    /// No access log's: the controller's own, nginx's error log, or empty.
    Other,
    /// It cannot be read, and why.
    Unread(String),
}

/// A log that is read.
pub struct Reading<'a> {
    name: String,
    lines: Lines,
    format: &'a Format,
    number: u64,
    read: u64,
    unread: u64,
    broken_off: bool,
}

impl<'a> Reading<'a> {
    /// Opens a log; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, format: &'a Format) -> Result<Self, LogError> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let lines = open(path).map_err(|error| LogError::Io(name.clone(), error))?;
        Ok(Self { name, lines, format, number: 0, read: 0, unread: 0, broken_off: false })
    }

    /// What is said of a file whose end is missing, once all lines were read that are there.
    pub fn broken_off(&self) -> Option<String> {
        let Self { name, number, .. } = self;
        self.broken_off.then(|| {
            format!("{name}: broken off after line {number}: its gzip is cut, and what was behind is not known")
        })
    }

    /// The next line. Where a file breaks off, those before count.
    ///
    /// # Errors
    /// When it cannot be read, or the log is of another format.
    pub fn line(&mut self) -> Result<Option<Seen>, LogError> {
        if self.broken_off {
            return Ok(None);
        }
        let line = match self.lines.read() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.number > 0 => {
                self.broken_off = true;
                return Ok(None);
            }
            read => read.map_err(|error| LogError::Io(self.name.clone(), error))?,
        };
        let Some((number, line)) = line else { return Ok(None) };
        self.number = number;
        let seen = match line {
            Line::Other => return Ok(Some(Seen::Other)),
            Line::TooLong => Err(format!("longer than {LONGEST} bytes")),
            Line::Text(text) => self.format.record(&text).ok_or_else(|| {
                "not of the log format; --log-format names it, as nginx has it".to_owned()
            }),
        };
        match seen {
            Ok(record) => {
                self.read += 1;
                Ok(Some(Seen::Request(Box::new(record))))
            }
            Err(why) => {
                self.unread += 1;
                if self.read == 0 && self.unread >= PATIENCE {
                    return Err(LogError::AnotherFormat(self.name.clone()));
                }
                Ok(Some(Seen::Unread(format!("{}: {why}", self.at()))))
            }
        }
    }

    /// File and line of what was read last.
    pub fn at(&self) -> String {
        format!("{}:{}", self.name, self.number)
    }
}

/// Whether so many lines could not be read that nothing is proven. A single one never is: strangers write into logs.
pub fn is_too_much(unread: u64, read: u64) -> bool {
    unread > 1 && unread.saturating_mul(FEW) > unread.saturating_add(read)
}

#[cfg(test)]
mod tests {
    use super::{Reading, Seen};
    use crate::log::{DEFAULT, Escape, Format};
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    #[test]
    fn of_a_cut_file_the_lines_before_the_cut_count() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        for number in 0_u32..20_000 {
            let odd = number.wrapping_mul(2_654_435_761);
            writeln!(
                packed,
                "192.0.2.1 - - [01/Jan/2026:10:00:00 +0000] \"GET /{odd} HTTP/1.1\" 200 1 \"-\" \"curl\" 9 0.1 \
                 [demo-shop-80] [] 10.0.0.1:80 1 0.1 200 x"
            )
            .unwrap();
        }
        let whole = packed.finish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let format = Format::new(DEFAULT, Escape::Default).unwrap();
        let read = |bytes: &[u8]| {
            let path = folder.path().join("log.gz");
            std::fs::write(&path, bytes).unwrap();
            let mut log = Reading::open(&path, &format)?;
            let mut count = 0_u32;
            while let Some(seen) = log.line()? {
                count += u32::from(matches!(seen, Seen::Request(_)));
            }
            Ok::<_, super::LogError>((count, log.broken_off()))
        };
        assert_eq!(read(&whole).unwrap(), (20_000, None));
        let (count, said) = read(&whole[..whole.len() / 2]).unwrap();
        assert!((5_000..15_000).contains(&count), "{count}");
        assert!(said.unwrap().contains(&format!("log.gz: broken off after line {count}: ")));
        // Where not even a line can be read, it is no log.
        assert!(read(&whole[..12]).is_err());
    }
}
