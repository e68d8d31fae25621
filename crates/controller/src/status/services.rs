//! The Services of Gateways: a name in the cluster for an address of their own, headless, or a load balancer before
//! all replicas; with EndpointSlices that have the address, or those of the replicas. Labels and annotations are for
//! whoever looks for them.

use super::gateways::PATIENCE;
use super::write::{MANAGER, Outcome, outcome};
use crate::Known;
use crate::call::{Called, ask};
use crate::lease::Leadership;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use model::Transport;
use objects::gateway::GROUP;
use objects::{MANAGED_BY, ObjectKey, PortRef, made_for};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use translate::gateway::{GatewayService, ServiceKind, label_of, named_by, service_name};

/// Says whose Gateway it is for.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";
/// Who made an EndpointSlice.
const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Endpoints of a slice at most, as its definition says.
const ENDPOINTS: usize = 1000;

/// The EndpointSlices of a Service, as they were seen.
pub(super) type Slices = Arc<OrdMap<ObjectKey, Arc<objects::EndpointSlice>>>;

/// The Gateways whose Services should be others now, or came or went. `replicas` is the Service whose endpoints are
/// those of load balancers.
pub(super) fn touched(old: &Known, new: &Known, replicas: Option<&ObjectKey>) -> Vec<ObjectKey> {
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
    let replicas = replicas.map(|key| (old.snapshot.slices.get(key), new.snapshot.slices.get(key)));
    if replicas.is_some_and(|(old, new)| old != new) {
        let is_balanced = |key: &&ObjectKey| {
            let kind = service(new, key).map(|service| service.kind);
            matches!(kind, Some(ServiceKind::LoadBalancer(_)))
        };
        touched.extend(gateways.keys().filter(is_balanced).cloned());
    }
    for item in old.snapshot.services.diff(&new.snapshot.services) {
        let (key, now) = match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => (key, None),
            DiffItem::Update { new: (key, now), .. } => (key, Some(now)),
        };
        let named = named_by(key, &new.snapshot);
        let wrong = named.filter(|gateway| {
            let wanted = service(new, gateway);
            !wanted.zip(now).is_some_and(|(wanted, now)| stands(now, &wanted))
        });
        touched.extend(wrong);
    }
    touched
}

/// Whether a Service that was changed still has what it should.
fn stands(service: &objects::Service, wanted: &GatewayService) -> bool {
    let kind = match wanted.kind {
        ServiceKind::Headless(_) => "ClusterIP",
        ServiceKind::LoadBalancer(_) => "LoadBalancer",
    };
    let leads = |((transport, port), target): (&(Transport, u16), &u16)| {
        let target = Some(PortRef::Number(*target));
        let same = |one: &objects::ServicePort| {
            one.port == *port && one.protocol == protocol(*transport) && one.target == target
        };
        service.ports.iter().any(same)
    };
    service.kind == kind
        && service.made_for.as_ref() == Some(&wanted.uid)
        && service.ports.len() == wanted.ports.len()
        && wanted.ports.iter().all(leads)
}

/// The uid of the Gateway of this name that an object was made for.
fn uid_for<'a>(meta: &'a ObjectMeta, gateway: &str) -> Option<&'a str> {
    made_for(meta).filter(|owner| owner.name == gateway).map(|owner| owner.uid.as_str())
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

/// Who writes, and what the endpoints of load balancers are those of.
#[derive(Clone)]
pub(super) struct Scribe {
    pub(super) client: Client,
    pub(super) leadership: Leadership,
    pub(super) replicas: Option<ObjectKey>,
}

impl Scribe {
    fn services(&self, namespace: &str) -> Api<Service> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn slices(&self, namespace: &str) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Makes the Service of a Gateway what it should be; a Service of that name that is anybody else's is left alone.
    pub(super) async fn write(
        &self,
        gateway: &ObjectKey,
        wanted: Option<&GatewayService>,
    ) -> Result<Outcome, Outcome> {
        let ObjectKey { namespace, name } = gateway;
        let called = service_name(name);
        let services = self.services(namespace);
        let found = told(ask(left(&self.leadership)?, services.get_opt(&called)).await)?;
        let Some(found) = found else {
            let Some(wanted) = wanted else { return Ok(Outcome::Gone) };
            return self.apply(gateway, wanted, None).await;
        };
        let cluster_ip = found.spec.and_then(|spec| spec.cluster_ip);
        let is_headless = cluster_ip.as_deref() == Some("None");
        let found = found.metadata;
        match (uid_for(&found, name), wanted) {
            (None, None) => Ok(Outcome::Gone),
            (None, Some(_)) => {
                let reason = format!("Service {namespace}/{called} is somebody else's: delete it");
                Err(Outcome::Refused(reason))
            }
            (Some(uid), Some(wanted))
                if *uid == *wanted.uid
                    && is_headless == matches!(wanted.kind, ServiceKind::Headless(_)) =>
            {
                self.apply(gateway, wanted, found.resource_version).await
            }
            // It was made for a Gateway that is none of ours any more, for one of the same name before, or with other
            // flags: what is headless never is anything else.
            (Some(_), _) => {
                let exactly =
                    Preconditions { uid: found.uid, resource_version: found.resource_version };
                let exactly =
                    DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
                told(ask(left(&self.leadership)?, services.delete(&called, &exactly)).await)?;
                Ok(if wanted.is_some() { Outcome::Conflict } else { Outcome::Written })
            }
        }
    }

    /// Writes the Service, of which `before` is the version that is ours, and its EndpointSlices.
    async fn apply(
        &self,
        gateway: &ObjectKey,
        wanted: &GatewayService,
        before: Option<String>,
    ) -> Result<Outcome, Outcome> {
        let called = service_name(&gateway.name);
        let endpoints = self.endpoints(wanted).await?;
        // What is not there yet is nobody's to overrule.
        let as_fairway = PatchParams { force: before.is_some(), ..PatchParams::apply(MANAGER) };
        let made = Patch::Apply(service(&called, gateway, wanted));
        let services = self.services(&gateway.namespace);
        let made = services.patch(&called, &as_fairway, &made);
        let made = told(ask(left(&self.leadership)?, made).await)?.metadata;
        let uid = made.uid.unwrap_or_default();
        for (family, mut of_family) in ["v4", "v6"].into_iter().zip(endpoints) {
            of_family.truncate(ENDPOINTS);
            let wanted = (!of_family.is_empty()).then(|| {
                let address_type = if family == "v4" { "IPv4" } else { "IPv6" };
                slice(
                    &format!("{called}-{family}"),
                    (&called, &uid),
                    wanted,
                    address_type,
                    of_family,
                )
            });
            self.put_slice(&gateway.namespace, &format!("{called}-{family}"), wanted).await?;
        }
        Ok(if before == made.resource_version { Outcome::Gone } else { Outcome::Written })
    }

    /// Makes an EndpointSlice what it should be, if it is ours; none: it goes.
    async fn put_slice(
        &self,
        namespace: &str,
        name: &str,
        wanted: Option<Value>,
    ) -> Result<(), Outcome> {
        let slices = self.slices(namespace);
        let found = told(ask(left(&self.leadership)?, slices.get_opt(name)).await)?;
        let labels = found.as_ref().and_then(|found| found.metadata.labels.as_ref());
        let by = labels.and_then(|labels| labels.get(SLICE_MANAGED_BY));
        let is_ours = by.is_some_and(|by| by == MANAGER);
        match wanted {
            Some(wanted) if found.is_none() || is_ours => {
                let as_fairway = PatchParams { force: is_ours, ..PatchParams::apply(MANAGER) };
                let wanted = Patch::Apply(wanted);
                let put = slices.patch(name, &as_fairway, &wanted);
                told(ask(left(&self.leadership)?, put).await).map(drop)
            }
            Some(_) => {
                let reason =
                    format!("EndpointSlice {namespace}/{name} is somebody else's: delete it");
                Err(Outcome::Refused(reason))
            }
            None if is_ours => {
                let stale = DeleteParams::default();
                told(ask(left(&self.leadership)?, slices.delete(name, &stale)).await).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Who is behind a Service, of IPv4 and of IPv6: the address of its Gateway, or the replicas as the EndpointSlices
    /// of their own Service have them, whatever else these say of each.
    async fn endpoints(&self, wanted: &GatewayService) -> Result<[Vec<Value>; 2], Outcome> {
        let mut found = [Vec::new(), Vec::new()];
        if let ServiceKind::Headless(address) = wanted.kind {
            let ready = json!({"addresses": [address.to_string()], "conditions": {"ready": true}});
            found[usize::from(address.is_ipv6())].push(ready);
            return Ok(found);
        }
        let Some(ObjectKey { namespace, name }) = &self.replicas else { return Ok(found) };
        let of_service = format!("kubernetes.io/service-name={name}");
        let of_service = ListParams::default().labels(&of_service);
        let slices = self.slices(namespace);
        let listed = told(ask(left(&self.leadership)?, slices.list(&of_service)).await)?;
        for slice in listed.items {
            let Some(family) = ["IPv4", "IPv6"].iter().position(|one| *one == slice.address_type)
            else {
                continue;
            };
            // A Pod of another namespace is not for anybody to follow; the topology is.
            found[family].extend(slice.endpoints.into_iter().flatten().map(|endpoint| {
                json!(Endpoint { deprecated_topology: None, target_ref: None, ..endpoint })
            }));
        }
        for of_family in &mut found {
            of_family.sort_by_cached_key(Value::to_string);
            of_family.dedup();
        }
        Ok(found)
    }
}

fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}

fn ports(wanted: &GatewayService) -> Value {
    let ports = wanted.ports.iter().map(|((transport, number), target)| {
        let protocol = protocol(*transport);
        json!({
            "name": port_name(*transport, *number),
            "protocol": protocol,
            "port": number,
            "targetPort": target,
        })
    });
    ports.collect()
}

fn port_name(transport: Transport, number: u16) -> String {
    format!("{}-{number}", protocol(transport).to_ascii_lowercase())
}

fn service(name: &str, gateway: &ObjectKey, wanted: &GatewayService) -> Value {
    let mut labels = json!(wanted.infrastructure.labels);
    let mut spec = json!({"ports": ports(wanted)});
    match wanted.kind {
        ServiceKind::Headless(_) => spec["clusterIP"] = "None".into(),
        ServiceKind::LoadBalancer(asked) => {
            spec["type"] = "LoadBalancer".into();
            if let Some(asked) = asked {
                spec["loadBalancerIP"] = asked.to_string().into();
            }
        }
    }
    labels[GATEWAY_NAME] = label_of(&gateway.name).into();
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
        "spec": spec,
    })
}

/// It goes with the Service that owns it.
fn slice(
    name: &str,
    (service, uid): (&str, &str),
    wanted: &GatewayService,
    address_type: &str,
    endpoints: Vec<Value>,
) -> Value {
    let ports = wanted.ports.iter().map(|((transport, number), target)| {
        json!({
            "name": port_name(*transport, *number),
            "protocol": protocol(*transport),
            "port": target,
        })
    });
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
        "addressType": address_type,
        "ports": ports.collect::<Value>(),
        "endpoints": endpoints,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_made_is_not_ours() {
        let meta = |by: &str, kind: &str| -> ObjectMeta {
            let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "name": "web", "uid": "u"});
            let meta = json!({"labels": {MANAGED_BY: by}, "ownerReferences": [owner]});
            serde_json::from_value(meta).expect("metadata")
        };
        assert_eq!(uid_for(&meta("fairway", "Gateway"), "web"), Some("u"));
        assert_eq!(uid_for(&meta("fairway", "Gateway"), "other"), None);
        assert_eq!(uid_for(&meta("helm", "Gateway"), "web"), None);
        assert_eq!(uid_for(&meta("fairway", "Service"), "web"), None);
        assert_eq!(uid_for(&ObjectMeta::default(), "web"), None);
    }
}
