//! Objects from texts of YAML and JSON, and what is wrong with the rest of them.

mod document;
mod encoding;
mod files;
mod parse;

pub use encoding::text_of;
pub use files::{FileId, Files};
pub use parse::{Parsed, parse};

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
