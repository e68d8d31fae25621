//! What has to be done so that nginx follows a Configuration: nothing, a push, or a reload (compat/behaviour.md section
//! 27).

use model::policy::{Algorithm, Balance, Policy};
use model::{
    Changes, Configuration, Global, Location, Server, StreamSettings, Telemetry, TlsSettings,
};
use std::sync::Arc;

/// What has to be done so that nginx follows a Configuration, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plan {
    /// Nothing: nginx has all of it.
    #[default]
    Nothing,
    /// Lua has to be told: endpoints, certificates and who has them, weights, affinity, algorithms.
    Push,
    /// nginx.conf is another one.
    Reload,
}

/// The plan that leads from `old` to `new`.
pub fn plan(old: &Configuration, new: &Configuration) -> Plan {
    let changes = Changes::between(old, new);
    if changes.global && written(&old.global) != written(&new.global) {
        return Plan::Reload;
    }
    let differs = |name| {
        let (old, new) = (old.servers.get(name), new.servers.get(name));
        old.map(|server| skeleton(server)) != new.map(|server| skeleton(server))
    };
    if changes.servers.iter().any(differs) {
        return Plan::Reload;
    }
    let pushed = old.global.tls.ocsp != new.global.tls.ocsp
        || !changes.servers.is_empty()
        || !changes.upstreams.is_empty()
        || !changes.certificates.is_empty()
        || changes.default_certificate;
    if pushed { Plan::Push } else { Plan::Nothing }
}

/// The settings of the process that stand in nginx.conf: TCP and UDP services are a matter of another part, nobody
/// makes spans, and Lua staples.
fn written(global: &Global) -> Global {
    let tls = TlsSettings { ocsp: false, ..global.tls.clone() };
    let (streams, telemetry) = (StreamSettings::default(), Telemetry::default());
    Global { streams, telemetry, tls, ..global.clone() }
}

/// A server without what Lua is told of it.
fn skeleton(server: &Server) -> Server {
    let locations = server.locations.iter().map(|location| {
        if location.canary.is_none() && location.policy.balance == Balance::default() {
            return location.clone();
        }
        // What measures stands there, whatever is measured.
        let measured = || Balance { algorithm: Algorithm::Ewma, affinity: None };
        let balance = if location.is_measured() { measured() } else { Balance::default() };
        let policy = Policy { balance, ..Policy::clone(&location.policy) };
        let policy = Arc::new(policy);
        Arc::new(Location { canary: None, policy, ..Location::clone(location) })
    });
    Server { certificate: None, locations: locations.collect(), ..server.clone() }
}
