//! Making TCP and UDP services again, when their ConfigMaps or a Service that they lead to changed.

use super::{Finder, Translator};
use crate::streams;
use objects::ObjectKey;
use std::collections::BTreeSet;

impl Translator {
    /// Whether one of the ConfigMaps that name ports is among those.
    pub(super) fn names_streams(&self, config_maps: &BTreeSet<ObjectKey>) -> bool {
        let Self { options, .. } = self;
        let all = options.tcp_services.iter().chain(&options.udp_services);
        all.chain(&options.config_map).any(|key| config_maps.contains(key))
    }

    /// Reads both ConfigMaps; what is as before stays untouched.
    pub(super) fn make_streams(&mut self) {
        let found = streams::read(&self.snapshot, &self.options);
        self.ledger.set(Finder::Streams, found.problems);
        (self.stream_services, self.stream_ports) = (found.services, found.ports);
        let streams = &mut self.configuration.streams;
        let gone = streams
            .keys()
            .filter(|port| port.address.is_none() && !self.options.is_target(port.number))
            .filter(|port| !found.streams.contains_key(port));
        let gone: Vec<_> = gone.copied().collect();
        for port in gone {
            streams.remove(&port);
        }
        for (port, stream) in found.streams {
            if streams.get(&port).is_none_or(|old| **old != stream) {
                streams.insert(port, stream.into());
            }
        }
    }
}
