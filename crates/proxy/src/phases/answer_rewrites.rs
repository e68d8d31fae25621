//! `proxy-redirect-*` and `proxy-cookie-*`: Location, Refresh and Set-Cookie of an upstream's answer
//! (ngx_http_proxy_module, proxy_redirect and proxy_cookie_*).

use super::{effects, redirects};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::snippet::on_machine;
use crate::variables;
use model::Template;
use model::policy::{AnswerRewrites, Policy, Protocol, RedirectRewrite, Replaced, Replacement};
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
        let value = value.map_err(|error| failed = Err(error)).ok()?.flatten()?.into_bytes();
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
    headers.rewrite(|field| rewritten(exchange, rewrites, field).filter(|value| is_line(value)));
}

/// A value that is filled in must not end its line: `$uri` is decoded.
fn is_line(value: &[u8]) -> bool {
    !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

fn rewritten(exchange: &Exchange, rewrites: &AnswerRewrites, field: &Field<'_>) -> Option<Vec<u8>> {
    if field.is("location") {
        let value = redirect(exchange, &rewrites.redirect, field.value)?;
        let relative = exchange.spot().location.policy.relative_redirects;
        return Some(redirects::absolute(exchange, relative, value));
    }
    if field.is("refresh") {
        let start = refresh_address(field.value)?;
        let value = redirect(exchange, &rewrites.redirect, &field.value[start..])?;
        return Some([&field.value[..start], &value].concat());
    }
    if field.is("set-cookie") { cookie(exchange, rewrites, field.value) } else { None }
}

/// Where the address in a Refresh header begins: after `url=`.
fn refresh_address(value: &[u8]) -> Option<usize> {
    value.windows(4).position(|four| four.eq_ignore_ascii_case(b"url=")).map(|at| at + 4)
}

fn redirect(exchange: &Exchange, rewrite: &RedirectRewrite, value: &[u8]) -> Option<Vec<u8>> {
    match rewrite {
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
        RedirectRewrite::Replace(replacement) => replaced(exchange, replacement, value),
    }
}

/// The value with the text at its beginning replaced, or replaced as a whole where a pattern matches.
fn replaced(exchange: &Exchange, replacement: &Replacement, value: &[u8]) -> Option<Vec<u8>> {
    match &replacement.from {
        Replaced::Text(from) => {
            let rest = value.strip_prefix(variables::filled(from, exchange, &[]).as_bytes())?;
            let to = variables::filled(&replacement.to, exchange, &[]);
            Some([to.as_bytes(), rest].concat())
        }
        Replaced::Pattern(pattern) => {
            // An answer stays as it is where that is too hard.
            let groups = pattern.captures(value, &exchange.steps).ok().flatten()?;
            let text = variables::filled(&replacement.to, exchange, &groups);
            Some(route::path::bytes(&text).into_owned())
        }
    }
}

/// A domain is replaced as a whole; a dot before it stays.
fn domain(exchange: &Exchange, replacement: &Replacement, value: &[u8]) -> Option<Vec<u8>> {
    let Replaced::Text(from) = &replacement.from else {
        return replaced(exchange, replacement, value);
    };
    let (dot, bare) = match value.strip_prefix(b".") {
        Some(bare) => (&b"."[..], bare),
        None => (&b""[..], value),
    };
    let from = variables::filled(from, exchange, &[]);
    let to: &Template = &replacement.to;
    bare.eq_ignore_ascii_case(from.as_bytes())
        .then(|| [dot, variables::filled(to, exchange, &[]).as_bytes()].concat())
}

/// A Set-Cookie value with its Domain and Path replaced; none if neither is. A cookie without `=` is left alone.
fn cookie(exchange: &Exchange, rewrites: &AnswerRewrites, value: &[u8]) -> Option<Vec<u8>> {
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
        let new = match (&rewrites.cookie_domain, &rewrites.cookie_path) {
            (Some(rule), _) if name.eq_ignore_ascii_case(b"domain") => {
                domain(exchange, rule, value)
            }
            (_, Some(rule)) if name.eq_ignore_ascii_case(b"path") => {
                replaced(exchange, rule, value)
            }
            _ => None,
        };
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
