//! Formats that are objects of JSON: their keys are looked for, in whatever order a log pipeline has left them.

use super::format::{Escape, FormatError, Piece, pieces};
use super::template::Template;
use serde_json::Value;

/// Which value of an object has which variables.
#[derive(Debug)]
pub(super) struct Keys(Vec<(Vec<String>, What)>);

/// What a value is.
#[derive(Debug)]
enum What {
    /// One variable.
    Variable(String),
    /// Text with several.
    Text(Template),
}

impl Keys {
    /// The keys of a format; none if it is no object of JSON.
    pub(super) fn of(text: &str) -> Result<Option<Self>, FormatError> {
        if !text.trim_start().starts_with('{') {
            return Ok(None);
        }
        // A variable without quotes stands for a number: quotes around it make the format JSON.
        let Some(value) = quoted(text)? else { return Ok(None) };
        let mut keys = Vec::new();
        gather(&value, &mut Vec::new(), &mut keys)?;
        Ok(Some(Self(keys)))
    }

    /// The variables of a line with their values; none if it is no object.
    pub(super) fn values(&self, line: &str) -> Option<Vec<(&str, String)>> {
        let value: Value = serde_json::from_str(line).ok()?;
        value.is_object().then_some(())?;
        let mut values = Vec::new();
        for (path, what) in &self.0 {
            let Some(found) = path.iter().try_fold(&value, |value, key| value.get(key)) else {
                continue;
            };
            let text = match found {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            match what {
                What::Variable(name) => values.push((name.as_str(), text)),
                What::Text(template) => values.extend(template.values(&text).into_iter().flatten()),
            }
        }
        Some(values)
    }
}

/// The format as a value, with `"$name"` wherever a variable stood without quotes.
fn quoted(text: &str) -> Result<Option<Value>, FormatError> {
    let mut out = String::new();
    let mut inside = false;
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => {
                let quotes = text.replace("\\\"", "").matches('"').count();
                inside ^= quotes % 2 == 1;
                out.push_str(&text);
            }
            Piece::Variable(name) if inside => out.push_str(&format!("${{{name}}}")),
            Piece::Variable(name) => out.push_str(&format!("\"${{{name}}}\"")),
        }
    }
    Ok(serde_json::from_str(&out).ok().filter(Value::is_object))
}

fn gather(
    value: &Value,
    path: &mut Vec<String>,
    keys: &mut Vec<(Vec<String>, What)>,
) -> Result<(), FormatError> {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(key.clone());
                gather(value, path, keys)?;
                path.pop();
            }
        }
        Value::String(text) => match pieces(text)?.as_slice() {
            [Piece::Variable(name)] => keys.push((path.clone(), What::Variable(name.clone()))),
            several if several.iter().any(|piece| matches!(piece, Piece::Variable(_))) => {
                // In an object of JSON, values were unescaped with it.
                keys.push((path.clone(), What::Text(Template::new(several, Escape::None)?)));
            }
            _ => {}
        },
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::log::{Escape, Format};

    const FORMAT: &str = r#"{"time": "$time_iso8601", "http": {"line": "$request_method $request_uri", "vhost": "$host"}, "status": $status, "us": "$upstream_status"}"#;

    #[test]
    fn keys_are_found_in_any_order_and_depth() {
        let format = Format::new(FORMAT, Escape::Json).unwrap();
        let line = r#"{"status": 404, "more": [1], "http": {"vhost": "a.test", "line": "GET /x\"y"}, "us": ""}"#;
        let record = format.record(line).unwrap();
        assert_eq!((record.method.as_str(), record.target.as_str()), ("GET", "/x\"y"));
        assert_eq!((record.status, record.host.as_deref()), (404, Some("a.test")));
        assert_eq!(record.tried, Some(false));
        assert!(format.record("{\"status\": 404}").is_none());
    }

    #[test]
    fn lines_that_are_no_json_after_all_are_read_as_text() {
        let format = Format::new(
            r#"{"r": "$request", "status": $status, "n": $upstream_status}"#,
            Escape::Json,
        );
        let record =
            format.unwrap().record(r#"{"r": "GET /\"a HTTP/1.1", "status": 200, "n": 502, 200}"#);
        let record = record.unwrap();
        assert_eq!((record.target.as_str(), record.tried), ("/\"a", Some(true)));
    }
}
