//! Locations of routes that are spoken to under TLS (BackendTLSPolicy).

use super::Outgoing;
use model::policy::{Policy, Protocol};
use model::{Backend, Location};
use std::sync::Arc;
use tls::{Profile, Profiles};

/// A profile, or why there is none.
type Made = Result<Arc<Profile>, String>;

/// The profiles of a host's policies: those of many locations are one, and to look one up costs time by the authorities
/// that it has.
#[derive(Default)]
pub(super) struct RouteProfiles {
    known: Vec<(Arc<Policy>, Made)>,
}

impl RouteProfiles {
    /// A location as it is served, and where it leads. Where TLS cannot be spoken as it is asked for it is closed, and
    /// never spoken to in clear.
    pub(super) fn outgoing(
        &mut self,
        profiles: &Profiles,
        location: &Arc<Location>,
    ) -> (Arc<Location>, Outgoing) {
        let http2 = match location.policy.protocol {
            Protocol::Https | Protocol::AutoHttp => false,
            Protocol::Grpcs => true,
            Protocol::Http | Protocol::Grpc | Protocol::Fcgi => {
                return (location.clone(), Outgoing::default());
            }
        };
        match self.profile(profiles, &location.policy, http2) {
            Ok(profile) => {
                let outgoing = Outgoing { upstream_tls: Some(profile), ..Outgoing::default() };
                (location.clone(), outgoing)
            }
            Err(reason) => {
                let backend = Backend::Broken(reason);
                let closed = Arc::new(Location { backend, ..Location::clone(location) });
                (closed, Outgoing::default())
            }
        }
    }

    fn profile(&mut self, profiles: &Profiles, policy: &Arc<Policy>, http2: bool) -> Made {
        if let Some((_, found)) = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, policy)) {
            return found.clone();
        }
        let made = profiles.profile(&policy.upstream_tls, http2).map_err(|error| {
            tracing::error!(%error, "TLS towards a backend cannot be spoken as it is asked for; it is closed");
            format!("TLS towards the backend cannot be spoken as asked: {error}")
        });
        self.known.push((policy.clone(), made.clone()));
        made
    }
}
