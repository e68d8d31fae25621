//! `auth-tls-*`: whose certificates count, and what becomes of who has none (ngx_http_ssl_module).

use super::super::location::At;
use super::super::pattern::pattern;
use super::super::tree::{put, words};
use super::super::{Block, Scope, Word};
use crate::pem;
use model::policy::{ClientCertificate, ClientDemand, ClientErrorPage, ClientVerification};
use model::{Backend, Configuration, Location, Pattern, Server};

/// What a host asks of all its clients.
pub(in crate::conf) fn of_host(scope: &mut Scope<'_>, server: &Server, block: &mut Block) {
    let verification = match &server.client_certificate {
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
        ClientErrorPage::Forbidden => refuse(403, scope, block),
        ClientErrorPage::Missing => refuse(500, scope, block),
    }
    let Some(pattern) = subject else { return };
    if some_renew(server, scope.configuration) {
        // On plain HTTP nobody has a subject, and all other locations see to it themselves.
        let mut mark = Block::default();
        put!(mark, "set", "$fairway_stranger", "$https");
        put!(block, "set", "$fairway_stranger", "");
        strangers(pattern, mark, block);
        block.open("if", words!["(", "$fairway_stranger", "=", "on", ")"], forbid());
    } else {
        strangers(pattern, forbid(), block);
    }
}

/// The subject that a host asks for.
fn subject_of(server: &Server) -> Option<&Pattern> {
    match server.client_certificate.as_ref()? {
        ClientCertificate::Verified(verified) => verified.subject.as_ref(),
        ClientCertificate::Closed(_) => None,
    }
}

/// What becomes of clients with another subject.
fn strangers(subject: &Pattern, then: Block, block: &mut Block) {
    let mark = if subject.ignores_case() { "!~*" } else { "!~" };
    let source = pattern(subject.source());
    block.open("if", words!["(", "$ssl_client_s_dn", mark, source, ")"], then);
}

fn forbid() -> Block {
    let mut forbidden = Block::default();
    put!(forbidden, "set", "$fairway_hsts", "");
    put!(forbidden, "return", 403_u16, "client certificate unauthorized");
    forbidden
}

/// Whoever has no certificate gets this status, and no further.
fn refuse(status: u16, scope: &Scope<'_>, block: &mut Block) {
    let name = scope.environment.named("fairway_no_certificate");
    put!(block, "error_page", 495_u16, 496_u16, "=", Word::plain(&name));
    let mut refused = Block::default();
    put!(refused, "return", status);
    block.open("location", words![Word::plain(name)], refused);
}

/// What the Ingress of a location asks besides its host. nginx verifies for a host alone: a subject can be asked for
/// besides, what differs in more than that is closed.
pub(in crate::conf) fn of_location(policy: Option<&ClientCertificate>, at: &mut At<'_, '_>) {
    let (server, configuration) = (at.server, at.scope.configuration);
    if let Some(pattern) = subject_of(server)
        && some_renew(server, configuration)
        && !renews(at.location, configuration)
    {
        strangers(pattern, forbid(), &mut at.block);
    }
    let host = at.server.client_certificate.as_ref();
    match (policy, host) {
        (None, _) => {}
        (own, host) if own == host => {}
        (Some(ClientCertificate::Verified(own)), Some(ClientCertificate::Verified(host)))
            if verifies_for(host, own) =>
        {
            if let Some(pattern) = &own.subject {
                strangers(pattern, forbid(), &mut at.block);
            }
        }
        _ => {
            put!(at.block, "set", "$fairway_hsts", "");
            put!(at.block, "return", 400_u16);
        }
    }
}

/// Whether who passes the verification of the host would pass the location's own.
fn verifies_for(host: &ClientVerification, own: &ClientVerification) -> bool {
    host.authorities == own.authorities
        && host.revocations == own.revocations
        && host.depth <= own.depth
        && host.demand >= own.demand
}

/// Whether a location is not there on plain HTTP, since its host requires certificates.
pub(in crate::conf) fn is_closed_on_plain_http(at: &At<'_, '_>) -> bool {
    let required = match &at.server.client_certificate {
        None => false,
        Some(ClientCertificate::Closed(_)) => true,
        Some(ClientCertificate::Verified(verified)) => verified.demand == ClientDemand::Required,
    };
    required && !renews(at.location, at.scope.configuration)
}

fn some_renew(server: &Server, configuration: &Configuration) -> bool {
    server.locations.iter().any(|location| renews(location, configuration))
}

/// Whether a host renews its own certificate by a location (RFC 8555 section 8.3).
fn renews(location: &Location, configuration: &Configuration) -> bool {
    let is_under = |prefix: &String| prefix.len() > 1 && location.path.starts_with(prefix.as_str());
    location.policy.client_certificate.is_none()
        && matches!(location.backend, Backend::Upstream(_))
        && configuration.global.no_tls_redirect.iter().any(is_under)
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
