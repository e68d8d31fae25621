//! `proxy-redirect-*` and `proxy-cookie-*`: addresses in an upstream's answer, told in the words of the front.

use crate::{Pattern, Template, UrlText};
use serde::Serialize;

/// What is replaced in the header section of an upstream's answer (ngx_http_proxy_module).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnswerRewrites {
    /// Location and Refresh.
    pub redirect: RedirectRewrite,
    /// Domain of Set-Cookie; matches as a whole and without regard to case.
    pub cookie_domain: Option<Replacement>,
    /// Path of Set-Cookie; matches at its beginning.
    pub cookie_path: Option<Replacement>,
}

/// What is replaced in Location and Refresh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub enum RedirectRewrite {
    /// Nothing.
    #[default]
    Off,
    /// The address that nginx has for the upstream, `http://upstream_balancer/`, by `/`.
    UpstreamAddress,
    /// This.
    Replace(Replacement),
}

/// What takes the place of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// What is replaced.
    pub from: Replaced,
    /// What takes its place; `$1` … `$9` are the groups of a pattern.
    pub to: UrlText,
}

/// What is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Replaced {
    /// This text; what follows it stays.
    Text(Template),
    /// The whole value, if the pattern matches somewhere in it.
    Pattern(Pattern),
}

impl AnswerRewrites {
    /// Whether there is anything to replace.
    pub fn is_empty(&self) -> bool {
        let Self { redirect, cookie_domain, cookie_path } = self;
        *redirect == RedirectRewrite::Off && cookie_domain.is_none() && cookie_path.is_none()
    }

    /// All its templates.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let Self { redirect, cookie_domain, cookie_path } = self;
        let redirect = match redirect {
            RedirectRewrite::Replace(replacement) => Some(replacement),
            RedirectRewrite::Off | RedirectRewrite::UpstreamAddress => None,
        };
        let all = redirect.into_iter().chain(cookie_domain).chain(cookie_path);
        all.flat_map(|Replacement { from, to }| match from {
            Replaced::Text(from) => [Some(from), Some(&**to)],
            Replaced::Pattern(_) => [None, Some(&**to)],
        })
        .flatten()
    }
}
