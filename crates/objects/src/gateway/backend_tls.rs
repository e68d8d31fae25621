//! TLS beyond listeners: BackendTLSPolicies, and what `spec.tls` of a Gateway says about certificates of clients.

use super::parse::RawRef;
use super::{GROUP, ObjectRef};
use crate::trim::{Annotations, meta, port_number};
use crate::{Kind, Meta, Object, Trim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

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

/// A BackendTLSPolicy as the API server has it.
#[derive(Clone, Debug, Deserialize)]
pub struct RawBackendTlsPolicy {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: PolicySpec,
    #[serde(default)]
    status: PolicyTold,
}

impl k8s_openapi::Resource for RawBackendTlsPolicy {
    const API_VERSION: &'static str = "gateway.networking.k8s.io/v1";
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "BackendTLSPolicy";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "backendtlspolicies";
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for RawBackendTlsPolicy {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicySpec {
    target_refs: Vec<RawTarget>,
    validation: RawValidation,
    options: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTarget {
    #[serde(flatten)]
    object: RawRef,
    section_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawValidation {
    #[serde(rename = "caCertificateRefs")]
    authorities: Vec<RawRef>,
    #[serde(rename = "wellKnownCACertificates")]
    well_known: Option<String>,
    hostname: String,
    subject_alt_names: Vec<RawName>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawName {
    r#type: String,
    hostname: String,
    uri: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PolicyTold {
    ancestors: Vec<RawAncestor>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawAncestor {
    controller_name: String,
}

/// `spec.tls` of a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawGatewayTls {
    backend: RawBackend,
    frontend: Option<RawFrontend>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawBackend {
    client_certificate_ref: Option<RawRef>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawFrontend {
    default: RawAsked,
    per_port: Vec<RawPort>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawAsked {
    validation: Option<RawFrontendValidation>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawPort {
    port: i32,
    tls: RawAsked,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RawFrontendValidation {
    #[serde(rename = "caCertificateRefs")]
    authorities: Vec<RawRef>,
    mode: Option<String>,
}

impl RawAsked {
    fn read(self) -> Option<FrontendValidation> {
        self.validation.map(|raw| FrontendValidation {
            authorities: raw.authorities.into_iter().map(|one| one.read("", "ConfigMap")).collect(),
            falls_back: raw.mode.as_deref() == Some("AllowInsecureFallback"),
        })
    }
}

impl RawGatewayTls {
    /// The certificate for backends, and what is asked of clients.
    pub(super) fn read(self) -> Result<(Option<ObjectRef>, Option<FrontendTls>), String> {
        let certificate = self.backend.client_certificate_ref.map(|one| one.read("", "Secret"));
        let Some(RawFrontend { default, per_port }) = self.frontend else {
            return Ok((certificate, None));
        };
        let ports = per_port.into_iter().enumerate().map(|(index, one)| {
            let field = || format!("spec.tls.frontend.perPort[{index}].port");
            Ok((port_number(one.port, field)?, one.tls.read()))
        });
        let ports = ports.collect::<Result<_, String>>()?;
        Ok((certificate, Some(FrontendTls { default: default.read(), ports })))
    }
}

impl Trim for RawBackendTlsPolicy {
    const KIND: Kind = Kind::BackendTlsPolicy;

    fn trim(self) -> Result<Object, String> {
        let PolicySpec { target_refs, validation, options } = self.spec;
        let target = |raw: RawTarget| PolicyTarget {
            object: raw.object.read("", "Service"),
            section: raw.section_name.filter(|section| !section.is_empty()),
        };
        let name = |raw: RawName| {
            let value = if raw.r#type == "URI" { raw.uri } else { raw.hostname };
            (raw.r#type, value)
        };
        let authorities = validation.authorities.into_iter();
        let told_by = self.status.ancestors.into_iter().map(|one| one.controller_name);
        Ok(Object::BackendTlsPolicy(Arc::new(BackendTlsPolicy {
            meta: meta(self.metadata, Annotations::Dropped)?,
            targets: target_refs.into_iter().map(target).collect(),
            authorities: authorities.map(|one| one.read("", "ConfigMap")).collect(),
            well_known: validation.well_known.filter(|known| !known.is_empty()),
            hostname: validation.hostname,
            names: validation.subject_alt_names.into_iter().map(name).collect(),
            has_options: options.is_some_and(|options| options != serde_json::json!({})),
            told_by: told_by.collect(),
        })))
    }
}
