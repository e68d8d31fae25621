//! What a message's Connection fields name.

use crate::{Headers, tokens};
use bytes::Bytes;
use std::collections::HashSet;

/// Bytes of a Connection field that is read anew for each field of the message.
const SHORT: usize = 64;

/// Names of fields that end with the connection, as its Connection fields say (RFC 9110 section 7.6.1). Looking a name
/// up takes about as long however many there are.
#[derive(Debug)]
pub struct Nominated(Names);

#[derive(Debug)]
enum Names {
    None,
    /// The whole value of the only field: nearly always one or two names.
    Few(Bytes),
    /// In lower case; those alone that a field of the message has.
    Many(HashSet<Vec<u8>>),
}

impl Nominated {
    /// Those of a message.
    pub fn of(headers: &Headers) -> Self {
        let Some(first) = headers.bytes("connection") else { return Self(Names::None) };
        if first.len() <= SHORT && headers.all("connection").nth(1).is_none() {
            return Self(Names::Few(first));
        }
        let present: HashSet<Vec<u8>> =
            headers.iter().map(|field| field.name.to_ascii_lowercase()).collect();
        let (mut named, mut lower) = (HashSet::new(), Vec::new());
        for name in headers.all("connection").flat_map(tokens) {
            lower.clear();
            lower.extend(name.iter().map(u8::to_ascii_lowercase));
            if present.contains(&lower) && !named.contains(&lower) {
                named.insert(lower.clone());
            }
        }
        Self(Names::Many(named))
    }

    /// Whether a field of the message is among them.
    pub fn has(&self, name: &[u8]) -> bool {
        match &self.0 {
            Names::None => false,
            Names::Few(value) => tokens(value).any(|member| member.eq_ignore_ascii_case(name)),
            Names::Many(names) => names.contains(&name.to_ascii_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, Nominated};
    use crate::Headers;

    #[test]
    fn names_count_in_any_spelling_and_from_all_fields() {
        let long = format!("{}, X-Long", "x, ".repeat(40));
        for values in [&["close, X-One"][..], &["close", "x-one , ,"], &[&long, "X-ONE"]] {
            let mut headers = Headers::default();
            values.iter().for_each(|value| headers.add("Connection", value));
            headers.add("x-One", "1");
            headers.add("X-Two", "2");
            let named = Nominated::of(&headers);
            assert!(named.has(b"X-One") && named.has(b"x-one"), "{values:?}");
            assert!(!named.has(b"X-Two"), "{values:?}");
        }
        assert!(!Nominated::of(&Headers::default()).has(b"x-one"));
    }

    #[test]
    fn no_more_is_kept_than_the_message_has() {
        let mut headers = Headers::default();
        let names: Vec<String> = (0..10_000).map(|number| format!("x-{number}")).collect();
        headers.add("Connection", names.join(","));
        headers.add("X-7", "7");
        let Nominated(Names::Many(kept)) = Nominated::of(&headers) else {
            panic!("names are looked up where there are many")
        };
        assert_eq!(kept.len(), 1);
    }
}
