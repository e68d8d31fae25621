//! Counts of verdicts: by what is to be said, by cause, and which paths were asked for.

use crate::cause::Cause;
use crate::judge::{If, Standing, Verdict};
use crate::known::Known;
use crate::log::Record;
use crate::shown::{SHOWN, cut};
use model::{PathKind, Printable};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How many causes are kept apart.
const GROUPS: usize = 500;
/// How many examples each of them has.
const EXAMPLES: usize = 3;

/// What was counted.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// Requests that were compared.
    pub requests: u64,
    /// By what is to be said.
    pub standings: BTreeMap<Standing, u64>,
    /// Requests for which something was taken for granted, by what.
    pub conditions: BTreeMap<If, u64>,
    /// By cause, the most frequent first.
    pub groups: Vec<Group>,
    /// Requests of causes beyond those that are kept apart.
    pub beyond: u64,
    /// Lines that are no access log's: of the controller, of nginx's error log, empty ones.
    pub other_lines: u64,
    /// Lines that could not be read.
    pub unread: u64,
    /// The first of them.
    pub unread_examples: Vec<String>,
    /// Paths of Ingresses that requests were compared for.
    pub paths_asked: usize,
    /// Those that no request was for.
    pub never_asked: Vec<Path>,
    #[serde(skip)]
    by_cause: BTreeMap<(Standing, Cause), Group>,
    #[serde(skip)]
    asked: BTreeSet<(String, usize)>,
}

/// Requests of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What is to be said.
    pub standing: Standing,
    /// Why.
    pub cause: Cause,
    /// How many.
    pub count: u64,
    /// Some of them.
    pub examples: Vec<Example>,
}

/// A request.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// File and line.
    pub at: String,
    /// The request without what may be secret.
    pub request: String,
    /// What each of them did.
    pub what: String,
}

/// A path of an Ingress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Path {
    /// `namespace/name`.
    pub ingress: String,
    /// The host.
    pub host: String,
    /// The path with its type.
    pub path: String,
}

impl Tally {
    /// Counts a verdict; `at` is file and line, and `queries` says whether examples show them.
    pub fn count(
        &mut self,
        record: &Record,
        verdict: &Verdict,
        at: impl Fn() -> String,
        queries: bool,
    ) {
        self.requests += 1;
        *self.standings.entry(verdict.standing).or_default() += 1;
        // Of others nothing hangs on them.
        let hangs = verdict.standing == Standing::AlikeIf;
        for condition in verdict.conditions.iter().filter(|_| hangs) {
            *self.conditions.entry(*condition).or_default() += 1;
        }
        if let Some(place) = &verdict.place
            && !self.asked.contains(place)
        {
            self.asked.insert(place.clone());
        }
        let Some(cause) = &verdict.cause else { return };
        let key = (verdict.standing, cause.clone());
        let full = self.by_cause.len() >= GROUPS && !self.by_cause.contains_key(&key);
        if full {
            self.beyond += 1;
            return;
        }
        let group = self.by_cause.entry(key).or_insert_with(|| Group {
            standing: verdict.standing,
            cause: cause.clone(),
            count: 0,
            examples: Vec::new(),
        });
        group.count += 1;
        if group.examples.len() < EXAMPLES {
            let request = request(record, verdict, queries);
            group.examples.push(Example { at: at(), request, what: verdict.words.clone() });
        }
    }

    /// Counts a line that is no access log's.
    pub fn other_line(&mut self) {
        self.other_lines += 1;
    }

    /// Counts a line that could not be read.
    pub fn unread(&mut self, example: impl FnOnce() -> String) {
        self.unread += 1;
        if self.unread_examples.len() < EXAMPLES {
            self.unread_examples.push(example());
        }
    }

    /// Sorts what was counted, and finds the paths that nobody asked for.
    pub fn finish(&mut self, known: &Known) {
        self.groups = std::mem::take(&mut self.by_cause).into_values().collect();
        let rank =
            |group: &Group| (std::cmp::Reverse(group.standing), std::cmp::Reverse(group.count));
        self.groups.sort_by_key(rank);
        let (asked, never): (Vec<_>, Vec<_>) = known
            .paths()
            .partition(|(server, index, _)| self.asked.contains(&((*server).to_owned(), *index)));
        self.paths_asked = asked.len();
        self.never_asked = never
            .into_iter()
            .map(|(server, _, location)| {
                let kind = match location.kind {
                    PathKind::Exact => "Exact",
                    PathKind::Prefix => "Prefix",
                };
                let origin = location.origin.as_deref();
                Path {
                    ingress: origin
                        .map(|it| Printable(&format!("{}/{}", it.namespace, it.name)).to_string())
                        .unwrap_or_default(),
                    host: Printable(server).to_string(),
                    path: format!("{kind} {}", Printable(&location.path)),
                }
            })
            .collect();
        self.never_asked.sort();
    }

    /// How many requests something is said about.
    pub fn of(&self, standing: Standing) -> u64 {
        self.standings.get(&standing).copied().unwrap_or_default()
    }
}

/// Method, host and path; the query may hold a token.
pub(crate) fn request(record: &Record, verdict: &Verdict, queries: bool) -> String {
    let (path, query) = match record.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (record.target.as_str(), None),
    };
    let query = match query {
        Some(query) if queries => format!("?{}", cut(query, SHOWN)),
        Some(_) => "?…".to_owned(),
        None => String::new(),
    };
    let host = verdict.host.as_deref().unwrap_or("(host unknown) ");
    let method = if record.method.is_empty() { "(no request)" } else { &record.method };
    let [method, host, path] = [method, host, path].map(|text| cut(text, SHOWN));
    format!("{method} {host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::request;
    use crate::judge::{Standing, Verdict};
    use crate::log::Record;

    #[test]
    fn no_part_of_a_request_in_an_example_is_long_or_moves_a_cursor() {
        let long = format!("\u{1b}{}", "x".repeat(200_000));
        let target = format!("/{long}?{long}");
        let record = Record { method: long.clone(), target, ..Record::default() };
        let verdict = Verdict {
            standing: Standing::Unknown,
            cause: None,
            conditions: Default::default(),
            words: String::new(),
            place: None,
            host: Some(long),
        };
        let shown = request(&record, &verdict, true);
        assert!(shown.starts_with(r"\u{1b}xxx") && !shown.contains('\u{1b}'), "{shown}");
        assert!(shown.chars().count() < 900 && shown.matches('…').count() == 4, "{shown}");
    }
}
