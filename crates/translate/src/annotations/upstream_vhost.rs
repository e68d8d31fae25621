//! `upstream-vhost`: the host that the upstream is told.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Settings, parse};
use crate::snippets;
use model::Template;
use model::policy::Policy;

pub(super) const FAMILY: Family = Family { name: "upstream_vhost", keys: &[&VHOST], apply };

static VHOST: Key<String> = Key::annotation("upstream-vhost", host)
    .says(
        "host, with variables",
        "the client's",
        "Host towards the upstream; X-Forwarded-Host stays the client's.",
    )
    .free(parse::line)
    .on_bad(OnBad::Reject);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let name = VHOST.about.name;
    let Some(text) = settings.get(&VHOST) else { return };
    match snippets::template(settings, &text) {
        Ok(host) => policy.upstream_host = Some(host),
        Err(unknown) => settings.deny(name, format!("{unknown}: use a variable that nginx has")),
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(host: Option<&Template>, lines: &mut Lines) {
    lines.add("upstream_host", host).by(&[&VHOST]).of_route("filters: URLRewrite");
}

/// What ingress-nginx takes for the name of a server.
pub(super) fn is_server_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "/-._~:^$[](){}*+?|&=\\".contains(c))
}

fn host(text: &str) -> Result<String, String> {
    if is_server_name(text) {
        Ok(text.to_owned())
    } else {
        Err("is no host: write one such as shop.example, or $host".to_owned())
    }
}
