//! From the JSON of the filters of a route to what is kept of them.

use super::parse::RawRef;
use super::parse_rules::{RawNamed, Unsaid, short};
use super::route::{
    BackendRef, CorsFilter, ExternalAuth, HeaderChange, HeaderChanges, PathModifier, Redirect,
    RequestMirror, Rewrite, RouteFilter,
};
use crate::trim::port_number;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawFilter {
    r#type: String,
    request_header_modifier: Option<RawChanges>,
    response_header_modifier: Option<RawChanges>,
    request_redirect: Option<RawRedirect>,
    url_rewrite: Option<RawRewrite>,
    request_mirror: Option<RawMirror>,
    cors: Option<RawCors>,
    external_auth: Option<RawAuth>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawChanges {
    set: Vec<RawNamed>,
    add: Vec<RawNamed>,
    remove: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRedirect {
    scheme: Option<String>,
    hostname: Option<String>,
    path: Option<RawModifier>,
    port: Option<i32>,
    status_code: Option<u16>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawRewrite {
    hostname: Option<String>,
    path: Option<RawModifier>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawModifier {
    r#type: Option<String>,
    replace_full_path: Option<String>,
    replace_prefix_match: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMirror {
    backend_ref: RawTarget,
    percent: Option<u32>,
    fraction: Option<RawFraction>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawTarget {
    #[serde(flatten)]
    object: RawRef,
    port: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawFraction {
    numerator: u32,
    denominator: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCors {
    allow_origins: Vec<String>,
    allow_credentials: bool,
    allow_methods: Vec<String>,
    allow_headers: Vec<String>,
    expose_headers: Vec<String>,
    max_age: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawAuth {
    protocol: String,
    backend_ref: RawTarget,
    http: RawAsked,
    grpc: RawAsked,
    forward_body: RawBody,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawAsked {
    path: String,
    allowed_headers: Vec<String>,
    allowed_response_headers: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawBody {
    max_size: u32,
}

/// The types of filters, each with the field that says what it does.
const TYPES: [(&str, &str); 7] = [
    ("RequestHeaderModifier", "requestHeaderModifier"),
    ("ResponseHeaderModifier", "responseHeaderModifier"),
    ("RequestRedirect", "requestRedirect"),
    ("URLRewrite", "urlRewrite"),
    ("RequestMirror", "requestMirror"),
    ("CORS", "cors"),
    ("ExternalAuth", "externalAuth"),
];

/// How many letters of a type may be others than those of the one that was meant, and of short ones one in three.
const TYPOS: usize = 3;

impl RawFilter {
    /// The type that its first field belongs to.
    fn present(&self) -> Option<&'static str> {
        let there = [
            self.request_header_modifier.is_some(),
            self.response_header_modifier.is_some(),
            self.request_redirect.is_some(),
            self.url_rewrite.is_some(),
            self.request_mirror.is_some(),
            self.cors.is_some(),
            self.external_auth.is_some(),
        ];
        let mut types = TYPES.iter().zip(there);
        types.find(|(_, there)| *there).map(|((name, _), _)| *name)
    }
}

/// What is wrong with a filter that cannot be read: its type, or the field that is missing.
fn unknown(kind: &str, present: Option<&str>) -> String {
    let kind = short(kind);
    if kind.is_empty() {
        let meant = present.unwrap_or("RequestHeaderModifier");
        return format!(" has no type: write type: {meant}, or whatever it is");
    }
    match TYPES.iter().find(|(name, _)| *name == kind) {
        Some(("ExternalAuth", _)) if present == Some("ExternalAuth") => {
            ".externalAuth.protocol is not known: write HTTP or GRPC".to_owned()
        }
        Some((_, field)) => format!(" of type {kind} has no {field}: add it"),
        None => {
            let far = |name: &str| strsim::osa_distance(&name.to_lowercase(), &kind.to_lowercase());
            let near = TYPES.iter().map(|(name, _)| (far(name), *name)).min();
            let most = |name: &str| TYPOS.min(name.len() / 3);
            let near = near.filter(|(far, name)| *far <= most(name)).map(|(_, name)| name);
            let near = near.or(present);
            let remedy =
                near.map_or("take it out".to_owned(), |near| format!("did you mean {near}?"));
            format!(" of type {kind} is not supported: {remedy}")
        }
    }
}

/// Reads filters; what is not known among them is noted.
pub(super) fn filters(
    raw: Vec<RawFilter>,
    at: &str,
    unread: &mut Unsaid,
) -> Result<Vec<RouteFilter>, String> {
    let mut kept = Vec::with_capacity(raw.len());
    for (index, filter) in raw.into_iter().enumerate() {
        let at = format!("{at}.filters[{index}]");
        let present = filter.present();
        let RawFilter {
            r#type: kind,
            request_header_modifier,
            response_header_modifier,
            request_redirect,
            url_rewrite,
            request_mirror,
            cors,
            external_auth,
        } = filter;
        let read = match kind.as_str() {
            "RequestHeaderModifier" => {
                request_header_modifier.map(|raw| RouteFilter::RequestHeaders(raw.read()))
            }
            "ResponseHeaderModifier" => {
                response_header_modifier.map(|raw| RouteFilter::ResponseHeaders(raw.read()))
            }
            "RequestRedirect" => match request_redirect {
                Some(raw) => Some(RouteFilter::Redirect(raw.read(&at, unread)?)),
                None => None,
            },
            "URLRewrite" => url_rewrite.map(|raw| {
                let path = raw.path.and_then(|path| path.read(&at, "urlRewrite", unread));
                RouteFilter::Rewrite(Rewrite { hostname: raw.hostname, path })
            }),
            "RequestMirror" => match request_mirror {
                Some(raw) => Some(RouteFilter::Mirror(raw.read(&at)?)),
                None => None,
            },
            "CORS" => cors.map(|raw| RouteFilter::Cors(raw.read())),
            "ExternalAuth" => match external_auth {
                Some(raw) => raw.read(&at)?.map(RouteFilter::Auth),
                None => None,
            },
            _ => None,
        };
        match read {
            Some(read) => kept.push(read),
            None => unread.say(|| format!("{at}{}", unknown(&kind, present))),
        }
    }
    Ok(kept)
}

impl RawChanges {
    fn read(self) -> HeaderChanges {
        // Of names that are one but for case the first counts, as in matches.
        let first = |raw: Vec<RawNamed>| {
            let mut kept: Vec<HeaderChange> = Vec::with_capacity(raw.len());
            for RawNamed { name, value, .. } in raw {
                if !kept.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
                    kept.push(HeaderChange { name, value });
                }
            }
            kept
        };
        HeaderChanges { set: first(self.set), add: first(self.add), remove: self.remove }
    }
}

impl RawRedirect {
    fn read(self, at: &str, unread: &mut Unsaid) -> Result<Redirect, String> {
        let port = self.port.map(|port| port_number(port, || format!("{at}.requestRedirect.port")));
        Ok(Redirect {
            scheme: self.scheme,
            hostname: self.hostname,
            path: self.path.and_then(|path| path.read(at, "requestRedirect", unread)),
            port: port.transpose()?,
            status: self.status_code,
        })
    }
}

impl RawModifier {
    /// The other path; what cannot be read of it is noted, since it would not be changed.
    fn read(self, at: &str, filter: &str, unread: &mut Unsaid) -> Option<PathModifier> {
        let known = ["ReplaceFullPath", "ReplacePrefixMatch"];
        if let Some(other) = self.r#type.filter(|found| !known.contains(&found.as_str())) {
            let field = || format!("{at}.{filter}.path.type");
            unread.other(field, &other, "ReplaceFullPath or ReplacePrefixMatch");
        }
        let full = self.replace_full_path.map(PathModifier::Full);
        let path = full.or_else(|| self.replace_prefix_match.map(PathModifier::Prefix));
        if path.is_none() {
            let lacks = "has neither replaceFullPath nor replacePrefixMatch: write one";
            unread.say(|| format!("{at}.{filter}.path {lacks}"));
        }
        path
    }
}

impl RawTarget {
    fn read(self, at: &str) -> Result<BackendRef, String> {
        let field = || format!("{at}.backendRef.port");
        let port = self.port.map(|port| port_number(port, field)).transpose()?;
        let object = self.object.read("", "Service");
        Ok(BackendRef { object, port, weight: 1, filters: Vec::new() })
    }
}

impl RawAuth {
    /// None of a protocol that is not known.
    fn read(self, at: &str) -> Result<Option<ExternalAuth>, String> {
        let (is_grpc, asked) = match self.protocol.as_str() {
            "HTTP" => (false, self.http),
            "GRPC" => (true, self.grpc),
            _ => return Ok(None),
        };
        Ok(Some(ExternalAuth {
            backend: self.backend_ref.read(&format!("{at}.externalAuth"))?,
            is_grpc,
            path: asked.path,
            headers: asked.allowed_headers,
            said: asked.allowed_response_headers,
            max_body: u64::from(self.forward_body.max_size),
        }))
    }
}

impl RawMirror {
    fn read(self, at: &str) -> Result<RequestMirror, String> {
        let backend = self.backend_ref.read(&format!("{at}.requestMirror"))?;
        let (numerator, denominator) = match (self.percent, self.fraction) {
            (Some(_), Some(_)) => {
                return Err(format!("{at}.requestMirror: percent and fraction; leave one of them"));
            }
            (Some(percent), None) => (percent, 100),
            (None, Some(fraction)) => (fraction.numerator, fraction.denominator.unwrap_or(100)),
            (None, None) => (1, 1),
        };
        if numerator > denominator || denominator == 0 {
            return Err(format!(
                "{at}.requestMirror: {numerator} of {denominator} requests is no share; write one from 0 to 1"
            ));
        }
        Ok(RequestMirror { backend, numerator, denominator })
    }
}

impl RawCors {
    fn read(self) -> CorsFilter {
        CorsFilter {
            origins: self.allow_origins,
            credentials: self.allow_credentials,
            methods: self.allow_methods,
            headers: self.allow_headers,
            expose: self.expose_headers,
            max_age: self.max_age.unwrap_or(5),
        }
    }
}
