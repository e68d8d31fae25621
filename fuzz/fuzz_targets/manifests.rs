//! Whatever stands in a file, it is read, what is wrong with it is said, and the same file means the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

fn read(file: &str) -> kubernetes::Snapshot {
    let path = FOLDER.path().join(file);
    RUNTIME.block_on(async {
        let feed = kubernetes::manifests(vec![path]).await.expect("a file that is there");
        let snapshot = feed.snapshots.borrow().clone();
        snapshot
    })
}

fuzz_target!(|bytes: &[u8]| {
    let [kind, text @ ..] = bytes else { return };
    let file = if kind % 4 == 0 { "fuzz.json" } else { "fuzz.yaml" };
    std::fs::write(FOLDER.path().join(file), text).expect("a place to write");
    let first = format!("{:?}", read(file));
    if kind % 16 == 1 {
        assert_eq!(first, format!("{:?}", read(file)));
    }
});
