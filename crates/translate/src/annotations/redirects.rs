//! `ssl-redirect`, `force-ssl-redirect`, `preserve-trailing-slash`, `use-port-in-redirects`.

use super::Family;
use crate::settings::{Key, Risk, Settings, parse};
use model::policy::Policy;

pub(super) const FAMILY: Family = Family {
    name: "redirects",
    keys: &[&WITH_CERTIFICATE, &ALWAYS, &TRAILING_SLASH, &WITH_PORT],
    apply,
};

static WITH_CERTIFICATE: Key<bool> = Key::both("ssl-redirect", parse::boolean).says(
    "true or false",
    "true",
    "Plain HTTP is redirected to HTTPS if the host has a certificate.",
);

static ALWAYS: Key<bool> = Key::both("force-ssl-redirect", parse::boolean)
    .says(
        "true or false",
        "false",
        "Plain HTTP is redirected to HTTPS whether the host has a certificate or not.",
    )
    .risk(Risk::Medium);

static TRAILING_SLASH: Key<bool> = Key::both("preserve-trailing-slash", parse::boolean)
    .says("true or false", "false", "Redirects to HTTPS keep a slash at the end of the address.")
    .risk(Risk::Medium);

static WITH_PORT: Key<bool> = Key::both("use-port-in-redirects", parse::boolean).says(
    "true or false",
    "false",
    "Redirects name the port.",
);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let redirect = &mut policy.tls_redirect;
    redirect.with_certificate = settings.get_or(&WITH_CERTIFICATE, redirect.with_certificate);
    redirect.always = settings.get_or(&ALWAYS, redirect.always);
    redirect.preserve_trailing_slash =
        settings.get_or(&TRAILING_SLASH, redirect.preserve_trailing_slash);
    redirect.with_port = settings.get_or(&WITH_PORT, redirect.with_port);
}
