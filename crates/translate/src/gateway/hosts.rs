//! A host with the rules of all routes that answer for it, in the order of the specification.

use super::attach::{Attached, specialty};
use super::closed;
use super::kinds::RouteId;
use super::listeners::{State, certificate_id};
use super::rivals::Lost;
use super::rules::DraftRule;
use model::policy::{Policy, Protocol, RouteFilters, RouteRedirect};
use model::{Backend, Location, Others, RouteHost, RouteKey, Rule, RuleMatch, Scheme, Share};
use objects::{InText, Kind, ObjectKey};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes a host of the routes that have a part in it; none if no route answers for it. First stand the rules of routes
/// that name the host more specially, though the listener makes it the same; last, closed, those of HTTPRoutes without
/// a part, so that nobody comes past their guards by a wider host. Of these, rules of the same path stand in the order
/// in which they are asked, and those for calls of gRPC whatever their paths: those with a longer service, with a
/// longer method of gRPC; those with a method, with more headers, with more query parameters; then the older route, the
/// lesser name, the earlier rule.
pub(super) fn host<'a>(
    key: &RouteKey,
    routes: impl Iterator<Item = &'a Attached>,
    lost: Option<&Lost>,
    gateways: &BTreeMap<ObjectKey, State>,
) -> Option<RouteHost> {
    let mut all = Vec::new();
    let mut certificate: Option<(_, &ObjectKey, &Option<Arc<Others>>)> = None;
    for attached in routes {
        // Of several listeners of a scheme the least port counts for what depends on it.
        let mut ports = BTreeMap::new();
        let winner = |scheme: Scheme| lost?.get(&(attached.id(), scheme));
        // What is a GRPCRoute's goes before all of an HTTPRoute's, so that it would close what the older one has.
        let may_close = attached.route.kind == Kind::HttpRoute;
        let spots = attached.spots.iter().filter(|spot| spot.key == *key);
        for spot in spots.filter(|spot| may_close || winner(spot.scheme).is_none()) {
            let (at, others) = ((spot.port, &spot.gateway), spot.others.clone());
            let known = ports.entry(spot.scheme).or_insert_with(|| (at, others.clone()));
            *known = (at.min(known.0), of_both(known.1.take(), others));
            let meta = &attached.route.meta;
            let order = (Reverse(spot.special), meta.created, InText(&meta.key));
            if let Some(secret) = &spot.certificate
                && winner(spot.scheme).is_none()
                && certificate.as_ref().is_none_or(|(known, ..)| order < *known)
            {
                certificate = Some((order, secret, &spot.others));
            }
        }
        let rules = || attached.draft.rules.iter().enumerate();
        let own = specialty(&attached.route.hostnames, &key.host);
        all.extend(ports.into_iter().flat_map(|(scheme, at)| {
            let to = winner(scheme);
            let of = (attached, to, (to.is_some(), Reverse(own)));
            rules().map(move |(index, rule)| (of, index, scheme, at.clone(), rule))
        }));
    }
    if all.is_empty() {
        return None;
    }
    all.sort_by_cached_key(|((attached, _, tier), index, scheme, ..)| {
        let special = Reverse(special(&attached.draft.rules[*index]));
        let (kind, meta) = (attached.route.kind, &attached.route.meta);
        (*tier, special, meta.created, InText(meta.key.clone()), kind, *index, *scheme)
    });
    let mut made = RouteHost {
        named: certificate.as_ref().is_some_and(|((Reverse((exact, _)), ..), ..)| *exact > 0),
        not_shown_to: certificate.as_ref().and_then(|(.., others)| (*others).clone()),
        certificate: certificate.map(|(_, secret, _)| certificate_id(secret)),
        rules: Vec::with_capacity(all.len()),
        ..RouteHost::new(key.host.clone())
    };
    let (mut tier, mut adapted) = (None, Adapted::default());
    for ((attached, to, own), _, scheme, ((port, gateway), others), rule) in all {
        if tier.replace(own).is_some_and(|before| before != own) {
            made.tiers.push(made.rules.len());
        }
        let place = |to| [(1, closed::place(&attached.route, &rule.matches, gives_way(to)))];
        let (state, closed) = (gateways.get(gateway), to.map(place));
        let leads = closed.as_ref().map_or(&rule.shares[..], |place| place);
        add(&mut made, (scheme, others), rule, leads, |location| adapted.at(location, port, state));
    }
    made.locations.shrink_to_fit();
    Some(made)
}

/// How special the call is that a rule asks for, and then what it asks for besides a path.
fn special(rule: &DraftRule) -> ((u32, u32), bool, usize, usize) {
    let RuleMatch { method, headers, query, .. } = &*rule.matches;
    (rule.called, method.is_some(), headers.len(), query.len())
}

/// The hosts that a route has at neither of two listeners.
fn of_both(one: Option<Arc<Others>>, other: Option<Arc<Others>>) -> Option<Arc<Others>> {
    let (one, other) = (one?, other?);
    if one == other {
        return Some(one);
    }
    let both = one.of_both(&other);
    (both != Others::default()).then(|| Arc::new(both))
}

/// Why a place leads nowhere though its route is in order.
fn gives_way((kind, ObjectKey { namespace, name }): &RouteId) -> String {
    let kind = kind.name();
    format!("the route gives way to {kind} {namespace}/{name}, which comes first: see its status")
}

fn add(
    host: &mut RouteHost,
    (scheme, others): (Scheme, Option<Arc<Others>>),
    rule: &DraftRule,
    leads: &[(u32, Arc<Location>)],
    mut adapt: impl FnMut(&Arc<Location>) -> Arc<Location>,
) {
    let mut shares = Vec::with_capacity(leads.len());
    for (weight, location) in leads {
        shares.push(Share { weight: *weight, location: host.locations.len() });
        host.locations.push(adapt(location));
    }
    host.rules.push(Rule { matches: rule.matches_of(scheme), others, shares });
}

/// Locations as listeners have them; those that had the same policy have the same one again.
#[derive(Default)]
struct Adapted<'a> {
    /// By the policy before: that with the certificate of a Gateway.
    with_identity: BTreeMap<(*const Policy, Option<&'a ObjectKey>), Arc<Policy>>,
    /// By the policy before: that of a redirect for a port.
    on_port: BTreeMap<(*const Policy, u16), Arc<Policy>>,
}

impl<'a> Adapted<'a> {
    fn at(
        &mut self,
        location: &Arc<Location>,
        port: u16,
        state: Option<&'a State>,
    ) -> Arc<Location> {
        let location = self.for_port(location, port);
        let guard = location.policy.route.as_ref().and_then(|filters| filters.guard.as_ref());
        let is_tls = matches!(location.policy.protocol, Protocol::Https | Protocol::Grpcs)
            || guard.is_some_and(|guard| guard.tls.is_some());
        let Some(identity) = state.and_then(|state| state.identity.as_ref()).filter(|_| is_tls)
        else {
            return location;
        };
        let identity = match identity {
            Ok(identity) => identity,
            // Whoever expects a certificate is not asked without one.
            Err((_, why)) => {
                let backend = Backend::Broken(why.clone());
                return Arc::new(Location { backend, ..Location::clone(&location) });
            }
        };
        let whose = state.map(|state| &state.gateway.meta.key);
        let known = self.with_identity.entry((Arc::as_ptr(&location.policy), whose));
        let policy = known.or_insert_with(|| {
            let mut policy = Policy::clone(&location.policy);
            policy.upstream_tls.identity = Some(identity.clone());
            let guard = policy.route.as_mut().and_then(|filters| filters.guard.as_mut());
            if let Some(tls) = guard.and_then(|guard| Arc::make_mut(guard).tls.as_mut()) {
                tls.identity = Some(identity.clone());
            }
            Arc::new(policy)
        });
        Arc::new(Location { policy: policy.clone(), ..Location::clone(&location) })
    }

    /// The location for a listener of this port: a redirect may name it.
    fn for_port(&mut self, location: &Arc<Location>, port: u16) -> Arc<Location> {
        let filters = location.policy.route.as_ref();
        let Some((filters, redirect)) =
            filters.and_then(|filters| Some((filters, filters.redirect.as_ref()?)))
        else {
            return location.clone();
        };
        let known = self.on_port.entry((Arc::as_ptr(&location.policy), port));
        let policy = known.or_insert_with(|| {
            let redirect = RouteRedirect { listener_port: port, ..redirect.clone() };
            let filters = RouteFilters { redirect: Some(redirect), ..RouteFilters::clone(filters) };
            let policy = Policy::clone(&location.policy);
            Arc::new(Policy { route: Some(Box::new(filters)), ..policy })
        });
        Arc::new(Location { policy: policy.clone(), ..Location::clone(location) })
    }
}
