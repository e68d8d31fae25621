//! Whom a snippet passes requests to: Services of its own namespace, and upstreams by their names.

use crate::ingress::{Role, Target};
use crate::tenancy::{CrossNamespace, Item};
use model::UpstreamId;
use model::snippet::PassTarget;
use objects::{ObjectKey, PortRef};
use std::sync::Arc;

/// Whose a snippet is: what it may lead to.
#[derive(Clone, Copy)]
pub(super) enum Whose<'a> {
    /// The operator's: everything.
    Everybody,
    /// Of this namespace, with what it may take from others.
    Namespace(&'a Arc<str>, CrossNamespace),
}

impl Whose<'_> {
    fn may_use(self, namespace: &str) -> bool {
        match self {
            Self::Everybody => true,
            Self::Namespace(own, allowed) => **own == *namespace || allowed.allows(Item::Resources),
        }
    }
}

/// The Service that `proxy_pass` leads to.
pub(super) fn service(target: &PassTarget, whose: Whose<'_>) -> Result<Option<Target>, String> {
    let PassTarget::Service { namespace, name, port } = target else { return Ok(None) };
    if !whose.may_use(namespace) {
        return Err(format!(
            "Service {namespace}/{name} is in another namespace: make one of type ExternalName here, or set \
             allow-cross-namespace-resources in the ConfigMap"
        ));
    }
    let service = ObjectKey::new(namespace.as_str(), name.as_str());
    let port = Some(PortRef::Number(*port));
    Ok(Some(Target::Service { service, port, role: Role::Url }))
}

/// What an upstream's name stands for.
#[derive(Debug)]
pub(super) enum Named {
    /// Nothing: it is empty.
    Nobody,
    /// A backend of the snippet's own namespace.
    Backend(Target),
    /// Nothing that it may lead to, perhaps what is another namespace's: the name of nobody, and what is wrong.
    Stranger(UpstreamId, String),
}

/// The backend that an upstream's name stands for: `namespace-service-port`.
pub(super) fn upstream(id: &str, whose: Whose<'_>) -> Result<Named, String> {
    let Whose::Namespace(namespace, _) = whose else {
        return Err(
            "only a snippet of an Ingress knows of which namespace an upstream is: name a Service \
                    (proxy_pass http://name.namespace.svc.cluster.local:port)"
                .to_owned(),
        );
    };
    if id.is_empty() {
        return Ok(Named::Nobody);
    }
    let own = id.strip_prefix(&**namespace).and_then(|rest| rest.strip_prefix('-'));
    let parts = own.and_then(|rest| rest.rsplit_once('-'));
    let known = parts.filter(|(service, port)| !service.is_empty() && !port.is_empty());
    let Some((service, port)) = known else {
        let why = format!(
            "{id:?} is no upstream of namespace {namespace}: write {namespace}-service-port"
        );
        return Ok(Named::Stranger(UpstreamId::new(format!("{namespace}/{id}")), why));
    };
    let port = match port.parse() {
        Ok(number) => PortRef::Number(number),
        Err(_) => PortRef::Name(port.to_owned()),
    };
    Ok(Named::Backend(Target::new(namespace, service, Some(&port), Role::Backend)))
}

#[cfg(test)]
mod tests {
    use super::{Named, Whose, service, upstream};
    use crate::tenancy::{CrossNamespace, Item};
    use model::UpstreamId;
    use model::snippet::PassTarget;

    #[test]
    fn a_snippet_leads_to_services_of_its_own_namespace() {
        let own = "demo".into();
        let whose = Whose::Namespace(&own, CrossNamespace::default());
        let target = |namespace: &str| PassTarget::Service {
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
            port: 8080,
        };
        let found = service(&target("demo"), whose).expect("allowed").expect("a target");
        assert_eq!(Some(found.id()), target("demo").upstream());
        assert!(service(&target("other"), whose).is_err());
        let resources = CrossNamespace::default().and(Item::Resources);
        assert!(service(&target("other"), Whose::Namespace(&own, resources)).is_ok());
        assert!(service(&target("other"), Whose::Everybody).is_ok());
    }

    #[test]
    fn an_upstream_is_named_as_its_backend_is() {
        let own = "demo".into();
        let whose = Whose::Namespace(&own, CrossNamespace::default());
        for id in ["demo-echo-b-80", "demo-web-http"] {
            let Ok(Named::Backend(target)) = upstream(id, whose) else { panic!("{id}") };
            assert_eq!(target.id(), UpstreamId::new(id));
        }
        for id in ["other-web-80", "demo-web", "demo--80", "upstream-default-backend"] {
            let Ok(Named::Stranger(nobody, _)) = upstream(id, whose) else { panic!("{id}") };
            assert_ne!(nobody, UpstreamId::new(id), "it may be somebody's");
        }
        assert!(matches!(upstream("", whose), Ok(Named::Nobody)));
    }
}
