//! Kustomizations: they are not applied, so what they change or fetch is not read, and that is told.

use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The group of kustomizations and their components.
const GROUP: &str = "kustomize.config.k8s.io/";
/// The files in which a kustomization is one without saying so.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The fields that name files and folders with objects.
const RESOURCES: [&str; 2] = ["resources", "bases"];
/// The fields that have patches, each as its path or with it.
const PATCHES: [&str; 3] = ["patches", "patchesJson6902", "patchesStrategicMerge"];
/// The fields that change nothing which is read: heads, what is about Pods alone, and manners of the program.
const HARMLESS: [&str; 11] = [
    "apiVersion",
    "buildMetadata",
    "crds",
    "generatorOptions",
    "images",
    "kind",
    "metadata",
    "openapi",
    "replicas",
    "sortOptions",
    "validators",
];
/// Fields that are told.
const MOST: usize = 5;

/// What a kustomization asks for, as far as it is of interest here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kustomization {
    /// The fields that change objects, or bring more of them.
    changes: Vec<String>,
    /// Where it names objects, as it is written.
    resources: Vec<String>,
    /// The files that hold parts of objects, as they are written.
    patches: Vec<String>,
}

/// Whether a file is a kustomization by its name.
pub fn is_kustomization(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| NAMES.contains(&name))
}

impl Kustomization {
    /// What a document says, if it is a kustomization.
    pub(super) fn read(path: &Path, document: &Value) -> Option<Self> {
        let fields = document.as_object()?;
        let is_one = match fields.get("apiVersion").and_then(Value::as_str) {
            Some(version) => version.starts_with(GROUP),
            None => is_kustomization(path),
        };
        is_one.then(|| Self {
            changes: changes(fields),
            resources: resources(fields),
            patches: patches(fields),
        })
    }

    /// The files that hold no objects, but what is to be changed in some.
    pub(super) fn patches(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        self.patches.iter().map(|name| plainly(&folder.join(name)))
    }

    /// What is lost by not applying it, with the remedy; nothing where all that it does is to name files that are read.
    pub(super) fn loss(&self, path: &Path, is_read: impl Fn(&Path) -> bool) -> Option<String> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let missing = || {
            let names = self.resources.iter();
            names.map(String::as_str).find(|name| !is_read(&plainly(&folder.join(name))))
        };
        let what = if !self.changes.is_empty() {
            let fields: Vec<_> = self.changes.iter().take(MOST).map(String::as_str).collect();
            format!("it asks for {}, which is not done here", fields.join(", "))
        } else {
            format!("its resources name {}, which is not among the files that are read", missing()?)
        };
        let folder = match path.extension().is_none() && !is_kustomization(path) {
            // It came through a pipe.
            true => "DIR".into(),
            false if folder.as_os_str().is_empty() => ".".into(),
            false => folder.display().to_string(),
        };
        Some(format!(
            "this kustomization is not applied: {what}; give what it makes: `kustomize build {folder} | fairway check \
             -` (or `kubectl kustomize {folder}`)"
        ))
    }
}

fn changes(fields: &Map<String, Value>) -> Vec<String> {
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    let is_change = |(name, value): &(&String, &Value)| {
        let name = name.as_str();
        !HARMLESS.contains(&name) && !RESOURCES.contains(&name) && says_something(value)
    };
    fields.iter().filter(is_change).map(|(name, _)| name.clone()).collect()
}

fn resources(fields: &Map<String, Value>) -> Vec<String> {
    let lists = RESOURCES.iter().filter_map(|name| fields.get(*name)?.as_array());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    lists.flatten().map(text).collect()
}

fn patches(fields: &Map<String, Value>) -> Vec<String> {
    let lists = PATCHES.iter().filter_map(|name| fields.get(*name)?.as_array()).flatten();
    // One that is written out has several lines.
    let path = |patch: &Value| patch.get("path").unwrap_or(patch).as_str().map(str::to_owned);
    lists.filter_map(path).filter(|path| !path.contains('\n')).collect()
}

/// A path without the detours in it.
pub(super) fn plainly(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(plain.components().next_back(), Some(Component::Normal(_))) =>
            {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use crate::manifests::snapshot_of;
    use std::path::Path;

    const OBJECT: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}";

    /// What is told of a kustomization beside these files.
    fn told(path: &str, text: &str, others: &[&str]) -> Vec<String> {
        let others = others.iter().map(|path| (Path::new(*path), OBJECT));
        let all = others.chain([(Path::new(path), text)]);
        let snapshot = snapshot_of(all);
        let malformed = snapshot.malformed.values();
        malformed.map(|found| format!("{} {}", found.key.name, found.message)).collect()
    }

    #[test]
    fn a_kustomization_that_only_names_files_that_are_read_loses_nothing() {
        let plain =
            "resources: [a.yaml, ./deep]\nimages: [{name: a, newTag: b}]\nnamePrefix: \"\"\n";
        let head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";
        let flux = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: a}, spec: {}}";
        let files = ["x/a.yaml"];
        assert_eq!(told("x/kustomization.yaml", "resources: [a.yaml]", &files), [""; 0]);
        assert_eq!(told("x/y/any.yaml", &format!("{head}resources: [../a.yaml]"), &files), [""; 0]);
        assert_eq!(told("./x/Kustomization", "resources: [../x]", &files), [""; 0]);
        assert_eq!(told("x/kustomization.yaml", plain, &["x/a.yaml"]).len(), 1, "no ./deep");
        assert_eq!(told("x/kustomization.yml", flux, &files), [""; 0]);
        assert_eq!(told("x/kustomization.yaml", "", &files), [""; 0]);
        assert_eq!(told("x/values.yaml", "namePrefix: prod-", &files), [""; 0], "no kustomization");
    }

    #[test]
    fn a_patch_is_no_object() {
        let of = |kustomization: &str| {
            let texts = [
                ("x/a.yaml", OBJECT),
                ("x/kustomization.yaml", kustomization),
                ("x/z.yaml", OBJECT),
                (
                    "z.yaml",
                    "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {a: b}}}",
                ),
            ];
            let texts = texts.map(|(path, text)| (Path::new(path), text));
            snapshot_of(texts).malformed.len()
        };
        assert_eq!(of("resources: [a.yaml]"), 2, "three have the same object");
        for patches in [
            "patchesStrategicMerge: [a.yaml, ./z.yaml]",
            "patches: [{path: a.yaml}, {path: z.yaml}]",
        ] {
            assert_eq!(of(patches), 1, "only that it is not applied: {patches}");
        }
    }

    #[test]
    fn what_a_kustomization_changes_or_fetches_is_not_read() {
        let remedy = "`kustomize build x | fairway check -` (or `kubectl kustomize x`)";
        let of = |text: &str| {
            let told = told("x/kustomization.yaml", text, &["x/a.yaml"]);
            let [told] = told.as_slice() else { panic!("{told:?}") };
            assert!(
                told.starts_with("x/kustomization.yaml:1:1 ") && told.ends_with(remedy),
                "{told}"
            );
            told.clone()
        };
        for field in ["namePrefix: a-", "patches: [{path: p.yaml}]", "commonAnnotations: {a: b}"] {
            let name = field.split(':').next().expect("a name");
            let told = of(&format!("{field}\nresources: [a.yaml]"));
            assert!(told.contains(&format!("it asks for {name}, which")), "{told}");
        }
        for resource in ["../base", "b.yaml", "https://git.example/it?ref=main", "github.com/a/b"] {
            let told = of(&format!("resources: [a.yaml, '{resource}']"));
            assert!(told.contains(&format!("resources name {resource}, which")), "{told}");
        }
        let piped =
            told("standard input", "apiVersion: kustomize.config.k8s.io/v1\nnamespace: a", &[]);
        assert!(piped[0].contains("`kustomize build DIR |"), "{piped:?}");
    }
}
