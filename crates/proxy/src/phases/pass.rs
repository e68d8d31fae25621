//! `proxy_pass` and `grpc_pass` of snippets: which upstream, and which path it gets (ngx_http_proxy_module).

use super::{Stop, rewrite};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::snippet::on_machine;
use bytes::Bytes;
use model::snippet::{Pass, PassTarget, Piece, Template};
use model::{UpstreamId, Variable};
use route::path::BadPath;
use std::sync::Arc;
use upstream::Group;
use wire::percent;

/// What stands in a request line as it is: all else would end the line, or is no ASCII.
const GRAPHIC: fn(u8) -> bool = |byte| byte.is_ascii_graphic();

/// The variable that names the upstream of `upstream_balancer`.
const NAME: &str = "proxy_upstream_name";

/// Where the request goes as snippets say it. `moved` if the location's own program has changed the path: then nginx
/// passes it on as it is.
pub(super) fn aim(exchange: &mut Exchange, moved: bool) -> Result<(), Stop> {
    let Some(level) = exchange.spot().extras().snippet.clone() else { return Ok(()) };
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
    let (group, nobody) = match running.state.own(NAME) {
        Some(name) => (named(exchange, name), Some(name.to_owned())),
        // What the controller set at the location before is still set.
        None if level.own => (ingress.and_then(|spot| spot.group.clone()), Some("-".to_owned())),
        None => (None, None),
    };
    // A location of a snippet has no answer of its own for upstreams without endpoints.
    let group = group.filter(|group| !(level.own && group.is_empty()));
    exchange.visit.nobody = nobody.filter(|_| group.is_none());
    exchange.visit.named = group;
    Ok(())
}

/// The upstream of a name. Which names a snippet may write was judged when it was read.
fn named(exchange: &Exchange, name: &str) -> Option<Arc<Group>> {
    exchange.generation.groups.get(&UpstreamId::new(name)).cloned()
}

/// An upstream that is not there is missed once the guards have let the request in.
pub(super) fn has_upstream(exchange: &mut Exchange) -> Result<(), Stop> {
    let nobody = exchange.visit.written().and_then(|visit| visit.nobody.take());
    let Some(name) = nobody else { return Ok(()) };
    let is_own = exchange.level().is_some_and(|level| level.own);
    let error = if is_own { Error::NoUpstreamOfOwn(name) } else { Error::NotItsUpstream(name) };
    Err(error.into())
}

/// What stands behind the host of a `proxy_pass`: it takes the place of what the location matched, or of everything
/// where it has variables.
fn replace_path(exchange: &mut Exchange, path: &Template, moved: bool) -> Result<(), Stop> {
    let as_received = [Piece::Known(Variable::RequestUri)];
    if *path.pieces == as_received && exchange.received() == &exchange.request.target && !moved {
        return Ok(());
    }
    let Some(literal) = path.literal() else {
        let text = on_machine(exchange, |machine| machine.expand_header(path))?.unwrap_or_default();
        if !text.is_empty() {
            exchange.visit.rewritten = Some(target(&text, has_dots_of_its_own(path))?);
        }
        return Ok(());
    };
    if moved {
        return Ok(());
    }
    let matched = exchange.spot().location.path.len();
    let rest = exchange.path.get(matched..).unwrap_or_default();
    // A path may begin in the midst of a segment: `/static/` and `../admin`.
    if !literal.contains('?')
        && !rewrite::dots(literal)
        && let Err(Error::LeadsOut) = rewrite::within(&[literal.as_bytes(), rest].concat())
    {
        return Err(Error::LeadsOut.into());
    }
    let literal = percent::encoded(literal.as_bytes(), GRAPHIC);
    let literal = String::from_utf8_lossy(&literal);
    let target = format!("{literal}{}", route::path::encode(rest));
    let query = exchange.query().filter(|query| !query.is_empty());
    exchange.visit.rewritten = Some(rewrite::with_query(target.into_bytes(), query));
    Ok(())
}

/// Whether dot segments of a text are meant: the directive has some, or they can only be those of `$request_uri`, which
/// begins with a slash and never leads above it.
fn has_dots_of_its_own(path: &Template) -> bool {
    let of_request =
        |piece: &Piece| matches!(piece, Piece::Text(_) | Piece::Known(Variable::RequestUri));
    let dotted = |piece: &Piece| matches!(piece, Piece::Text(text) if rewrite::dots(text));
    path.pieces.iter().all(of_request) || path.pieces.iter().any(dotted)
}

/// A path and its query as variables made them: canonical, and without what would end the request line.
fn target(text: &str, may_be_dotted: bool) -> Result<Bytes, Error> {
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    // `$request_uri` is escaped already: a `%` stays one.
    let path = percent::encoded(&route::path::bytes(path), GRAPHIC);
    let path = match route::path::canonical(path.as_ref()) {
        Ok(path) if may_be_dotted || !path.dotted => path.path.into_owned(),
        // Its guards were asked about the path that matched.
        Ok(_) | Err(BadPath::AboveRoot) => return Err(Error::LeadsOut),
        Err(error) => return Err(Error::BadRewrite(error)),
    };
    let query = query.map(|query| percent::encoded(&route::path::bytes(query), GRAPHIC));
    let path = route::path::encode(&path).into_owned().into_bytes();
    Ok(rewrite::with_query(path, query.as_deref().map(AsRef::as_ref)))
}
