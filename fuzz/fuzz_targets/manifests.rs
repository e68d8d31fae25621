//! Whatever stands in a file, it is read and translated, and it means the same every time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use translate::{Options, translate};

fuzz_target!(|bytes: &[u8]| {
    let [kind, text @ ..] = bytes else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    let path = Path::new(if kind % 4 == 0 { "fuzz.json" } else { "fuzz.yaml" });
    let snapshot = objects::snapshot_of([(path, text)]);
    assert_eq!(snapshot, objects::snapshot_of([(path, text)]));
    let options = Options::default();
    let first = translate(&snapshot, &options);
    assert_eq!(first.configuration, translate(&snapshot, &options).configuration);
});
