//! HTTP/1 as the fixtures read and write it: lenient, and nothing is changed.

use crate::{
    latin1,
    wire::{Failure, Pair, Wire, pair, value, values},
};

/// A request as it came.
pub(super) struct Received {
    pub(super) method: String,
    pub(super) uri: String,
    pub(super) protocol: String,
    pub(super) headers: Vec<Pair>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<Pair>,
}

impl Received {
    pub(super) async fn read(wire: &mut Wire) -> Result<Self, Failure> {
        let head = latin1::text(&wire.until(b"\r\n\r\n").await?);
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().splitn(3, ' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let (method, uri, protocol) = (word(), word(), word());
        let headers: Vec<Pair> = lines
            .map(|line| pair(&latin1::bytes(line).expect("the line was made of bytes")))
            .collect();
        if values(&headers, "expect").any(|value| value.eq_ignore_ascii_case("100-continue")) {
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let chunked = values(&headers, "transfer-encoding")
            .any(|value| value.to_lowercase().contains("chunked"));
        let (body, trailers) = match value(&headers, "content-length") {
            _ if chunked => wire.chunks().await?,
            Some(length) => {
                (wire.exactly(length.parse().map_err(|_| Failure::Malformed)?).await?, Vec::new())
            }
            None => (Vec::new(), Vec::new()),
        };
        Ok(Self { method, uri, protocol, headers, body, trailers })
    }
}

/// An answer of a fixture.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<Pair>,
    pub(super) body: Vec<u8>,
    pub(super) chunked: bool,
    pub(super) trailers: Vec<Pair>,
}

impl Reply {
    /// The answer to a request with that method as it goes over the wire.
    pub(super) fn bytes(&self, method: &str) -> Result<Vec<u8>, Failure> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let bare = self.status < 200 || matches!(self.status, 204 | 304);
        let mut payload = Vec::new();
        if self.chunked && !bare {
            head += "Transfer-Encoding: chunked\r\n";
            for part in self.body.chunks(4096) {
                payload.extend(format!("{:x}\r\n", part.len()).into_bytes());
                payload.extend(part);
                payload.extend(b"\r\n");
            }
            let trailers: String =
                self.trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            payload
                .extend(latin1::bytes(&format!("0\r\n{trailers}\r\n")).ok_or(Failure::Unsendable)?);
        } else if !bare {
            head += &format!("Content-Length: {}\r\n", self.body.len());
            payload.extend(&self.body);
        }
        let mut out = latin1::bytes(&(head + "\r\n")).ok_or(Failure::Unsendable)?;
        if method != "HEAD" {
            out.extend(payload);
        }
        Ok(out)
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
