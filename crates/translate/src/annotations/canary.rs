//! `canary*` and `affinity-canary-behavior`: an Ingress that stands beside another one and takes a part of its
//! requests.

use super::Family;
use crate::settings::{Key, Lines, Risk, Settings, parse, words};
use model::policy::{Algorithm, Canary, CanaryHeader, CanaryRules, CanaryTest, Policy};
use model::{Pattern, Severity};
use std::sync::Arc;

pub(super) const FAMILY: Family = Family {
    name: "canary",
    keys: &[&CANARY, &HEADER, &VALUE, &PATTERN, &COOKIE, &WEIGHT, &TOTAL, &BEHAVIOR],
    apply,
};

static CANARY: Key<bool> = Key::annotation("canary", parse::boolean).switch(
    false,
    "The Ingress creates nothing: its backends take a part of the requests of other Ingresses' equal host, path and \
     pathType. Of its annotations only canary-*, affinity-canary-behavior, load-balance, upstream-hash-by* and \
     service-upstream count.",
);

static HEADER: Key<String> = Key::annotation("canary-by-header", parse::plain)
    .says(
        "header name",
        "none",
        "always in this header: to the canary; never: to the main side; else the cookie decides.",
    )
    .risk(Risk::Medium);

static VALUE: Key<String> = Key::annotation("canary-by-header-value", parse::plain)
    .says(
        "text",
        "none",
        "Exactly this in the header: to the canary; anything else: the cookie decides.",
    )
    .secret()
    .risk(Risk::Medium);

static PATTERN: Key<String> = Key::annotation("canary-by-header-pattern", pattern)
    .says(
        "regular expression",
        "none",
        "A match in the header: to the canary; else the cookie decides. One that is no regular expression keeps whoever \
         sends the header on the main side. canary-by-header-value counts before it.",
    )
    .risk(Risk::Medium);

static COOKIE: Key<String> = Key::annotation("canary-by-cookie", parse::plain)
    .says(
        "cookie name",
        "none",
        "always in this cookie: to the canary; never: to the main side; else the weight decides.",
    )
    .risk(Risk::Medium);

static WEIGHT: Key<u32> = Key::annotation("canary-weight", number).exact().number(
    "number",
    "0",
    "So many of canary-weight-total requests that nothing else decided on go to the canary.",
);

static TOTAL: Key<u32> = Key::annotation("canary-weight-total", number).exact().number(
    "number",
    "100",
    "What canary-weight is a part of; it counts only above 100.",
);

static BEHAVIOR: Key<bool> = Key::annotation("affinity-canary-behavior", behavior).says(
    "sticky or legacy",
    "sticky",
    "sticky: the canary has the sessions of the main Ingress, and clients stay on their side; legacy: it has none.",
);

/// What a canary Ingress asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CanaryAsked {
    /// Who goes to it.
    pub(crate) rules: Arc<CanaryRules>,
    /// Which of its endpoints is next, where no session decides.
    pub(crate) algorithm: Algorithm,
    /// Whether it has the sessions of the main Ingress.
    pub(crate) sticky: bool,
}

/// The rules of an Ingress that is no canary are worth a word.
fn apply(settings: &mut Settings<'_>, _: &mut Policy) {
    if settings.get_or(&CANARY, false) {
        return;
    }
    let rules =
        [&HEADER.about, &VALUE.about, &PATTERN.about, &COOKIE.about, &WEIGHT.about, &TOTAL.about];
    for about in rules {
        if settings.raw(about.name).is_some_and(|text| !text.is_empty() && text != "0") {
            let message = "has no effect: the annotation canary is not true".to_owned();
            settings.note(about.name, Severity::Warning, message);
        }
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(canary: &Canary, lines: &mut Lines) {
    // Its sessions are those of the main side.
    let Canary { upstream, origin: _, rules, balance } = canary;
    let CanaryRules { header, cookie, weight, weight_total } = &**rules;
    lines.add("canary.upstream", upstream).by(&[&CANARY]);
    if let Some(CanaryHeader { name, test }) = header {
        let test = match test {
            CanaryTest::Word => "always or never".to_owned(),
            CanaryTest::Value(value) => words(value),
            CanaryTest::Pattern(pattern) => format!("what matches {}", words(pattern)),
            CanaryTest::Never => "nobody".to_owned(),
        };
        let name = name.replace('_', "-");
        lines.add("canary.header", format!("{name}: {test}")).by(&[&HEADER, &VALUE, &PATTERN]);
    }
    lines.add("canary.cookie", cookie).by(&[&COOKIE]);
    let part = format!("{weight} of {}", (*weight_total).max(100));
    lines.add("canary.weight", part).by(&[&WEIGHT, &TOTAL]);
    let sessions = if balance.affinity.is_some() { "sticky" } else { "none" };
    lines.add("canary.sessions", sessions).by(&[&BEHAVIOR]);
    super::balance::show("canary.algorithm", &balance.algorithm, lines);
}

/// Whether the annotations make this Ingress a canary, which creates nothing.
pub(super) fn is_canary(settings: &Settings<'_>) -> bool {
    settings.raw(CANARY.about.name).is_some_and(|text| parse::boolean(&text) == Ok(true))
}

/// What a canary Ingress asks for; none if it is not one.
pub(crate) fn read(settings: &mut Settings<'_>, policy: &Policy) -> Option<CanaryAsked> {
    if !is_canary(settings) {
        return None;
    }
    let (name, value, pattern) =
        (settings.get(&HEADER), settings.get(&VALUE), settings.get(&PATTERN));
    let header = name.map(|name| CanaryHeader {
        name: name.to_ascii_lowercase().replace('-', "_"),
        test: test(settings, value, pattern),
    });
    let rules = CanaryRules {
        header,
        cookie: settings.get(&COOKIE),
        weight: settings.get_or(&WEIGHT, 0),
        weight_total: settings.get_or(&TOTAL, 100),
    };
    if rules == (CanaryRules { weight_total: rules.weight_total, ..CanaryRules::default() }) {
        let message =
            "nobody goes to this canary: add canary-weight, canary-by-header or canary-by-cookie";
        settings.note(CANARY.about.name, Severity::Notice, message.to_owned());
    }
    let total = rules.weight_total.max(100);
    if rules.weight > total {
        let message = format!(
            "it is more than canary-weight-total, {total}: all requests that nothing else decides on go to the canary; \
             write {total}, or a larger total"
        );
        settings.note(WEIGHT.about.name, Severity::Notice, message);
    }
    let algorithm = policy.balance.algorithm.clone();
    Some(CanaryAsked { rules: rules.into(), algorithm, sticky: settings.get_or(&BEHAVIOR, true) })
}

fn test(settings: &mut Settings<'_>, value: Option<String>, pattern: Option<String>) -> CanaryTest {
    match (value, pattern) {
        (Some(value), _) => CanaryTest::Value(value.into()),
        (None, None) => CanaryTest::Word,
        (None, Some(pattern)) => Pattern::new(&pattern, false).map_or_else(
            |error| {
                let message = format!(
                    "is no regular expression ({}): whoever sends the header stays on the main side; mend it",
                    error.reason
                );
                settings.note(PATTERN.about.name, Severity::Error, message);
                CanaryTest::Never
            },
            CanaryTest::Pattern,
        ),
    }
}

/// A number, also one below zero, which is none of the requests.
fn number(text: &str) -> Result<u32, String> {
    let number: Result<i64, _> = text.parse();
    let number = number
        .map_err(|_| "is not a number: write digits only, without space, such as 10".to_owned())?;
    Ok(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

fn pattern(text: &str) -> Result<String, String> {
    let allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~:^$[](){}*+?|&=\\".contains(&byte);
    if text.bytes().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("has characters that a pattern here may not have: use letters, digits and . * + ? | ( ) [ ] { } ^ $ \\".to_owned())
    }
}

fn behavior(text: &str) -> Result<bool, String> {
    match text {
        "sticky" => Ok(true),
        "legacy" => Ok(false),
        _ => Err("is neither sticky nor legacy".to_owned()),
    }
}
