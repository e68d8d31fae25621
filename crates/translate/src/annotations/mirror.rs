//! `mirror-target`, `mirror-host` and `mirror-request-body`: copies of requests.

use super::Family;
use crate::settings::{self, Key, Lines, Risk, Settings, on_off, parse};
use model::policy::{Mirror, Policy};
use model::{Severity, Template, Why};

pub(super) const FAMILY: Family = Family { name: "mirror", keys: &[&TARGET, &HOST, &BODY], apply };

static TARGET: Key<String> = Key::annotation("mirror-target", characters)
    .says(
        "URL, which may hold variables",
        "none",
        "Every request that is let in is copied to this URL; what it answers is dropped. A URL without a path gets the \
         request's own.",
    )
    .risk(Risk::High);

static HOST: Key<String> = Key::annotation("mirror-host", characters)
    .says("host, which may hold variables", "the host of mirror-target", "Host of the copies.")
    .risk(Risk::High);

static BODY: Key<bool> = Key::annotation("mirror-request-body", parse::on_off).says(
    "on or off",
    "on",
    "The body is copied, too; off sends copies without one.",
);

/// A mirror that cannot be used is none (compat/decisions.md line 7).
fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let host = settings.get(&HOST).map(|text| Template::parse(&text).map_err(|e| e.to_string()));
    let body = settings.get_or(&BODY, true);
    let Some(target) = settings.get(&TARGET) else { return };
    let host = match host.transpose() {
        Ok(host) => host,
        Err(wrong) => return unusable(settings, HOST.about.name, &format!("has the {wrong}")),
    };
    match settings.url(&target) {
        Ok(url) => policy.mirror = Some(Mirror { url, host, body }.into()),
        Err(wrong) => unusable(settings, TARGET.about.name, &wrong),
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(mirror: Option<&Mirror>, lines: &mut Lines) {
    let Some(Mirror { url, host, body }) = mirror else { return };
    lines.add("mirror.url", settings::url(url)).by(&[&TARGET]);
    lines.add("mirror.host", host).by(&[&HOST]);
    lines.add("mirror.body", on_off(*body)).by(&[&BODY]);
}

fn unusable(settings: &mut Settings<'_>, name: &str, wrong: &str) {
    let message = format!(
        "{wrong}; nothing is mirrored (ingress-nginx took it, and copies went to the host itself)"
    );
    settings.note(name, Severity::Warning, Why::TookIt.says(message));
}

fn characters(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "/-._~:^$[](){}*+?|&=\\".contains(c);
    if text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("has characters that stand for themselves in no URL: write one such as http://copy.demo.svc$request_uri"
        .to_owned())
}
