//! The addresses of Gateways, compiled: only those that differ, and of those only the listeners and hosts that do.

use super::Compiler;
use crate::generation::{Carried, Door, Doors, Generation, Inside, Onward};
use imbl::OrdMap;
use model::policy::ClientDemand;
use model::{
    Changes, Configuration, Listener, ListenerId, Origin, Server, ServerName, Speaks, TlsShare,
    UpstreamId,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use tls::{Certificates, TlsFront, Verifier};
use upstream::Group;

/// What doors are made of.
struct Material<'a> {
    before: &'a Generation,
    configuration: &'a Configuration,
    changes: &'a Changes,
    front: &'a TlsFront,
    certificates: &'a Certificates,
}

impl Compiler {
    /// The addresses of Gateways.
    pub(super) fn doors(
        &self,
        (before, configuration, changes): (&Generation, &Configuration, &Changes),
        (front, certificates): (&TlsFront, &Certificates),
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Result<Doors, rustls::Error> {
        let of = &Material { before, configuration, changes, front, certificates };
        let (changes, mut doors) = (of.changes, of.before.doors.clone());
        let of_routes = changes.routes.iter().chain(&changes.tls_routes);
        let of_routes = of_routes.filter_map(|key| key.listener.as_ref());
        let mut touched: BTreeSet<SocketAddr> =
            changes.listeners.iter().chain(of_routes).map(|id| id.address).collect();
        let renewed: BTreeSet<_> = changes.certificates.iter().collect();
        // Settings of TLS count for all of them.
        let again = |door: &Door| changes.global || door.shows(&renewed);
        let shown = doors.iter().filter(|(_, door)| again(door));
        touched.extend(shown.map(|(address, _)| *address));
        for address in touched {
            let all = listeners(of.configuration, address);
            let Some(first) = all.first() else {
                doors.remove(&address);
                continue;
            };
            let is_same = |known: &&Arc<Door>| {
                known.speaks == first.speaks
                    || (known.speaks.is_carried() && first.speaks.is_carried())
            };
            let known = doors.get(&address).filter(is_same);
            let mut door = known.map_or_else(|| Door::new(first.speaks), |known| (**known).clone());
            door.port = first.port;
            self.change(&mut door, address, of, groups);
            if first.speaks != Speaks::Http && (door.made_of != all || again(&door)) {
                let named = all.iter().map(|one| (&one.id.hosts, one.certificate.as_ref()));
                let asked = all.iter().find_map(|one| one.clients.as_ref());
                let clients = asked.map(|asked| self.verifiers.verifier(asked));
                let must = |one: &Arc<Verifier>| one.settings.demand == ClientDemand::Required;
                door.clients = clients.clone().filter(must);
                let global = &of.configuration.global;
                door.tls = Some(of.front.listeners(
                    global,
                    of.certificates,
                    named,
                    !first.speaks.is_carried(),
                    clients,
                )?);
            }
            door.made_of = all;
            doors.insert(address, Arc::new(door));
        }
        Ok(doors)
    }

    /// Follows the listeners of an address and the hosts of their routes.
    fn change(
        &self,
        door: &mut Door,
        address: SocketAddr,
        of: &Material<'_>,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) {
        for id in of.changes.listeners.iter().filter(|id| id.address == address) {
            let now = of.configuration.listeners.get(id);
            let inside = now.map(|now| {
                let known = door.listeners.get(&id.hosts);
                let mut inside = known.map(|known| Inside::clone(known)).unwrap_or_default();
                inside.is_ended = now.speaks == Speaks::TlsEnded;
                Arc::new(inside)
            });
            door.listeners.set(&id.hosts, inside);
        }
        for key in &of.changes.routes {
            let id = key.listener.as_ref().filter(|id| id.address == address);
            let known = id.and_then(|id| Some((id, door.listeners.get(&id.hosts)?)));
            let Some((id, known)) = known else { continue };
            let mut inside = Inside::clone(known);
            let host = of.configuration.routes.get(key);
            inside.routes.set(&key.host, host.map(|host| Arc::new(self.routed(host, groups))));
            door.listeners.set(&id.hosts, Some(Arc::new(inside)));
        }
        for key in &of.changes.tls_routes {
            let id = key.listener.as_ref().filter(|id| id.address == address);
            let known = id.and_then(|id| Some((id, door.listeners.get(&id.hosts)?)));
            let Some((id, known)) = known else { continue };
            let mut inside = Inside::clone(known);
            let route = of.configuration.tls_routes.get(key).map(|route| {
                let shares =
                    route.shares.iter().map(|share| self.carried(share, &route.origin, groups));
                Arc::new(Carried(shares.collect()))
            });
            inside.carried.set(&key.host, route);
            door.listeners.set(&id.hosts, Some(Arc::new(inside)));
        }
    }

    /// A part of a host's connections; where TLS cannot be spoken as it is asked for, they end.
    fn carried(
        &self,
        share: &TlsShare,
        origin: &Origin,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> (u32, Option<Onward>) {
        let tls = share.tls.as_ref().map(|tls| self.profiles.profile(tls, false)).transpose();
        let tls = tls.inspect_err(|error| {
            tracing::error!(%error, "TLS towards a backend cannot be spoken as it is asked for; it is closed");
        });
        let to = share.upstream.as_ref().zip(tls.ok());
        let namespace = origin.namespace.clone();
        let onward = to.map(|(id, tls)| {
            let group = super::group(groups, id);
            Onward { group, tls, namespace, tires: true }
        });
        (share.weight, onward)
    }
}

/// To whom the connections to a host are carried on, if they are; without time-outs while their endpoint has not ended
/// them, as in ingress-nginx (compat/behaviour.md section 19).
pub(super) fn passed_on(
    server: &Server,
    groups: &mut OrdMap<UpstreamId, Arc<Group>>,
) -> Option<Onward> {
    let group = super::group(groups, server.passthrough.as_ref()?);
    let namespace = server.locations.first().map(|oldest| oldest.namespace()).unwrap_or_default();
    Some(Onward { group, tls: None, namespace, tires: false })
}

/// The listeners of an address.
fn listeners(configuration: &Configuration, address: SocketAddr) -> Vec<Arc<Listener>> {
    let from = ListenerId { address, hosts: ServerName::new("") };
    let all = configuration.listeners.range(from..).map(|(_, listener)| listener);
    all.take_while(|one| one.id.address == address).cloned().collect()
}
