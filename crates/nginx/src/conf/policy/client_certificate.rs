//! `auth-tls-*`: whose certificates count, and what becomes of who has none (ngx_http_ssl_module).

use super::super::location::At;
use super::super::tree::{put, words};
use super::super::{Block, Scope, Word};
use crate::pem;
use model::policy::{ClientCertificate, ClientDemand, ClientErrorPage, ClientVerification};
use model::{Backend, Server};

/// What a host asks of all its clients.
pub(in crate::conf) fn of_host(
    scope: &mut Scope<'_>,
    policy: Option<&ClientCertificate>,
    block: &mut Block,
) {
    let verification = match policy {
        None => return,
        Some(ClientCertificate::Closed(_)) => return put!(block, "return", 403_u16),
        Some(ClientCertificate::Verified(verification)) => verification,
    };
    let ClientVerification {
        secret: _,
        authorities,
        revocations,
        demand,
        depth,
        subject,
        error_page,
        // The application is told by request headers.
        pass_certificate: _,
    } = &**verification;
    let demand = match demand {
        ClientDemand::Off => "off",
        ClientDemand::OptionalUnknown => "optional_no_ca",
        ClientDemand::Optional => "optional",
        ClientDemand::Required => "on",
    };
    let authorities = pem::certificates(authorities.iter().map(AsRef::as_ref));
    let file = scope.file("pem", authorities.into_bytes());
    put!(block, "ssl_client_certificate", file);
    if !revocations.is_empty() {
        let lists = pem::revocations(revocations.iter().map(AsRef::as_ref));
        let file = scope.file("crl", lists.into_bytes());
        put!(block, "ssl_crl", file);
    }
    put!(block, "ssl_verify_client", demand);
    put!(block, "ssl_verify_depth", *depth);
    match error_page {
        ClientErrorPage::Plain => {}
        ClientErrorPage::Redirect(url) => {
            put!(block, "error_page", 495_u16, 496_u16, "=", Word::literal(url));
        }
        ClientErrorPage::Forbidden => refuse(403, block),
        ClientErrorPage::Missing => refuse(500, block),
    }
    if let Some(pattern) = subject {
        let mut refuse = Block::default();
        put!(refuse, "return", 403_u16, "client certificate unauthorized");
        let mark = if pattern.ignores_case() { "!~*" } else { "!~" };
        let source = Word::plain(pattern.source());
        block.open("if", words!["(", "$ssl_client_s_dn", mark, source, ")"], refuse);
    }
}

/// Whoever has no certificate gets this status, and no further.
fn refuse(status: u16, block: &mut Block) {
    put!(block, "error_page", 495_u16, 496_u16, "=", "@fairway_no_certificate");
    let mut refused = Block::default();
    put!(refused, "return", status);
    block.open("location", words!["@fairway_no_certificate"], refused);
}

/// What the Ingress of a location asks besides its host. nginx verifies for a host alone, so what differs is closed.
pub(in crate::conf) fn of_location(policy: Option<&ClientCertificate>, at: &mut At<'_, '_>) {
    if policy.is_some() && policy != at.server.client_certificate.as_ref() {
        put!(at.block, "return", 400_u16);
    }
}

/// Whether a location is not there on plain HTTP, since its host requires certificates. What a host renews its own
/// certificate by is (RFC 8555 section 8.3).
pub(in crate::conf) fn is_closed_on_plain_http(at: &At<'_, '_>) -> bool {
    let Server { client_certificate, .. } = at.server;
    let required = match client_certificate {
        None => false,
        Some(ClientCertificate::Closed(_)) => true,
        Some(ClientCertificate::Verified(verified)) => verified.demand == ClientDemand::Required,
    };
    let location = at.location;
    let is_under = |prefix: &String| prefix.len() > 1 && location.path.starts_with(prefix.as_str());
    let renews = location.policy.client_certificate.is_none()
        && matches!(location.backend, Backend::Upstream(_))
        && at.scope.configuration.global.no_tls_redirect.iter().any(is_under);
    required && !renews
}

/// What the application, or the authenticator, is told of the client's certificate: nothing that the client could say
/// itself.
pub(in crate::conf) fn told(server: &Server) -> [(&'static str, Word); 4] {
    let verified = match &server.client_certificate {
        Some(ClientCertificate::Verified(verified)) => Some(verified),
        Some(ClientCertificate::Closed(_)) | None => None,
    };
    let passes = verified.is_some_and(|verified| verified.pass_certificate);
    let said = |value: &'static str| Word::from(if verified.is_some() { value } else { "" });
    let certificate = if passes { "$ssl_client_escaped_cert" } else { "" };
    [
        ("ssl-client-verify", said("$ssl_client_verify")),
        ("ssl-client-subject-dn", said("$ssl_client_s_dn")),
        ("ssl-client-issuer-dn", said("$ssl_client_i_dn")),
        ("ssl-client-cert", Word::from(certificate)),
    ]
}
