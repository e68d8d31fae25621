//! `set $best_http_host`, `$pass_access_scheme`, `$pass_port` and `$req_id` of snippets: the template of ingress-nginx
//! sets these before it, and writes them into the head for the upstream and into redirects afterwards.

use crate::exchange::Exchange;
use crate::variables::in_header;
use bytes::Bytes;

/// What snippets of the location say of how its client came in.
pub(super) fn hear(exchange: &mut Exchange) {
    let Some(running) = &mut exchange.snippet else { return };
    let state = &running.state;
    let said = |name| Some(in_header(state.own(name)?.as_bytes()));
    let [host, scheme, port, id] =
        ["best_http_host", "pass_access_scheme", "pass_port", "req_id"].map(said);
    if host.is_some() || scheme.is_some() || port.is_some() {
        let forwarded = &mut exchange.forwarded;
        running.of_request.came.get_or_insert_with(|| forwarded.clone());
        let put = |place: &mut Bytes, said: Option<Bytes>| {
            if let Some(said) = said {
                *place = said;
            }
        };
        put(&mut forwarded.host, host);
        put(&mut forwarded.scheme, scheme);
        put(&mut forwarded.port, port);
    }
    if let Some(id) = id {
        exchange.request_id = id;
    }
}

/// The request comes to another location, where the template sets all of it anew.
pub(super) fn forget(exchange: &mut Exchange) {
    let came = exchange.snippet.as_mut().and_then(|running| running.of_request.came.take());
    if let Some(came) = came {
        exchange.forwarded = came;
    }
}
