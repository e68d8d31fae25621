//! HTTPRoutes and GRPCRoutes of different namespaces that mean the same host: the older one has it. All calls of gRPC
//! are a GRPCRoute's, whatever an HTTPRoute says of their paths, so that a younger one would take what somebody else
//! has. Those of one namespace answer together.

use super::attach::{Attached, listeners, route_keys, scheme, wish};
use super::few::Few;
use super::kinds::RouteId;
use super::listeners::State;
use super::parents::ours;
use super::status::{Condition, RouteStatus};
use super::{Gateways, Work, named};
use model::{RouteKey, Scheme, ServerName};
use objects::{InText, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who has no part in a host as clients come in there, and whose it is.
pub(super) type Lost = BTreeMap<(RouteId, Scheme), RouteId>;

/// Who of the routes that mean a host has no part in it. A route that is refused keeps its part, closed.
fn losers<'a>(key: &RouteKey, routes: impl Iterator<Item = &'a Attached>) -> Lost {
    let mut lost = Lost::default();
    let mut order: Vec<&Attached> = routes.collect();
    if order.windows(2).all(|two| two[0].route.kind == two[1].route.kind) {
        return lost;
    }
    order.sort_by_key(|one| (one.route.meta.created, InText(&one.route.meta.key), one.route.kind));
    for scheme in [Scheme::Http, Scheme::Https] {
        // Of each kind the first ones of two namespaces: whoever comes later is a stranger to one of them, or to none.
        let mut first: Vec<&Attached> = Vec::new();
        for own in &order {
            if !own.spots.iter().any(|spot| spot.key == *key && spot.scheme == scheme) {
                continue;
            }
            let of_kind = |same: bool| {
                first.iter().filter(move |one| (one.route.kind == own.route.kind) == same)
            };
            let namespace = &own.route.meta.key.namespace;
            let is_own = |one: &&&Attached| one.route.meta.key.namespace == *namespace;
            if let Some(rival) = of_kind(false).find(|one| !is_own(one)) {
                lost.insert((own.id(), scheme), rival.id());
            } else if of_kind(true).count() < 2 && !of_kind(true).any(|one| is_own(&one)) {
                first.push(own);
            }
        }
    }
    lost
}

impl Gateways {
    /// Finds who has no part in the hosts that were touched; gives back those whose part is another one than before.
    pub(super) fn find_rivals(&mut self, work: &Work) -> BTreeSet<RouteId> {
        let mut others = BTreeSet::new();
        for key in &work.hosts {
            let routes = self.by_host.get(key).into_iter().flatten();
            let now = losers(key, routes.filter_map(|id| Some(&**self.routes.get(id)?)));
            let before = self.lost.remove(key).unwrap_or_default();
            let places = before.keys().chain(now.keys());
            let differ = places.filter(|place| before.get(*place) != now.get(*place));
            others.extend(differ.map(|(id, _)| id.clone()));
            if !now.is_empty() {
                self.lost.insert(key.clone(), now);
            }
        }
        others
    }

    /// Has a route that was read anew give way where it has no part in a host.
    pub(super) fn give_way(&mut self, id: &RouteId, snapshot: &Snapshot, work: &mut Work) {
        if self.lost.is_empty() {
            return;
        }
        let Some(mut attached) = self.routes.remove(id) else { return };
        let lost = attached.spots.iter().filter_map(|spot| {
            let to = self.lost.get(&spot.key)?.get(&(id.clone(), spot.scheme))?;
            Some(((spot.key.clone(), spot.scheme), to))
        });
        let lost: BTreeMap<_, _> = lost.collect();
        if !lost.is_empty() {
            self.links.take_out(id, &named(&attached), work);
            give_way(&mut attached, &lost, &self.gateways, snapshot);
            self.links.put(id, &named(&attached), work);
        }
        self.routes.insert(id.clone(), attached);
    }
}

/// Takes a route from the listeners where it has no part in any host, and tells it so.
fn give_way(
    attached: &mut Attached,
    lost: &BTreeMap<(RouteKey, Scheme), &RouteId>,
    gateways: &BTreeMap<ObjectKey, State>,
    snapshot: &Snapshot,
) {
    let (route, Some(status)) = (attached.route.clone(), &attached.status) else { return };
    let (mut status, mut left) = (RouteStatus::clone(status), BTreeSet::new());
    let wish = wish(&route);
    let ours = ours(&route.parents, &route.meta.key.namespace, gateways, snapshot);
    for ((parent, (state, set)), (_, told)) in ours.into_iter().zip(&mut status.parents) {
        let (mut whose, mut is_left) = (BTreeMap::new(), false);
        for index in listeners(&wish, parent, (state, set), snapshot).unwrap_or_default() {
            let scheme = scheme(state, index);
            let mut has_part = scheme.is_none();
            for key in route_keys(&wish, state, index) {
                let host = key.host.clone();
                match scheme.and_then(|scheme| lost.get(&(key, scheme))) {
                    Some(to) => drop(whose.insert(host, *to)),
                    None => has_part = true,
                }
            }
            if has_part {
                is_left = true;
                left.insert((state.gateway.meta.key.clone(), index));
            }
        }
        tell(told, &whose, is_left);
    }
    let all: BTreeSet<_> = attached.listeners.iter().cloned().collect();
    attached.listeners = Few::from(all.intersection(&left).cloned().collect::<BTreeSet<_>>());
    attached.status = Some(Arc::new(status));
}

/// Tells a route whose the hosts are in which it has no part, by a parent where it answers for others or for none.
fn tell(told: &mut Vec<Condition>, whose: &BTreeMap<ServerName, &RouteId>, is_left: bool) {
    let Some((host, (kind, key))) = whose.first_key_value() else { return };
    let Some(accepted) = told.iter_mut().find(|one| one.kind == "Accepted" && one.holds) else {
        return;
    };
    let host = match host {
        host if *host == ServerName::catch_all() => "whatever is nobody's host".to_owned(),
        host => format!("host {host}"),
    };
    let more = match whose.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more,"),
    };
    let (kind, ObjectKey { namespace, name }) = (kind.name(), key);
    let why = format!(
        "{host}{more} is for {kind} {namespace}/{name}, which comes first: HTTPRoutes and GRPCRoutes of different \
         namespaces have no host together; take another host, or write the route there"
    );
    if !is_left {
        *accepted = Condition::fails("Accepted", "Conflicted", why);
        told.retain(|one| one.kind != "PartiallyInvalid");
    } else if let Some(known) = told.iter_mut().find(|one| one.kind == "PartiallyInvalid") {
        known.message = format!("{}; {why}", &*known.message).into();
    } else {
        let message = format!("Dropped Rule: {why}").into();
        told.push(Condition { message, ..Condition::holds("PartiallyInvalid", "Conflicted") });
    }
}
