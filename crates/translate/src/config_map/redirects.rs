//! Redirects of the whole process.

use super::Area;
use crate::settings::{Items, Key, Settings, parse};
use model::Global;

pub(super) const AREA: Area =
    Area { name: "redirects", keys: &[&STATUS, &NEVER, &RELATIVE], apply };

static STATUS: Key<u16> = Key::config_map("http-redirect-code", status).says(
    "301, 302, 307 or 308",
    "308",
    "Status of redirects to HTTPS.",
);
static NEVER: Key<Vec<String>> = Key::config_map("no-tls-redirect-locations", parse::list).items(Items::Paths).says(
    "path prefixes, comma separated",
    "/.well-known/acme-challenge",
    "Paths of Ingresses that are never redirected to HTTPS; Prefix /p is /p and /p/. An empty value means none. On a host that requires client certificates those of Ingresses \
     without auth-tls-secret stay open on plain HTTP, so that its own certificate can be renewed.",
);
static RELATIVE: Key<bool> = Key::config_map("relative-redirects", parse::boolean)
    .switch(false, "Redirects made by the proxy name no host.");

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    global.redirect_status = settings.get_or(&STATUS, global.redirect_status);
    if let Some(prefixes) = settings.list(&NEVER) {
        global.no_tls_redirect = prefixes;
    }
    global.relative_redirects = settings.get_or(&RELATIVE, global.relative_redirects);
}

fn status(text: &str) -> Result<u16, String> {
    match text {
        "301" => Ok(301),
        "302" => Ok(302),
        "307" => Ok(307),
        "308" => Ok(308),
        _ => Err("is not the status of a redirect: write 301, 302, 307 or 308".to_owned()),
    }
}
