//! From the JSON of BackendTLSPolicies to what is kept of them.

use super::GROUP;
use super::parse::{InNamespaces, RawRef, resource};
use super::tls::{BackendTlsPolicy, PolicyTarget};
use crate::trim::{Annotations, meta};
use crate::{Kind, Object, Trim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// A BackendTLSPolicy as the API server has it.
#[derive(Clone, Debug, Deserialize)]
pub struct RawBackendTlsPolicy {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: PolicySpec,
    #[serde(default)]
    status: PolicyTold,
}

resource! { RawBackendTlsPolicy, BackendTlsPolicy, InNamespaces }

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
