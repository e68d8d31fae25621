//! The ports that this process listens on: none of them twice, and none for a TCP or UDP service.

use crate::flags::{Classes, Listeners, Profiling, TargetPorts, Webhook};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::net::IpAddr;
use translate::GatewayServices;

/// A listener that a flag asks for.
struct Port<'a> {
    flag: &'a str,
    number: u16,
    /// None: all.
    addresses: Vec<IpAddr>,
}

/// Refuses two listeners on one port; whether another program has it is seen when it is opened.
pub(crate) fn check(listeners: &Listeners, webhook: &Webhook, profiling: &Profiling) -> Result<()> {
    let of = |flag, number, addresses: &[IpAddr]| {
        let addresses =
            if addresses.iter().any(IpAddr::is_unspecified) { &[][..] } else { addresses };
        Port { flag, number, addresses: addresses.to_vec() }
    };
    let Listeners { http_port, https_port, healthz_port, healthz_host, bind_address, .. } =
        listeners;
    let mut ports = vec![
        of("--http-port", *http_port, bind_address),
        of("--https-port", *https_port, bind_address),
        of("--healthz-port", *healthz_port, &[*healthz_host]),
    ];
    let webhook = webhook.validating_webhook;
    ports.extend(webhook.map(|at| of("--validating-webhook", at.port(), &[at.ip()])));
    ports.extend(profiling.listener().map(|at| of("--profiler-port", at.port(), &[at.ip()])));
    ports.retain(|port| port.number != 0);
    for (index, one) in ports.iter().enumerate() {
        for other in &ports[index + 1..] {
            ensure!(
                !one.meets(other),
                "{} and {} are both {}: choose another port for one of them",
                one.flag,
                other.flag,
                one.number
            );
        }
    }
    Ok(())
}

impl Port<'_> {
    fn meets(&self, other: &Self) -> bool {
        let everywhere = self.addresses.is_empty() || other.addresses.is_empty();
        let shared = || self.addresses.iter().any(|address| other.addresses.contains(address));
        self.number == other.number && (everywhere || shared())
    }
}

/// Ports that no TCP or UDP service may have. Those that Services of Gateways lead to are nobody else's.
pub(crate) fn reserved(
    (listeners, webhook, profiling): (&Listeners, &Webhook, &Profiling),
    classes: &Classes,
    own: Vec<u16>,
) -> Result<BTreeSet<u16>> {
    let Listeners { http_port, https_port, healthz_port, .. } = listeners;
    let webhook = webhook.validating_webhook.map(|address| address.port());
    let ours = [*http_port, *https_port, *healthz_port, profiling.port()];
    let mut reserved: BTreeSet<u16> = own.into_iter().chain(ours).chain(webhook).collect();
    if classes.gateway_services == GatewayServices::LoadBalancer {
        let TargetPorts(range) = classes.gateway_target_ports.clone();
        let taken = reserved.range(range.clone()).next();
        ensure!(
            taken.is_none(),
            "port {} is one of --gateway-target-ports={}, and another flag has it: choose other ports",
            taken.copied().unwrap_or_default(),
            classes.gateway_target_ports
        );
        reserved.extend(range);
    }
    Ok(reserved)
}

/// Ports of TCP that are open besides those of HTTP, and shared with nobody.
pub(crate) fn of_process(
    listeners: &Listeners,
    webhook: &Webhook,
    profiling: &Profiling,
) -> BTreeSet<u16> {
    let others = [webhook.validating_webhook, profiling.listener()].into_iter().flatten();
    others.map(|address| address.port()).chain([listeners.healthz_port]).collect()
}

/// Where hosts are served unless flags say otherwise.
pub(crate) const USUAL_HTTP: [u16; 2] = [80, 443];

/// The ports that are reserved unless flags say otherwise: what judges objects beside no running process goes by them.
pub(crate) fn usual() -> BTreeSet<u16> {
    USUAL_HTTP.into_iter().chain(usual_of_process()).collect()
}

/// Those of them that are shared with nobody.
pub(crate) fn usual_of_process() -> BTreeSet<u16> {
    const HEALTH: u16 = 10254;
    BTreeSet::from([HEALTH, Profiling::default().port()])
}
