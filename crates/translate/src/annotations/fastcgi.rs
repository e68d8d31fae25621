//! `fastcgi-index` and `fastcgi-params-configmap`: what a FastCGI responder is told.

use super::Family;
use crate::settings::{ENTRIES, Key, Lines, OnBad, Risk, Settings, fields};
use crate::tenancy::Item;
use model::policy::{FastCgi, Policy};
use model::snippet::OtherRow;
use model::{Secret, Severity, Template};
use std::collections::BTreeMap;

pub(super) const FAMILY: Family = Family { name: "fastcgi", keys: &[&INDEX, &PARAMS], apply };

static INDEX: Key<String> = Key::annotation("fastcgi-index", index)
    .says(
        "file name",
        "none",
        "With backend-protocol FCGI: the script that a path ending in / means.",
    )
    .risk(Risk::Medium)
    .on_bad(OnBad::Reject);

static PARAMS: Key<String> = Key::annotation("fastcgi-params-configmap", reference)
    .says(
        "name or namespace/name",
        "none",
        "With backend-protocol FCGI: a ConfigMap whose entries are passed as parameters; values may hold variables.",
    )
    .risk(Risk::Medium)
    .on_bad(OnBad::Reject);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    policy.fastcgi.index = settings.get(&INDEX);
    let Some(reference) = settings.get(&PARAMS) else { return };
    let own = settings.namespace().clone();
    let is_foreign = reference.split_once('/').is_some_and(|(namespace, _)| *namespace != *own);
    let data = match settings.config_map(&reference) {
        Ok(config_map) => &config_map.data,
        // ingress-nginx passes over a ConfigMap that may not be read, and denies where there is none.
        Err(reason) if is_foreign && !settings.scope().cross_namespace.allows(Item::Resources) => {
            let message = format!("{reason}; it is ignored");
            return settings.note(PARAMS.about.name, Severity::Warning, reason.within(message));
        }
        Err(reason) => return settings.deny(PARAMS.about.name, reason),
    };
    if data.len() > ENTRIES {
        let wrong =
            format!("ConfigMap {reference} has {} entries, more than {ENTRIES}", data.len());
        return settings.deny(PARAMS.about.name, &wrong);
    }
    if let Some(wrong) = odd(data) {
        return settings.reject(PARAMS.about.name, &format!("ConfigMap {reference} {wrong}"));
    }
    match params(data) {
        Ok(params) => policy.fastcgi.params = params.into(),
        Err(wrong) => settings.deny(PARAMS.about.name, format!("ConfigMap {reference} {wrong}")),
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(fastcgi: &FastCgi, lines: &mut Lines) {
    let FastCgi { index, params } = fastcgi;
    lines.add("fastcgi.index", index).by(&[&INDEX]);
    let params = fields(params.iter().map(|(name, value)| (name.as_str(), value)));
    lines.add("fastcgi.params", params).by(&[&PARAMS]);
}

/// What is wrong with the characters of the entries.
fn odd(data: &BTreeMap<String, String>) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let value = |c: char| plain(c) || "${}/".contains(c);
    data.iter().find_map(|(name, text)| {
        if name.is_empty() || !name.chars().all(plain) {
            return Some(format!(
                "has the entry {name:?}, which is no parameter's name: rename it"
            ));
        }
        (!text.chars().all(value)).then(|| {
            format!("has in {name} a character other than letters, digits and -_.${{}}/: remove it")
        })
    })
}

/// The entries in the order of their names.
fn params(data: &BTreeMap<String, String>) -> Result<Vec<(String, Secret<Template>)>, String> {
    let param = |(name, text): (&String, &String)| {
        let template = OtherRow::template(text)
            .map_err(|unknown| format!("has in {name} the {unknown}: remove it"))?;
        Ok((name.clone(), template.into()))
    };
    data.iter().map(param).collect()
}

fn index(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let name: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if !name.is_empty() && name.chars().all(valid) {
        return Ok(name);
    }
    Err("is not the name of a file: write one such as index.php".to_owned())
}

fn reference(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "/-._~:".contains(c);
    let name: String = text.chars().filter(|c| *c != ' ').collect();
    if name.chars().all(valid) {
        return Ok(name);
    }
    Err("is not the name of a ConfigMap: write one such as demo/fastcgi-params".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{index, odd, params};
    use std::collections::BTreeMap;

    fn entry(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn parameters_may_hold_variables_that_exist() {
        let data = entry("SCRIPT_FILENAME", "/www$fastcgi_script_name");
        assert_eq!(odd(&data), None);
        let script = params(&data).expect("a known variable");
        assert_eq!(script[0].1.to_string(), "/www${fastcgi_script_name}");
        assert_eq!(odd(&entry("EMPTY", "")), None);
        for unknown in ["$nothing", "$"] {
            assert!(params(&entry("A", unknown)).is_err(), "{unknown}");
        }
        for (name, value) in [("A B", "x"), ("", "x"), ("A", "a b"), ("A", "a;b")] {
            assert!(odd(&entry(name, value)).is_some(), "{name} {value}");
        }
    }

    #[test]
    fn an_index_is_a_plain_file_name() {
        assert_eq!(index("index .php").as_deref(), Ok("index.php"));
        assert!(index("a/b").is_err() && index("").is_err() && index("a;b").is_err());
    }
}
