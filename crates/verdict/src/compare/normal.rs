//! Two answers beside each other, without what differs from one request to the next: the same rules as for recordings.

use super::send::{Answer, Target};
use crate::shown::cut;
use fancy_regex::Regex;
use model::Printable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Header fields that only frame the message or name the program.
const FRAMING: [&str; 7] = [
    "date",
    "server",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "alt-svc",
];
/// Header fields whose values are not shown.
const SECRETS: [&str; 3] = ["set-cookie", "authorization", "www-authenticate"];
/// What differs where one side does not answer.
pub(super) const ANSWER: &str = "answer";
/// How much of a name or a value is shown.
const SHOWN: usize = 120;
/// How many differences of a request are shown.
const MOST: usize = 20;

static DATES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT")
});
static NONCES: LazyLock<Regex> = LazyLock::new(|| pattern(r#"nonce="[^"]*""#));
static COOKIES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{10}\.\d+\.\d+\.\d+\|[0-9a-f]{32}"));
static REQUEST_IDS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b[0-9a-f]{32}\b"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is written here")
}

/// What differs between two answers: what, and how it is with each.
pub(super) fn differences(
    old: (&Answer, &Target),
    new: (&Answer, &Target),
    strict_body: bool,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let ((old, old_target), (new, new_target)) = (old, new);
    let mut say = |what: &str, old: &str, new: &str| {
        found.insert(what.to_owned(), format!("old {old}, new {new}"));
    };
    // Where neither answers there is nothing to compare: whoever asks has to look for that.
    if old.error.is_some() && new.error.is_some() {
        return found;
    }
    if old.error.is_some() || new.error.is_some() {
        let words = |answer: &Answer| match &answer.error {
            Some(error) => cut(error, SHOWN),
            None => answer.status.to_string(),
        };
        say(ANSWER, &words(old), &words(new));
        return found;
    }
    if old.status != new.status {
        say("status", &old.status.to_string(), &new.status.to_string());
    }
    let (left, right) = (headers(old, old_target), headers(new, new_target));
    let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    for name in names {
        let (old, new) = (left.get(name), right.get(name));
        if old != new {
            let shown = |values: Option<&Vec<String>>| shown(name, values);
            say(&format!("header {name}"), &shown(old), &shown(new));
        }
    }
    let is_error = old.status >= 400 && new.status >= 400 && !strict_body;
    if !is_error && body(old, old_target) != body(new, new_target) {
        let size = |answer: &Answer| format!("{} bytes", answer.body.len());
        say("body", &size(old), &format!("{} of other content", size(new)));
    }
    found
}

/// What is kept of differences: as many as one reads, those of headers last; and how many there are besides. Which
/// there are must be settled before: here two names may become one.
pub(super) fn kept(found: BTreeMap<String, String>) -> (BTreeMap<String, String>, usize) {
    let all = found.len();
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(what, _)| what.starts_with("header "));
    let shown = found.into_iter().take(MOST);
    let kept: BTreeMap<_, _> =
        shown.map(|(what, how)| (cut(&what, SHOWN), Printable(&how).to_string())).collect();
    let further = all - kept.len();
    (kept, further)
}

fn headers(answer: &Answer, target: &Target) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in &answer.headers {
        if !FRAMING.contains(&name.as_str()) {
            out.entry(name.clone()).or_default().push(normal(value, target));
        }
    }
    out
}

/// A value without dates, numbers used once, request ids, and the address of the controller that was asked.
fn normal(value: &str, target: &Target) -> String {
    let value = DATES.replace_all(value, "<date>");
    let value = NONCES.replace_all(&value, "nonce=\"<nonce>\"");
    let value = COOKIES.replace_all(&value, "<cookie-value>");
    let value = REQUEST_IDS.replace_all(&value, "<request-id>");
    // Redirects and echoes may name the port that was asked; a usual one says too little to be looked for by itself.
    let value = value.replace(&format!(":{}", target.port), "<port>");
    if target.port < 1024 { value } else { value.replace(&target.port.to_string(), "<port>") }
}

fn body(answer: &Answer, target: &Target) -> Vec<u8> {
    match std::str::from_utf8(&answer.body) {
        Ok(text) => normal(text, target).into_bytes(),
        Err(_) => answer.body.to_vec(),
    }
}

fn shown(name: &str, values: Option<&Vec<String>>) -> String {
    let Some(values) = values else { return "none".to_owned() };
    if SECRETS.contains(&name) {
        return format!("{} with other content (not shown)", values.len());
    }
    // A query may hold a token; that there is one is told, since it may be all of the difference.
    let text = values.iter().map(|value| match value.split_once('?') {
        Some((before, _)) => format!("{before}?…"),
        None => value.clone(),
    });
    let text = text.collect::<Vec<_>>().join(" | ");
    format!("{:?}", model::beginning(&text, SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_long_differences_some_are_kept_and_the_others_counted() {
        let names: Vec<String> =
            (0..95).map(|number| format!("{number:02}{}", "n".repeat(4000))).collect();
        let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        let (one, two) = ("http://a:8080".parse().unwrap(), "http://b:9090".parse().unwrap());
        let (old, new) = (answer(200, &[], "a"), answer(201, &headers, "b"));
        let (shown, further) = kept(differences((&old, &one), (&new, &two), false));
        assert_eq!((shown.len(), further), (MOST, 97 - MOST));
        assert!(shown.contains_key("status") && shown.contains_key("body"), "{shown:?}");
        assert!(shown.keys().all(|what| what.chars().count() <= SHOWN + 1), "{shown:?}");
        // Names that are one once they are cut are counted all the same.
        let names: Vec<String> =
            (0..5).map(|number| format!("{}{number}", "n".repeat(4000))).collect();
        let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        let all = differences((&old, &one), (&answer(200, &headers, "a"), &two), false);
        let (shown, further) = kept(all);
        assert_eq!((shown.len(), further), (1, 4));
    }

    fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (headers, body) = (headers.collect(), body.to_owned().into());
        Answer { status, headers, body, ..Answer::default() }
    }

    fn found(old: &Answer, new: &Answer) -> Vec<String> {
        let (one, two) = ("http://a:8080".parse().unwrap(), "http://b:9090".parse().unwrap());
        let all = differences((old, &one), (new, &two), false);
        all.into_iter().map(|(what, how)| format!("{what}: {how}")).collect()
    }

    #[test]
    fn what_changes_with_every_request_is_no_difference() {
        let id = "0123456789abcdef0123456789abcdef";
        let old = answer(
            200,
            &[
                ("date", "x"),
                ("location", "http://s:8080/a"),
                ("expires", "Thu, 01 Jan 2026 00:00:01 GMT"),
                ("x-request-id", id),
            ],
            &format!("id {id}"),
        );
        let new = answer(
            200,
            &[
                ("x-request-id", &id.replace('0', "1")),
                ("location", "http://s:9090/a"),
                ("expires", "Fri, 02 Jan 2026 00:00:01 GMT"),
            ],
            &format!("id {}", id.replace('0', "2")),
        );
        assert_eq!(found(&old, &new), Vec::<String>::new());
    }

    #[test]
    fn everything_else_is_one_and_secrets_are_not_shown() {
        let old = answer(
            200,
            &[("x-a", "1"), ("set-cookie", "sid=abc"), ("location", "/a?token=t1")],
            "one",
        );
        let new = answer(302, &[("set-cookie", "sid=def"), ("location", "/a?token=t2")], "two");
        let all = found(&old, &new);
        assert_eq!(all.len(), 5, "{all:?}");
        let text = all.join("\n");
        for secret in ["abc", "def", "t1", "t2"] {
            assert!(!text.contains(secret), "{text}");
        }
        // Where a query is all of it, there is one to be seen.
        let (plain, kept) = ([("location", "/a")], [("location", "/a?x=y")]);
        let told = found(&answer(302, &plain, "one"), &answer(302, &kept, "one")).join("\n");
        assert!(told.contains("old \"/a\"") && told.contains("new \"/a?…\""), "{told}");
        assert!(found(&answer(404, &[], "a"), &answer(404, &[], "b")).is_empty());
        let failed = Answer { error: Some("gone".to_owned()), ..Answer::default() };
        assert_eq!(found(&old, &failed), ["answer: old 200, new gone"]);
    }
}
