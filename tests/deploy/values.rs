//! values.schema.json and docs/helm.md, both made of `values.yaml`.

use crate::keys::{Key, all};
use crate::{read, root, yaml_files};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::fs;

/// Keeps a generated file current: writes it with UPDATE=1, otherwise compares.
fn current(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, text).expect("the file can be written");
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == text, "{path} is stale: UPDATE=1 cargo test --test deploy values");
}

fn kind(key: &Key) -> Value {
    if let Some(choices) = key.choices() {
        let mut choices: Vec<Value> = choices.into_iter().map(Value::from).collect();
        // What is left out may be written as nothing.
        if key.default == "" {
            choices.extend([json!(""), Value::Null]);
        }
        return json!({"enum": choices});
    }
    match &key.default {
        Value::Object(_) if key.is_closed => {
            json!({"type": "object", "additionalProperties": false, "properties": {}})
        }
        Value::Object(_) => json!({"type": ["object", "null"]}),
        Value::Array(_) => json!({"type": ["array", "null"]}),
        Value::Bool(_) => json!({"type": ["boolean", "null"]}),
        // Absent by default: a number, a word or a truth.
        Value::Null => json!({"type": ["string", "number", "boolean", "null"]}),
        // Charts copied about carry empty maps where a word belongs, and numbers in quotes.
        Value::String(_) => {
            json!({"type": ["string", "number", "object", "null"], "maxProperties": 0})
        }
        Value::Number(_) => json!({
            "type": ["string", "number", "object", "null"], "maxProperties": 0, "pattern": pattern(key),
        }),
    }
}

/// A share such as 50% counts as a number where Kubernetes takes it. A number of Pods is never one: the API server
/// would refuse it when half of an upgrade is done.
fn pattern(key: &Key) -> &'static str {
    match key.path.last().map(String::as_str) {
        Some("replicaCount") => "^[0-9]*$",
        _ => "^[0-9]*%?$",
    }
}

#[test]
fn the_schema_is_current_and_knows_every_key() {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {},
    });
    for key in all() {
        let mut place = &mut schema;
        for name in &key.path[..key.path.len() - 1] {
            place = &mut place["properties"][name];
        }
        let properties = place["properties"].as_object_mut();
        let properties: &mut Map<String, Value> = properties.expect("a closed map comes first");
        properties.insert(key.path.last().expect("a key has a name").clone(), kind(&key));
    }
    let text = serde_json::to_string_pretty(&schema).expect("JSON can be written");
    current("deploy/chart/fairway/values.schema.json", &(text + "\n"));
}

#[test]
fn the_page_of_values_is_current() {
    let mut page = String::from(
        "# Values of the Helm chart\n\nGenerated from `deploy/chart/fairway/values.yaml`; do not edit.\n\nThe chart takes the \
         values of ingress-nginx's, so that a values file of its users can stay as it is; [install.md](install.md) says how to \
         switch. A key that is not here fails with its name, before anything is changed in the cluster. What is given without \
         having an effect is named after installing. Keys with dots in names below are maps in maps: `controller.kind` is `kind` \
         in `controller`.\n\nWhole files to begin with:\n\n",
    );
    for name in yaml_files("deploy/values") {
        let text = read(&format!("deploy/values/{name}"));
        let about = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        let about = about.rsplit_once("; docs/").map_or(about, |(about, _)| about);
        writeln!(page, "- [{name}](../deploy/values/{name}): {about}").expect("a String takes all");
    }
    let mut section = None;
    let all = all();
    let top = |key: &Key| if key.path.len() > 1 { key.path[0].clone() } else { String::new() };
    let mut keys: Vec<&Key> = all.iter().filter(|key| !key.is_closed).collect();
    // Those of one section together, sections in the order in which they begin.
    let order: Vec<String> = keys.iter().map(|key| top(key)).collect();
    keys.sort_by_key(|key| order.iter().position(|one| *one == top(key)));
    for key in keys {
        if section != Some(top(key)) {
            section = Some(top(key));
            let title = section.as_deref().filter(|title| !title.is_empty());
            let title = title.unwrap_or("At the top");
            write!(page, "\n## {title}\n\n| Key | Default | What it does |\n|---|---|---|\n")
                .expect("a String takes all");
        }
        let default = match &key.default {
            Value::Null => "none".to_owned(),
            Value::String(text) if text.is_empty() => "empty".to_owned(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let comment =
            key.comment.replace(" (any keys)", "").replace('|', "\\|").replace('<', "&lt;");
        writeln!(page, "| `{}` | {default} | {comment} |", key.name()).expect("a String takes all");
    }
    current("docs/helm.md", &page);
}
