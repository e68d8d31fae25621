//! `set $pass_server_port` and `$req_id` of snippets, which what goes to the upstream is made of. What they make of
//! `$best_http_host`, `$pass_access_scheme` and `$pass_port` is over with the program: ingress-nginx sets these three
//! anew behind it (lua_ingress.lua).

use crate::exchange::Exchange;
use crate::variables::in_header;
use std::rc::Rc;

/// What is set anew behind the program of a location.
const SET_ANEW: [&str; 3] = ["best_http_host", "pass_access_scheme", "pass_port"];
const PORT: &str = "pass_server_port";

/// What snippets of the location say of how its client came in.
pub(super) fn hear(exchange: &mut Exchange) {
    // A location that stands in a server of its own has no program of the controller's behind its own.
    let is_of_ingress = exchange.spot().location.origin.is_some();
    let is_told = is_of_ingress && exchange.forwarded_header("x-forwarded-port").is_some();
    let Some(running) = &mut exchange.snippet else { return };
    if is_of_ingress {
        running.state.forget(&SET_ANEW);
    }
    if is_told {
        running.state.forget(&[PORT]);
    }
    let said = |name| Some(in_header(running.state.own(name)?.as_bytes()));
    let (port, id) = (said(PORT), said("req_id"));
    if let Some(port) = port {
        let port = exchange.as_known(port);
        let forwarded = &mut exchange.forwarded;
        if let Some(running) = &mut exchange.snippet {
            running.of_request.came.get_or_insert_with(|| forwarded.clone());
        }
        Rc::make_mut(forwarded).port = port;
    }
    if let Some(id) = id {
        exchange.request_id = id.into();
    }
}

/// The request comes to another location, where the template sets all of it anew.
pub(super) fn forget(exchange: &mut Exchange) {
    let came = exchange.snippet.as_mut().and_then(|running| running.of_request.came.take());
    if let Some(came) = came {
        exchange.forwarded = came;
    }
}
