//! The kinds that Fairway reads, and what they are called.

use crate::ObjectKey;
use std::fmt;

/// The kinds that Fairway reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// networking.k8s.io/v1 Ingress.
    Ingress,
    /// networking.k8s.io/v1 IngressClass.
    IngressClass,
    /// v1 Service.
    Service,
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice,
    /// v1 Secret.
    Secret,
    /// v1 ConfigMap.
    ConfigMap,
    /// v1 Namespace.
    Namespace,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ingress,
        Self::IngressClass,
        Self::Service,
        Self::EndpointSlice,
        Self::Secret,
        Self::ConfigMap,
        Self::Namespace,
    ];

    /// `kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "Ingress",
            Self::IngressClass => "IngressClass",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Namespace => "Namespace",
        }
    }

    /// `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Ingress | Self::IngressClass => "networking.k8s.io/v1",
            Self::EndpointSlice => "discovery.k8s.io/v1",
            Self::Service | Self::Secret | Self::ConfigMap | Self::Namespace => "v1",
        }
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        !matches!(self, Self::IngressClass | Self::Namespace)
    }

    /// How messages name one object: `Ingress shop/web`, `IngressClass nginx`.
    pub fn label(self, key: &ObjectKey) -> String {
        if key.namespace.is_empty() {
            format!("{self} {}", key.name)
        } else {
            format!("{self} {}/{}", key.namespace, key.name)
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
