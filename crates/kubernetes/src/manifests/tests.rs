//! Real folders, really watched.

use super::*;
use objects::{ConfigMap, ObjectKey, Snapshot, snapshot_of};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

fn map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: \"{value}\"}}\n"
    )
}

fn found(snapshot: &Snapshot) -> Vec<String> {
    let maps = snapshot.config_maps.values();
    maps.map(|map| format!("{}={}", map.meta.key.name, map.data["value"])).collect()
}

fn problems(snapshot: &Snapshot) -> Vec<String> {
    let malformed = snapshot.malformed.values();
    malformed.map(|found| format!("{}: {}", found.key.name, found.message)).collect()
}

fn object(snapshot: &Snapshot, name: &str) -> Arc<ConfigMap> {
    snapshot.config_maps[&ObjectKey::new("default", name)].clone()
}

struct Watched {
    folder: TempDir,
    feed: Feed,
}

impl Watched {
    async fn with(files: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("writes");
        }
        let feed = manifests(vec![folder.path().to_owned()]).await.expect("a feed");
        Self { folder, feed }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("writes");
    }

    fn now(&self) -> Snapshot {
        self.feed.snapshots.borrow().clone()
    }

    async fn until(&mut self, what: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let waiting = self.feed.snapshots.wait_for(|snapshot| what(snapshot));
        if let Ok(snapshot) = timeout(Duration::from_secs(60), waiting).await {
            return snapshot.expect("the feed goes on").clone();
        }
        panic!("it stays {:?} {:?}", found(&self.now()), problems(&self.now()));
    }

    async fn until_found(&mut self, expected: &[&str]) -> Snapshot {
        self.until(|snapshot| found(snapshot) == expected).await
    }
}

#[tokio::test]
async fn the_first_snapshot_is_complete_and_has_classes() {
    let one = tempfile::tempdir().unwrap();
    let two = tempfile::tempdir().unwrap();
    fs::create_dir_all(one.path().join("deep/deeper")).unwrap();
    fs::write(one.path().join("deep/deeper/a.yml"), map("a", "1")).unwrap();
    fs::write(one.path().join(".hidden.yaml"), map("hidden", "1")).unwrap();
    fs::write(one.path().join("notes.txt"), "kind: [").unwrap();
    fs::write(two.path().join("only.yaml"), map("b", "1")).unwrap();
    fs::write(two.path().join("other.yaml"), map("c", "1")).unwrap();
    let feed = manifests(vec![one.path().into(), two.path().join("only.yaml")]).await.unwrap();
    let snapshot = feed.snapshots.borrow().clone();
    assert_eq!(found(&snapshot), ["a=1", "b=1"]);
    assert_eq!(snapshot.classes.map(|classes| classes.len()), Some(0));
    assert!(snapshot.malformed.is_empty());
}

#[tokio::test]
async fn a_folder_that_is_too_deep_is_told_of_like_a_file_that_cannot_be_read() {
    let root = tempfile::tempdir().unwrap();
    let deep = |levels: usize| root.path().join(vec!["d"; levels].join("/"));
    fs::create_dir_all(deep(34)).unwrap();
    fs::write(deep(32).join("read.yaml"), map("read", "1")).unwrap();
    fs::write(deep(34).join("unread.yaml"), map("unread", "1")).unwrap();
    let feed = manifests(vec![root.path().into()]).await.unwrap();
    let snapshot = feed.snapshots.borrow().clone();
    assert_eq!(found(&snapshot), ["read=1"]);
    let told: Vec<String> = snapshot.malformed.values().map(|fault| format!("{fault:?}")).collect();
    assert!(told.len() == 1 && told[0].contains("cannot be read"), "{told:?}");
}

#[tokio::test]
async fn writing_renaming_into_place_and_deleting_are_followed() {
    let mut watched = Watched::with(&[("a.yaml", map("a", "1")), ("z.yaml", map("z", "1"))]).await;
    let untouched = object(&watched.now(), "z");
    watched.write("a.yaml", &map("a", "2"));
    watched.until_found(&["a=2", "z=1"]).await;
    watched.write("a.yaml.tmp", &map("a", "3"));
    fs::rename(watched.path("a.yaml.tmp"), watched.path("a.yaml")).unwrap();
    watched.until_found(&["a=3", "z=1"]).await;
    watched.write(
        "b.json",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"value":"1"}}"#,
    );
    watched.until_found(&["a=3", "b=1", "z=1"]).await;
    fs::remove_file(watched.path("a.yaml")).unwrap();
    let last = watched.until_found(&["b=1", "z=1"]).await;
    assert!(Arc::ptr_eq(&untouched, &object(&last, "z")));
}

#[tokio::test]
async fn a_new_folder_is_followed_with_what_is_in_it_and_a_removed_one_is_gone() {
    let mut watched = Watched::with(&[]).await;
    fs::create_dir_all(watched.path("x/y")).unwrap();
    watched.write("x/y/a.yaml", &map("a", "1"));
    watched.until_found(&["a=1"]).await;
    watched.write("x/y/a.yaml", &map("a", "2"));
    watched.until_found(&["a=2"]).await;
    fs::rename(watched.path("x"), watched.path("w")).unwrap();
    watched.write("w/y/b.yaml", &map("b", "1"));
    watched.until_found(&["a=2", "b=1"]).await;
    fs::remove_dir_all(watched.path("w")).unwrap();
    watched.until_found(&[]).await;
}

#[tokio::test]
async fn a_file_that_broke_keeps_its_last_good_content_until_it_is_mended() {
    let both = format!("{}---\n{}", map("a", "1"), map("b", "1"));
    let mut watched = Watched::with(&[("a.yaml", both)]).await;
    watched.write("a.yaml", &format!("{}---\nkind: [\n", map("a", "2")));
    let broken = watched.until_found(&["a=2", "b=1"]).await;
    let report = problems(&broken);
    assert_eq!(report.len(), 1);
    let place = format!("{}:", watched.path("a.yaml").display());
    assert!(report[0].starts_with(&place), "{report:?}");
    watched.write(
        "a.yaml",
        &format!(
            "{}---\n{}",
            map("a", "3"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: 7\n"
        ),
    );
    let broken = watched.until_found(&["a=3", "b=1"]).await;
    assert!(problems(&broken)[0].contains("ConfigMap default/b"), "{:?}", problems(&broken));
    watched.write("a.yaml", &map("a", "4"));
    let mended = watched.until_found(&["a=4"]).await;
    assert_eq!(problems(&mended), [""; 0]);
}

#[tokio::test]
async fn the_later_file_counts_and_the_other_one_is_reported() {
    let mut watched = Watched::with(&[("a.yaml", map("x", "1")), ("b.yaml", map("x", "2"))]).await;
    let first = watched.now();
    assert_eq!(found(&first), ["x=2"]);
    let expected = format!(
        "{}:1:1: ConfigMap default/x is also in {}, which counts because it comes later; \
         remove one of the two",
        watched.path("a.yaml").display(),
        watched.path("b.yaml").display()
    );
    assert_eq!(problems(&first), [expected]);
    fs::remove_file(watched.path("b.yaml")).unwrap();
    let last = watched.until_found(&["x=1"]).await;
    assert_eq!(problems(&last), [""; 0]);
    watched.write("a.yaml", &format!("{}---\n{}", map("x", "3"), map("x", "4")));
    let twice = watched.until_found(&["x=4"]).await;
    assert!(problems(&twice)[0].contains("also in line 6 of this file"), "{:?}", problems(&twice));
}

#[tokio::test]
async fn what_is_said_twice_alike_is_no_matter_and_capital_letters_end_a_name_as_well() {
    let twice = map("x", "1");
    let json = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}, "data": {"value": "2"}}"#;
    let files =
        [("a.YAML", format!("{twice}---\n{twice}")), ("b.Yml", twice), ("c.JSON", json.to_owned())];
    let watched = Watched::with(&files).await;
    assert_eq!(found(&watched.now()), ["x=1", "y=2"]);
    assert_eq!(problems(&watched.now()), [""; 0]);
}

#[tokio::test]
async fn a_kustomization_comes_and_goes_and_what_it_names_as_patches_counts_without_it() {
    let files = [("a.yaml", map("x", "1")), ("z.yaml", map("x", "2"))];
    let mut watched = Watched::with(&files).await;
    assert_eq!(found(&watched.now()), ["x=2"]);
    watched.write("kustomization.yaml", "resources: [a.yaml]\npatches: [{path: z.yaml}]\n");
    let with = watched.until_found(&["x=1"]).await;
    assert!(problems(&with)[0].contains("it asks for patches"), "{:?}", problems(&with));
    assert_eq!(problems(&with).len(), 1);
    watched.write("kustomization.yaml", "resources: [a.yaml, z.yaml, b.yaml]\n");
    let without = watched.until_found(&["x=2"]).await;
    let told = problems(&without);
    assert!(told.iter().any(|told| told.contains("resources name b.yaml")), "{told:?}");
    watched.write("b.yaml", &map("b", "3"));
    let whole = watched.until_found(&["b=3", "x=2"]).await;
    assert_eq!(problems(&whole).len(), 1, "x is there twice: {:?}", problems(&whole));
}

#[tokio::test]
async fn a_mounted_config_map_is_swapped_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, value: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("a.yaml"), map("a", value)).unwrap();
        symlink(name, folder.path().join("..data_tmp")).unwrap();
        fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
    };
    version("..1", "1");
    symlink("..data/a.yaml", folder.path().join("a.yaml")).unwrap();
    let feed = manifests(vec![folder.path().to_owned()]).await.unwrap();
    let mut watched = Watched { folder: tempfile::tempdir().unwrap(), feed };
    assert_eq!(found(&watched.now()), ["a=1"]);
    version("..2", "2");
    watched.until_found(&["a=2"]).await;
}

#[tokio::test]
async fn a_folder_that_goes_away_keeps_counting_until_it_is_back() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("manifests");
    let write = |value: &str| {
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.yaml"), map("a", value)).unwrap();
    };
    write("1");
    let feed = manifests(vec![folder.clone()]).await.unwrap();
    let mut watched = Watched { folder: tempfile::tempdir().unwrap(), feed };
    fs::rename(&folder, parent.path().join("elsewhere")).unwrap();
    let lost = watched.until(|snapshot| !snapshot.malformed.is_empty()).await;
    assert_eq!(found(&lost), ["a=1"]);
    write("2");
    let back = watched.until_found(&["a=2"]).await;
    assert_eq!(problems(&back), [""; 0]);
}

#[tokio::test]
async fn a_single_file_is_followed_also_through_an_editor_that_replaces_it() {
    let mut watched = Watched::with(&[]).await;
    watched.write("a.yaml", &map("a", "1"));
    watched.feed = manifests(vec![watched.path("a.yaml")]).await.unwrap();
    watched.write("b.yaml", &map("b", "1"));
    watched.write("a.yaml~", &map("a", "2"));
    fs::rename(watched.path("a.yaml~"), watched.path("a.yaml")).unwrap();
    watched.until_found(&["a=2"]).await;
}

#[tokio::test]
async fn a_missing_folder_and_no_folder_at_all_are_errors_with_a_remedy() {
    let missing = Path::new("/nonexistent/manifests");
    let error = manifests(vec![missing.to_owned()]).await.expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "cannot read the manifests in /nonexistent/manifests: No such file or directory \
         (os error 2); create it, make it readable, or name another"
    );
    assert!(matches!(manifests(Vec::new()).await, Err(Error::NoManifests)));
}

#[tokio::test]
async fn dropping_the_feed_ends_its_task() {
    let watched = Watched::with(&[]).await;
    let mut snapshots = watched.feed.snapshots.clone();
    drop(watched.feed);
    let ended = timeout(Duration::from_secs(60), snapshots.changed()).await.expect("it ends");
    assert!(ended.is_err());
}

#[test]
fn texts_at_hand_are_a_snapshot_without_any_folder() {
    let (one, two) = (map("a", "1"), map("b", "2"));
    let texts = [("one.yaml", one.as_str()), ("two.yaml", two.as_str()), ("three.json", "{")];
    let snapshot = snapshot_of(texts.map(|(path, text)| (Path::new(path), text)));
    assert_eq!(found(&snapshot), ["a=1", "b=2"]);
    assert_eq!(
        problems(&snapshot),
        [
            "three.json:1:1: EOF while parsing an object; the file ends in the middle of it: save it once more"
        ]
    );
    assert_eq!(snapshot.classes.map(|classes| classes.len()), Some(0));
}
