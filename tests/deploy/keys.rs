//! The keys of the chart, as `values.yaml` declares them: each with its default and the comment above it.

use crate::read;
use serde_json::Value;
use testkit::yaml;

/// One key that can be set.
#[derive(Debug)]
pub(crate) struct Key {
    /// From the top, such as `[controller, image, tag]`.
    pub(crate) path: Vec<String>,
    /// What stands in `values.yaml`.
    pub(crate) default: Value,
    /// The comment above it.
    pub(crate) comment: String,
    /// Whether it is a map with these keys and no others; these keys follow.
    pub(crate) is_closed: bool,
}

impl Key {
    /// `controller.image.tag`.
    pub(crate) fn name(&self) -> String {
        self.path.join(".")
    }

    /// The words in `(one of: …)`.
    pub(crate) fn choices(&self) -> Option<Vec<&str>> {
        let list = self.comment.split_once("(one of: ")?.1.split_once(')')?.0;
        Some(list.split(", ").collect())
    }
}

/// The chart's values.
pub(crate) fn values() -> Value {
    let text = read("deploy/chart/fairway/values.yaml");
    yaml::documents(&text).expect("values.yaml is YAML").remove(0)
}

/// All keys, in the order of the file.
pub(crate) fn all() -> Vec<Key> {
    let (text, values) = (read("deploy/chart/fairway/values.yaml"), values());
    let mut keys: Vec<Key> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    // The maps that are open here: whatever stands deeper than the last of them belongs to it.
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut inside_free: Option<usize> = None;
    for line in text.lines() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if let Some(words) = content.strip_prefix("# ") {
            comment.push(words);
            continue;
        }
        let said = std::mem::take(&mut comment).join(" ");
        let is_deep = inside_free.is_some_and(|free| indent > free || content.starts_with("- "));
        let Some((name, _)) = content.split_once(':').filter(|_| !is_deep) else { continue };
        inside_free = None;
        path.retain(|(at, _)| *at < indent);
        path.push((indent, name.to_owned()));
        let path: Vec<String> = path.iter().map(|(_, name)| name.clone()).collect();
        let default = path.iter().fold(&values, |value, name| &value[name.as_str()]).clone();
        let has_keys = default.as_object().is_some_and(|map| !map.is_empty());
        let is_closed = has_keys && !said.contains("(any keys)");
        if !is_closed {
            inside_free = Some(indent);
        }
        keys.push(Key { path, default, comment: said, is_closed });
    }
    keys
}

#[test]
fn every_key_says_what_it_is_for() {
    let mute = all().into_iter().filter(|key| !key.is_closed && key.comment.is_empty());
    let mute: Vec<String> = mute.map(|key| key.name()).collect();
    assert!(mute.is_empty(), "values.yaml has no comment above {mute:?}");
}

#[test]
fn reading_by_lines_finds_the_keys_that_a_yaml_parser_finds() {
    fn count(value: &Value, closed: &dyn Fn(&[&str]) -> bool, path: &mut Vec<String>) -> usize {
        let Some(map) = value.as_object() else { return 0 };
        map.iter().fold(0, |sum, (name, value)| {
            path.push(name.clone());
            let parts: Vec<&str> = path.iter().map(String::as_str).collect();
            let below = if closed(&parts) { count(value, closed, path) } else { 0 };
            path.pop();
            sum + 1 + below
        })
    }
    let keys = all();
    let closed = |path: &[&str]| keys.iter().any(|key| key.is_closed && key.path == path);
    assert_eq!(count(&values(), &closed, &mut Vec::new()), keys.len());
    assert!(keys.len() > 300, "only {} keys", keys.len());
}

/// The names of all values of its chart 4.15.1.
#[test]
fn every_key_of_ingress_nginx_is_known() {
    let keys = all();
    let list = read("tests/deploy/ingress-nginx-keys.txt");
    let is_known = |name: &&str| keys.iter().any(|key| !key.is_closed && key.name() == **name);
    let unknown: Vec<&str> = list.lines().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "values.yaml has no {unknown:?}");
    assert!(list.lines().count() > 300);
}
