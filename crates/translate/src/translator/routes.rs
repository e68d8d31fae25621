//! Making what the Gateway API asks for again, where something touched it.

use super::{Finder, Translator, Work};
use crate::budget::Budget;
use crate::certificate;
use crate::gateway::{Around, Room};
use objects::{ObjectKey, Reference, Snapshot};
use std::collections::BTreeSet;

impl Translator {
    /// Follows Gateways and routes; certificates of listeners that came or went are looked at again with those of
    /// hosts.
    pub(super) fn make_routes(
        &mut self,
        old: &Snapshot,
        services: &BTreeSet<ObjectKey>,
        (secrets, config_maps): (&[ObjectKey], &BTreeSet<ObjectKey>),
        budget: &Budget,
        work: &mut Work,
    ) {
        // What leads to another Service changes with it.
        let mut touched = services.clone();
        for service in services {
            touched.extend(self.aliases.of(service).cloned());
        }
        let before = self.gateway.secrets.clone();
        let Self { certificates, snapshot, options, gateway, configuration, .. } = self;
        let stream_ports = &self.stream_ports;
        let mut certified = |secret: &ObjectKey| {
            let found = certificates.get(secret, snapshot).map_err(|wrong| wrong.to_string())?;
            Ok(certificate::costly(&found.certificate))
        };
        let around = Around {
            old,
            new: snapshot,
            options,
            most: budget.of_routes(),
            listeners: budget.listeners(),
            endpoints: budget.endpoints(),
            ports: budget.gateway_ports(),
            sockets: options.sockets.map(|all| Room::of(all, &configuration.global.listeners)),
            stream_ports,
            services: &touched,
            secrets,
            config_maps,
            certified: &mut certified,
        };
        for (kind, key, problems) in gateway.update(around, configuration) {
            self.ledger.set(Finder::Gateway(kind, key), problems);
        }
        for secret in before.symmetric_difference(&self.gateway.secrets) {
            work.certificates.insert(secret.clone());
            let is_named = self.references.is_referenced(&Reference::Secret(secret.clone()))
                || self.options.default_ssl_certificate.as_ref() == Some(secret);
            if !is_named && !self.gateway.secrets.contains(secret) {
                self.certificates.forget(secret);
            }
        }
    }
}
