//! The client's header section without what is bound to its connection: what every request towards a server begins
//! with.

use super::request_headers::said;
use crate::exchange::Exchange;
use model::is_of_connection;
pub(super) use model::{is_alike, is_proof};
use wire::{Field, Headers, Nominated};

/// Whether a field ends at Fairway: it belongs to the client's connection, or would be believed as proof of a client
/// certificate.
pub(super) fn ends_here(name: &[u8]) -> bool {
    is_of_connection(name) || is_proof(name)
}

/// The fields of the client that are neither bound to its connection nor named by its Connection field (RFC 9110
/// section 7.6.1), nor proof of a certificate.
pub(super) fn end_to_end(headers: &Headers) -> impl Iterator<Item = Field<'_>> {
    let named = Nominated::of(headers);
    headers.iter().filter(move |field| !(named.has(field.name) || ends_here(field.name)))
}

/// Those of them that the client can say itself, for requests that get nothing of what backends get: error pages,
/// copies.
pub(super) fn unchanged(exchange: &Exchange) -> impl Iterator<Item = Field<'_>> {
    let policy = exchange.place.as_ref().map(|place| &place.spot().location.policy);
    let said = policy.and_then(|policy| said(policy));
    end_to_end(&exchange.request.headers)
        .filter(move |field| !said.as_ref().is_some_and(|said| said.have(field.name)))
}

#[cfg(test)]
mod tests {
    use super::{is_alike, is_proof};

    #[test]
    fn proof_of_a_certificate_is_known_in_every_spelling() {
        for name in ["ssl-client-verify", "SSL_Client_Verify", "ssl-client_subject-dn"] {
            assert!(is_proof(name.as_bytes()), "{name}");
        }
        for name in ["ssl-clients", "ssl-client", "x-ssl-client-verify", ""] {
            assert!(!is_proof(name.as_bytes()), "{name}");
        }
        assert!(is_alike(b"X_User", b"x-user") && !is_alike(b"X-Users", b"X-User"));
    }
}
