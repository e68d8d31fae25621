//! `permanent-redirect`, `temporal-redirect`, `ssl-redirect`, `force-ssl-redirect`, `preserve-trailing-slash`,
//! `use-port-in-redirects`, `relative-redirects`.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Risk, Settings, parse, words};
use model::policy::{Policy, Redirect, TlsRedirect};
use model::{Severity, Template};

pub(super) const FAMILY: Family = Family {
    name: "redirects",
    keys: &[
        &WITH_CERTIFICATE,
        &ALWAYS,
        &TRAILING_SLASH,
        &WITH_PORT,
        &RELATIVE,
        &TEMPORAL,
        &TEMPORAL_CODE,
        &PERMANENT,
        &PERMANENT_CODE,
    ],
    apply,
};

static WITH_CERTIFICATE: Key<bool> = Key::both("ssl-redirect", parse::boolean)
    .exact()
    .switch(true, "Plain HTTP is redirected to HTTPS if the host has a certificate.");

static ALWAYS: Key<bool> = Key::both("force-ssl-redirect", parse::boolean)
    .exact()
    .switch(false, "Plain HTTP is redirected to HTTPS whether the host has a certificate or not.")
    .risk(Risk::Medium);

static TRAILING_SLASH: Key<bool> = Key::both("preserve-trailing-slash", parse::boolean)
    .exact()
    .switch(false, "Redirects to HTTPS keep a slash at the end of the address.")
    .risk(Risk::Medium);

static WITH_PORT: Key<bool> = Key::both("use-port-in-redirects", parse::boolean)
    .exact()
    .switch(false, "Redirects name the port.");

static RELATIVE: Key<bool> = Key::annotation("relative-redirects", parse::boolean)
    .exact()
    .switch(
        false,
        "Redirects of the paths name no host where they stay on it. The ConfigMap's relative-redirects does the same for all; \
         false here does not take that back.",
    )
    .on_bad(OnBad::Reject);

static TEMPORAL: Key<String> = Key::annotation("temporal-redirect", url)
    .exact()
    .free(parse::line)
    .says("URL", "none", "Every request is redirected there. Goes before permanent-redirect.")
    .risk(Risk::Medium)
    .on_bad(OnBad::Reject);

static TEMPORAL_CODE: Key<i64> = Key::annotation("temporal-redirect-code", number)
    .exact()
    .says("301, 302, 303 or 307", "302", "Status of temporal-redirect.")
    .on_bad(OnBad::Reject);

static PERMANENT: Key<String> = Key::annotation("permanent-redirect", url)
    .exact()
    .free(parse::line)
    .says("URL or path", "none", "Every request is redirected there.")
    .risk(Risk::Medium)
    .on_bad(OnBad::Reject);

static PERMANENT_CODE: Key<i64> = Key::annotation("permanent-redirect-code", number)
    .exact()
    .says("301, 302, 303, 307 or 308", "301", "Status of permanent-redirect.")
    .on_bad(OnBad::Reject);

/// One of the two redirects, with the statuses that it may have; the first one is the default.
struct Sort {
    target: &'static Key<String>,
    status: &'static Key<i64>,
    statuses: &'static [u16],
}

const TEMPORALLY: Sort =
    Sort { target: &TEMPORAL, status: &TEMPORAL_CODE, statuses: &[302, 301, 303, 307] };
const PERMANENTLY: Sort =
    Sort { target: &PERMANENT, status: &PERMANENT_CODE, statuses: &[301, 302, 303, 307, 308] };

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let redirect = &mut policy.tls_redirect;
    redirect.with_certificate = settings.get_or(&WITH_CERTIFICATE, redirect.with_certificate);
    redirect.always = settings.get_or(&ALWAYS, redirect.always);
    redirect.preserve_trailing_slash =
        settings.get_or(&TRAILING_SLASH, redirect.preserve_trailing_slash);
    redirect.with_port = settings.get_or(&WITH_PORT, redirect.with_port);
    policy.relative_redirects = settings.get_or(&RELATIVE, false);
    let redirect = read(settings, &TEMPORALLY).or_else(|| read(settings, &PERMANENTLY));
    let is_written = |settings: &Settings<'_>, key: &Key<String>| {
        settings.raw(key.about.name).is_some_and(|text| !text.is_empty())
    };
    if !is_written(settings, &TEMPORAL) && !is_written(settings, &PERMANENT) {
        // A bad one takes the Ingress out with nothing to count for, too (redirect.go reads it before it looks).
        settings.get(&PERMANENT_CODE);
    }
    policy.redirect = redirect;
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(
    tls: &TlsRedirect,
    redirect: Option<&Redirect>,
    relative: bool,
    lines: &mut Lines,
) {
    let TlsRedirect { with_certificate, always, preserve_trailing_slash, with_port } = tls;
    lines.add("tls_redirect.with_certificate", with_certificate).by(&[&WITH_CERTIFICATE]);
    lines.add("tls_redirect.always", always).by(&[&ALWAYS]);
    lines
        .add("tls_redirect.preserve_trailing_slash", preserve_trailing_slash)
        .by(&[&TRAILING_SLASH]);
    lines.add("tls_redirect.with_port", with_port).by(&[&WITH_PORT]);
    lines.add("relative_redirects", relative).by(&[&RELATIVE]);
    if let Some(Redirect { status, target }) = redirect {
        lines
            .add("redirect", format!("{status} to {}", words(target)))
            .by_some(is_http, &[&TEMPORAL, &TEMPORAL_CODE])
            .by(&[&PERMANENT, &PERMANENT_CODE]);
    }
}

fn read(settings: &mut Settings<'_>, sort: &Sort) -> Option<Redirect> {
    let name = sort.target.about.name;
    let text = settings.get(sort.target)?;
    let status = status(settings, sort);
    if name == TEMPORAL.about.name && !is_http(&text) {
        let message = format!(
            "{text:?} is no http or https URL, it is ignored; write one such as https://shop.example/"
        );
        settings.note(name, Severity::Warning, message);
        return None;
    }
    if name == PERMANENT.about.name && !names_its_place(&text) {
        let message = format!(
            "{text:?} has no scheme, so that clients take it for a path beside the one that they asked for; write \
             https://{text}, or a path that begins with a slash"
        );
        settings.note(name, Severity::Warning, message);
    }
    match Template::parse(&text) {
        Ok(target) => Some(Redirect { status: status?, target: target.into() }),
        Err(unknown) => {
            settings.deny(name, format!("{unknown}: use a variable that nginx has"));
            None
        }
    }
}

/// None if there is no telling: then ingress-nginx does not redirect either.
fn status(settings: &mut Settings<'_>, sort: &Sort) -> Option<u16> {
    let default = sort.statuses[0];
    let name = sort.status.about.name;
    let Some(wanted) = settings.get(sort.status) else {
        let is_written = settings.raw(name).is_some_and(|text| !text.is_empty());
        return (!is_written).then_some(default);
    };
    let known = sort.statuses.iter().copied().find(|status| i64::from(*status) == wanted);
    if known.is_none() {
        let message = format!(
            "{wanted} is not a status of this redirect, {default} is used instead; write {}",
            sort.status.about.kind
        );
        settings.note(name, Severity::Warning, message);
    }
    Some(known.unwrap_or(default))
}

/// Whether it is a URL or a path from the root; a variable in front may be either.
fn names_its_place(text: &str) -> bool {
    text.contains("://") || text.starts_with(['/', '$', '?', '#'])
}

/// The annotation that says where requests are redirected to, where both are there: `text` is that of the first one.
pub(crate) fn redirecting(text: Option<&str>) -> &'static str {
    let sort = if text.is_some_and(is_http) { TEMPORALLY } else { PERMANENTLY };
    sort.target.about.name
}

fn is_http(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.to_ascii_lowercase().starts_with("http") && scheme.chars().all(valid)
    })
}

fn url(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._~/:,?&=".contains(c);
    if text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("is no URL: write letters, digits and - . _ ~ / : , ? & = only, without space around it"
        .to_owned())
}

fn number(text: &str) -> Result<i64, String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = text.parse().ok().filter(|_| is_number(digits));
    number
        .ok_or_else(|| "is not a number: write digits only, without space, such as 301".to_owned())
}
