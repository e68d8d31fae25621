//! Pages of `docs/compat` that comments and cases cite, as `compat/behaviour.md section 12` or `decisions.md row 5a`:
//! the page is there, and so is what is cited of it.

use crate::tree::Tree;
use std::collections::BTreeMap;

/// Where the pages are.
const FOLDER: &str = "docs/compat/";
/// What cites them: code, pages, and what is said about cases.
const CITING: [&str; 7] = [".rs", ".lua", ".go", ".md", ".tsv", ".toml", "/case.yaml"];

/// A page and a place in it, as somebody cites them.
#[derive(Debug, PartialEq, Eq)]
struct Citation {
    page: String,
    /// A heading's or a row's number; none for the whole page.
    place: Option<String>,
}

/// Citations that lead nowhere.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let pages: BTreeMap<&str, String> = tree
        .files()
        .filter_map(|file| Some((file.strip_prefix(FOLDER)?, tree.text(file)?)))
        .collect();
    assert!(pages.len() > 3, "the pages of {FOLDER} were not found");
    let names: Vec<&str> = pages.keys().copied().collect();
    let mut complaints = Vec::new();
    // This file has examples of its own.
    let citing = |file: &&str| {
        CITING.iter().any(|end| file.ends_with(end)) && !file.starts_with("tests/tidy/")
    };
    for file in tree.files().filter(citing) {
        for Citation { page, place } in citations(&tree.text(file).unwrap_or_default(), &names) {
            let text = pages.get(page.as_str());
            match (text, place) {
                (None, _) => complaints.push(format!("{file}: there is no {FOLDER}{page}")),
                (Some(text), Some(place)) if !has(text, &place) => {
                    complaints
                        .push(format!("{file}: {FOLDER}{page} has no section or row {place}"));
                }
                _ => {}
            }
        }
    }
    complaints
}

/// Whether a page has a heading `## 12. …`, or a row whose first cell names it.
fn has(page: &str, place: &str) -> bool {
    page.lines().any(|line| {
        let cell = line.strip_prefix("| ").and_then(|row| row.split(" |").next());
        line.strip_prefix("## ").is_some_and(|heading| heading.starts_with(&format!("{place}. ")))
            || cell.is_some_and(|cell| cell.split(", ").any(|number| number == place))
    })
}

/// What a text cites, its lines and the signs of comments taken for spaces.
fn citations(text: &str, pages: &[&str]) -> Vec<Citation> {
    let is_sign = |word: &&str| !matches!(*word, "//" | "///" | "//!" | "#" | "--");
    let words: Vec<&str> = text.split_whitespace().filter(is_sign).collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(page) = page_of(word, pages) else { continue };
        // The end of a clause ends what is cited, too.
        let ended = word.ends_with([')', ';', ':', '.', ',']);
        let places = if ended { Vec::new() } else { places(&words[at + 1..]) };
        if places.is_empty() {
            found.push(Citation { page: page.clone(), place: None });
        }
        found.extend(
            places.into_iter().map(|place| Citation { page: page.clone(), place: Some(place) }),
        );
    }
    found
}

/// The page that a word names.
fn page_of(word: &str, pages: &[&str]) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let name = word.trim_matches(|c| !is_part(c)).trim_end_matches('.');
    let named = match name.split_once("compat/") {
        Some(("" | "docs/" | "../" | "../docs/", page)) => page,
        _ => pages.iter().copied().find(|page| *page == name && page.ends_with(".md"))?,
    };
    (named.ends_with(".md") || named.ends_with(".csv")).then(|| named.to_owned())
}

/// Numbers behind `section`, `sections`, `row` or `rows`, and ranges of them.
fn places(words: &[&str]) -> Vec<String> {
    let begins = |word: &&&str| matches!(**word, "section" | "sections" | "row" | "rows");
    let Some(_) = words.first().filter(begins) else { return Vec::new() };
    let mut places = Vec::new();
    for word in &words[1..] {
        let number = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
        match *word {
            "and" | "to" => continue,
            _ if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                places.push(number.to_owned());
            }
            _ => break,
        }
        if word.ends_with([')', ';', ':', '.']) {
            break;
        }
    }
    places
}

#[test]
fn a_citation_has_a_page_and_places_in_it() {
    let cited = |text: &str| -> Vec<String> {
        let found = citations(text, &["behaviour.md", "decisions.md"]).into_iter();
        found.map(|it| format!("{} {}", it.page, it.place.unwrap_or_default())).collect()
    };
    assert_eq!(cited("/// As is (compat/behaviour.md section\n/// 27; more."), ["behaviour.md 27"]);
    assert_eq!(
        cited("compat/behaviour.md sections 12, 14 and 15)"),
        ["behaviour.md 12", "behaviour.md 14", "behaviour.md 15"]
    );
    assert_eq!(cited("'decisions.md row 5a: a canary'"), ["decisions.md 5a"]);
    assert_eq!(cited("(compat/gone.csv) and other.md, section 3"), ["gone.csv "]);
    assert_eq!(cited("compat/decisions.md. Section 3 is another one"), ["decisions.md "]);
}

#[test]
fn places_are_headings_and_rows() {
    let page = "## 12. Redirects\n| # | what |\n|---|---|\n| 5a | x |\n| 10, 13 | y |\n";
    let known = ["12", "5a", "10", "13"];
    assert!(known.iter().all(|place| has(page, place)));
    assert!(!["1", "5", "11", "x"].iter().any(|place| has(page, place)));
}
