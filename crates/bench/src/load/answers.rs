//! The upstream's answers, whole and prepared, chosen by the first letters of the path.

use anyhow::{Context, Result, bail};

use super::http1::end_of_head;

/// The answer to a WebSocket key that never changes, so that nothing has to be hashed.
const UPGRADED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The key whose answer is `UPGRADED`: the example of RFC 6455.
pub(crate) const WEBSOCKET_KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// All answers there are.
pub(super) struct Answers {
    small: &'static [u8],
    sixteen_kib: &'static [u8],
    one_mib: &'static [u8],
}

/// What one request gets.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) bytes: &'static [u8],
    /// How many bytes of the request's body come before it.
    pub(super) body: usize,
    pub(super) upgrades: bool,
}

impl Answers {
    /// Writes them out once, for the life of the program.
    pub(super) fn prepare() -> Self {
        let small = answer(b"Hello from here\n");
        let sixteen_kib = answer(&vec![b'x'; 16 << 10]);
        let one_mib = answer(&vec![b'x'; 1 << 20]);
        Self { small, sixteen_kib, one_mib }
    }

    /// The answer to a request whose head this is.
    pub(super) fn to(&self, head: &[u8]) -> Result<Answer> {
        let (path, body) = if head.starts_with(b"GET ") {
            (&head[4..], 0)
        } else if head.starts_with(b"POST ") {
            (&head[5..], content_length(head)?)
        } else {
            bail!("a proxy sent {}", String::from_utf8_lossy(&head[..head.len().min(80)]));
        };
        let bytes = match path {
            _ if path.starts_with(b"/16k") => self.sixteen_kib,
            _ if path.starts_with(b"/1m") => self.one_mib,
            _ if path.starts_with(b"/websocket") => {
                return Ok(Answer { bytes: UPGRADED, body, upgrades: true });
            }
            // Nothing, for ever.
            _ if path.starts_with(b"/never") => &[],
            _ => self.small,
        };
        Ok(Answer { bytes, body, upgrades: false })
    }
}

fn answer(body: &[u8]) -> &'static [u8] {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat().leak()
}

fn content_length(head: &[u8]) -> Result<usize> {
    let end = end_of_head(head, 0).unwrap_or(head.len());
    let text = String::from_utf8_lossy(&head[..end]);
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .with_context(|| format!("a proxy sent a body without Content-Length:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_chooses_the_answer_and_the_length_is_read_only_for_uploads() {
        let answers = Answers::prepare();
        let to = |head: &str| answers.to(head.as_bytes());
        assert!(to("GET / HTTP/1.1\r\n\r\n").expect("small").bytes.len() < 200);
        assert!(to("GET /1m HTTP/1.1\r\n\r\n").expect("large").bytes.len() > 1 << 20);
        assert!(to("GET /websocket HTTP/1.1\r\n\r\n").expect("upgrade").upgrades);
        let upload = to("POST /up HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 42\r\n\r\n");
        assert_eq!(upload.expect("upload").body, 42);
        assert!(to("POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
        assert!(to("PUT / HTTP/1.1\r\n\r\n").is_err());
    }
}
