//! `more_set_input_headers` and `more_clear_input_headers`: the header section of the request, before anything but
//! programs has looked at it (ngx_http_headers_more_filter_module).

use super::text::{Fill, Text};
use bytes::Bytes;
use model::is_of_connection;
use model::snippet::{HeaderPattern, InputAction, InputHeader, Stacked};
use snippet::run::Exceeded;
use std::sync::Arc;
use wire::Headers;

/// One header of a request that is set or taken away.
#[derive(Debug)]
pub(crate) struct InputField {
    action: Action,
    types: Arc<[String]>,
}

#[derive(Debug)]
enum Action {
    Set(Bytes, Text),
    Replace(Bytes, Text),
    Clear(HeaderPattern),
}

/// Whether a name is free to be taken away. Nothing of the framing is; that a client asks for another protocol is.
fn may_go(name: &[u8]) -> bool {
    !is_of_connection(name) || name.eq_ignore_ascii_case(b"upgrade")
}

/// Compiles what one level says. What frames the message, or belongs to the connection, cannot be set.
pub(crate) fn compile(input: &Stacked<InputHeader>) -> Vec<InputField> {
    let fields = input.0.iter().filter_map(|header| {
        let name = |name: &str| Bytes::copy_from_slice(name.as_bytes());
        let action = match &header.action {
            InputAction::Set(of, _) | InputAction::Replace(of, _)
                if is_of_connection(of.as_bytes()) && !of.eq_ignore_ascii_case("host") =>
            {
                return None;
            }
            InputAction::Set(of, value) => Action::Set(name(of), Text::new(value)),
            InputAction::Replace(of, value) => Action::Replace(name(of), Text::new(value)),
            InputAction::Clear(pattern) => Action::Clear(pattern.clone()),
        };
        Some(InputField { action, types: Arc::clone(&header.types) })
    });
    fields.collect()
}

impl InputField {
    /// The value for a request; empty where there is none.
    pub(crate) fn value(&self, fill: &mut dyn Fill) -> Result<Bytes, Exceeded> {
        match &self.action {
            Action::Set(_, value) | Action::Replace(_, value) => value.value(fill),
            Action::Clear(_) => Ok(Bytes::new()),
        }
    }

    /// Whether it is the host that is set, which is no field among others.
    pub(crate) fn sets_host(&self) -> bool {
        match &self.action {
            Action::Set(name, _) | Action::Replace(name, _) => name.eq_ignore_ascii_case(b"host"),
            Action::Clear(_) => false,
        }
    }

    /// Whether both are of one directive, which is judged once: its headers share what it asks for.
    pub(crate) fn stands_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.types, &other.types)
    }

    /// Whether a request is of the types that the directive names. Of requests headers-more compares the whole value
    /// as it is, parameters and letters.
    pub(crate) fn suits(&self, headers: &Headers) -> bool {
        let said = headers.get("content-type");
        let is_it = |known: &String| Some(known.as_bytes()) == said;
        self.types.is_empty() || self.types.iter().any(is_it)
    }

    /// Sets it, or takes it away.
    pub(crate) fn apply(&self, headers: &mut Headers, value: Bytes) {
        match &self.action {
            Action::Replace(name, _)
                if !headers.iter().any(|field| field.name.eq_ignore_ascii_case(name)) => {}
            Action::Set(name, _) | Action::Replace(name, _) => headers.put(name, &value),
            Action::Clear(pattern) => headers.retain(|field| {
                let named = std::str::from_utf8(field.name).is_ok_and(|name| pattern.matches(name));
                !(named && may_go(field.name))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compile;
    use crate::snippet::fixture::{Fixed, location, with_machine};
    use wire::Headers;

    fn made(text: &str, fields: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers = Headers::default();
        fields.iter().for_each(|(name, value)| headers.add(name, *value));
        let request = Fixed::of(&[("host", "a.test")]);
        let fields = compile(&location(text).settings.headers.input);
        let mut suits = false;
        for (index, field) in fields.iter().enumerate() {
            let is_judged = index > 0 && fields[index - 1].stands_beside(field);
            suits = if is_judged { suits } else { field.suits(&headers) };
            if !suits {
                continue;
            }
            let value = with_machine(&request, |machine| field.value(machine));
            field.apply(&mut headers, value.expect("within bounds"));
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        headers.iter().map(|field| format!("{}: {}", text(field.name), text(field.value))).collect()
    }

    #[test]
    fn fields_are_set_in_their_place_replaced_where_they_are_and_taken_away() {
        let text = "more_set_input_headers 'X-In: $host' 'X-Fixed: 1'; more_clear_input_headers X-Drop 'X-All-*';
            more_set_input_headers -r 'X-There: new' 'X-Absent: new';";
        let given = [
            ("X-Drop", "1"),
            ("x-fixed", "mine"),
            ("X-All-1", "1"),
            ("X-There", "1"),
            ("X-There", "2"),
        ];
        assert_eq!(made(text, &given), ["x-fixed: 1", "X-There: new", "X-In: a.test"]);
    }

    #[test]
    fn types_of_content_choose_requests() {
        let text = "more_set_input_headers -t 'text/plain application/json' 'X-T: 1';";
        assert_eq!(made(text, &[("Content-Type", "application/json")]).len(), 2);
        for other in ["application/json; a=b", "text/plain;x", "TEXT/PLAIN"] {
            assert_eq!(made(text, &[("Content-Type", other)]).len(), 1, "{other}");
        }
        let text = "more_set_input_headers -t 'TEXT/PLAIN' 'X-T: 1';";
        assert_eq!(made(text, &[("Content-Type", "TEXT/PLAIN")]).len(), 2);
        assert_eq!(made(text, &[("Content-Type", "text/html")]).len(), 1);
        assert!(made(text, &[]).is_empty());
    }

    #[test]
    fn the_framing_stays_what_it_is() {
        let text = "more_set_input_headers 'Content-Length: 5' 'Transfer-Encoding: chunked' 'Connection: x'
            'Upgrade: h2c' 'TE: trailers'; more_clear_input_headers '*';";
        let given =
            [("Connection", "x-a"), ("TE", "trailers"), ("Upgrade", "websocket"), ("X-A", "1")];
        assert_eq!(made(text, &given), ["Connection: x-a", "TE: trailers"]);
    }
}
