//! Helm charts: nothing in them is an object before it is rendered.

use serde_json::Value;
use std::path::Path;

/// The file that makes a folder a chart.
const NAME: &str = "Chart.yaml";
/// What of a chart holds templates, or values for them.
const PARTS: [&str; 3] = ["charts/", "templates/", "values"];

/// What to say of a document that is the head of a chart.
pub(super) fn told(path: &Path, document: &Value) -> Option<String> {
    let is_one = path.file_name().is_some_and(|name| name == NAME)
        && document.get("kind").is_none()
        && document.get("name").is_some();
    let folder = path.parent().filter(|_| is_one)?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Some(format!(
        "this folder is a Helm chart, and its templates are no objects: give what it makes: `helm template {} | fairway \
         check -`",
        folder.display()
    ))
}

/// Of places in files, as reports have them, the beginnings of those about which the report of a chart says enough.
pub fn parts_of_chart(place: &str) -> impl Iterator<Item = String> {
    let folder = place.split_once(&format!("{NAME}:")).map(|(folder, _)| folder);
    let folder = folder.filter(|folder| folder.is_empty() || folder.ends_with('/'));
    folder.into_iter().flat_map(|folder| PARTS.map(|part| format!("{folder}{part}")))
}
