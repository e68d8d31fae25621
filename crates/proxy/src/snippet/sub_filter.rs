//! `sub_filter`: texts of bodies that are replaced (ngx_http_sub_module).

use super::answer_headers::is_of;
use crate::under_way::Programs;
use bytes::Bytes;
use model::snippet::{Answers, Template};
use snippet::run::{Exceeded, Machine, Request};
use std::sync::Arc;
use wire::{Body, Field, Response, Search, Substituted};

/// Bytes of all texts of one answer that stand instead of others.
const TEXTS: usize = 1 << 20;
/// Bytes of all that are looked for, where the search has to be made for each answer.
const SOUGHT: usize = 64 << 10;
/// Bytes that a text takes besides its own.
const TEXT: usize = 64;

/// What is replaced in bodies, compiled.
#[derive(Debug)]
pub(crate) struct Filter {
    pairs: Vec<(Template, Template)>,
    /// The search, where it is the same for every request.
    search: Option<Arc<Search>>,
    /// In lower case; all if there are none.
    types: Vec<String>,
    once: bool,
    keeps_last_modified: bool,
}

impl Filter {
    /// Compiles what one level says; none if it replaces nothing.
    pub(crate) fn new(answers: &Answers) -> Option<Self> {
        if answers.sub_filters.is_empty() {
            return None;
        }
        let filters = &answers.sub_filters;
        let literals: Option<Vec<&str>> =
            filters.iter().map(|filter| filter.from.literal()).collect();
        let mut types: Vec<String> = answers.sub_filter_types.clone().unwrap_or_default();
        if types.iter().any(|name| name == "*") {
            types.clear()
        } else {
            types.push("text/html".to_owned())
        }
        types.iter_mut().for_each(|name| name.make_ascii_lowercase());
        Some(Self {
            pairs: filters.iter().map(|filter| (filter.from.clone(), filter.to.clone())).collect(),
            search: literals.and_then(|literals| Search::new(&literals)),
            types,
            once: answers.sub_filter_once.unwrap_or(true),
            keeps_last_modified: answers.sub_filter_last_modified.unwrap_or(false),
        })
    }

    /// Whether the body of an answer is looked through. One that is encoded has no text.
    pub(crate) fn suits(&self, response: &Response) -> bool {
        let encoded =
            response.headers.get("content-encoding").is_some_and(|coding| !coding.is_empty());
        let empty = response.announced_length.is_none() && response.body.is_empty();
        let typed = response.headers.get("content-type");
        // `*` takes those without a type, too (ngx_http_test_content_type).
        let is_typed = self.types.is_empty() || typed.is_some();
        !encoded && !empty && is_typed && is_of(&self.types, typed, <[u8]>::eq_ignore_ascii_case)
    }

    /// What is looked for, and what stands instead; none if there is nothing to look for.
    pub(crate) fn texts<R: Request>(
        &self,
        machine: &mut Machine<'_, R>,
    ) -> Result<Option<Texts>, Exceeded> {
        let counted = |text: String, left: &mut usize| {
            *left = left.checked_sub(text.len()).ok_or(Exceeded)?;
            Ok(text)
        };
        let (mut for_sought, mut for_instead) = (SOUGHT, TEXTS);
        let (mut sought, mut instead) = (Vec::new(), Vec::new());
        for (from, to) in &self.pairs {
            if self.search.is_none() {
                let text = counted(machine.expand(from)?, &mut for_sought)?;
                if text.is_empty() {
                    continue;
                }
                sought.push(text);
            }
            let text = counted(machine.expand(to)?, &mut for_instead)?;
            instead.push(Bytes::from(text.into_boxed_str().into_boxed_bytes()));
        }
        let search = self.search.clone().or_else(|| Search::new(&sought));
        Ok(search.map(|search| Texts { search, instead }))
    }

    /// Bytes of what was made for one answer.
    pub(crate) fn size(&self, texts: &Texts) -> usize {
        let search = if self.search.is_none() { texts.search.size() } else { 0 };
        search + texts.instead.iter().map(|text| text.len() + TEXT).sum::<usize>()
    }

    /// The answer with its body looked through, which has room for its texts. The answer to HEAD has the same fields
    /// and no body.
    pub(crate) fn apply(&self, texts: Texts, room: Option<Programs>, response: &mut Response) {
        if response.announced_length.take().is_none() {
            let body = std::mem::replace(&mut response.body, Body::empty());
            let body = Substituted::new(body, texts.search, texts.instead, self.once);
            let room = room.map(|room| Box::new(room) as _);
            response.body = Body::from_source(body.in_room(room));
        }
        if !self.keeps_last_modified {
            response.headers.remove("last-modified");
            response.headers.remove("etag");
        } else {
            let is_strong = |field: &Field<'_>| field.is("etag") && !field.value.starts_with(b"W/");
            response
                .headers
                .rewrite(|field| is_strong(field).then(|| [b"W/", field.value].concat()));
        }
    }
}

/// What is looked for in one body, and what stands instead.
#[derive(Debug)]
pub(crate) struct Texts {
    search: Arc<Search>,
    instead: Vec<Bytes>,
}

#[cfg(test)]
mod tests {
    use super::Filter;
    use crate::snippet::fixture::{Fixed, location, with_machine};
    use bytes::Bytes;
    use http::StatusCode;
    use wire::{Body, Frame, Response};

    fn page(content_type: &'static str, body: &'static str) -> Response {
        let mut response = Response::empty(StatusCode::OK);
        response.headers.add("Content-Type", content_type);
        response.headers.add("ETag", "\"a\"");
        response.headers.add("Last-Modified", "yesterday");
        response.body = Body::full(Bytes::from_static(body.as_bytes()));
        response
    }

    /// What becomes of a page: its fields, and its body.
    async fn filtered(text: &str, mut response: Response) -> (Vec<String>, String) {
        let filter = Filter::new(&location(text).settings.answers).expect("it replaces something");
        if filter.suits(&response) {
            let request = Fixed::of(&[("host", "a.test"), ("http_h", "@HOST@")]);
            let texts = with_machine(&request, |machine| filter.texts(machine));
            let texts = texts.expect("within bounds");
            let texts = texts.expect("there is something to look for");
            filter.apply(texts, None, &mut response);
        }
        let mut body = Vec::new();
        while let Some(Frame::Data(data)) = response.body.frame().await.expect("it is whole") {
            body.extend_from_slice(&data);
        }
        let value = |name| response.headers.text(name).unwrap_or_default().to_owned();
        (vec![value("etag"), value("last-modified")], String::from_utf8(body).expect("text"))
    }

    #[tokio::test]
    async fn texts_of_pages_are_replaced_and_what_names_the_old_body_goes() {
        let text = "sub_filter '<head>' '<head><base>'; sub_filter 'href=\"/' 'href=\"'; sub_filter_once off;";
        let (fields, body) =
            filtered(text, page("Text/HTML; charset=utf-8", "<HEAD><a href=\"/x\">")).await;
        assert_eq!(fields, ["", ""]);
        assert_eq!(body, "<head><base><a href=\"x\">");
        let (fields, body) = filtered(text, page("application/json", "<head>")).await;
        assert_eq!((fields[0].as_str(), body.as_str()), ("\"a\"", "<head>"));
    }

    #[tokio::test]
    async fn types_and_last_modified_and_variables() {
        let text = "sub_filter_types text/plain; sub_filter $http_h $host; sub_filter $http_none x;
            sub_filter_last_modified on;";
        let (fields, body) = filtered(text, page("text/plain", "a @host@ @host@")).await;
        assert_eq!(fields, ["W/\"a\"", "yesterday"]);
        assert_eq!(body, "a a.test @host@");
        let any = "sub_filter a b; sub_filter_types *;";
        assert_eq!(filtered(any, page("image/png", "a")).await.1, "b");
        for (text, body) in [(any, "b"), ("sub_filter a b;", "a")] {
            let mut untyped = page("", "a");
            untyped.headers.remove("content-type");
            assert_eq!(filtered(text, untyped).await.1, body, "{text}");
        }
    }

    #[tokio::test]
    async fn what_is_encoded_or_empty_stays_as_it_is() {
        let mut encoded = page("text/html", "<a>");
        encoded.headers.add("Content-Encoding", "gzip");
        assert_eq!(filtered("sub_filter a b;", encoded).await.1, "<a>");
        let filter = Filter::new(&location("sub_filter a b;").settings.answers).expect("a filter");
        assert!(!filter.suits(&page("text/html", "")));
        assert!(Filter::new(&location("").settings.answers).is_none());
    }
}
