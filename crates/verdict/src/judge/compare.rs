//! What was logged beside what was decided.

use super::conditions::{is_name, of_passing, of_program};
use super::snippets::{BY_SNIPPET, may_decide};
use super::{Compared, Decision, End, If};
use crate::cause::lists_origins;
use crate::known::Known;
use crate::log::Record;
use crate::shown::{SHOWN, cut};
use model::policy::Satisfy;
use model::{Backend, BlockList, DEFAULT_BACKEND, Location};
use std::collections::BTreeSet;

/// What stands for bytes that whoever kept the log could not keep.
const REPLACEMENT: char = '\u{fffd}';
const GARBLED: &str =
    "bytes of its path or host that are no UTF-8 were replaced before the log came here";

/// Whether what was asked for is not in the log as it came.
fn is_garbled(record: &Record) -> bool {
    let has = |text: &str| text.contains(REPLACEMENT);
    has(&record.target) || record.host.as_deref().is_some_and(has)
}

/// What is refused for its head or its body.
const HEAD_OR_BODY: [u16; 8] = [400, 413, 414, 417, 421, 431, 494, 497];
const UNSEEN: &str =
    "it was refused for something in its handshake, head or body that the log does not show";
const NO_CLIENT: &str = "it hangs on the client's address, which the log does not have: add $remote_addr to log-format-upstream";

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Alike,
    Differs,
    Unknown(&'static str),
}

/// What the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logged {
    /// An upstream was tried.
    Sent,
    /// It was answered without any.
    Own,
    /// One or the other.
    Either,
}

/// What came of a request, and on which conditions.
pub(super) fn compare(record: &Record, answer: &Decision, known: &Known) -> Compared {
    let found = match found(record, answer, known) {
        Found::Differs if is_garbled(record) => Found::Unknown(GARBLED),
        Found::Differs if may_decide(record, answer, known) => Found::Unknown(BY_SNIPPET),
        found => found,
    };
    let mut conditions = match (found, answer.end) {
        (Found::Alike, End::Upstream | End::Access | End::Endpoints | End::Limits) => {
            of_passing(record, answer, known)
        }
        (Found::Alike, _) => of_program(answer, known),
        (Found::Differs | Found::Unknown(_), _) => BTreeSet::new(),
    };
    let place = answer.place.as_ref().filter(|_| !answer.routed);
    let location = place.and_then(|(server, index)| known.location(server, *index));
    let is_listed = location.is_some_and(|location| lists_origins(&location.policy));
    if found == Found::Alike && is_listed && !record.shows("origin") {
        conditions.insert(If::Origin);
    }
    if found == Found::Alike && answer.leads_to.is_some() && record.leads_to.is_none() {
        conditions.insert(If::LeadsTo);
    }
    Compared { found, conditions }
}

fn found(record: &Record, answer: &Decision, known: &Known) -> Found {
    if matches!(record.status, 0 | 408 | 499) && record.tried != Some(true) {
        return Found::Unknown(
            "the client went away, or was too slow, before anything was decided",
        );
    }
    let block = known.block();
    let lacks = |list: &BlockList, name: &str| !list.is_empty() && !has(record, name);
    let is_unsure = lacks(&block.user_agents, "user-agent") || lacks(&block.referers, "referer");
    let refused_then = record.status == 403 && record.tried != Some(true) && answer.sent;
    if is_unsure && (answer.end == End::Blocks || refused_then) {
        return Found::Unknown(
            "it hangs on a block list, and the log lacks $http_user_agent or $http_referer, or the request did",
        );
    }
    let place = answer.place.as_ref().filter(|_| !answer.routed);
    let location = place.and_then(|(server, index)| known.location(server, *index));
    let errors = location.and_then(|location| location.policy.errors.as_ref());
    if errors.is_some_and(|errors| errors.statuses.contains(&record.status)) {
        return Found::Unknown(
            "an error page (custom-http-errors) answered: the log does not show in whose place",
        );
    }
    let logged = match record.tried {
        Some(true) => Logged::Sent,
        Some(false) => Logged::Own,
        None => Logged::Either,
    };
    if answer.sent {
        passed(record, answer, known, location.map(AsRef::as_ref), logged)
    } else {
        answered(record, answer, known, location.map(AsRef::as_ref), logged)
    }
}

fn has(record: &Record, name: &str) -> bool {
    record.headers.iter().any(|(known, _)| known == name)
}

/// Fairway sends it to an upstream.
fn passed(
    record: &Record,
    answer: &Decision,
    known: &Known,
    location: Option<&Location>,
    logged: Logged,
) -> Found {
    if logged == Logged::Sent {
        return upstreams(record, answer, location);
    }
    if logged == Logged::Either {
        return match record.status {
            301..=308 | 400..=599 => Found::Unknown(
                "the status may be the upstream's or the controller's: add $upstream_addr to log-format-upstream",
            ),
            _ => upstreams(record, answer, location),
        };
    }
    let is_guarded = location.is_some_and(|location| {
        let policy = &location.policy;
        policy.auth_basic.is_some() || policy.auth_external.is_some()
    });
    let is_certified = is_certified(answer, known, location);
    let limits = location.map(|location| &location.policy.limits).filter(|it| !it.is_empty());
    let preflight = record.method == "OPTIONS"
        && location.is_some_and(|location| location.policy.cors.is_some())
        && !record.headers.iter().any(|(name, _)| name == "origin");
    if preflight {
        return Found::Unknown(
            "it hangs on the Origin, which the log does not have: add $http_origin to log-format-upstream",
        );
    }
    match record.status {
        403 if record.client.is_none() => Found::Unknown(NO_CLIENT),
        401 | 403 | 302 | 500 if is_guarded => Found::Unknown(
            "a guard refused it (a password, an authenticator): the log does not show what it was given",
        ),
        status if is_certified && BY_CERTIFICATE.contains(&status) => Found::Unknown(CERTIFICATE),
        status
            if limits
                .is_some_and(|it| [it.request_status, it.connection_status].contains(&status)) =>
        {
            Found::Unknown(
                "a limit of requests or connections may have refused it: the log does not show how full it was",
            )
        }
        status if HEAD_OR_BODY.contains(&status) => Found::Unknown(UNSEEN),
        502..=504 => Found::Unknown(
            "no endpoint could be had then: the objects do not say how it was at that moment",
        ),
        _ => Found::Differs,
    }
}

/// What a client without a good certificate is told.
const BY_CERTIFICATE: [u16; 6] = [302, 400, 403, 495, 496, 500];
const CERTIFICATE: &str = "it hangs on the client's certificate, which the log does not show";

fn is_certified(answer: &Decision, known: &Known, location: Option<&Location>) -> bool {
    let place = answer.place.as_ref().filter(|_| !answer.routed);
    let server = place.and_then(|(server, _)| known.server(server));
    server.is_some_and(|server| server.client_certificate.is_some())
        || location.is_some_and(|location| location.policy.client_certificate.is_some())
}

/// Both sent it to an upstream: to the same?
fn upstreams(record: &Record, answer: &Decision, location: Option<&Location>) -> Found {
    let ours = match location.map(|location| &location.backend) {
        // Of a canary's location the log names the main side; who was chosen, it says elsewhere.
        Some(Backend::Upstream(id)) if location.is_some_and(|it| it.canary.is_some()) => {
            Some(id.as_str())
        }
        _ => answer.upstream.as_deref(),
    };
    if let Some(theirs) = record.upstream.as_deref() {
        if answer.stands_in {
            return Found::Unknown(
                "default-backend stands in, and the log does not name it as the objects do",
            );
        }
        if Some(theirs) != ours {
            return Found::Differs;
        }
        let canary = location.and_then(|location| location.canary.as_ref());
        return match record.alternative.as_deref().filter(|name| is_name(name)) {
            Some(other) if canary.is_none_or(|canary| canary.upstream.as_str() != other) => {
                Found::Differs
            }
            _ => Found::Alike,
        };
    }
    services(record, location)
        .unwrap_or(Found::Unknown("the log names neither upstream nor Service: add $proxy_upstream_name to log-format-upstream"))
}

/// Where the format has other names than the upstream's.
fn services(record: &Record, location: Option<&Location>) -> Option<Found> {
    let location = location?;
    let service = record.service.as_deref()?;
    let ours = location.service.as_deref()?;
    let namespace = record.namespace.as_deref();
    let origin = location.origin.as_deref()?;
    let same = *ours.name == *service
        && namespace.is_none_or(|namespace| *origin.namespace == *namespace)
        && record.ingress.as_deref().is_none_or(|name| *origin.name == *name);
    Some(if same { Found::Alike } else { Found::Differs })
}

/// Fairway answers it.
fn answered(
    record: &Record,
    answer: &Decision,
    known: &Known,
    location: Option<&Location>,
    logged: Logged,
) -> Found {
    let is_vacant = match location.map(|location| &location.backend) {
        Some(Backend::Upstream(id)) => known.is_vacant(id.as_str()),
        _ => false,
    };
    // There is an endpoint for the question's sake; without it nobody would have been asked anything.
    if record.status == 503 && logged != Logged::Sent && is_vacant && answer.end == End::Access {
        return Found::Alike;
    }
    if answer.end == End::Access && answer.status == 403 && record.client.is_none() {
        return Found::Unknown(NO_CLIENT);
    }
    if answer.status != record.status
        && HEAD_OR_BODY.contains(&record.status)
        && logged != Logged::Sent
    {
        return Found::Unknown(UNSEEN);
    }
    if answer.end == End::Limits {
        return Found::Unknown("a limit of a snippet: the log does not show how full it was");
    }
    // A password or an authenticator may have let it in, unless the address alone refuses.
    let guarded = location.is_some_and(|location| {
        let policy = &location.policy;
        let by_address = answer.status == 403
            && policy.access.satisfy != Some(Satisfy::Any)
            && policy.snippet.is_none();
        (policy.auth_basic.is_some() || policy.auth_external.is_some()) && !by_address
    });
    if answer.end == End::Access && guarded {
        return Found::Unknown(
            "a guard decides it (a password, an authenticator): the log does not show what it was given",
        );
    }
    if is_certified(answer, known, location) && BY_CERTIFICATE.contains(&record.status) {
        return Found::Unknown(CERTIFICATE);
    }
    let is_nowhere = answer.status == 404
        && location.is_none_or(|location| location.backend == Backend::NotFound);
    let to_default =
        record.upstream.as_deref().is_none_or(|name| !is_name(name) || name == DEFAULT_BACKEND);
    if is_nowhere {
        return if record.status == 404 && to_default { Found::Alike } else { Found::Differs };
    }
    if logged == Logged::Sent || answer.status != record.status {
        return Found::Differs;
    }
    if logged == Logged::Either {
        return Found::Unknown(
            "the status may be the upstream's or the controller's: add $upstream_addr to log-format-upstream",
        );
    }
    same_answer(record, answer, location)
}

/// The same status: from the same location, and to the same place?
fn same_answer(record: &Record, answer: &Decision, location: Option<&Location>) -> Found {
    // The location is the same one if its upstream is.
    let backend = location.and_then(|location| match &location.backend {
        Backend::Upstream(id) => Some(id.as_str()),
        Backend::NotFound | Backend::Denied(_) | Backend::Broken(_) => None,
    });
    let other = record.upstream.as_deref().filter(|name| is_name(name));
    if let (Some(ours), Some(theirs)) = (backend, other)
        && ours != theirs
    {
        return Found::Differs;
    }
    match (&record.leads_to, &answer.leads_to) {
        (Some(theirs), Some(ours)) if theirs != ours => Found::Differs,
        _ => Found::Alike,
    }
}

/// What each of them did, in words.
pub(super) fn words(record: &Record, answer: &Decision) -> String {
    let name =
        |name: Option<&str>| cut(name.filter(|name| is_name(name)).unwrap_or("an upstream"), SHOWN);
    let theirs = match (record.tried, record.status) {
        (Some(true), status) => format!("{status} from {}", name(record.upstream.as_deref())),
        (_, status) => status.to_string(),
    };
    let ours = match (&answer.leads_to, answer.sent) {
        (_, true) => format!("goes to {}", name(answer.upstream.as_deref())),
        (Some(place), _) => format!("{} to {}", answer.status, cut(without_query(place), SHOWN)),
        (None, false) => answer.status.to_string(),
    };
    format!("logged: {theirs}; Fairway: {ours}")
}

fn without_query(place: &str) -> &str {
    place.split('?').next().unwrap_or(place)
}
