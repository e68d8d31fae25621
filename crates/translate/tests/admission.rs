//! The recorded answers of ingress-nginx's admission webhook: `tests/exchanges/admission/<case>/`. The last object of
//! `in.yaml` is reviewed, the objects before it exist.

use objects::{ObjectKey, Snapshot, snapshot_of};
use serde::Deserialize;
use std::fs;
use std::path::Path;
use translate::{Options, review, translate};

const CLASS: &str = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
    spec: {controller: k8s.io/ingress-nginx}\n";

/// Cases that we answer otherwise on purpose, with the row of compat/decisions.md; all of them are allowed here.
const ALLOWED_HERE: &[&str] = &["an-empty-blocklist-word-refuses-every-annotation"];

/// Refused as recorded, but without a word on whose the other Ingress is: anybody may ask.
const WITHOUT_THE_OWNER: &[&str] = &["a-duplicate-in-another-namespace"];

#[derive(Deserialize)]
struct Recorded {
    allowed: bool,
    #[serde(default)]
    message: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    flags: Vec<String>,
}

#[test]
fn reviews_are_answered_as_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/exchanges/admission");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(root).expect("the recordings are there") {
        let folder = entry.expect("an entry").path();
        count += 1;
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if let Err(why) = follows(&folder, ALLOWED_HERE.contains(&name.as_str())) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(count >= 50, "only {count} cases were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn follows(folder: &Path, allowed_here: bool) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mut recorded: Recorded = serde_saphyr::from_str(&read("review.yaml")).expect("a recording");
    if folder
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| WITHOUT_THE_OWNER.contains(&name))
    {
        let (before, owner) = recorded.message.split_once("ingress ").expect("it names an Ingress");
        assert!(owner.starts_with("ingress-nginx/"), "of another namespace");
        recorded.message = format!("{before}another namespace");
    }
    let settings: Settings = match read("case.yaml") {
        text if text.trim().is_empty() => Settings::default(),
        text => serde_saphyr::from_str(&text).expect("settings"),
    };
    let options = options(&settings.flags);
    let text = read("in.yaml");
    let (before, reviewed) = text.rsplit_once("\n---\n").unwrap_or(("", &text));
    let snapshot = snapshot(before);
    let ingress = snapshot_of([(Path::new("in.yaml"), reviewed)]);
    let ingress = ingress.ingresses.values().next().expect("an Ingress is reviewed");
    let served = translate(&snapshot, &options).configuration;
    let answer = review(ingress, &snapshot, &served, &options);
    let expected = (recorded.allowed || allowed_here, recorded.message.as_str());
    let is_said = match (&answer.refusal, expected) {
        (None, (allowed, _)) => allowed,
        (Some(refusal), (false, message)) => refusal
            .strip_prefix(message)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('\n')),
        (Some(_), (true, _)) => false,
    };
    if is_said && answer.warnings == recorded.warnings {
        return Ok(());
    }
    Err(format!("wanted {expected:?} {:?}, got {answer:?}", recorded.warnings))
}

fn snapshot(objects: &str) -> Snapshot {
    snapshot_of([(Path::new("class.yaml"), CLASS), (Path::new("in.yaml"), objects)])
}

fn options(flags: &[String]) -> Options {
    let config_map = Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller"));
    let mut options = Options { config_map, ..Options::default() };
    for flag in flags {
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("--disable-catch-all", _) => options.disable_catch_all = true,
            ("--annotations-prefix", prefix) => options.annotations_prefix = prefix.to_owned(),
            ("--watch-namespace", name) => options.watch_namespace = Some(name.to_owned()),
            other => panic!("the test does not know {other:?}"),
        }
    }
    options
}
