//! What stands behind the `?` of the API, and what whoever asks wrongly is told: one line with the remedy.

use runtime::admin::Page;
use std::fmt;

/// Rows of one answer, by default and at most.
pub(crate) const ROWS: usize = 100;
pub(crate) const MOST_ROWS: usize = 500;
/// Characters of a value at most.
const LONGEST: usize = 4096;
/// Values at most.
const VALUES: usize = 64;
/// Words of a search at most.
const WORDS: usize = 16;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing is served yet.
    Early,
    /// There were too many requests.
    TooMany,
    /// There is nothing of that name.
    Missing(String),
    /// It was asked wrongly.
    Wrong(String),
    /// There is no room for more.
    Busy(String),
    /// It is our fault.
    Broken(String),
}

impl Refusal {
    /// The same as JSON with its status.
    pub(crate) fn page(self) -> Page {
        let (status, error) = match self {
            Self::Early => {
                (503, "nothing is served yet: /healthz says what is waited for".to_owned())
            }
            Self::TooMany => (429, "too many requests: ask again in a second".to_owned()),
            Self::Missing(error) => (404, error),
            Self::Wrong(error) => (400, error),
            Self::Busy(error) => (503, error),
            Self::Broken(error) => (500, error),
        };
        Page::json(serde_json::json!({"error": error}).to_string()).with_status(status)
    }
}

/// A parameter of a query.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the description"))]
    pub(crate) about: &'static str,
}

/// Names and values, of which all are known.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Takes a query apart.
    pub(crate) fn parse(text: &str, known: &'static [Parameter]) -> Result<Self, Refusal> {
        let mut values = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let Some(parameter) = known.iter().find(|known| known.name == name) else {
                let names: Vec<&str> = known.iter().map(|known| known.name).collect();
                let remedy = match names.as_slice() {
                    [] => "there are none here".to_owned(),
                    names => format!("known are {}", names.join(", ")),
                };
                return Err(Refusal::Wrong(format!("unknown parameter {name:?}: {remedy}")));
            };
            if value.len() > LONGEST || values.len() >= VALUES {
                let error = format!(
                    "{}: too long: {LONGEST} bytes, {VALUES} values at most",
                    parameter.name
                );
                return Err(Refusal::Wrong(error));
            }
            values.push((parameter.name, value.into_owned()));
        }
        Ok(Self(values))
    }

    /// A value that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// All values of a name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// What is searched for, in small letters: all words have to be found.
    pub(crate) fn words(&self) -> Result<Vec<String>, Refusal> {
        let words = self.get("search").unwrap_or_default().split_whitespace();
        let words: Vec<String> = words.map(str::to_lowercase).collect();
        if words.len() > WORDS {
            let error = format!("search: {} words: write {WORDS} at most", words.len());
            return Err(Refusal::Wrong(error));
        }
        Ok(words)
    }

    /// The rows that are asked for.
    pub(crate) fn window(&self) -> Result<(usize, usize), Refusal> {
        let number = |name: &str, default: usize| match self.get(name) {
            None => Ok(default),
            Some(text) => text.parse::<usize>().map_err(|_| {
                Refusal::Wrong(format!("{name}: {text:?} is no number: write one such as 100"))
            }),
        };
        Ok((number("offset", 0)?, number("limit", ROWS)?.min(MOST_ROWS)))
    }

    /// One of several words; the first of them is the default.
    pub(crate) fn one_of<T: Copy>(&self, name: &str, all: &[(&str, T)]) -> Result<T, Refusal> {
        let asked = self.get(name).unwrap_or(all[0].0);
        let found = all.iter().find(|(word, _)| *word == asked).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
            Refusal::Wrong(format!(
                "{name}: {asked:?} is unknown: write one of {}",
                words.join(", ")
            ))
        })
    }

    /// A value that there has to be.
    pub(crate) fn needed(&self, name: &str, example: &str) -> Result<&str, Refusal> {
        self.get(name)
            .ok_or_else(|| Refusal::Wrong(format!("{name} is missing: write {name}={example}")))
    }
}

/// A text of somebody's object: one line without characters that change the direction of writing.
pub(crate) fn shown(text: impl fmt::Display) -> String {
    model::Printable(&text.to_string()).to_string()
}

/// The same for a message that may quote what somebody wrote: no password of a URL in it.
pub(crate) fn told(message: impl fmt::Display) -> String {
    model::hide_in_sentence(&shown(message))
}

#[cfg(test)]
mod tests {
    use super::{Parameter, Query, Refusal};

    const KNOWN: &[Parameter] = &[
        Parameter { name: "search", about: "" },
        Parameter { name: "limit", about: "" },
        Parameter { name: "offset", about: "" },
        Parameter { name: "sort", about: "" },
    ];

    fn wrong<T>(result: Result<T, Refusal>) -> String {
        match result {
            Err(Refusal::Wrong(error)) => error,
            _ => String::new(),
        }
    }

    #[test]
    fn queries_are_taken_apart_and_wrong_ones_get_the_remedy() {
        let query =
            Query::parse("search=Shop+%2Fcart&limit=9999&sort=", KNOWN).expect("it is right");
        assert_eq!(query.words().expect("few words"), ["shop", "/cart"]);
        let many = Query::parse(&format!("search={}", "a+".repeat(17)), KNOWN).expect("a name");
        assert_eq!(wrong(many.words()), "search: 17 words: write 16 at most");
        assert_eq!(query.window().expect("numbers"), (0, super::MOST_ROWS));
        assert!(query.one_of("sort", &[("host", true), ("rate", false)]).expect("the first"));
        let error = wrong(Query::parse("serach=a", KNOWN));
        assert_eq!(error, "unknown parameter \"serach\": known are search, limit, offset, sort");
        let query = Query::parse("limit=x&sort=up", KNOWN).expect("known names");
        assert_eq!(wrong(query.window()), "limit: \"x\" is no number: write one such as 100");
        assert!(wrong(query.one_of("sort", &[("host", 1)])).ends_with("write one of host"));
        assert!(
            wrong(Query::parse(&format!("search={}", "a".repeat(5000)), KNOWN))
                .contains("too long")
        );
    }
}
