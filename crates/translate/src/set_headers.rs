//! Header fields from the data of a ConfigMap: names and values are checked before anything is set with them.

use model::{BadTemplate, Part, SetHeader, Template};
use objects::{ConfigMap, ObjectKey};

/// Fields that say where a message ends or what becomes of the connection; no setting may touch them.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The fields of a ConfigMap whose values may hold variables, and what is wrong with the others.
pub(crate) fn templates(
    map: &ConfigMap,
    parse: impl Fn(&str) -> Result<Template, BadTemplate>,
) -> (Vec<SetHeader>, Vec<String>) {
    let mut wrong = Vec::new();
    let read = map.data.iter().filter_map(|(name, value)| match template(name, value, &parse) {
        Ok(header) => Some(header),
        Err(why) => {
            wrong.push(format!("{}; it is not set", of_map(map, name, &why)));
            None
        }
    });
    (read.collect(), wrong)
}

/// Why a header of a ConfigMap cannot be set, as a sentence.
pub(crate) fn of_map(map: &ConfigMap, name: &str, why: &str) -> String {
    let ObjectKey { namespace, name: map } = &map.meta.key;
    format!("header {name:?} of ConfigMap {namespace}/{map} {why}")
}

fn template(
    name: &str,
    value: &str,
    parse: impl Fn(&str) -> Result<Template, BadTemplate>,
) -> Result<SetHeader, String> {
    let value = checked(name, value)?;
    let value = parse(value)
        .map_err(|unknown| format!("has the {unknown}: use a variable that nginx has"))?;
    if value.parts().iter().any(|part| matches!(part, Part::Capture(_))) {
        return Err("has a capture group such as $1, and there is no pattern".to_owned());
    }
    Ok(SetHeader { name: name.to_owned(), value: value.into() })
}

/// A field whose value means what it says: a `$` is a dollar sign.
pub(crate) fn literal(name: &str, value: &str) -> Result<SetHeader, String> {
    let value = checked(name, value)?;
    let value = Template::from_parts(vec![Part::Text(value.to_owned())]);
    Ok(SetHeader { name: name.to_owned(), value: value.into() })
}

/// The value without space around it, if both are fit for a header section.
fn checked<'v>(name: &str, value: &'v str) -> Result<&'v str, String> {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || !name.bytes().all(in_name) {
        return Err("has a name that is none: write letters, digits, - and _".to_owned());
    }
    if FRAMING.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(
            "belongs to the connection, which Fairway alone decides about: remove it".to_owned()
        );
    }
    let value = value.trim();
    if value.chars().any(char::is_control) {
        return Err(
            "has a line break or another control character in its value: write it in one line"
                .to_owned(),
        );
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::{literal, template};
    use model::Template;

    #[test]
    fn what_is_no_header_is_not_set() {
        for (name, value) in [
            ("X A", "1"),
            ("", "1"),
            ("X:A", "1"),
            ("X-A", "1\r\nX-B: 2"),
            ("X-A", "\0"),
            ("Transfer-Encoding", "chunked"),
            ("content-length", "0"),
            ("X-A", "$nope"),
            ("X-A", "$1"),
        ] {
            assert!(template(name, value, Template::parse).is_err(), "{name}: {value:?}");
        }
    }

    #[test]
    fn variables_count_in_templates_only() {
        let set = template("X-A", "a $host\n", Template::parse).expect("a header");
        assert_eq!((set.value.to_string().as_str(), set.value.literal()), ("a ${host}", None));
        let set = literal("X-A", "a $nope").expect("a header");
        assert_eq!(set.value.literal(), Some("a $nope"));
    }
}
