//! The Services of Gateways: a name in the cluster for an address of their own, headless, or a load balancer before
//! all replicas; with EndpointSlices that have the address, or those of the replicas. Labels and annotations are for
//! whoever looks for them. One goes only where the API server itself has just said that nobody needs it: an address
//! that a load balancer gave away is lost for good.

use super::replace::PATIENCE;
use super::which::{Which, api, differing};
use super::write::{MANAGER, Outcome, outcome};
use crate::Known;
use crate::call::{Called, ask};
use crate::lease::Leadership;
use imbl::OrdMap;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use model::Transport;
use objects::gateway::GROUP;
use objects::{MANAGED_BY, ObjectKey, PortRef, made_for};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use translate::gateway::{GatewayService, ServiceKind, label_of, named_by, service_name};

/// Says whose Gateway it is for.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";
/// Who made an EndpointSlice.
const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// What the names of the EndpointSlices of a Service end in: one for the endpoints of each family.
const FAMILIES: [&str; 2] = ["v4", "v6"];
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
    let mut touched = differing(&old.statuses.gateways, gateways);
    touched.retain(|key| service(old, key) != service(new, key));
    if gateways.values().all(|status| status.service.is_none()) {
        return touched;
    }
    let endpoints =
        replicas.map(|key| (old.snapshot.slices.get(key), new.snapshot.slices.get(key)));
    if endpoints.is_some_and(|(old, new)| old != new) {
        let is_balanced = |key: &&ObjectKey| {
            let kind = service(new, key).map(|service| service.kind);
            matches!(kind, Some(ServiceKind::LoadBalancer(_)))
        };
        touched.extend(gateways.keys().filter(is_balanced).cloned());
    }
    let changed = differing(&old.snapshot.services, &new.snapshot.services).into_iter();
    for key in changed.chain(differing(&old.snapshot.slices, &new.snapshot.slices)) {
        let wrong = named_by(&key, &new.snapshot).filter(|gateway| {
            let wanted = service(new, gateway);
            !wanted.is_some_and(|wanted| stands(new, (&key, gateway), &wanted, replicas))
        });
        touched.extend(wrong);
    }
    touched
}

/// Whether a Service, or one of its EndpointSlices, that was changed still has what it should.
fn stands(
    known: &Known,
    (key, gateway): (&ObjectKey, &ObjectKey),
    wanted: &GatewayService,
    replicas: Option<&ObjectKey>,
) -> bool {
    let service = known.snapshot.services.get(key);
    service.is_some_and(|service| is_right(service, gateway, wanted))
        && leads_on(known, key, wanted, replicas)
}

fn is_right(service: &objects::Service, gateway: &ObjectKey, wanted: &GatewayService) -> bool {
    let (kind, asks_for) = match wanted.kind {
        ServiceKind::Headless(_) => ("ClusterIP", None),
        ServiceKind::LoadBalancer(asked) => ("LoadBalancer", asked.map(|ip| ip.to_string())),
    };
    let leads = |((transport, port), target): (&(Transport, u16), &u16)| {
        let target = Some(PortRef::Number(*target));
        let name = port_name(*transport, *port);
        let same = |one: &objects::ServicePort| {
            one.port == *port
                && one.protocol == protocol(*transport)
                && one.target == target
                && one.name.as_ref() == Some(&name)
        };
        service.ports.iter().any(same)
    };
    let has = |found: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>| {
        wanted.iter().all(|(name, value)| found.get(name) == Some(value))
    };
    let is_made = service.made_for.as_ref().is_some_and(|made| {
        made.uid == wanted.uid
            && has(&made.labels, &labels(gateway, wanted))
            && (asks_for.is_none() || made.asks_for == asks_for)
    });
    is_made
        && service.kind == kind
        && service.ports.len() == wanted.ports.len()
        && wanted.ports.iter().all(leads)
        && has(&service.meta.annotations, &wanted.infrastructure.annotations)
}

/// Whether the EndpointSlices of a Service have what is behind it.
fn leads_on(
    known: &Known,
    key: &ObjectKey,
    wanted: &GatewayService,
    replicas: Option<&ObjectKey>,
) -> bool {
    let slices = |of: &ObjectKey| {
        let found = known.snapshot.slices.get(of).cloned().unwrap_or_default();
        found.values().cloned().collect::<Vec<_>>()
    };
    let addresses = |slices: &[Arc<objects::EndpointSlice>]| {
        let all = slices.iter().filter(|slice| !slice.fqdn).flat_map(|slice| &slice.endpoints);
        let each = all.map(|one| (one.addresses.clone(), one.ready, one.serving));
        each.collect::<BTreeSet<_>>()
    };
    let behind = match wanted.kind {
        ServiceKind::Headless(address) => {
            BTreeSet::from([(vec![address.to_string().into()], true, true)])
        }
        ServiceKind::LoadBalancer(_) => addresses(&replicas.map(slices).unwrap_or_default()),
    };
    let mut own = slices(key);
    own.retain(|slice| FAMILIES.iter().any(|one| *slice.meta.key.name == slice_name(key, one)));
    let has_ports = |slice: &Arc<objects::EndpointSlice>| {
        let leads = |((transport, port), target): (&(Transport, u16), &u16)| {
            let name = Some(port_name(*transport, *port));
            let same = |one: &objects::SlicePort| {
                one.name == name
                    && one.port == Some(*target)
                    && one.protocol == protocol(*transport)
            };
            slice.ports.iter().any(same)
        };
        slice.ports.len() == wanted.ports.len() && wanted.ports.iter().all(leads)
    };
    own.iter().all(has_ports) && addresses(&own) == behind
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
    /// `spec.controllerName` of our classes.
    pub(super) controller: Arc<str>,
}

/// A Gateway as the API server has it at this moment.
struct Seen {
    uid: String,
    class: String,
    /// Whose its class is; none: it is not there.
    controller: Option<String>,
}

/// What becomes of a Service that is not wanted as it is.
#[derive(Debug, PartialEq)]
enum Fate {
    Goes,
    /// It stays, though nothing of its Gateway is served.
    Idle,
    /// It stays, since nobody knows.
    Unsure(String),
}

impl Seen {
    /// What becomes of the Service that was made for the Gateway of this uid, where one for `wanted` should be there.
    /// What is refused, or has lost its class for a while, is not gone.
    fn fate(seen: Option<&Self>, made_for: &str, wanted: Option<&str>, ours: &str) -> Fate {
        let Some(Self { uid, class, controller }) = seen else { return Fate::Goes };
        if uid != made_for || wanted == Some(uid) {
            return Fate::Goes;
        }
        match controller {
            _ if wanted.is_some() => Fate::Unsure("its Gateway has changed meanwhile".to_owned()),
            Some(controller) if controller != ours => Fate::Goes,
            Some(_) => Fate::Idle,
            None => Fate::Unsure(format!("there is no GatewayClass {class} now")),
        }
    }
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
        let (spec, found) = (found.spec.unwrap_or_default(), found.metadata);
        if found.deletion_timestamp.is_some() {
            // Whoever has a finalizer on it may take minutes. Its end is seen, and it is made anew then.
            return Ok(Outcome::Gone);
        }
        let is_headless = spec.cluster_ip.as_deref() == Some("None");
        let made_for = uid_for(&found, name).map(str::to_owned);
        match (made_for, wanted) {
            (None, None) => Ok(Outcome::Gone),
            (None, Some(_)) => {
                let reason = format!("Service {namespace}/{called} is somebody else's: delete it");
                Err(Outcome::Refused(reason))
            }
            (Some(uid), Some(wanted))
                if *uid == *wanted.uid
                    && is_headless == matches!(wanted.kind, ServiceKind::Headless(_)) =>
            {
                self.apply(gateway, wanted, Some((found, spec))).await
            }
            // It was made for a Gateway that is none of ours any more, for one of the same name before, or with other
            // flags: what is headless never is anything else.
            (Some(uid), _) => {
                match self.fate(gateway, &uid, wanted).await? {
                    Fate::Goes => {}
                    Fate::Unsure(why) => return Err(Outcome::Kept(why)),
                    Fate::Idle => {
                        // Its address may be somebody else's by now.
                        for family in FAMILIES.iter().filter(|_| is_headless) {
                            let name = slice_name(&ObjectKey::new("", called.as_str()), family);
                            self.put_slice(namespace, &name, None).await?;
                        }
                        return Err(Outcome::Kept("nothing of its Gateway is served".to_owned()));
                    }
                }
                let stale = exactly(found.uid, found.resource_version);
                told(ask(left(&self.leadership)?, services.delete(&called, &stale)).await)?;
                Ok(if wanted.is_some() { Outcome::Conflict } else { Outcome::Written })
            }
        }
    }

    /// Asks the API server what becomes of the Service of a Gateway.
    async fn fate(
        &self,
        gateway: &ObjectKey,
        made_for: &str,
        wanted: Option<&GatewayService>,
    ) -> Result<Fate, Outcome> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found = self.named(Which::Gateway, gateway).await?;
        let mut seen = found.map(|found| Seen {
            class: text(&found.data["spec"]["gatewayClassName"]),
            uid: found.metadata.uid.unwrap_or_default(),
            controller: None,
        });
        if let Some(seen) = &mut seen {
            let class = ObjectKey::new("", seen.class.as_str());
            let class = self.named(Which::Class, &class).await?;
            seen.controller = class.map(|class| text(&class.data["spec"]["controllerName"]));
        }
        let wanted = wanted.map(|wanted| &*wanted.uid);
        Ok(Seen::fate(seen.as_ref(), made_for, wanted, &self.controller))
    }

    /// An object, if it is there. By a list: that one is empty is an answer, which a kind that is not there does not
    /// give.
    async fn named(&self, which: Which, key: &ObjectKey) -> Result<Option<DynamicObject>, Outcome> {
        let named = ListParams::default().fields(&format!("metadata.name={}", key.name));
        let objects = api(self.client.clone(), which, key);
        match ask(left(&self.leadership)?, objects.list(&named)).await {
            Called::Good(list) => Ok(list.items.into_iter().next()),
            Called::Bad { code: Some(403 | 404), reason } => Err(Outcome::Kept(reason)),
            bad => outcome(bad).map(|_| None),
        }
    }

    /// Writes the Service, of which `before` is the version that is ours, and its EndpointSlices.
    async fn apply(
        &self,
        gateway: &ObjectKey,
        wanted: &GatewayService,
        before: Option<(ObjectMeta, ServiceSpec)>,
    ) -> Result<Outcome, Outcome> {
        let key = ObjectKey::new(gateway.namespace.clone(), service_name(&gateway.name));
        let endpoints = self.endpoints(wanted).await?;
        let made = service(&key, gateway, wanted);
        let version = before.as_ref().and_then(|(meta, _)| meta.resource_version.clone());
        let made = match before {
            None => self.make(&key, made).await?,
            Some((_, spec)) => self.mend(&key, made, &spec).await?,
        };
        let made = made.metadata;
        let uid = made.uid.unwrap_or_default();
        let mut is_news = version != made.resource_version;
        for (family, mut of_family) in FAMILIES.into_iter().zip(endpoints) {
            of_family.truncate(ENDPOINTS);
            let name = slice_name(&key, family);
            let wanted = (!of_family.is_empty()).then(|| {
                let address_type = if family == "v4" { "IPv4" } else { "IPv6" };
                slice(&name, (&key.name, &uid), wanted, address_type, of_family)
            });
            is_news |= self.put_slice(&key.namespace, &name, wanted).await?;
        }
        Ok(if is_news { Outcome::Written } else { Outcome::Gone })
    }

    /// Makes a Service that is not there yet, and is nobody's to overrule. Where the cluster does not have the family
    /// of the address that is asked for, it has that of the cluster.
    async fn make(&self, key: &ObjectKey, mut wanted: Value) -> Result<Service, Outcome> {
        let made = self.patch(key, &PatchParams::apply(MANAGER), &Patch::Apply(&wanted)).await?;
        let spec = wanted["spec"].as_object_mut();
        match made {
            Called::Bad { code: Some(422), .. }
                if spec.is_some_and(|spec| spec.remove("ipFamilies").is_some()) =>
            {
                let without = Patch::Apply(&wanted);
                told(self.patch(key, &PatchParams::apply(MANAGER), &without).await?)
            }
            other => told(other),
        }
    }

    /// Makes a Service of ours what it should be, whoever wrote what into it. Its first family cannot be changed.
    async fn mend(
        &self,
        key: &ObjectKey,
        mut wanted: Value,
        now: &ServiceSpec,
    ) -> Result<Service, Outcome> {
        let family = now.ip_families.iter().flatten().next();
        let is_other = wanted["spec"]["ipFamilies"][0].as_str() != family.map(String::as_str);
        if let Some(spec) = wanted["spec"].as_object_mut().filter(|_| is_other) {
            spec.remove("ipFamilies");
        }
        let as_fairway = PatchParams::apply(MANAGER).force();
        let whole = Patch::Apply(&wanted);
        let made = self.patch(key, &as_fairway, &whole).await?;
        let ports = wanted["spec"]["ports"].as_array().map_or(0, Vec::len);
        let has_others = match &made {
            Called::Good(made) => {
                let now = made.spec.as_ref().and_then(|spec| spec.ports.as_ref());
                now.map_or(0, Vec::len) != ports
            }
            Called::Bad { code, .. } => *code == Some(422),
        };
        if !has_others {
            return told(made);
        }
        // A port that somebody else put there stays, and is in the way if it has the name of one of ours. From then on
        // the ports have two owners, and whatever takes one out comes here again.
        let exact = json!({"spec": {"ports": wanted["spec"]["ports"]}});
        told(self.patch(key, &PatchParams::apply(MANAGER), &Patch::Merge(&exact)).await?)?;
        told(self.patch(key, &as_fairway, &whole).await?)
    }

    async fn patch(
        &self,
        ObjectKey { namespace, name }: &ObjectKey,
        how: &PatchParams,
        what: &Patch<&Value>,
    ) -> Result<Called<Service>, Outcome> {
        let services = self.services(namespace);
        Ok(ask(left(&self.leadership)?, services.patch(name, how, what)).await)
    }

    /// Makes an EndpointSlice what it should be, if it is ours; none: it goes. Whether it was another.
    async fn put_slice(
        &self,
        namespace: &str,
        name: &str,
        wanted: Option<Value>,
    ) -> Result<bool, Outcome> {
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
                let put = told(ask(left(&self.leadership)?, put).await)?;
                let version = found.and_then(|found| found.metadata.resource_version);
                Ok(version != put.metadata.resource_version)
            }
            Some(_) => {
                let reason =
                    format!("EndpointSlice {namespace}/{name} is somebody else's: delete it");
                Err(Outcome::Refused(reason))
            }
            None if is_ours => {
                let found = found.map(|found| found.metadata).unwrap_or_default();
                let stale = exactly(found.uid, found.resource_version);
                told(ask(left(&self.leadership)?, slices.delete(name, &stale)).await)?;
                Ok(true)
            }
            None => Ok(false),
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

/// To delete an object as it was read, and no other one.
fn exactly(uid: Option<String>, resource_version: Option<String>) -> DeleteParams {
    let preconditions = Some(Preconditions { uid, resource_version });
    DeleteParams { preconditions, ..DeleteParams::default() }
}

fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
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

fn slice_name(service: &ObjectKey, family: &str) -> String {
    format!("{}-{family}", service.name)
}

/// The labels of the Service of a Gateway.
fn labels(gateway: &ObjectKey, wanted: &GatewayService) -> BTreeMap<String, String> {
    let mut labels = wanted.infrastructure.labels.clone();
    labels.insert(GATEWAY_NAME.to_owned(), label_of(&gateway.name));
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

fn service(key: &ObjectKey, gateway: &ObjectKey, wanted: &GatewayService) -> Value {
    let mut spec = json!({"ports": ports(wanted)});
    match wanted.kind {
        ServiceKind::Headless(_) => spec["clusterIP"] = "None".into(),
        ServiceKind::LoadBalancer(asked) => {
            spec["type"] = "LoadBalancer".into();
            if let Some(asked) = asked {
                spec["loadBalancerIP"] = asked.to_string().into();
                spec["ipFamilies"] = json!([family(asked)]);
            }
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": *key.name,
            "namespace": *key.namespace,
            "labels": labels(gateway, wanted),
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
    fn a_service_goes_with_its_gateway_and_never_on_a_doubt() {
        const OURS: &str = "fairway/gateway-controller";
        let seen = |uid: &str, controller: Option<&str>| {
            let (uid, controller) = (uid.to_owned(), controller.map(str::to_owned));
            Some(Seen { uid, class: "web".to_owned(), controller })
        };
        let fate = |seen: Option<Seen>, wanted| Seen::fate(seen.as_ref(), "u", wanted, OURS);
        for (gateway, wanted) in [
            (None, None),
            (seen("another", Some(OURS)), None),
            (seen("another", None), Some("another")),
            (seen("u", Some("example.com/theirs")), None),
            // What is headless never is anything else.
            (seen("u", Some(OURS)), Some("u")),
        ] {
            assert_eq!(fate(gateway, wanted), Fate::Goes, "{wanted:?}");
        }
        assert_eq!(fate(seen("u", Some(OURS)), None), Fate::Idle, "it is refused");
        for (gateway, wanted, why) in [
            (seen("u", None), None, "there is no GatewayClass web now"),
            (seen("u", Some(OURS)), Some("another"), "its Gateway has changed meanwhile"),
        ] {
            assert_eq!(fate(gateway, wanted), Fate::Unsure(why.to_owned()));
        }
    }

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
