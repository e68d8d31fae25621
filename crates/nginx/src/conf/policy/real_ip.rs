//! Whose address a request has (ngx_http_realip_module): its peer's, or what proxies say that are trusted.

use super::super::location::At;
use super::super::tree::put;
use super::super::variables::{map, variable_of};
use super::super::{Block, Environment, Word};
use super::access::nets;
use model::{Global, RealIp};

/// The field that says it of connections behind passthrough. What clients send under this name is replaced before it is
/// read.
pub(in crate::conf) const FIELD: &str = "X-Fairway-Forwarded-For";

/// Whether a field of proxies says it.
fn is_by_field(global: &Global) -> bool {
    let RealIp { enabled, forwarded_headers, .. } = &global.real_ip;
    (*enabled || *forwarded_headers) && !global.proxy_protocol
}

/// Whether it takes a field of ours for TLS: behind passthrough the peer of everybody is one socket. Whoever trusted
/// that, would believe everybody; and nginx has one source for it, the PROXY header or a field.
pub(in crate::conf) fn takes_own_field(environment: &Environment, global: &Global) -> bool {
    environment.passthrough && is_by_field(global)
}

/// What counts for all.
pub(in crate::conf) fn write(environment: &Environment, global: &Global, http: &mut Block) {
    let RealIp { forwarded_for_header, trusted, .. } = &global.real_ip;
    let own = takes_own_field(environment, global);
    if environment.passthrough && !own {
        put!(http, "set_real_ip_from", "unix:");
    }
    if is_by_field(global) {
        put!(http, "real_ip_header", Word::plain(forwarded_for_header));
    } else if global.proxy_protocol {
        put!(http, "real_ip_header", "proxy_protocol");
    } else {
        if environment.passthrough {
            put!(http, "real_ip_header", "proxy_protocol");
        }
        return;
    }
    put!(http, "real_ip_recursive", true);
    for net in nets(trusted) {
        put!(http, "set_real_ip_from", net);
    }
    if own {
        // Its peer is the last one that forwarded it.
        let all = variable_of(forwarded_for_header).then(", $proxy_protocol_addr");
        let entries = [("default".into(), "".into()), ("unix:".into(), all)];
        map(http, "$realip_remote_addr", "$fairway_forwarded_for", &entries);
        let field = Word::plain(format!("{FIELD}: $fairway_forwarded_for"));
        put!(http, "more_set_input_headers", field);
    }
}

/// What counts for a location. It is only looked at where the address is not known yet, and when the field is made.
pub(in crate::conf) fn of_location(at: &mut At<'_, '_>) {
    let global = &at.scope.configuration.global;
    if !takes_own_field(at.scope.environment, global) {
        return;
    }
    put!(at.block, "real_ip_header", FIELD);
    put!(at.block, "set_real_ip_from", "unix:");
    for net in nets(&global.real_ip.trusted) {
        put!(at.block, "set_real_ip_from", net);
    }
}
