//! Names of objects and namespaces that no API server takes: as templates have them before they are rendered.

use crate::Kind;
use serde_json::Value;
use std::net::Ipv4Addr;

/// The longest label of a DNS name, and the longest name.
const LABEL: usize = 63;
const NAME: usize = 253;

/// What to say of the name and the namespace of an object.
pub(super) fn said(kind: Kind, value: &Value) -> Vec<String> {
    let is_label = matches!(kind, Kind::Namespace | Kind::Service);
    let name = ("metadata.name", is_label, value.pointer("/metadata/name"));
    let namespace = ("metadata.namespace", true, value.pointer("/metadata/namespace"));
    let mut all = vec![name];
    if kind.is_namespaced() {
        all.push(namespace);
    }
    let said = all.into_iter().filter_map(|(field, is_label, value)| {
        let value = value?.as_str().filter(|value| !value.is_empty())?;
        let is_name = if is_label { is_a_label(value) } else { is_a_name(value) };
        (!is_name).then(|| {
            let shown: String = value.chars().take(NAME).collect();
            format!("{field} is {shown:?}, which no API server takes{}", remedy(value, is_label))
        })
    });
    said.collect()
}

/// What to say of the hosts and paths of an Ingress. Capital letters of a host mean the same, and are told nowhere.
pub(super) fn of_rules(value: &Value) -> Vec<String> {
    const FEW: usize = 5;
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut said = Vec::new();
    for (rule, of_rule) in list(value.pointer("/spec/rules")).iter().enumerate() {
        let host = of_rule.get("host").and_then(Value::as_str).unwrap_or_default();
        if !host.is_empty() && !is_a_host(host) {
            said.push((
                format!("spec.rules[{rule}].host"),
                host.to_owned(),
                "write a name alone, such as shop.example",
            ));
        }
        for (at, of_path) in list(of_rule.pointer("/http/paths")).iter().enumerate() {
            let path = of_path.get("path").and_then(Value::as_str).unwrap_or_default();
            let kind = of_path.get("pathType").and_then(Value::as_str);
            let is_plain = matches!(kind, Some("Exact" | "Prefix"));
            if let Some(how) = (!path.is_empty()).then(|| wrong_path(path, is_plain)).flatten() {
                let field = format!("spec.rules[{rule}].http.paths[{at}].path");
                said.push((field, path.to_owned(), how));
            }
        }
    }
    let told = said.into_iter().take(FEW).map(|(field, value, how)| {
        let shown: String = value.chars().take(NAME).collect();
        let remedy = template(&value).map_or_else(|| format!(": {how}"), str::to_owned);
        format!("{field} is {shown:?}, which no API server takes{remedy}")
    });
    told.collect()
}

fn is_a_host(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    is_a_name(text.strip_prefix("*.").unwrap_or(&text)) && text.parse::<Ipv4Addr>().is_err()
}

/// What a path of an Ingress or a route has that none may have; `is_plain` where it is no expression.
pub(super) fn wrong_path(path: &str, is_plain: bool) -> Option<&'static str> {
    const WITHIN: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    if !path.starts_with('/') {
        return Some("a path starts with /");
    }
    let is_odd = || {
        WITHIN.iter().any(|part| path.contains(part))
            || path.ends_with("/.")
            || path.ends_with("/..")
    };
    (is_plain && is_odd()).then_some("write it without //, /./, /../ and %2F")
}

/// What to say of a text that is a template.
fn template(value: &str) -> Option<&'static str> {
    if value.contains("{{") {
        return Some("; is this a template? Render it first (helm template)");
    }
    let is_variable = value.contains("${");
    is_variable
        .then_some("; is this a template? Put in what its variables stand for first (envsubst)")
}

fn remedy(value: &str, is_label: bool) -> String {
    if let Some(said) = template(value) {
        return said.to_owned();
    }
    let (signs, most) = if is_label { (" and -", LABEL) } else { (", - and .", NAME) };
    format!(
        ": write small letters, digits{signs}, {most} at most, with a letter or a digit at both ends"
    )
}

/// Whether an object, such as a namespace, may have this name: a label of RFC 1123.
pub fn is_a_label(text: &str) -> bool {
    text.len() <= LABEL && is_a_part(text)
}

/// Whether an object, or a listener, may have this name: parts with dots between them; as for an API server, only all
/// of them together have a greatest length.
pub fn is_a_name(text: &str) -> bool {
    text.len() <= NAME && text.split('.').all(is_a_part)
}

fn is_a_part(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_alphanumeric)
        && bytes.last().is_some_and(is_alphanumeric)
        && bytes.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
}
