//! What was meant as a list of objects and is none: all of its objects would be passed over without a word.

use super::{is_an_object, is_meant, is_near};
use crate::Kind;
use serde_json::{Map, Value};

/// The kind of lists of anything.
const LIST: &str = "List";
/// The fields of a list besides its items, and those of every object.
const HEAD: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Whether there are items, and objects among them.
pub(super) fn holds_objects(fields: &Map<String, Value>) -> bool {
    let items = fields.get("items").and_then(Value::as_array);
    items.is_some_and(|items| items.iter().any(is_an_object))
}

/// What to say of a kind that is none, where a list was meant: by its name, or by what it holds.
pub(super) fn meant(kind: &str, api_version: &str, fields: &Map<String, Value>) -> Option<String> {
    if !is_meant(api_version) {
        return None;
    }
    let names = Kind::ALL.into_iter().map(|known| format!("{known}{LIST}"));
    let near = std::iter::once(LIST.to_owned()).chain(names).find(|name| is_near(kind, name));
    let meant = near.or_else(|| holds_objects(fields).then(|| LIST.to_owned()))?;
    Some(format!("there is no kind {kind}; did you mean {meant}?"))
}

/// What to say of a list without items that has something else in their place. Kinds of others may end alike, and
/// be no lists.
pub(super) fn without_items(
    item_kind: &str,
    api_version: &str,
    fields: &Map<String, Value>,
) -> Option<String> {
    let is_one = item_kind.is_empty() || Kind::named(item_kind).is_some();
    if !is_one || !is_meant(api_version) || fields.contains_key("items") {
        return None;
    }
    let field = fields.keys().find(|field| !HEAD.contains(&field.as_str()))?;
    Some(format!("{field} is no field of a list; write its objects below items"))
}
