//! Which statuses of the Gateway API's objects this replica serves, as numbers: whoever leads asks for them before it
//! tells an object what becomes of it.

use super::which::{Id, Which, differing};
use crate::{Known, stable};
use imbl::OrdMap;
use objects::ObjectKey;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::fmt::{Debug, Write};
use std::sync::Arc;
use translate::gateway::Statuses;

/// Where the admin server of every replica answers such a question.
pub const SHOWN: &str = "/applied";

/// Says which statuses are of what is served here. Made when somebody asks, of what changed since the last time.
#[derive(Debug, Default)]
pub struct Shown(Mutex<Numbers>);

impl Shown {
    /// Those of the numbers in a question that stand for something that is served, a line each.
    pub fn answer(&self, known: &Known, question: &str) -> String {
        let mut numbers = self.0.lock();
        numbers.follow(&known.statuses);
        let shown = read(question.split(',')).filter(|number| numbers.all.contains(number));
        shown.fold(String::new(), |mut answer, number| {
            let _ = writeln!(answer, "{number:016x}");
            answer
        })
    }
}

/// A question for these numbers.
pub(super) fn question(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| format!("{number:016x}")).collect::<Vec<_>>().join(",")
}

/// The numbers among these texts.
pub(super) fn read<'t>(texts: impl Iterator<Item = &'t str>) -> impl Iterator<Item = u64> {
    texts.filter(|text| text.len() == 16).filter_map(|text| u64::from_str_radix(text, 16).ok())
}

/// What tells the status of an object from all others. Two replicas of one version write the same of the same; of two
/// versions, what both have words for.
pub(super) fn number((which, key): &Id, status: &impl Debug) -> u64 {
    let (which, status) = (format!("{which:?}"), format!("{status:?}"));
    stable::number([&*which, &*key.namespace, &*key.name, &*status].map(str::as_bytes))
}

/// The numbers of all statuses at one moment.
#[derive(Debug, Default)]
struct Numbers {
    of: Statuses,
    all: HashSet<u64>,
}

impl Numbers {
    fn follow(&mut self, new: &Statuses) {
        let Statuses { classes, gateways, sets, routes, policies, stream_routes } = new;
        let (old, all) = (std::mem::replace(&mut self.of, new.clone()), &mut self.all);
        let one = |which| move |key: &ObjectKey| (which, key.clone());
        replace(all, &old.classes, classes, one(Which::Class));
        replace(all, &old.gateways, gateways, one(Which::Gateway));
        replace(all, &old.sets, sets, one(Which::Set));
        replace(all, &old.policies, policies, one(Which::Policy));
        replace(all, &old.routes, routes, |(kind, key)| (Which::Route(*kind), key.clone()));
        replace(all, &old.stream_routes, stream_routes, |(kind, key)| {
            (Which::Stream(*kind), key.clone())
        });
    }
}

fn replace<K: Ord + Clone, V: Debug + PartialEq>(
    all: &mut HashSet<u64>,
    old: &OrdMap<K, Arc<V>>,
    new: &OrdMap<K, Arc<V>>,
    id: impl Fn(&K) -> Id,
) {
    for key in differing(old, new) {
        let number = |of: &OrdMap<K, Arc<V>>| of.get(&key).map(|one| number(&id(&key), one));
        if let Some(gone) = number(old) {
            all.remove(&gone);
        }
        all.extend(number(new));
    }
}

#[cfg(test)]
mod tests {
    use super::{Shown, number, question, read};
    use crate::Known;
    use crate::status::which::Which;
    use objects::{Kind, ObjectKey};
    use std::sync::Arc;
    use translate::gateway::{ClassStatus, RouteStatus};

    fn route(generation: i64) -> Arc<RouteStatus> {
        Arc::new(RouteStatus { generation, parents: Vec::new() })
    }

    /// What is known of routes of these names and generations, and of a class.
    fn known(routes: &[(Kind, &str, i64)]) -> Known {
        let mut known = Known::default();
        for (kind, name, generation) in routes {
            let key = (*kind, ObjectKey::new("demo", *name));
            known.statuses.routes.insert(key, route(*generation));
        }
        let class = ClassStatus { generation: 1, conditions: Vec::new(), features: Vec::new() };
        known.statuses.classes.insert(ObjectKey::new("", "fairway"), Arc::new(class));
        known
    }

    #[test]
    fn a_replica_shows_what_it_serves_now_and_nothing_else() {
        let of = |kind, name: &str, generation| {
            number(&(Which::Route(kind), ObjectKey::new("demo", name)), &route(generation))
        };
        let (http, grpc) = (Kind::HttpRoute, Kind::GrpcRoute);
        let all = [of(http, "a", 1), of(http, "a", 2), of(http, "b", 1), of(grpc, "a", 1)];
        let question = question(all.into_iter());
        let shown = Shown::default();
        let answers = |known: &Known| {
            let answer = shown.answer(known, &question);
            let numbers: Vec<u64> = read(answer.lines()).collect();
            all.map(|number| numbers.contains(&number))
        };
        assert_eq!(answers(&Known::default()), [false; 4]);
        assert_eq!(answers(&known(&[(http, "a", 1)])), [true, false, false, false]);
        let next = known(&[(http, "a", 2), (grpc, "a", 1)]);
        assert_eq!(answers(&next), [false, true, false, true]);
        assert_eq!(answers(&known(&[(http, "b", 1)])), [false, false, true, false]);
        assert_eq!(shown.answer(&next, "zzzzzzzzzzzzzzzz,+123456789abcdef,,1"), "");
    }
}
