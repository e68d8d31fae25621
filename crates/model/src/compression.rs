//! Compression of answers, as ngx_http_gzip_module and ngx_brotli are set up by the controller's ConfigMap.

use crate::{Pattern, Steps};
use serde::Serialize;
use std::collections::BTreeSet;

/// How answers are compressed; nothing is by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compression {
    /// `use-gzip` with `gzip-*`.
    pub gzip: Option<Gzip>,
    /// `enable-brotli` with `brotli-*`.
    pub brotli: Option<Brotli>,
}

/// gzip (ngx_http_gzip_module): from HTTP/1.1 on, through proxies too, with `Vary`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gzip {
    /// `gzip-level`, 1 to 9.
    pub level: u8,
    /// Which answers.
    pub eligible: Eligible,
    /// `gzip-disable`: user agents that get nothing compressed.
    pub not_for: Option<Unwanted>,
}

/// brotli (ngx_brotli).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Brotli {
    /// `brotli-level`, 0 to 11.
    pub level: u8,
    /// Which answers.
    pub eligible: Eligible,
}

/// Which answers are worth it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Eligible {
    /// Bytes that an answer has at least; those of unknown length count as long.
    pub min_length: u64,
    /// Content types in lower case, `text/html` always among them; none stands for all (`*`).
    pub types: Option<BTreeSet<String>>,
}

/// User agents that get nothing compressed with gzip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Unwanted {
    /// `msie6`: Internet Explorer 4 to 6, but for the one with Service Pack 2.
    OldExplorer,
    /// Those that match.
    Matching(Pattern),
}

/// `gzip-types` and `brotli-types` of ingress-nginx; `brotli-types` has `application/xml+rss` besides.
const TYPES: [&str; 18] = [
    "application/atom+xml",
    "application/javascript",
    "application/json",
    "application/rss+xml",
    "application/vnd.ms-fontobject",
    "application/x-font-ttf",
    "application/x-javascript",
    "application/x-web-app-manifest+json",
    "application/xhtml+xml",
    "application/xml",
    "font/opentype",
    "image/svg+xml",
    "image/x-icon",
    "text/css",
    "text/html",
    "text/javascript",
    "text/plain",
    "text/x-component",
];

impl Default for Gzip {
    fn default() -> Self {
        let types = TYPES.iter().map(|&name| name.to_owned()).collect();
        let eligible = Eligible { min_length: 256, types: Some(types) };
        Self { level: 1, eligible, not_for: None }
    }
}

impl Default for Brotli {
    fn default() -> Self {
        let all = TYPES.iter().chain(&["application/xml+rss"]);
        let types = all.map(|&name| name.to_owned()).collect();
        Self { level: 4, eligible: Eligible { min_length: 20, types: Some(types) } }
    }
}

impl Eligible {
    /// Whether answers of this type are meant; `content_type` as the header has it.
    ///
    /// nginx looks up what stands before `; charset=` (ngx_http_upstream_copy_content_type): with any other
    /// parameter a type is another one.
    pub fn has_type(&self, content_type: &str) -> bool {
        let Some(types) = &self.types else { return true };
        let name = without_charset(content_type);
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            types.contains(&name.to_ascii_lowercase())
        } else {
            types.contains(name)
        }
    }
}

fn without_charset(content_type: &str) -> &str {
    let mut from = 0;
    while let Some(at) = content_type[from..].find(';').map(|at| from + at) {
        let parameter = content_type[at + 1..].trim_start_matches(' ').as_bytes();
        if parameter.get(..8).is_some_and(|name| name.eq_ignore_ascii_case(b"charset=")) {
            return &content_type[..at];
        }
        from = at + 1;
    }
    content_type
}

impl Unwanted {
    /// Whether a user agent is one of them. One that is too hard for a pattern to tell counts as one.
    pub fn has(&self, user_agent: &str, steps: &Steps) -> bool {
        match self {
            Self::OldExplorer => is_old_explorer(user_agent),
            Self::Matching(pattern) => {
                pattern.try_match(user_agent.as_bytes(), steps).unwrap_or(true)
            }
        }
    }
}

/// ngx_http_process_user_agent: the version after `MSIE `.
fn is_old_explorer(user_agent: &str) -> bool {
    let Some((_, version)) = user_agent.split_once("MSIE ") else { return false };
    match version.as_bytes() {
        [b'4' | b'5', b'.', ..] => true,
        [b'6', b'.', ..] => !version.contains("SV1"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Gzip, Steps, Unwanted};

    #[test]
    fn a_type_counts_without_its_charset_and_with_every_other_parameter() {
        let eligible = Gzip::default().eligible;
        for yes in ["text/plain", "Text/HTML; Charset=UTF-8", "text/css;charset=\"x\""] {
            assert!(eligible.has_type(yes), "{yes}");
        }
        for no in ["", "image/png", "text/plain; boundary=x", "text/plain ; charset=x", "text/é"] {
            assert!(!eligible.has_type(no), "{no}");
        }
    }

    #[test]
    fn old_explorers_are_told_apart() {
        let old = |agent| Unwanted::OldExplorer.has(agent, &Steps::default());
        assert!(old("Mozilla/4.0 (compatible; MSIE 6.0; Windows 98)"));
        assert!(old("Mozilla/4.0 (compatible; MSIE 5.5; Windows NT)"));
        assert!(!old("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)"));
        assert!(!old("Mozilla/4.0 (compatible; MSIE 7.0)") && !old("MSIE ") && !old("curl/8"));
    }
}
