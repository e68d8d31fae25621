//! All ReferenceGrants, and what they say together: a question is looked up, however many grants there are.

use super::{GROUP, ObjectRef, ReferenceGrant};
use crate::ObjectKey;
use imbl::{OrdMap, OrdSet};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

/// How many entries each list of a ReferenceGrant has at most, as its definition says.
pub(super) const MOST: usize = 16;

/// All ReferenceGrants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    all: OrdMap<ObjectKey, Arc<ReferenceGrant>>,
    /// How often each thing is said.
    said: OrdMap<Said, u32>,
    /// The grants of a namespace, the first, that name another one, whatever they grant to it.
    between: OrdMap<(Arc<str>, String), OrdSet<Arc<str>>>,
}

/// Who may refer to what.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    who: Arc<Who>,
    what: Arc<What>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Who {
    /// Namespace of the grant.
    to: Arc<str>,
    from: String,
    kind: String,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct What {
    group: Cow<'static, str>,
    kind: Cow<'static, str>,
    /// None: all of them.
    name: Option<String>,
}

#[cfg(test)]
thread_local! {
    static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Ord for Said {
    fn cmp(&self, other: &Self) -> Ordering {
        #[cfg(test)]
        COMPARED.set(COMPARED.get() + 1);
        self.who.cmp(&other.who).then_with(|| self.what.cmp(&other.what))
    }
}

impl PartialOrd for Said {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Deref for Grants {
    type Target = OrdMap<ObjectKey, Arc<ReferenceGrant>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

/// The namespaces that a grant stands between: its own, and each that it names.
fn pairs(grant: &ReferenceGrant) -> impl Iterator<Item = (Arc<str>, String)> {
    let to = &grant.meta.key.namespace;
    grant.from.iter().map(|from| (to.clone(), from.namespace.clone()))
}

/// All that a grant says. What it grants to objects of other groups is asked by nobody here.
fn said_by(grant: &ReferenceGrant) -> impl Iterator<Item = Said> {
    let whats = grant.to.iter().map(|to| {
        let (group, kind) = (to.group.clone().into(), to.kind.clone().into());
        Arc::new(What { group, kind, name: to.name.clone() })
    });
    let whats: Vec<Arc<What>> = whats.collect();
    let known = grant.from.iter().filter(|from| from.group == GROUP);
    known.flat_map(move |from| {
        let who = Arc::new(Who {
            to: grant.meta.key.namespace.clone(),
            from: from.namespace.clone(),
            kind: from.kind.clone(),
        });
        let all = whats.iter().map(|what| Said { who: who.clone(), what: what.clone() });
        all.collect::<Vec<_>>()
    })
}

impl Grants {
    /// Adds one, or puts another version of it in its place, which is given back.
    pub fn insert(
        &mut self,
        key: ObjectKey,
        grant: Arc<ReferenceGrant>,
    ) -> Option<Arc<ReferenceGrant>> {
        let before = self.remove(&key);
        for said in said_by(&grant) {
            *self.said.entry(said).or_default() += 1;
        }
        for pair in pairs(&grant) {
            self.between.entry(pair).or_default().insert(key.name.clone());
        }
        self.all.insert(key, grant);
        before
    }

    /// Takes one away.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Arc<ReferenceGrant>> {
        let before = self.all.remove(key)?;
        for said in said_by(&before) {
            match self.said.get_mut(&said) {
                Some(times) if *times > 1 => *times -= 1,
                _ => drop(self.said.remove(&said)),
            }
        }
        for pair in pairs(&before) {
            let Some(names) = self.between.get_mut(&pair) else { continue };
            names.remove(&key.name);
            if names.is_empty() {
                self.between.remove(&pair);
            }
        }
        Some(before)
    }

    /// The grants of the namespace `to` that name the namespace `from`, by name, whatever they grant.
    pub fn between(&self, from: &str, to: &str) -> impl Iterator<Item = &ReferenceGrant> {
        let names = self.between.get(&(to.into(), from.to_owned())).into_iter().flatten();
        let to: Arc<str> = to.into();
        names.filter_map(move |name| {
            Some(&**self.all.get(&ObjectKey::new(to.clone(), name.clone()))?)
        })
    }

    /// Whether an object of `kind` in the namespace `from` may refer to another object: in its own namespace, or where
    /// a ReferenceGrant of the other one says so.
    pub fn permit(&self, kind: &str, from: &str, to: &ObjectRef) -> bool {
        let namespace = to.namespace.as_deref().unwrap_or(from);
        if namespace == from {
            return true;
        }
        let who = Who { to: namespace.into(), from: from.to_owned(), kind: kind.to_owned() };
        let who = Arc::new(who);
        [None, Some(to.name.clone())].into_iter().any(|name| {
            let what = What { group: to.group.clone(), kind: to.kind.clone(), name };
            self.said.contains_key(&Said { who: who.clone(), what: Arc::new(what) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPARED, GROUP, Grants, ObjectRef, ReferenceGrant};
    use crate::gateway::{GrantFrom, GrantTo};
    use crate::{Meta, ObjectKey};
    use std::sync::Arc;

    fn grant(
        number: usize,
        from: &[&str],
        names: &[Option<&str>],
    ) -> (ObjectKey, Arc<ReferenceGrant>) {
        let key = ObjectKey::new("b", format!("g{number}"));
        let from = from.iter().map(|namespace| GrantFrom {
            group: GROUP.to_owned(),
            kind: "HTTPRoute".to_owned(),
            namespace: (*namespace).to_owned(),
        });
        let to = names.iter().map(|name| GrantTo {
            group: "".into(),
            kind: "Service".into(),
            name: name.map(str::to_owned),
        });
        let meta = Meta { key: key.clone(), ..Meta::default() };
        let grant = ReferenceGrant { meta, from: from.collect(), to: to.collect() };
        (key, Arc::new(grant))
    }

    fn service(name: &str) -> ObjectRef {
        ObjectRef {
            group: "".into(),
            kind: "Service".into(),
            namespace: Some("b".to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn what_is_said_is_permitted_until_the_last_who_says_it_goes() {
        let mut grants = Grants::default();
        let (one, two) = (grant(1, &["a", "c", "a"], &[Some("s")]), grant(2, &["a"], &[Some("s")]));
        assert!(!grants.permit("HTTPRoute", "a", &service("s")));
        assert!(grants.permit("HTTPRoute", "b", &service("s")), "one's own needs no grant");
        grants.insert(one.0.clone(), one.1);
        grants.insert(two.0.clone(), two.1);
        assert!(grants.permit("HTTPRoute", "c", &service("s")));
        assert!(!grants.permit("HTTPRoute", "a", &service("t")));
        assert!(!grants.permit("Gateway", "a", &service("s")));
        let secret = ObjectRef { kind: "Secret".into(), ..service("s") };
        assert!(!grants.permit("HTTPRoute", "a", &secret));
        assert!(!grants.permit(
            "HTTPRoute",
            "a",
            &ObjectRef { group: GROUP.into(), ..service("s") }
        ));
        let between = |grants: &Grants, from: &str| grants.between(from, "b").count();
        assert_eq!(
            (between(&grants, "a"), between(&grants, "c"), between(&grants, "b")),
            (2, 1, 0)
        );
        grants.remove(&one.0);
        assert!(grants.permit("HTTPRoute", "a", &service("s")));
        assert!(!grants.permit("HTTPRoute", "c", &service("s")));
        assert_eq!((between(&grants, "a"), between(&grants, "c")), (1, 0));
        // Another version of it.
        grants.insert(two.0.clone(), grant(2, &["a"], &[None]).1);
        assert!(grants.permit("HTTPRoute", "a", &service("t")));
        grants.remove(&two.0);
        assert_eq!(grants, Grants::default());
    }

    #[test]
    fn a_question_costs_a_look_however_many_grants_a_namespace_has() {
        let mut grants = Grants::default();
        for number in 0..5_000 {
            let name = format!("s{number}");
            let (key, grant) = grant(number, &["a", "c"], &[Some(&name), Some("t")]);
            grants.insert(key, grant);
        }
        COMPARED.set(0);
        assert!(!grants.permit("HTTPRoute", "a", &service("unknown")));
        assert!(grants.permit("HTTPRoute", "a", &service("s4999")));
        let steps = COMPARED.get();
        assert!((1..200).contains(&steps), "{steps} steps");
    }
}
