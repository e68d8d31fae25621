//! What is in force in the words of those who write it: lines of a field, a value, and the keys that may ask for it.

use super::AnyKey;
use model::Url;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// A setting.
pub(crate) struct Line {
    /// The field of the policy, as `/configuration` names it.
    pub(crate) field: &'static str,
    /// Its value. What opens a door is hidden by its type.
    pub(crate) value: String,
    /// Who may ask for it: the first of them counts that is there.
    pub(crate) groups: Vec<Group>,
    /// What of a route of the Gateway API asks for it; empty if nothing does.
    pub(crate) of_route: &'static str,
    /// Whether one Ingress asks for it and others of its host get it.
    pub(crate) of_host: bool,
}

/// Keys that make a setting together.
pub(crate) struct Group {
    /// Without this one the others say nothing.
    pub(crate) needs: &'static dyn AnyKey,
    /// Whether its text says something.
    pub(crate) counts: fn(&str) -> bool,
    pub(crate) keys: Vec<&'static dyn AnyKey>,
}

/// Lines in the order in which they are told.
#[derive(Default)]
pub(crate) struct Lines(pub(crate) Vec<Line>);

impl Lines {
    /// A setting and its value.
    pub(crate) fn add(&mut self, field: &'static str, value: impl Serialize) -> &mut Line {
        let value = words(&value);
        let line = Line { field, value, groups: Vec::new(), of_route: "", of_host: false };
        let at = self.0.len();
        self.0.push(line);
        &mut self.0[at]
    }
}

impl Line {
    /// These keys ask for it, if the first one is written.
    pub(crate) fn by(&mut self, keys: &[&'static dyn AnyKey]) -> &mut Self {
        self.beside(keys[0], keys)
    }

    /// These keys ask for it, if another one is written.
    pub(crate) fn beside(
        &mut self,
        needs: &'static dyn AnyKey,
        keys: &[&'static dyn AnyKey],
    ) -> &mut Self {
        self.groups.push(Group { needs, counts: |_| true, keys: keys.to_vec() });
        self
    }

    /// These keys ask for it, if the text of the first one counts.
    pub(crate) fn by_some(
        &mut self,
        counts: fn(&str) -> bool,
        keys: &[&'static dyn AnyKey],
    ) -> &mut Self {
        self.groups.push(Group { needs: keys[0], counts, keys: keys.to_vec() });
        self
    }

    /// This asks for it in a route of the Gateway API.
    pub(crate) fn of_route(&mut self, what: &'static str) -> &mut Self {
        self.of_route = what;
        self
    }

    /// What one Ingress asks for counts for others of its host.
    pub(crate) fn of_host(&mut self) -> &mut Self {
        self.of_host = true;
        self
    }
}

/// A value as a person writes it.
pub(crate) fn words(value: &impl Serialize) -> String {
    text(&serde_json::to_value(value).unwrap_or(Value::Null))
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => match (fields.get("secs"), fields.get("nanos")) {
            (Some(seconds), Some(nanos)) if fields.len() == 2 => {
                let nanos = nanos.as_u64().and_then(|nanos| u32::try_from(nanos).ok());
                time(Duration::new(seconds.as_u64().unwrap_or(0), nanos.unwrap_or(0)))
            }
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// A time in seconds, or in thousandths of them.
fn time(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// A number of bytes as nginx writes it.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let fits = |(shift, _): &(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.into_iter().find(fits) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// A switch that is written so.
pub(crate) fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// Fields with their values, which are hidden by their type.
pub(crate) fn fields<'a, V: Serialize + 'a>(
    all: impl IntoIterator<Item = (&'a str, &'a V)>,
) -> Vec<String> {
    all.into_iter().map(|(name, value)| format!("{name}: {}", words(value))).collect()
}

/// Where a request of our own goes.
pub(crate) fn url(url: &Url) -> String {
    let Url { secure, authority, target, upstream: _ } = url;
    let scheme = if *secure { "https" } else { "http" };
    let target = if target.parts().is_empty() { String::new() } else { words(target) };
    format!("{scheme}://{}{target}", words(authority))
}

#[cfg(test)]
mod tests {
    use super::{size, words};
    use std::time::Duration;

    #[test]
    fn values_are_in_the_words_of_those_who_write_them() {
        assert_eq!(words(&Duration::from_secs(60)), "60s");
        assert_eq!(words(&Duration::from_millis(1500)), "1500ms");
        assert_eq!(words(&["a", "b"]), "a, b");
        assert_eq!(words(&None::<u8>), "none");
        assert_eq!(words(&Some(Duration::from_secs(5))), "5s");
        assert_eq!([0, 1000, 4096, 8 << 20, 3 << 30].map(size), ["0", "1000", "4k", "8m", "3g"]);
    }
}
