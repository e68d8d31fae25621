//! Settings of snippets that the engine knows as a policy: there they count, and nothing else need know of snippets.

use model::policy::{
    Body, Condition, HttpVersion, Policy, Protocol, Retries, Timeouts, TlsRedirect,
};
use model::snippet::{Limits, Pass, Settings, Transfer, UpstreamTls};
use model::{Backend, Location};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What of a policy decides what the controller says at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Said {
    pages: bool,
    intercepts: bool,
    requests: bool,
    connections: bool,
    rate: bool,
    rate_after: bool,
    tls: bool,
    lists: bool,
    satisfy: bool,
    password: bool,
    authenticator: bool,
    buffer: bool,
    grpc: bool,
}

impl Said {
    pub(super) fn of(policy: &Policy) -> Self {
        let Policy { errors, limits, limit_rate, .. } = policy;
        let own = errors.as_ref().filter(|errors| !errors.of_all);
        // The page to sign in at is an `error_page` of the location, too.
        let asks = policy.auth_external.as_ref();
        let signs_in = asks.is_some_and(|asks| asks.sign_in.is_some());
        Self {
            pages: own.is_some() || signs_in,
            intercepts: own.is_some_and(|errors| errors.intercept),
            requests: limits.per_second.is_some() || limits.per_minute.is_some(),
            connections: limits.connections.is_some(),
            rate: limit_rate.rate > 0,
            rate_after: limit_rate.after > 0,
            tls: policy.upstream_tls != model::policy::UpstreamTls::default(),
            lists: policy.access.has_lists(),
            satisfy: policy.access.satisfy.is_some(),
            password: policy.auth_basic.is_some(),
            authenticator: policy.auth_external.is_some(),
            buffer: policy.body.request_buffer.is_some(),
            grpc: matches!(policy.protocol, Protocol::Grpc | Protocol::Grpcs),
        }
    }
}

/// Takes away what the controller writes into each of its locations: what levels around say about the same is hidden
/// by that.
pub(super) fn said_by_the_controller(outer: &mut Settings, said: Said) {
    let transfer = Transfer {
        limit_rate: outer.proxy.limit_rate,
        method: outer.proxy.method.take(),
        pass_request_body: outer.proxy.pass_request_body,
        pass_request_headers: outer.proxy.pass_request_headers,
        set_body: outer.proxy.set_body.take(),
        ignore_client_abort: outer.proxy.ignore_client_abort,
        force_ranges: outer.proxy.force_ranges,
        socket_keepalive: outer.proxy.socket_keepalive,
        hide_headers: std::mem::take(&mut outer.proxy.hide_headers),
        pass_headers: std::mem::take(&mut outer.proxy.pass_headers),
        ignore_headers: outer.proxy.ignore_headers.take(),
        intercept_errors: outer.proxy.intercept_errors.filter(|_| !said.intercepts),
        tls: outer_tls(&mut outer.proxy, said),
        ..Transfer::default()
    };
    outer.proxy = transfer;
    outer.grpc.tls = outer_tls(&mut outer.grpc, said);
    // Guards of annotations are written into the location.
    if said.lists {
        outer.access.rules.clear();
    }
    if said.satisfy {
        outer.access.satisfy = None;
    }
    if said.password {
        outer.access.auth_basic = None;
    }
    if said.authenticator {
        outer.access.auth_request_off = None;
        // The location has one for the authenticator's cookies (nginx.tmpl: `add_header Set-Cookie $auth_cookie`).
        outer.headers.add.clear();
    }
    if said.buffer {
        outer.client.body_buffer_size = None;
    }
    if said.pages {
        outer.answers.error_pages.clear();
    }
    without_limits(&mut outer.limits, said);
    outer.headers.proxy_set.clear();
    outer.answers.cookie_domain = None;
    outer.answers.cookie_path = None;
    outer.answers.redirects = None;
    outer.client.max_body_size = None;
    outer.answers.port_in_redirect = None;
    if said.grpc {
        outer.headers.grpc_set.clear();
        outer.grpc.connect_timeout = None;
        outer.grpc.read_timeout = None;
        outer.grpc.send_timeout = None;
    }
}

/// The limits of annotations stand in place of those around (nginx.tmpl: buildRateLimit).
fn without_limits(outer: &mut Limits, said: Said) {
    if said.requests {
        outer.requests.clear();
    }
    if said.connections {
        outer.connections.clear();
    }
    if said.rate {
        outer.rate = None;
    }
    if said.rate_after {
        outer.rate_after = None;
    }
}

/// What levels around say of TLS towards upstreams, where the Ingress says nothing of it.
fn outer_tls(outer: &mut Transfer, said: Said) -> UpstreamTls {
    let tls = std::mem::take(&mut outer.tls);
    if said.tls { UpstreamTls::default() } else { tls }
}

/// A location in whose policy settings count.
pub(super) fn lowered(location: &Location, settings: &Settings) -> Location {
    let mut location = location.clone();
    if let Some(pass) = settings.pass.as_ref().filter(|_| !is_denied(&location)) {
        passed(&mut location, pass);
    }
    let mut policy = Policy::clone(&location.policy);
    let transfer = match policy.protocol {
        Protocol::Grpc | Protocol::Grpcs => &settings.grpc,
        Protocol::Fcgi => &settings.fastcgi,
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => &settings.proxy,
    };
    transferred(&mut policy, transfer);
    if let Some(most) = settings.client.max_body_size {
        policy.body.max_size = (most > 0).then_some(most);
    }
    if let Some(bytes) = settings.client.body_buffer_size {
        policy.body.request_buffer = usize::try_from(bytes).ok();
    }
    if let Some(absolute) = settings.answers.absolute_redirect {
        policy.relative_redirects = !absolute;
    }
    let limits = &mut policy.limits;
    limits.request_status = settings.limits.request_status.unwrap_or(limits.request_status);
    limits.connection_status =
        settings.limits.connection_status.unwrap_or(limits.connection_status);
    if settings.answers.access_log == Some(false) {
        policy.logging.access = false;
    }
    if *location.policy != policy {
        location.policy = Arc::new(policy);
    }
    location
}

/// What a location within another one has of it: the controller's settings that nginx inherits, but nothing that is
/// rewritten, redirected or sent anywhere. What stands in no location of an Ingress has nginx's own settings.
pub(super) fn at_own_location(around: &Location, settings: &Settings) -> Location {
    let mut location = lowered(around, &Settings { pass: None, ..settings.clone() });
    let mut policy = Policy::clone(&location.policy);
    policy.tls_redirect = TlsRedirect::NEVER;
    policy.redirect = None;
    policy.rewrite = None;
    policy.cors = None;
    policy.default_backend = None;
    policy.snippet = None;
    policy.protocol = Protocol::Http;
    if location.origin.is_none() {
        policy.http_version = HttpVersion::Http10;
        let minute = Duration::from_secs(60);
        policy.timeouts = Timeouts { connect: minute, send: minute, read: minute };
        policy.retries = Retries { tries: 0, ..Retries::default() };
        policy.body =
            Body { response_buffering: true, response_buffer: 32 << 10, ..Body::default() };
    }
    location.policy = Arc::new(policy);
    location.canary = None;
    location.service = None;
    if !is_denied(&location) {
        location.backend = Backend::NotFound;
    }
    location
}

fn is_denied(location: &Location) -> bool {
    matches!(location.backend, Backend::Denied(_))
}

/// `proxy_pass`, `grpc_pass`.
fn passed(location: &mut Location, pass: &Pass) {
    let policy = Arc::make_mut(&mut location.policy);
    policy.protocol = match (pass.grpc, pass.tls) {
        (false, false) => Protocol::Http,
        (false, true) => Protocol::Https,
        (true, false) => Protocol::Grpc,
        (true, true) => Protocol::Grpcs,
    };
    if let Some(id) = pass.target.upstream() {
        location.backend = Backend::Upstream(id);
        location.canary = None;
    }
}

/// Time-outs, retries and sizes of one protocol.
pub(crate) fn transferred(policy: &mut Policy, transfer: &Transfer) {
    let put = |place: &mut Duration, value: Option<Duration>| *place = value.unwrap_or(*place);
    put(&mut policy.timeouts.connect, transfer.connect_timeout);
    put(&mut policy.timeouts.send, transfer.send_timeout);
    put(&mut policy.timeouts.read, transfer.read_timeout);
    put(&mut policy.retries.timeout, transfer.next_upstream_timeout);
    if let Some(tries) = transfer.next_upstream_tries {
        policy.retries.tries = tries;
    }
    if let Some(words) = &transfer.next_upstream {
        policy.retries.conditions = conditions(words);
    }
    let body = &mut policy.body;
    body.request_buffering = transfer.request_buffering.unwrap_or(body.request_buffering);
    body.response_buffering = transfer.buffering.unwrap_or(body.response_buffering);
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).min(MOST_BUFFERED);
    if let Some(size) = transfer.buffer_size {
        body.response_header = bytes(size).min(Body::LARGEST_HEADER);
    }
    if let Some((count, size)) = transfer.buffers {
        body.response_buffer = bytes(u64::from(count).saturating_mul(size));
    }
    match transfer.http_1_1 {
        Some(true) => policy.http_version = HttpVersion::Http11,
        Some(false) => policy.http_version = HttpVersion::Http10,
        None => {}
    }
    if transfer.index.is_some() {
        policy.fastcgi.index.clone_from(&transfer.index);
    }
    if let (Some(errors), Some(intercept)) = (&mut policy.errors, transfer.intercept_errors) {
        errors.intercept = intercept;
    }
}

/// Bytes of an answer's head, and those read ahead of a client, however large the buffers that a snippet names.
const MOST_BUFFERED: usize = 16 << 20;

/// `*_next_upstream`; what nginx has there for caches means nothing here.
fn conditions(words: &[String]) -> BTreeSet<Condition> {
    if words.iter().any(|word| word == "off") {
        return BTreeSet::new();
    }
    let condition = |word: &String| match word.as_str() {
        "error" => Some(Condition::Error),
        "timeout" => Some(Condition::Timeout),
        "invalid_header" => Some(Condition::InvalidHeader),
        "non_idempotent" => Some(Condition::NonIdempotent),
        word => word.strip_prefix("http_")?.parse().ok().map(Condition::Status),
    };
    words.iter().filter_map(condition).collect()
}

#[cfg(test)]
mod tests {
    use super::{Said, said_by_the_controller};
    use crate::snippet::fixture::location;
    use model::policy::{LimitRate, Limits, Policy, RequestLimit};
    use model::snippet::Settings;

    const AROUND: &str =
        "limit_req zone=a; limit_conn b 1; limit_rate 10m; limit_rate_after 1m; error_page 404 /x;";

    fn around(policy: &Policy) -> Settings {
        let mut settings = location(AROUND).settings;
        said_by_the_controller(&mut settings, Said::of(policy));
        settings
    }

    #[test]
    fn annotations_hide_limits_around_of_their_own_kind() {
        let left = |policy: &Policy| {
            let limits = around(policy).limits;
            let listed = (!limits.requests.is_empty(), !limits.connections.is_empty());
            (listed, (limits.rate.is_some(), limits.rate_after.is_some()))
        };
        let all = (true, true);
        assert_eq!(left(&Policy::default()), (all, all));
        let rate = LimitRate { rate: 50 << 10, after: 0 };
        let paced = Policy { limit_rate: rate, ..Policy::default() };
        assert_eq!(left(&paced), (all, (false, true)));
        let limit = RequestLimit { rate: 1000, burst: 0 };
        let limits = Limits { per_minute: Some(limit), ..Limits::default() };
        assert_eq!(left(&Policy { limits, ..Policy::default() }), ((false, true), all));
        let limits = Limits { connections: Some(1), ..Limits::default() };
        assert_eq!(left(&Policy { limits, ..Policy::default() }), ((true, false), all));
    }
}
