//! `rewrite-target`: the path towards the upstream (ngx_http_rewrite_module, `rewrite … break`).

use super::{Stop, program};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::texts;
use crate::under_way::KeptHeads;
use crate::variables::{self, looked_through};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use model::snippet::Regex;
use model::{Part, Template};
use route::path::BadPath;
use snippet::run::{State, stays_in_query, unescaped_redirect};
use wire::{Response, percent};

pub(super) fn path(exchange: &mut Exchange) -> Result<(), Stop> {
    if !super::route_filters::rewrite(exchange) && !to_target(exchange)? {
        as_it_is(exchange);
    }
    Ok(())
}

/// Rewrites the path if its location has a target for it; whether it does.
pub(super) fn to_target(exchange: &mut Exchange) -> Result<bool, Stop> {
    let policy = exchange.spot().location.policy.clone();
    let Some(rewrite) = &policy.rewrite else { return Ok(false) };
    let path = exchange.path.clone();
    let too_hard = |_| Error::too_hard(&exchange.host, &exchange.spot().location);
    let groups = rewrite.pattern.captures(&path, &exchange.steps).map_err(too_hard)?;
    let Some(groups) = groups else { return Ok(false) };
    if rewrite.is_redirect() {
        let location = address(exchange, &rewrite.target, &groups);
        return Err(Response::redirect(StatusCode::FOUND, location).into());
    }
    exchange.visit.rewritten = Some(rewritten(exchange, &rewrite.target, &groups)?);
    exchange.visit.forwarded_prefix =
        rewrite.prefix.as_ref().and_then(|prefix| forwarded(exchange, prefix, &groups));
    count(exchange);
    if exchange.level().is_some() {
        let regex = Regex { pattern: rewrite.pattern.clone(), names: Vec::new() };
        program::match_path(exchange, &regex)?;
    }
    if let (Some(running), Some(target)) = (&mut exchange.snippet, &exchange.visit.rewritten) {
        running.follow(target);
    }
    Ok(true)
}

/// The path as it stands goes to the upstream: as a snippet made it, or as the client wrote it.
pub(super) fn as_it_is(exchange: &mut Exchange) {
    let is_other = |state: &State| state.rewritten || state.requeried;
    if let Some(running) = exchange.snippet.as_ref().filter(|running| is_other(&running.state)) {
        let encoded = route::path::encode(&exchange.path).into_owned();
        let query = route::path::bytes(&running.state.query);
        let query = Some(&*query).filter(|query| !query.is_empty());
        exchange.visit.rewritten = Some(with_query(encoded.into_bytes(), query));
    } else if exchange.dotted {
        // One meaning of a path: dot segments were resolved for matching, so they are for the upstream, too.
        let encoded = route::path::encode(&exchange.path).into_owned();
        exchange.visit.rewritten = Some(with_query(encoded.into_bytes(), exchange.request.query()));
        count(exchange);
    }
}

/// Counts what was made of the path, where that is long: it stays as long as the request is under way.
#[inline(never)]
fn count(exchange: &mut Exchange) {
    let visit = &exchange.visit;
    let made = [&visit.rewritten, &visit.forwarded_prefix];
    let size = made.iter().map(|text| text.as_ref().map_or(0, Bytes::len)).sum();
    KeptHeads::keep(&mut exchange.kept_heads, &exchange.connection, size);
}

/// Whether groups of the path are escaped where they go into a query or an address: its client wrote escapes, or a `+`,
/// which means something else there (nginx: quoted_uri, plus_in_uri).
fn is_quoted(exchange: &Exchange) -> bool {
    exchange.request.raw_path().iter().any(|byte| matches!(byte, b'%' | b'+'))
}

/// Where a target that is an address leads. The groups of a path were decoded with it.
fn address(exchange: &Exchange, target: &Template, groups: &[Option<&[u8]>]) -> Bytes {
    let quoted = is_quoted(exchange);
    let encoded = |group: &Option<&[u8]>| {
        group.map(|bytes| {
            if quoted {
                percent::encoded(bytes, stays_in_query)
            } else {
                route::path::encode(bytes).into_owned().into_bytes()
            }
        })
    };
    let groups: Vec<Option<Vec<u8>>> = groups.iter().map(encoded).collect();
    let groups: Vec<Option<&[u8]>> = groups.iter().map(Option::as_deref).collect();
    let text = variables::filled(target, exchange, &groups);
    let has_arguments = target.parts().iter().any(|part| match part {
        Part::Text(literal) => literal.contains('?'),
        Part::Capture(_) | Part::Variable(_) => false,
    });
    let query = exchange.query().filter(|query| !query.is_empty());
    let whole = unescaped_redirect(text.strip_suffix('?').unwrap_or(&text));
    let mut location = variables::in_header(&route::path::bytes(&whole));
    if let Some(query) = query.filter(|_| !text.ends_with('?')) {
        let sign: &[u8] = if has_arguments { b"&" } else { b"?" };
        location = [&location, sign, &on_the_wire(query)].concat().into();
    }
    location
}

/// `X-Forwarded-Prefix` with its groups and variables; none if nothing is left of it.
fn forwarded(exchange: &Exchange, prefix: &Template, groups: &[Option<&[u8]>]) -> Option<Bytes> {
    let text = variables::filled(prefix, exchange, groups);
    (!text.is_empty()).then(|| variables::in_own_bytes(&route::path::bytes(&text)))
}

/// The target with its groups and variables filled in. Only a `?` that the target itself has starts arguments.
fn rewritten(
    exchange: &Exchange,
    target: &Template,
    groups: &[Option<&[u8]>],
) -> Result<Bytes, Error> {
    let too_long = || Error::text_too_long(&exchange.host, &exchange.spot().location);
    let (mut path, mut arguments) = (String::new(), None::<String>);
    let quoted = is_quoted(exchange);
    for part in target.parts() {
        if let (Part::Text(literal), None) = (part, &arguments)
            && let Some((before, after)) = literal.split_once('?')
        {
            path.push_str(before);
            arguments = Some(after.to_owned());
            continue;
        }
        let is_escaped = arguments.is_some() && quoted;
        let out = arguments.as_mut().unwrap_or(&mut path);
        match part {
            Part::Text(literal) => out.push_str(literal),
            Part::Capture(group) => {
                let group = groups.get(*group).copied().flatten().unwrap_or_default();
                if is_escaped {
                    // What was decoded with the path would end an argument, or begin one of the client's own.
                    let group = percent::encoded(group, stays_in_query);
                    out.push_str(&String::from_utf8_lossy(&group));
                } else {
                    out.push_str(&route::path::text(group));
                }
            }
            Part::Variable(variable)
                if exchange.texts.may_look(looked_through(variable, exchange)) =>
            {
                variables::push(variable, exchange, out);
            }
            Part::Variable(_) => return Err(too_long()),
        }
        if out.len() > texts::TEXT {
            return Err(too_long());
        }
    }
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    let path = match within(&route::path::bytes(&path)) {
        Err(Error::LeadsOut) if is_dotted(target) => resolved(&route::path::bytes(&path))?,
        path => path?,
    };
    let encoded = route::path::encode(&path).into_owned().into_bytes();
    let query = exchange
        .query()
        .filter(|query| !query.is_empty())
        .filter(|_| arguments.as_deref().is_none_or(|own| !drops_query(own)));
    let own = arguments
        .as_deref()
        .map(|own| own.strip_suffix('?').unwrap_or(own))
        .filter(|own| !own.is_empty());
    let query = match (own, query) {
        (Some(own), Some(query)) => Some([&*route::path::bytes(own), b"&", query].concat()),
        (Some(own), None) => Some(route::path::bytes(own).into_owned()),
        (None, query) => query.map(<[u8]>::to_vec),
    };
    Ok(with_query(encoded, query.as_deref()))
}

/// A target that ends in `?` does not take the request's arguments along.
fn drops_query(own: &str) -> bool {
    own.is_empty() || own.ends_with('?')
}

/// The same of a path for which no location is looked for any more: its guards were asked about the path that matched,
/// and dot segments that a request brings into another one may not lead out of what they close.
pub(super) fn within(path: &[u8]) -> Result<Vec<u8>, Error> {
    let escaped = route::path::encode(path).into_owned();
    match route::path::canonical(escaped.as_bytes()) {
        Ok(canonical) if !canonical.dotted => Ok(canonical.path.into_owned()),
        Ok(_) | Err(BadPath::AboveRoot) => Err(Error::LeadsOut),
        Err(error) => Err(Error::BadRewrite(error)),
    }
}

/// Whether a target has dot segments of its own: these are meant.
#[cold]
fn is_dotted(target: &Template) -> bool {
    target.parts().iter().any(|part| matches!(part, Part::Text(text) if dots(text)))
}

/// Whether a text has whole dot segments.
pub(super) fn dots(text: &str) -> bool {
    ["/./", "/../"].iter().any(|dots| text.contains(dots)) || text.ends_with("/..")
}

/// A rewritten path is canonical again before it leaves (compat/decisions.md). What is a `%` in it stands for itself.
pub(super) fn resolved(path: &[u8]) -> Result<Vec<u8>, Error> {
    let escaped = route::path::encode(path).into_owned();
    let canonical = route::path::canonical(escaped.as_bytes()).map_err(Error::BadRewrite)?;
    Ok(canonical.path.into_owned())
}

/// Arguments without what would end a request line or a header line: variables may have put anything into them.
fn on_the_wire(query: &[u8]) -> Vec<u8> {
    percent::encoded(query, |byte| byte > b' ' && byte != 0x7f)
}

pub(super) fn with_query(path: Vec<u8>, query: Option<&[u8]>) -> Bytes {
    let mut target = BytesMut::from(&path[..]);
    if let Some(query) = query {
        target.extend_from_slice(b"?");
        target.extend_from_slice(&on_the_wire(query));
    }
    target.freeze()
}
