//! An object as YAML, with comments above it.

use crate::keys::GUARDS_OF_ALL;
use crate::lost::{Loss, Weight};
use crate::made::Object;
use model::{Printable, is_unprintable};
use serde_json::Value;
use std::fmt::Write;

/// The longest line of a comment.
const WIDTH: usize = 110;

/// One document of a stream.
pub(crate) fn document(object: &Object) -> String {
    let mut out = "---\n".to_owned();
    for loss in &object.losses {
        comment(&mut out, loss);
    }
    out += &seen(&object.value);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// A value as YAML in which a reader sees what is there: texts with characters that are not seen, or that turn the
/// direction of reading, stand in double quotes with these as escapes.
fn seen(value: &Value) -> String {
    let text = |value: &Value| serde_saphyr::to_string(value).expect("JSON is YAML");
    let plain = text(value);
    if !plain.contains(is_hidden) {
        return plain;
    }
    // A word that is in no text of the object stands for such a text while the rest is written.
    let mut word = "hidden".to_owned();
    while plain.contains(&word) {
        word.push('-');
    }
    let mut hidden = Vec::new();
    let mut marked = value.clone();
    mark(&mut marked, &mut |text: &str| {
        let mark = text.contains(is_hidden).then(|| format!("{word}{}.", hidden.len()))?;
        hidden.push(quoted(text));
        Some(mark)
    });
    let written = text(&marked);
    let with = |written: String, (number, text): (usize, &String)| {
        written.replace(&format!("{word}{number}."), text)
    };
    hidden.iter().enumerate().fold(written, with)
}

/// Line breaks that YAML writes as such are seen.
fn is_hidden(character: char) -> bool {
    is_unprintable(character) && character != '\n'
}

/// Puts what `mark` gives in the place of texts, be they names or values.
fn mark(value: &mut Value, mark_of: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(mark) = mark_of(text) {
                *text = mark;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| mark(one, mark_of)),
        Value::Object(all) => {
            *all = std::mem::take(all)
                .into_iter()
                .map(|(name, mut one)| {
                    mark(&mut one, mark_of);
                    (mark_of(&name).unwrap_or(name), one)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text in double quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match (letter, u32::from(letter)) {
            ('"' | '\\', _) => out.extend(['\\', letter]),
            (_, code @ 0x1_0000..) if is_unprintable(letter) => out += &format!("\\U{code:08x}"),
            (_, code) if is_unprintable(letter) => out += &format!("\\u{code:04x}"),
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

fn comment(out: &mut String, loss: &Loss) {
    let of = match &loss.ingress {
        Some(key) => format!("Ingress {}/{}", key.namespace, key.name),
        None if loss.key.starts_with("--") => "flag".to_owned(),
        None if GUARDS_OF_ALL.contains(&loss.key.as_str()) => "ConfigMap".to_owned(),
        // Notes for all routes are of what holds where nobody has said otherwise.
        None if loss.weight == Weight::Note => "default of the controller".to_owned(),
        None => "ConfigMap".to_owned(),
    };
    let Loss { key, reason, remedy, weight, place, .. } = loss;
    let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
    // Texts of objects may hold anything: no line break of theirs ends a comment.
    let text = format!("{}: {of}: {key}: {reason}{place}; {remedy}", weight.word());
    let text = Printable(&text).to_string();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + word.len() > WIDTH && line.len() > 3 {
            let _infallible = writeln!(out, "{line}");
            line = String::from("#  ");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _infallible = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::document;
    use crate::lost::{Loss, Weight};
    use crate::made::Object;
    use serde_json::json;

    #[test]
    fn what_is_not_seen_in_a_value_is_written_as_an_escape_and_read_back_as_it_was() {
        let texts = [
            "/a\u{202e}b\u{2066}c\u{200b}d",
            "\u{61c}\"x\\\u{feff}: y # z\u{ad}",
            "two\nlines \u{2028}\u{85}\u{7f}\u{1b}\r\t",
            "\u{e0041}\u{e0042}hidden0. hidden",
            "seen: é 漢 🙂",
        ];
        let value = json!({"metadata": {"annotations": {texts[0]: texts[1]}}, "spec": [
            {"matches": texts, "depth": 1, "is": true, "of": null}, texts[2], {texts[3]: [texts[4]]},
        ]});
        let object = Object { value: value.clone(), losses: Vec::new() };
        let text = document(&object);
        let is_seen = |letter: char| letter == '\n' || !model::is_unprintable(letter);
        assert!(text.chars().all(is_seen), "{text:?}");
        for escape in ["\\u202e", "\\u2066", "\\u200b", "\\u061c", "\\ufeff", "\\U000e0041"] {
            assert!(text.contains(escape), "{escape}: {text}");
        }
        let read: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(read, value, "{text}");
    }

    #[test]
    fn no_text_of_an_object_ends_a_comment() {
        let loss = Loss {
            ingress: None,
            key: "a\nkind: Secret".to_owned(),
            reason: "b\u{2028}c\r\u{85}d\u{1b}\u{9b}\u{202e} ".repeat(30),
            remedy: "e".to_owned(),
            weight: Weight::Lost,
            place: "f\n".to_owned(),
        };
        let object = Object { value: json!({"kind": "Gateway"}), losses: vec![loss] };
        let text = document(&object);
        let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        assert_eq!(lines[0], "---");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text}");
        assert_eq!(lines.last(), Some(&"kind: Gateway"));
        let between = &lines[1..lines.len() - 1];
        assert!(between.len() > 1 && between.iter().all(|line| line.starts_with('#')), "{text}");
    }
}
