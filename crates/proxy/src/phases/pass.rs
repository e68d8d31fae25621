//! `proxy_pass` and `grpc_pass` of snippets: which upstream, and which path it gets (ngx_http_proxy_module).

use super::{Stop, rewrite};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::snippet::on_machine;
use bytes::Bytes;
use model::UpstreamId;
use model::snippet::{Pass, PassTarget, Template};
use std::sync::Arc;
use upstream::Group;
use wire::percent;

/// The variable that names the upstream of `upstream_balancer`.
const NAME: &str = "proxy_upstream_name";

/// Where the request goes as snippets say it. `moved` if the location's own program has changed the path: then nginx
/// passes it on as it is.
pub(super) fn aim(exchange: &mut Exchange, moved: bool) -> Result<(), Stop> {
    let Some(level) = exchange.spot().snippet.clone() else { return Ok(()) };
    let pass = level.settings.pass.as_ref();
    if let Some(path) = pass.and_then(|pass| pass.path.as_ref()) {
        replace_path(exchange, path, moved)?;
    }
    let of_service = |pass: &Pass| matches!(pass.target, PassTarget::Service { .. });
    if pass.is_some_and(of_service) || (pass.is_none() && exchange.spot().group.is_none()) {
        return Ok(());
    }
    let Some(running) = &exchange.snippet else { return Ok(()) };
    let ingress = running.ingress.and_then(|index| exchange.place.as_ref()?.site.spots.get(index));
    let group = match running.state.own(NAME) {
        Some(name) => Some(named(exchange, name)?),
        // What the controller set at the location before is still set.
        None if level.own => ingress.and_then(|spot| spot.group.clone()),
        None => None,
    };
    if level.own && group.is_none() {
        return Err(Error::NotItsUpstream("-".to_owned()).into());
    }
    exchange.visit.named = group;
    Ok(())
}

/// The upstream of a name. Which names a snippet may write was judged when it was read.
fn named(exchange: &Exchange, name: &str) -> Result<Arc<Group>, Error> {
    let group = exchange.generation.groups.get(&UpstreamId::new(name));
    group.cloned().ok_or_else(|| Error::NotItsUpstream(name.to_owned()))
}

/// What stands behind the host of a `proxy_pass`: it takes the place of what the location matched, or of everything
/// where it has variables.
fn replace_path(exchange: &mut Exchange, path: &Template, moved: bool) -> Result<(), Stop> {
    let Some(literal) = path.literal() else {
        let text = on_machine(exchange, |machine| machine.expand_header(path))?.unwrap_or_default();
        if !text.is_empty() {
            exchange.visit.rewritten = Some(target(&text)?);
        }
        return Ok(());
    };
    if moved {
        return Ok(());
    }
    let matched = exchange.spot().location.path.len();
    let rest = exchange.path.get(matched..).unwrap_or_default();
    let target = format!("{literal}{}", route::path::encode(rest));
    let query = exchange.query().filter(|query| !query.is_empty());
    exchange.visit.rewritten = Some(rewrite::with_query(target.into_bytes(), query));
    Ok(())
}

/// A path and its query as variables made them: canonical, and without what would end the request line.
fn target(text: &str) -> Result<Bytes, Error> {
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    let graphic = |byte| matches!(byte, b'!'..=b'~');
    // `$request_uri` is escaped already: a `%` stays one.
    let path = percent::encoded(&route::path::bytes(path), graphic);
    let path = route::path::canonical(path.as_ref()).map_err(Error::BadRewrite)?.path.into_owned();
    let query = query.map(|query| percent::encoded(&route::path::bytes(query), graphic));
    let path = route::path::encode(&path).into_owned().into_bytes();
    Ok(rewrite::with_query(path, query.as_deref().map(AsRef::as_ref)))
}
