//! A folder of objects, as `--manifests` reads it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};

use crate::fixtures::NAMESPACE;

/// When every object was created that does not say so itself.
const CREATED: &str = "2026-01-01T00:00:00Z";

/// Kinds that live in no namespace.
const CLUSTER_SCOPED: [&str; 2] = ["Namespace", "IngressClass"];

/// One file for each object, in a folder of its own that is removed when this is dropped.
#[derive(Debug)]
pub struct Manifests {
    folder: PathBuf,
}

impl Manifests {
    /// An empty folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("fairway-manifests-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes an object, in place of an older one of that name; it appears whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn apply(&self, object: &Value) -> io::Result<()> {
        let mut object = object.clone();
        if !CLUSTER_SCOPED.contains(&text(&object["kind"]))
            && object["metadata"]["namespace"].is_null()
        {
            object["metadata"]["namespace"] = json!(NAMESPACE);
        }
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = json!(CREATED);
        }
        let path = self.path(&object);
        let unfinished = path.with_extension("tmp");
        fs::write(&unfinished, object.to_string())?;
        fs::rename(unfinished, path)
    }

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn delete(&self, object: &Value) -> io::Result<()> {
        match fs::remove_file(self.path(object)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, object: &Value) -> PathBuf {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or(NAMESPACE);
        // JSON is YAML, and characters that no file name can have are no file name's problem here.
        let name =
            format!("{}.{namespace}.{}.yaml", text(&object["kind"]), text(&metadata["name"]));
        self.folder.join(name.replace('/', "_"))
    }
}

impl Drop for Manifests {
    fn drop(&mut self) {
        // A folder that is left behind in the temporary folder hurts nobody.
        let _left = fs::remove_dir_all(&self.folder);
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_with_namespace_and_date_and_go_again() {
        let manifests = Manifests::new().unwrap();
        let object = json!({"kind": "Service", "metadata": {"name": "a"}});
        manifests.apply(&object).unwrap();
        let files: Vec<_> =
            fs::read_dir(manifests.folder()).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files, [manifests.folder().join("Service.demo.a.yaml")]);
        let written: Value = serde_json::from_str(&fs::read_to_string(&files[0]).unwrap()).unwrap();
        assert_eq!(written["metadata"]["namespace"], "demo");
        assert_eq!(written["metadata"]["creationTimestamp"], CREATED);
        manifests.delete(&object).unwrap();
        manifests.delete(&object).unwrap();
        let folder = manifests.folder().to_owned();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        drop(manifests);
        assert!(!folder.exists());
    }
}
