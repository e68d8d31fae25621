//! `/configuration`: what is served, as JSON, with nothing in it that opens a door.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use model::{Alias, Certificate, Configuration, Server};
use runtime::admin::Page;
use serde_json::Value;

/// What stands for a secret.
const HIDDEN: &str = "…";
/// What names of header fields and query arguments have in them whose values are secrets.
const SECRET: [&str; 12] = [
    "auth",
    "cookie",
    "credential",
    "jwt",
    "key",
    "pass",
    "private",
    "pwd",
    "secret",
    "session",
    "sig",
    "token",
];

/// The page. Keys of certificates, passwords and the key of session tickets never serialise; what users wrote into
/// header fields, parameters and URLs is looked through here.
pub(crate) fn page(configuration: &Configuration) -> Page {
    match serde_json::to_value(configuration) {
        Ok(mut value) => {
            hide(&mut value);
            Page::json(value.to_string())
        }
        Err(error) => Page::failed(&error),
    }
}

/// The chain for clients that name this host, as PEM; never its key.
pub(crate) fn certificate(configuration: &Configuration, host: &str) -> Result<String, String> {
    let host = host.to_ascii_lowercase();
    let is_called = |server: &&Server, name: &str| {
        let aliases = server.aliases.iter().filter_map(|alias| match alias {
            Alias::Name(name) => Some(name.to_string()),
            Alias::Below(_) | Alias::Beginning(_) | Alias::Pattern(_) => None,
        });
        server.name.to_string() == name || aliases.into_iter().any(|alias| alias == name)
    };
    let find = |name: &str| {
        configuration
            .servers
            .values()
            .map(|server| &**server)
            .find(|server| is_called(server, name))
    };
    let parent = host.split_once('.').map(|(_, rest)| format!("*.{rest}"));
    let server = find(&host).or_else(|| find(&parent?));
    let named = server.and_then(|server| server.certificate.as_ref());
    let id = named.or(configuration.default_certificate.as_ref());
    match id.and_then(|id| configuration.certificates.get(id)) {
        Some(certificate) => Ok(pem(certificate)),
        None if server.is_none() => Err(format!("there is no host {host}; `dbg conf` names all")),
        None => Err(format!(
            "{host} has no certificate: clients get the self-signed one of the process"
        )),
    }
}

fn pem(certificate: &Certificate) -> String {
    let mut text = String::new();
    for der in &certificate.chain {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in BASE64_STANDARD.encode(der).as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("name").and_then(Value::as_str).is_some_and(is_secret);
            if let Some(Value::String(text)) = fields.get_mut("value").filter(|_| name) {
                hide_text(text);
            }
            if let Some(Value::String(text)) = fields.get_mut("authority") {
                hide_user(text, 0);
            }
            fields.values_mut().for_each(hide);
        }
        Value::Array(items) => {
            if let [Value::String(name), Value::String(text)] = items.as_mut_slice()
                && is_secret(name)
            {
                hide_text(text);
            }
            items.iter_mut().for_each(hide);
        }
        Value::String(text) => hide_in_url(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// What is made of nothing but a variable tells nothing.
fn hide_text(text: &mut String) {
    let is_variable = text.starts_with("${") && text.ends_with('}') && !text[2..].contains('$');
    if !is_variable {
        HIDDEN.clone_into(text);
    }
}

/// User and password before a host, and arguments of a query whose names tell.
fn hide_in_url(text: &mut String) {
    if let Some(scheme) = text.find("://") {
        hide_user(text, scheme + 3);
    }
    let Some((before, query)) = text.split_once('?') else { return };
    let argument = |argument: &str| match argument.split_once('=') {
        Some((name, value)) if is_secret(name) => {
            let mut value = value.to_owned();
            hide_text(&mut value);
            format!("{name}={value}")
        }
        _ => argument.to_owned(),
    };
    let arguments: Vec<String> = query.split('&').map(argument).collect();
    *text = format!("{before}?{}", arguments.join("&"));
}

/// What stands before the host that begins at `start`, user and password included.
fn hide_user(text: &mut String, start: usize) {
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |end| start + end);
    if let Some(at) = text[start..end].rfind('@') {
        text.replace_range(start..start + at, HIDDEN);
    }
}

#[cfg(test)]
mod tests {
    use super::hide;
    use serde_json::json;

    #[test]
    fn what_opens_a_door_is_hidden_and_the_rest_stays() {
        let mut value = json!({
            "headers": [
                {"name": "X-Api-Key", "value": "k1"},
                {"name": "Authorization", "value": "${http_authorization}"},
                {"name": "X-Frame-Options", "value": "DENY"},
            ],
            "params": [["HTTP_COOKIE", "a=b"], ["SCRIPT_NAME", "/a.php"]],
            "url": {"authority": "me:word@auth.test", "target": "/check?token=t&next=${uri}"},
            "sign_in": "https://me:word@sign.test/in?access_key=k2&rd=$1",
            "pattern": "^/user@[^/]+$",
            "path": "/a://b",
        });
        hide(&mut value);
        let wanted = json!({
            "headers": [
                {"name": "X-Api-Key", "value": "…"},
                {"name": "Authorization", "value": "${http_authorization}"},
                {"name": "X-Frame-Options", "value": "DENY"},
            ],
            "params": [["HTTP_COOKIE", "…"], ["SCRIPT_NAME", "/a.php"]],
            "url": {"authority": "…@auth.test", "target": "/check?token=…&next=${uri}"},
            "sign_in": "https://…@sign.test/in?access_key=…&rd=$1",
            "pattern": "^/user@[^/]+$",
            "path": "/a://b",
        });
        assert_eq!(value, wanted);
    }
}
