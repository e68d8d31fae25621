//! What a namespace changes at once comes in portions: reading it may take seconds, and changes of others wait for a
//! portion of it and not for all.

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use objects::gateway::{HttpRoute, PathMatch, RouteMatch, ValueMatch};
use objects::{Ingress, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of what changed objects of one namespace say that are taken at a time; one of them is in any case. A byte of
/// the dearest patterns takes 15 µs.
const PORTION: usize = 16 << 10;
/// Bytes that an object counts for besides.
const EACH: usize = 64;

/// `next` with a portion of the changes of each namespace since `before`; the others are left as they were, for the
/// rounds that follow. Whether there are any.
pub(crate) fn portion(before: &Snapshot, mut next: Snapshot) -> (Snapshot, bool) {
    let mut taken = Taken::default();
    let ingresses = hold_back(&before.ingresses, &mut next.ingresses, |key, old, new| {
        let says_the_same =
            |old: &Ingress| old.meta.annotations == new.meta.annotations && old.rules == new.rules;
        !old.is_some_and(says_the_same) && taken.is_too_much(&key.namespace, said_by(new))
    });
    let routes = hold_back(&before.http_routes, &mut next.http_routes, |(_, key), old, new| {
        let says_the_same =
            |old: &HttpRoute| old.hostnames == new.hostnames && old.rules == new.rules;
        !old.is_some_and(says_the_same) && taken.is_too_much(&key.namespace, said_by_route(new))
    });
    (next, ingresses || routes)
}

/// Undoes changes in `next` of which `waits` says so, of a key with the object before, if there was one, and the new
/// one; whether there are any. What goes is not read, and never waits.
fn hold_back<K: Ord + Clone, V: PartialEq>(
    before: &OrdMap<K, Arc<V>>,
    next: &mut OrdMap<K, Arc<V>>,
    mut waits: impl FnMut(&K, Option<&V>, &V) -> bool,
) -> bool {
    let held = before.diff(next).filter_map(|item| match item {
        DiffItem::Remove(..) => None,
        DiffItem::Add(key, new) => waits(key, None, new).then(|| (key.clone(), None)),
        DiffItem::Update { old: (_, old), new: (key, new) } => {
            waits(key, Some(old), new).then(|| (key.clone(), Some(old.clone())))
        }
    });
    let held: Vec<_> = held.collect();
    let are_some = !held.is_empty();
    for (key, old) in held {
        match old {
            Some(old) => next.insert(key, old),
            None => next.remove(&key),
        };
    }
    are_some
}

/// What was taken of each namespace.
#[derive(Default)]
struct Taken(HashMap<Arc<str>, usize>);

impl Taken {
    /// Whether an object that says so much is for a later round; else it is taken.
    fn is_too_much(&mut self, namespace: &Arc<str>, said: usize) -> bool {
        let taken = self.0.entry(namespace.clone()).or_default();
        let size = EACH + said;
        if *taken > 0 && *taken + size > PORTION {
            // Smaller ones that follow wait, too: they are taken in their order.
            *taken = PORTION;
            return true;
        }
        *taken += size;
        false
    }
}

fn said_by(ingress: &Ingress) -> usize {
    let annotations = ingress.meta.annotations.iter().map(|(name, value)| name.len() + value.len());
    let rules = ingress.rules.iter().map(|rule| {
        let paths = rule.paths.iter().flatten().map(|path| path.path.len());
        rule.host.as_ref().map_or(0, String::len) + paths.sum::<usize>()
    });
    annotations.chain(rules).sum()
}

fn said_by_route(route: &HttpRoute) -> usize {
    let names = route.hostnames.iter().map(String::len);
    let matches = route.rules.iter().flat_map(|rule| &rule.matches).map(said_by_match);
    names.chain(matches).sum()
}

fn said_by_match(RouteMatch { path, method: _, headers, query }: &RouteMatch) -> usize {
    let path = match path {
        PathMatch::Exact(path) | PathMatch::Prefix(path) | PathMatch::Expression(path) => {
            path.len()
        }
        PathMatch::Method(method) => {
            method.service.iter().chain(&method.method).map(String::len).sum()
        }
    };
    let values = headers.iter().chain(query).map(|one| match &one.value {
        ValueMatch::Exact(value) | ValueMatch::Expression(value) => one.name.len() + value.len(),
    });
    EACH + path + values.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::{EACH, PORTION, portion};
    use objects::{Ingress, ObjectKey, Snapshot, snapshot_of};
    use std::path::Path;

    /// So many Ingresses of a namespace, which say so much in an annotation.
    fn put(snapshot: &mut Snapshot, namespace: &str, count: usize, said: usize, letter: &str) {
        for number in 0..count {
            let text = format!(
                "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: i{number:04}, namespace: \
                 {namespace}, annotations: {{nginx.ingress.kubernetes.io/server-alias: {}}}}}}}",
                letter.repeat(said)
            );
            let read = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
            snapshot.ingresses.extend(read.ingresses);
        }
    }

    fn of<'a>(snapshot: &'a Snapshot, namespace: &'a str) -> impl Iterator<Item = &'a Ingress> {
        let all = snapshot.ingresses.iter();
        all.filter(move |(key, _)| *key.namespace == *namespace).map(|(_, one)| &**one)
    }

    #[test]
    fn changes_of_a_namespace_come_in_portions_and_others_wait_for_none() {
        let mut next = Snapshot::default();
        put(&mut next, "large", 10, PORTION / 4, "a");
        put(&mut next, "small", 1, 10, "a");
        let (mut now, mut rounds) = (Snapshot::default(), 0);
        loop {
            let (taken, more) = portion(&now, next.clone());
            rounds += 1;
            assert_eq!(of(&taken, "small").count(), 1, "others do not wait");
            assert!(of(&taken, "large").count() <= 3 * rounds, "{rounds}");
            now = taken;
            if !more {
                break;
            }
        }
        assert_eq!((&now, rounds), (&next, 4));
        // The same for what changes; what goes does so at once.
        put(&mut next, "large", 8, PORTION / 4, "b");
        next.ingresses.remove(&ObjectKey::new("large", "i0009"));
        let (taken, more) = portion(&now, next.clone());
        assert!(more && of(&taken, "large").count() == 9);
        let is_new =
            |one: &&Ingress| one.meta.annotations.values().any(|text| text.starts_with('b'));
        assert_eq!(of(&taken, "large").filter(is_new).count(), 3);
    }

    #[test]
    fn what_is_more_than_a_portion_comes_alone_and_many_small_ones_come_together() {
        let mut next = Snapshot::default();
        put(&mut next, "large", 2, 2 * PORTION, "a");
        put(&mut next, "small", 100, 1, "a");
        let (taken, more) = portion(&Snapshot::default(), next);
        assert!(more && of(&taken, "large").count() == 1);
        assert!(100 * EACH < PORTION && of(&taken, "small").count() == 100);
    }
}
