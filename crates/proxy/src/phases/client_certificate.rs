//! The client's certificate decides before anything else does (ngx_http_process_request; compat/behaviour.md
//! section 13): it is asked for host by host, so what is decided here is decided by the host of the request.

use super::Stop;
use crate::exchange::Exchange;
use crate::generation::{Site, Spot};
use crate::variables;
use bytes::Bytes;
use http::StatusCode;
use model::Backend;
use model::policy::{ClientDemand, ClientErrorPage};
use route::Found;
use std::sync::Arc;
use tls::{Clients, Peer, Verdict, Verifier};
use wire::Response;

/// What a client has shown is not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Nothing (nginx: 496).
    Nothing,
    /// What does not count (nginx: 495).
    Invalid,
}

/// What the host asks of its clients. `found` is the location that the path leads to.
pub(super) fn of_host(exchange: &Exchange, site: &Site, found: Found) -> Result<(), Stop> {
    match &site.clients {
        None => Ok(()),
        Some(Clients::Verified(_)) if leads_to_renewal(exchange, site, found) => Ok(()),
        Some(Clients::Closed(reason)) => {
            tracing::debug!(host = &*exchange.host, reason, "the host is closed");
            Err(Response::page(StatusCode::FORBIDDEN).into())
        }
        Some(Clients::Verified(verifier)) => {
            // A handshake for another host may have asked for another certificate, or none.
            if misdirected(exchange, verifier) {
                let mut response = Response::page(StatusCode::MISDIRECTED_REQUEST);
                response.close = true;
                return Err(response.into());
            }
            admit(exchange, verifier)
        }
    }
}

/// What all listeners at an address of a Gateway ask. Whoever came in when others were trusted, or by a session from
/// then, is asked again.
pub(super) fn of_door(exchange: &Exchange, verifier: &Arc<Verifier>) -> Result<(), Stop> {
    admit(exchange, verifier)
}

/// What the Ingress of the location asks besides.
pub(super) fn of_location(exchange: &Exchange, spot: &Spot) -> Result<(), Stop> {
    match &spot.extras().clients {
        None => Ok(()),
        Some(verifier) => admit(exchange, verifier),
    }
}

/// What requires a certificate is not there on plain HTTP (compat/decisions.md).
pub(super) fn over_tls(exchange: &Exchange) -> Result<(), Stop> {
    let requires = |verifier: &Verifier| verifier.settings.demand == ClientDemand::Required;
    let of_host = |clients: &Clients| match clients {
        Clients::Verified(verifier) => requires(verifier),
        Clients::Closed(_) => true,
    };
    let Some(place) = &exchange.place else { return Ok(()) };
    // An Ingress may ask for more than its host does.
    let own = &place.spot().extras().clients;
    let asks = place.site.clients.as_ref().is_some_and(of_host)
        || own.as_ref().is_some_and(|verifier| requires(verifier));
    if exchange.connection.tls.is_none() && asks && !renews(exchange, place.spot()) {
        return Err(Response::page(StatusCode::FORBIDDEN).into());
    }
    Ok(())
}

fn leads_to_renewal(exchange: &Exchange, site: &Site, found: Found) -> bool {
    match found {
        Found::Location { index } => renews(exchange, &site.spots[index]),
        Found::AddSlash { .. } | Found::TooHard { .. } | Found::None => false,
    }
}

/// Whether a request is for a path of `no-tls-redirect-locations` that belongs to an Ingress which asks for no
/// certificates itself. On plain HTTP such a path stays open, or the host could not renew its own certificate (RFC 8555
/// section 8.3). In regex mode the path of a location says little about those that it matches, so both count.
fn renews(exchange: &Exchange, spot: &Spot) -> bool {
    let location = &spot.location;
    let is_under = |prefix: &String| {
        prefix.len() > 1
            && location.path.starts_with(prefix)
            && exchange.path.starts_with(prefix.as_bytes())
    };
    exchange.connection.tls.is_none()
        && location.policy.client_certificate.is_none()
        && matches!(location.backend, Backend::Upstream(_))
        && exchange.generation.global().no_tls_redirect.iter().any(is_under)
}

/// Whether the handshake named one host and the request names another one (ngx_http_set_virtual_server).
fn misdirected(exchange: &Exchange, verifier: &Verifier) -> bool {
    let session = exchange.connection.tls.as_ref();
    let named = session.and_then(|session| session.server_name.as_deref());
    let Some(named) = named.filter(|_| verifier.settings.demand != ClientDemand::Off) else {
        return false;
    };
    let same = named.trim_end_matches('.').eq_ignore_ascii_case(&exchange.host);
    // Where nobody can tell, the name may be somebody else's.
    !same && exchange.generation.has_host(named, &exchange.steps).unwrap_or(true)
}

fn admit(exchange: &Exchange, verifier: &Arc<Verifier>) -> Result<(), Stop> {
    let settings = &verifier.settings;
    let peer = exchange.connection.tls.as_ref().and_then(|session| session.client.as_ref());
    if exchange.connection.tls.is_some()
        && let Err(refusal) = judge(peer, verifier)
    {
        return Err(refused(&settings.error_page, refusal).into());
    }
    let subject = || peer.map(Peer::subject).unwrap_or_default();
    match &settings.subject {
        Some(pattern) if pattern.try_match(subject().as_bytes(), &exchange.steps) != Ok(true) => {
            let mut response = Response::empty(StatusCode::FORBIDDEN);
            response.headers.add("Content-Type", "text/html");
            let text = Bytes::from_static(b"client certificate unauthorized");
            response.body = wire::Body::full(text);
            Err(response.into())
        }
        _ => Ok(()),
    }
}

fn judge(peer: Option<&Peer>, verifier: &Arc<Verifier>) -> Result<(), Refusal> {
    let demand = verifier.settings.demand;
    match (demand, peer) {
        (ClientDemand::Off, _) => Ok(()),
        (ClientDemand::Required, None) => Err(Refusal::Nothing),
        (ClientDemand::Optional | ClientDemand::OptionalUnknown, None) => Ok(()),
        (_, Some(peer)) => match peer.verdict(verifier) {
            Verdict::Good => Ok(()),
            Verdict::Unknown(_) if demand == ClientDemand::OptionalUnknown => Ok(()),
            Verdict::Unknown(_) | Verdict::Bad(_) => Err(Refusal::Invalid),
        },
    }
}

fn refused(page: &ClientErrorPage, refusal: Refusal) -> Response {
    let mut response = match page {
        ClientErrorPage::Plain => {
            let mut response = Response::page(StatusCode::BAD_REQUEST);
            response.body = wire::Body::full(error_page(refusal));
            response
        }
        ClientErrorPage::Redirect(address) => {
            Response::redirect(StatusCode::FOUND, Bytes::copy_from_slice(address.as_bytes()))
        }
        ClientErrorPage::Forbidden => Response::page(StatusCode::FORBIDDEN),
        ClientErrorPage::Missing => Response::page(StatusCode::INTERNAL_SERVER_ERROR),
    };
    response.close = true;
    response
}

/// nginx's pages for 495 and 496, which it sends with status 400 (ngx_http_special_response.c).
fn error_page(refusal: Refusal) -> Bytes {
    let reason = match refusal {
        Refusal::Nothing => "No required SSL certificate was sent",
        Refusal::Invalid => "The SSL certificate error",
    };
    Bytes::from(format!(
        "<html>\r\n<head><title>400 {reason}</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n\
         <center>{reason}</center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    ))
}

/// The fields that say who the client is, for the upstream and the authenticator; none where nobody is asked.
pub(super) fn headers(exchange: &Exchange, mut put: impl FnMut(&'static str, &[u8])) {
    let clients = exchange.place.as_ref().and_then(|place| place.site.clients.as_ref());
    let Some(Clients::Verified(verifier)) = clients else { return };
    let Some(session) = &exchange.connection.tls else { return };
    let peer = session.client.as_ref().filter(|_| verifier.settings.demand != ClientDemand::Off);
    let Some(peer) = peer else { return put("ssl-client-verify", b"NONE") };
    if verifier.settings.pass_certificate {
        put("ssl-client-cert", peer.escaped());
    }
    put("ssl-client-verify", variables::verified(Some(peer.verdict(verifier))).as_bytes());
    for (name, value) in
        [("ssl-client-subject-dn", peer.subject()), ("ssl-client-issuer-dn", peer.issuer())]
    {
        if !value.is_empty() {
            put(name, value.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, error_page};

    #[test]
    fn the_pages_are_as_long_as_those_of_nginx() {
        assert_eq!(error_page(Refusal::Nothing).len(), 230);
        assert_eq!(error_page(Refusal::Invalid).len(), 208);
    }
}
