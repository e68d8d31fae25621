//! Keys of the ConfigMap that ingress-nginx hears, and reads otherwise than they are read here: it decodes them without
//! regard to case, empty booleans as false, and numbers by what they begin with.

use super::config_map::data;
use super::remark::{Remark, named_of_config_map};
use crate::Options;
use crate::config_map::keys;
use crate::settings::{About, parse};
use objects::Snapshot;
use std::collections::BTreeMap;

/// Keys that look like numbers and are texts there, or are read as decimal ones.
const NO_NUMBERS: [&str; 2] = ["hsts-max-age", "proxy-stream-responses"];
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

fn is_switch(about: &About) -> bool {
    about.kind == "true or false"
}

/// What a value means there, where it is another one here.
fn otherwise(about: &About, text: &str) -> Option<String> {
    let name = about.in_config_map()?;
    if is_switch(about) {
        // An empty one is read as false there, and here as if it were absent.
        let differs = text.is_empty() && about.default.starts_with("true");
        return differs.then(|| {
            "is empty, which ingress-nginx takes for false; here the default counts, true: write \"false\", or take the \
             key away"
                .to_owned()
        });
    }
    let is_number = ["number", "seconds", "bytes"].contains(&about.kind);
    if !is_number || NO_NUMBERS.contains(&name) {
        return None;
    }
    let text = text.trim();
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
    let is_default = match parse::boolean(text.trim()) {
        Ok(value) if is_switch(about) => {
            about.default.starts_with(if value { "true" } else { "false" })
        }
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
