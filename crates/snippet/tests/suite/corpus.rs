//! Snippets of the kinds that people write: what becomes of each, and how many are native.

use snippet::{Context, Kind, Mistake, Names, Snippet};
use std::collections::BTreeMap;
use std::path::Path;

/// One file of the corpus.
struct Entry {
    file: String,
    place: Context,
    expected: String,
    declared: String,
    text: String,
}

fn entries() -> Vec<Entry> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files.iter().map(|file| entry(file)).collect()
}

fn entry(file: &Path) -> Entry {
    let whole = std::fs::read_to_string(file).expect("a file of the corpus");
    let (head, text) = whole.split_once("\n\n").expect("a head and a snippet");
    let value = |key: &str| {
        let start = format!("# {key}: ");
        head.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default().to_owned()
    };
    let place = match value("place").as_str() {
        "location" => Context::Location,
        "server" => Context::Server,
        "auth" => Context::Auth,
        "http" => Context::Http,
        "main" => Context::Main,
        "stream" => Context::Stream,
        other => panic!("{}: {other}", file.display()),
    };
    let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
    let (expected, declared) = (value("expect"), value("declared elsewhere"));
    Entry { file: name, place, expected, declared, text: text.to_owned() }
}

fn understand(entry: &Entry) -> Result<(), Vec<Mistake>> {
    let snippet = Snippet::parse(entry.place, &entry.text).map_err(|mistake| vec![mistake])?;
    let mut names = Names::default();
    snippet.declare(&mut names);
    for name in entry.declared.split_ascii_whitespace() {
        let other = Snippet::parse(Context::Server, &format!("set {name} x;")).expect("a name");
        other.declare(&mut names);
    }
    snippet.understand(&names).map(|_| ())
}

#[test]
fn every_snippet_of_the_corpus_is_what_it_says_it_is() {
    let mut wrong = Vec::new();
    for entry in entries() {
        let found = match understand(&entry) {
            Ok(()) => "native".to_owned(),
            Err(mistakes) => {
                let first = &mistakes[0];
                let kind = match first.kind {
                    Kind::Refused => "refused",
                    Kind::NeedsNginx => "needs-nginx",
                };
                format!("{kind} {}:{}", first.at.line, first.at.column)
            }
        };
        if found != entry.expected {
            let said = understand(&entry).err().unwrap_or_default();
            let said: Vec<String> = said.iter().map(ToString::to_string).collect();
            wrong.push(format!(
                "{}: {found}, not {}: {}",
                entry.file,
                entry.expected,
                said.join("; ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn most_of_the_corpus_is_native() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries() {
        let kind = entry.expected.split(' ').next().unwrap_or_default().to_owned();
        *counts.entry(kind).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let native = counts["native"];
    assert!(all >= 150, "{counts:?}");
    assert!(native * 100 >= all * 95, "{counts:?}");
}
