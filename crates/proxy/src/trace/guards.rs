//! What lets a request pass, or does not.

use super::{Phase, Story, Wanted};
use crate::phases::access;
use crate::variables;
use model::Steps;
use model::policy::{ClientCertificate, LimitKey, RequestLimit, Satisfy};
use model::snippet::AuthBasic;
use wire::Response;

/// What is said of an authenticator that nobody is behind.
const NOBODY: &str = "no endpoint of it is ready: the answer is 500 until one is";

pub(super) fn tell(story: &mut Story<'_>, response: &Response) {
    let status = story.status(response);
    if story.ended(Phase::Blocks) {
        let outcome = format!("refused with {status} by a block list");
        story.say("block lists", outcome);
    }
    if of_certificate(story, status) {
        let outcome = match closed(story) {
            Some(reason) => format!("denied, {status}: {reason}"),
            None => format!("asked for by auth-tls-secret: {status}"),
        };
        story.say("client certificate", outcome);
    }
    if story.reached(Phase::Limits) && story.exchange.place.is_some() {
        limits(story);
    }
    if story.ended(Phase::Limits) {
        story.say_by(
            "limits",
            format!("refused with {status}"),
            "limit-rps, limit-rpm or limit-connections",
        );
    }
    if story.reached(Phase::Access) && story.exchange.place.is_some() {
        of_access(story, status);
    }
    if story.ended(Phase::Body) {
        story.say("body", format!("refused with {status}"));
    }
}

/// Why the host lets nobody in, whatever certificate a client has.
fn closed(story: &Story<'_>) -> Option<String> {
    let exchange = story.exchange;
    let site = exchange.generation.sites.find(&exchange.host, &Steps::default()).ok().flatten()?;
    match site.server.client_certificate.as_ref()? {
        ClientCertificate::Closed(reason) => Some(reason.clone()),
        ClientCertificate::Verified(_) => None,
    }
}

/// What bounds requests and bodies of the location.
fn limits(story: &mut Story<'_>) {
    rates(story);
    if let Some(most) = story.exchange.spot().location.policy.body.max_size {
        story.say("body", format!("{most} bytes at most (proxy-body-size)"));
    }
}

/// How many requests the client may make, where it is one that is counted.
fn rates(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let limits = &exchange.spot().location.policy.limits;
    if limits.per_second.is_none() && limits.per_minute.is_none() && limits.connections.is_none() {
        return;
    }
    if limits.exempt.contains(exchange.client) {
        let outcome = format!("{} is exempt: nothing is counted", exchange.client);
        return story.say_by("limits", outcome, "limit-allowlist");
    }
    if let LimitKey::Text(template) = &limits.key
        && variables::of_request(template, exchange).is_empty()
    {
        let outcome = "nothing is counted: what tells clients apart is empty here";
        let by = "limit-conn-zone-variable of the ConfigMap";
        return story.say_of("limits", outcome, by.to_owned());
    }
    // Counted in thousandths of a request, each second.
    let rate = |limit: &RequestLimit, seconds: u64| {
        let (rate, burst) = (limit.rate * seconds / 1000, limit.burst / 1000);
        format!("{rate}, {burst} more at once")
    };
    if let Some(limit) = &limits.per_second {
        story.say_by("limits", format!("requests a second: {}", rate(limit, 1)), "limit-rps");
    }
    if let Some(limit) = &limits.per_minute {
        story.say_by("limits", format!("requests a minute: {}", rate(limit, 60)), "limit-rpm");
    }
    if let Some(most) = limits.connections {
        story.say_by("limits", format!("requests at a time: {most}"), "limit-connections");
    }
}

/// Whether the client's certificate, or that there is none, ended the request.
fn of_certificate(story: &Story<'_>, status: u16) -> bool {
    let exchange = story.exchange;
    let site = exchange.generation.sites.find(&exchange.host, &Steps::default()).ok().flatten();
    let is_asked = site.is_some_and(|site| site.clients.is_some());
    let early = matches!(exchange.phase, Phase::Location | Phase::HttpsRedirect);
    is_asked && early && matches!(status, 400 | 403 | 421)
}

fn of_access(story: &mut Story<'_>, status: u16) {
    lists(story);
    password(story);
    asked(story);
    let exchange = story.exchange;
    if access::satisfy(exchange) == Satisfy::Any {
        match exchange.spot().location.policy.access.satisfy {
            Some(Satisfy::Any) => story.say_by("access", "one of these is enough", "satisfy"),
            _ => story.say("access", "one of these is enough: a snippet says satisfy any"),
        }
    }
    // Where nothing is behind a location, its guards were asked and let the request pass.
    if story.ended(Phase::Access) && exchange.spot().group.is_some() {
        match access::shut_by(exchange) {
            Some(by) => story.say_of("access", format!("refused with {status}"), by.to_owned()),
            None => story.say("access", format!("refused with {status}")),
        }
    }
}

/// The address lists of annotations, where they count.
fn lists(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let (lists, client) = (&exchange.spot().location.policy.access, exchange.client);
    if lists.has_lists() && access::replaces_lists(exchange) {
        let outcome =
            format!("no list counts for {}: limit_except of a snippet", exchange.request.method);
        return story.say("access", outcome);
    }
    if !lists.deny.is_empty() {
        let verdict = if lists.deny.contains(client) { "denied" } else { "not denied" };
        story.say_by("access", format!("{client} is {verdict}"), "denylist-source-range");
    }
    if let Some(allowed) = &lists.allow {
        let verdict = if allowed.contains(client) { "allowed" } else { "not allowed" };
        story.say_by("access", format!("{client} is {verdict}"), "allowlist-source-range");
    }
}

/// Whether a password is asked for: what a snippet says goes before the annotation.
fn password(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let has_users = exchange.spot().location.policy.auth_basic.is_some();
    match access::password(exchange) {
        Some(AuthBasic::Off) if has_users => {
            story.say("access", "no password is asked for: a snippet says auth_basic off");
        }
        Some(AuthBasic::Realm(_)) if !has_users => {
            let outcome = "nobody has a password for auth_basic of a snippet: 403";
            story.say("access", outcome);
        }
        Some(AuthBasic::Off) => {}
        _ if has_users => {
            story.say_by("access", "a name and a password are asked for", "auth-type");
        }
        _ => {}
    }
}

/// The authenticators that were asked.
fn asked(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let policy = &exchange.spot().location.policy;
    let Some(trace) = &exchange.trace else { return };
    for asked in trace.asked.borrow().iter() {
        let by = if policy.route.is_some() { "ExternalAuth" } else { "auth-url" };
        let decided = match &asked.nobody {
            Some(_) => format!("{} is asked; {NOBODY}", asked.whom),
            None => format!("{} is asked", asked.whom),
        };
        story.say_by("access", decided.as_str(), by);
        if let Some(url) = &asked.nobody {
            story.lacks(Wanted::Url(url.clone()), decided);
        }
    }
}
