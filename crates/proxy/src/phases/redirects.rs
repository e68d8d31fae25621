//! Redirects from HTTP to HTTPS (compat/behaviour.md section 12.5).

use super::Stop;
use crate::exchange::Exchange;
use crate::http::Response;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use model::policy::TlsRedirect;

pub(super) fn to_https(exchange: &Exchange) -> Result<(), Stop> {
    let location = &exchange.spot().location;
    let TlsRedirect { with_certificate, always, preserve_trailing_slash, with_port } =
        location.policy.tls_redirect;
    if exchange.forwarded.scheme.as_ref() != b"http" || !(with_certificate || always) {
        return Ok(());
    }
    let global = exchange.generation.global();
    if global.no_tls_redirect.iter().any(|prefix| location.path.starts_with(prefix)) {
        return Ok(());
    }
    if !always && !exchange.generation.certificates.has(&exchange.host) {
        return Ok(());
    }
    let status =
        StatusCode::from_u16(global.redirect_status).unwrap_or(StatusCode::PERMANENT_REDIRECT);
    let port = with_port.then_some(exchange.worker.listen.https_port);
    Err(Response::redirect(status, target(exchange, port, preserve_trailing_slash)).into())
}

/// `https://` with host and target of the request; a `/` at the end goes away unless it is to be kept.
fn target(exchange: &Exchange, port: Option<u16>, keep_slash: bool) -> Bytes {
    let host = &exchange.forwarded.host;
    let host = host.split(|&byte| byte == b':').next().unwrap_or_default();
    let uri = exchange.received();
    let uri = if keep_slash { uri.as_ref() } else { uri.strip_suffix(b"/").unwrap_or(uri) };
    let mut location = BytesMut::from(&b"https://"[..]);
    location.extend_from_slice(host);
    if let Some(port) = port {
        location.extend_from_slice(format!(":{port}").as_bytes());
    }
    location.extend_from_slice(uri);
    location.freeze()
}
