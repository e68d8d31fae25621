//! `custom-headers`: header fields for all answers of a location, from a ConfigMap.

use super::Family;
use crate::set_headers;
use crate::settings::{Items, Key, Lines, Risk, Settings, fields, parse};
use crate::tenancy::Item;
use model::policy::{CustomHeaders, Policy};
use model::{Message, SetHeader, Why};
use objects::ConfigMap;

pub(super) const FAMILY: Family =
    Family { name: "custom_headers", keys: &[&HEADERS, &ALLOWED], apply };

static HEADERS: Key<String> = Key::annotation("custom-headers", reference)
    .says(
        "namespace/name of a ConfigMap",
        "none",
        "Every entry of the ConfigMap is a header of every answer, in place of the upstream's. The names must be listed in \
         global-allowed-response-headers of the ConfigMap.",
    )
    .risk(Risk::Medium);
static ALLOWED: Key<Vec<String>> =
    Key::config_map("global-allowed-response-headers", allowed).items(Items::Names).says(
        "header names, comma separated",
        "none",
        "The headers that custom-headers may set, in this very spelling.",
    );

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let allowed = settings.get_or(&ALLOWED, Vec::new());
    let Some(reference) = settings.get(&HEADERS) else { return };
    let found = if reference.contains('/') {
        settings.config_map_allowed_by(Item::CustomHeaders, &reference)
    } else {
        Err(format!("{reference:?} does not name a ConfigMap: write namespace/name").into())
    };
    // Where no name is listed ingress-nginx denied it, too, whosever the ConfigMap is.
    let found = found.map_err(|wrong| match wrong.why() {
        Some(Why::OtherNamespace) if allowed.is_empty() => wrong.because(Why::NotAllowed),
        _ => wrong,
    });
    match found.and_then(|map| headers(map, &allowed)) {
        Ok(headers) => policy.custom_headers = CustomHeaders(headers.into()),
        Err(wrong) => settings.deny(HEADERS.about.name, wrong),
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(headers: &CustomHeaders, lines: &mut Lines) {
    let headers = fields(headers.0.iter().map(|header| (header.name.as_str(), &header.value)));
    lines.add("custom_headers", headers).by(&[&HEADERS]);
}

/// All headers of the ConfigMap; one that cannot be set spoils them all.
fn headers(map: &ConfigMap, allowed: &[String]) -> Result<Vec<SetHeader>, Message> {
    const UNLISTED: &str =
        "is not allowed: list it in global-allowed-response-headers of the ConfigMap";
    let header = |(name, value): (&String, &String)| {
        if !allowed.contains(name) {
            return Err(Why::NotAllowed.says(UNLISTED));
        }
        match value.chars().find(|c| !is_allowed(*c)) {
            // ingress-nginx: `valueRegexp` asks for one character at least.
            None if value.is_empty() => Err("has no value: write one, or remove it".into()),
            Some(odd) => Err(format!("has {odd:?} in its value, which is not allowed").into()),
            None => Ok(set_headers::literal(name, value)?),
        }
    };
    let of_map = |name: &str, why: Message| why.within(set_headers::of_map(map, name, &why));
    map.data.iter().map(|entry| header(entry).map_err(|why| of_map(entry.0, why))).collect()
}

/// The characters that ingress-nginx takes in a value (compat/annotations.csv).
fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_ :;.,\\/\"'?!(){}[]@<>=-+*#$&`|~^%".contains(c)
}

fn reference(text: &str) -> Result<String, String> {
    match text.chars().find(|c| !c.is_ascii_alphanumeric() && !"/-._~: ".contains(*c)) {
        None => Ok(text.to_owned()),
        Some(wrong) => Err(format!("has {wrong:?} in it: write namespace/name")),
    }
}

/// Names that are none are passed over.
fn allowed(text: &str) -> Result<Vec<String>, String> {
    let is_name = |name: &String| parse::header_name(name).is_ok();
    Ok(parse::list(text)?.into_iter().filter(is_name).collect())
}
