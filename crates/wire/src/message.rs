//! Requests and answers as phases see them, whatever the HTTP version.

use super::error_page::{plain_to_tls, shown_status};
use super::{Body, Headers, error_page};
use bytes::Bytes;
use http::{Method, StatusCode};

/// The version of HTTP a message came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl Version {
    /// As nginx's `$server_protocol` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}

/// A request whose head was judged: it is unambiguous.
#[derive(Debug)]
pub struct Request {
    /// The method, as written.
    pub method: Method,
    /// Path and query in origin-form, as received.
    pub target: Bytes,
    /// The request line as received; HTTP/2 has none.
    pub line: Option<Bytes>,
    /// The version.
    pub version: Version,
    /// Host and port as the client gave them (RFC 9110 section 7.2); empty for HTTP/1.0 without one.
    pub authority: Bytes,
    /// The header section without framing fields.
    pub headers: Headers,
    /// What follows.
    pub body: Body,
    /// Bytes of the head.
    pub head_size: usize,
}

impl Request {
    /// Whether it is a call of gRPC, by what it says its body is.
    pub fn is_grpc(&self) -> bool {
        let kind = self.headers.get("content-type");
        let kind = kind.and_then(|kind| kind.split_at_checked(b"application/grpc".len()));
        let rest = kind.filter(|(kind, _)| kind.eq_ignore_ascii_case(b"application/grpc"));
        rest.is_some_and(|(_, rest)| rest.first().is_none_or(|next| b"+; ".contains(next)))
    }

    /// The path as received, without query.
    pub fn raw_path(&self) -> &[u8] {
        let end = self.target.iter().position(|&byte| byte == b'?').unwrap_or(self.target.len());
        &self.target[..end]
    }

    /// The query as received, without `?`.
    pub fn query(&self) -> Option<&[u8]> {
        let start = self.target.iter().position(|&byte| byte == b'?')?;
        Some(&self.target[start + 1..])
    }
}

/// Who made an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Fairway itself.
    Own,
    /// An upstream.
    Upstream,
}

/// An answer on its way to the client.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The reason phrase of an HTTP/1 upstream, if it is not the usual one.
    pub reason: Option<Box<[u8]>>,
    /// The header section without framing fields.
    pub headers: Headers,
    /// What follows.
    pub body: Body,
    /// Who made it.
    pub source: Source,
    /// Content-Length of an answer that has no body because the request was HEAD or the status is 304.
    pub announced_length: Option<u64>,
    /// Whether the connection must end after it.
    pub close: bool,
}

impl Response {
    /// An answer of our own without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self {
            status,
            reason: None,
            headers: Headers::default(),
            body: Body::empty(),
            source: Source::Own,
            announced_length: None,
            close: false,
        }
    }

    /// nginx's page for a status.
    pub fn page(status: StatusCode) -> Self {
        let mut response = Self::empty(shown_status(status));
        response.headers.add("Content-Type", "text/html");
        response.body = Body::full(error_page(status));
        response
    }

    /// What is said to whoever speaks HTTP in clear to a port for TLS.
    pub fn plain_to_tls() -> Self {
        let mut response = Self::page(StatusCode::BAD_REQUEST);
        response.body = Body::full(plain_to_tls());
        response
    }

    /// A redirect with nginx's page.
    pub fn redirect(status: StatusCode, location: impl AsRef<[u8]>) -> Self {
        let mut response = Self::page(status);
        response.headers.add("Location", location);
        response
    }
}
