//! The status of an object of the Gateway API as it should stand: what is ours is replaced, all else stays.

use super::address::Address;
use super::services::Slices;
use super::shown::number;
use super::which::Id;
use k8s_openapi::jiff::Timestamp;
use objects::ObjectKey;
use objects::gateway::ParentRef;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use translate::gateway::{
    ClassStatus, Condition, GatewayService, GatewayStatus, ListenerStatus, PolicyStatus,
    RouteStatus, SetStatus,
};

/// Ancestors of a policy at most, as its definition says.
const ANCESTORS: usize = 16;

/// Conditions of ours that are not always there: where they are not, what they said before is over.
const PASSING: [&str; 4] =
    ["InsecureFrontendValidationMode", "OverlappingTLSConfig", "PartiallyInvalid", "ResolvedRefs"];

/// What an object is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wanted {
    Class(Arc<ClassStatus>),
    /// With the addresses that are published, and whether the API server refuses its Service.
    Gateway(Arc<GatewayStatus>, Arc<[Address]>, bool),
    /// With the status of its Gateway, and the addresses that are published.
    Set(Arc<SetStatus>, Option<Arc<GatewayStatus>>, Arc<[Address]>),
    /// None: nothing of ours is left.
    Route(Option<Arc<RouteStatus>>),
    /// None: nothing of ours is left.
    Policy(Option<Arc<PolicyStatus>>),
    /// The Service of a Gateway, which is no status at all; none: it goes. With the EndpointSlices of the replicas,
    /// where these are behind it.
    Service(Option<Arc<GatewayService>>, Option<Slices>),
}

impl Wanted {
    /// Of which generation it is; none: of any.
    pub(super) fn generation(&self) -> Option<i64> {
        match self {
            Self::Class(status) => Some(status.generation),
            Self::Gateway(status, ..) => Some(status.generation),
            Self::Set(status, ..) => Some(status.generation),
            Self::Route(status) => status.as_ref().map(|status| status.generation),
            Self::Policy(status) => status.as_ref().map(|status| status.generation),
            Self::Service(..) => None,
        }
    }

    /// What tells it from other statuses, in every replica; none where nothing is promised.
    pub(super) fn number(&self, id: &Id) -> Option<u64> {
        match self {
            Self::Class(status) => Some(number(id, status)),
            Self::Gateway(status, ..) => Some(number(id, status)),
            Self::Set(status, ..) => Some(number(id, status)),
            Self::Route(status) => status.as_ref().map(|status| number(id, status)),
            Self::Policy(status) => status.as_ref().map(|status| number(id, status)),
            Self::Service(..) => None,
        }
    }

    /// `status.addresses` of a Gateway.
    pub(super) fn addresses(&self) -> Value {
        match self {
            Self::Gateway(status, published, _) => addresses(status, published).0,
            _ => Value::Null,
        }
    }

    /// The status with what is ours; what has not changed keeps its time.
    pub(super) fn within(&self, status: &Value, controller: &str, now: Timestamp) -> Value {
        let mut made = status.clone();
        if !made.is_object() {
            made = json!({});
        }
        match self {
            Self::Class(wanted) => {
                made["conditions"] =
                    conditions(&status["conditions"], &wanted.conditions, wanted.generation, now);
                made["supportedFeatures"] = features(wanted);
            }
            Self::Gateway(wanted, published, is_forbidden) => {
                let (addresses, unusable) = addresses(wanted, published);
                let mut own = wanted.conditions.clone();
                if let Some((reason, message)) = unusable {
                    not_programmed(&mut own, reason, &message);
                }
                if *is_forbidden {
                    forbidden(&mut own);
                }
                made["addresses"] = addresses;
                made["conditions"] =
                    conditions(&status["conditions"], &own, wanted.generation, now);
                made["listeners"] =
                    listeners(&status["listeners"], &wanted.listeners, wanted.generation, now);
                // Older definitions do not have the field; those that have it come with ListenerSets.
                let is_there = made.get("attachedListenerSets").is_some();
                if wanted.sets.is_some() || is_there {
                    made["attachedListenerSets"] = wanted.sets.unwrap_or_default().into();
                }
            }
            Self::Set(wanted, gateway, published) => {
                let unusable = gateway.as_ref().and_then(|one| addresses(one, published).1);
                let mut own = wanted.conditions.clone();
                if unusable.is_some() {
                    not_programmed(
                        &mut own,
                        "ParentNotProgrammed",
                        "its Gateway has no address; see its status",
                    );
                }
                made["conditions"] =
                    conditions(&status["conditions"], &own, wanted.generation, now);
                made["listeners"] =
                    listeners(&status["listeners"], &wanted.listeners, wanted.generation, now);
            }
            Self::Route(wanted) => {
                let generation = self.generation().unwrap_or_default();
                let own = wanted.iter().flat_map(|wanted| &wanted.parents);
                let own = own.map(|(parent, own)| (parent_ref(parent), &own[..]));
                let entries = Entries { of: "parentRef", controller, generation, now };
                made["parents"] = entries.within(&status["parents"], own);
            }
            Self::Policy(wanted) => {
                let known = &status["ancestors"];
                made["ancestors"] = ancestors(known, wanted.as_deref(), controller, now);
            }
            Self::Service(..) => {}
        }
        made
    }

    /// The same `status` for definitions that may refuse it: up to 1.1 `supportedFeatures`, experimental there, was a
    /// list of words.
    pub(super) fn for_older(&self, status: &Value, before: &Value) -> Option<Value> {
        let Self::Class(_) = self else { return None };
        let mut older = status.clone();
        match before.get("supportedFeatures") {
            Some(features) => older["supportedFeatures"] = features.clone(),
            None => drop(older.as_object_mut()?.remove("supportedFeatures")),
        }
        Some(older)
    }
}

fn features(class: &ClassStatus) -> Value {
    class.features.iter().map(|name| json!({ "name": name })).collect()
}

fn not_programmed(own: &mut [Condition], reason: &'static str, message: &str) {
    let programmed = own.iter_mut().filter(|one| one.kind == "Programmed" && one.holds);
    programmed.for_each(|one| {
        (one.holds, one.reason, one.message) = (false, reason, message.into());
    });
}

/// Why a Gateway has no Service yet. The words of the API server name accounts, which is nobody's business here.
fn forbidden(own: &mut [Condition]) {
    let lacking = own.iter_mut().filter(|one| !one.holds && one.reason == "AddressNotAssigned");
    lacking.for_each(|one| {
        let why = format!(
            "{}: the API server refuses it, since Fairway lacks a right, a quota or a policy of the namespace says no, \
             or something of spec.infrastructure is not valid; its log has the reason",
            one.message
        );
        one.message = why.into();
    });
}

fn listeners(before: &Value, wanted: &[ListenerStatus], generation: i64, now: Timestamp) -> Value {
    wanted.iter().map(|one| listener(before, one, generation, now)).collect()
}

/// What ancestors of a policy say: what is anybody else's stays, and of ours there are as many as there is room for.
fn ancestors(
    before: &Value,
    wanted: Option<&PolicyStatus>,
    controller: &str,
    now: Timestamp,
) -> Value {
    let generation = wanted.map(|wanted| wanted.generation).unwrap_or_default();
    let entries = Entries { of: "ancestorRef", controller, generation, now };
    let known = before.as_array().into_iter().flatten();
    let room = ANCESTORS.saturating_sub(known.filter(|one| !entries.are_ours(one)).count());
    let own = wanted.into_iter().flat_map(|wanted| {
        wanted.ancestors.iter().map(|ObjectKey { namespace, name }| {
            let ancestor = json!({
                "group": objects::gateway::GROUP,
                "kind": "Gateway",
                "namespace": **namespace,
                "name": **name,
            });
            (ancestor, &wanted.conditions[..])
        })
    });
    entries.within(before, own.take(room))
}

/// A list in which each controller has entries of its own.
struct Entries<'a> {
    /// The field that says whom one of them is about.
    of: &'static str,
    controller: &'a str,
    generation: i64,
    now: Timestamp,
}

impl Entries<'_> {
    fn are_ours(&self, one: &Value) -> bool {
        one["controllerName"] == self.controller
    }

    /// The list with ours in their places, new ones last. Nobody else's moves: two controllers that each want their own
    /// ones last would write for ever.
    fn within<'a>(
        &self,
        before: &Value,
        own: impl Iterator<Item = (Value, &'a [Condition])>,
    ) -> Value {
        let made = |reference: &Value, known: &Value, own: &[Condition]| {
            json!({
                self.of: reference,
                "controllerName": self.controller,
                "conditions": conditions(known, own, self.generation, self.now),
            })
        };
        let mut own: Vec<_> = own.collect();
        let mut all = Vec::new();
        for one in before.as_array().into_iter().flatten() {
            if !self.are_ours(one) {
                all.push(one.clone());
                continue;
            }
            if let Some(at) = own.iter().position(|(reference, _)| *reference == one[self.of]) {
                let (reference, own) = own.remove(at);
                all.push(made(&reference, &one["conditions"], own));
            }
        }
        all.extend(own.iter().map(|(reference, own)| made(reference, &Value::Null, own)));
        Value::Array(all)
    }
}

/// Conditions with ours in their places; those of other types stay.
fn conditions(before: &Value, own: &[Condition], generation: i64, now: Timestamp) -> Value {
    let mut all = before.as_array().cloned().unwrap_or_default();
    let is_own = |kind: &str| own.iter().any(|condition| condition.kind == kind);
    all.retain(|one| {
        let kind = one["type"].as_str().unwrap_or_default();
        !PASSING.contains(&kind) || is_own(kind)
    });
    for condition in own {
        let status = if condition.holds { "True" } else { "False" };
        let known = all.iter().position(|one| one["type"] == condition.kind);
        let since = known.map(|at| &all[at]).filter(|one| one["status"] == status);
        let since = since.map(|one| one["lastTransitionTime"].clone());
        let made = json!({
            "type": condition.kind,
            "status": status,
            "reason": condition.reason,
            "message": &*condition.message,
            "observedGeneration": generation,
            "lastTransitionTime": since.unwrap_or_else(|| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()),
        });
        match known {
            Some(at) => all[at] = made,
            None => all.push(made),
        }
    }
    Value::Array(all)
}

fn listener(before: &Value, wanted: &ListenerStatus, generation: i64, now: Timestamp) -> Value {
    let known = before.as_array().into_iter().flatten().find(|one| one["name"] == wanted.name);
    let mut made = known.cloned().unwrap_or_else(|| json!({"name": wanted.name}));
    let kinds = wanted.kinds.iter();
    let kinds = kinds.map(|kind| json!({"group": objects::gateway::GROUP, "kind": kind}));
    made["supportedKinds"] = kinds.collect();
    made["attachedRoutes"] = wanted.attached.into();
    made["conditions"] = conditions(&made["conditions"], &wanted.conditions, generation, now);
    made
}

/// The addresses that a Gateway has: those that are published, of which it may ask for some; and why that is not right.
fn addresses(
    wanted: &GatewayStatus,
    published: &[Address],
) -> (Value, Option<(&'static str, String)>) {
    if let Some(own) = &wanted.own {
        return (own.iter().map(|own| address(own)).collect(), None);
    }
    let texts = published.iter().filter_map(|(host, ip)| host.as_ref().or(ip.as_ref()));
    let asked: Vec<&String> =
        wanted.wanted.iter().map(|(_, value)| value).filter(|value| !value.is_empty()).collect();
    let missing = asked.iter().find(|value| {
        !published
            .iter()
            .any(|(host, ip)| host.as_ref() == Some(**value) || ip.as_ref() == Some(**value))
    });
    let wrong = match missing {
        Some(value) => Some((
            "AddressNotUsable",
            format!(
                "spec.addresses: {value} is not published; all Gateways share the addresses of Fairway"
            ),
        )),
        None if published.is_empty() => {
            Some(("AddressNotAssigned", "no address is published".to_owned()))
        }
        None => None,
    };
    let given = texts.filter(|text| asked.is_empty() || asked.contains(text));
    let given = given.map(|text| address(text));
    // The field takes 16.
    (given.take(16).collect(), wrong)
}

fn address(text: &str) -> Value {
    let kind = if text.parse::<IpAddr>().is_ok() { "IPAddress" } else { "Hostname" };
    json!({"type": kind, "value": text})
}

fn parent_ref(parent: &ParentRef) -> Value {
    let ParentRef { object, section, port } = parent;
    let mut made = Map::new();
    made.insert("group".to_owned(), (*object.group).into());
    made.insert("kind".to_owned(), (*object.kind).into());
    made.insert("name".to_owned(), object.name.as_str().into());
    for (field, value) in [("namespace", &object.namespace), ("sectionName", section)] {
        if let Some(value) = value {
            made.insert(field.to_owned(), value.as_str().into());
        }
    }
    if let Some(port) = port {
        made.insert("port".to_owned(), (*port).into());
    }
    Value::Object(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &'static str, holds: bool) -> Condition {
        Condition { kind, holds, reason: kind, message: "".into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn gateway(wanted: &[(&str, &str)]) -> Arc<GatewayStatus> {
        Arc::new(GatewayStatus {
            generation: 2,
            conditions: vec![condition("Accepted", true), condition("Programmed", true)],
            listeners: vec![ListenerStatus {
                name: "web".to_owned(),
                kinds: vec!["HTTPRoute"],
                attached: 0,
                conditions: vec![condition("Accepted", true)],
            }],
            wanted: wanted
                .iter()
                .map(|(kind, value)| ((*kind).to_owned(), (*value).to_owned()))
                .collect(),
            own: None,
            service: None,
            sets: None,
        })
    }

    #[test]
    fn what_is_anybody_else_s_stays_and_what_holds_as_before_keeps_its_time() {
        let published: Arc<[Address]> = vec![(None, Some("192.0.2.1".to_owned()))].into();
        let wanted = Wanted::Gateway(gateway(&[]), published, false);
        let foreign = json!({"type": "Theirs", "status": "True"});
        let before = json!({
            "conditions": [foreign, {"type": "Accepted", "status": "Unknown"}],
            "listeners": [
                {"name": "web", "attachedRoutes": 3, "supportedKinds": [], "conditions": [foreign]},
                {"name": "gone", "attachedRoutes": 1, "supportedKinds": [], "conditions": []},
            ],
        });
        let made = wanted.within(&before, "us", at(60));
        assert_eq!(made["conditions"][0], foreign);
        assert_eq!(made["conditions"][1]["status"], "True");
        assert_eq!(made["conditions"][1]["lastTransitionTime"], "1970-01-01T00:01:00Z");
        assert_eq!(made["addresses"], json!([{"type": "IPAddress", "value": "192.0.2.1"}]));
        let listeners = made["listeners"].as_array().expect("listeners");
        assert_eq!((listeners.len(), &listeners[0]["attachedRoutes"]), (1, &json!(0)));
        assert_eq!(listeners[0]["conditions"][0], foreign);
        assert_eq!(wanted.within(&made, "us", at(120)), made, "nothing changed");
    }

    #[test]
    fn a_gateway_whose_service_is_forbidden_is_told_so_for_as_long() {
        let lacks = |reason| {
            let mut status = GatewayStatus::clone(&gateway(&[]));
            status.own = Some(Vec::new());
            let message = "Service a/b is being made".into();
            status.conditions[1] =
                Condition { kind: "Programmed", holds: reason == "Programmed", reason, message };
            Arc::new(status)
        };
        let told = |reason, is_forbidden| {
            let wanted = Wanted::Gateway(lacks(reason), Vec::new().into(), is_forbidden);
            let id = (super::super::which::Which::Gateway, ObjectKey::new("a", "b"));
            assert_eq!(wanted.number(&id), Some(number(&id, &lacks(reason))), "as others show it");
            let made = wanted.within(&Value::Null, "us", at(0));
            made["conditions"][1]["message"].as_str().unwrap_or_default().to_owned()
        };
        let said = told("AddressNotAssigned", true);
        assert!(said.starts_with("Service a/b is being made: the API server refuses it"), "{said}");
        assert_eq!(told("AddressNotAssigned", false), "Service a/b is being made");
        assert_eq!(told("Programmed", true), "Service a/b is being made", "it has an address");
    }

    #[test]
    fn a_gateway_that_asks_for_an_address_that_is_not_there_is_not_programmed() {
        let published: Arc<[Address]> = vec![(None, Some("192.0.2.1".to_owned()))].into();
        let told = |wanted: &[(&str, &str)], published: &Arc<[Address]>| {
            let wanted = Wanted::Gateway(gateway(wanted), published.clone(), false);
            wanted.within(&Value::Null, "us", at(0))["conditions"][1]["reason"].clone()
        };
        assert_eq!(told(&[("IPAddress", "192.0.2.1")], &published), "Programmed");
        assert_eq!(told(&[("IPAddress", "")], &published), "Programmed");
        assert_eq!(told(&[("IPAddress", "192.0.2.9")], &published), "AddressNotUsable");
        assert_eq!(told(&[], &Vec::new().into()), "AddressNotAssigned");
    }

    #[test]
    fn of_the_ancestors_of_a_policy_only_ours_are_replaced_and_there_are_never_too_many() {
        let theirs = |number: usize| json!({"controllerName": "them", "ancestorRef": {"name": number.to_string()}, "conditions": []});
        let old = json!({"controllerName": "us", "ancestorRef": {"name": "old"}, "conditions": []});
        let mut all: Vec<Value> = (0..14).map(theirs).collect();
        all.insert(3, old);
        let before = json!({ "ancestors": all });
        let status = PolicyStatus {
            generation: 7,
            ancestors: ["a", "b", "c"].map(|name| ObjectKey::new("demo", name)).to_vec(),
            conditions: vec![condition("Accepted", true)],
        };
        let wanted = Wanted::Policy(Some(Arc::new(status)));
        let made = wanted.within(&before, "us", at(60));
        let ancestors = made["ancestors"].as_array().expect("ancestors");
        assert_eq!(ancestors.len(), 16, "two of ours beside fourteen of theirs");
        assert_eq!(ancestors[..14], (0..14).map(theirs).collect::<Vec<_>>());
        let expected = json!({
            "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "demo", "name": "a"
        });
        assert_eq!(ancestors[14]["ancestorRef"], expected);
        assert_eq!(ancestors[15]["conditions"][0]["observedGeneration"], 7);
        assert_eq!(wanted.within(&made, "us", at(120)), made, "nothing changed");
        let without = Wanted::Policy(None).within(&made, "us", at(120));
        assert_eq!(without["ancestors"].as_array().map(Vec::len), Some(14));
    }

    #[test]
    fn a_class_has_its_features_and_older_definitions_those_that_they_had() {
        let status = ClassStatus {
            generation: 1,
            conditions: vec![condition("Accepted", true)],
            features: vec!["Gateway", "HTTPRoute"],
        };
        let wanted = Wanted::Class(Arc::new(status));
        let none = json!({});
        let made = wanted.within(&none, "us", at(0));
        assert_eq!(made["supportedFeatures"], json!([{"name": "Gateway"}, {"name": "HTTPRoute"}]));
        assert_eq!(wanted.within(&made, "us", at(60)), made, "nothing changed");
        for before in [none, json!({"supportedFeatures": ["HTTPRoute"]})] {
            let older = wanted.for_older(&made, &before).expect("of a class");
            assert_eq!(older.get("supportedFeatures"), before.get("supportedFeatures"));
            assert_eq!(older["conditions"], made["conditions"]);
        }
        assert_eq!(Wanted::Policy(None).for_older(&made, &json!({})), None);
    }

    #[test]
    fn what_is_not_said_any_more_is_over() {
        let before = json!({"conditions": [
            {"type": "ResolvedRefs", "status": "False"}, {"type": "Theirs", "status": "True"},
            {"type": "OverlappingTLSConfig", "status": "True"}]});
        let made =
            Wanted::Gateway(gateway(&[]), Vec::new().into(), false).within(&before, "us", at(0));
        let kinds = made["conditions"].as_array().expect("conditions").iter();
        let kinds: Vec<_> = kinds.map(|one| one["type"].clone()).collect();
        assert_eq!(kinds, ["Theirs", "Accepted", "Programmed"]);
    }

    #[test]
    fn of_the_parents_of_a_route_only_ours_are_replaced() {
        let theirs =
            json!({"controllerName": "them", "parentRef": {"name": "a"}, "conditions": []});
        let before =
            json!({"parents": [theirs, {"controllerName": "us", "parentRef": {"name": "old"}}]});
        let parent = ParentRef {
            object: objects::ObjectRef {
                group: "g".into(),
                kind: "Gateway".into(),
                namespace: None,
                name: "a".to_owned(),
            },
            section: Some("web".to_owned()),
            port: None,
        };
        let status = RouteStatus {
            generation: 7,
            parents: vec![(parent, vec![condition("Accepted", false)])],
        };
        let wanted = Wanted::Route(Some(Arc::new(status)));
        let made = wanted.within(&before, "us", at(0));
        let parents = made["parents"].as_array().expect("parents");
        assert_eq!((parents.len(), &parents[0]), (2, &theirs));
        let expected = json!({"group": "g", "kind": "Gateway", "name": "a", "sectionName": "web"});
        assert_eq!(parents[1]["parentRef"], expected);
        assert_eq!(parents[1]["conditions"][0]["observedGeneration"], 7);
        let without = Wanted::Route(None).within(&made, "us", at(0));
        assert_eq!(without["parents"], json!([theirs]));
        // Ours that is there twice goes once.
        let mut twice = made.clone();
        twice["parents"].as_array_mut().expect("parents").insert(0, parents[1].clone());
        let once = wanted.within(&twice, "us", at(60));
        assert_eq!(once["parents"], json!([parents[1], theirs]));
    }

    /// Two Fairways, each with a Gateway of its own that is a parent of the route.
    #[test]
    fn two_controllers_of_one_object_write_once_each_whoever_is_first() {
        let parent = |name: &str| ParentRef {
            object: objects::ObjectRef {
                group: "g".into(),
                kind: "Gateway".into(),
                namespace: None,
                name: name.to_owned(),
            },
            section: None,
            port: None,
        };
        let route = |name: &str| {
            let parents = vec![(parent(name), vec![condition("Accepted", true)])];
            Wanted::Route(Some(Arc::new(RouteStatus { generation: 1, parents })))
        };
        let policy = |name: &str| {
            let ancestors = vec![ObjectKey::new("demo", name)];
            let conditions = vec![condition("Accepted", true)];
            Wanted::Policy(Some(Arc::new(PolicyStatus { generation: 1, ancestors, conditions })))
        };
        for of in [&route as &dyn Fn(&str) -> Wanted, &policy] {
            for order in [["a", "b"], ["b", "a"]] {
                let mut status = json!({});
                for name in order {
                    status = of(name).within(&status, name, at(0));
                }
                for name in ["a", "b"] {
                    assert_eq!(of(name).within(&status, name, at(60)), status, "{name} {order:?}");
                }
            }
        }
    }
}
