//! `affinity*` and `session-cookie-*`: clients stay with an endpoint.

use super::Family;
use crate::settings::{Key, Lines, Risk, Settings, parse};
use model::Severity;
use model::policy::{Affinity, AffinityMode, Policy, RuleSession, SameSite};

pub(super) const FAMILY: Family = Family {
    name: "affinity",
    keys: &[
        &AFFINITY,
        &MODE,
        &NAME,
        &SECURE,
        &EXPIRES,
        &MAX_AGE,
        &PATH,
        &DOMAIN,
        &SAME_SITE,
        &CONDITIONAL,
        &CHANGE_ON_FAILURE,
    ],
    apply,
};

/// The name of the cookie where none is written.
const DEFAULT_NAME: &str = "INGRESSCOOKIE";

static AFFINITY: Key<()> = Key::annotation("affinity", cookie).says(
    "cookie",
    "none",
    "Clients stay with an endpoint by a cookie. It counts on the paths of this Ingress, not on others of its Services, nor \
     for spec.defaultBackend.",
);

static MODE: Key<AffinityMode> = Key::annotation("affinity-mode", mode)
    .says(
        "balanced or persistent",
        "balanced",
        "balanced: the cookie is hashed onto the endpoints, some sessions move when their number changes; persistent: it \
         names one until that is gone.",
    )
    .risk(Risk::Medium);

static NAME: Key<String> = Key::annotation("session-cookie-name", parse::plain)
    .says("cookie name", DEFAULT_NAME, "Name of the cookie.")
    .risk(Risk::Medium);

static SECURE: Key<bool> = Key::annotation("session-cookie-secure", parse::boolean).says(
    "true or false",
    "on HTTPS only",
    "true: always Secure. false is the default: Secure on HTTPS connections.",
);

static EXPIRES: Key<i64> = Key::annotation("session-cookie-expires", whole)
    .number("seconds", "none", "Attribute Expires: so many seconds from now.")
    .risk(Risk::Medium);

static MAX_AGE: Key<i64> = Key::annotation("session-cookie-max-age", whole)
    .number("seconds", "none", "Attribute Max-Age.")
    .risk(Risk::Medium);

static PATH: Key<String> = Key::annotation("session-cookie-path", cookie_path)
    .says("path", "the path of the Ingress", "Attribute Path; write it where paths are patterns.")
    .risk(Risk::Medium);

static DOMAIN: Key<String> = Key::annotation("session-cookie-domain", parse::plain)
    .says("domain", "none", "Attribute Domain.")
    .risk(Risk::Medium);

static SAME_SITE: Key<Option<SameSite>> = Key::annotation("session-cookie-samesite", same_site)
    .says(
        "None, Lax or Strict",
        "none",
        "Attribute SameSite; it counts only in exactly this spelling.",
    );

static CONDITIONAL: Key<bool> =
    Key::annotation("session-cookie-conditional-samesite-none", parse::boolean)
        .switch(false, "SameSite=None is left out for browsers that mistake it for Strict.");

static CHANGE_ON_FAILURE: Key<bool> =
    Key::annotation("session-cookie-change-on-failure", parse::boolean).switch(
        false,
        "After a failed try the session moves to another endpoint; false: a request that has a session is tried again \
         at the same one.",
    );

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    if settings.get(&AFFINITY).is_none() {
        return;
    }
    let same_site = settings.get(&SAME_SITE).flatten();
    if same_site.is_none()
        && settings.raw(SAME_SITE.about.name).is_some_and(|text| same_site_word(&text))
    {
        let message = "it is left out: write exactly None, Lax or Strict".to_owned();
        settings.note(SAME_SITE.about.name, Severity::Warning, message);
    }
    let affinity = Affinity {
        mode: settings.get_or(&MODE, AffinityMode::Balanced),
        name: settings.get(&NAME).unwrap_or_else(|| DEFAULT_NAME.to_owned()),
        secure: settings.get_or(&SECURE, false),
        expires: settings.get(&EXPIRES),
        max_age: settings.get(&MAX_AGE),
        path: settings.get(&PATH),
        domain: settings.get(&DOMAIN),
        same_site,
        conditional_same_site_none: settings.get_or(&CONDITIONAL, false),
        change_on_failure: settings.get_or(&CHANGE_ON_FAILURE, false),
        of_rule: None,
    };
    policy.balance.affinity = Some(affinity.into());
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(affinity: Option<&Affinity>, lines: &mut Lines) {
    let Some(affinity) = affinity else { return };
    let Affinity {
        mode,
        name,
        secure,
        expires,
        max_age,
        path,
        domain,
        same_site,
        conditional_same_site_none,
        change_on_failure,
        of_rule,
    } = affinity;
    let mode = match mode {
        AffinityMode::Balanced => "balanced",
        AffinityMode::Persistent => "persistent",
    };
    let same_site = same_site.map(|same_site| match same_site {
        SameSite::None => "None",
        SameSite::Lax => "Lax",
        SameSite::Strict => "Strict",
    });
    let seconds = |time: &Option<i64>| time.map(|seconds| format!("{seconds}s"));
    let session = "sessionPersistence";
    let in_header = of_rule.as_ref().is_some_and(|rule| rule.in_header);
    let how = if in_header { "header" } else { "cookie" };
    lines.add("balance.affinity", how).by(&[&AFFINITY]).of_route(session);
    lines.add("balance.affinity.mode", mode).by(&[&MODE]).of_route(session);
    lines.add("balance.affinity.name", name).by(&[&NAME]).of_route(session);
    lines.add("balance.affinity.secure", secure).by(&[&SECURE]).of_route(session);
    lines.add("balance.affinity.expires", seconds(expires)).by(&[&EXPIRES]);
    lines.add("balance.affinity.max_age", seconds(max_age)).by(&[&MAX_AGE]).of_route(session);
    lines.add("balance.affinity.path", path).by(&[&PATH]).of_route(session);
    lines.add("balance.affinity.domain", domain).by(&[&DOMAIN]);
    lines.add("balance.affinity.same_site", same_site).by(&[&SAME_SITE]).of_route(session);
    lines
        .add("balance.affinity.conditional_same_site_none", conditional_same_site_none)
        .by(&[&CONDITIONAL]);
    lines
        .add("balance.affinity.change_on_failure", change_on_failure)
        .by(&[&CHANGE_ON_FAILURE])
        .of_route(session);
    if let Some(RuleSession { rule: _, in_header: _, lasts, idle }) = of_rule {
        lines.add("balance.affinity.lasts", lasts).of_route("sessionPersistence.absoluteTimeout");
        lines.add("balance.affinity.idle", idle).of_route("sessionPersistence.idleTimeout");
    }
}

fn cookie(text: &str) -> Result<(), String> {
    match text {
        "cookie" => Ok(()),
        _ => Err("is no affinity: write cookie".to_owned()),
    }
}

fn mode(text: &str) -> Result<AffinityMode, String> {
    match text {
        "balanced" => Ok(AffinityMode::Balanced),
        "persistent" => Ok(AffinityMode::Persistent),
        _ => Err("is no mode: write balanced or persistent".to_owned()),
    }
}

/// Whole seconds, also below zero; leading zeros vanish.
fn whole(text: &str) -> Result<i64, String> {
    let number: Result<i64, _> = text.replace(' ', "").parse();
    let fits = |number: &i64| number.unsigned_abs() <= i32::MAX as u64;
    number
        .ok()
        .filter(fits)
        .ok_or_else(|| "is not a number of seconds: write digits only, such as 3600".to_owned())
}

fn cookie_path(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:,?&= ".contains(&byte);
    if text.bytes().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("is no path of a cookie: write one such as /shop".to_owned())
    }
}

/// Any spelling is taken, and only the right one has an effect (ingress-nginx).
fn same_site(text: &str) -> Result<Option<SameSite>, String> {
    match text {
        "None" => Ok(Some(SameSite::None)),
        "Lax" => Ok(Some(SameSite::Lax)),
        "Strict" => Ok(Some(SameSite::Strict)),
        _ if same_site_word(text) => Ok(None),
        _ => Err("is none of None, Lax, Strict".to_owned()),
    }
}

fn same_site_word(text: &str) -> bool {
    ["none", "lax", "strict"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::{cookie_path, whole};

    #[test]
    fn seconds_are_whole_numbers_as_ingress_nginx_reads_them() {
        assert_eq!(
            [whole("007"), whole("-1"), whole("+5"), whole("0")],
            [Ok(7), Ok(-1), Ok(5), Ok(0)]
        );
        for wrong in ["1h", "", "never", "99999999999999999999"] {
            assert!(whole(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_would_end_an_attribute_is_no_path() {
        assert!(cookie_path("/deep").is_ok());
        assert!(cookie_path("/a;b").is_err() && cookie_path("/a\nb").is_err());
    }
}
