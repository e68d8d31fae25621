//! A name and a password (ngx_http_auth_basic_module, and digest authentication as ingress-nginx has it).

use super::access::{self, Verdict};
use super::{Stop, failed};
use crate::credentials::{self, Asker, Busy, Client, Judgement};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::snippet::on_machine;
use bytes::Bytes;
use http::StatusCode;
use model::policy::{AuthBasic, AuthScheme};
use model::snippet::AuthBasic as OfSnippet;
use wire::Response;

/// Whether a password is asked for.
pub(super) fn asks(exchange: &Exchange) -> bool {
    exchange.spot().location.policy.auth_basic.is_some() || access::password(exchange).is_some()
}

/// Asks for the password, where the location does.
pub(super) async fn check(exchange: &mut Exchange) -> Result<Verdict, Stop> {
    let location = exchange.spot().location.clone();
    let (closes, realm) = match access::password(exchange).cloned() {
        Some(OfSnippet::Off) => return Ok(Verdict::Silent),
        Some(OfSnippet::Realm(realm)) => {
            (true, on_machine(exchange, |machine| machine.expand_header(&realm))?)
        }
        None => (false, None),
    };
    // A variable may say so, too.
    if realm.as_deref() == Some("off") {
        return Ok(Verdict::Silent);
    }
    let Some(policy) = &location.policy.auth_basic else {
        // Nobody has a password for what a snippet closes by one.
        return Ok(if closes { Verdict::forbidden() } else { Verdict::Silent });
    };
    // The only one: with two it is no request.
    let value = exchange.request.headers.bytes("authorization");
    // A quote would end the realm.
    let realm = realm.map(|realm| realm.replace(['"', '\\'], "'"));
    match policy.scheme {
        // Boxed, so that requests without passwords do not carry the room for it.
        AuthScheme::Basic => Box::pin(basic(exchange, policy, realm, value)).await,
        AuthScheme::Digest => Ok(digest(exchange, policy, value)),
    }
}

async fn basic(
    exchange: &Exchange,
    policy: &AuthBasic,
    realm: Option<String>,
    value: Option<Bytes>,
) -> Result<Verdict, Stop> {
    let worker = &exchange.worker;
    if let Some(credentials) = value.and_then(|value| credentials::basic(&value)) {
        let (user, password) = (&credentials.user, credentials.password);
        let (remembered, asker) = (&worker.remembered, asker(exchange));
        let known = worker.verifier().knows(&policy.users, user, password, remembered, &asker);
        match known.await {
            Ok(true) => return Ok(Verdict::Pass),
            Ok(false) => tell_wrong(exchange, user),
            Err(Busy) => return Err(Error::PasswordsBusy.into()),
        }
    }
    let realm = realm.as_deref().unwrap_or(&policy.realm);
    Ok(challenge(Some(format!("Basic realm=\"{realm}\""))))
}

/// A line about a wrong password, or a name that nobody has.
fn tell_wrong(exchange: &Exchange, user: &[u8]) {
    let user = String::from_utf8_lossy(user);
    failed::tell_refusal(exchange, "password", &format_args!("user {user:?}: password mismatch"));
}

/// The namespace and the Ingress that ask; a location of a snippet is no Ingress's.
fn asker(exchange: &Exchange) -> Asker {
    let place = exchange.place.as_ref();
    let ingress = place.and_then(|place| place.spot().location.origin.as_deref());
    Asker {
        namespace: place.and_then(Place::owner).cloned().unwrap_or_default(),
        ingress: ingress.map(|ingress| ingress.name.clone()).unwrap_or_default(),
    }
}

fn digest(exchange: &mut Exchange, policy: &AuthBasic, value: Option<Bytes>) -> Verdict {
    let digests = exchange.worker.digests();
    let namespace = asker(exchange).namespace;
    let client = Client { namespace: &namespace, address: exchange.client };
    if digests.is_locked(client) {
        return challenge(None);
    }
    let answer = value.and_then(|value| credentials::digest(&value));
    let answer = answer.filter(|answer| answer.realm == policy.realm.as_bytes());
    let judgement = answer.as_ref().map(|answer| {
        let request = &exchange.request;
        let method = request.method.as_str();
        digests.judge(policy, answer, method, exchange.received(), client)
    });
    let stale = match judgement {
        Some(Judgement::Right(info)) => {
            exchange.visit.authenticated.information = Some(info.into());
            return Verdict::Pass;
        }
        Some(Judgement::Stale) => ", stale=\"true\"",
        Some(Judgement::Wrong) => {
            tell_wrong(exchange, &answer.unwrap_or_default().user);
            ""
        }
        None => "",
    };
    challenge(Some(format!(
        "Digest algorithm=\"MD5\", qop=\"auth\", realm=\"{}\", nonce=\"{}\"{stale}",
        policy.realm,
        digests.number(),
    )))
}

fn challenge(text: Option<String>) -> Verdict {
    let mut response = Response::page(StatusCode::UNAUTHORIZED);
    if let Some(text) = text {
        response.headers.add("WWW-Authenticate", text);
    }
    Verdict::Refuse(Box::new(response))
}
