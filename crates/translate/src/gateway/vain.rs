//! What of routes and listeners can never work though nothing of it is refused: rules without backends, host names that
//! no request has, time-outs that never end. Conditions are those of the specification; this is told besides.

use super::missing::note;
use crate::kinds::kind_of;
use crate::settings::quote;
use model::{Kind, Problem, Severity};
use objects::ObjectKey;
use objects::gateway::{
    BackendRef, HttpRoute, Listener, RouteFilter, RouteRule, StreamRoute, short,
};
use std::net::IpAddr;

/// What an HTTPRoute or a GRPCRoute should know of its rules and host names.
pub(super) fn of_route(route: &HttpRoute) -> Vec<Problem> {
    let own = (kind_of(route.kind), &route.meta.key);
    let mut told = of_hostnames(own, &route.hostnames);
    if route.rules.is_empty() {
        let message =
            "there is no rule, so that no request is the route's: write one with backendRefs";
        told.push(warning(own, "spec.rules", message.to_owned()));
    }
    for (index, rule) in route.rules.iter().enumerate() {
        let at = format!("spec.rules[{index}]");
        told.extend(of_backends(rule, own.0).map(|why| warning(own, &at, why)));
        if let (Some(whole), Some(each)) = (rule.request_timeout, rule.backend_timeout)
            && !whole.is_zero()
            && each > whole
        {
            let message = format!(
                "backendRequest is {each:?} and never counts, as request ends after {whole:?}: write a shorter one; an \
                 API server takes no such route"
            );
            told.push(note(own.0, own.1, &format!("{at}.timeouts"), message));
        }
    }
    told
}

/// What a TCPRoute, a UDPRoute or a TLSRoute should know of its backends and host names.
pub(super) fn of_stream(route: &StreamRoute) -> Vec<Problem> {
    let own = (kind_of(route.kind), &route.meta.key);
    let mut told = of_hostnames(own, &route.hostnames);
    let what = if route.kind == objects::Kind::UdpRoute {
        "datagrams lead nowhere"
    } else {
        "connections just end"
    };
    let why = without_weight(&route.backends, "backendRefs names nothing");
    told.extend(why.map(|(why, remedy)| {
        warning(own, "spec.rules", format!("{why}, so that {what}: {remedy}"))
    }));
    told
}

/// What the owner of listeners should know of their host names.
pub(super) fn of_listeners<'l>(
    own: (Kind, &'l ObjectKey),
    listeners: impl Iterator<Item = &'l Listener>,
) -> impl Iterator<Item = Problem> {
    listeners.filter_map(move |listener| {
        let (severity, why) = no_host(listener.hostname.as_deref()?)?;
        let message = format!("hostname of listener {}: {why}", short(&listener.name));
        Some(Problem { severity, ..note(own.0, own.1, "spec.listeners", message) })
    })
}

/// Why every request of a rule fails, and what to do.
fn of_backends(rule: &RouteRule, kind: Kind) -> Option<String> {
    if rule.filters.iter().any(|filter| matches!(filter, RouteFilter::Redirect(_))) {
        return None;
    }
    let is_grpc = kind == Kind::GrpcRoute;
    let without = if is_grpc {
        "there are no backendRefs"
    } else {
        "there are no backendRefs and no redirect"
    };
    let (why, remedy) = without_weight(&rule.backends, without)?;
    let what = match (is_grpc, rule.session.is_some() && !rule.backends.is_empty()) {
        (true, false) => "every call fails (unavailable)",
        (true, true) => "every call without a session fails (unavailable)",
        (false, false) => "every request is answered 500",
        (false, true) => "every request without a session is answered 500",
    };
    Some(format!("{why}, so that {what}: {remedy}"))
}

/// Why none of these backends has a share, and what to do; `nothing` says it where there is none of them.
fn without_weight<'w>(
    backends: &[BackendRef],
    nothing: &'w str,
) -> Option<(&'w str, &'static str)> {
    if backends.is_empty() {
        Some((nothing, "name a Service in backendRefs"))
    } else if backends.iter().all(|backend| backend.weight == 0) {
        Some(("no backend has a weight above 0", "give one of them a weight"))
    } else {
        None
    }
}

fn of_hostnames(own: (Kind, &ObjectKey), hostnames: &[String]) -> Vec<Problem> {
    let told = hostnames.iter().filter_map(|hostname| {
        let (severity, why) = no_host(hostname)?;
        Some(Problem { severity, ..note(own.0, own.1, "spec.hostnames", why) })
    });
    told.collect()
}

/// What is wrong with a host name, if it is none, and whether requests can have it all the same: a notice.
fn no_host(text: &str) -> Option<(Severity, String)> {
    let called = quote(text);
    let never = |why: String| Some((Severity::Warning, format!("{called} {why}")));
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.split('/').next().unwrap_or_default();
    let (host, port) = match bare.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, Some(port))
        }
        _ => (bare, None),
    };
    let is_address = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if text.is_empty() || text == "*" {
        return never("stands for no host: leave it out for every host".to_owned());
    }
    if is_address(text) || is_address(host) {
        let severity = if is_address(text) { Severity::Notice } else { Severity::Warning };
        let message = "is an address, which is no host name: write a name, or leave it out";
        return Some((severity, format!("{called} {message}")));
    }
    let is_host = |text: &str| crate::ingress::is_host(text);
    if (bare != text || port.is_some()) && is_host(host) {
        return never(format!(
            "is a host name and more, which no request has: write {}",
            short(&host.to_ascii_lowercase())
        ));
    }
    if let Some(host) = text.strip_suffix('.').filter(|host| is_host(host)) {
        return never(format!("ends in a dot, which no request has: write {}", short(host)));
    }
    if !is_host(text) {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let severity =
            if text.bytes().all(is_known) { Severity::Notice } else { Severity::Warning };
        let message = "is no host name: write one such as shop.example, or *.shop.example";
        return Some((severity, format!("{called} {message}")));
    }
    let lower = text.to_ascii_lowercase();
    (lower != text).then(|| {
        let lower = short(&lower);
        let message =
            format!("{called} counts as {lower}: write it so; an API server takes no capitals");
        (Severity::Notice, message)
    })
}

fn warning((kind, key): (Kind, &ObjectKey), field: &str, message: String) -> Problem {
    Problem { severity: Severity::Warning, ..note(kind, key, field, message) }
}
