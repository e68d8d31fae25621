//! What opens a door and stands in what users wrote: values of header fields, parameters and arguments of URLs whose
//! names tell. What is a secret by its type never serialises in the first place.

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

/// Hides what opens a door in a value of a Configuration.
pub fn hide(value: &mut Value) {
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

/// The same for a line that `explain` tells: a header field, or a text with URLs in it.
pub fn hide_line(line: &str) -> String {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match line.split_once(": ") {
        Some((name, _)) if is_name(name) && is_secret(name) => format!("{name}: {HIDDEN}"),
        _ => hide_words(line),
    }
}

/// The same for a message, in which URLs may stand.
pub(crate) fn hide_words(message: &str) -> String {
    let word = |word: &str| {
        let mut word = word.to_owned();
        hide_in_url(&mut word);
        word
    };
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{hide, hide_line};
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

    #[test]
    fn lines_keep_their_words_but_no_value_of_a_secret() {
        assert_eq!(hide_line("Set-Cookie: INGRESSCOOKIE=abc; Path=/"), "Set-Cookie: …");
        assert_eq!(hide_line("Authorization: Basic YTpi"), "Authorization: …");
        assert_eq!(
            hide_line("Location: https://a:b@c.test/?token=1&x=2"),
            "Location: https://…@c.test/?token=…&x=2"
        );
        assert_eq!(hide_line("GET /a?api_key=1 HTTP/1.1"), "GET /a?api_key=… HTTP/1.1");
        assert_eq!(
            hide_line("round robin of 10.0.0.1:80, 10.0.0.2:80"),
            "round robin of 10.0.0.1:80, 10.0.0.2:80"
        );
    }
}
