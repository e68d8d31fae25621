//! The Services of Gateways: a name in the cluster for an address of their own, headless, or a load balancer before
//! all replicas; with EndpointSlices that have the address, or those of the replicas. Labels and annotations are for
//! whoever looks for them. One goes only where the API server itself has just said that nobody needs it: an address
//! that a load balancer gave away is lost for good.

use super::astray::of_nobody;
use super::replace::PATIENCE;
use super::service_objects::{CONTROLLER, labels, port_name, protocol, service, slice};
use super::which::{Which, api, differing};
use super::write::{MANAGER, Outcome, outcome};
use crate::Known;
use crate::call::{Called, ask, remedy};
use crate::lease::Leadership;
use imbl::OrdMap;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use model::Transport;
use objects::{ObjectKey, PortRef, SLICE_MANAGED_BY, made_for};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use translate::gateway::{
    FAMILIES, GatewayService, ServiceKind, named_by, service_name, slice_name,
};

/// Endpoints of a slice at most, as its definition says.
const ENDPOINTS: usize = 1000;
/// What it takes to write them.
const RIGHTS: &str = "the rights of deploy/gateway-services.yaml (of the chart: controller.extraArgs.gateway-services) and \
                      of deploy/rbac.yaml, and no quota or policy of the namespace that says no";

/// The EndpointSlices of a Service, as they were seen.
pub(super) type Slices = Arc<OrdMap<ObjectKey, Arc<objects::EndpointSlice>>>;

/// The Gateways whose Services should be others now, or came or went, and those that have one and should have none.
/// `replicas` is the Service whose endpoints are those of load balancers.
pub(super) fn touched(old: &Known, new: &Known, replicas: Option<&ObjectKey>) -> Vec<ObjectKey> {
    let gateways = &new.statuses.gateways;
    let service =
        |known: &Known, key: &ObjectKey| known.statuses.gateways.get(key)?.service.clone();
    let mut touched = differing(&old.statuses.gateways, gateways);
    touched.retain(|key| service(old, key) != service(new, key));
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
        touched.extend(of_nobody(&key, &new.snapshot));
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
    let is_own = |name: &str| FAMILIES.iter().any(|one| *name == slice_name(&key.name, one));
    own.retain(|slice| is_own(&slice.meta.key.name));
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

/// Whether the Service with these metadata and this name was made for a Gateway whose Service has it.
fn is_owned(meta: &ObjectMeta, called: &str) -> bool {
    made_for(meta).is_some_and(|owner| service_name(&owner.name) == called)
}

/// What the API server says. What is forbidden may be allowed later: a right comes, a quota has room again, and a
/// policy goes, which says 422 or, where it is a webhook without a code, 400.
fn told<T>(answer: Called<T>) -> Result<T, Outcome> {
    match answer {
        Called::Bad { code: code @ Some(400 | 403 | 422), reason } => {
            Err(Outcome::Forbidden(reason + &remedy(code, RIGHTS)))
        }
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
    /// It stays, and leads nowhere, since nothing of its Gateway is served: why.
    Idle(String),
    /// It is somebody else's. What is ours of it leads nowhere.
    Theirs,
    /// It stays as it is, since nobody knows: why.
    Unsure(String),
}

impl Seen {
    /// What becomes of the Service that was made for the Gateway of this uid, where one for `wanted` should be there.
    /// What is refused, or has lost its class for a while, is not gone. `is_ours`: the Service says so.
    fn fate(
        seen: Option<&Self>,
        (made_for, is_ours): (&str, bool),
        wanted: Option<&str>,
        ours: &str,
    ) -> Fate {
        let Some(Self { uid, class, controller }) = seen else { return Fate::Goes };
        if uid != made_for || wanted == Some(uid) {
            return Fate::Goes;
        }
        match controller {
            _ if wanted.is_some() => Fate::Unsure("its Gateway has changed meanwhile".to_owned()),
            Some(controller) if controller == ours => {
                Fate::Idle("nothing of its Gateway is served".to_owned())
            }
            Some(_) if is_ours => Fate::Goes,
            Some(_) => Fate::Theirs,
            None => Fate::Idle(format!("there is no GatewayClass {class} now")),
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
        let key = ObjectKey::new(namespace.clone(), called.as_str());
        let Some(found) = found else {
            // Whoever makes one of that name leads on by what was left of it.
            let Some(wanted) = wanted else { return self.lead_nowhere(&key, None).await };
            return self.apply(gateway, wanted, None).await;
        };
        let (spec, found) = (found.spec.unwrap_or_default(), found.metadata);
        let id = found.uid.clone();
        if found.deletion_timestamp.is_some() {
            // Whoever has a finalizer on it may take minutes, or for ever. Its end is seen, and it is made anew then.
            return self.lead_nowhere(&key, id.as_deref()).await;
        }
        let is_headless = spec.cluster_ip.as_deref() == Some("None");
        let made_for = uid_for(&found, name).map(str::to_owned);
        match (made_for, wanted) {
            (None, wanted) => {
                // Somebody took its owner or its label away, unless it is that of another Gateway with such a name.
                let is_lost = !is_owned(&found, &called);
                let left = if is_lost {
                    self.lead_nowhere(&key, id.as_deref()).await?
                } else {
                    Outcome::Gone
                };
                let reason = format!("Service {namespace}/{called} is somebody else's: delete it");
                wanted.map_or(Ok(left), |_| Err(Outcome::Refused(reason)))
            }
            (Some(uid), Some(wanted))
                if *uid == *wanted.uid
                    && is_headless == matches!(wanted.kind, ServiceKind::Headless(_)) =>
            {
                self.apply(gateway, wanted, Some((found, spec))).await
            }
            (Some(uid), _) => self.part(gateway, (&key, found), &uid, wanted).await,
        }
    }

    /// Parts with a Service that was made for a Gateway that is none of ours any more, for one of the same name before
    /// (of this uid), or with other flags: what is headless never is anything else.
    async fn part(
        &self,
        gateway: &ObjectKey,
        (key, found): (&ObjectKey, ObjectMeta),
        made_for: &str,
        wanted: Option<&GatewayService>,
    ) -> Result<Outcome, Outcome> {
        let says = found.annotations.as_ref().and_then(|all| all.get(CONTROLLER));
        let is_ours = says.is_some_and(|says| **says == *self.controller);
        let stays = match self.fate(gateway, (made_for, is_ours), wanted).await? {
            Fate::Unsure(why) => return Err(Outcome::Kept(why)),
            Fate::Goes => None,
            Fate::Theirs => Some(Ok(Outcome::Gone)),
            Fate::Idle(why) => Some(Err(Outcome::Kept(why))),
        };
        // Also where it goes: whoever has a finalizer on it may keep it.
        self.lead_nowhere(key, found.uid.as_deref()).await?;
        if let Some(stays) = stays {
            return stays;
        }
        let stale = exactly(found.uid, found.resource_version);
        let services = self.services(&key.namespace);
        told(ask(left(&self.leadership)?, services.delete(&key.name, &stale)).await)?;
        Ok(if wanted.is_some() { Outcome::Conflict } else { Outcome::Written })
    }

    /// Takes the EndpointSlices of a Service away: the address of a Gateway, ports of replicas and addresses of Pods
    /// are somebody else's soon.
    async fn lead_nowhere(
        &self,
        service: &ObjectKey,
        uid: Option<&str>,
    ) -> Result<Outcome, Outcome> {
        let mut is_news = false;
        for family in FAMILIES {
            let name = slice_name(&service.name, family);
            is_news |= self.put_slice((&service.namespace, &name, uid), None).await?;
        }
        Ok(if is_news { Outcome::Written } else { Outcome::Gone })
    }

    /// Asks the API server what becomes of the Service of a Gateway.
    async fn fate(
        &self,
        gateway: &ObjectKey,
        made_for: (&str, bool),
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
        let made = service(&key, gateway, wanted, &self.controller);
        let version = before.as_ref().and_then(|(meta, _)| meta.resource_version.clone());
        let (made, refused) = match before {
            None => (self.make(&key, made).await?.metadata, None),
            // Replicas come and go, also while the Service itself may not be changed, or is changed all the time.
            Some((meta, spec)) => match self.mend(&key, made, (&meta, &spec)).await {
                Ok(made) => (made.metadata, None),
                Err(refused @ (Outcome::Forbidden(_) | Outcome::Conflict)) => (meta, Some(refused)),
                Err(bad) => return Err(bad),
            },
        };
        let uid = made.uid.unwrap_or_default();
        let mut is_news = version != made.resource_version;
        for (family, mut of_family) in FAMILIES.into_iter().zip(endpoints) {
            of_family.truncate(ENDPOINTS);
            let name = slice_name(&key.name, family);
            let wanted = (!of_family.is_empty()).then(|| {
                let address_type = if family == "v4" { "IPv4" } else { "IPv6" };
                let of = (&*key.name, &*uid, &*self.controller);
                slice(&name, gateway, of, wanted, address_type, of_family)
            });
            is_news |= self.put_slice((&key.namespace, &name, Some(&uid)), wanted).await?;
        }
        refused.map_or(Ok(if is_news { Outcome::Written } else { Outcome::Gone }), Err)
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

    /// Makes a Service of ours what it should be, whoever wrote what into it, if it is the one that was read: who has
    /// taken its owner away meanwhile is not given it back. Its first family cannot be changed.
    async fn mend(
        &self,
        key: &ObjectKey,
        mut wanted: Value,
        (meta, now): (&ObjectMeta, &ServiceSpec),
    ) -> Result<Service, Outcome> {
        let family = now.ip_families.iter().flatten().next();
        let is_other = wanted["spec"]["ipFamilies"][0].as_str() != family.map(String::as_str);
        if let Some(spec) = wanted["spec"].as_object_mut().filter(|_| is_other) {
            spec.remove("ipFamilies");
        }
        let as_fairway = PatchParams::apply(MANAGER).force();
        let mut as_read = wanted.clone();
        as_read["metadata"]["resourceVersion"] = json!(meta.resource_version);
        let made = self.patch(key, &as_fairway, &Patch::Apply(&as_read)).await?;
        let whole = Patch::Apply(&wanted);
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

    /// Makes an EndpointSlice of the Service with this uid what it should be, if it is ours; none: it goes, unless
    /// another Fairway made it. Whether it was another.
    async fn put_slice(
        &self,
        (namespace, name, service): (&str, &str, Option<&str>),
        wanted: Option<Value>,
    ) -> Result<bool, Outcome> {
        let slices = self.slices(namespace);
        let found = told(ask(left(&self.leadership)?, slices.get_opt(name)).await)?;
        let labels = found.as_ref().and_then(|found| found.metadata.labels.as_ref());
        let by = labels.and_then(|labels| labels.get(SLICE_MANAGED_BY));
        let says = found.as_ref().and_then(|found| found.metadata.annotations.as_ref());
        // Whoever labels all that there is takes none of ours away.
        let owners = found.as_ref().and_then(|found| found.metadata.owner_references.as_ref());
        let is_owned = owners.into_iter().flatten().any(|one| Some(&*one.uid) == service);
        let is_signed = says
            .and_then(|says| says.get(CONTROLLER))
            .is_some_and(|says| **says == *self.controller);
        let is_ours = by.is_some_and(|by| by == MANAGER) || is_owned && is_signed;
        let is_theirs = says
            .and_then(|says| says.get(CONTROLLER))
            .is_some_and(|says| **says != *self.controller);
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
            None if is_ours && !is_theirs => {
                let found = found.map(|found| found.metadata).unwrap_or_default();
                let stale = exactly(found.uid, found.resource_version);
                match told(ask(left(&self.leadership)?, slices.delete(name, &stale)).await) {
                    // The garbage collector was first.
                    Err(Outcome::Gone) => Ok(false),
                    gone => gone.map(|_| true),
                }
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

#[cfg(test)]
mod tests {
    use super::super::astray::is_left;
    use super::super::server::{api_server, refusal};
    use super::*;
    use http::Method;
    use objects::MANAGED_BY;
    use objects::gateway::Infrastructure;
    use parking_lot::Mutex;

    const OURS: &str = "fairway/gateway-controller";

    #[test]
    fn a_service_goes_with_its_gateway_and_never_on_a_doubt() {
        let seen = |uid: &str, controller: Option<&str>| {
            let (uid, controller) = (uid.to_owned(), controller.map(str::to_owned));
            Some(Seen { uid, class: "web".to_owned(), controller })
        };
        let fate = |seen: Option<Seen>, is_ours, wanted| {
            Seen::fate(seen.as_ref(), ("u", is_ours), wanted, OURS)
        };
        for (gateway, wanted) in [
            (None, None),
            (seen("another", Some(OURS)), None),
            (seen("another", None), Some("another")),
            (seen("u", Some("example.com/theirs")), None),
            // What is headless never is anything else.
            (seen("u", Some(OURS)), Some("u")),
        ] {
            assert_eq!(fate(gateway, true, wanted), Fate::Goes, "{wanted:?}");
        }
        // Two Fairways in one cluster, each with a class of its own.
        assert_eq!(fate(seen("u", Some("example.com/theirs")), false, None), Fate::Theirs);
        for (gateway, why) in [
            (seen("u", Some(OURS)), "nothing of its Gateway is served"),
            (seen("u", None), "there is no GatewayClass web now"),
        ] {
            assert_eq!(fate(gateway, true, None), Fate::Idle(why.to_owned()));
        }
        let changed = "its Gateway has changed meanwhile".to_owned();
        assert_eq!(fate(seen("u", Some(OURS)), true, Some("another")), Fate::Unsure(changed));
    }

    /// Gateway `shop/web` with a Service, and a class of this controller.
    fn known(controller: Option<&str>, labels: &str) -> Known {
        let class = controller.map(|controller| {
            format!(
                "---\napiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: c}}\n\
                 spec: {{controllerName: {controller}}}\n"
            )
        });
        let text = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{namespace: shop, name: web, uid: u}}\n\
             spec: {{gatewayClassName: c, listeners: []}}\n---\napiVersion: v1\nkind: Service\nmetadata:\n  \
             namespace: shop\n  name: gateway-web\n  labels: {labels}\n  ownerReferences: [{{apiVersion: \
             gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u}}]\nspec: {{ports: [{{port: 80}}]}}\n{}",
            class.unwrap_or_default()
        );
        let file = [(std::path::Path::new("in.yaml"), text.as_str())];
        Known { snapshot: objects::snapshot_of(file), ..Known::default() }
    }

    #[test]
    fn whoever_leads_next_looks_at_services_that_nobody_needs_and_at_none_of_another_fairway() {
        let web = ObjectKey::new("shop", "web");
        let ours = "{app.kubernetes.io/managed-by: fairway}";
        for (controller, labels, is_one) in [
            (Some(OURS), ours, true),
            (None, ours, true),
            (Some("example.com/theirs"), ours, false),
            (Some(OURS), "{}", false),
        ] {
            let known = known(controller, labels);
            assert_eq!(touched(&Known::default(), &known, None), std::slice::from_ref(&web));
            assert_eq!(is_left(&known.snapshot, &web, OURS), is_one, "{controller:?} {labels}");
            assert!(touched(&known, &known, None).is_empty(), "once");
        }
        // While nobody knows the classes, nothing is left by anybody.
        let mut known = known(None, ours);
        known.snapshot.unlisted.insert(objects::Kind::GatewayClass);
        assert!(!is_left(&known.snapshot, &web, OURS));
    }

    #[test]
    fn what_is_forbidden_is_tried_again() {
        let answer = |code| Called::<()>::Bad { code: Some(code), reason: "no".to_owned() };
        let Err(Outcome::Forbidden(reason)) = told(answer(403)) else { panic!("it is given up") };
        assert!(reason.starts_with("no; it takes the rights of deploy/gateway-services.yaml"));
        for code in [400, 422] {
            assert_eq!(told(answer(code)), Err(Outcome::Forbidden("no".to_owned())), "{code}");
        }
        assert_eq!(told(answer(409)), Err(Outcome::Conflict));
    }

    #[tokio::test]
    async fn endpoints_follow_the_replicas_while_a_policy_denies_changes_of_the_service() {
        let Err(Outcome::Forbidden(reason)) = endpoints_are_written(422).await else {
            panic!("it is forbidden")
        };
        assert!(reason.contains("the Service says no"), "{reason}");
    }

    #[tokio::test]
    async fn endpoints_follow_the_replicas_while_somebody_writes_the_service_all_the_time() {
        assert_eq!(endpoints_are_written(409).await, Err(Outcome::Conflict));
    }

    /// Where changes of the Service end so.
    async fn endpoints_are_written(code: u16) -> Result<Outcome, Outcome> {
        let written = Arc::new(Mutex::new(Vec::new()));
        let seen = written.clone();
        let wanted = GatewayService {
            uid: "u".into(),
            kind: ServiceKind::LoadBalancer(None),
            ports: [((Transport::Tcp, 80), 20_007)].into(),
            infrastructure: Arc::new(Infrastructure::default()),
        };
        let client = api_server(move |method, path, body| {
            let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "web", "uid": "u"});
            let meta = json!({
                "name": "gateway-web", "namespace": "shop", "uid": "s", "resourceVersion": "1",
                "labels": {MANAGED_BY: MANAGER}, "ownerReferences": [owner],
            });
            let slice = json!({
                "metadata": {"name": "fairway-a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.7"]}],
            });
            match path.rsplit('/').next() {
                Some("gateway-web") if method == Method::GET => (200, json!({"metadata": meta, "spec": {}})),
                Some("gateway-web") => refusal(code, "the Service says no"),
                Some("endpointslices") => (200, json!({"metadata": {}, "items": [slice]})),
                Some(_) if method == Method::GET => refusal(404, "not found"),
                _ => {
                    let body: Value = serde_json::from_str(body).expect("JSON");
                    seen.lock().push(body.clone());
                    (200, body)
                }
            }
        })
        .await;
        let scribe = Scribe {
            client,
            leadership: Leadership::always(),
            replicas: Some(ObjectKey::new("fairway", "fairway")),
            controller: OURS.into(),
        };
        let outcome = scribe.write(&ObjectKey::new("shop", "web"), Some(&wanted)).await;
        let written = written.lock();
        assert_eq!(written.len(), 1, "{written:?}");
        assert_eq!(written[0]["endpoints"][0]["addresses"], json!(["10.0.0.7"]));
        let meta = &written[0]["metadata"];
        assert_eq!(meta["ownerReferences"][0]["uid"], "s");
        assert_eq!(meta["labels"]["gateway.networking.k8s.io/gateway-name"], "web");
        outcome
    }

    #[tokio::test]
    async fn endpoints_that_somebody_else_labels_are_still_ours_and_those_of_others_are_not() {
        for (controller, owner, is_ours) in
            [(OURS, "s", true), (OURS, "t", false), ("x/y", "s", false)]
        {
            let client = api_server(move |method, _, body| {
                let owner = json!({"apiVersion": "v1", "kind": "Service", "name": "gateway-web", "uid": owner});
                let meta = json!({
                    "name": "gateway-web-v4", "labels": {SLICE_MANAGED_BY: "foo"},
                    "annotations": {CONTROLLER: controller}, "ownerReferences": [owner],
                });
                let found = json!({"metadata": meta, "addressType": "IPv4", "endpoints": []});
                let body = serde_json::from_str(body).unwrap_or_default();
                (200, if method == Method::GET { found } else { body })
            })
            .await;
            let leadership = Leadership::always();
            let scribe = Scribe { client, leadership, replicas: None, controller: OURS.into() };
            let wanted = json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": [],
                "metadata": {"name": "gateway-web-v4", "resourceVersion": "2", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Service", "name": "gateway-web", "uid": "s"},
                ]},
            });
            let slice = ("shop", "gateway-web-v4", Some("s"));
            let put = scribe.put_slice(slice, Some(wanted)).await;
            assert_eq!(put.is_ok(), is_ours, "{put:?}");
            let gone = scribe.put_slice(slice, None).await;
            assert_eq!(gone.ok(), Some(is_ours), "whether it was there, and is gone");
        }
    }

    /// What is taken away of the EndpointSlices of Service `shop/gateway-web` where the API server has this Service.
    async fn taken(service: Option<Value>, wanted: Option<&GatewayService>) -> Vec<String> {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let seen = taken.clone();
        let client = api_server(move |method, path, _| {
            let name = path.rsplit('/').next().unwrap_or_default();
            let meta = json!({"name": name, "labels": {SLICE_MANAGED_BY: MANAGER}, "annotations": {CONTROLLER: OURS}});
            let slice = json!({"metadata": meta, "addressType": "IPv4", "endpoints": []});
            match (method, name) {
                (&Method::DELETE, _) => {
                    seen.lock().push(name.to_owned());
                    // Another one was first, which is no reason to leave the second.
                    refusal(404, "not found")
                }
                (_, "gateway-web") => match &service {
                    Some(meta) => (200, json!({"metadata": meta, "spec": {}})),
                    None => refusal(404, "not found"),
                },
                _ => (200, slice),
            }
        })
        .await;
        let leadership = Leadership::always();
        let scribe = Scribe { client, leadership, replicas: None, controller: OURS.into() };
        let outcome = scribe.write(&ObjectKey::new("shop", "web"), wanted).await;
        assert_eq!(matches!(outcome, Err(Outcome::Refused(_))), wanted.is_some(), "{outcome:?}");
        std::mem::take(&mut *taken.lock())
    }

    #[tokio::test]
    async fn slices_of_a_service_that_has_lost_its_gateway_go() {
        let wanted = GatewayService {
            uid: "u".into(),
            kind: ServiceKind::LoadBalancer(None),
            ports: [((Transport::Tcp, 80), 20_007)].into(),
            infrastructure: Arc::new(Infrastructure::default()),
        };
        let meta = |by: &str, owner: &str| {
            let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": owner, "uid": "u"});
            json!({
                "name": "gateway-web", "namespace": "shop", "uid": "s", "labels": {MANAGED_BY: by},
                "ownerReferences": [owner],
            })
        };
        let both = ["gateway-web-v4", "gateway-web-v6"];
        let mut orphan = meta(MANAGER, "web");
        orphan["ownerReferences"] = json!([]);
        for lost in [orphan, meta("Helm", "web"), meta(MANAGER, "other")] {
            for wanted in [None, Some(&wanted)] {
                assert_eq!(taken(Some(lost.clone()), wanted).await, both, "{lost} {wanted:?}");
            }
        }
        let mut held = meta(MANAGER, "web");
        held["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(taken(Some(held), None).await, both, "somebody's finalizer keeps it");
        assert_eq!(taken(None, None).await, both, "it went without them");
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
