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

/// Whether the client keeps a field to its connection that would travel else: whoever is asked about the request does
/// not see it.
pub(super) fn keeps_back(headers: &Headers) -> bool {
    let named = Nominated::of(headers);
    headers.iter().any(|field| named.has(field.name) && !ends_here(field.name))
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
    use super::{is_alike, is_proof, keeps_back};
    use wire::Headers;

    #[test]
    fn what_a_connection_field_names_is_kept_back_if_it_is_there_and_would_travel() {
        for (connection, is_kept) in [
            ("close, Upgrade, TE, HTTP2-Settings", false),
            ("X-Other", false),
            ("close, authorization", true),
        ] {
            let mut headers = Headers::default();
            headers.add("Connection", connection);
            for name in ["Upgrade", "TE", "HTTP2-Settings", "Authorization"] {
                headers.add(name, "a");
            }
            assert_eq!(keeps_back(&headers), is_kept, "{connection}");
        }
    }

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
