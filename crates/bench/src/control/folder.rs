//! Objects from a folder: one file for each Ingress, replaced as an editor replaces it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{STAYS, Source, host};
use crate::peers::{ingress, surroundings};

/// A folder for `--manifests`.
pub(crate) struct Folder {
    path: PathBuf,
    filled: usize,
}

impl Folder {
    /// A folder that has the Service and its endpoint, and no Ingress yet.
    pub(crate) fn create(path: &Path, upstream: SocketAddr) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("create {}", path.display()))?;
        let folder = Self { path: path.to_path_buf(), filled: 0 };
        let list = json!({"apiVersion": "v1", "kind": "List", "items": surroundings(upstream)});
        folder.write("surroundings.json", &list)?;
        Ok(folder)
    }

    fn write(&self, name: &str, object: &Value) -> Result<()> {
        let text = serde_json::to_vec_pretty(object).context("an object as JSON")?;
        // Written beside and moved: no reader ever sees half a file.
        let beside = self.path.with_extension("new");
        fs::write(&beside, text).context("write a manifest")?;
        fs::rename(&beside, self.path.join(name)).context("move a manifest to its place")
    }

    fn put(&self, number: usize, path: &str) -> Result<()> {
        let object = ingress(&host(number), &[STAYS, path]);
        self.write(&format!("ingress-{number:05}.json"), &object)
    }
}

impl Source for Folder {
    fn name(&self) -> &'static str {
        "manifests"
    }

    fn flags(&self) -> Vec<String> {
        vec!["--manifests".to_owned(), self.path.display().to_string()]
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        for number in self.filled..count {
            self.put(number, "/first")?;
        }
        self.filled = self.filled.max(count);
        Ok(())
    }

    fn change(&mut self, number: usize, path: &str) -> Result<()> {
        self.put(number, path)
    }
    fn is_alone(&self) -> bool {
        true
    }
}
