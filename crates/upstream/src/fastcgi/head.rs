//! Reads the head of a CGI answer (RFC 3875 section 6.3): field lines, of which `Status` and `Location` say what the
//! status is (ngx_http_fastcgi_module).

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use wire::http1::{BadResponse, Bounds, Names, content_length_of, parse_fields};
use wire::{Headers, NameSet};

/// Field lines of an answer.
const LINES: usize = 256;

/// A reason phrase, if there is one.
type Reason = Option<Box<[u8]>>;

/// The head of an answer.
#[derive(Debug)]
pub struct CgiHead {
    /// The status.
    pub status: StatusCode,
    /// The reason phrase, if there is one.
    pub reason: Reason,
    /// All fields but those of the framing and the status.
    pub headers: Headers,
    /// Content-Length.
    pub length: Option<u64>,
}

/// Where the head that starts `bytes` ends.
pub fn head_end(bytes: &[u8]) -> Option<usize> {
    HeadEnd::default().find(bytes)
}

/// Looks for the end of a head that comes in pieces: after its first empty line, which CGI ends with LF or CR LF.
#[derive(Debug, Default)]
pub(super) struct HeadEnd {
    /// Where the line starts whose end has not come.
    line: usize,
    /// How far was looked: no byte is looked at twice, however small the pieces are.
    looked: usize,
}

impl HeadEnd {
    /// Where the head that starts `bytes` ends; `bytes` are those of before, and what came since.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(found) = memchr::memchr(b'\n', &bytes[self.looked..]) {
            let newline = self.looked + found;
            self.looked = newline + 1;
            let line = std::mem::replace(&mut self.line, self.looked);
            if matches!(&bytes[line..newline], b"" | b"\r") {
                return Some(self.looked);
            }
        }
        self.looked = bytes.len();
        None
    }
}

/// Reads a whole head.
pub fn parse(head: &[u8]) -> Result<CgiHead, BadResponse> {
    let names = Names { underscores: true, drop_odd: false };
    let bounds = Bounds { count: LINES, line: usize::MAX };
    let mut headers = parse_fields(&with_crlf(head), bounds, names).map_err(|_| BadResponse)?;
    let length = content_length_of(&headers)?;
    let (status, reason) = match headers.get("status") {
        Some(line) => status_line(line)?,
        None if headers.has("location") => (StatusCode::FOUND, None),
        None => (StatusCode::OK, None),
    };
    const FRAMING: NameSet = NameSet::new(&["status", "content-length", "transfer-encoding"]);
    headers.remove_all(&FRAMING);
    Ok(CgiHead { status, reason, headers, length })
}

/// `404 Not Found`, or the number alone. An interim status cannot be the answer.
fn status_line(line: &[u8]) -> Result<(StatusCode, Reason), BadResponse> {
    let (digits, rest) = line.split_at_checked(3).ok_or(BadResponse)?;
    let status = StatusCode::from_bytes(digits).map_err(|_| BadResponse)?;
    if status.is_informational() || rest.first().is_some_and(|byte| *byte != b' ') {
        return Err(BadResponse);
    }
    let reason = rest.trim_ascii();
    if reason.iter().any(|byte| byte.is_ascii_control()) {
        return Err(BadResponse);
    }
    Ok((status, (!reason.is_empty()).then(|| reason.into())))
}

/// The same lines, each ended with CR LF.
fn with_crlf(head: &[u8]) -> Bytes {
    let mut lines = BytesMut::with_capacity(head.len() + 64);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        lines.put_slice(bare.strip_suffix(b"\r").unwrap_or(bare));
        lines.put_slice(b"\r\n");
    }
    lines.freeze()
}

#[cfg(test)]
mod tests {
    use super::{HeadEnd, head_end, parse};

    fn status(head: &str) -> Option<(u16, Option<String>, Option<u64>)> {
        let head = parse(head.as_bytes()).ok()?;
        let reason = head.reason.map(|reason| String::from_utf8_lossy(&reason).into_owned());
        Some((head.status.as_u16(), reason, head.length))
    }

    #[test]
    fn the_status_comes_from_its_field_else_from_a_location() {
        let gone = Some("Not Found".to_owned());
        assert_eq!(status("Status: 404 Not Found\r\n\r\n"), Some((404, gone, None)));
        assert_eq!(status("Status: 204\n\n"), Some((204, None, None)));
        assert_eq!(status("Location: /x\r\n\r\n"), Some((302, None, None)));
        assert_eq!(status("Content-Length: 5\n\n"), Some((200, None, Some(5))));
        assert_eq!(status("\r\n"), Some((200, None, None)));
    }

    #[test]
    fn heads_that_are_none_are_refused() {
        for head in [
            "Status: abc\n\n",
            "Status: 100 Continue\n\n",
            "Status: 4040\n\n",
            "Status: 20\n\n",
            "X: a\rSet-Cookie: evil\n\n",
            "X Y: a\n\n",
            "X: a\0b\n\n",
            "Content-Length: 1\nContent-Length: 2\n\n",
            "Content-Length: -1\n\n",
        ] {
            assert_eq!(status(head), None, "{head:?}");
        }
    }

    #[test]
    fn an_empty_line_ends_a_head_however_lines_end() {
        assert_eq!(head_end(b"A: b\n\nbody"), Some(6));
        assert_eq!(head_end(b"A: b\r\n\r\nbody"), Some(8));
        assert_eq!(head_end(b"\nbody"), Some(1));
        assert_eq!(head_end(b"A: b\r\n\r"), None);
    }

    #[test]
    fn a_head_in_single_bytes_is_looked_at_once() {
        for head in [&b"A: b\r\nC: d\r\n\r\nbody"[..], b"A: b\n\nbody", b"\r\nbody"] {
            let (mut end, mut found) = (HeadEnd::default(), None);
            for length in 1..=head.len() {
                let looked = end.looked;
                found = end.find(&head[..length]);
                if found.is_some() {
                    break;
                }
                assert_eq!((looked, end.looked), (length - 1, length));
            }
            assert_eq!(found, head_end(head));
        }
    }
}
