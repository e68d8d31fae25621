//! Header sections of the answer, kept where a variable asks for them: `$sent_http_*` and `$upstream_http_*`.

use crate::rarely::Nothing;
use model::{Part, Template, Variable};
use wire::{Headers, Length, Response, Version};

/// Which header sections templates ask for. Where none does, nothing is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// What the client gets.
    pub sent: bool,
    /// What the upstream sent.
    pub upstream: bool,
}

impl Watch {
    /// What these templates ask for.
    pub fn of<'t>(templates: impl IntoIterator<Item = &'t Template>) -> Self {
        let mut watch = Self::default();
        for part in templates.into_iter().flat_map(Template::parts) {
            match part {
                Part::Variable(Variable::ResponseHeader(_)) => watch.sent = true,
                Part::Variable(Variable::UpstreamHeader(_)) => watch.upstream = true,
                Part::Variable(_) | Part::Text(_) | Part::Capture(_) => {}
            }
        }
        watch
    }

    /// What either asks for.
    pub fn or(self, other: Self) -> Self {
        Self { sent: self.sent || other.sent, upstream: self.upstream || other.upstream }
    }
}

/// The header sections that were asked for; empty otherwise.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What the client gets, or will get.
    pub sent: Headers,
    /// What the last upstream sent.
    pub upstream: Headers,
}

impl Nothing for Answer {
    const NOTHING: Self = Self { sent: Headers::NONE, upstream: Headers::NONE };

    fn nothing() -> &'static Self {
        static NOTHING: Answer = Answer::NOTHING;
        &NOTHING
    }
}

/// The header section of an answer with the framing that it will have.
pub(crate) fn section(response: &Response, version: Version) -> Headers {
    let mut headers = response.headers.clone();
    match (response.announced_length, response.body.length()) {
        (Some(length), _) | (None, Length::Known(length)) => {
            headers.add("Content-Length", length.to_string());
        }
        (None, Length::Unknown) if version == Version::Http11 => {
            headers.add("Transfer-Encoding", "chunked");
        }
        (None, Length::Unknown) => {}
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::Watch;
    use model::Template;

    #[test]
    fn only_what_is_asked_for_is_kept() {
        let watch = |text| Watch::of([&Template::parse(text).expect("known variables")]);
        assert_eq!(watch("$status $http_host"), Watch::default());
        assert_eq!(watch("$sent_http_x"), Watch { sent: true, upstream: false });
        let both = watch("$sent_http_x").or(watch("a${upstream_http_etag}"));
        assert_eq!(both, Watch { sent: true, upstream: true });
    }
}
