//! The class of Ingresses in files that name none: where a cluster has a default IngressClass, the API server writes it
//! into each new Ingress (the admission plugin DefaultIngressClass).

use crate::say::note;
use objects::{Ingress, IngressClass, Snapshot};
use std::sync::Arc;

/// What an IngressClass is the default one by.
const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
/// What names a class in place of the field.
const BY_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Gives Ingresses the default class, where one is among the objects, and says so. One that was in a cluster already
/// has what the API server gave it.
pub(crate) fn give(snapshot: &mut Snapshot) {
    let classes = snapshot.classes.iter().flat_map(|classes| classes.values());
    let is_default = |class: &&Arc<IngressClass>| {
        class.meta.annotations.get(DEFAULT).is_some_and(|it| it == "true")
    };
    // Of several the newest counts, and of those of one age the first by name.
    let order = |class: &&Arc<IngressClass>| (-class.meta.created, class.meta.key.clone());
    let Some(class) = classes.filter(is_default).min_by_key(order) else { return };
    let name = class.meta.key.name.to_string();
    let is_new = |ingress: &&Arc<Ingress>| {
        let Ingress { meta, class, .. } = ingress.as_ref();
        class.is_none() && meta.uid.is_empty() && !meta.annotations.contains_key(BY_ANNOTATION)
    };
    let new: Vec<Arc<Ingress>> = snapshot.ingresses.values().filter(is_new).cloned().collect();
    let Some(first) = new.first().map(|ingress| ingress.meta.key.clone()) else { return };
    let more = match new.len() - 1 {
        0 => "names".to_owned(),
        more => format!("and {more} more name"),
    };
    note!(
        "Ingress {}/{} {more} no class: {name} counts, the default IngressClass, as an API server writes it into new \
         Ingresses; `fairway run --manifests` does not",
        first.namespace,
        first.name
    );
    for ingress in new {
        let mut ingress = Arc::unwrap_or_clone(ingress);
        ingress.class = Some(name.clone());
        snapshot.ingresses.insert(ingress.meta.key.clone(), Arc::new(ingress));
    }
}
