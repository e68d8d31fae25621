//! A backend as an Ingress names it, and the upstream's name that follows from it.

use model::{DEFAULT_BACKEND, ServiceRef, UpstreamId};
use objects::{ObjectKey, PortRef};
use std::sync::Arc;

/// Where requests go. The order decides who keeps an upstream's name that two would have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// `--default-backend-service`, by its first port.
    Default(ObjectKey),
    /// A port of a Service.
    Service {
        /// The Service.
        service: ObjectKey,
        /// Its port, as written; none: the first one it has.
        port: Option<PortRef>,
        /// What for.
        role: Role,
    },
    /// A host outside the cluster, by name or address, that a URL names.
    Name {
        /// The host, in lower case.
        host: Arc<str>,
        /// The port.
        port: u16,
    },
    /// A Service without a port, in this namespace: nothing is behind it.
    Portless(Arc<str>),
}

/// What a Service is used for: each use has its own upstream, with its own name and turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A backend of paths.
    Backend,
    /// The same by the address of the Service (`service-upstream`).
    ClusterIp,
    /// The answers in place of errors (`default-backend`).
    Errors,
    /// A URL names it.
    Url,
}

impl Target {
    /// The backend that an Ingress of `namespace` names.
    pub(crate) fn new(
        namespace: &Arc<str>,
        service: &str,
        port: Option<&PortRef>,
        role: Role,
    ) -> Self {
        match port {
            Some(port) => {
                let service = ObjectKey::new(Arc::clone(namespace), service);
                Self::Service { service, port: Some(port.clone()), role }
            }
            None => Self::Portless(Arc::clone(namespace)),
        }
    }

    /// The upstream's name in ingress-nginx; what it has no name for is called as no Service port can be.
    pub(crate) fn id(&self) -> UpstreamId {
        UpstreamId::new(match self {
            Self::Default(_) => DEFAULT_BACKEND.to_owned(),
            Self::Service { service, port, role: Role::Backend | Role::ClusterIp } => {
                format!("{}-{}-{}", service.namespace, service.name, text(port.as_ref()))
            }
            Self::Service { service, role: Role::Errors, .. } => {
                format!("custom-default-backend-{}-{}", service.namespace, service.name)
            }
            Self::Service { service, port, role: Role::Url } => {
                format!("url:{}/{}:{}", service.namespace, service.name, text(port.as_ref()))
            }
            Self::Name { host, port } => format!("url:{host}:{port}"),
            Self::Portless(namespace) => format!("{namespace}-INVALID"),
        })
    }

    /// A name that nobody else can have: `web-shop` in `a` and `shop` in `a-web` have the same [`Self::id`].
    /// [`UpstreamId::usual`] knows what ingress-nginx calls it.
    pub(crate) fn distinct_id(&self) -> UpstreamId {
        match self {
            Self::Service { service, port, role } => UpstreamId::new(format!(
                "{}{}/{}:{}",
                match role {
                    Role::Errors => "errors:",
                    Role::ClusterIp => "cluster-ip:",
                    Role::Backend | Role::Url => "",
                },
                service.namespace,
                service.name,
                text(port.as_ref())
            )),
            Self::Portless(namespace) => UpstreamId::new(format!("{namespace}/")),
            Self::Default(_) | Self::Name { .. } => self.id(),
        }
    }

    /// The Service behind it.
    pub(crate) fn service(&self) -> Option<&ObjectKey> {
        match self {
            Self::Default(service) | Self::Service { service, .. } => Some(service),
            Self::Portless(_) | Self::Name { .. } => None,
        }
    }

    /// What follows when nobody is behind it: the end of a problem's sentence.
    pub(crate) fn without_endpoints(&self) -> &'static str {
        match self {
            Self::Service { role: Role::Errors, .. } => {
                "until then nothing stands in (annotation default-backend)"
            }
            Self::Service { role: Role::Url, .. } | Self::Name { .. } => {
                "requests to it fail (a URL names it: auth-url, mirror-target, a snippet, or global-auth-url of the ConfigMap)"
            }
            _ => "what leads there answers 503, unless a default-backend of its Ingress stands in",
        }
    }

    /// The Service for logs, metrics and error pages.
    pub(crate) fn service_ref(&self) -> Option<ServiceRef> {
        let Self::Service { service, port, .. } = self else { return None };
        let (namespace, name) = (Arc::clone(&service.namespace), Arc::clone(&service.name));
        Some(ServiceRef { namespace, name, port: text(port.as_ref()).into() })
    }

    /// The least target of a Service: all of its targets follow it.
    pub(crate) fn first_of(service: &ObjectKey) -> Self {
        Self::Service { service: service.clone(), port: None, role: Role::Backend }
    }
}

/// A port as it is written.
fn text(port: Option<&PortRef>) -> String {
    match port {
        Some(PortRef::Number(number)) => number.to_string(),
        Some(PortRef::Name(name)) => name.clone(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, Target};
    use objects::PortRef;

    #[test]
    fn logs_can_call_an_upstream_as_ingress_nginx_does() {
        let namespace = "demo".into();
        let target = |port: Option<&PortRef>, role| Target::new(&namespace, "web", port, role);
        for port in [PortRef::Number(80), PortRef::Name("http".to_owned())] {
            for role in [Role::Backend, Role::ClusterIp, Role::Errors] {
                let target = target(Some(&port), role);
                for id in [target.id(), target.distinct_id()] {
                    assert_eq!(id.usual(), target.id().as_str());
                }
            }
            let of_url = target(Some(&port), Role::Url).id();
            assert_eq!(of_url.usual(), of_url.as_str());
        }
        let portless = target(None, Role::Backend);
        assert_eq!(portless.distinct_id().usual(), portless.id().as_str());
    }
}
