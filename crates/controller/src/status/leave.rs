//! The end of the last replica, for Gateways and their ListenerSets: what tells our address tells none any more.

use super::address::Address;
use super::document::Wanted;
use super::farewell;
use super::replace::write;
use super::services::Scribe;
use super::which::{Id, Which};
use crate::lease::Leadership;
use crate::pod::OwnPod;
use futures_util::StreamExt as _;
use kube::Client;
use objects::ObjectKey;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use translate::gateway::{GatewayStatus, Statuses};

/// Objects that are told at a time.
const AT_A_TIME: usize = 10;

/// Who leaves.
pub(super) struct Leaving<'a> {
    pub(super) client: &'a Client,
    pub(super) pod: &'a OwnPod,
    pub(super) leadership: &'a Leadership,
    /// `spec.controllerName` of our classes.
    pub(super) controller: &'a str,
}

/// The last word to one object.
struct Word {
    id: Id,
    wanted: Wanted,
    /// The Gateway that it is, or is of.
    gateway: ObjectKey,
    /// `status.addresses` of that Gateway, while we served it: as it should be, and as we wrote it last.
    ours: Vec<Value>,
}

/// `status.addresses` of Gateways, as this process wrote them last: what should be there now may not be yet.
pub(super) type Written = BTreeMap<ObjectKey, Value>;

/// What is told where nobody serves any more: first Gateways, then sets. A Gateway with an address of its own keeps it
/// for the next start.
fn last_words(told: &Statuses, published: &Arc<[Address]>, mut written: Written) -> [Vec<Word>; 2] {
    let shares = |gateway: &GatewayStatus| gateway.own.is_none();
    // That it has no address is what is wrong with it, not which one it asks for.
    let without = |gateway: &Arc<GatewayStatus>| {
        Arc::new(GatewayStatus { wanted: Vec::new(), ..(**gateway).clone() })
    };
    let ours = |gateway: &Arc<GatewayStatus>, before: Option<Value>| {
        let now = Wanted::Gateway(gateway.clone(), published.clone(), false);
        [now.addresses()].into_iter().chain(before).collect()
    };
    let gateways = told.gateways.iter().filter(|(_, status)| shares(status));
    let gateways = gateways.map(|(key, status)| Word {
        id: (Which::Gateway, key.clone()),
        wanted: Wanted::Gateway(without(status), Arc::default(), false),
        gateway: key.clone(),
        ours: ours(status, written.remove(key)),
    });
    let sets = told.sets.iter().filter_map(|(key, status)| {
        let gateway = told.gateways.get(&status.gateway).filter(|one| shares(one))?;
        Some(Word {
            id: (Which::Set, key.clone()),
            wanted: Wanted::Set(status.clone(), Some(without(gateway)), Arc::default()),
            gateway: status.gateway.clone(),
            ours: ours(gateway, None),
        })
    });
    [gateways.collect(), sets.collect()]
}

/// Takes the addresses away that are published, where no other replica stays: as from Ingresses, if it is one, and
/// where it is told. Another Fairway with the same name for its classes tells its own, and serves on.
pub(super) async fn take(
    leaving: Leaving<'_>,
    (told, written): (&Statuses, Written),
    published: Option<Arc<[Address]>>,
) {
    let Some(published) = published.filter(|all| all.len() == 1) else { return };
    let words = last_words(told, &published, written);
    let all: usize = words.iter().map(Vec::len).sum();
    let Leaving { client, pod, leadership, .. } = leaving;
    if all == 0 || !farewell::may_clear("Gateways", client, pod, leadership).await {
        return;
    }
    let (written, others) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let writing = async {
        for part in words {
            let part = futures_util::stream::iter(part);
            let telling = part.for_each_concurrent(AT_A_TIME, async |word| {
                let is_written = tell(&leaving, &word, &others).await;
                written.fetch_add(usize::from(is_written), Ordering::Relaxed);
            });
            telling.await;
        }
    };
    match tokio::time::timeout(farewell::PATIENCE, writing).await {
        Ok(()) => {
            let told = written.load(Ordering::Relaxed);
            let others = others.into_inner().len();
            tracing::info!(
                told,
                all,
                others,
                "no replica stays: these Gateways and sets tell no address now; others' addresses stay"
            );
        }
        Err(_) => tracing::warn!("there was no time to take the address of all Gateways away"),
    }
}

/// Tells one object, unless its Gateway is among those that tell somebody else's address.
async fn tell(leaving: &Leaving<'_>, word: &Word, others: &Mutex<BTreeSet<ObjectKey>>) -> bool {
    let Leaving { client, leadership, controller, .. } = *leaving;
    let others = || others.lock();
    let is_gateway = word.id.0 == Which::Gateway;
    let may = |status: &Value| {
        let is_ours = !is_gateway || tells_ours(status, &word.ours);
        if !is_ours {
            others().insert(word.gateway.clone());
        }
        is_ours
    };
    if others().contains(&word.gateway) {
        return false;
    }
    for _ in 0..farewell::TRIES {
        let (client, leadership) = (client.clone(), leadership.clone());
        let controller = controller.into();
        let scribe = Scribe { client, leadership, replicas: None, controller };
        let (Ok(outcome) | Err(outcome)) = write(scribe, &word.id, &word.wanted, may).await;
        if let Some(is_written) = farewell::settled(outcome).await {
            return is_written;
        }
    }
    false
}

/// Whether a status of a Gateway tells our addresses, or none, which is nobody's.
fn tells_ours(status: &Value, ours: &[Value]) -> bool {
    let told = &status["addresses"];
    told.as_array().is_none_or(Vec::is_empty) || ours.contains(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use translate::gateway::SetStatus;

    fn gateway(wanted: &[&str], own: Option<&str>) -> Arc<GatewayStatus> {
        let of = |text: &&str| ("IPAddress".to_owned(), (*text).to_owned());
        Arc::new(GatewayStatus {
            generation: 1,
            conditions: Vec::new(),
            listeners: Vec::new(),
            wanted: wanted.iter().map(of).collect(),
            own: own.map(|own| vec![own.to_owned()]),
            service: None,
            sets: None,
        })
    }

    #[test]
    fn who_leaves_takes_its_own_address_away_and_nobody_else_s() {
        let at = |text: &str| json!([{"type": "IPAddress", "value": text}]);
        let [shared, asks, own] = ["shared", "asks", "own"].map(|name| ObjectKey::new("n", name));
        let mut told = Statuses::default();
        told.gateways.insert(shared.clone(), gateway(&[], None));
        told.gateways.insert(asks.clone(), gateway(&["192.0.2.1"], None));
        told.gateways.insert(own.clone(), gateway(&[], Some("192.0.2.7")));
        for (name, gateway) in [("a", &shared), ("b", &own)] {
            let set = SetStatus {
                generation: 1,
                gateway: gateway.clone(),
                conditions: Vec::new(),
                listeners: Vec::new(),
            };
            told.sets.insert(ObjectKey::new("n", name), Arc::new(set));
        }
        let published: Arc<[Address]> = vec![(None, Some("192.0.2.1".to_owned()))].into();
        // What was published before is not rewritten everywhere yet.
        let written = Written::from([(shared.clone(), at("192.0.2.3"))]);
        let [gateways, sets] = last_words(&told, &published, written);
        let of = |words: &[Word]| words.iter().map(|word| word.gateway.clone()).collect::<Vec<_>>();
        assert_eq!((of(&gateways), of(&sets)), (vec![asks, shared.clone()], vec![shared]));
        for Word { ours, .. } in gateways.iter().chain(&sets) {
            assert_eq!(ours[0], at("192.0.2.1"));
            assert_eq!(tells_ours(&json!({"addresses": at("192.0.2.3")}), ours), ours.len() > 1);
            for (status, is_ours) in [
                (json!({"addresses": at("192.0.2.1")}), true),
                (json!({"addresses": at("192.0.2.2")}), false),
                (json!({"addresses": []}), true),
                (Value::Null, true),
            ] {
                assert_eq!(tells_ours(&status, ours), is_ours, "{status}");
            }
        }
        let both = |words: &[Word]| words.iter().filter(|word| word.ours.len() > 1).count();
        assert_eq!((both(&gateways), both(&sets)), (1, 0));
    }
}
