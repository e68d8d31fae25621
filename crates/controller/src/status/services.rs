//! The Services of Gateways with addresses of their own: headless, with one EndpointSlice that has the address, so that
//! the Gateway has a name in the cluster, and labels and annotations for whoever looks for them.

use super::gateways::PATIENCE;
use super::write::{MANAGER, Outcome, outcome};
use crate::Known;
use crate::call::{Called, ask};
use crate::lease::Leadership;
use imbl::ordmap::DiffItem;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use model::Transport;
use objects::ObjectKey;
use objects::gateway::GROUP;
use serde_json::{Value, json};
use std::time::Duration;
use translate::gateway::GatewayService;

/// Says whose Gateway it is for.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";
/// Says who made it.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The same of EndpointSlices.
const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Names of Services and values of labels are no longer.
const LONGEST: usize = 63;

/// A name of a Gateway in at most so many characters: a long one, or one that a Service cannot have, ends in a number
/// that is made of it.
fn short(name: &str, most: usize, is_good: impl Fn(&str) -> bool) -> String {
    if name.len() <= most && is_good(name) {
        return name.to_owned();
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let plain: String = name.chars().map(|char| if char == '.' { '-' } else { char }).collect();
    let plain = plain.get(..most - 17).unwrap_or(&plain).trim_end_matches('-');
    format!("{plain}-{hash:016x}")
}

/// The name of the Service of a Gateway.
fn name_of(gateway: &str) -> String {
    const AFFIX: &str = "gateway-";
    let is_good = |name: &str| !name.contains('.');
    format!("{AFFIX}{}", short(gateway, LONGEST - AFFIX.len(), is_good))
}

/// The Gateways whose Services should be others now, or came or went.
pub(super) fn touched(old: &Known, new: &Known) -> Vec<ObjectKey> {
    let gateways = &new.statuses.gateways;
    let service =
        |known: &Known, key: &ObjectKey| known.statuses.gateways.get(key)?.service.clone();
    let differing = old.statuses.gateways.diff(gateways).map(|item| match item {
        DiffItem::Add(key, _)
        | DiffItem::Remove(key, _)
        | DiffItem::Update { new: (key, _), .. } => key,
    });
    let differing = differing.filter(|key| service(old, key) != service(new, key));
    let mut touched: Vec<ObjectKey> = differing.cloned().collect();
    if gateways.values().all(|status| status.service.is_none()) {
        return touched;
    }
    let services = old.snapshot.services.diff(&new.snapshot.services);
    let services = services.filter_map(|item| match item {
        DiffItem::Add(key, _) | DiffItem::Remove(key, _) => Some(key),
        DiffItem::Update { .. } => None,
    });
    for service in services {
        let from = gateways.range(ObjectKey::new(service.namespace.clone(), "")..);
        let within = from.take_while(|(key, _)| key.namespace == service.namespace);
        let named = within.filter(|(key, _)| name_of(&key.name) == *service.name);
        touched.extend(named.map(|(key, _)| key.clone()));
    }
    touched
}

/// Whether an object was made for a Gateway of this name; of which one.
fn made_for<'a>(meta: &'a ObjectMeta, gateway: &str) -> Option<&'a str> {
    let by = meta.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY));
    let owner = meta.owner_references.iter().flatten().find(|owner| {
        owner.kind == "Gateway" && owner.name == gateway && owner.api_version.starts_with(GROUP)
    });
    owner.filter(|_| by.is_some_and(|by| by == MANAGER)).map(|owner| owner.uid.as_str())
}

/// What the API server says; without the rights there is no use in trying again.
fn told<T>(answer: Called<T>) -> Result<T, Outcome> {
    match answer {
        Called::Bad { code: Some(403), reason } => Err(Outcome::Refused(reason)),
        other => outcome(other),
    }
}

/// How long the next call may take.
fn left(leadership: &Leadership) -> Result<Duration, Outcome> {
    Ok(leadership.remaining().ok_or(Outcome::NotLeader)?.min(PATIENCE))
}

/// Makes the Service of a Gateway what it should be; a Service of that name that is anybody else's is left alone.
pub(super) async fn write(
    client: Client,
    leadership: &Leadership,
    gateway: &ObjectKey,
    wanted: Option<&GatewayService>,
) -> Result<Outcome, Outcome> {
    let ObjectKey { namespace, name } = gateway;
    let called = name_of(name);
    let services = Api::<Service>::namespaced(client.clone(), namespace);
    let found = told(ask(left(leadership)?, services.get_opt(&called)).await)?;
    let Some(found) = found.map(|found| found.metadata) else {
        let Some(wanted) = wanted else { return Ok(Outcome::Gone) };
        return apply(client, leadership, gateway, wanted, None).await;
    };
    match (made_for(&found, name), wanted) {
        (None, None) => Ok(Outcome::Gone),
        (None, Some(_)) => {
            let reason = format!("Service {namespace}/{called} is somebody else's: delete it");
            Err(Outcome::Refused(reason))
        }
        (Some(uid), Some(wanted)) if *uid == *wanted.uid => {
            apply(client, leadership, gateway, wanted, found.resource_version).await
        }
        // It was made for a Gateway that is none of ours any more, or for one of the same name before.
        (Some(_), _) => {
            let exactly =
                Preconditions { uid: found.uid, resource_version: found.resource_version };
            let exactly = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
            told(ask(left(leadership)?, services.delete(&called, &exactly)).await)?;
            Ok(if wanted.is_some() { Outcome::Conflict } else { Outcome::Written })
        }
    }
}

/// Writes the Service, of which `before` is the version that is ours, and its EndpointSlice.
async fn apply(
    client: Client,
    leadership: &Leadership,
    gateway: &ObjectKey,
    wanted: &GatewayService,
    before: Option<String>,
) -> Result<Outcome, Outcome> {
    let called = name_of(&gateway.name);
    let services = Api::<Service>::namespaced(client.clone(), &gateway.namespace);
    // What is not there yet is nobody's to overrule.
    let as_fairway = PatchParams { force: before.is_some(), ..PatchParams::apply(MANAGER) };
    let made = Patch::Apply(service(&called, gateway, wanted));
    let made = services.patch(&called, &as_fairway, &made);
    let made = told(ask(left(leadership)?, made).await)?.metadata;
    let uid = made.uid.unwrap_or_default();
    let slices = Api::<EndpointSlice>::namespaced(client, &gateway.namespace);
    for (family, fits) in [("v4", wanted.address.is_ipv4()), ("v6", wanted.address.is_ipv6())] {
        let name = format!("{called}-{family}");
        let found = told(ask(left(leadership)?, slices.get_opt(&name)).await)?;
        let labels = found.as_ref().and_then(|found| found.metadata.labels.as_ref());
        let by = labels.and_then(|labels| labels.get(SLICE_MANAGED_BY));
        let is_ours = by.is_some_and(|by| by == MANAGER);
        if fits && (found.is_none() || is_ours) {
            let as_fairway = PatchParams { force: is_ours, ..PatchParams::apply(MANAGER) };
            let of_service = Patch::Apply(slice(&name, &called, &uid, wanted));
            let put = slices.patch(&name, &as_fairway, &of_service);
            told(ask(left(leadership)?, put).await)?;
        } else if fits {
            let namespace = &gateway.namespace;
            let reason = format!("EndpointSlice {namespace}/{name} is somebody else's: delete it");
            return Err(Outcome::Refused(reason));
        } else if is_ours {
            let stale = DeleteParams::default();
            told(ask(left(leadership)?, slices.delete(&name, &stale)).await)?;
        }
    }
    Ok(if before == made.resource_version { Outcome::Gone } else { Outcome::Written })
}

fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}

fn ports(wanted: &GatewayService) -> Value {
    let ports = wanted.ports.iter().map(|(transport, number)| {
        let protocol = protocol(*transport);
        json!({
            "name": format!("{}-{number}", protocol.to_ascii_lowercase()),
            "protocol": protocol,
            "port": number,
        })
    });
    ports.collect()
}

fn service(name: &str, gateway: &ObjectKey, wanted: &GatewayService) -> Value {
    let mut labels = json!(wanted.infrastructure.labels);
    let fits = |name: &str| name.len() <= LONGEST;
    labels[GATEWAY_NAME] = short(&gateway.name, LONGEST, fits).into();
    labels[MANAGED_BY] = MANAGER.into();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": *gateway.namespace,
            "labels": labels,
            "annotations": wanted.infrastructure.annotations,
            "ownerReferences": [{
                "apiVersion": format!("{GROUP}/v1"),
                "kind": "Gateway",
                "name": *gateway.name,
                "uid": *wanted.uid,
                "controller": true,
            }],
        },
        "spec": {"clusterIP": "None", "ports": ports(wanted)},
    })
}

/// It goes with the Service that owns it.
fn slice(name: &str, service: &str, uid: &str, wanted: &GatewayService) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/service-name": service,
                SLICE_MANAGED_BY: MANAGER,
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Service", "name": service, "uid": uid, "controller": true},
            ],
        },
        "addressType": if wanted.address.is_ipv4() { "IPv4" } else { "IPv6" },
        "ports": ports(wanted),
        "endpoints": [{"addresses": [wanted.address.to_string()], "conditions": {"ready": true}}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_those_that_were_cut_differ() {
        assert_eq!(name_of("web"), "gateway-web");
        let long = |end: &str| format!("{}{end}", "a".repeat(252));
        let names = [name_of("a.b"), name_of("a-b"), name_of(&long("b")), name_of(&long("c"))];
        let known: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(known.len(), 4, "{names:?}");
        for name in &names {
            assert!(name.len() <= LONGEST && !name.contains('.'), "{name}");
        }
        let label = short(&long("b"), LONGEST, |name| name.len() <= LONGEST);
        assert!(label.len() <= LONGEST, "{label}");
    }

    #[test]
    fn what_others_made_is_not_ours() {
        let meta = |by: &str, kind: &str| -> ObjectMeta {
            let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "name": "web", "uid": "u"});
            let meta = json!({"labels": {MANAGED_BY: by}, "ownerReferences": [owner]});
            serde_json::from_value(meta).expect("metadata")
        };
        assert_eq!(made_for(&meta("fairway", "Gateway"), "web"), Some("u"));
        assert_eq!(made_for(&meta("fairway", "Gateway"), "other"), None);
        assert_eq!(made_for(&meta("helm", "Gateway"), "web"), None);
        assert_eq!(made_for(&meta("fairway", "Service"), "web"), None);
        assert_eq!(made_for(&ObjectMeta::default(), "web"), None);
    }
}
