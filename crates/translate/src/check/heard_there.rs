//! Keys of the ConfigMap that ingress-nginx hears, and reads otherwise than they are read here: it decodes them without
//! regard to case, empty booleans as false, empty numbers as 0, and others by what they begin with.

use super::config_map::data;
use super::remark::{Remark, named_of_config_map};
use crate::Options;
use crate::config_map::keys;
use crate::settings::{About, Form, parse};
use objects::Snapshot;
use std::collections::BTreeMap;

/// Keys that begin so are looked up by their very letters there.
const EXACT: &str = "global-auth-";

/// What is the matter with all Ingresses because of such keys.
pub(super) fn of_all(snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let Some((map, data)) = data(snapshot, options) else { return Vec::new() };
    let said = data.iter().filter_map(|(name, text)| {
        let message = match about(name) {
            Some(about) => otherwise(about, text)?,
            None => in_another_case(name, text, data)?,
        };
        Some(Remark { key: Some(named_of_config_map(map, name)), message })
    });
    said.collect()
}

/// The key that is called so.
fn about(name: &str) -> Option<&'static About> {
    keys().map(|(_, key)| key.about()).find(|about| about.in_config_map() == Some(name))
}

/// What a value means there, where it is another one here.
fn otherwise(about: &About, text: &str) -> Option<String> {
    match about.form {
        // An empty one is read as false there, and here as if it were absent.
        Form::Switch(true) if text.is_empty() => Some(
            "is empty, which ingress-nginx takes for false; here the default counts, true: write \"false\", or take the \
             key away"
                .to_owned(),
        ),
        // The same of a number is 0.
        Form::Number if text.is_empty() && !about.default.starts_with('0') => Some(format!(
            "is empty, which ingress-nginx takes for 0; here the default counts, {}: write the number that is meant, or \
             take the key away",
            about.default
        )),
        Form::Number => other_number(text.trim()),
        Form::Switch(_) | Form::Other => None,
    }
}

/// What a number is there, where it is another one here.
fn other_number(text: &str) -> Option<String> {
    let there = by_its_beginning(text)?;
    let here = parse::integer(text).ok();
    match there {
        Some(there) if Some(there) == here => None,
        Some(there) => Some(format!(
            "{text:?} is {there} to ingress-nginx, which goes by what a number begins with; numbers are decimal here: \
             write {there}"
        )),
        None => Some(format!(
            "{text:?} is no number to ingress-nginx, to which a 0 in front means octal, so that its default counts; \
             numbers are decimal here: write it without the 0, or take the key away"
        )),
    }
}

/// A number as Go's `strconv.ParseInt` reads it with base 0, where its beginning is not that of a plain one; none
/// within if it cannot be read.
fn by_its_beginning(text: &str) -> Option<Option<i64>> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = digits.strip_prefix('0').filter(|rest| !rest.is_empty())?;
    if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (first, more) = rest.split_at(1);
    let read = match first {
        "x" | "X" => i64::from_str_radix(more, 16),
        "o" | "O" => i64::from_str_radix(more, 8),
        "b" | "B" => i64::from_str_radix(more, 2),
        _ => i64::from_str_radix(rest, 8),
    };
    Some(read.ok().map(|number| sign * number))
}

/// A key in other letters than its own, which says something there that is not so by itself.
fn in_another_case(name: &str, text: &str, data: &BTreeMap<String, String>) -> Option<String> {
    let names = keys().map(|(_, key)| key.about());
    let mut named = names.filter_map(|about| Some((about, about.in_config_map()?)));
    let (about, own) = named.find(|(_, own)| own.eq_ignore_ascii_case(name))?;
    // Its own letters go first there, too.
    if own.starts_with(EXACT) || data.contains_key(own) {
        return None;
    }
    let is_default = match (about.form, parse::boolean(text.trim())) {
        (Form::Switch(default), Ok(value)) => value == default,
        _ => text.trim() == about.default,
    };
    (!is_default).then(|| {
        format!(
            "is heard by ingress-nginx in any letters, and not here, where keys are written as docs/configmap.md has them: \
             write {own}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::by_its_beginning;
    use crate::config_map::keys;
    use crate::settings::{AnyKey, Form};

    /// Texts to ingress-nginx, or read as decimal numbers there.
    const NO_NUMBERS: [&str; 3] =
        ["otlp-collector-port", "proxy-stream-responses", "worker-processes"];

    #[test]
    fn the_form_of_a_key_is_that_of_what_it_reads() {
        let reads = |key: &dyn AnyKey, text: &str| key.reads(text, false);
        let is_switch = |key| reads(key, "T") && reads(key, "F") && !reads(key, "x");
        let is_number = |key| reads(key, "7") && !reads(key, "7s") && !reads(key, "7k");
        let (mut switches, mut numbers, mut wrong) = (0, 0, Vec::new());
        for (_, key) in keys() {
            let about = key.about();
            let is_right = match about.form {
                Form::Switch(_) => is_switch(key),
                Form::Number => is_number(key),
                Form::Other => {
                    !is_switch(key) && (!is_number(key) || NO_NUMBERS.contains(&about.name))
                }
            };
            switches += usize::from(is_switch(key));
            numbers += usize::from(is_number(key));
            wrong.extend(Some(about.name).filter(|_| !is_right));
        }
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(switches > 30 && numbers > 15, "{switches} switches, {numbers} numbers");
    }

    #[test]
    fn numbers_are_read_by_their_beginning() {
        for (text, number) in
            [("010", 8), ("0x10", 16), ("-0X1f", -31), ("0b11", 3), ("0o17", 15), ("00", 0)]
        {
            assert_eq!(by_its_beginning(text), Some(Some(number)), "{text}");
        }
        assert_eq!(by_its_beginning("08"), Some(None));
        for plain in ["0", "10", "-7", "", "0.5", "x0", "0 1"] {
            assert_eq!(by_its_beginning(plain), None, "{plain}");
        }
    }
}
