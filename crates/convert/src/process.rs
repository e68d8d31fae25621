//! What the ConfigMap and flags say for the process as a whole: no object of the Gateway API says it.

use crate::gateway::{CLASS, Target};
use crate::keys::GUARDS_OF_ALL;
use crate::lost::{Ledger, Weight};
use objects::{ObjectKey, Snapshot};
use translate::Options;

/// Notes all of it.
pub(crate) fn note(
    snapshot: &Snapshot,
    options: &Options,
    target: &Target,
    ledger: &mut Ledger<'_>,
) {
    let map = options.config_map.as_ref().and_then(|key| snapshot.config_maps.get(key));
    let text = |key: &str| map.and_then(|map| map.data.get(key)).map(|text| text.trim());
    // Whoever serves another class does not read our ConfigMap.
    let weight = if target.class == CLASS { Weight::Note } else { Weight::Lost };
    for key in
        GUARDS_OF_ALL.into_iter().filter(|key| text(key).is_some_and(|text| !text.is_empty()))
    {
        let reason = "it guards routes of Fairway, too, by its ConfigMap; no object says so, and no other \
            implementation heeds it";
        let remedy = "keep it in the ConfigMap, or say it in the words of the other implementation";
        ledger.add(None, key, weight, reason, remedy);
    }
    let ports = [
        ("--tcp-services-configmap", "TCP", &options.tcp_services),
        ("--udp-services-configmap", "UDP", &options.udp_services),
    ];
    for (flag, protocol, key) in ports {
        let Some(ObjectKey { namespace, name }) = key else { continue };
        let found = key.as_ref().and_then(|key| snapshot.config_maps.get(key));
        let Some(count) = found.map(|map| map.data.len()).filter(|count| *count > 0) else {
            continue;
        };
        let reason = format!(
            "{count} {protocol} services of ConfigMap {namespace}/{name} are not converted: {protocol}Routes are no part of \
             the standard channel"
        );
        ledger.add(
            None,
            flag,
            Weight::Lost,
            reason,
            "leave the flag to a Fairway that serves them",
        );
    }
    let class = ObjectKey::new("", target.class.as_str());
    if target.class != CLASS && !snapshot.gateway_classes.contains_key(&class) {
        let reason = format!(
            "GatewayClass {} is not among the objects, and is not written: only who serves it knows its controllerName",
            target.class
        );
        ledger.add(None, "--gateway-class", Weight::Note, reason, "see that it is in the cluster");
    }
}
