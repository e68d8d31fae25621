//! `auth-type`, `auth-secret`, `auth-secret-type`, `auth-realm`: a name and a password are asked for.

use super::Family;
use crate::secret_files::Form;
use crate::settings::{AnyKey, Key, Lines, OnBad, Risk, Settings};
use model::policy::{AuthBasic, AuthScheme, Policy};
use model::{Message, Severity};
use std::sync::Arc;

pub(super) const FAMILY: Family =
    Family { name: "auth_basic", keys: &[&TYPE, &SECRET, &SECRET_TYPE, &REALM], apply };

static TYPE: Key<AuthScheme> = Key::annotation("auth-type", scheme)
    .says(
        "basic or digest",
        "none",
        "A name and a password are asked for; 401 without. Authorization is not passed on to the application.",
    )
    .on_bad(OnBad::Reject);

static SECRET: Key<String> = Key::annotation("auth-secret", reference)
    .says(
        "name or namespace/name",
        "none",
        "Secret with the passwords. Without it, or if it cannot be used, the paths answer 503.",
    )
    .risk(Risk::Medium)
    .on_bad(OnBad::Deny);

static SECRET_TYPE: Key<Kind> = Key::annotation("auth-secret-type", kind)
    .says(
        "auth-file or auth-map",
        "auth-file",
        "auth-file: the Secret's key auth holds a password file (htpasswd, or htdigest for auth-type digest). auth-map: \
         each key is a user, its value the hash. Hashes: bcrypt up to cost 14, $apr1$, $1$, $5$ and $6$ up to 1000000 \
         rounds, DES, {SHA}, {SSHA}, {PLAIN}.",
    )
    .on_bad(OnBad::Reject);

static REALM: Key<String> = Key::annotation("auth-realm", realm)
    .says(
        "letters, digits, spaces and /-._~:",
        "empty",
        "What the client is told the password is for.",
    )
    .risk(Risk::Medium)
    .on_bad(OnBad::Reject);

/// What a Secret is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Map,
}

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    if settings.raw(TYPE.about.name).is_none_or(|text| text.is_empty()) {
        // Whoever wrote blanks meant something: that is told, or takes the Ingress out.
        settings.get(&TYPE);
        if settings.raw(SECRET.about.name).is_some_and(|text| !text.is_empty()) {
            let message = "has no effect without auth-type, nobody is asked for a password: write basic or digest";
            settings.note(SECRET.about.name, Severity::Warning, message.to_owned());
        }
        return;
    }
    let (scheme, kind) = (settings.get(&TYPE), settings.get(&SECRET_TYPE));
    for (name, is_read) in [("auth-type", scheme.is_some()), ("auth-secret-type", kind.is_some())] {
        let is_asked = settings.raw(name).is_some_and(|text| !text.is_empty());
        if is_asked && !is_read && settings.verdict.rejected().is_none() {
            // Without validation an Ingress is taken in spite of such a value; its paths must not be open.
            settings.deny(name, "the value cannot be read");
        }
    }
    let Some(scheme) = scheme else { return };
    let kind = kind.unwrap_or(Kind::File);
    let realm = settings.get_or(&REALM, String::new());
    let Some(reference) = settings.get(&SECRET) else {
        // A name that cannot be read has denied already.
        if settings.verdict.denied.is_none() {
            let reason = "auth-type needs the Secret with the passwords: name it here";
            settings.deny(SECRET.about.name, reason);
        }
        return;
    };
    let form = match (scheme, kind) {
        (AuthScheme::Basic, Kind::File) => Form::Htpasswd,
        (AuthScheme::Basic, Kind::Map) => Form::Map,
        (AuthScheme::Digest, Kind::File) => Form::Htdigest(realm.clone()),
        (AuthScheme::Digest, Kind::Map) => Form::DigestMap(realm.clone()),
    };
    let files = settings.scope().files;
    let read = |secret| {
        let read = files.users(secret, form);
        read.map_err(|wrong| Message::from(format!("Secret {reference} {wrong}")))
    };
    let file = match settings.secret(&reference).and_then(read) {
        Ok(file) => file,
        Err(reason) => return settings.deny(SECRET.about.name, reason),
    };
    let wrong = file.wrong.iter().map(|wrong| wrong.within(format!("{wrong}; it lets nobody in")));
    let untold = (file.untold > 0).then(|| format!("{} further lines let nobody in", file.untold));
    let is_empty = file.users.0.is_empty() && file.wrong.is_empty();
    let nobody = is_empty.then(|| without_users(kind).to_owned());
    let others = untold.into_iter().chain(nobody).chain(file.odd.iter().cloned());
    for said in wrong.chain(others.map(Message::from)) {
        let message = said.within(format!("Secret {reference}: {said}"));
        settings.note(SECRET.about.name, Severity::Warning, message);
    }
    policy.auth_basic = Some(Arc::new(AuthBasic { scheme, realm, users: file.users }));
}

/// What is said of a Secret that nobody is written in.
fn without_users(kind: Kind) -> &'static str {
    match kind {
        Kind::File => {
            "its key auth has no user, so that everybody gets 401: put there what htpasswd writes, or htdigest for digest"
        }
        Kind::Map => {
            "it has no key, so that everybody gets 401: each key is a user, its value the hash"
        }
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(auth: Option<&AuthBasic>, lines: &mut Lines) {
    let Some(AuthBasic { scheme, realm, users }) = auth else { return };
    // The realm is a part of what a digest is made of.
    let (scheme, keys): (_, &[&'static dyn AnyKey]) = match scheme {
        AuthScheme::Basic => ("basic", &[&SECRET, &SECRET_TYPE]),
        AuthScheme::Digest => ("digest", &[&SECRET, &SECRET_TYPE, &REALM]),
    };
    lines.add("auth_basic.scheme", scheme).by(&[&TYPE]);
    lines.add("auth_basic.realm", realm).by(&[&REALM]);
    let users = match users.0.len() {
        1 => "1 user".to_owned(),
        number => format!("{number} users"),
    };
    lines.add("auth_basic.users", users).by(keys);
}

fn scheme(text: &str) -> Result<AuthScheme, String> {
    match text {
        "basic" => Ok(AuthScheme::Basic),
        "digest" => Ok(AuthScheme::Digest),
        _ => Err("is neither basic nor digest".to_owned()),
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "auth-file" => Ok(Kind::File),
        "auth-map" => Ok(Kind::Map),
        _ => Err("is neither auth-file nor auth-map".to_owned()),
    }
}

fn reference(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._~/:".contains(c);
    if text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("is not the name of a Secret: write its name, or namespace/name".to_owned())
}

fn realm(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "/-._~: ".contains(c);
    if text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("is not a realm: write letters, digits, spaces and /-._~: only".to_owned())
}
