//! Which server and location answer: the one meaning of the path, then host, then path (compat/behaviour.md 4 and 5).

use super::{Stop, client_certificate, cors, program, redirects, route_filters, routes};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::generation::{Generation, Site};
use crate::snippet::{Running, judge_head};
use bytes::Bytes;
use http::StatusCode;
use model::{Backend, Location, PathKind, Spent};
use route::Found;
use route::path::Canonical;
use std::borrow::Cow;
use std::sync::Arc;
use wire::lane::{self, Lane, Owner};
use wire::{Length, Response};

pub(super) fn choose(exchange: &mut Exchange) -> Result<(), Stop> {
    let (generation, known) = (exchange.generation.clone(), exchange.known.site::<Site>());
    let site = match exchange.connection.door() {
        Some(door) => {
            // Whoever is refused there takes no turn of those who have asked for nothing yet.
            let door = generation.doors.get(&door).map(|door| Arc::as_ptr(door).addr());
            door.into_iter().for_each(|door| goes_in(exchange, Lane::of(Owner::NOBODY, door)));
            Ok(None)
        }
        None if let Some(site) = &known => Ok(Some(site)),
        None => site(exchange, &generation),
    };
    if let Ok(Some(site)) = site {
        is_for(exchange, site);
    }
    if generation.heads.differ && exchange.place.is_none() {
        let said = site.ok().flatten().and_then(|site| site.own_heads());
        judge_head(&mut exchange.request, generation.global(), said)
            .map_err(|status| Stop::from(Response::page(status)))?;
    }
    let canonical = route::path::canonical(exchange.request.raw_path()).map_err(Error::BadPath)?;
    exchange.dotted = canonical.dotted;
    let path = match &canonical.path {
        Cow::Borrowed(path) if exchange.request.target.starts_with(path) => {
            exchange.request.target.slice(..path.len())
        }
        path => Bytes::copy_from_slice(path),
    };
    if let Some(door) = exchange.connection.door() {
        let place = routes::at_door(exchange, door, &canonical)?;
        is_for(exchange, &place.site);
        (exchange.path, exchange.place) = (path, Some(place));
        return stays(exchange);
    }
    let mut found = None;
    if let Some(place) = routes::choose(exchange, &canonical, site, &mut found)? {
        is_for(exchange, &place.site);
        (exchange.path, exchange.place) = (path, Some(place));
        return stays(exchange);
    }
    let too_hard = |_| Error::TooHard(format!("names (host {})", exchange.host));
    let Some(site) = site.map_err(too_hard)? else {
        return Err(Response::page(StatusCode::NOT_FOUND).into());
    };
    redirects::www(exchange, site)?;
    // What it costs to find is asked for once, whoever asks.
    let mut found = found.unwrap_or_else(|| site.locations.find(&canonical, &exchange.steps));
    exchange.path = path;
    client_certificate::of_host(exchange, site, found)?;
    if site.server.name.as_str() == "_"
        && is_health(exchange, &exchange.path)
        && !is_closer(exchange, site, &found)
    {
        let mut healthy = Response::empty(StatusCode::OK);
        healthy.headers.add("Content-Type", "text/html");
        return Err(healthy.into());
    }
    let mut ended = false;
    if let Some(of_site) = &site.snippet {
        let done = program::of_server(exchange, site, of_site)?;
        if done.moved {
            found = find(exchange, site)?;
        }
        ended = done.ended;
    }
    if !ended {
        redirects::app_root(exchange, site)?;
    }
    enter(exchange, site, found)
}

/// Whoever works for the request goes in the lane of this host from now on.
fn is_for(exchange: &Exchange, site: &Arc<Site>) {
    goes_in(exchange, Lane::of(site.owner, Arc::as_ptr(site).addr()));
}

fn goes_in(exchange: &Exchange, lane: Lane) {
    exchange.connection.lane.set(lane);
    lane::take(lane);
}

/// Whether a path is the one that load balancers ask for of hosts that nobody has.
pub(super) fn is_health(exchange: &Exchange, path: &[u8]) -> bool {
    let health = exchange.worker.listen.health_path.as_bytes();
    !health.is_empty() && path.starts_with(health)
}

/// Whether a path of an Ingress says more of a request than the path of load balancers does (compat/behaviour.md
/// section 5: the exact one, else the longest). Where paths are regular expressions load balancers go before: in
/// ingress-nginx the expression of `/` hides their path, and all of them would take it for ill.
fn is_closer(exchange: &Exchange, site: &Site, found: &Found) -> bool {
    let Location { path, kind, .. } = match *found {
        Found::Location { index } => &*site.spots[index].location,
        // The path lacks only its slash, and is as long as it is without.
        Found::AddSlash { .. } => {
            return exchange.path.len() > exchange.worker.listen.health_path.len();
        }
        _ => return false,
    };
    !site.server.regex && says_more(exchange, *kind, path, &exchange.path)
}

/// Whether a path that a request has says more of it than the path of load balancers. A prefix without a slash at its
/// end is the path itself and what is below the slash.
pub(super) fn says_more(exchange: &Exchange, kind: PathKind, path: &str, asked: &[u8]) -> bool {
    let health = exchange.worker.listen.health_path.len();
    match kind {
        PathKind::Exact => path.as_bytes() == asked,
        PathKind::Prefix => path.len() + usize::from(!path.ends_with('/')) > health,
    }
}

/// Who answers to the host. That is known from now on, unless it depends on more than the name.
fn site<'g>(
    exchange: &Exchange,
    generation: &'g Generation,
) -> Result<Option<&'g Arc<Site>>, Spent> {
    let main = [exchange.worker.listen.http_port, exchange.worker.listen.https_port];
    let port = exchange.connection.local.port();
    let site = generation.site(port, main, &exchange.host, &exchange.steps)?;
    if let Some(site) = site
        && generation.own_servers.is_none()
        && !generation.sites.has_patterns()
    {
        exchange.known.answers(site);
    }
    Ok(site)
}

/// Looks for the location again, after a program of the one at hand has changed the path.
pub(super) fn again(exchange: &mut Exchange) -> Result<(), Stop> {
    let Some(place) = exchange.place.clone() else { return Ok(()) };
    exchange.leave_location();
    let found = find(exchange, &place.site)?;
    enter(exchange, &place.site, found)
}

/// Where the path leads as a snippet has made it; what the host asks of its clients may depend on that.
fn find(exchange: &Exchange, site: &Site) -> Result<Found, Stop> {
    let path = Cow::Borrowed(&exchange.path[..]);
    let canonical = Canonical { path, dotted: false, merged: false };
    let found = site.locations.find(&canonical, &exchange.steps);
    client_certificate::of_host(exchange, site, found)?;
    Ok(found)
}

/// Asks what a location asks of who was led there by its name.
pub(super) fn may_stay(exchange: &mut Exchange) -> Result<(), Stop> {
    let Some(place) = &exchange.place else { return Ok(()) };
    client_certificate::of_host(exchange, &place.site, Found::Location { index: place.index() })?;
    client_certificate::of_location(exchange, place.spot())?;
    stays(exchange)
}

/// Goes where the path leads.
fn enter(exchange: &mut Exchange, site: &Arc<Site>, found: Found) -> Result<(), Stop> {
    let (index, slash) = match found {
        Found::Location { index } => (index, false),
        Found::AddSlash { index } => (index, true),
        Found::TooHard { index } => {
            return Err(Error::too_hard(&exchange.host, &site.spots[index].location).into());
        }
        Found::None => return Err(Response::page(StatusCode::NOT_FOUND).into()),
    };
    client_certificate::of_location(exchange, &site.spots[index])?;
    exchange.place = Some(Place::new(site.clone(), index));
    if site.spots[index].extras().snippet.is_some() && exchange.snippet.is_none() {
        Running::begin_or_follow(exchange);
    }
    program::may_enter(exchange)?;
    if let Err(error) = fits(exchange) {
        exchange.visit.early = true;
        return Err(error.into());
    }
    if slash {
        exchange.visit.early = true;
        return Err(redirects::to_slash(exchange).into());
    }
    leads(exchange)
}

/// Whether a location has the request at all.
fn stays(exchange: &mut Exchange) -> Result<(), Stop> {
    fits(exchange)?;
    leads(exchange)
}

/// Whether it leads anywhere.
fn leads(exchange: &mut Exchange) -> Result<(), Stop> {
    match &exchange.spot().location.backend {
        Backend::Denied(reason) => Err(Error::Denied(reason.clone()).into()),
        Backend::Broken(reason) => {
            let reason = reason.clone();
            Err(broken(exchange, reason))
        }
        // What leads nowhere has policies, too: those of the Ingress that made the host, which come first.
        Backend::NotFound | Backend::Upstream(_) => Ok(()),
    }
}

/// Where a route leads nowhere, a preflight is answered all the same: it would be led to no backend. Others hear that
/// their origin is allowed, or a page would not learn of the 500.
#[cold]
fn broken(exchange: &mut Exchange, reason: String) -> Stop {
    let preflight = route_filters::is_of_gateway(exchange).then(|| cors::preflight(exchange));
    match preflight {
        Some(Err(answered)) => answered,
        Some(Ok(())) | None => Error::Broken(reason).into(),
    }
}

/// A body that is announced larger than the location takes is refused at once (ngx_http_core_find_config_phase).
fn fits(exchange: &Exchange) -> Result<(), Error> {
    let limit = exchange.spot().location.policy.body.max_size;
    match (exchange.request.body.length(), limit) {
        (Length::Known(length), Some(limit)) if length > limit => Err(Error::BodyTooLarge),
        _ => Ok(()),
    }
}
