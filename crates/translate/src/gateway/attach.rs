//! Which listeners a route is attached to, under which hosts, and what its parents say about it.

use super::backend_tls::Policies;
use super::few::Few;
use super::kinds::RouteId;
use super::listeners::{Listening, State};
use super::names::covers;
use super::parents::{Ours, ours};
use super::places::Why;
use super::rules::Draft;
use super::status::{Condition, RouteStatus};
use crate::settings::quote;
use model::{Others, RouteKey, Scheme, ServerName};
use objects::gateway::{HttpRoute, Listener, ParentRef};
use objects::{ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Places where a route answers times its rules, at most: each is compiled by itself.
const PLACES: usize = 65_536;

/// A place where a route answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attachment {
    /// The host that both the listener and the route mean, of which listener.
    pub(super) key: RouteKey,
    /// How clients come in.
    pub(super) scheme: Scheme,
    /// The port of the listener.
    pub(super) port: u16,
    /// How special the host name of the listener is: of two listeners for a host, the more special one counts.
    pub(super) special: (usize, usize),
    /// Its certificate.
    pub(super) certificate: Option<ObjectKey>,
    /// Its Gateway.
    pub(super) gateway: ObjectKey,
    /// Hosts below the own one that are somebody else's.
    pub(super) others: Option<Arc<Others>>,
}

/// A route with everything that was made of it.
#[derive(Clone, Debug)]
pub(super) struct Attached {
    /// The object.
    pub(super) route: Arc<HttpRoute>,
    /// What it asks for.
    pub(super) draft: Draft,
    /// Where it answers.
    pub(super) spots: Few<Attachment>,
    /// The listeners that it counts for: Gateway and number.
    pub(super) listeners: Few<(ObjectKey, usize)>,
    /// What its parents say; none if none of them is ours.
    pub(super) status: Option<Arc<RouteStatus>>,
}

impl Attached {
    /// Which route it is.
    pub(super) fn id(&self) -> RouteId {
        (self.route.kind, self.route.meta.key.clone())
    }
}

/// Attaches a route to the Gateways that are there, unless it waits for the reason given, with or without its places.
pub(super) fn attach(
    route: &Arc<HttpRoute>,
    waits: Option<(Why, bool)>,
    gateways: &BTreeMap<ObjectKey, State>,
    (snapshot, tls): (&Snapshot, &Policies),
) -> Attached {
    let mut attached = Attached {
        route: route.clone(),
        draft: Draft::default(),
        spots: Few::default(),
        listeners: Few::default(),
        status: None,
    };
    let own = &route.meta.key.namespace;
    let ours = ours(&route.parents, own, gateways, snapshot);
    if ours.is_empty() {
        return attached;
    }
    attached.draft = match waits {
        Some((why, true)) => Draft::closed(route, why),
        Some((why, false)) => Draft { refused: Some(why), ..Draft::default() },
        None => Draft::read(route, snapshot, tls),
    };
    let (mut told, mut taken) = (Vec::with_capacity(ours.len()), Taken::default());
    let wish = wish(route);
    // One text for all parents.
    let refused = attached.draft.refused.as_ref();
    let refused = refused.map(|(reason, message)| Condition::fails("Accepted", reason, message));
    let (resolved, partial) = (attached.draft.resolved(), attached.draft.partial());
    for (parent, (state, set)) in ours {
        let found = listeners(&wish, parent, (state, set), snapshot);
        let accepted = match (&refused, found) {
            (_, Err((reason, message))) => Condition::fails("Accepted", reason, message),
            (Some(refused), Ok(found)) => {
                take(&mut taken, route, state, &found);
                refused.clone()
            }
            (None, Ok(found)) => {
                take(&mut taken, route, state, &found);
                Condition::holds("Accepted", "Accepted")
            }
        };
        let partial = partial.clone().filter(|_| accepted.holds);
        let conditions = [accepted, resolved.clone()].into_iter().chain(partial);
        let mut conditions: Vec<_> = conditions.collect();
        conditions.shrink_to_fit();
        told.push((parent.clone(), conditions));
    }
    let rules = attached.draft.rules.len();
    let too_many = taken.spots.len() * rules > PLACES;
    if refused.is_some() {
        // It is attached to none, though its places are kept, closed.
        taken.listeners.clear();
    } else if too_many {
        refuse_too_many(&mut told);
        taken.listeners.clear();
    }
    if too_many || refused.is_some() && rules == 0 {
        taken.spots.clear();
    }
    (attached.spots, attached.listeners) = (taken.spots.into(), taken.listeners.into());
    attached.status =
        Some(Arc::new(RouteStatus { generation: route.meta.generation, parents: told }));
    attached
}

/// Tells all parents of a route that it would be compiled too often.
fn refuse_too_many(told: &mut [(ParentRef, Vec<Condition>)]) {
    let message = format!(
        "listeners and hosts where it answers times its matches are more than {PLACES}: name fewer parents, or share the rules out among several routes"
    );
    let refused = Condition::fails("Accepted", "UnsupportedValue", message);
    let accepted = told.iter_mut().flat_map(|(_, all)| all).filter(|one| one.kind == "Accepted");
    accepted.for_each(|one| *one = refused.clone());
}

/// Under how many hosts a route would answer at listeners of its parents: those of one name in clear and over TLS are
/// one, and what is a more special listener's of somebody else counts.
pub(super) fn hosts_of(route: &HttpRoute, ours: &[Ours<'_, '_>], snapshot: &Snapshot) -> usize {
    let wish = wish(route);
    let found = attachable(&wish, ours, snapshot);
    let found = found.into_iter().filter(|(state, index)| scheme(state, *index).is_some());
    let keys = found.flat_map(|(state, index)| route_keys(&wish, state, index));
    keys.collect::<BTreeSet<_>>().len()
}

/// The listeners of its parents that take a route.
pub(super) fn attachable<'s>(
    wish: &Wish<'_>,
    ours: &[Ours<'s, '_>],
    snapshot: &Snapshot,
) -> Vec<(&'s State, usize)> {
    let each = ours.iter().flat_map(|(parent, (state, set))| {
        let found = listeners(wish, parent, (state, *set), snapshot).unwrap_or_default();
        found.into_iter().map(|index| (*state, index))
    });
    each.collect()
}

/// The hosts of a listener that a route means.
pub(super) fn route_keys(
    wish: &Wish<'_>,
    state: &State,
    index: usize,
) -> impl Iterator<Item = RouteKey> {
    let own = state.own(index);
    let hosts = hosts(wish.hostnames, state.listener(index).hostname.as_deref());
    hosts.into_iter().map(move |host| RouteKey { listener: own.clone(), host })
}

/// How clients come in at a listener where requests are served.
pub(super) fn scheme(state: &State, index: usize) -> Option<Scheme> {
    state.listeners[index].scheme().filter(|_| state.serves(index))
}

/// What parents say yes to, while it is gathered.
#[derive(Default)]
struct Taken {
    spots: BTreeSet<Attachment>,
    listeners: BTreeSet<(ObjectKey, usize)>,
}

/// Notes the listeners that a parent means, and where the route answers by them.
fn take(taken: &mut Taken, route: &HttpRoute, state: &State, found: &[usize]) {
    for index in found {
        taken.listeners.insert((state.gateway.meta.key.clone(), *index));
        let (listener, read) = (state.listener(*index), &state.listeners[*index]);
        let Some(scheme) = scheme(state, *index) else { continue };
        let own = state.own(*index);
        let certificate = read.certificate.as_ref().and_then(|found| found.as_ref().ok()).cloned();
        for host in hosts(&route.hostnames, listener.hostname.as_deref()) {
            let others = read.others.as_ref();
            if others.is_some_and(|others| others.have(host.as_str())) {
                continue;
            }
            let others = others.filter(|others| others.are_below(host.as_str())).cloned();
            let (port, certificate) = (listener.port, certificate.clone());
            let special = listener.hostname.as_deref().map(rank).unwrap_or_default();
            let key = RouteKey { listener: own.clone(), host };
            let gateway = state.gateway.meta.key.clone();
            let spot = Attachment { key, scheme, port, special, certificate, gateway, others };
            taken.spots.insert(spot);
        }
    }
}

/// What a route asks of listeners.
pub(super) struct Wish<'a> {
    /// Its kind.
    pub(super) kind: &'static str,
    /// Its namespace.
    pub(super) namespace: &'a Arc<str>,
    /// Its host names; none: those of the listener.
    pub(super) hostnames: &'a [String],
}

/// What an HTTPRoute or a GRPCRoute asks of listeners.
pub(super) fn wish(route: &HttpRoute) -> Wish<'_> {
    let HttpRoute { kind, meta, hostnames, .. } = route;
    Wish { kind: kind.name(), namespace: &meta.key.namespace, hostnames }
}

/// What a route says of the listener that it wants.
fn asked(parent: &ParentRef) -> String {
    let section = parent.section.as_deref().map(|name| format!(" named {}", quote(name)));
    let port = parent.port.map(|port| format!(" on port {port}"));
    section.into_iter().chain(port).collect()
}

/// The listeners of a Gateway, or of one of its ListenerSets, that take a route which names it so; or why none does.
pub(super) fn listeners(
    wish: &Wish<'_>,
    parent: &ParentRef,
    (state, set): (&State, Option<usize>),
    snapshot: &Snapshot,
) -> Result<Vec<usize>, (&'static str, String)> {
    let named = state.each().enumerate().filter(|(_, (listener, read))| {
        read.set == set
            && parent.section.as_ref().is_none_or(|section| *section == listener.name)
            && parent.port.is_none_or(|port| port == listener.port)
    });
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        let is_refused = set.is_some_and(|set| state.sets[set].refused.is_some());
        let asked = asked(parent);
        let message = match set {
            Some(_) if is_refused => {
                "the Gateway takes no listeners of the ListenerSet; see its status".to_owned()
            }
            Some(_) => {
                format!("the ListenerSet has no listener{asked}; check sectionName and port")
            }
            None => format!("the Gateway has no listener{asked}; check sectionName and port"),
        };
        return Err(("NoMatchingParent", message));
    }
    let takes = |(listener, read): (&Listener, &Listening)| {
        read.takes.contains(&wish.kind)
            && listener.namespaces.take(
                &state.owner(read).1.namespace,
                wish.namespace,
                &snapshot.namespaces,
            )
    };
    let allowed: Vec<_> = named.iter().copied().filter(|(_, one)| takes(*one)).collect();
    if allowed.is_empty() {
        let named = named.into_iter().map(|(_, one)| one);
        return Err(("NotAllowedByListeners", why_none(wish.kind, &named.collect::<Vec<_>>())));
    }
    let fits = allowed.into_iter().filter(|(_, (listener, _))| {
        !hosts(wish.hostnames, listener.hostname.as_deref()).is_empty()
    });
    let fits: Vec<usize> = fits.map(|(index, _)| index).collect();
    if fits.is_empty() {
        let message = "no host name of the route is one of the listener".to_owned();
        Err(("NoMatchingListenerHostname", message))
    } else {
        Ok(fits)
    }
}

/// Why none of these listeners takes a route of this kind: the kind itself, by their protocol or by what they allow, or
/// else its namespace.
fn why_none(kind: &str, named: &[(&Listener, &Listening)]) -> String {
    if named.iter().any(|(_, read)| read.takes.contains(&kind)) {
        return format!(
            "the listener takes no {kind}s of this namespace; see its allowedRoutes.namespaces"
        );
    }
    if named.iter().any(|(_, read)| read.may_take(kind)) {
        return format!(
            "allowedRoutes.kinds of the listener has no {kind}; add it, or name another"
        );
    }
    const MOST: usize = 4;
    let had: BTreeSet<&str> = named.iter().map(|(listener, _)| &*listener.protocol).collect();
    let had: Vec<String> = had.into_iter().take(MOST).map(quote).collect();
    let needed = match kind {
        "TLSRoute" => "TLS",
        "TCPRoute" => "TCP",
        "UDPRoute" => "UDP",
        _ => "HTTP or HTTPS",
    };
    format!(
        "{kind}s need a listener of protocol {needed}, and here it is {}: name another listener, or mend its protocol",
        had.join(" and ")
    )
}

/// The hosts that both a route and a listener mean.
pub(super) fn hosts(hostnames: &[String], listener: Option<&str>) -> BTreeSet<ServerName> {
    let listener = listener.map(str::to_ascii_lowercase);
    if hostnames.is_empty() {
        return [listener.map_or_else(ServerName::catch_all, ServerName::new)].into();
    }
    let both = hostnames.iter().filter_map(|host| {
        let host = host.to_ascii_lowercase();
        match &listener {
            None => Some(host),
            Some(listener) if covers(listener, &host) => Some(host),
            Some(listener) if covers(&host, listener) => Some(listener.clone()),
            Some(_) => None,
        }
    });
    both.map(ServerName::new).collect()
}

/// How special the host name is by which a route means a host: an exact one before wildcards, then the longer one.
/// Names below that host have a place of their own, and count for nothing here.
pub(super) fn specialty(hostnames: &[String], host: &ServerName) -> (usize, usize) {
    let own = hostnames.iter().map(|own| own.to_ascii_lowercase());
    let own = own.filter(|own| covers(own, host.as_str()));
    own.map(|own| rank(&own)).max().unwrap_or_default()
}

/// How special a host name is: whatever is exact is more so than a wildcard, and so is what is longer.
pub(super) fn rank(name: &str) -> (usize, usize) {
    (if name.starts_with('*') { 0 } else { name.len() }, name.len())
}

#[cfg(test)]
mod tests {
    use super::specialty;
    use crate::gateway::names::covers;
    use model::ServerName;

    #[test]
    fn the_most_special_host_name_of_a_route_that_means_a_host_counts() {
        let of = |hostnames: &[&str]| {
            let own: Vec<String> = hostnames.iter().map(ToString::to_string).collect();
            specialty(&own, &ServerName::new("a.b.test".to_owned()))
        };
        assert!(of(&["A.b.test"]) > of(&["*.b.test", "c.b.test"]));
        assert!(of(&["*.b.test"]) > of(&["*.test", "*.longer.test"]));
        assert!(of(&["*.test"]) > of(&[]));
    }

    #[test]
    fn a_host_name_below_a_wildcard_says_nothing_of_the_wildcard() {
        let of = |hostnames: &[&str]| {
            let own: Vec<String> = hostnames.iter().map(ToString::to_string).collect();
            specialty(&own, &ServerName::new("*.b.test".to_owned()))
        };
        assert_eq!(of(&["*.b.test", "a-long-one.b.test"]), of(&["*.b.test"]));
        assert_eq!(of(&["*.b.test", "*.of.b.test"]), of(&["*.B.test"]));
        assert_eq!(of(&["*.test", "a.b.test"]), of(&["*.test"]));
    }

    #[test]
    fn a_wildcard_covers_names_at_any_depth_and_narrower_wildcards_but_not_its_parent() {
        for narrow in ["a.test", "b.a.test", "*.a.test", "*.test"] {
            assert!(covers("*.test", narrow), "{narrow}");
        }
        for (wide, narrow) in [
            ("*.a.test", "a.test"),
            ("*.a.test", "*.test"),
            ("a.test", "b.a.test"),
            ("*.a.test", "ba.test"),
        ] {
            assert!(!covers(wide, narrow), "{wide} {narrow}");
        }
    }
}
