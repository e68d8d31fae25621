//! Values of the wrong type, in the words of whoever writes the file.

use crate::Kind;
use serde_json::Value;

/// Maps whose values are texts, as a path.
const OF_TEXTS: [&[&str]; 4] =
    [&["data"], &["stringData"], &["metadata", "annotations"], &["metadata", "labels"]];
/// Values of one object that are told.
const MOST: usize = 20;

/// A value that has to be text and is none.
pub(super) struct NoText {
    /// The path of its map.
    pub(super) map: &'static [&'static str],
    /// Its key.
    pub(super) key: String,
    /// What to say of it.
    pub(super) message: String,
}

/// The values of an object that have to be texts and are none. Those of a Secret are not shown.
pub(super) fn no_texts(kind: Kind, value: &Value) -> Vec<NoText> {
    let mut found = Vec::new();
    for map in OF_TEXTS {
        let fields = map.iter().try_fold(value, |value, name| value.get(name));
        for (key, value) in fields.and_then(Value::as_object).into_iter().flatten() {
            let is = match value {
                Value::String(_) => continue,
                Value::Array(_) => "is a list, and has to be text".to_owned(),
                Value::Object(_) => "is an object, and has to be text".to_owned(),
                Value::Null => "has no value, and has to be text: write \"\"".to_owned(),
                _ if kind == Kind::Secret => "is no text: put it in quotes".to_owned(),
                plain => format!("is no text: put it in quotes, \"{plain}\""),
            };
            let message = format!("{}.{key} {is}", map.join("."));
            found.push(NoText { map, key: key.clone(), message });
        }
    }
    found.truncate(MOST);
    found
}

/// What a reader of types says of a value of the wrong one. That of a Secret is not shown.
pub(super) fn plain(kind: Kind, message: String) -> String {
    let said = message.split_once("invalid type: ");
    let parts = said.and_then(|(at, rest)| Some((at, rest.rsplit_once(", expected ")?)));
    let Some((at, (found, wanted))) = parts else { return without_value(kind, message) };
    let text = found.strip_prefix("string ");
    let is_number = text.is_some_and(|text| text.trim_matches('"').parse::<i64>().is_ok());
    // Its name has two words.
    let broken = found.strip_prefix("floating point ");
    let shown = match found {
        "sequence" => "a list",
        "map" => "an object",
        "null" | "unit value" => "nothing",
        _ if kind == Kind::Secret && broken.is_some() => "number",
        _ if kind == Kind::Secret => found.split(' ').next().unwrap_or_default(),
        _ => {
            let value = broken.or_else(|| Some(found.split_once(' ')?.1));
            value.map_or(found, |value| value.trim_matches('`'))
        }
    };
    let wanted = match wanted {
        "a string" => "text: put it in quotes",
        "a boolean" => "true or false, without quotes",
        "a sequence" => "a list",
        "IntOrString" => "a number, or text",
        "i32" | "i64" | "u16" | "u32" | "u64" if is_number => "a number: take the quotes away",
        "i32" | "i64" | "u16" | "u32" | "u64" if broken.is_some() => "a whole number",
        "i32" | "i64" | "u16" | "u32" | "u64" => "a number",
        "a map" => "an object (keys with values)",
        other if is_name_of_type(other) => "an object (keys with values)",
        _ => return without_value(kind, message),
    };
    match at.strip_suffix(": ") {
        Some(field) => format!("{field} is {shown}, and has to be {wanted}"),
        None => format!("{at}it is {shown}, and has to be {wanted}"),
    }
}

/// A message in words of its own, which may have a value in it.
fn without_value(kind: Kind, message: String) -> String {
    if kind != Kind::Secret || message.starts_with("missing field") {
        return message;
    }
    let at = message.split_once(": invalid ").map_or("something in it", |(at, _)| at);
    format!("{at} has a value that it may not have")
}

/// Whether it is what an object of Kubernetes is called, such as ObjectMeta or `struct ObjectMeta`.
fn is_name_of_type(wanted: &str) -> bool {
    let name = wanted.strip_prefix("struct ").unwrap_or(wanted);
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::{no_texts, plain};
    use crate::Kind;
    use serde_json::json;

    #[test]
    fn a_wrong_type_is_told_without_the_names_of_types() {
        for (said, wanted) in [
            (
                "spec.ports[0].port: invalid type: string \"80\", expected i32",
                "spec.ports[0].port is \"80\", and has to be a number: take the quotes away",
            ),
            (
                "spec.rules[0].host: invalid type: integer `17`, expected a string",
                "spec.rules[0].host is 17, and has to be text: put it in quotes",
            ),
            (
                "spec.ports[0].port: invalid type: floating point `80.5`, expected i32",
                "spec.ports[0].port is 80.5, and has to be a whole number",
            ),
            (
                "spec.rules[0].host: invalid type: floating point `1000.0`, expected a string",
                "spec.rules[0].host is 1000.0, and has to be text: put it in quotes",
            ),
            (
                "spec.rules: invalid type: map, expected a sequence",
                "spec.rules is an object, and has to be a list",
            ),
            (
                "metadata: invalid type: string \"a b\", expected ObjectMeta",
                "metadata is \"a b\", and has to be an object (keys with values)",
            ),
            ("missing field `metadata`", "missing field `metadata`"),
            (
                "spec.ports[0].targetPort: invalid type: boolean `true`, expected IntOrString",
                "spec.ports[0].targetPort is true, and has to be a number, or text",
            ),
            ("a: invalid type: map, expected f64", "a: invalid type: map, expected f64"),
        ] {
            assert_eq!(plain(Kind::Ingress, said.to_owned()), wanted);
        }
    }

    #[test]
    fn no_value_of_a_secret_is_told() {
        for (said, wanted) in [
            (
                "data: invalid type: string \"hunter2\", expected a map",
                "data is string, and has to be an object (keys with values)",
            ),
            ("a: invalid type: integer `4242`, expected f64", "a has a value that it may not have"),
            (
                "type: invalid type: floating point `42.5`, expected a string",
                "type is number, and has to be text: put it in quotes",
            ),
            (
                "data.a: invalid value: string \"hunter2\", expected base64",
                "data.a has a value that it may not have",
            ),
            ("missing field `metadata`", "missing field `metadata`"),
        ] {
            assert_eq!(plain(Kind::Secret, said.to_owned()), wanted);
        }
        let told = no_texts(Kind::Secret, &json!({"stringData": {"auth": 4242}}));
        assert_eq!(told[0].message, "stringData.auth is no text: put it in quotes");
    }
}
