//! `charset` and `charset_types`: texts that do not say how they are written (ngx_http_charset_filter_module).

use super::text::{Fill, Text};
use model::Eligible;
use model::snippet::Answers;
use snippet::run::Exceeded;
use wire::{Response, is_token_byte};

/// The types that get a charset where nobody says which.
const TYPES: [&str; 6] = [
    "text/html",
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];

/// What Content-Type says besides.
#[derive(Debug)]
pub(crate) struct Charset {
    name: Text,
    of: Eligible,
}

impl Charset {
    /// None where nothing is said, or that there is none.
    pub(crate) fn new(answers: &Answers) -> Option<Self> {
        let name = answers.charset.as_ref().filter(|name| name.literal() != Some("off"))?;
        let types = match &answers.charset_types {
            None => Some(TYPES.map(str::to_owned).into()),
            Some(types) if types.iter().any(|name| name == "*") => None,
            Some(types) => {
                let lower = types.iter().map(|name| name.to_ascii_lowercase());
                Some(lower.chain([TYPES[0].to_owned()]).collect())
            }
        };
        Some(Self { name: Text::new(name), of: Eligible { min_length: 0, types } })
    }

    /// Whether it is the same for every request.
    pub(super) fn is_plain(&self) -> bool {
        self.name.is_plain()
    }

    /// Names the charset of a text that does not do so itself. Two redirects never do, for browsers that are gone; what
    /// is compressed is left alone.
    pub(super) fn apply(
        &self,
        response: &mut Response,
        fill: &mut dyn Fill,
    ) -> Result<(), Exceeded> {
        let is_coded =
            response.headers.get("content-encoding").is_some_and(|coding| !coding.is_empty());
        if is_coded || matches!(response.status.as_u16(), 301 | 302) {
            return Ok(());
        }
        let Some(said) = response.headers.get("content-type") else { return Ok(()) };
        let is_named = said.windows(8).any(|part| part.eq_ignore_ascii_case(b"charset="));
        if is_named || !std::str::from_utf8(said).is_ok_and(|said| self.of.has_type(said)) {
            return Ok(());
        }
        let name = self.name.value(fill)?;
        if name.is_empty() || !name.iter().all(|&byte| is_token_byte(byte)) {
            return Ok(());
        }
        response.headers.rewrite(|field| {
            let is_it = field.is("content-type");
            is_it.then(|| [field.value, b"; charset=", &name].concat())
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Charset;
    use crate::snippet::fixture::{Fixed, location, with_machine};
    use http::StatusCode;
    use wire::Response;

    /// The Content-Type of an answer behind a snippet.
    fn said(text: &str, status: u16, given: &str) -> String {
        let request = Fixed { query: "c=koi8-r&bad=a b".to_owned(), ..Fixed::default() };
        let charset = Charset::new(&location(text).settings.answers);
        let mut response = Response::empty(StatusCode::from_u16(status).expect("a status"));
        response.headers.add("Content-Type", given);
        if let Some(charset) = charset {
            with_machine(&request, |machine| charset.apply(&mut response, machine))
                .expect("within bounds");
        }
        response.headers.text("content-type").unwrap_or_default().to_owned()
    }

    #[test]
    fn texts_that_name_no_charset_get_one_as_in_nginx() {
        let usual = "charset utf-8;";
        let json = "charset utf-8; charset_types Application/JSON;";
        let all = "charset utf-8; charset_types *;";
        for (text, status, given, added) in [
            (usual, 200, "Text/HTML", "; charset=utf-8"),
            (usual, 404, "application/javascript", "; charset=utf-8"),
            (usual, 200, "application/json", ""),
            (usual, 200, "text/html; x=y", ""),
            (usual, 200, "text/html;Charset=koi8-r", ""),
            (usual, 301, "text/html", ""),
            (usual, 302, "text/html", ""),
            (usual, 303, "text/html", "; charset=utf-8"),
            (json, 200, "application/json", "; charset=utf-8"),
            (json, 200, "text/html", "; charset=utf-8"),
            (json, 200, "text/plain", ""),
            (all, 200, "image/png", "; charset=utf-8"),
            ("charset off; charset_types *;", 200, "text/html", ""),
            ("charset_types *;", 200, "text/html", ""),
            ("charset $arg_c;", 200, "text/html", "; charset=koi8-r"),
            ("charset $arg_none;", 200, "text/html", ""),
            ("charset $arg_bad;", 200, "text/html", ""),
        ] {
            assert_eq!(said(text, status, given), format!("{given}{added}"), "{text} {status}");
        }
    }
}
