//! A recorded outcome against a new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use fancy_regex::Regex;
use serde::Serialize;

use super::{Answer, Body, Outcome, Seen};
use crate::{client::decode::recorded, wire::Pair};

/// Headers of answers that only frame the message.
const ANSWER_FRAMING: [&str; 7] = [
    "date",
    "server",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "alt-svc",
];

/// Headers of forwarded requests that only frame the message.
const SEEN_FRAMING: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

/// How much of a value a difference shows.
const SHOWN: usize = 160;

/// What differs between two outcomes.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Differences that count.
    pub differences: Vec<String>,
    /// Differences of framing, which never count by themselves.
    pub framing: Vec<String>,
}

/// Compares what was recorded with what happened; `strict_body` compares the bodies of error answers too.
#[must_use]
pub fn compare(want: &Outcome, got: &Outcome, strict_body: bool) -> Comparison {
    let mut out = Comparison::default();
    let empty = Answer::default();
    let wanted = want.answer.as_ref().unwrap_or(&empty);
    out.answers(wanted, got.answer.as_ref().unwrap_or(&empty), strict_body);
    out.seen("seen", want.seen.as_ref(), got.seen.as_ref());
    out.seen("seen-auth", want.seen_auth.as_ref(), got.seen_auth.as_ref());
    out.equal("also-seen", &want.also_seen.len(), &got.also_seen.len());
    if let Some(counts) = &want.counts {
        out.equal("counts", &counts, &got.counts.as_ref().unwrap_or(&BTreeMap::new()));
    }
    out
}

impl Comparison {
    fn differ(&mut self, what: &str, want: &impl Serialize, got: &impl Serialize) {
        self.differences.push(format!("{what}: want {}, got {}", shown(want), shown(got)));
    }

    fn equal<T: PartialEq + Serialize>(&mut self, what: &str, want: &T, got: &T) {
        if want != got {
            self.differ(what, want, got);
        }
    }

    fn answers(&mut self, want: &Answer, got: &Answer, strict_body: bool) {
        self.equal("status", &want.status, &got.status);
        self.equal(
            "error",
            &want.error.as_deref().map(error_name),
            &got.error.as_deref().map(error_name),
        );
        self.equal("websocket", &want.websocket, &got.websocket);
        self.equal("interim", &want.interim, &got.interim);
        self.equal("more", &want.more, &got.more);
        let headers = |answer: &Answer| answer.headers.clone().unwrap_or_default();
        self.headers("answer", &headers(want), &headers(got), &ANSWER_FRAMING);
        let page = want.body.as_ref().and_then(Body::as_text) == Some("<error-page>");
        let error = want.status.is_some_and(|status| status >= 400) && !strict_body;
        let decoded = want.body.as_ref().and_then(|body| recorded(body, &headers(want)));
        let body = decoded.as_ref().or(want.body.as_ref());
        let as_recorded = want.body == got.body;
        if !page && !error && !as_recorded && !bodies_match(body, got.body.as_ref()) {
            self.differ("body", &body, &got.body);
        }
        self.headers("trailer", &want.trailers, &got.trailers, &["date"]);
        for (key, value) in want.tls.iter().flatten().filter(|(key, _)| *key != "cipher") {
            let actual =
                got.tls.as_ref().and_then(|tls| tls.get(key)).unwrap_or(&serde_json::Value::Null);
            self.equal(&format!("tls {key}"), value, actual);
        }
    }

    fn headers(&mut self, part: &str, want: &[Pair], got: &[Pair], framing: &[&str]) {
        let (want, got) = (by_name(want), by_name(got));
        let names: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
        for name in names {
            let none = Vec::new();
            let (wanted, actual) =
                (want.get(name).unwrap_or(&none), got.get(name).unwrap_or(&none));
            let same = wanted.len() == actual.len()
                && wanted.iter().zip(actual).all(|(wanted, actual)| matches(wanted, actual));
            if same {
                continue;
            }
            let line = format!("{part} {name}: want {}, got {}", shown(wanted), shown(actual));
            let list = if framing.contains(&name.as_str()) {
                &mut self.framing
            } else {
                &mut self.differences
            };
            list.push(line);
        }
    }

    fn seen(&mut self, part: &str, want: Option<&Seen>, got: Option<&Seen>) {
        let (want, got) = match (want, got) {
            (None, None) => return,
            (Some(want), Some(got)) => (want, got),
            (want, got) => {
                let who = |seen: Option<&Seen>| {
                    seen.map_or("none", |seen| seen.service.as_str()).to_owned()
                };
                return self.differ(part, &who(want), &who(got));
            }
        };
        let text = |value: &str| Some(value.to_owned());
        for (key, wanted, actual) in [
            ("service", text(&want.service), text(&got.service)),
            ("protocol", text(&want.protocol), text(&got.protocol)),
            ("method", want.method.clone(), got.method.clone()),
            ("uri", want.uri.clone(), got.uri.clone()),
        ] {
            let same = match (&wanted, &actual) {
                (Some(wanted), Some(actual)) => matches(wanted, actual),
                (wanted, actual) => wanted == actual,
            };
            if !same {
                self.differ(&format!("{part} {key}"), &wanted, &actual);
            }
        }
        if !bodies_match(want.body.as_ref(), got.body.as_ref()) {
            self.differ(&format!("{part} body"), &want.body, &got.body);
        }
        let headers = |seen: &Seen| seen.headers.clone().unwrap_or_default();
        self.headers(part, &headers(want), &headers(got), &SEEN_FRAMING);
        if want.tls != got.tls {
            self.framing.push(format!(
                "{part} tls: want {}, got {}",
                shown(&want.tls),
                shown(&got.tls)
            ));
        }
    }
}

/// The placeholder syntax.
static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("<[a-z-]+>").expect("the pattern is written here"));

/// Whether a text is what was recorded, whose placeholders match anything but nothing.
fn matches(want: &str, got: &str) -> bool {
    if !want.contains('<') {
        return want == got;
    }
    let mut literals = Vec::new();
    let mut end = 0;
    for found in PLACEHOLDER.find_iter(want).flatten() {
        literals.push(&want[end..found.start()]);
        end = found.end();
    }
    let last = &want[end..];
    let Some((first, middle)) = literals.split_first() else { return want == got };
    let Some(mut rest) = got.strip_prefix(first) else { return false };
    // The earliest place for each literal leaves the most for those after it.
    for literal in middle {
        match after_something(rest)
            .and_then(|rest| Some(&rest[rest.find(literal)? + literal.len()..]))
        {
            Some(tail) => rest = tail,
            None => return false,
        }
    }
    after_something(rest).is_some_and(|rest| rest.ends_with(last))
}

/// The text without its first character, which a placeholder takes at least.
fn after_something(text: &str) -> Option<&str> {
    text.chars().next().map(|character| &text[character.len_utf8()..])
}

fn bodies_match(want: Option<&Body>, got: Option<&Body>) -> bool {
    match (want, got) {
        (Some(Body::Text(want)), Some(Body::Text(got))) => matches(want, got),
        (want, got) => want == got,
    }
}

fn by_name(headers: &[Pair]) -> BTreeMap<String, Vec<&str>> {
    let mut out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in headers {
        out.entry(name.to_lowercase()).or_default().push(value);
    }
    out
}

/// An error's name, however the library that recorded it wrapped it: `tls-[ssl] some words (-ssl.c:1)`.
fn error_name(error: &str) -> String {
    let bare = error.replace("[ssl]", "");
    let bare = bare.split(" (-ssl.c").next().unwrap_or_default();
    bare.split(['-', ' ', '_']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// A value on one line, cut where it is long.
fn shown(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|error| error.to_string());
    match (text.as_str(), text.char_indices().nth(SHOWN)) {
        ("null" | "[]", _) => "none".to_owned(),
        (text, Some((cut, _))) => format!("{}…", &text[..cut]),
        (text, None) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_match_anything_but_nothing() {
        assert!(matches("a <date> b", "a Thu, x b"));
        assert!(matches("<request-id>", "x\ny"));
        assert!(!matches("a <date> b", "a  b"));
        assert!(!matches("<pod-address>", ""));
        assert!(matches("a < b.c", "a < b.c"));
        assert!(!matches("a < b.c", "a < bxc"));
        assert!(
            matches("<address> <port>", "ü 2")
                && matches("<a><b>", "xy")
                && !matches("<a><b>", "x")
        );
        assert!(matches("<a>-<b>-c", "--x-c-c") && !matches("<a>-<b>-c", "--c"));
        assert!(!matches("x<a>x", "x"));
    }

    #[test]
    fn the_wrapping_of_tls_errors_does_not_matter() {
        let recorded = "tls-[ssl] tlsv1 alert no application protocol (-ssl.c:1006)";
        assert_eq!(error_name(recorded), "tls-tlsv1-alert-no-application-protocol");
        assert_eq!(error_name("stream-reset-2"), "stream-reset-2");
    }

    fn outcome(yaml: &str) -> Outcome {
        serde_json::from_value(crate::yaml::documents(yaml).unwrap().remove(0)).unwrap()
    }

    fn differences(want: &str, got: &str) -> Vec<String> {
        compare(&outcome(want), &outcome(got), false).differences
    }

    #[test]
    fn header_names_compare_without_case_and_only_equal_names_keep_their_order() {
        let want =
            "answer: {status: 200, headers: [[A, '1'], [B, '2'], [a, '3'], [Content-Length, '9']]}";
        let same = "answer: {status: 200, headers: [[b, '2'], [A, '1'], [A, '3']]}";
        let swapped = "answer: {status: 200, headers: [[b, '2'], [A, '3'], [A, '1']]}";
        assert_eq!(differences(want, same), Vec::<String>::new());
        assert_eq!(differences(want, swapped).len(), 1);
        assert_eq!(compare(&outcome(want), &outcome(same), false).framing.len(), 1);
    }

    #[test]
    fn bodies_of_error_answers_count_only_where_asked_for() {
        let (want, got) = ("answer: {status: 404, body: a}", "answer: {status: 404, body: b}");
        assert_eq!(differences(want, got), Vec::<String>::new());
        assert_eq!(compare(&outcome(want), &outcome(got), true).differences.len(), 1);
        assert_eq!(differences("answer: {status: 200, body: a}", "answer: {status: 200}").len(), 1);
    }

    #[test]
    fn what_reached_nobody_differs_from_what_reached_somebody() {
        let seen = "seen: {service: echo, pod: echo-0, protocol: HTTP/1.1, method: GET, uri: /}";
        assert_eq!(differences(seen, &seen.replace("echo-0", "echo-1")), Vec::<String>::new());
        assert_eq!(differences(seen, "answer: {}").len(), 1);
        assert_eq!(differences(seen, &seen.replace("uri: /", "uri: //")).len(), 1);
    }

    #[test]
    fn counts_and_further_requests_are_compared() {
        assert_eq!(
            differences("counts: {'200': 2, echo-0: 2}", "counts: {'200': 2, echo-0: 1}").len(),
            1
        );
        assert_eq!(differences("also-seen: [{service: echo}]", "answer: {}").len(), 1);
    }

    #[test]
    fn tls_facts_are_compared_but_for_the_cipher() {
        let want = "answer: {tls: {cn: a, cipher: x, alpn: null}}";
        assert_eq!(differences(want, "answer: {tls: {cn: a, cipher: y}}"), Vec::<String>::new());
        assert_eq!(differences(want, "answer: {tls: {cn: b, cipher: y}}").len(), 1);
    }
}
