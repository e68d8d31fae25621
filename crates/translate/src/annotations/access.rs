//! `allowlist-source-range`, `denylist-source-range` and `satisfy`.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Risk, Settings, normalise, parse};
use model::Networks;
use model::policy::{Access, Policy, Satisfy};

pub(super) const FAMILY: Family =
    Family { name: "access", keys: &[&ALLOW, &DENY, &SATISFY], apply };

static ALLOW: Key<Networks> =
    Key::both_as("allowlist-source-range", "whitelist-source-range", parse::addresses_without_gaps)
        .aliases(&["whitelist-source-range"])
        .says(
            "networks, comma separated",
            "none",
            "The only client addresses that are let in; others get 403.",
        )
        .of_all(parse::addresses_of_all)
        .risk(Risk::Medium)
        .on_bad(OnBad::Deny);

static DENY: Key<Networks> = Key::both("denylist-source-range", parse::addresses_without_gaps)
    .of_all(parse::addresses_of_all)
    .says(
        "networks, comma separated",
        "none",
        "Client addresses that get 403, even if they are allowed, too.",
    )
    .risk(Risk::Medium)
    .on_bad(OnBad::Deny);

static SATISFY: Key<Satisfy> = Key::annotation("satisfy", satisfy).says(
    "any or all",
    "all",
    "Whether one of address lists, password and external authenticator suffices, or all of them have to agree.",
);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let access = &mut policy.access;
    access.allow = settings.get(&ALLOW);
    access.deny = settings.get(&DENY).unwrap_or_default();
    access.satisfy = settings.get(&SATISFY);
    refuse_blank(settings, &ALLOW);
    refuse_blank(settings, &DENY);
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(access: &Access, lines: &mut Lines) {
    let Access { deny, allow, satisfy } = access;
    lines.add("access.allow", allow).by(&[&ALLOW]);
    lines.add("access.deny", deny).by(&[&DENY]);
    let satisfy = match satisfy.unwrap_or_default() {
        Satisfy::All => "all",
        Satisfy::Any => "any",
    };
    lines.add("access.satisfy", satisfy).by(&[&SATISFY]);
}

/// An annotation that is empty or blank: what it was meant to say is unknown, so nobody gets in (compat/behaviour.md
/// section 1). Its other name counts beside one that is empty only.
fn refuse_blank(settings: &mut Settings<'_>, key: &Key<Networks>) {
    let mut names = std::iter::once(&key.about.name).chain(key.about.aliases);
    let counts = settings.written_as(&key.about);
    let counts = counts.or_else(|| names.find_map(|name| Some((*name, settings.written(name)?))));
    if let Some((name, _)) = counts.filter(|(_, written)| normalise(written).is_empty()) {
        settings.deny(name, parse::EMPTY_ITEM);
    }
}

fn satisfy(text: &str) -> Result<Satisfy, String> {
    match text {
        "any" => Ok(Satisfy::Any),
        "all" => Ok(Satisfy::All),
        _ => Err("is neither any nor all".to_owned()),
    }
}
