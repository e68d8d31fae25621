//! From objects to nginx.conf without a process: translated, written, and read back by a reader of its own.

use crate::nginx::reader::{Read, read};
use anyhow::{Result, anyhow};
use nginx::Environment;
use objects::{ObjectKey, snapshot_of};
use serde_json::Value;
use std::path::Path;
use translate::{Options, Translation, translate};

/// What objects mean for the nginx engine.
pub(crate) fn translated(objects: &[Value]) -> Translation {
    translated_by(objects, Options::default())
}

/// The same where other things are allowed.
pub(crate) fn translated_by(objects: &[Value], options: Options) -> Translation {
    let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let config_map = Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller"));
    translate(&snapshot, &Options { raw: true, config_map, ..options })
}

/// nginx.conf for that, as nginx's lexer has it.
pub(crate) fn written(translation: &Translation, environment: &Environment) -> Result<Vec<Read>> {
    let written = nginx::conf::write(&translation.configuration, environment)?;
    read(&written.text.text).map_err(|wrong| anyhow!("{wrong}:\n{}", written.text.text))
}

/// Every directive as one text, below the name of the block around it.
pub(crate) fn directives(all: &[Read]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    gather(all, "main", &mut found);
    found
}

fn gather(all: &[Read], around: &str, found: &mut Vec<(String, String)>) {
    for Read { words, block } in all {
        found.push((around.to_owned(), words.join(" ")));
        if let Some(block) = block {
            gather(block, &words[0], found);
        }
    }
}
