//! What is known of the certificate that a client has shown.

use crate::exchange::Exchange;
use model::Variable;
use tls::Verdict;

/// `$ssl_client_verify`.
pub(crate) fn verified(verdict: Option<Verdict>) -> String {
    match verdict {
        None => "NONE".to_owned(),
        Some(Verdict::Good) => "SUCCESS".to_owned(),
        Some(Verdict::Unknown(reason) | Verdict::Bad(reason)) => format!("FAILED:{reason}"),
    }
}

/// Appends the value of a `$ssl_client_` variable (ngx_http_ssl_module).
pub(super) fn push(variable: &Variable, exchange: &Exchange, out: &mut String) {
    use Variable as V;
    let Some(session) = &exchange.connection.tls else { return };
    let Some(peer) = &session.client else {
        return out.push_str(if *variable == V::SslClientVerify { "NONE" } else { "" });
    };
    match variable {
        V::SslClientVerify => out.push_str(&verified(peer.last_verdict())),
        V::SslClientSubject => out.push_str(peer.subject()),
        V::SslClientIssuer => out.push_str(peer.issuer()),
        V::SslClientSerial => out.push_str(&peer.serial()),
        V::SslClientFingerprint => out.push_str(&peer.fingerprint()),
        V::SslClientEscapedCert => out.push_str(&String::from_utf8_lossy(peer.escaped())),
        V::SslClientCert => out.push_str(&peer.pem().trim_end().replace('\n', "\n\t")),
        V::SslClientRawCert => out.push_str(&peer.pem()),
        V::SslClientStart => out.push_str(&peer.validity().0),
        V::SslClientEnd => out.push_str(&peer.validity().1),
        V::SslClientRemain => out.push_str(&peer.days_left().to_string()),
        _ => {}
    }
}
