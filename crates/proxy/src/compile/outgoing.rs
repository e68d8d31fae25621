//! What locations of Ingresses speak to besides their upstreams, and how: TLS (`proxy-ssl-*`), copies, authenticators.

use super::routes::Outgoing;
use super::{Compiler, group};
use crate::authenticator::{Authenticator, identity};
use crate::generation::Copies;
use imbl::OrdMap;
use model::policy::{Mirror, Policy, Protocol};
use model::{Backend, Location, ServerName, UpstreamId};
use std::sync::Arc;
use tls::Profile;
use upstream::{Destination, Group};

impl Compiler {
    /// All of a location that needs TLS of its own, the only part that can fail.
    pub(super) fn outgoing(
        &self,
        server: &ServerName,
        location: &Location,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Result<Outgoing, rustls::Error> {
        let policy = &location.policy;
        if matches!(location.backend, Backend::Denied(_)) {
            return Ok(Outgoing::default());
        }
        let upstream_tls = match policy.protocol {
            Protocol::Http | Protocol::Grpc | Protocol::Fcgi => None,
            Protocol::Https | Protocol::AutoHttp => Some(self.upstream_tls(policy, false)?),
            Protocol::Grpcs => Some(self.upstream_tls(policy, true)?),
        };
        let mirror = policy.mirror.as_ref().map(|mirror| self.copies(mirror, groups));
        if let Some(id) =
            policy.auth_external.as_ref().and_then(|asked| asked.url.upstream.as_ref())
        {
            group(groups, id);
        }
        Ok(Outgoing {
            upstream_tls,
            guard: None,
            mirror: mirror.transpose()?.map(Box::new),
            authenticator: Authenticator::new(location, groups, &self.profiles, |policy| {
                (server.clone(), self.asked.get(policy, identity))
            })?,
        })
    }

    /// TLS towards upstreams, found once for all paths of an Ingress: a profile is known by all certificates that it
    /// trusts.
    fn upstream_tls(
        &self,
        policy: &Arc<Policy>,
        http2: bool,
    ) -> Result<Arc<Profile>, rustls::Error> {
        let make = |policy: &Policy| self.profiles.profile(&policy.upstream_tls, http2);
        self.upstream_tls.try_get(policy, make)
    }

    fn copies(
        &self,
        mirror: &Arc<Mirror>,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Result<Copies, rustls::Error> {
        if let Some(id) = &mirror.url.upstream {
            group(groups, id);
        }
        let destination = Destination::new(&mirror.url, groups, &self.profiles)?;
        Ok(Copies { mirror: mirror.clone(), destination: Arc::new(destination) })
    }
}
