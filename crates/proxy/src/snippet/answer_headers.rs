//! `more_set_headers`, `more_clear_headers`, `expires`, `add_header`, `add_trailer`: what answers of every origin say
//! besides (ngx_http_headers_more_filter_module, then ngx_http_headers_filter_module); and with them their `charset`.

use super::charset::Charset;
use super::expires;
use super::level::Within;
use super::text::{Fill, Text};
use bytes::Bytes;
use model::is_of_connection;
use model::snippet::{AddHeader, Expires, HeaderPattern, Headers, MoreAction, MoreHeader};
use snippet::run::Exceeded;
use std::sync::Arc;
use wire::{Body, Followed, Response};

/// What is done to the header section of an answer, compiled.
#[derive(Debug, Default)]
pub(crate) struct AnswerHeaders {
    /// What `more` begins with, as far as it is the same for all answers: set at once.
    first: wire::Headers,
    more: Vec<More>,
    /// What an `if` block, or a location within that of an Ingress, says of it besides.
    within: Vec<More>,
    /// Whether that hides what the controller adds to answers of the location.
    hides_added: bool,
    expires: Option<Expires>,
    add: Vec<Add>,
    trailers: Vec<Add>,
    charset: Option<Charset>,
    /// Whether it is the same for every request.
    plain: bool,
    /// Whether `more` says a `Location`.
    locates: bool,
}

/// One header of headers-more.
#[derive(Debug)]
struct More {
    action: Action,
    statuses: Arc<[u16]>,
    types: Arc<[String]>,
}

#[derive(Debug)]
enum Action {
    Set(Bytes, Text),
    Append(Bytes, Text),
    Clear(HeaderPattern),
}

/// One `add_header`.
#[derive(Debug)]
struct Add {
    name: Bytes,
    value: Text,
    always: bool,
    /// Whether there is one field of this name at most.
    alone: bool,
}

/// Whether a snippet may not say it: it frames the message or belongs to the connection.
fn frames(name: &str) -> bool {
    is_of_connection(name.as_bytes()) || name.eq_ignore_ascii_case("trailer")
}

fn bytes(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

impl AnswerHeaders {
    /// Compiles what one level says.
    pub(crate) fn new(headers: &Headers, within: Within, charset: Option<Charset>) -> Self {
        let all = &headers.more.0;
        let (outer, inner) = all.split_at(all.len().saturating_sub(within.more));
        let mut more: Vec<More> = outer.iter().filter_map(More::new).collect();
        let first = first_of(&mut more);
        let trailers = headers.add_trailer.iter().filter(|add| may_follow(&add.name)).map(Add::new);
        let add = headers.add.iter().filter(|add| !frames(&add.name)).map(Add::new);
        let expires = headers.expires.clone().filter(|expires| *expires != Expires::Off);
        let mut compiled = Self {
            first,
            more,
            within: inner.iter().filter_map(More::new).collect(),
            hides_added: within.adds,
            expires,
            add: add.collect(),
            trailers: trailers.collect(),
            charset,
            plain: false,
            locates: all.iter().any(|more| match &more.action {
                MoreAction::Set(name, _) | MoreAction::Append(name, _) => {
                    name.eq_ignore_ascii_case("location")
                }
                MoreAction::Clear(_) => false,
            }),
        };
        compiled.plain = compiled.all_plain();
        compiled
    }

    /// Whether nothing is done.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty()
            && self.more.is_empty()
            && self.within.is_empty()
            && self.expires.is_none()
            && self.add.is_empty()
            && self.trailers.is_empty()
            && self.charset.is_none()
    }

    /// Whether it is the same for every request.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether it hides what the controller adds to answers of the location around (nginx: an `add_header` of an inner
    /// level).
    pub(crate) fn hides_added(&self) -> bool {
        self.hides_added
    }

    /// Whether `more_set_headers` says a `Location`.
    pub(crate) fn locates(&self) -> bool {
        self.locates
    }

    /// Whether `more_set_headers` or `more_clear_headers` may replace or remove this field.
    pub(crate) fn replaces(&self, name: &str) -> bool {
        let is_it = |other: &[u8]| other.eq_ignore_ascii_case(name.as_bytes());
        let more = |more: &More| match &more.action {
            Action::Set(other, _) => is_it(other),
            Action::Append(..) => false,
            Action::Clear(pattern) => pattern.matches(name),
        };
        self.first.iter().any(|field| is_it(field.name))
            || self.more.iter().chain(&self.within).any(more)
    }

    /// Whether it depends on the time.
    pub(crate) fn tells_time(&self) -> bool {
        self.expires.is_some()
    }

    fn all_plain(&self) -> bool {
        let more = self.more.iter().chain(&self.within).all(|more| match &more.action {
            Action::Set(_, value) | Action::Append(_, value) => value.is_plain(),
            Action::Clear(_) => true,
        });
        let expires = !matches!(self.expires, Some(Expires::Variable { .. }));
        let charset = self.charset.as_ref().is_none_or(Charset::is_plain);
        more && expires
            && charset
            && self.add.iter().chain(&self.trailers).all(|add| add.value.is_plain())
    }

    /// `more_set_headers` and `more_clear_headers` of the location, and of what is around it.
    pub(crate) fn set(&self, response: &mut Response, fill: &mut dyn Fill) -> Result<(), Exceeded> {
        if !self.first.is_empty() {
            response.headers.put_all(&self.first);
        }
        run(&self.more, response, fill)
    }

    /// Those of the `if` block, or the location, that is within it.
    pub(crate) fn set_within(
        &self,
        response: &mut Response,
        fill: &mut dyn Fill,
    ) -> Result<(), Exceeded> {
        run(&self.within, response, fill)
    }

    /// `expires`; `now` is the second since 1970.
    pub(crate) fn expire(
        &self,
        response: &mut Response,
        now: u64,
        fill: &mut dyn Fill,
    ) -> Result<(), Exceeded> {
        match self.expires.as_ref().filter(|_| is_usual(response)) {
            Some(expires) => expires::apply(expires, now, &mut response.headers, fill),
            None => Ok(()),
        }
    }

    /// `expires`, `add_header`, `charset` and `add_trailer`; `now` is the second since 1970.
    pub(crate) fn add(
        &self,
        response: &mut Response,
        now: u64,
        fill: &mut dyn Fill,
    ) -> Result<(), Exceeded> {
        self.expire(response, now, fill)?;
        let usual = is_usual(response);
        for add in self.add.iter().filter(|add| usual || add.always) {
            let value = add.value.value(fill)?;
            match add.alone {
                true => response.headers.put(&add.name, &value),
                false if value.is_empty() => {}
                false => response.headers.push(&add.name, value),
            }
        }
        if let Some(charset) = &self.charset {
            charset.apply(response, fill)?;
        }
        let mut trailers = wire::Headers::default();
        for add in self.trailers.iter().filter(|add| usual || add.always) {
            let value = add.value.value(fill)?;
            if !value.is_empty() {
                trailers.push(&add.name, value);
            }
        }
        // Where no body is, nothing follows it.
        if !trailers.is_empty() && !response.body.is_empty() {
            let body = std::mem::replace(&mut response.body, Body::empty());
            response.body = Body::from_source(Followed::new(body, trailers));
        }
        Ok(())
    }
}

/// Does what entries of headers-more say. A directive is judged as a whole, by the answer that it finds
/// (ngx_http_headers_more_exec_cmd).
fn run(all: &[More], response: &mut Response, fill: &mut dyn Fill) -> Result<(), Exceeded> {
    let mut judged: Option<(&More, bool)> = None;
    for more in all {
        let suits = match judged {
            Some((before, suits)) if before.stands_beside(more) => suits,
            Some(_) | None => more.suits(response),
        };
        judged = Some((more, suits));
        if !suits {
            continue;
        }
        let headers = &mut response.headers;
        match &more.action {
            Action::Set(name, value) => headers.put(name, &value.value(fill)?),
            Action::Append(name, value) => {
                let value = value.value(fill)?;
                if !value.is_empty() {
                    headers.push(name, value);
                }
            }
            Action::Clear(pattern) => headers.retain(|field| {
                let name = std::str::from_utf8(field.name);
                !name.is_ok_and(|name| is_cleared(pattern, name))
            }),
        }
    }
    Ok(())
}

/// Whether a field is taken away. A `*` looks through the fields that nginx lists, and Content-Type is none of them.
fn is_cleared(pattern: &HeaderPattern, name: &str) -> bool {
    pattern.matches(name) && !(pattern.wildcard && name.eq_ignore_ascii_case("content-type"))
}

/// Whether an answer is of those that nginx's `expires` and `add_header` are for.
fn is_usual(response: &Response) -> bool {
    matches!(response.status.as_u16(), 200 | 201 | 204 | 206 | 301..=304 | 307 | 308)
}

/// Takes away what is set for all answers at the beginning, each name once.
fn first_of(more: &mut Vec<More>) -> wire::Headers {
    let mut first = wire::Headers::default();
    while let Some(next) = more.get(first.len()) {
        let Action::Set(name, Text::Plain(value)) = &next.action else { break };
        let everywhere = next.statuses.is_empty() && next.types.is_empty();
        let again = first.iter().any(|known| known.name.eq_ignore_ascii_case(name));
        if !everywhere || again || value.is_empty() {
            break;
        }
        first.push(name, value);
    }
    more.drain(..first.len());
    first
}

impl Add {
    fn new(said: &AddHeader) -> Self {
        let is = |one: &&str| said.name.eq_ignore_ascii_case(one);
        Self {
            name: bytes(&said.name),
            value: Text::new(&said.value),
            always: said.always,
            alone: ["last-modified", "etag"].iter().any(is),
        }
    }
}

/// Whether a field may stand behind a body: it neither frames it nor says how it is read (RFC 9110 section 6.5.1).
fn may_follow(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let before = ["content-", "www-", "proxy-", "set-cookie", "location", "cache-control"];
    !frames(name) && !before.iter().any(|start| lower.starts_with(start))
}

impl More {
    /// One entry; none if a snippet may not say it.
    fn new(said: &MoreHeader) -> Option<Self> {
        let action = match &said.action {
            MoreAction::Set(name, _) | MoreAction::Append(name, _) if frames(name) => return None,
            MoreAction::Set(name, value) => Action::Set(bytes(name), Text::new(value)),
            MoreAction::Append(name, value) => Action::Append(bytes(name), Text::new(value)),
            MoreAction::Clear(pattern) => Action::Clear(pattern.clone()),
        };
        let (statuses, types) = (Arc::clone(&said.statuses), Arc::clone(&said.types));
        Some(Self { action, statuses, types })
    }

    /// Whether both are of one directive: its headers share what it asks for.
    fn stands_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.statuses, &other.statuses) && Arc::ptr_eq(&self.types, &other.types)
    }

    fn suits(&self, response: &Response) -> bool {
        let status = self.statuses.is_empty() || self.statuses.contains(&response.status.as_u16());
        status && is_of(&self.types, response.headers.get("content-type"), <[u8]>::eq)
    }
}

/// Whether content is of one of these types, in lower case; any if there are none. nginx takes a charset off, and no
/// other parameter (ngx_http_upstream_copy_content_type).
pub(super) fn is_of(
    types: &[String],
    content_type: Option<&[u8]>,
    is: impl Fn(&[u8], &[u8]) -> bool,
) -> bool {
    const CHARSET: &[u8] = b"charset=";
    let value = content_type.unwrap_or_default();
    let is_charset = |parameter: &[u8]| {
        let name = parameter.trim_ascii_start().get(..CHARSET.len());
        name.is_some_and(|name| name.eq_ignore_ascii_case(CHARSET))
    };
    let ends = |at: &usize| value[*at] == b';' && is_charset(&value[at + 1..]);
    let media = &value[..(0..value.len()).find(ends).unwrap_or(value.len())];
    types.is_empty() || types.iter().any(|known| is(known.as_bytes(), media))
}

#[cfg(test)]
mod tests {
    use super::{AnswerHeaders, Within};
    use crate::snippet::fixture::{Fixed, location, with_machine};
    use crate::snippet::text::{AllPlain, Fill};
    use http::StatusCode;
    use snippet::run::Exceeded;
    use wire::Response;

    /// All of it, one after the other.
    fn apply(
        headers: &AnswerHeaders,
        response: &mut Response,
        now: u64,
        fill: &mut dyn Fill,
    ) -> Result<(), Exceeded> {
        headers.set(response, fill)?;
        headers.set_within(response, fill)?;
        headers.add(response, now, fill)
    }

    fn answer(status: u16, fields: &[(&'static str, &'static str)]) -> Response {
        let mut response = Response::empty(StatusCode::from_u16(status).expect("a status"));
        fields.iter().for_each(|(name, value)| response.headers.add(name, *value));
        response
    }

    /// What becomes of an answer, as lines.
    fn said(snippet: &str, request: &Fixed, mut response: Response) -> Vec<String> {
        let headers =
            AnswerHeaders::new(&location(snippet).settings.headers, Within::default(), None);
        let done =
            with_machine(request, |machine| apply(&headers, &mut response, 784_111_777, machine));
        done.expect("within bounds");
        let line = |field: wire::Field<'_>| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            format!("{}: {}", text(field.name), text(field.value))
        };
        response.headers.iter().map(line).collect()
    }

    #[test]
    fn set_replaces_in_its_place_and_an_empty_value_removes() {
        let given = [("X-A", "1"), ("X-B", "2"), ("x-a", "3")];
        let text = "more_set_headers 'X-A: n' 'X-C: c' 'X-B:';";
        assert_eq!(said(text, &Fixed::default(), answer(500, &given)), ["X-A: n", "X-C: c"]);
        let text = "more_set_headers 'X-A: $http_none' 'X-D: $host';";
        let request = Fixed::of(&[("host", "a.test")]);
        assert_eq!(said(text, &request, answer(200, &given)), ["X-B: 2", "X-D: a.test"]);
    }

    #[test]
    fn what_is_the_same_for_all_answers_is_set_in_the_order_in_which_it_is_written() {
        let text = "more_set_headers 'X-A: 1' 'X-B: 2' 'x-a: 3' 'X-C: $host' 'X-B: 4';";
        let request = Fixed::of(&[("host", "a.test")]);
        let expected = ["X-A: 3", "X-B: 4", "X-C: a.test"];
        assert_eq!(said(text, &request, answer(200, &[])), expected);
        let given = [("x-b", "0"), ("X-D", "5"), ("X-B", "6")];
        let expected = ["x-b: 4", "X-D: 5", "X-A: 3", "X-C: a.test"];
        assert_eq!(said(text, &request, answer(404, &given)), expected);
    }

    #[test]
    fn statuses_types_appending_and_beginnings_of_names() {
        let text = "more_set_headers -s '404 500' 'X-S: 1'; more_set_headers -t text/html 'X-T: 1';
            more_set_headers -a 'Set-Cookie: b=2'; more_clear_headers 'X-Hidden-*' -s 404 Etag;";
        let given = [
            ("Content-Type", "text/html; charset=utf-8"),
            ("X-Hidden-One", "1"),
            ("Set-Cookie", "a=1"),
            ("ETag", "x"),
        ];
        let request = Fixed::default();
        let of_404 = ["X-S: 1", "X-T: 1", "Set-Cookie: b=2"];
        let first = "Content-Type: text/html; charset=utf-8";
        let got = said(text, &request, answer(404, &given));
        assert_eq!(got, [&[first, "Set-Cookie: a=1"], &of_404[..]].concat());
        let got = said(text, &request, answer(200, &given));
        let kept = [first, "X-Hidden-One: 1", "Set-Cookie: a=1", "ETag: x"];
        assert_eq!(got, [&kept, &of_404[1..]].concat());
    }

    #[test]
    fn a_type_is_what_stands_before_its_charset_as_it_is_written() {
        for (given, is_it) in [
            ("text/html", true),
            ("text/html;  Charset=x; a=b", true),
            ("text/html; a=b", false),
            ("text/html; a=b; charset=x", false),
            ("text/html ; charset=x", false),
            ("Text/HTML", false),
        ] {
            let text = "more_set_headers -t text/html 'X-T: 1';";
            let got = said(text, &Fixed::default(), answer(200, &[("Content-Type", given)]));
            assert_eq!(got.len() == 2, is_it, "{given}: {got:?}");
        }
    }

    #[test]
    fn a_star_takes_no_content_type_away_and_its_name_does() {
        let given = [("Content-Type", "text/html"), ("Content-Language", "de")];
        let request = Fixed::default();
        let left = said("more_clear_headers 'Content-Ty*' '*';", &request, answer(200, &given));
        assert_eq!(left, ["Content-Type: text/html"]);
        let left = said("more_clear_headers Content-type;", &request, answer(200, &given));
        assert_eq!(left, ["Content-Language: de"]);
    }

    #[test]
    fn a_directive_is_judged_once_and_the_next_one_by_what_that_has_made() {
        let text = "more_set_headers -t text/plain 'Content-Type: text/html' 'X-A: 1';
            more_set_headers -t text/plain 'X-B: 1'; more_set_headers -t text/html 'X-C: 1';";
        let given = [("Content-Type", "text/plain")];
        let expected = ["Content-Type: text/html", "X-A: 1", "X-C: 1"];
        assert_eq!(said(text, &Fixed::default(), answer(200, &given)), expected);
    }

    #[test]
    fn what_is_added_depends_on_the_status_unless_always_and_has_the_last_word() {
        let text = "add_header X-A 1; add_header X-B $arg_b always; add_header X-C \"\" always;
            add_header ETag new; more_clear_headers X-A;";
        let request = Fixed { query: "b=7".to_owned(), ..Fixed::default() };
        let given = [("X-A", "0"), ("ETag", "old")];
        assert_eq!(said(text, &request, answer(200, &given)), ["ETag: new", "X-A: 1", "X-B: 7"]);
        assert_eq!(said(text, &request, answer(404, &given)), ["ETag: old", "X-B: 7"]);
    }

    #[test]
    fn expires_stands_before_what_is_added() {
        let text = "expires 30d; add_header Cache-Control public;";
        let date = "Expires: Tue, 06 Dec 1994 08:49:37 GMT";
        let age = "Cache-Control: max-age=2592000";
        let request = Fixed::default();
        let added = "Cache-Control: public";
        assert_eq!(said(text, &request, answer(200, &[])), [date, age, added]);
        let given = [("Cache-Control", "no-store"), ("Expires", "0"), ("Cache-Control", "private")];
        assert_eq!(said(text, &request, answer(200, &given)), [age, date, added]);
        assert_eq!(said(text, &request, answer(404, &[])), [""; 0]);
    }

    #[test]
    fn nothing_that_frames_a_message_is_said_and_no_value_ends_its_line() {
        let text =
            "more_set_headers 'Content-Length: 3' 'Transfer-Encoding: chunked' 'Connection: x';
            more_set_headers -a 'Trailer: x'; add_header Transfer-Encoding chunked always;
            add_header X-U $uri;";
        let request = Fixed { path: "/a\r\nSet-Cookie: x=y".to_owned(), ..Fixed::default() };
        assert_eq!(said(text, &request, answer(200, &[])), ["X-U: /a%0D%0ASet-Cookie: x=y"]);
    }

    #[tokio::test]
    async fn trailers_follow_a_body_and_texts_name_their_charset() {
        use wire::{Body, Frame, Length};
        let text =
            "add_trailer X-T $arg_b; add_trailer X-Always 1 always; add_trailer Content-Length 5;
            charset utf-8;";
        let scope = location(text);
        let charset = super::Charset::new(&scope.settings.answers);
        let headers = AnswerHeaders::new(&scope.settings.headers, Within::default(), charset);
        let request = Fixed { query: "b=7".to_owned(), ..Fixed::default() };
        for (status, expected) in [(200, &["X-T", "X-Always"][..]), (404, &["X-Always"])] {
            let mut response = answer(status, &[("Content-Type", "text/plain")]);
            response.body = Body::full("ab".into());
            with_machine(&request, |machine| apply(&headers, &mut response, 0, machine))
                .expect("within bounds");
            assert_eq!(response.headers.text("content-type"), Some("text/plain; charset=utf-8"));
            assert_eq!(response.body.length(), Length::Unknown);
            let data = response.body.frame().await.expect("it is whole");
            assert!(matches!(data, Some(Frame::Data(data)) if data == "ab"));
            let Ok(Some(Frame::Trailers(trailers))) = response.body.frame().await else {
                panic!("trailers follow")
            };
            let text = |field: wire::Field<'_>| String::from_utf8_lossy(field.name).into_owned();
            let names: Vec<_> = trailers.iter().map(text).collect();
            assert_eq!(names, expected);
            assert!(response.body.frame().await.expect("it is whole").is_none());
        }
        for (given, kept) in
            [("text/html; charset=x", "text/html; charset=x"), ("image/png", "image/png")]
        {
            let mut response = answer(204, &[("Content-Type", given)]);
            with_machine(&request, |machine| apply(&headers, &mut response, 0, machine))
                .expect("within bounds");
            assert_eq!(response.headers.text("content-type"), Some(kept));
            assert!(response.body.is_empty(), "nothing follows where no body is");
        }
    }

    #[test]
    fn plain_values_need_no_machine() {
        let plain = "more_set_headers 'X-A: 1' 'X-B: 2'; add_header X-C 3; expires 1h;";
        let compiled =
            |text| AnswerHeaders::new(&location(text).settings.headers, Within::default(), None);
        let headers = compiled(plain);
        assert!(headers.is_plain() && !headers.is_empty());
        let mut response = answer(200, &[]);
        apply(&headers, &mut response, 0, &mut AllPlain).expect("nothing is filled in");
        assert_eq!(response.headers.len(), 5);
        assert!(!compiled("add_header X-A $host;").is_plain() && compiled("").is_empty());
        assert!(compiled("expires off;").is_empty());
    }

    #[test]
    fn a_value_beyond_the_bounds_fails_the_answer() {
        let text = "more_set_headers 'X-A: $http_long$http_long';";
        let long = "x".repeat(40_000);
        let headers = AnswerHeaders::new(&location(text).settings.headers, Within::default(), None);
        let mut response = answer(200, &[]);
        let request = Fixed::of(&[("http_long", &long)]);
        let done = with_machine(&request, |machine| apply(&headers, &mut response, 0, machine));
        assert!(done.is_err());
    }

    #[test]
    fn all_values_of_a_request_have_a_bound_together() {
        let long = "x".repeat(60_000);
        let request = Fixed::of(&[("http_long", &long)]);
        for (fields, fits) in [(4, true), (5, false)] {
            let text: String =
                (0..fields).map(|n| format!("add_header X-{n} $http_long;")).collect();
            let headers =
                AnswerHeaders::new(&location(&text).settings.headers, Within::default(), None);
            let mut response = answer(200, &[]);
            let done = with_machine(&request, |machine| apply(&headers, &mut response, 0, machine));
            assert_eq!(done.is_ok(), fits, "{fields}");
        }
    }
}
