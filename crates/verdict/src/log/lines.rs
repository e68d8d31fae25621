//! Lines of files, of gzip or of standard input, each with its number; what wraps them is taken off.

use flate2::bufread::MultiGzDecoder;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is read; the rest of a longer one is passed over. nginx writes 4 bytes for one that cannot be
/// printed, and reads 8k of each header field and of the request line.
pub(super) const LONGEST: usize = 256 << 10;
/// What is longer than that before its end is no line of a log: a picture, a disk, or a small file of gzip that is a
/// hundred times as large when it is unpacked.
const NO_LINE: u64 = 16 << 20;
/// Docker begins a new part after so many bytes.
const DOCKER: usize = 16 << 10;
/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Those of what else logs are packed with: its name, and what unpacks it to standard output.
const PACKED: [(&[u8], &str, &str); 4] = [
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its text; bytes that are no UTF-8 are percent-encoded.
    Text(String),
    /// It was longer than [`LONGEST`].
    TooLong,
    /// The controller's own log, or nginx's error log.
    Other,
}

/// The lines of a log, with their numbers from 1.
pub(super) struct Lines {
    from: Box<dyn BufRead>,
    number: u64,
    /// Parts of lines that are not whole yet, of standard output and of standard error.
    parts: [Parts; 2],
}

/// What is there of a line that comes in parts.
#[derive(Debug, Default)]
struct Parts {
    bytes: Vec<u8>,
    /// It is too long already.
    over: bool,
}

/// What a container runtime says of a line.
struct Wrapped<T> {
    /// Which of [`Lines::parts`] it belongs to.
    stream: usize,
    /// Whether more of it follows.
    more: bool,
    text: T,
}

/// Opens a log; `-` is standard input. What is packed with gzip is known by its first bytes, not by its name.
///
/// # Errors
/// When it cannot be opened.
pub(super) fn open(path: &Path) -> io::Result<Lines> {
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
    let begins = from.fill_buf()?;
    if let Some((_, name, unpack)) = PACKED.iter().find(|(magic, ..)| begins.starts_with(magic)) {
        let file = path.display();
        return Err(io::Error::other(format!(
            "it is packed with {name}, and gzip alone is read: pipe `{unpack} {file}` to `-` instead"
        )));
    }
    let is_gzip = begins.starts_with(&GZIP);
    let from: Box<dyn BufRead> = if is_gzip {
        Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(from)))
    } else {
        Box::new(from)
    };
    Ok(Lines { from, number: 0, parts: Default::default() })
}

impl Lines {
    /// The next line with its number, which is that of its last part.
    ///
    /// # Errors
    /// When it cannot be read, or goes on for more than [`NO_LINE`] bytes without an end of line.
    pub(super) fn read(&mut self) -> io::Result<Option<(u64, Line)>> {
        loop {
            let mut bytes = Vec::new();
            let read = self.from.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(self.broken_off().map(|line| (self.number, line)));
            }
            self.number += 1;
            if bytes.last() != Some(&b'\n') && read > LONGEST {
                self.pass_over()?;
                return Ok(Some((self.number, Line::TooLong)));
            }
            while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                bytes.pop();
            }
            if let Some(line) = self.whole(&bytes) {
                return Ok(Some((self.number, line)));
            }
        }
    }

    /// The line that these bytes are, or end; none while more of it follows.
    fn whole(&mut self, bytes: &[u8]) -> Option<Line> {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let bytes = prefixed(bytes).unwrap_or(bytes);
        let docker = of_docker(bytes);
        let docker = docker.as_ref().map(|Wrapped { stream, more, text }| Wrapped {
            stream: *stream,
            more: *more,
            text: text.as_bytes(),
        });
        let Some(Wrapped { stream, more, text }) = docker.or_else(|| of_cri(bytes)) else {
            return Some(line(bytes));
        };
        let parts = &mut self.parts[stream];
        if !more && !parts.over && parts.bytes.is_empty() {
            return Some(line(text));
        }
        parts.over |= parts.bytes.len() + text.len() > LONGEST;
        if parts.over {
            parts.bytes = Vec::new();
        } else {
            parts.bytes.extend_from_slice(text);
        }
        (!more).then(|| std::mem::take(parts).line())
    }

    /// What is left of a line whose end never came.
    fn broken_off(&mut self) -> Option<Line> {
        let left = self.parts.iter_mut().find(|parts| parts.over || !parts.bytes.is_empty());
        left.map(|parts| std::mem::take(parts).line())
    }

    fn pass_over(&mut self) -> io::Result<()> {
        let mut passed = LONGEST as u64;
        loop {
            if passed > NO_LINE {
                return Err(io::Error::other(format!(
                    "line {} has no end within {} MiB: this is no log, name another file",
                    self.number,
                    NO_LINE >> 20
                )));
            }
            let buffer = self.from.fill_buf()?;
            let Some(end) = buffer.iter().position(|&byte| byte == b'\n') else {
                let length = buffer.len();
                if length == 0 {
                    return Ok(());
                }
                self.from.consume(length);
                passed += length as u64;
                continue;
            };
            self.from.consume(end + 1);
            return Ok(());
        }
    }
}

impl Parts {
    fn line(self) -> Line {
        if self.over { Line::TooLong } else { line(&self.bytes) }
    }
}

fn line(bytes: &[u8]) -> Line {
    let text = printed(bytes);
    if text.is_empty() || is_other(&text) { Line::Other } else { Line::Text(text) }
}

/// The text; bytes that are no UTF-8, which `escape=json` and `escape=none` leave as they came, are asked about in
/// their percent-encoded form, which means the same.
fn printed(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| {
            let _ = write!(text, "%{byte:02X}");
        });
    }
    text
}

/// `[pod/name/container] line`
fn prefixed(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(b"[pod/")?;
    let end = rest.windows(2).position(|pair| pair == b"] ")?;
    Some(&rest[end + 2..])
}

/// `2026-01-01T00:00:00.000000000Z stdout F line`; P instead of F where more of the line follows.
fn of_cri(bytes: &[u8]) -> Option<Wrapped<&[u8]>> {
    let mut fields = bytes.splitn(4, |byte| *byte == b' ');
    let (time, stream, tags) = (fields.next()?, fields.next()?, fields.next()?);
    let is_time = time.len() > 19 && time[10] == b'T' && time.starts_with(b"20");
    let stream = match stream {
        b"stdout" if is_time => 0,
        b"stderr" if is_time => 1,
        _ => return None,
    };
    let more = match tags.split(|byte| *byte == b':').next()? {
        b"F" => false,
        b"P" => true,
        _ => return None,
    };
    Some(Wrapped { stream, more, text: fields.next().unwrap_or_default() })
}

/// `{"log":"line\n","stream":"stdout","time":"…"}`; without `\n`, more of a long line follows.
fn of_docker(bytes: &[u8]) -> Option<Wrapped<String>> {
    if !bytes.starts_with(b"{\"log\":") {
        return None;
    }
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let (log, stream) = (value["log"].as_str()?, value["stream"].as_str()?);
    let more = log.len() >= DOCKER && !log.ends_with('\n');
    let text = log.trim_end_matches(['\n', '\r']).to_owned();
    Some(Wrapped { stream: usize::from(stream == "stderr"), more, text })
}

/// Whether a line is klog's (`I1123 10:00:00 …`), of nginx's error log (`2026/01/01 10:00:00 [error] …`), or what
/// Fairway says of itself.
fn is_other(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let klog = bytes.first().is_some_and(|first| b"IWEF".contains(first))
        && digits(1..5)
        && bytes.get(5) == Some(&b' ');
    let error_log = digits(0..4) && bytes.get(4) == Some(&b'/') && text.get(19..21) == Some(" [");
    klog || error_log || is_fairways(text)
}

/// Whether a line is Fairway's own: `2026-01-01T10:00:00.000000Z  INFO fairway: …`, or the same as JSON.
fn is_fairways(text: &str) -> bool {
    const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
    let is_time = |time: &str| {
        let bytes = time.as_bytes();
        bytes.len() > 19 && bytes[10] == b'T' && time.starts_with("20") && time.ends_with('Z')
    };
    let own = match text.strip_prefix("{\"timestamp\":\"") {
        Some(rest) => rest.split_once("\",\"level\":\"").map(|(time, rest)| (time, rest, '"')),
        None => text.split_once(' ').map(|(time, rest)| (time, rest.trim_start(), ' ')),
    };
    own.is_some_and(|(time, rest, end)| {
        let level = rest.split(end).next().unwrap_or_default();
        is_time(time) && LEVELS.contains(&level)
    })
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
    fn what_is_packed_otherwise_is_told_how_to_be_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log.1");
        for (bytes, remedy) in [
            (&b"\xfd7zXZ\0\0\x04"[..], "xz -dc"),
            (b"BZh91AY&SY", "bzip2 -dc"),
            (b"\x28\xb5\x2f\xfd\x04", "zstd -dc"),
            (b"PK\x03\x04\x14", "unzip -p"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = open(&path).err().expect("it is refused").to_string();
            assert!(error.contains(&format!("`{remedy} {}`", path.display())), "{error}");
        }
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
            assert_eq!(lines(format!("{wrapped}\n").as_bytes()), [line(1, "a b")]);
        }
        for other in [
            "",
            "I1123 10:00:00.1 7 main.go:1] x",
            "2026/01/01 10:00:00 [error] 7#7: x",
            "2026-01-01T10:00:00.123456Z  INFO fairway::run: ready",
            "2026-01-01T10:00:00.123456Z ERROR controller::report: Ingress a/b: \"c\" is none",
            r#"{"timestamp":"2026-01-01T10:00:00.123456Z","level":"WARN","message":"m","target":"t"}"#,
        ] {
            let found = lines(format!("{other}\n").as_bytes());
            assert_eq!(found, [(1, Line::Other)], "{other}");
        }
    }

    #[test]
    fn access_logs_that_begin_with_a_time_or_have_a_level_are_no_others() {
        for text in [
            "2026-01-01T10:00:00+00:00 INFO GET / 200",
            "2026-01-01T10:00:00.123Z GET / 200",
            r#"{"timestamp":"2026-01-01T10:00:00Z","level":"access","status":200}"#,
            r#"{"timestamp":"2026-01-01T10:00:00Z","status":200}"#,
        ] {
            assert_eq!(lines(format!("{text}\n").as_bytes()), [line(1, text)]);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_asked_about_percent_encoded() {
        let log = b"GET /\xfc/\xc3\xbc HTTP/1.1\n2026-01-01T00:00:00.000000000Z stdout P a\xc3\n\
                    2026-01-01T00:00:00.000000000Z stdout F \xbcb\n";
        assert_eq!(lines(log), [line(1, "GET /%FC/\u{fc} HTTP/1.1"), line(3, "a\u{fc}b")]);
    }

    #[test]
    fn parts_of_a_line_are_joined_within_the_bound() {
        let cri = |stream: &str, tag: &str, text: &str| {
            format!("2026-01-01T00:00:00.000000000Z {stream} {tag} {text}\n")
        };
        let part = "x".repeat(16 << 10);
        let many = cri("stdout", "P", &part).repeat(LONGEST / part.len() + 1);
        let log = [
            cri("stdout", "P", "a "),
            cri("stderr", "F", "c"),
            cri("stdout", "F", "b"),
            many,
            cri("stdout", "F", "end"),
            cri("stdout", "F", "d"),
            cri("stdout", "P", "broken"),
        ]
        .concat();
        let found = lines(log.as_bytes());
        let texts = found.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>();
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(texts, [text("c"), text("a b"), Line::TooLong, text("d"), text("broken")]);
        assert_eq!(found[..2], [line(2, "c"), line(3, "a b")]);
        let docker = |text: &str| format!("{{\"log\":\"{text}\",\"stream\":\"stdout\"}}\n");
        let log = [docker(&part), docker("y\\n"), docker("short")].concat();
        assert_eq!(lines(log.as_bytes()), [line(2, &format!("{part}y")), line(3, "short")]);
    }

    #[test]
    fn what_has_no_end_of_line_is_no_log_and_soon_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.gz");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        // A hundred times as much would be read no further than this.
        for _ in 0..(NO_LINE >> 20) + 2 {
            packed.write_all(&[b'a'; 1 << 20]).unwrap();
        }
        std::fs::write(&path, packed.finish().unwrap()).unwrap();
        let error = open(&path).unwrap().read().unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1 has no end within 16 MiB: this is no log, name another file"
        );
    }
}
