//! `backend-protocol` and `proxy-http-version`.

use serde::Serialize;

/// How the upstream is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Protocol {
    /// HTTP/1 in clear.
    #[default]
    Http,
    /// HTTP/1 over TLS.
    Https,
    /// HTTP/1, over TLS iff the client's connection is.
    AutoHttp,
    /// HTTP/2 in clear, as gRPC wants it.
    Grpc,
    /// HTTP/2 over TLS, as gRPC wants it.
    Grpcs,
    /// FastCGI in clear.
    Fcgi,
}

/// HTTP version towards upstreams that speak HTTP/1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum HttpVersion {
    /// HTTP/1.0: no keep-alive, no chunked bodies.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}
