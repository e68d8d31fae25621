//! Addresses, passwords, authenticators and limits.

use super::{Reader, header_value, invalid, is_digits, number};
use crate::syntax::{Directive, Word};
use crate::typed::{
    AccessRule, AuthBasic, ClientAddress, LimitConn, LimitReq, Name, Referers, RequestDelay,
    Satisfy, Template,
};
use crate::{Mistake, Needed};
use ipnet::IpNet;
use std::net::IpAddr;

/// An address or a network; bits behind the prefix are dropped, as nginx does.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    let network: IpNet = text.parse().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.into()))?;
    Some(network.trunc())
}

pub(crate) fn access(_: &mut Reader<'_>, directive: &Directive) -> Result<AccessRule, Mistake> {
    let word = &directive.arguments()[0];
    let whom = match word.text.as_str() {
        "all" => ClientAddress::All,
        "unix:" => ClientAddress::Unix,
        text => ClientAddress::Network(
            network(text).ok_or_else(|| invalid(word, "address or network"))?,
        ),
    };
    Ok(AccessRule { allow: directive.name() == "allow", whom })
}

pub(crate) fn satisfy(word: &Word) -> Result<Satisfy, Mistake> {
    match word.text.as_str() {
        "all" => Ok(Satisfy::All),
        "any" => Ok(Satisfy::Any),
        _ => Err(invalid(word, "\"all\" or \"any\"")),
    }
}

pub(crate) fn auth_basic(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<AuthBasic, Mistake> {
    let word = &directive.arguments()[0];
    match word.text.as_str() {
        "off" => Ok(AuthBasic::Off),
        _ => {
            reader.need(directive, Needed::Passwords);
            Ok(AuthBasic::Realm(header_value(reader, word)?))
        }
    }
}

pub(crate) fn auth_request(_: &mut Reader<'_>, directive: &Directive) -> Result<bool, Mistake> {
    let word = &directive.arguments()[0];
    match word.text.as_str() {
        "off" => Ok(true),
        _ => Err(Mistake::needs_nginx(
            word.at,
            "auth_request with a path; use the annotation `auth-url`",
        )),
    }
}

pub(crate) fn auth_request_set(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<(Name, Template), Mistake> {
    let words = directive.arguments();
    Ok((reader.names.target(&words[0].text, words[0].at)?, reader.template(&words[1])?))
}

pub(crate) fn real_ip_from(
    _: &mut Reader<'_>,
    directive: &Directive,
) -> Result<ClientAddress, Mistake> {
    let word = &directive.arguments()[0];
    match word.text.as_str() {
        "unix:" => Ok(ClientAddress::Unix),
        text => match network(text) {
            Some(network) => Ok(ClientAddress::Network(network)),
            None => {
                Err(Mistake::needs_nginx(word.at, "set_real_ip_from with a name; write networks"))
            }
        },
    }
}

/// A status for what is refused.
pub(crate) fn limit_status(word: &Word) -> Result<u16, Mistake> {
    let status = word.text.parse().ok().filter(|status| (400..=599).contains(status));
    status.ok_or_else(|| invalid(word, "status from 400 to 599"))
}

pub(crate) fn limit_req(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<LimitReq, Mistake> {
    let mut zone = None;
    let mut limit = LimitReq { zone: String::new(), burst: 0, delay: RequestDelay::Beyond(0) };
    for word in directive.arguments() {
        let numeric = |text: &str| number(&Word { text: text.to_owned(), at: word.at });
        match word.text.split_once('=') {
            Some(("zone", name)) if !name.is_empty() => zone = Some(name.to_owned()),
            Some(("burst", burst)) => limit.burst = numeric(burst)?,
            Some(("delay", delay)) => limit.delay = RequestDelay::Beyond(numeric(delay)?),
            None if word.text == "nodelay" => limit.delay = RequestDelay::Never,
            _ => {
                return Err(invalid(
                    word,
                    "part of limit_req; zone=, burst=, delay= and nodelay are",
                ));
            }
        }
    }
    limit.zone = zone.ok_or_else(|| Mistake::refused(directive.at(), "limit_req without zone="))?;
    reader.need(directive, Needed::RequestZone(limit.zone.clone()));
    Ok(limit)
}

pub(crate) fn limit_conn(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<LimitConn, Mistake> {
    let words = directive.arguments();
    let most = words[1].text.parse().ok().filter(|most| *most > 0 && is_digits(&words[1].text));
    let most = most.ok_or_else(|| invalid(&words[1], "number of requests from 1 to 65535"))?;
    reader.need(directive, Needed::ConnectionZone(words[0].text.clone()));
    Ok(LimitConn { zone: words[0].text.clone(), most })
}

pub(crate) fn rate(reader: &mut Reader<'_>, directive: &Directive) -> Result<Template, Mistake> {
    let word = &directive.arguments()[0];
    let template = reader.template(word)?;
    match template.literal() {
        Some(text) if super::bytes(text, "kKmMgG").is_none() => {
            Err(invalid(word, "number of bytes"))
        }
        _ => Ok(template),
    }
}

pub(crate) fn referers(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Referers, Mistake> {
    let mut referers = Referers::default();
    for word in directive.arguments() {
        match word.text.as_str() {
            "none" => referers.none = true,
            "blocked" => referers.blocked = true,
            "server_names" => referers.server_names = true,
            text => match text.strip_prefix('~') {
                Some(source) => referers.patterns.push(reader.regex(source, true, word.at)?),
                None if text.contains("://") => {
                    return Err(invalid(word, "host; a scheme is not part of it"));
                }
                None => {
                    let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
                    referers.hosts.push(host.to_ascii_lowercase() + path);
                }
            },
        }
    }
    Ok(referers)
}
