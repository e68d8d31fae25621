//! TLS beyond listeners: BackendTLSPolicy, and what `spec.tls` of a Gateway says about certificates of clients.

use super::ObjectRef;
use crate::Meta;

/// BackendTLSPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendTlsPolicy {
    /// Name and so on.
    pub meta: Meta,
    /// `spec.targetRefs`.
    pub targets: Vec<PolicyTarget>,
    /// `spec.validation.caCertificateRefs`.
    pub authorities: Vec<ObjectRef>,
    /// `spec.validation.wellKnownCACertificates`.
    pub well_known: Option<String>,
    /// `spec.validation.hostname`.
    pub hostname: String,
    /// `spec.validation.subjectAltNames`: type and value.
    pub names: Vec<(String, String)>,
    /// Whether there are `spec.options`.
    pub has_options: bool,
    /// The `controllerName` of each of `status.ancestors`.
    pub told_by: Vec<String>,
}

/// One of `spec.targetRefs`, in the namespace of the policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyTarget {
    /// What it is.
    pub object: ObjectRef,
    /// `sectionName`: the name of a port of a Service.
    pub section: Option<String>,
}

/// `spec.tls.frontend` of a Gateway: what is asked of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontendTls {
    /// `default.validation`.
    pub default: Option<FrontendValidation>,
    /// `perPort`: what stands in the place of the default for a port.
    pub ports: Vec<(u16, Option<FrontendValidation>)>,
}

/// `validation` of certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontendValidation {
    /// `caCertificateRefs`.
    pub authorities: Vec<ObjectRef>,
    /// Whether the mode is `AllowInsecureFallback`.
    pub falls_back: bool,
}
