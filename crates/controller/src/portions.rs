//! What a namespace changes at once comes in portions: reading it may take seconds, and changes of others wait for a
//! portion of it and not for all.

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use objects::gateway::{HttpRoute, PathMatch, RouteMatch, ValueMatch};
use objects::{Asks, Ingress, Kind, Meta, ObjectKey, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of what changed objects of one namespace say that are taken at a time; one of them is in any case. A byte of
/// the dearest patterns takes 15 µs.
const PORTION: usize = 16 << 10;
/// Bytes that an object counts for besides.
const EACH: usize = 64;

/// What goes and waits, with the latest version that its namespace had under way when that was seen first.
#[derive(Debug, Default)]
pub(crate) struct Portions(HashMap<Name, u64>);

/// The kind, if it is no Ingress, and the name of an object.
type Name = (Option<Kind>, ObjectKey);

impl Portions {
    /// `next` with a portion of the changes of each namespace since `before`; the others are left as they were, for the
    /// rounds that follow. Whether there are any.
    pub(crate) fn take(&mut self, before: &Snapshot, mut next: Snapshot) -> (Snapshot, bool) {
        let mut changes = Changes::default();
        changes.add(&before.ingresses, &next.ingresses, Undo::Ingress);
        changes.add(&before.http_routes, &next.http_routes, Undo::Route);
        let held = changes.beyond_portions(std::mem::take(&mut self.0));
        let are_some = !held.is_empty();
        for Change { turn, undo, .. } in held {
            if turn.is_gone {
                self.0.insert(undo.name(), turn.version);
            }
            match undo {
                Undo::Ingress(key, Some(old)) => drop(next.ingresses.insert(key, old)),
                Undo::Ingress(key, None) => drop(next.ingresses.remove(&key)),
                Undo::Route(key, Some(old)) => drop(next.http_routes.insert(key, old)),
                Undo::Route(key, None) => drop(next.http_routes.remove(&key)),
            }
        }
        (next, are_some)
    }
}

/// An object as it was before a change; none if it was not there.
enum Undo {
    Ingress(ObjectKey, Option<Arc<Ingress>>),
    Route((Kind, ObjectKey), Option<Arc<HttpRoute>>),
}

impl Undo {
    fn name(&self) -> Name {
        match self {
            Self::Ingress(key, _) => (None, key.clone()),
            Self::Route((kind, key), _) => (Some(*kind), key.clone()),
        }
    }
}

/// When a change is taken: in the order in which they were made, by the versions of the objects, which the API server
/// counts up. What goes has no version of its own: it waits for what was under way when it was seen to go, so that
/// nothing is open for want of what is to guard it from now on, and for nothing that comes later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    version: u64,
    is_gone: bool,
}

/// A change that costs something, with the bytes that it counts for.
struct Change {
    turn: Turn,
    size: usize,
    undo: Undo,
}

/// The changes of each namespace.
#[derive(Default)]
struct Changes(HashMap<Arc<str>, Vec<Change>>);

impl Changes {
    fn add<K: Ord + Clone, V: Object>(
        &mut self,
        before: &OrdMap<K, Arc<V>>,
        next: &OrdMap<K, Arc<V>>,
        undo: impl Fn(K, Option<Arc<V>>) -> Undo,
    ) {
        for item in before.diff(next) {
            let (key, old, new) = match item {
                DiffItem::Add(key, new) => (key, None, Some(new)),
                DiffItem::Update { old: (_, old), new: (key, new) } => (key, Some(old), Some(new)),
                DiffItem::Remove(key, old) => (key, Some(old), None),
            };
            let Some(Meta { key: ObjectKey { namespace, .. }, resource_version, .. }) =
                new.or(old).map(|object| object.meta())
            else {
                continue;
            };
            if old.zip(new).is_some_and(|(old, new)| old.asks_the_same_as(new)) {
                continue;
            }
            let is_gone = new.is_none();
            let version = resource_version.parse().unwrap_or_default();
            let turn = Turn { version, is_gone };
            let size = EACH + new.map_or(0, |new| new.said());
            let change = Change { turn, size, undo: undo(key.clone(), old.cloned()) };
            self.0.entry(Arc::clone(namespace)).or_default().push(change);
        }
    }

    /// Those that are for later rounds; `gone` says of what goes when that was seen first.
    fn beyond_portions(self, gone: HashMap<Name, u64>) -> Vec<Change> {
        let mut held = Vec::new();
        for mut changes in self.0.into_values() {
            let live = changes.iter().filter(|change| !change.turn.is_gone);
            let latest = live.map(|change| change.turn.version).max().unwrap_or_default();
            for Change { turn, undo, .. } in changes.iter_mut().filter(|one| one.turn.is_gone) {
                turn.version = gone.get(&undo.name()).copied().unwrap_or(latest);
            }
            changes.sort_by_key(|change| change.turn);
            let mut taken = 0;
            for (at, change) in changes.into_iter().enumerate() {
                taken += change.size;
                // Smaller ones that follow wait, too.
                if at > 0 && taken > PORTION {
                    held.push(change);
                }
            }
        }
        held
    }
}

/// An object of which it matters how much it says. Who asks for the same takes no new reading.
trait Object: Asks {
    fn meta(&self) -> &Meta;
    /// The bytes of it that have to be read.
    fn said(&self) -> usize;
}

impl Object for Ingress {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn said(&self) -> usize {
        Self::said(self)
    }
}

impl Object for HttpRoute {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn said(&self) -> usize {
        let names = self.hostnames.iter().map(String::len);
        let matches = self.rules.iter().flat_map(|rule| &rule.matches).map(said_by_match);
        names.chain(matches).sum()
    }
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
    use super::{EACH, PORTION, Portions};
    use objects::{Ingress, IngressBackend, IngressTls, ObjectKey, Snapshot, snapshot_of};
    use std::path::Path;
    use std::sync::Arc;

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

    fn portion(before: &Snapshot, next: Snapshot) -> (Snapshot, bool) {
        Portions::default().take(before, next)
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
        // The same for what changes; what goes is last.
        put(&mut next, "large", 8, PORTION / 4, "b");
        next.ingresses.remove(&ObjectKey::new("large", "i0009"));
        let (taken, more) = portion(&now, next.clone());
        assert!(more && of(&taken, "large").count() == 10);
        let is_new =
            |one: &&Ingress| one.meta.annotations.values().any(|text| text.starts_with('b'));
        assert_eq!(of(&taken, "large").filter(is_new).count(), 3);
        let (taken, _) = portion(&taken, next.clone());
        assert_eq!(portion(&taken, next.clone()), (next, false));
    }

    #[test]
    fn changes_are_taken_in_the_order_in_which_they_were_made() {
        let mut now = Snapshot::default();
        put(&mut now, "large", 9, PORTION / 4, "a");
        let mut next = now.clone();
        let set = |next: &mut Snapshot, number: usize, change: &dyn Fn(&mut Ingress)| {
            let key = ObjectKey::new("large", format!("i{number:04}"));
            change(Arc::make_mut(next.ingresses.get_mut(&key).expect("it is there")));
        };
        // The first by name is changed last; another class is as dear as another text.
        for number in 0..9 {
            set(&mut next, number, &|one| {
                one.class = Some("other".to_owned());
                one.meta.resource_version = (100 - number).to_string().into();
            });
        }
        let (taken, more) = portion(&now, next.clone());
        let of_class = of(&taken, "large").filter(|one| one.class.is_some());
        let names: Vec<&str> = of_class.map(|one| &*one.meta.key.name).collect();
        assert!(more && names == ["i0006", "i0007", "i0008"], "{names:?}");
        // So are another default backend, other TLS sections, and the same text made anew.
        let backend = IngressBackend::Other;
        let section = IngressTls { hosts: Vec::new(), secret: Some("s".repeat(PORTION / 4)) };
        let others: [&dyn Fn(&mut Ingress); 4] = [
            &|one| one.default_backend = Some(Box::new(backend.clone())),
            &|one| one.tls.push(section.clone()),
            &|one| one.meta.uid = "other".into(),
            &|one| one.meta.created += 1,
        ];
        for (at, other) in others.into_iter().enumerate() {
            let mut next = now.clone();
            (0..9).for_each(|number| set(&mut next, number, other));
            let (taken, more) = portion(&now, next.clone());
            let is_new = |one: &&Ingress| now.ingresses[&one.meta.key].as_ref() != *one;
            let count = of(&taken, "large").filter(is_new).count();
            assert!(more && count == if at == 1 { 1 } else { 3 }, "{at}: {count}");
        }
        // What takes no new reading waits for nothing.
        let mut told = now.clone();
        for number in 0..9 {
            set(&mut told, number, &|one| one.meta.generation += 1);
        }
        assert_eq!(portion(&now, told.clone()), (told, false));
    }

    #[test]
    fn what_goes_waits_for_what_was_under_way_and_for_nothing_later() {
        let mut now = Snapshot::default();
        put(&mut now, "large", 9, PORTION / 4, "a");
        let (mut next, mut portions) = (now.clone(), Portions::default());
        let gone = ObjectKey::new("large", "i0000");
        next.ingresses.remove(&gone);
        let edit = |next: &mut Snapshot, version: usize| {
            for number in 1..9 {
                let key = ObjectKey::new("large", format!("i{number:04}"));
                let one = Arc::make_mut(next.ingresses.get_mut(&key).expect("it is there"));
                one.meta.annotations.insert("note".to_owned(), version.to_string());
                one.meta.resource_version = (version + number).to_string().into();
            }
        };
        let mut rounds = 0;
        // Whoever goes on changing all of it keeps nothing that somebody has deleted.
        while now.ingresses.contains_key(&gone) {
            edit(&mut next, 100 * rounds);
            now = portions.take(&now, next.clone()).0;
            rounds += 1;
            assert!(rounds < 9, "it goes by and by");
        }
        assert!(rounds > 1, "it waits for what was changed before");
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
