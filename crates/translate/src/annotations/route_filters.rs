//! What filters of a route of the Gateway API do, in the words of the route.

use crate::settings::{Lines, fields, words};
use model::policy::{
    GuardAsked, HeaderEdits, PathChange, RouteFilters, RouteGuard, RouteMirror, RouteRedirect,
};

/// What is in force.
pub(super) fn show(filters: Option<&RouteFilters>, lines: &mut Lines) {
    let Some(filters) = filters else { return };
    let RouteFilters {
        request,
        response,
        redirect,
        path,
        guard,
        mirrors,
        time,
        time_of_try,
        pause,
    } = filters;
    let pause = Some(pause).filter(|pause| !pause.is_zero());
    lines.add("route.request", edits(request)).of_route("filters: RequestHeaderModifier");
    lines.add("route.response", edits(response)).of_route("filters: ResponseHeaderModifier");
    lines
        .add("route.redirect", redirect.as_ref().map(redirected))
        .of_route("filters: RequestRedirect");
    lines.add("route.path", path.as_ref().map(changed)).of_route("filters: URLRewrite");
    lines
        .add("route.guard", guard.as_ref().map(|guard| asked(guard)))
        .of_route("filters: ExternalAuth");
    let mirrors: Vec<String> = mirrors.iter().map(copied).collect();
    lines.add("route.mirrors", mirrors).of_route("filters: RequestMirror");
    lines.add("route.time", time).of_route("timeouts.request");
    lines.add("route.time_of_try", time_of_try).of_route("timeouts.backendRequest");
    lines.add("route.pause", pause).of_route("retry.backoff");
}

fn edits(edits: &HeaderEdits) -> String {
    let HeaderEdits { set, add, remove } = edits;
    let of = |what: &str, all: Vec<String>| {
        (!all.is_empty()).then(|| format!("{what} {}", all.join(", ")))
    };
    let pairs = |all: &[(String, model::Secret<String>)]| {
        fields(all.iter().map(|(name, value)| (name.as_str(), value)))
    };
    let all = [of("set", pairs(set)), of("add", pairs(add)), of("remove", remove.clone())];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn redirected(redirect: &RouteRedirect) -> String {
    let RouteRedirect { scheme, host, port, path, listener_port: _, status } = redirect;
    let named = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
    let parts = [
        named("scheme", scheme.clone()),
        named("host", host.clone()),
        named("port", port.map(|port| port.to_string())),
        named("path", path.as_ref().map(changed)),
    ];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!("{status} to {parts}")
}

fn changed(path: &PathChange) -> String {
    match path {
        PathChange::Full(path) => path.clone(),
        PathChange::Prefix(prefix) => format!("{prefix} in place of the prefix"),
    }
}

fn asked(guard: &RouteGuard) -> String {
    let RouteGuard { upstream, tls, asked, headers, body } = guard;
    let how = match (asked, tls) {
        (GuardAsked::Grpc, None) => "gRPC",
        (GuardAsked::Grpc, Some(_)) => "gRPC over TLS",
        (GuardAsked::Http { .. }, None) => "HTTP",
        (GuardAsked::Http { .. }, Some(_)) => "HTTPS",
    };
    let at = match asked {
        GuardAsked::Http { prefix, http2: _, said: _ } => prefix.as_str(),
        GuardAsked::Grpc => "",
    };
    let body = if *body { ", with the body" } else { "" };
    format!("{upstream}{at} by {how}, told {}{body}", words(headers))
}

fn copied(mirror: &RouteMirror) -> String {
    let RouteMirror { upstream, http2: _, numerator, denominator } = mirror;
    if numerator == denominator {
        upstream.to_string()
    } else {
        format!("{upstream} ({numerator} of {denominator})")
    }
}
