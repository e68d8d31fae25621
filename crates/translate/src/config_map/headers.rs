//! Headers towards the upstream and towards the client.

use super::Area;
use crate::set_headers;
use crate::settings::{Key, Settings, parse};
use crate::snippets;
use model::{Global, SetHeader, Severity};

pub(super) const AREA: Area = Area {
    name: "headers",
    keys: &[
        &UNDERSCORES,
        &IGNORE_INVALID,
        &REQUEST_ID,
        &ORIGINAL_URI,
        &SERVER_TOKENS,
        &UPSTREAM_SERVER,
        &HIDE,
        &DEFAULT_TYPE,
        &HSTS,
        &HSTS_AGE,
        &HSTS_SUBDOMAINS,
        &HSTS_PRELOAD,
        &ADD,
        &SET,
    ],
    apply,
};

static UNDERSCORES: Key<bool> = Key::config_map("enable-underscores-in-headers", parse::boolean)
    .switch(false, "Request headers may have underscores in their names.");
static IGNORE_INVALID: Key<bool> = Key::config_map("ignore-invalid-headers", parse::boolean)
    .switch(true, "Request headers with odd names are dropped rather than passed on.");
static REQUEST_ID: Key<bool> = Key::config_map("generate-request-id", parse::boolean)
    .switch(true, "Requests without X-Request-ID get one.");
static ORIGINAL_URI: Key<bool> = Key::config_map("proxy-add-original-uri-header", parse::boolean)
    .switch(false, "The upstream gets X-Original-URI.");
static SERVER_TOKENS: Key<bool> =
    Key::config_map("server-tokens", parse::boolean).switch(false, "Answers have a Server header.");
static UPSTREAM_SERVER: Key<bool> = Key::config_map("allow-backend-server-header", parse::boolean)
    .switch(false, "The upstream's Server header is passed on.");
static HIDE: Key<Vec<String>> = Key::config_map("hide-headers", parse::headers).says(
    "header names, comma separated",
    "none",
    "Headers of the upstream that clients do not get.",
);
static DEFAULT_TYPE: Key<String> = Key::config_map("default-type", content_type).says(
    "a media type",
    "text/html",
    "Content-Type of texts that snippets answer with (return), where neither the path's extension nor a default_type of theirs says it.",
);
static HSTS: Key<bool> = Key::config_map("hsts", parse::boolean)
    .switch(true, "Answers over TLS have Strict-Transport-Security.");
static HSTS_AGE: Key<String> = Key::config_map("hsts-max-age", parse::text).says(
    "seconds",
    "31536000",
    "max-age of Strict-Transport-Security; whatever is written is sent, as ingress-nginx does.",
);
static HSTS_SUBDOMAINS: Key<bool> = Key::config_map("hsts-include-subdomains", parse::boolean)
    .switch(true, "Strict-Transport-Security counts for sub-domains, too.");
static HSTS_PRELOAD: Key<bool> = Key::config_map("hsts-preload", parse::boolean)
    .switch(false, "Strict-Transport-Security asks for the lists of browsers.");

static ADD: Key<String> = Key::config_map("add-headers", parse::text).says(
    "namespace/name of a ConfigMap",
    "none",
    "Every entry of the ConfigMap is a header of every answer, in place of the upstream's; values may hold variables.",
);
static SET: Key<String> = Key::config_map("proxy-set-headers", parse::text).says(
    "namespace/name of a ConfigMap",
    "none",
    "Every entry of the ConfigMap is a header towards every upstream, in place of what Fairway or the client sends under \
     that name; values may hold variables, an empty one removes the header.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    global.underscores_in_headers = settings.get_or(&UNDERSCORES, global.underscores_in_headers);
    global.ignore_invalid_headers = settings.get_or(&IGNORE_INVALID, global.ignore_invalid_headers);
    global.generate_request_id = settings.get_or(&REQUEST_ID, global.generate_request_id);
    global.original_uri_header = settings.get_or(&ORIGINAL_URI, global.original_uri_header);
    global.server_tokens = settings.get_or(&SERVER_TOKENS, global.server_tokens);
    global.upstream_server_header =
        settings.get_or(&UPSTREAM_SERVER, global.upstream_server_header);
    global.hide_headers = settings.get(&HIDE).into_iter().flatten().collect();
    global.default_type = settings.get(&DEFAULT_TYPE);
    global.hsts = hsts(settings);
    global.add_headers = set_headers(settings, &ADD);
    if !global.server_tokens {
        without_server(settings, &mut global.add_headers);
    }
    global.proxy_set_headers = set_headers(settings, &SET);
}

fn content_type(text: &str) -> Result<String, String> {
    let token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte))
    };
    match text.split_once('/') {
        Some((kind, name)) if token(kind) && token(name) => Ok(text.to_owned()),
        _ => Err("is no content type: write one such as text/plain".to_owned()),
    }
}

/// The headers of the ConfigMap that a key names. Those that cannot be set are left out, one by one.
fn set_headers(settings: &mut Settings<'_>, key: &Key<String>) -> Vec<SetHeader> {
    let Some(reference) = settings.get(key) else { return Vec::new() };
    let (headers, wrong) = match settings.config_map(&reference) {
        Ok(map) => set_headers::templates(map, |text| snippets::field(settings, text)),
        Err(wrong) => (Vec::new(), vec![format!("{wrong}; until then no header is set")]),
    };
    for wrong in wrong {
        settings.note(key.about.name, Severity::Error, wrong);
    }
    for SetHeader { name, value } in &headers {
        for variable in snippets::empty_in(settings, value) {
            let message = format!(
                "header {name:?} has ${variable}, which has no value here: take it out, or run with --engine=nginx, which has it"
            );
            settings.note(key.about.name, Severity::Warning, message);
        }
    }
    headers
}

/// Without server-tokens no answer has a Server header that `add-headers` names: it is taken away behind that
/// (nginx.tmpl: `more_clear_headers Server`). One of `custom-headers` stays.
fn without_server(settings: &mut Settings<'_>, headers: &mut Vec<SetHeader>) {
    let count = headers.len();
    headers.retain(|header| !header.name.eq_ignore_ascii_case("server"));
    if headers.len() < count {
        let message = "names Server, which no answer has while server-tokens is off: write server-tokens: \"true\", or remove it";
        settings.note(ADD.about.name, Severity::Warning, message.to_owned());
    }
}

fn hsts(settings: &mut Settings<'_>) -> Option<String> {
    let enabled = settings.get_or(&HSTS, true);
    let age = settings.get(&HSTS_AGE).unwrap_or_else(|| "31536000".to_owned());
    let mut value = format!("max-age={age}");
    if settings.get_or(&HSTS_SUBDOMAINS, true) {
        value.push_str("; includeSubDomains");
    }
    if settings.get_or(&HSTS_PRELOAD, false) {
        value.push_str("; preload");
    }
    enabled.then_some(value)
}
