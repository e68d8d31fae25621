//! Which process stands for an image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A program with its first arguments.
#[derive(Clone, Debug)]
pub struct Image {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
}

impl Image {
    /// An image whose entry point is `program`.
    pub fn new(program: &Path) -> Self {
        Self { program: program.to_path_buf(), args: Vec::new() }
    }

    /// An image without entry point: the first argument of a container is the path that `program` has there.
    pub fn started_by_arguments(program: &Path) -> Result<Self> {
        let program = program.to_str().context("a path that is text")?;
        let start = "shift; exec \"$0\" \"$@\"";
        Ok(Self::new(Path::new("/bin/sh")).args(["-c", start, program]))
    }

    /// The same image with further arguments before those of the container.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
}

/// The images that the Node can run, by name without tag and digest.
#[derive(Clone, Debug, Default)]
pub struct Images(BTreeMap<String, Image>);

impl Images {
    /// Adds an image under a name without tag.
    #[must_use]
    pub fn with(mut self, name: &str, image: Image) -> Self {
        self.0.insert(name.to_owned(), image);
        self
    }

    /// Finds an image by what a container calls it, so that a new tag of an image needs no new entry.
    pub(super) fn find(&self, reference: &str) -> Option<&Image> {
        let name = reference.split('@').next().unwrap_or(reference);
        let tag = name.rfind(':').filter(|colon| !name[*colon..].contains('/'));
        self.0.get(&name[..tag.unwrap_or(name.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_found_whatever_its_tag() {
        let images = Images::default().with("registry.test:5000/web", Image::new(Path::new("web")));
        for reference in ["", ":v2", "@sha256:00", ":v2@sha256:00"] {
            assert!(images.find(&format!("registry.test:5000/web{reference}")).is_some());
        }
        assert!(images.find("registry.test:5000/other").is_none());
    }
}
