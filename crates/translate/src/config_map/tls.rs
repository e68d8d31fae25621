//! TLS towards clients.

use super::Area;
use crate::ciphers;
use crate::settings::{Key, Settings, parse, quote};
use base64::Engine;
use model::{Global, Severity, TicketKey, TlsSettings, TlsVersion};
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) const AREA: Area = Area {
    name: "tls",
    keys: &[
        &PROTOCOLS,
        &CIPHERS,
        &CURVES,
        &TICKETS,
        &TICKET_KEY,
        &CACHE,
        &CACHE_SIZE,
        &SESSION_TIMEOUT,
        &BUFFER,
        &REJECT,
        &OCSP,
    ],
    apply,
};

/// OpenSSL's names of the groups that exist here.
const GROUPS: [&str; 7] =
    ["X25519MLKEM768", "X25519", "prime256v1", "secp256r1", "P-256", "secp384r1", "P-384"];

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
static CURVES: Key<Vec<String>> = Key::config_map("ssl-ecdh-curve", curves).says(
    "auto or names, colon separated",
    "auto",
    "Groups of the key exchange in order of preference: X25519MLKEM768, X25519, prime256v1, secp384r1.",
);
static TICKET_KEY: Key<String> = Key::config_map("ssl-session-ticket-key", parse::text).says(
    "base64 of 48 or 80 bytes",
    "a random key of the process",
    "The key of session tickets; replicas with the same key resume each other's sessions.",
);
static CACHE_SIZE: Key<u64> = Key::config_map("ssl-session-cache-size", parse::size).says(
    "size",
    "10m",
    "Size of the cache of sessions: about 2,000 sessions in each megabyte.",
);
static BUFFER: Key<usize> = Key::config_map("ssl-buffer-size", parse::buffer).says(
    "size",
    "16k",
    "Bytes in one TLS record at most, between 512 and 16k.",
);
static OCSP: Key<bool> = Key::config_map("enable-ocsp", parse::boolean).switch(
    false,
    "What the authority says about a certificate (OCSP) is stapled to handshakes; fetched in the background once a \
     certificate is used, kept until it ends, three days at most.",
);
static TICKETS: Key<bool> = Key::config_map("ssl-session-tickets", parse::boolean)
    .switch(false, "Sessions resume by ticket.");
static CACHE: Key<bool> = Key::config_map("ssl-session-cache", parse::boolean)
    .switch(true, "Sessions resume by a cache of the process.");
static SESSION_TIMEOUT: Key<Duration> = Key::config_map("ssl-session-timeout", parse::duration)
    .says("time", "10m", "How long sessions can be resumed.");
static REJECT: Key<bool> = Key::config_map("ssl-reject-handshake", parse::boolean)
    .switch(false, "Handshakes for names that no server has are refused.");

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    let tls = &mut global.tls;
    versions(settings, tls);
    ciphers(settings, tls);
    tls.tickets = settings.get_or(&TICKETS, tls.tickets);
    tls.session_cache = settings.get_or(&CACHE, tls.session_cache);
    tls.session_timeout = settings.get_or(&SESSION_TIMEOUT, tls.session_timeout);
    tls.ticket_key = ticket_key(settings);
    tls.session_cache_size = settings.get_or(&CACHE_SIZE, tls.session_cache_size);
    tls.record_size = settings.get_or(&BUFFER, tls.record_size).clamp(512, 16 << 10);
    tls.ocsp = settings.get_or(&OCSP, tls.ocsp);
    groups(settings, tls);
    tls.reject_unknown_names = settings.get_or(&REJECT, tls.reject_unknown_names);
}

fn versions(settings: &mut Settings<'_>, tls: &mut TlsSettings) {
    let Some(words) = settings.get(&PROTOCOLS) else { return };
    let mut versions = BTreeSet::new();
    for word in words {
        match word.as_str() {
            "TLSv1.2" => drop(versions.insert(TlsVersion::Tls12)),
            "TLSv1.3" => drop(versions.insert(TlsVersion::Tls13)),
            _ => left_out(
                settings,
                PROTOCOLS.about.name,
                &word,
                "write TLSv1.2 and TLSv1.3 only, separated by a space",
            ),
        }
    }
    if versions.is_empty() {
        nothing_left(settings, PROTOCOLS.about.name);
    } else {
        tls.versions = versions;
    }
}

/// Groups are left out one by one, as suites.
fn groups(settings: &mut Settings<'_>, tls: &mut TlsSettings) {
    let Some(names) = settings.get(&CURVES) else { return };
    for name in names.into_iter().filter(|name| name != "auto") {
        if GROUPS.contains(&name.as_str()) {
            tls.curves.push(name)
        } else {
            let remedy = "docs/configmap.md names those that exist";
            left_out(settings, CURVES.about.name, &name, remedy);
        }
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
    let text = settings.scope().config_map.and_then(|(_, data)| data.get(key));
    let text = quote(text.map_or("", String::as_str));
    let message = format!("{text} names nothing that is supported; the default is used instead");
    settings.note(key, Severity::Warning, message);
}

fn curves(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split(':').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// As nginx's ssl_session_ticket_key: a name and two keys of 16 or 32 bytes. What is wrong with it does not show it.
fn ticket_key(settings: &mut Settings<'_>) -> Option<TicketKey> {
    let text = settings.get(&TICKET_KEY)?;
    match base64::engine::general_purpose::STANDARD.decode(text) {
        Ok(key) if [48, 80].contains(&key.len()) => Some(TicketKey(key)),
        _ => {
            let message = "is not 48 or 80 bytes in base64, a random key is used instead; write in one line what \
                           `openssl rand -base64 80` prints";
            settings.note(TICKET_KEY.about.name, Severity::Warning, message.to_owned());
            None
        }
    }
}

/// Words with spaces between them, or commas: whoever wrote `TLSv1.3,` wants no version besides.
fn words(text: &str) -> Result<Vec<String>, String> {
    let parts = text.split(|letter: char| letter == ',' || letter.is_ascii_whitespace());
    Ok(parts.filter(|word| !word.is_empty()).map(str::to_owned).collect())
}
