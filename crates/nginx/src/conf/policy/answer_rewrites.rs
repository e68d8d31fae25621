//! `proxy-redirect-*` and `proxy-cookie-*` (ngx_http_proxy_module).

use super::super::Word;
use super::super::location::At;
use super::super::pattern::pattern;
use super::super::tree::{put, words};
use model::policy::{AnswerRewrites, RedirectRewrite, Replaced, Replacement};

pub(in crate::conf) fn write(policy: &AnswerRewrites, at: &mut At<'_, '_>) {
    let AnswerRewrites { redirect, cookie_domain, cookie_path } = policy;
    match redirect {
        RedirectRewrite::Off => put!(at.block, "proxy_redirect", false),
        // nginx knows it by the name of its block `upstream`; upstreams know neither.
        RedirectRewrite::UpstreamAddress => {
            put!(at.block, "proxy_redirect", "http://upstream_balancer/", "/");
        }
        RedirectRewrite::Replace(replacement) => {
            at.block.put("proxy_redirect", replaced(replacement));
        }
    }
    if let Some(replacement) = cookie_domain {
        at.block.put("proxy_cookie_domain", replaced(replacement));
    }
    if let Some(replacement) = cookie_path {
        at.block.put("proxy_cookie_path", replaced(replacement));
    }
}

fn replaced(Replacement { from, to }: &Replacement) -> Vec<Word> {
    match from {
        Replaced::Text(text) => words![Word::template(text), Word::template(to)],
        Replaced::Pattern(found) => {
            let mark = if found.ignores_case() { "~*" } else { "~" };
            words![Word::from(mark).then(pattern(found.source())), Word::of_match(to)]
        }
    }
}
