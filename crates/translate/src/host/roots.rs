//! What of an Ingress counts for the `/` that a host has by itself.

use model::Backend;
use model::policy::{Access, Balance, Errors, Policy, Protocol, TlsRedirect, UpstreamTls};
use std::sync::Arc;

/// Policy of the catch-all without an Ingress: it never redirects, and what answers 404 by itself guards nothing
/// (compat/behaviour.md section 6).
pub(super) fn of_the_catch_all(policy: &Policy, backend: &Backend) -> Policy {
    let tls_redirect = TlsRedirect { with_certificate: false, ..TlsRedirect::default() };
    let access = match backend {
        Backend::NotFound => Access::default(),
        Backend::Upstream(_) | Backend::Denied(_) | Backend::Broken(_) => policy.access.clone(),
    };
    Policy { tls_redirect, access, ..policy.clone() }
}

/// Policy of a location that leads to the default backend of the process: that speaks plain HTTP and is balanced as the
/// ConfigMap says, whatever the Ingress says of its own backends, and words errors itself (ingress-nginx:
/// getBackendServers makes no `custom-default-backend` for it).
pub(super) fn towards_the_default(policy: Arc<Policy>, balance: &Balance) -> Arc<Policy> {
    let is_plain = policy.protocol == Protocol::Http
        && policy.upstream_tls == UpstreamTls::default()
        && policy.balance == *balance
        && policy.errors.as_ref().is_none_or(|errors| errors.backend.is_none());
    if is_plain {
        return policy;
    }
    Arc::new(Policy {
        protocol: Protocol::Http,
        upstream_tls: UpstreamTls::default(),
        balance: balance.clone(),
        errors: policy.errors.as_ref().map(without_backend),
        ..Policy::clone(&policy)
    })
}

fn without_backend(errors: &Errors) -> Errors {
    Errors { backend: None, ..errors.clone() }
}
