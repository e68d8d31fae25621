//! `proxy-next-upstream*`: when another endpoint is tried.

use super::Family;
use crate::settings::{Key, Lines, Risk, Settings, parse};
use model::policy::{Condition, Policy, Retries};
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) const FAMILY: Family =
    Family { name: "retries", keys: &[&CONDITIONS, &TRIES, &TIMEOUT, &NON_IDEMPOTENT], apply };

static CONDITIONS: Key<BTreeSet<Condition>> = Key::both("proxy-next-upstream", conditions)
    .says(
        "words: error, timeout, invalid_header, http_403, http_404, http_429, http_500, http_502, http_503, http_504, \
         non_idempotent, off",
        "error timeout",
        "What counts as a failed try, after which another endpoint is tried.",
    )
    .risk(Risk::Medium);

static TRIES: Key<u32> = Key::both("proxy-next-upstream-tries", parse::count).number(
    "number",
    "3",
    "Tries in all, 101 at most; 0 is 32.",
);

static TIMEOUT: Key<Duration> = Key::both("proxy-next-upstream-timeout", parse::seconds).number(
    "seconds",
    "0",
    "No new try after this time; 0 is unlimited.",
);

static NON_IDEMPOTENT: Key<bool> = Key::config_map("retry-non-idempotent", parse::boolean)
    .switch(false, "POST, LOCK and PATCH are tried again, too.");

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let retries = &mut policy.retries;
    if let Some(conditions) = settings.get(&CONDITIONS) {
        retries.conditions = conditions;
    }
    if !retries.conditions.is_empty() && settings.get_or(&NON_IDEMPOTENT, false) {
        retries.conditions.insert(Condition::NonIdempotent);
    }
    retries.tries = settings.get_or(&TRIES, retries.tries);
    retries.timeout = settings.get_or(&TIMEOUT, retries.timeout);
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(retries: &Retries, lines: &mut Lines) {
    let Retries { conditions, tries, timeout } = retries;
    let words: Vec<String> = conditions.iter().map(word).collect();
    let words = if words.is_empty() { "off".to_owned() } else { words.join(" ") };
    lines
        .add("retries.conditions", words)
        .by(&[&CONDITIONS, &NON_IDEMPOTENT])
        .by(&[&NON_IDEMPOTENT])
        .of_route("retry");
    lines.add("retries.tries", tries).by(&[&TRIES]).of_route("retry.attempts");
    let timeout = Some(timeout).filter(|time| !time.is_zero());
    lines.add("retries.timeout", timeout).by(&[&TIMEOUT]).of_route("timeouts.request");
}

fn word(condition: &Condition) -> String {
    match condition {
        Condition::Error => "error".to_owned(),
        Condition::Timeout => "timeout".to_owned(),
        Condition::InvalidHeader => "invalid_header".to_owned(),
        Condition::Status(status) => format!("http_{status}"),
        Condition::NonIdempotent => "non_idempotent".to_owned(),
    }
}

fn conditions(text: &str) -> Result<BTreeSet<Condition>, String> {
    let mut conditions = BTreeSet::new();
    let mut off = false;
    for word in text.split_ascii_whitespace() {
        conditions.insert(match word {
            "error" => Condition::Error,
            "timeout" => Condition::Timeout,
            "invalid_header" => Condition::InvalidHeader,
            "http_403" => Condition::Status(403),
            "http_404" => Condition::Status(404),
            "http_429" => Condition::Status(429),
            "http_500" => Condition::Status(500),
            "http_502" => Condition::Status(502),
            "http_503" => Condition::Status(503),
            "http_504" => Condition::Status(504),
            "non_idempotent" => Condition::NonIdempotent,
            "off" => {
                off = true;
                continue;
            }
            _ => return Err(format!("has the word \"{word}\", which is no condition: write words such as error timeout http_503, separated by spaces")),
        });
    }
    // nginx: `off` turns everything off, whatever stands beside it.
    Ok(if off { BTreeSet::new() } else { conditions })
}
