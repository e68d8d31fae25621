//! Why something differs: a row of docs/migration.md, what is closed, objects that have changed since, or nothing that
//! is known.

use crate::judge::Decision;
use crate::known::{Finding, Known};
use crate::log::Record;
use crate::shown::{SHOWN, cut};
use model::policy::{ClientCertificate, ClientDemand, Origins, Policy};
use model::{Backend, Origin, Part};
use serde::Serialize;

/// Why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "text")]
pub enum Cause {
    /// It differs on purpose: the row of docs/migration.md.
    Row(&'static str),
    /// Its Ingress differs on purpose, in the words of `fairway check`.
    Purpose(String),
    /// The Ingress is refused, by one or by both, or needs the nginx engine: which of these, and why.
    Closed(String),
    /// What no Ingress has is denied: why.
    Denied(String),
    /// The objects are not those of the log.
    Objects(String),
    /// Nothing that is known explains it.
    Unexplained(String),
    /// It cannot be told.
    Untold(&'static str),
}

/// Rows of docs/migration.md by words of what `fairway check` says; the first that fits counts. A test finds each of
/// them on the page.
pub const ROWS: &[(&str, &str)] = &[
    ("ingress-nginx let it reach this Ingress", SHARED),
    ("a realm called off", "`auth-realm: \"off\"` switches the password off"),
    (
        "means the same in lower case",
        "`backend-protocol: grpc` in lower case loses headers and time-outs",
    ),
    (
        "is no redirect with a Location",
        "`permanent-redirect-code` and `temporal-redirect-code` take 300, 304, 305 and 306 and answer without a Location",
    ),
    ("ingress-nginx did not take the Ingress at all", "`custom-http-errors` takes any number"),
    ("has no path, so that / is asked for", "an `auth-url` without a path is asked for"),
    ("has no path, so that copies", "a `mirror-target` without a path is asked for"),
    ("gets a slash in front", SLASH),
    ("ingress-nginx sent both", "`auth-proxy-set-headers` adds"),
    ("plain HTTP is answered with 403", CERTIFICATES),
    ("has an address as externalName", "an ExternalName that is an IP address answers 503"),
    ("had the certificate that Ingress", "the first Ingress with `spec.tls` gives the certificate"),
    (
        "its nginx takes no configuration with it",
        "a directive of a snippet that nginx.tmpl has in the same place",
    ),
    (
        "stands beside the controller's in nginx",
        "`proxy_next_upstream` in a `configuration-snippet` adds its conditions",
    ),
    (
        "has no effect here, and nginx heeds it",
        "directives of snippets that Fairway takes and does not heed",
    ),
];

const SHARED: &str = "canary, affinity, `load-balance`, `upstream-hash-by` and `service-upstream` hang on the Service port: every Ingress of the Service has them";
const ORIGINS: &str = "`cors-allow-origin: https://a.example` also allows what only ends with it (`xhttps://a.example`), which no browser sends";
const CERTIFICATES: &str = "a host that requires client certificates answers on plain HTTP";
const BELIEVED: &str = "`X-Forwarded-Proto`, `-Host` and `-Port` are believed from every peer once `use-forwarded-headers` is on";
const SSL_CLIENT: &str = "`ssl-client-*` fields of a client pass where no certificate is asked for";
const SLASH: &str = "a rewrite target without a leading slash is sent as it is";
const COPY: &str = "`mirror-request-body: \"off\"` announces a body that does not come";
const DOTS: &str = "a path with dot segments is forwarded as received";
const ABSOLUTE: &str =
    "with an absolute-form target the upstream gets the `Host` field, whatever the target says";
const USERINFO: &str = "userinfo in `Host` reaches the default server, HTTP/0.9 is answered";
const FRAGMENT: &str = "a fragment in the target (`/a#b`) is not matched, and forwarded";
const METHODS: &str = "methods with lower-case letters or digits: 400";

/// Rows that are known by the request, the policy or the settings.
pub const OTHERS: &[&str] =
    &[SSL_CLIENT, SLASH, COPY, DOTS, ABSOLUTE, USERINFO, FRAGMENT, METHODS, BELIEVED, ORIGINS];

impl Cause {
    /// It cannot be told.
    pub(crate) fn untold(why: &'static str) -> Self {
        Self::Untold(why)
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Row(row) => format!("on purpose, docs/migration.md: {row}"),
            Self::Purpose(why) => format!("its Ingress differs on purpose: {why}"),
            Self::Closed(why) => format!("its Ingress: {why}"),
            Self::Denied(why) => format!("it answers 503 here, and no Ingress has it: {why}"),
            Self::Objects(why) => format!("the objects are not those of the log: {why}"),
            Self::Unexplained(what) => {
                format!(
                    "not explained ({what}): objects that changed since the log was written, or a defect of Fairway; `fairway explain URL --client ADDRESS` says which step decides"
                )
            }
            Self::Untold(why) => (*why).to_owned(),
        }
    }
}

/// Why something else was decided.
pub(crate) fn of_difference(record: &Record, answer: &Decision, known: &Known) -> Cause {
    if let Some(row) = of_request(record, answer) {
        return Cause::Row(row);
    }
    let named = record.upstream.as_deref().filter(|name| !matches!(*name, "" | "-"));
    if let Some(name) =
        named.filter(|name| !known.has_upstream(name) && !name.contains("default-backend"))
    {
        return Cause::Objects(format!(
            "no Ingress has an upstream {}; give `check` the objects of that time",
            cut(name, SHOWN)
        ));
    }
    let ours = origin_of(answer, known);
    let theirs = named.map(|name| known.owners(name)).unwrap_or_default();
    let theirs = theirs
        .iter()
        .filter_map(|(server, index)| known.location(server, *index)?.origin.as_deref());
    let findings = ours.into_iter().chain(theirs).filter_map(|origin| known.finding(origin));
    let found = findings.map(of_finding).next().or_else(|| of_nobody(answer, known));
    found.unwrap_or_else(|| Cause::Unexplained(shape(record, answer)))
}

/// What the ConfigMap closes besides the paths of Ingresses.
fn of_nobody(answer: &Decision, known: &Known) -> Option<Cause> {
    let (server, index) = answer.place.as_ref().filter(|_| !answer.routed)?;
    let location = known.location(server, *index).filter(|location| location.origin.is_none())?;
    match &location.backend {
        Backend::Denied(reason) => Some(Cause::Denied(reason.clone())),
        Backend::Upstream(_) | Backend::NotFound | Backend::Broken(_) => None,
    }
}

/// What differs on purpose about a request or its Ingress although the same was decided.
pub(crate) fn besides(record: &Record, answer: &Decision, known: &Known) -> Option<Cause> {
    if let Some(row) = of_request(record, answer) {
        return Some(Cause::Row(row));
    }
    let location = answer.place.as_ref().filter(|_| !answer.routed);
    let location = location.and_then(|(server, index)| known.location(server, *index));
    if let Some(row) = location.and_then(|location| of_policy(&location.policy)) {
        return Some(Cause::Row(row));
    }
    if location.is_some_and(|location| lists_origins(&location.policy)) && has_odd_origin(record) {
        return Some(Cause::Row(ORIGINS));
    }
    if known.believes_some() {
        return Some(Cause::Row(BELIEVED));
    }
    known.finding(origin_of(answer, known)?).map(of_finding)
}

fn origin_of<'a>(answer: &Decision, known: &'a Known) -> Option<&'a Origin> {
    let (server, index) = answer.place.as_ref().filter(|_| !answer.routed)?;
    let location = known.location(server, *index)?;
    // What a snippet has besides belongs to whoever made the host.
    location.origin.as_deref()
}

fn of_finding(finding: &Finding) -> Cause {
    let reasons = finding.reasons.iter();
    let row = reasons.clone().find_map(|reason| {
        ROWS.iter().find(|(words, _)| reason.contains(words)).map(|(_, row)| *row)
    });
    let said = || reasons.take(2).map(String::as_str).collect::<Vec<_>>().join("; ");
    match (finding.closed, row) {
        (Some(how), _) => Cause::Closed(format!("{how}: {}", said())),
        (None, Some(row)) => Cause::Row(row),
        (None, None) => Cause::Purpose(said()),
    }
}

/// What is sent otherwise wherever it is asked for.
fn of_policy(policy: &Policy) -> Option<&'static str> {
    let first = policy.rewrite.as_ref().and_then(|rewrite| rewrite.target.parts().first());
    let slashless = match first {
        Some(Part::Text(text)) => !text.starts_with('/') && !text.starts_with("http"),
        Some(Part::Capture(_)) => true,
        Some(Part::Variable(_)) | None => false,
    };
    if slashless {
        return Some(SLASH);
    }
    if policy.mirror.as_ref().is_some_and(|mirror| !mirror.body) {
        return Some(COPY);
    }
    let certificates = match &policy.client_certificate {
        Some(ClientCertificate::Verified(asked)) => asked.demand == ClientDemand::Required,
        Some(ClientCertificate::Closed(_)) | None => false,
    };
    certificates.then_some(CERTIFICATES)
}

/// Whether some origins are allowed, and others are not.
pub(crate) fn lists_origins(policy: &Policy) -> bool {
    policy.cors.as_ref().is_some_and(|cors| cors.origins != Origins::Any)
}

/// Whether an origin may end with one that is allowed and be another one: no browser sends such a text.
fn has_odd_origin(record: &Record) -> bool {
    let origin = record.headers.iter().find(|(name, _)| name == "origin");
    let is_odd = |origin: &str| match origin.split_once("://") {
        Some((scheme, rest)) => !matches!(scheme, "http" | "https") || rest.contains("://"),
        None => origin != "null",
    };
    origin.is_some_and(|(_, origin)| is_odd(origin))
}

/// What about the request itself is answered otherwise.
fn of_request(record: &Record, answer: &Decision) -> Option<&'static str> {
    let target = record.target.as_str();
    if record.method.is_empty() {
        return (target.starts_with("GET ") && record.status != 400).then_some(USERINFO);
    }
    if answer.dotted {
        return Some(DOTS);
    }
    if !target.starts_with('/') && target.contains("://") {
        return Some(ABSOLUTE);
    }
    if target.contains('#') {
        return Some(FRAGMENT);
    }
    if record.headers.iter().any(|(name, _)| name.starts_with("ssl-client-")) {
        return Some(SSL_CLIENT);
    }
    let is_odd = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (record.method.bytes().any(is_odd)).then_some(METHODS)
}

/// Differences of one kind are one group.
fn shape(record: &Record, answer: &Decision) -> String {
    let theirs = match record.tried {
        Some(true) => "went to an upstream".to_owned(),
        _ => format!("was answered {}", record.status),
    };
    let ours = if answer.sent {
        "goes to an upstream".to_owned()
    } else {
        format!("is answered {}", answer.status)
    };
    match (record.tried, answer.sent) {
        (Some(true), true) => "went to another upstream".to_owned(),
        _ => format!("{theirs}, {ours}"),
    }
}
