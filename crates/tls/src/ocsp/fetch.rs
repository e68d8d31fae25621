//! Asks a responder over plain HTTP (RFC 6960 appendix A.1), with bounds on time and size.

use model::Outside;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long a question may take, from the first look-up to the last byte.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer with its head at most, as many as nginx takes (ngx_event_openssl_stapling.c).
const LARGEST: u64 = 16 << 10;
/// Header fields of an answer at most.
const FIELDS: usize = 64;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the responder's URL is none")]
    Url,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the responder did not answer in time")]
    Timeout,
    #[error("the answer is no HTTP")]
    Malformed,
    #[error("the responder answered with status {0}")]
    Status(u16),
    #[error("the answer is too large or was cut off")]
    Size,
}

/// The body of the answer to `question`.
pub(super) async fn post(
    url: &str,
    question: &[u8],
    outside: &Outside,
) -> Result<Vec<u8>, FetchError> {
    tokio::time::timeout(PATIENCE, exchange(url, question, outside))
        .await
        .unwrap_or(Err(FetchError::Timeout))
}

async fn exchange(url: &str, question: &[u8], outside: &Outside) -> Result<Vec<u8>, FetchError> {
    let (authority, path) = split(url).ok_or(FetchError::Url)?;
    let with_port = authority.rsplit_once(':');
    let with_port = with_port.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = with_port.unwrap_or((authority, 80));
    // The URL comes from a certificate, which a tenant may have made.
    let mut tcp = stream::open(host, port, outside).await?;
    // HTTP/1.0 has no transfer codings: the answer ends with the connection or its length.
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: {authority}\r\nContent-Type: application/ocsp-request\r\n\
         Accept: application/ocsp-response\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        question.len()
    );
    tcp.write_all(&[head.as_bytes(), question].concat()).await?;
    let mut answer = Vec::new();
    tcp.take(LARGEST + 1).read_to_end(&mut answer).await?;
    if answer.len() as u64 > LARGEST {
        return Err(FetchError::Size);
    }
    body(&answer)
}

/// Authority and path of an `http` URL; nothing that could end a line.
pub(super) fn split(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && !authority.contains('@');
    let path = if path.is_empty() { "/" } else { path };
    (plain && !authority.is_empty()).then_some((authority, path))
}

fn body(answer: &[u8]) -> Result<Vec<u8>, FetchError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(length)) = head.parse(answer) else {
        return Err(FetchError::Malformed);
    };
    match head.code {
        Some(200) => {}
        other => return Err(FetchError::Status(other.unwrap_or_default())),
    }
    let field = |name: &str| {
        let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| String::from_utf8_lossy(field.value).trim().to_owned())
    };
    if field("transfer-encoding").is_some() {
        return Err(FetchError::Malformed);
    }
    let body = &answer[length..];
    let body = match field("content-length").map(|text| text.parse::<usize>()) {
        None => body,
        Some(Ok(length)) => body.get(..length).ok_or(FetchError::Size)?,
        Some(Err(_)) => return Err(FetchError::Malformed),
    };
    Ok(body.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{FetchError, body, split};

    #[test]
    fn urls_have_an_authority_and_nothing_that_ends_a_line() {
        assert_eq!(split("http://a.test"), Some(("a.test", "/")));
        assert_eq!(split("http://a.test:81/x?y"), Some(("a.test:81", "/x?y")));
        for wrong in ["https://a.test", "http:///x", "http://a\r\nX: y/", "http://u@a.test/", ""] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_answer_counts_if_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(body(whole).ok().as_deref(), Some(&b"ok"[..]));
        assert_eq!(body(b"HTTP/1.0 200 OK\r\n\r\nok").ok().as_deref(), Some(&b"ok"[..]));
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok";
        assert!(matches!(body(cut), Err(FetchError::Size)));
        let other = b"HTTP/1.1 404 Not Found\r\n\r\n";
        assert!(matches!(body(other), Err(FetchError::Status(404))));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        assert!(matches!(body(chunked), Err(FetchError::Malformed)));
        assert!(matches!(body(b"HTTP/1.1 200 OK\r\n"), Err(FetchError::Malformed)));
    }
}
