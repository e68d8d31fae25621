//! The objects of Kubernetes that Fairway reads: what it keeps of each, how they are read from text, and one immutable
//! [`Snapshot`] of them all. Nothing here waits for anything.

pub mod gateway;
mod index;
mod issuer;
mod kind;
mod kinds;
pub mod manifests;
mod order;
mod same;
mod snapshot;
mod store;
mod trim;

pub use gateway::{
    BackendTlsPolicy, Gateway, GatewayClass, Grants, HttpRoute, ListenerSet, ObjectRef,
    ReferenceGrant, StreamRoute,
};
pub use index::{Reference, ReverseIndex};
pub use issuer::{Http01, Issuer, Selector, Solver, SolverIngress};
pub use kind::Kind;
pub use kinds::{
    ConfigMap, EndpointSlice, InText, Ingress, IngressBackend, IngressClass, IngressPath,
    IngressRule, IngressTls, MadeFor, Meta, Namespace, ObjectKey, PathType, PortRef, Secret,
    Service, ServicePort, SliceEndpoint, SlicePort,
};
pub use manifests::snapshot_of;
pub use order::interleaved;
pub use same::{Asks, differing};
pub use snapshot::{Malformed, Snapshot, Unread};
pub use store::{Object, Store};
pub use trim::{
    GATEWAY_CONTROLLER, MANAGED_BY, MANAGER, SLICE_MANAGED_BY, Trim, made_for, parse_ingress,
    parse_secret, parse_service,
};
