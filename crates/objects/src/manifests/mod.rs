//! Objects from texts of YAML and JSON, and what is wrong with the rest of them.

mod chart;
mod document;
mod encoding;
mod files;
mod kustomization;
mod parse;

pub use chart::parts_of_chart;
pub use encoding::text_of;
pub use files::{FileId, Files};
pub use kustomization::is_kustomization;
pub use parse::{Parsed, is_a_label, is_a_name, parse};

use crate::Snapshot;
use std::path::Path;

/// The Snapshot from texts that are at hand, each with the path that its mistakes are reported under (and whose
/// extension says whether it is JSON). Where two hold the same object, the later path counts.
pub fn snapshot_of<'a>(texts: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Snapshot {
    let mut files = Files::default();
    for (path, text) in texts {
        let file = FileId { root: 0, path: path.to_owned() };
        files.set(&file, parse(path, text));
    }
    files.store().snapshot().clone()
}
