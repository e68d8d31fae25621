//! Lines of files, of gzip or of standard input, each with its number; what wraps them is taken off.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is read; the rest of a longer one is passed over.
pub const LONGEST: usize = 64 << 10;
/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Its text; what is not UTF-8 is replaced.
    Text(String),
    /// It was longer than [`LONGEST`].
    TooLong,
    /// The controller's own log, or nginx's error log.
    Other,
}

/// The lines of a log, with their numbers from 1.
pub struct Lines {
    from: Box<dyn BufRead>,
    number: u64,
}

/// Opens a log; `-` is standard input. What is packed with gzip is known by its first bytes, not by its name.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<Lines> {
    let from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::other("it is a folder: name its files"));
        }
        Box::new(file)
    };
    let mut from = BufReader::with_capacity(1 << 18, from);
    let is_gzip = from.fill_buf()?.starts_with(&GZIP);
    let from: Box<dyn BufRead> = if is_gzip {
        Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(from)))
    } else {
        Box::new(from)
    };
    Ok(Lines { from, number: 0 })
}

impl Lines {
    /// The next line with its number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self) -> io::Result<Option<(u64, Line)>> {
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if bytes.last() != Some(&b'\n') && read > LONGEST {
            self.pass_over()?;
            return Ok(Some((self.number, Line::TooLong)));
        }
        while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            bytes.pop();
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some((self.number, bare(&text))))
    }

    fn pass_over(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.from.fill_buf()?;
            let Some(end) = buffer.iter().position(|&byte| byte == b'\n') else {
                let length = buffer.len();
                if length == 0 {
                    return Ok(());
                }
                self.from.consume(length);
                continue;
            };
            self.from.consume(end + 1);
            return Ok(());
        }
    }
}

/// A line without what container runtimes and `kubectl logs --prefix` put around it.
fn bare(text: &str) -> Line {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = prefixed(text).unwrap_or(text);
    let unpacked = of_docker(text).or_else(|| of_cri(text).map(ToOwned::to_owned));
    let text = unpacked.unwrap_or_else(|| text.to_owned());
    if text.is_empty() || is_other(&text) { Line::Other } else { Line::Text(text) }
}

/// `[pod/name/container] line`
fn prefixed(text: &str) -> Option<&str> {
    text.strip_prefix("[pod/")?.split_once("] ").map(|(_, line)| line)
}

/// `2026-01-01T00:00:00.000000000Z stdout F line`
fn of_cri(text: &str) -> Option<&str> {
    let (time, rest) = text.split_once(' ')?;
    let is_time = time.len() > 19 && time.as_bytes()[10] == b'T' && time.starts_with("20");
    let rest = rest.strip_prefix("stdout ").or_else(|| rest.strip_prefix("stderr "))?;
    let line = rest.strip_prefix("F ").or_else(|| rest.strip_prefix("P "))?;
    is_time.then_some(line)
}

/// `{"log":"line\n","stream":"stdout","time":"…"}`
fn of_docker(text: &str) -> Option<String> {
    if !(text.starts_with("{\"log\":") && text.contains("\"stream\":")) {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(value["log"].as_str()?.trim_end_matches(['\n', '\r']).to_owned())
}

/// Whether a line is klog's (`I1123 10:00:00 …`) or of nginx's error log (`2026/01/01 10:00:00 [error] …`).
fn is_other(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let klog = bytes.first().is_some_and(|first| b"IWEF".contains(first))
        && digits(1..5)
        && bytes.get(5) == Some(&b' ');
    let error_log = digits(0..4) && bytes.get(4) == Some(&b'/') && text.get(19..21) == Some(" [");
    klog || error_log
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn lines(bytes: &[u8]) -> Vec<(u64, Line)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let mut lines = open(&path).unwrap();
        std::iter::from_fn(|| lines.read().unwrap()).collect()
    }

    fn line(number: u64, text: &str) -> (u64, Line) {
        (number, Line::Text(text.to_owned()))
    }

    #[test]
    fn gzip_is_known_by_its_bytes_and_may_have_several_members() {
        let mut packed = Vec::new();
        for text in ["a\nb\n", "c"] {
            let mut gzip = GzEncoder::new(&mut packed, Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            gzip.finish().unwrap();
        }
        assert_eq!(lines(&packed), [line(1, "a"), line(2, "b"), line(3, "c")]);
    }

    #[test]
    fn a_line_that_is_too_long_takes_no_other_with_it() {
        let text = format!("a\n{}\nb\n{}", "x".repeat(3 * LONGEST), "y".repeat(LONGEST));
        let found = lines(text.as_bytes());
        assert_eq!(found[..3], [line(1, "a"), (2, Line::TooLong), line(3, "b")]);
        assert!(matches!(&found[3], (4, Line::Text(text)) if text.len() == LONGEST));
    }

    #[test]
    fn what_wraps_a_line_is_taken_off_and_other_logs_are_known() {
        for wrapped in [
            "2026-01-01T00:00:00.000000000Z stdout F a b",
            "{\"log\":\"a b\\n\",\"stream\":\"stdout\",\"time\":\"x\"}",
            "[pod/ingress-nginx-controller-x/controller] a b",
            "a b\r",
        ] {
            assert_eq!(bare(wrapped.trim_end_matches('\r')), Line::Text("a b".to_owned()));
        }
        for other in ["", "I1123 10:00:00.1 7 main.go:1] x", "2026/01/01 10:00:00 [error] 7#7: x"] {
            assert_eq!(bare(other), Line::Other, "{other}");
        }
    }
}
