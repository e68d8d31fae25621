//! `proxy_…`, `grpc_…`, `fastcgi_…`.

pub(crate) use super::client::buffers;

use super::{Reader, header_value, invalid, is_digits, is_header, note_framing, once};
use crate::syntax::{Directive, Word};
use crate::typed::{
    CookieFlags, Pass, PassTarget, ProxyRedirect, Replaced, Replacement, SetHeader, Settings,
    Template,
};
use crate::variables::groups;
use crate::{Mistake, Needed};
use model::Pattern;

pub(crate) fn template(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Template, Mistake> {
    reader.template(&directive.arguments()[0])
}

pub(crate) fn set_header(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Option<SetHeader>, Mistake> {
    let words = directive.arguments();
    let (name, value) = (words[0].text.clone(), header_value(reader, &words[1])?);
    let is_header = is_header(reader, directive, &name);
    // These mean what they say: a request for another protocol passes by itself.
    let usual = match value.literal() {
        None | Some("") => &["host", "connection", "upgrade"][..],
        Some(text) => match text.to_ascii_lowercase().as_str() {
            "close" | "upgrade" | "keep-alive" => &["host", "connection"][..],
            "websocket" => &["host", "upgrade"],
            _ => &["host"],
        },
    };
    if value.literal() != Some("") {
        note_framing(reader, directive, &name, usual);
    }
    Ok(is_header.then_some(SetHeader { name, value, if_not_empty: false }))
}

pub(crate) fn fastcgi_param(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<SetHeader, Mistake> {
    let words = directive.arguments();
    let if_not_empty = match words.get(2) {
        None => false,
        Some(word) if word.text == "if_not_empty" => true,
        Some(word) => return Err(invalid(word, "\"if_not_empty\"")),
    };
    Ok(SetHeader { name: words[0].text.clone(), value: reader.template(&words[1])?, if_not_empty })
}

/// The name of a header that is hidden, in lower case; one that no header can have hides nothing.
pub(crate) fn hidden(_: &mut Reader<'_>, directive: &Directive) -> Result<String, Mistake> {
    let word = &directive.arguments()[0];
    match word.text.is_empty() {
        true => Err(invalid(word, "name of a header")),
        false => Ok(word.text.to_ascii_lowercase()),
    }
}

pub(crate) fn pass_header(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<String, Mistake> {
    hidden(reader, directive)
}

pub(crate) fn ignored(_: &mut Reader<'_>, directive: &Directive) -> Result<Vec<String>, Mistake> {
    const KNOWN: [&str; 9] = [
        "x-accel-redirect",
        "x-accel-expires",
        "x-accel-limit-rate",
        "x-accel-buffering",
        "x-accel-charset",
        "expires",
        "cache-control",
        "set-cookie",
        "vary",
    ];
    let read = |word: &Word| {
        let lower = word.text.to_ascii_lowercase();
        match KNOWN.contains(&lower.as_str()) {
            true => Ok(lower),
            false => Err(invalid(word, "header that can be ignored")),
        }
    };
    directive.arguments().iter().map(read).collect()
}

pub(crate) fn next_upstream(
    _: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<String>, Mistake> {
    const KNOWN: [&str; 13] = [
        "error",
        "timeout",
        "invalid_header",
        "non_idempotent",
        "http_500",
        "http_502",
        "http_503",
        "http_504",
        "http_403",
        "http_404",
        "http_429",
        "updating",
        "off",
    ];
    let read = |word: &Word| match KNOWN.contains(&word.text.as_str()) {
        true => Ok(word.text.clone()),
        false => Err(invalid(word, "reason to try another endpoint")),
    };
    directive.arguments().iter().map(read).collect()
}

pub(crate) fn proxy_pass(
    reader: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    let pass = pass(reader, &directive.arguments()[0], false)?;
    needs_service(reader, directive, &pass);
    once(&mut settings.pass, directive, pass)
}

pub(crate) fn grpc_pass(
    reader: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    let pass = pass(reader, &directive.arguments()[0], true)?;
    needs_service(reader, directive, &pass);
    once(&mut settings.pass, directive, pass)
}

fn needs_service(reader: &mut Reader<'_>, directive: &Directive, pass: &Pass) {
    if pass.target != PassTarget::Balancer {
        reader.need(directive, Needed::Service(pass.target.clone()));
    }
}

fn pass(reader: &Reader<'_>, word: &Word, grpc: bool) -> Result<Pass, Mistake> {
    let schemes = match grpc {
        false => [("http://", false), ("https://", true)],
        true => [("grpc://", false), ("grpcs://", true)],
    };
    let found =
        schemes.iter().find_map(|(scheme, tls)| Some((word.text.strip_prefix(scheme)?, *tls)));
    let (rest, tls) = match found {
        Some(found) => found,
        None if grpc && !word.text.contains("://") => (word.text.as_str(), false),
        None if word.text.contains('$') => return Err(elsewhere(word)),
        None => return Err(invalid(word, "URL of an upstream")),
    };
    // A variable may bring the whole path.
    let (authority, path) = match rest.find(['/', '$']) {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    if grpc && path.is_some() {
        return Err(invalid(word, "URL of an upstream without a path"));
    }
    let target = match authority {
        "upstream_balancer" => PassTarget::Balancer,
        _ => service(authority, tls).ok_or_else(|| elsewhere(word))?,
    };
    let path = path.map(|path| Word { text: path.to_owned(), at: word.at });
    Ok(Pass { grpc, tls, target, path: path.map(|path| reader.template(&path)).transpose()? })
}

/// `name.namespace.svc` or `name.namespace.svc.cluster.local`, perhaps with a port.
pub(crate) fn service(authority: &str, tls: bool) -> Option<PassTarget> {
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|_| is_digits(port))?),
        None => (authority, if tls { 443 } else { 80 }),
    };
    let host = host.strip_suffix(".cluster.local").unwrap_or(host).strip_suffix(".svc")?;
    let (name, namespace) = host.split_once('.')?;
    let is_label = |label: &str| {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(is_part)
    };
    let known = is_label(name) && is_label(namespace);
    known.then(|| PassTarget::Service {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port,
    })
}

fn elsewhere(word: &Word) -> Mistake {
    let text = "proxy_pass to anything but http://upstream_balancer or a Service \
                (http://name.namespace.svc.cluster.local:port); make a Service of type ExternalName for it";
    Mistake::needs_nginx(word.at, text)
}

/// Whether expressions look at the case of letters where they do not say so (`~*`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Kept,
    Ignored,
}

/// Text, or `~expression`, `~*expression`.
fn looked_for(reader: &mut Reader<'_>, word: &Word, case: Case) -> Result<Replacement, Mistake> {
    Ok(match word.text.strip_prefix('~') {
        None => Replacement::Text(reader.template(word)?),
        Some(source) => {
            let starred = source.strip_prefix('*');
            let ignore_case = starred.is_some() || case == Case::Ignored;
            Replacement::Regex(reader.regex(starred.unwrap_or(source), ignore_case, word.at)?)
        }
    })
}

/// A domain without the dot in front (ngx_http_proxy_cookie_domain).
fn without_dot(word: &Word) -> Word {
    let bare = word.text.strip_prefix('.').unwrap_or(&word.text);
    Word { text: bare.to_owned(), at: word.at }
}

/// Reads `off`, or from and to.
fn replaced(
    reader: &mut Reader<'_>,
    directive: &Directive,
    case: Case,
    field: &mut Option<Vec<Replaced>>,
) -> Result<(), Mistake> {
    let words = directive.arguments();
    match (words, field.as_mut()) {
        ([word], None) if word.text == "off" => *field = Some(Vec::new()),
        ([word], _) => return Err(invalid(word, "\"off\", or what is replaced and by what")),
        ([_, ..], Some(known)) if known.is_empty() => {
            return Err(Mistake::refused(
                directive.at(),
                format!("\"{}\" is off already", directive.name()),
            ));
        }
        (words, _) => {
            // Domains are those that are compared without regard to case.
            let is_domain = case == Case::Ignored && !words[0].text.starts_with('~');
            let word = |at: usize| match is_domain {
                true => without_dot(&words[at]),
                false => words[at].clone(),
            };
            let from = looked_for(reader, &word(0), case)?;
            let to = header_value(reader, &word(1))?;
            field.get_or_insert_default().push(Replaced { from, to });
        }
    }
    Ok(())
}

pub(crate) fn cookie_domain(
    reader: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    replaced(reader, directive, Case::Ignored, &mut settings.answers.cookie_domain)
}

pub(crate) fn cookie_path(
    reader: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    replaced(reader, directive, Case::Kept, &mut settings.answers.cookie_path)
}

pub(crate) fn cookie_flags(
    reader: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    let words = directive.arguments();
    if let [word] = words {
        if word.text != "off" {
            return Err(invalid(word, "\"off\", or the name of a cookie and its flags"));
        }
        return once(&mut settings.answers.cookie_flags, directive, Vec::new());
    }
    let flags = words[1..].iter().map(|word| reader.template(word)).collect::<Result<_, _>>()?;
    let name = looked_for(reader, &words[0], Case::Ignored)?;
    settings.answers.cookie_flags.get_or_insert_default().push(CookieFlags { name, flags });
    Ok(())
}

pub(crate) fn proxy_redirect(
    reader: &mut Reader<'_>,
    directive: &Directive,
    settings: &mut Settings,
) -> Result<(), Mistake> {
    let redirects = &mut settings.answers.redirects;
    match directive.arguments() {
        [word] if word.text == "off" => {
            return once(redirects, directive, Vec::new());
        }
        [word] if word.text == "default" => {
            redirects.get_or_insert_default().push(ProxyRedirect::Default);
        }
        [word] => {
            return Err(invalid(word, "\"off\", \"default\", or what is replaced and by what"));
        }
        words => {
            let from = looked_for(reader, &words[0], Case::Kept)?;
            let to = header_value(reader, &words[1])?;
            redirects.get_or_insert_default().push(ProxyRedirect::Replace(Replaced { from, to }));
        }
    }
    Ok(())
}

pub(crate) fn split_path(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Pattern, Mistake> {
    let word = &directive.arguments()[0];
    let regex = reader.regex(&word.text, false, word.at)?;
    match groups(&word.text).len() {
        2.. => Ok(regex.pattern),
        _ => Err(invalid(word, "regular expression with two groups")),
    }
}
