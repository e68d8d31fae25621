//! Whatever an Ingress says in its annotations, it is translated, always to the same, and no other Ingress changes.
#![no_main]

use objects::{ObjectKey, Snapshot};
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use translate::{Options, annotation_rows, translate};

const OBJECTS: &str = include_str!("../objects.yaml");
static BASE: LazyLock<Snapshot> =
    LazyLock::new(|| objects::snapshot_of([(Path::new("base.yaml"), OBJECTS)]));
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let prefix = Options::default().annotations_prefix;
    annotation_rows().iter().map(|row| format!("{prefix}/{}", row.name)).collect()
});

fuzz_target!(|bytes: &[u8]| {
    let mut snapshot = BASE.clone();
    let key = ObjectKey::new("demo", "fuzzed");
    let mut ingress = (*snapshot.ingresses[&key]).clone();
    for pair in bytes.split(|byte| *byte == 0) {
        let [name, value @ ..] = pair else { continue };
        let name = NAMES[usize::from(*name) % NAMES.len()].clone();
        ingress.meta.annotations.insert(name, String::from_utf8_lossy(value).into_owned());
    }
    snapshot.ingresses.insert(key, Arc::new(ingress));
    let options = Options::default();
    let made = translate(&snapshot, &options);
    // What is said about a mistake ends no line of a log.
    for problem in made.problems.iter() {
        assert!(!problem.to_string().chars().any(char::is_control), "{problem:?}");
    }
    let first = made.configuration;
    assert_eq!(first, translate(&snapshot, &options).configuration);
    let plain = translate(&BASE, &options).configuration;
    let other = model::ServerName::new("other.test");
    assert_eq!(first.servers.get(&other), plain.servers.get(&other));
});
