//! Leaving out whoever asks for more than nginx's memory has for his namespace: before anything is pushed or written,
//! so that no push is refused for it, and nginx does not grow beyond what the machine has.

use super::{Fault, Instead, LeftOut, ingresses};
use crate::conf::{Owner, taken_by_limits};
use crate::push::{Excess, Item, ROUTES, ZONES, routes};
use model::{Configuration, Origin};
use std::collections::BTreeMap;

/// Who finds no room, and is therefore left out of a Configuration.
pub(crate) fn without_room(next: &Configuration) -> LeftOut {
    let mut left_out = of_routes(next);
    left_out.extend(of_limits(next));
    left_out
}

/// Whose routes find no room.
fn of_routes(next: &Configuration) -> LeftOut {
    let beyond = ROUTES.beyond(&routes::of(next).items());
    if beyond.is_empty() {
        return LeftOut::new();
    }
    let ingresses = ingresses(next);
    let faults = beyond.into_iter().map(|(owner, excess)| {
        let has_paths = owner.host.is_none() && ingresses.contains(&owner.origin);
        let instead = if has_paths { Instead::Closed } else { Instead::Nothing };
        let what = "sessions, hashing and canaries";
        let instructions =
            "write a shorter upstream-hash-by, or fewer paths with affinity or a canary";
        let reason = reason(&owner, excess, what, instructions);
        (owner, Fault { reason, instead, decided: true })
    });
    faults.collect()
}

/// Whose zones find no room: each takes some before anybody is counted in it.
fn of_limits(next: &Configuration) -> LeftOut {
    let mut taken: BTreeMap<&Origin, usize> = BTreeMap::new();
    for location in next.servers.values().flat_map(|server| &server.locations) {
        let bytes = taken_by_limits(&location.policy.limits);
        if let (Some(origin), 1..) = (location.origin.as_deref(), bytes) {
            // All paths of an Ingress share them.
            taken.insert(origin, bytes);
        }
    }
    let items: Vec<_> = taken
        .into_iter()
        .map(|(origin, bytes)| Item {
            namespace: &origin.namespace,
            object: Owner::from(origin),
            key: &origin.name,
            bytes,
        })
        .collect();
    let faults = ZONES.beyond(&items).into_iter().map(|(owner, excess)| {
        let what = "limit-rps, limit-rpm and limit-connections";
        let reason = reason(&owner, excess, what, "give fewer Ingresses limits");
        (owner, Fault { reason, instead: Instead::Closed, decided: true })
    });
    faults.collect()
}

fn reason(owner: &Owner, excess: Excess, what: &str, instructions: &str) -> String {
    let Excess { asked, allowed } = excess;
    format!(
        "what namespace {:?} asks of {what} takes {asked} bytes of nginx's memory, which has {allowed} for it; \
         {instructions}",
        owner.origin.namespace
    )
}

#[cfg(test)]
mod tests {
    use super::without_room;
    use model::policy::{Limits, Policy, RequestLimit};
    use model::{
        Backend, Configuration, Kind, Location, Origin, PathKind, Server, ServerName, UpstreamId,
    };
    use std::sync::Arc;

    /// A path of an Ingress with all limits.
    fn limited(namespace: &str, name: &str, path: &str) -> Arc<Location> {
        let limit = Some(RequestLimit { rate: 1000, burst: 5000 });
        let connections = Some(5);
        let limits =
            Limits { per_second: limit, per_minute: limit, connections, ..Limits::default() };
        Arc::new(Location {
            path: path.to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::Upstream(UpstreamId::new("u")),
            canary: None,
            service: None,
            origin: Some(Origin::new(Kind::Ingress, namespace, name).into()),
            policy: Arc::new(Policy { limits, ..Policy::default() }),
        })
    }

    #[test]
    fn zones_for_more_ingresses_than_memory_has_room_for_are_their_namespace_s_loss_alone() {
        let (mut next, name) = (Configuration::default(), ServerName::new("a.test"));
        let greedy = (0..2000).map(|number| format!("{number:04}"));
        // Paths of one Ingress share its zones.
        let mut locations: Vec<_> =
            (0..2000).map(|number| limited("b", "one", &format!("/b{number}"))).collect();
        locations.extend(greedy.map(|name| limited("greedy", &name, &format!("/{name}"))));
        let server = Server { locations, ..Server::new(name.clone()) };
        next.servers.insert(name, Arc::new(server));
        let left_out = without_room(&next);
        // 64 MiB hold 1,170 times 56 KiB.
        assert_eq!(left_out.len(), 830);
        assert!(left_out.keys().all(|owner| &*owner.origin.namespace == "greedy"));
        let fault = left_out.values().next().expect("some are left out");
        assert!(fault.reason.contains("takes 114688000 bytes"), "{}", fault.reason);
    }
}
