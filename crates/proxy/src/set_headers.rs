//! Header fields that configuration sets, compiled: names and plain values are ready to be written.

use bytes::Bytes;
use model::{SetHeader, Template};
use wire::Headers;

/// Header fields that configuration sets, in order.
#[derive(Debug, Default)]
pub struct SetHeaders(Vec<(Bytes, Value)>);

#[derive(Debug)]
enum Value {
    Plain(Bytes),
    Filled(Template),
}

impl SetHeaders {
    /// Compiles fields of a Configuration.
    pub fn new(headers: &[SetHeader]) -> Self {
        let compiled = headers.iter().map(|SetHeader { name, value }| {
            let value = match value.literal() {
                Some(plain) => Value::Plain(Bytes::copy_from_slice(plain.as_bytes())),
                None => Value::Filled(Template::clone(value)),
            };
            (Bytes::copy_from_slice(name.as_bytes()), value)
        });
        Self(compiled.collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a field of this name is set.
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Every name with its value, variables in it as `fill` says; an empty value removes the field.
    pub fn each(&self, fill: impl Fn(&Template) -> String, mut put: impl FnMut(&Bytes, Bytes)) {
        for (name, value) in &self.0 {
            let value = match value {
                Value::Plain(plain) => plain.clone(),
                Value::Filled(template) => line(fill(template)),
            };
            put(name, value);
        }
    }

    /// Sets the fields of an answer (ngx_headers_more's more_set_headers).
    pub fn apply(&self, fill: impl Fn(&Template) -> String, headers: &mut Headers) {
        self.each(fill, |name, value| headers.replace(name, &value));
    }
}

/// What ends a line is no value: `$uri` is decoded, and `%0d%0a` in it must not begin another field.
fn line(value: String) -> Bytes {
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        Bytes::new()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::{SetHeaders, line};
    use model::{SetHeader, Template};

    #[test]
    fn names_are_found_in_any_case() {
        let value = Template::parse("1").expect("no variable");
        let set = SetHeaders::new(&[SetHeader { name: "X-One".to_owned(), value: value.into() }]);
        assert!(set.has(b"x-one") && !set.has(b"X-Two"));
    }

    #[test]
    fn a_value_with_a_line_break_is_none() {
        assert_eq!(line("a\r\nX: y".to_owned()), "");
        assert_eq!(line("a b".to_owned()), "a b");
    }
}
