//! A backend as an Ingress names it, and the upstream's name that follows from it.

use kubernetes::objects::{ObjectKey, PortRef};
use model::{ServiceRef, UpstreamId};
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
        /// Its port, as written.
        port: PortRef,
    },
    /// A Service without a port, in this namespace: nothing is behind it.
    Portless(Arc<str>),
}

impl Target {
    /// The backend that an Ingress of `namespace` names.
    pub(crate) fn new(namespace: &Arc<str>, service: &str, port: Option<&PortRef>) -> Self {
        match port {
            Some(port) => {
                let service = ObjectKey::new(Arc::clone(namespace), service);
                Self::Service { service, port: port.clone() }
            }
            None => Self::Portless(Arc::clone(namespace)),
        }
    }

    /// The upstream's name in ingress-nginx.
    pub(crate) fn id(&self) -> UpstreamId {
        UpstreamId::new(match self {
            Self::Default(_) => "upstream-default-backend".to_owned(),
            Self::Service { service, port } => {
                format!("{}-{}-{}", service.namespace, service.name, text(port))
            }
            Self::Portless(namespace) => format!("{namespace}-INVALID"),
        })
    }

    /// A name that nobody else can have: `web-shop` in `a` and `shop` in `a-web` have the same [`Self::id`].
    pub(crate) fn distinct_id(&self) -> UpstreamId {
        match self {
            Self::Service { service, port } => {
                UpstreamId::new(format!("{}/{}:{}", service.namespace, service.name, text(port)))
            }
            Self::Portless(namespace) => UpstreamId::new(format!("{namespace}/")),
            Self::Default(_) => self.id(),
        }
    }

    /// The Service behind it.
    pub(crate) fn service(&self) -> Option<&ObjectKey> {
        match self {
            Self::Default(service) | Self::Service { service, .. } => Some(service),
            Self::Portless(_) => None,
        }
    }

    /// The Service for logs, metrics and error pages.
    pub(crate) fn service_ref(&self) -> Option<ServiceRef> {
        let Self::Service { service, port } = self else { return None };
        let (namespace, name) = (Arc::clone(&service.namespace), Arc::clone(&service.name));
        Some(ServiceRef { namespace, name, port: text(port).into() })
    }

    /// The least target of a Service: all of its targets follow it.
    pub(crate) fn first_of(service: &ObjectKey) -> Self {
        Self::Service { service: service.clone(), port: PortRef::Number(0) }
    }
}

/// A port as it is written.
pub(crate) fn text(port: &PortRef) -> String {
    match port {
        PortRef::Number(number) => number.to_string(),
        PortRef::Name(name) => name.clone(),
    }
}
