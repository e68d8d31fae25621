//! From the JSON of a rule of an HTTPRoute to what is kept of it: matches, backends, time-outs and retries.

use super::duration::duration;
use super::filters::{RawFilter, filters};
use super::parse::RawRef;
use super::route::{BackendRef, NameMatch, PathMatch, Retry, RouteMatch, RouteRule, ValueMatch};
use super::session::RawSession;
use crate::trim::{each, port_number};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// The longest pause between two tries: requests take places meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is there and is not read: its content does not matter.
pub(super) type Unread = Option<Value>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawRule {
    matches: Vec<RawMatch>,
    filters: Vec<RawFilter>,
    backend_refs: Vec<RawBackend>,
    timeouts: RawTimeouts,
    retry: Option<RawRetry>,
    session_persistence: Option<RawSession>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTimeouts {
    request: Option<String>,
    backend_request: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawRetry {
    codes: Vec<u16>,
    attempts: Option<i64>,
    backoff: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMatch {
    path: Option<RawPath>,
    method: Option<String>,
    headers: Vec<RawNamed>,
    query_params: Vec<RawNamed>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawPath {
    r#type: Option<String>,
    value: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawNamed {
    pub(super) r#type: Option<String>,
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawBackend {
    #[serde(flatten)]
    object: RawRef,
    port: Option<i32>,
    weight: Option<i32>,
    filters: Vec<RawFilter>,
}

/// What is wrong with the first field that is not read.
#[derive(Default)]
pub(super) struct Unsaid(pub(super) Option<String>);

impl Unsaid {
    /// Notes a field that is not known at all, if it is there.
    pub(super) fn note(&mut self, is_there: bool, field: impl FnOnce() -> String) {
        if is_there {
            self.say(|| format!("{} is not supported: take it out", field()));
        }
    }

    /// Notes the value of a field that is none of those that are known.
    pub(super) fn other(&mut self, field: impl FnOnce() -> String, value: &str, known: &str) {
        self.say(|| format!("{} {} is not supported: write {known}", field(), short(value)));
    }

    /// Notes something with its remedy.
    pub(super) fn say(&mut self, what: impl FnOnce() -> String) {
        if self.0.is_none() {
            self.0 = Some(what());
        }
    }
}

/// The beginning of a value that may be of any length, such as a kind: 60 characters.
pub fn short(value: &str) -> &str {
    const MOST: usize = 60;
    value.char_indices().nth(MOST).map_or(value, |(end, _)| &value[..end])
}

impl RawRule {
    /// Reads a rule. What cannot be read of its matches is noted in `unread`, as others would have its requests; all
    /// else is the rule's own.
    pub(super) fn read(self, at: &str, unread: &mut Unsaid) -> Result<RouteRule, String> {
        let mut own = Unsaid::default();
        let session = self.session_persistence.map(|raw| raw.read(at, &mut own).map(Box::new));
        let session = session.transpose()?;
        let mut matches = each(Some(self.matches), |index, found| {
            Ok(found.read(&format!("{at}.matches[{index}]"), unread))
        })?;
        if matches.is_empty() {
            matches.push(RouteMatch::default());
        }
        let filters = filters(self.filters, at, &mut own)?;
        let backends = each(Some(self.backend_refs), |index, one| {
            one.read(&format!("{at}.backendRefs[{index}]"), &mut own)
        })?;
        let RawTimeouts { request, backend_request } = self.timeouts;
        let time = |text: Option<String>, field: &str| {
            duration(text.as_deref(), || format!("{at}.{field}"))
        };
        let retry = self.retry.map(|raw| {
            let backoff = time(raw.backoff, "retry.backoff")?.unwrap_or_default();
            if backoff > LONGEST_PAUSE {
                let most = LONGEST_PAUSE.as_secs();
                own.say(|| format!("{at}.retry.backoff: at most {most}s; clients wait for it"));
            }
            let attempts = u32::try_from(raw.attempts.unwrap_or(1)).unwrap_or(0);
            Ok(Box::new(Retry { codes: raw.codes, attempts, backoff }))
        });
        Ok(RouteRule {
            matches,
            filters,
            backends,
            request_timeout: time(request, "timeouts.request")?,
            backend_timeout: time(backend_request, "timeouts.backendRequest")?,
            retry: retry.transpose().map_err(|error: String| error)?,
            session,
            unread: own.0.map(String::into_boxed_str),
        })
    }
}

impl RawMatch {
    fn read(self, at: &str, unread: &mut Unsaid) -> RouteMatch {
        let RawPath { r#type: kind, value } = self.path.unwrap_or_default();
        let value = value.unwrap_or_else(|| "/".to_owned());
        let path = match kind.as_deref() {
            None | Some("PathPrefix") => PathMatch::Prefix(value),
            Some("Exact") => PathMatch::Exact(value),
            Some("RegularExpression") => PathMatch::Expression(value),
            Some(other) => {
                let known = "PathPrefix, Exact or RegularExpression";
                unread.other(|| format!("{at}.path.type"), other, known);
                PathMatch::Exact(value)
            }
        };
        let headers = named(self.headers, at, "headers", unread);
        let query = named(self.query_params, at, "queryParams", unread);
        RouteMatch { path, method: self.method, headers, query }
    }
}

/// Reads the fields or parameters that a match names.
pub(super) fn named(
    raw: Vec<RawNamed>,
    at: &str,
    field: &str,
    unread: &mut Unsaid,
) -> Vec<NameMatch> {
    let mut kept: Vec<NameMatch> = Vec::with_capacity(raw.len());
    for RawNamed { r#type: kind, name, value } in raw {
        let value = match kind.as_deref() {
            None | Some("Exact") => ValueMatch::Exact(value),
            Some("RegularExpression") => ValueMatch::Expression(value),
            Some(other) => {
                let known = "Exact or RegularExpression";
                unread.other(|| format!("{at}.{field}.type"), other, known);
                ValueMatch::Exact(value)
            }
        };
        // Of two with the same name only the first counts.
        let is_same = |found: &NameMatch| match field {
            "headers" => found.name.eq_ignore_ascii_case(&name),
            _ => found.name == name,
        };
        if !kept.iter().any(is_same) {
            kept.push(NameMatch { name, value });
        }
    }
    kept
}

impl RawBackend {
    pub(super) fn read(self, at: &str, unread: &mut Unsaid) -> Result<BackendRef, String> {
        let field = || format!("{at}.port");
        Ok(BackendRef {
            object: self.object.read("", "Service"),
            port: self.port.map(|port| port_number(port, field)).transpose()?,
            weight: u32::try_from(self.weight.unwrap_or(1)).unwrap_or(0),
            filters: filters(self.filters, at, unread)?,
        })
    }
}
