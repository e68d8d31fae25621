//! `proxy-redirect-*` and `proxy-cookie-*`: Location, Refresh and Set-Cookie of an upstream's answer
//! (ngx_http_proxy_module, proxy_redirect and proxy_cookie_*).

use super::{effects, redirects};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::snippet::on_machine;
use crate::variables;
use model::Template;
use model::policy::{AnswerRewrites, Policy, Protocol, RedirectRewrite, Replaced, Replacement};
use std::cell::OnceCell;
use wire::{Field, Headers};

/// Rewrites the header section of an upstream's answer: as snippets say, where they say anything about it.
pub(super) fn apply(exchange: &mut Exchange, headers: &mut Headers) -> Result<(), Error> {
    match exchange.place_with_effects() {
        Some(place) if effects::of(&place).rewrites.is_some() => {
            of_snippets(exchange, &place, headers)
        }
        Some(_) | None => {
            of_annotations(exchange, headers);
            Ok(())
        }
    }
}

fn of_snippets(exchange: &mut Exchange, place: &Place, headers: &mut Headers) -> Result<(), Error> {
    let policy = &place.spot().location.policy;
    let Some(rewrites) = effects::of(place).rewrites.as_ref().filter(|_| is_http(policy)) else {
        return Ok(());
    };
    let mut failed = Ok(());
    headers.rewrite(|field| {
        if failed.is_err() {
            return None;
        }
        let value = on_machine(exchange, |machine| rewrites.value(machine, field));
        let value = value.map_err(|error| failed = Err(error)).ok()?.flatten()?;
        Some(if field.is("location") {
            redirects::absolute(exchange, policy.relative_redirects, value)
        } else {
            value
        })
    });
    failed
}

/// ngx_http_grpc_module and ngx_http_fastcgi_module rewrite nothing.
fn is_http(policy: &Policy) -> bool {
    matches!(policy.protocol, Protocol::Http | Protocol::Https | Protocol::AutoHttp)
}

fn of_annotations(exchange: &Exchange, headers: &mut Headers) {
    let policy = &exchange.spot().location.policy;
    let rewrites = &policy.answer_rewrites;
    if !is_http(policy) || rewrites.is_empty() {
        return;
    }
    let rules = Rules::of(exchange, rewrites);
    headers.rewrite(|field| {
        // The request ends: nothing more is done for it.
        if exchange.texts.are_overlong() {
            return None;
        }
        rewritten(exchange, &rules, field).filter(|value| is_line(value))
    });
}

/// What is replaced in one answer. It may be much, in each of many attributes: texts that are the same for all of them
/// are filled in once.
struct Rules<'a> {
    redirect: &'a RedirectRewrite,
    addresses: Option<Rule<'a>>,
    domains: Option<Rule<'a>>,
    paths: Option<Rule<'a>>,
}

impl<'a> Rules<'a> {
    fn of(exchange: &'a Exchange, rewrites: &'a AnswerRewrites) -> Self {
        let AnswerRewrites { redirect, cookie_domain, cookie_path } = rewrites;
        let rule = |rule| Rule { exchange, rule, from: OnceCell::new(), to: OnceCell::new() };
        let addresses = match redirect {
            RedirectRewrite::Replace(replacement) => Some(rule(replacement)),
            RedirectRewrite::Off | RedirectRewrite::UpstreamAddress => None,
        };
        let domains = cookie_domain.as_ref().map(rule);
        Self { redirect, addresses, domains, paths: cookie_path.as_ref().map(rule) }
    }
}

/// One of them.
struct Rule<'a> {
    exchange: &'a Exchange,
    rule: &'a Replacement,
    from: OnceCell<String>,
    to: OnceCell<String>,
}

impl Rule<'_> {
    /// What is replaced, where that is a text.
    fn from(&self, template: &Template) -> &[u8] {
        self.from.get_or_init(|| variables::of_request(template, self.exchange)).as_bytes()
    }

    /// What takes its place, which counts each time.
    fn to(&self) -> Option<&[u8]> {
        let texts = &self.exchange.texts;
        let is_first = self.to.get().is_none();
        let to = self.to.get_or_init(|| variables::of_request(&self.rule.to, self.exchange));
        (is_first || texts.may_have(to.len())).then_some(to.as_bytes())
    }

    /// The value with the text at its beginning replaced, or replaced as a whole where a pattern matches.
    fn replaced(&self, value: &[u8]) -> Option<Vec<u8>> {
        match &self.rule.from {
            Replaced::Text(from) => {
                let rest = value.strip_prefix(self.from(from))?;
                Some([self.to()?, rest].concat())
            }
            Replaced::Pattern(pattern) => {
                // An answer stays as it is where that is too hard.
                let groups = pattern.captures(value, &self.exchange.steps).ok().flatten()?;
                let text = variables::filled(&self.rule.to, self.exchange, &groups);
                Some(route::path::bytes(&text).into_owned())
            }
        }
    }

    /// A domain is replaced as a whole; a dot before it stays.
    fn domain(&self, value: &[u8]) -> Option<Vec<u8>> {
        let Replaced::Text(from) = &self.rule.from else { return self.replaced(value) };
        let (dot, bare) = match value.strip_prefix(b".") {
            Some(bare) => (&b"."[..], bare),
            None => (&b""[..], value),
        };
        if !bare.eq_ignore_ascii_case(self.from(from)) {
            return None;
        }
        Some([dot, self.to()?].concat())
    }
}

/// A value that is filled in must not end its line: `$uri` is decoded.
fn is_line(value: &[u8]) -> bool {
    !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

fn rewritten(exchange: &Exchange, rules: &Rules<'_>, field: &Field<'_>) -> Option<Vec<u8>> {
    if field.is("location") {
        let value = redirect(exchange, rules, field.value)?;
        let relative = exchange.spot().location.policy.relative_redirects;
        return Some(redirects::absolute(exchange, relative, value));
    }
    if field.is("refresh") {
        let start = refresh_address(field.value)?;
        let value = redirect(exchange, rules, &field.value[start..])?;
        return Some([&field.value[..start], &value].concat());
    }
    if field.is("set-cookie") { cookie(exchange, rules, field.value) } else { None }
}

/// Where the address in a Refresh header begins: after `url=`.
fn refresh_address(value: &[u8]) -> Option<usize> {
    value.windows(4).position(|four| four.eq_ignore_ascii_case(b"url=")).map(|at| at + 4)
}

fn redirect(exchange: &Exchange, rules: &Rules<'_>, value: &[u8]) -> Option<Vec<u8>> {
    match rules.redirect {
        RedirectRewrite::Off => None,
        RedirectRewrite::UpstreamAddress => {
            let secure = match exchange.spot().location.policy.protocol {
                Protocol::Https => true,
                Protocol::AutoHttp => exchange.connection.tls.is_some(),
                _ => false,
            };
            let scheme: &[u8] = if secure { b"https" } else { b"http" };
            let rest = value.strip_prefix(scheme)?.strip_prefix(b"://upstream_balancer/")?;
            Some([b"/", rest].concat())
        }
        RedirectRewrite::Replace(_) => rules.addresses.as_ref()?.replaced(value),
    }
}

/// A Set-Cookie value with its Domain and Path replaced; none if neither is. A cookie without `=` is left alone.
fn cookie(exchange: &Exchange, rules: &Rules<'_>, value: &[u8]) -> Option<Vec<u8>> {
    let mut attributes = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let pair = attributes.next().filter(|pair| pair.contains(&b'='))?;
    let mut out = pair.to_vec();
    let mut changed = false;
    for attribute in attributes {
        out.extend_from_slice(b"; ");
        let Some(at) = attribute.iter().position(|&byte| byte == b'=') else {
            out.extend_from_slice(attribute);
            continue;
        };
        let (name, value) = (&attribute[..at], &attribute[at + 1..]);
        let new = match (&rules.domains, &rules.paths) {
            (Some(rule), _) if name.eq_ignore_ascii_case(b"domain") => rule.domain(value),
            (_, Some(rule)) if name.eq_ignore_ascii_case(b"path") => rule.replaced(value),
            _ => None,
        };
        if exchange.texts.are_overlong() {
            return None;
        }
        changed |= new.is_some();
        out.extend_from_slice(&attribute[..=at]);
        out.extend_from_slice(new.as_deref().unwrap_or(value));
    }
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::{is_line, refresh_address};

    #[test]
    fn a_refresh_without_an_address_has_none() {
        assert_eq!(refresh_address(b"0; URL=http://x/"), Some(7));
        assert_eq!(refresh_address(b"5"), None);
    }

    #[test]
    fn nothing_that_ends_a_line_is_a_value() {
        assert!(is_line(b"/a b") && !is_line(b"/a\r\nX: y") && !is_line(b"\0"));
    }
}
