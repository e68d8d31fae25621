//! `proxy-redirect-*` and `proxy-cookie-*`: addresses in an upstream's answer, told in the words of the front.
//!
//! Annotations may hold plain text; the ConfigMap may hold patterns and variables, too, as it may in ingress-nginx.

use super::Family;
use crate::settings::{Key, Lines, Risk, Settings, words};
use model::policy::{AnswerRewrites, Policy, RedirectRewrite, Replaced, Replacement};
use model::{Pattern, Template};

pub(super) const FAMILY: Family = Family {
    name: "answer_rewrites",
    keys: &[
        &REDIRECT_FROM,
        &REDIRECT_TO,
        &COOKIE_DOMAIN,
        &COOKIE_PATH,
        &DEFAULT_REDIRECT_FROM,
        &DEFAULT_REDIRECT_TO,
        &DEFAULT_COOKIE_DOMAIN,
        &DEFAULT_COOKIE_PATH,
    ],
    apply,
};

const FROM: &str = "What is replaced at the beginning of Location, and of the address in Refresh. off replaces nothing; \
                    default replaces the address that nginx has for the upstream, http://upstream_balancer/.";
const TO: &str =
    "What takes its place; off, or without it, what proxy-redirect-from: default does.";
const DOMAIN: &str = "What the Domain of cookies is, and what it becomes.";
const PATH: &str = "What the Path of cookies begins with, and what that becomes.";
const PAIR: &str = "two words or off";

static REDIRECT_FROM: Key<String> = Key::annotation("proxy-redirect-from", address)
    .says("text, off or default", "ConfigMap proxy-redirect-from", FROM)
    .risk(Risk::Medium);
static REDIRECT_TO: Key<String> = Key::annotation("proxy-redirect-to", address)
    .says("text or off", "ConfigMap proxy-redirect-to", TO)
    .risk(Risk::Medium);
static COOKIE_DOMAIN: Key<Option<Replacement>> = Key::annotation("proxy-cookie-domain", own_domain)
    .says(PAIR, "ConfigMap proxy-cookie-domain", DOMAIN)
    .risk(Risk::Medium);
static COOKIE_PATH: Key<Option<Replacement>> = Key::annotation("proxy-cookie-path", own_path)
    .says(PAIR, "ConfigMap proxy-cookie-path", PATH)
    .risk(Risk::Medium);
static DEFAULT_REDIRECT_FROM: Key<String> = Key::config_map("proxy-redirect-from", word).says(
    "text, ~pattern, off or default",
    "off",
    FROM,
);
static DEFAULT_REDIRECT_TO: Key<String> =
    Key::config_map("proxy-redirect-to", word).says("text with variables, or off", "off", TO);
static DEFAULT_COOKIE_DOMAIN: Key<Option<Replacement>> =
    Key::config_map("proxy-cookie-domain", domain).says(PAIR, "off", DOMAIN);
static DEFAULT_COOKIE_PATH: Key<Option<Replacement>> =
    Key::config_map("proxy-cookie-path", path).says(PAIR, "off", PATH);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let mut pair = |own, general| settings.get(own).or_else(|| settings.get(general)).flatten();
    let cookie_domain = pair(&COOKIE_DOMAIN, &DEFAULT_COOKIE_DOMAIN);
    let cookie_path = pair(&COOKIE_PATH, &DEFAULT_COOKIE_PATH);
    let redirect = redirect(settings);
    policy.answer_rewrites = AnswerRewrites { redirect, cookie_domain, cookie_path };
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(rewrites: &AnswerRewrites, lines: &mut Lines) {
    let AnswerRewrites { redirect, cookie_domain, cookie_path } = rewrites;
    let pair = |pair: &Replacement| {
        let Replacement { from, to } = pair;
        let from = match from {
            Replaced::Text(text) => words(text),
            Replaced::Pattern(pattern) => format!("~{}", words(pattern)),
        };
        format!("{from} becomes {}", words(to))
    };
    let of_cookie = |asked: &Option<Replacement>| asked.as_ref().map_or("off".to_owned(), pair);
    let redirect = match redirect {
        RedirectRewrite::Off => "off".to_owned(),
        RedirectRewrite::UpstreamAddress => "default".to_owned(),
        RedirectRewrite::Replace(replacement) => pair(replacement),
    };
    lines.add("answer_rewrites.redirect", redirect).by(&[&REDIRECT_FROM, &REDIRECT_TO]).by(&[
        &DEFAULT_REDIRECT_FROM,
        &REDIRECT_TO,
        &DEFAULT_REDIRECT_TO,
    ]);
    lines
        .add("answer_rewrites.cookie_domain", of_cookie(cookie_domain))
        .by(&[&COOKIE_DOMAIN])
        .by(&[&DEFAULT_COOKIE_DOMAIN]);
    lines
        .add("answer_rewrites.cookie_path", of_cookie(cookie_path))
        .by(&[&COOKIE_PATH])
        .by(&[&DEFAULT_COOKIE_PATH]);
}

fn redirect(settings: &mut Settings<'_>) -> RedirectRewrite {
    let off = || "off".to_owned();
    let mut text =
        |own, general| settings.get(own).or_else(|| settings.get(general)).unwrap_or_else(off);
    let from = text(&REDIRECT_FROM, &DEFAULT_REDIRECT_FROM);
    let to = text(&REDIRECT_TO, &DEFAULT_REDIRECT_TO);
    match (from.as_str(), to.as_str()) {
        ("off", _) => RedirectRewrite::Off,
        // ingress-nginx writes no directive then, and nginx does what it does without one.
        ("default", _) | (_, "off") => RedirectRewrite::UpstreamAddress,
        (from, to) => match replacement(from, to, Case::Kept) {
            Ok(replacement) => RedirectRewrite::Replace(replacement),
            Err(wrong) => {
                let message = format!("{wrong}; Location and Refresh stay as they are");
                settings.note(REDIRECT_FROM.about.name, model::Severity::Warning, message);
                RedirectRewrite::Off
            }
        },
    }
}

/// Whether patterns that do not say so (`~*`) look at the case of letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Kept,
    Ignored,
}

fn replacement(from: &str, to: &str, case: Case) -> Result<Replacement, String> {
    let unknown = |error: model::BadTemplate| format!("has the {error}");
    let from = match from.strip_prefix('~') {
        None => Replaced::Text(Template::parse(from).map_err(unknown)?),
        Some(pattern) => {
            let starred = pattern.strip_prefix('*');
            let ignored = starred.is_some() || case == Case::Ignored;
            // What is equal as text is equal in meaning: the case is part of the text.
            let source =
                format!("{}{}", if ignored { "(?i)" } else { "" }, starred.unwrap_or(pattern));
            let pattern = Pattern::for_captures(&source, false);
            Replaced::Pattern(
                pattern
                    .map_err(|error| format!("has a pattern that is none ({})", error.reason))?,
            )
        }
    };
    Ok(Replacement { from, to: Template::parse(to).map_err(unknown)?.into() })
}

/// Two words, or `off`. A word may stand in quotes, as in nginx's configuration.
fn pair(text: &str, case: Case) -> Result<Option<Replacement>, String> {
    if text == "off" {
        return Ok(None);
    }
    match split(text).as_deref() {
        // A domain has no dot in front, unless a pattern stands for it (ngx_http_proxy_cookie_domain).
        Some([from, to]) if case == Case::Ignored && !from.starts_with('~') => {
            replacement(from, to.strip_prefix('.').unwrap_or(to), case).map(Some)
        }
        Some([from, to]) => replacement(from, to, case).map(Some),
        _ => Err("is neither off nor two words: write what is replaced and what takes its place, such as /inner /outer"
            .to_owned()),
    }
}

/// The words of a text; none if a quote is not closed.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => rest[1..].split_once(first)?,
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

fn domain(text: &str) -> Result<Option<Replacement>, String> {
    let bare = text.strip_prefix('.').unwrap_or(text);
    pair(bare, Case::Ignored)
}

fn path(text: &str) -> Result<Option<Replacement>, String> {
    pair(text, Case::Kept)
}

fn own_domain(text: &str) -> Result<Option<Replacement>, String> {
    plain(text, "-._~/: ").and_then(domain)
}

fn own_path(text: &str) -> Result<Option<Replacement>, String> {
    plain(text, "-._~/:,?&= ").and_then(path)
}

fn address(text: &str) -> Result<String, String> {
    plain(text, "-._~/:,?&=").map(str::to_owned)
}

fn word(text: &str) -> Result<String, String> {
    match split(text).as_deref() {
        Some([word]) => Ok((*word).to_owned()),
        _ => Err("is not one word: write it without spaces, or in quotes".to_owned()),
    }
}

/// Text of letters, digits and what else is `allowed`.
fn plain<'t>(text: &'t str, allowed: &str) -> Result<&'t str, String> {
    match text.chars().find(|c| !c.is_ascii_alphanumeric() && !allowed.contains(*c)) {
        None => Ok(text),
        Some(wrong) => {
            let marks = allowed.trim_end();
            Err(format!("has {wrong:?} in it: write letters, digits and {marks} only"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Replaced, domain, own_domain, own_path, path, word};

    #[test]
    fn a_pair_is_two_words_which_may_stand_in_quotes() {
        let read = path(r#"/ "/; Secure""#).expect("a pair").expect("not off");
        assert_eq!(read.to.literal(), Some("/; Secure"));
        assert_eq!(own_path("off"), Ok(None));
        for wrong in ["/one", "/one /two /three", "", "\"/a /b"] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
        assert!(word("a b").is_err() && word("'a b'").is_ok());
    }

    #[test]
    fn patterns_of_domains_never_look_at_case_and_those_of_paths_do() {
        let pattern = |read: Result<Option<super::Replacement>, String>| {
            let Replaced::Pattern(pattern) = read.expect("a pair").expect("not off").from else {
                panic!("no pattern")
            };
            pattern
        };
        assert!(pattern(own_domain("~up.example demo.test")).is_match("UP.example"));
        assert!(!pattern(path("~^/in /out")).is_match("/IN"));
        assert!(pattern(path("~*^/in /out")).is_match("/IN"));
    }

    #[test]
    fn annotations_hold_no_variables_and_the_config_map_may() {
        assert!(own_path("/a /$host").is_err() && path("/a /$host").is_ok());
        assert!(domain("a $nope").is_err() && path("~( /x").is_err());
        assert_eq!(
            domain(".up.example x").expect("a pair"),
            domain("up.example x").expect("a pair")
        );
    }
}
