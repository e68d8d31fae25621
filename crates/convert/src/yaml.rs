//! An object as YAML, with comments above it.

use crate::lost::{Loss, Weight};
use crate::made::Object;
use model::Printable;
use std::fmt::Write;

/// The longest line of a comment.
const WIDTH: usize = 110;

/// One document of a stream.
pub(crate) fn document(object: &Object) -> String {
    let mut out = "---\n".to_owned();
    for loss in &object.losses {
        comment(&mut out, loss);
    }
    out += &serde_saphyr::to_string(&object.value).expect("JSON is YAML");
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn comment(out: &mut String, loss: &Loss) {
    let of = match &loss.ingress {
        Some(key) => format!("Ingress {}/{}", key.namespace, key.name),
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
