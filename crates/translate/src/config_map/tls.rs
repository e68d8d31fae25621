//! TLS towards clients.

use super::Area;
use crate::ciphers;
use crate::settings::{Key, Settings, parse};
use model::{Global, Severity, TlsSettings, TlsVersion};
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) const AREA: Area = Area {
    name: "tls",
    keys: &[&PROTOCOLS, &CIPHERS, &TICKETS, &CACHE, &SESSION_TIMEOUT, &REJECT],
    apply,
};

static PROTOCOLS: Key<Vec<String>> = Key::config_map("ssl-protocols", words).says(
    "words: TLSv1.2, TLSv1.3",
    "TLSv1.2 TLSv1.3",
    "TLS versions.",
);
static CIPHERS: Key<String> = Key::config_map("ssl-ciphers", parse::text).says(
    "OpenSSL names, colon separated",
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
     ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305",
    "Cipher suites of TLS 1.2 in order of preference; there are no others than those of the default.",
);
static TICKETS: Key<bool> = Key::config_map("ssl-session-tickets", parse::boolean).says(
    "true or false",
    "false",
    "Sessions resume by ticket.",
);
static CACHE: Key<bool> = Key::config_map("ssl-session-cache", parse::boolean).says(
    "true or false",
    "true",
    "Sessions resume by a cache of the process.",
);
static SESSION_TIMEOUT: Key<Duration> = Key::config_map("ssl-session-timeout", parse::duration)
    .says("time", "10m", "How long sessions can be resumed.");
static REJECT: Key<bool> = Key::config_map("ssl-reject-handshake", parse::boolean).says(
    "true or false",
    "false",
    "Handshakes for names that no server has are refused.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    let tls = &mut global.tls;
    versions(settings, tls);
    ciphers(settings, tls);
    tls.tickets = settings.get_or(&TICKETS, tls.tickets);
    tls.session_cache = settings.get_or(&CACHE, tls.session_cache);
    tls.session_timeout = settings.get_or(&SESSION_TIMEOUT, tls.session_timeout);
    tls.reject_unknown_names = settings.get_or(&REJECT, tls.reject_unknown_names);
}

fn versions(settings: &mut Settings<'_>, tls: &mut TlsSettings) {
    let Some(words) = settings.get(&PROTOCOLS) else { return };
    let mut versions = BTreeSet::new();
    for word in words {
        match word.as_str() {
            "TLSv1.2" => drop(versions.insert(TlsVersion::Tls12)),
            "TLSv1.3" => drop(versions.insert(TlsVersion::Tls13)),
            _ => left_out(settings, PROTOCOLS.about.name, &word, "write TLSv1.2 and TLSv1.3 only"),
        }
    }
    if versions.is_empty() {
        nothing_left(settings, PROTOCOLS.about.name);
    } else {
        tls.versions = versions;
    }
}

/// Suites are left out one by one: lists made for OpenSSL name many that nobody needs.
fn ciphers(settings: &mut Settings<'_>, tls: &mut TlsSettings) {
    let Some(text) = settings.get(&CIPHERS) else { return };
    let list = ciphers::read(&text);
    for name in list.left_out {
        left_out(settings, CIPHERS.about.name, &name, "docs/configmap.md names those that exist");
    }
    if list.suites.is_empty() {
        nothing_left(settings, CIPHERS.about.name);
    } else {
        tls.ciphers = list.suites;
    }
}

fn left_out(settings: &mut Settings<'_>, key: &str, word: &str, remedy: &str) {
    settings.note(
        key,
        Severity::Notice,
        format!("{word:?} is not supported and left out: {remedy}"),
    );
}

fn nothing_left(settings: &mut Settings<'_>, key: &str) {
    let message = "names nothing that is supported; the default is used instead".to_owned();
    settings.note(key, Severity::Warning, message);
}

fn words(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
}
