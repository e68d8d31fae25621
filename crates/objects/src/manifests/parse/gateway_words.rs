//! Words of Gateways and routes that no API server takes: listeners without a name of their own, methods, names of
//! headers, paths.

use super::names;
use serde_json::Value;
use std::collections::BTreeSet;

/// Of one object as many are told.
const MOST: usize = 5;
/// Letters of a word that are told.
const LONGEST: usize = 60;
const NO_SERVER: &str = "which no API server takes";
/// The methods that a route may name.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
/// Where TLS has no place.
const IN_CLEAR: [&str; 3] = ["HTTP", "TCP", "UDP"];

/// What to say of the listeners of a Gateway or a ListenerSet.
pub(super) fn of_listeners(value: &Value) -> Vec<String> {
    let (mut said, mut names) = (Vec::new(), BTreeSet::new());
    for (at, listener) in list_of("spec", "listeners", value.get("spec")) {
        let text = |field: &str| listener.get(field).and_then(Value::as_str);
        match text("name").filter(|name| !name.is_empty()) {
            None if listener.get("name").is_none_or(|name| name == "" || name.is_null()) => {
                said.push(format!("{at}.name is missing, {NO_SERVER}: write one, such as web"));
            }
            None => {}
            Some(name) if !names::is_a_name(name) => said.push(format!(
                "{at}.name is {:?}, {NO_SERVER}: write small letters, digits, - and .",
                short(name)
            )),
            Some(name) if !names.insert(name) => {
                said.push(format!(
                    "{at}.name is {name:?} a second time, {NO_SERVER}: write another one"
                ));
            }
            Some(_) => {}
        }
        let protocol = text("protocol").filter(|protocol| IN_CLEAR.contains(protocol));
        let has_tls = listener.get("tls").is_some_and(|tls| !tls.is_null());
        if let Some(protocol) = protocol.filter(|_| has_tls) {
            said.push(format!(
                "{at}.tls is there beside protocol {protocol}, {NO_SERVER}: write HTTPS or TLS, or take it away"
            ));
        }
    }
    said.truncate(MOST);
    said
}

/// What to say of the matches of a route.
pub(super) fn of_matches(value: &Value) -> Vec<String> {
    let mut said = Vec::new();
    for (rule, of_rule) in list_of("spec", "rules", value.get("spec")) {
        for (at, found) in list_of(&rule, "matches", Some(of_rule)) {
            // That of a GRPCRoute is an object.
            let method = found.get("method").and_then(Value::as_str);
            if let Some(method) = method.filter(|method| !METHODS.contains(method)) {
                said.push(format!(
                    "{at}.method is {:?}, {NO_SERVER}: write {}",
                    short(method),
                    METHODS.join(", ")
                ));
            }
            for (at, header) in list_of(&at, "headers", Some(found)) {
                let name = header.get("name").and_then(Value::as_str);
                if let Some(name) = name.filter(|name| !is_header(name)) {
                    said.push(format!(
                        "{at}.name is {:?}, {NO_SERVER}: write letters, digits and -",
                        short(name)
                    ));
                }
            }
            said.extend(of_path(&at, found));
        }
    }
    said.truncate(MOST);
    said
}

/// What to say of a path that is no expression. One without a slash at its begin is refused by name.
fn of_path(at: &str, found: &Value) -> Option<String> {
    let kind = found.pointer("/path/type").map_or(Some("PathPrefix"), Value::as_str)?;
    let path = found.pointer("/path/value")?.as_str().filter(|path| path.starts_with('/'))?;
    let how = names::wrong_path(path, matches!(kind, "Exact" | "PathPrefix"))?;
    Some(format!("{at}.path.value is {:?}, {NO_SERVER}: {how}", short(path)))
}

/// Whether a name is one that a header may have.
fn is_header(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_sign)
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// The items of a field of what is at a place, each with where it is.
fn list_of<'a>(
    at: &str,
    field: &str,
    value: Option<&'a Value>,
) -> impl Iterator<Item = (String, &'a Value)> {
    let at = format!("{at}.{field}");
    let items = value.and_then(|value| value.get(field)?.as_array()).into_iter().flatten();
    items.enumerate().map(move |(index, item)| (format!("{at}[{index}]"), item))
}
