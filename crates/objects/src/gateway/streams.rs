//! From the JSON of TCPRoutes, UDPRoutes and TLSRoutes to what is kept of them.

use super::StreamRoute;
use super::parse::{RawParent, RouteTold, parents};
use super::parse_rules::{RawBackend, Unread, Unsaid};
use crate::trim::{Annotations, each, meta};
use crate::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::sync::Arc;

/// `spec` of a TCPRoute, a UDPRoute or a TLSRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StreamSpec {
    parent_refs: Vec<RawParent>,
    hostnames: Vec<String>,
    rules: Vec<StreamRule>,
    use_default_gateways: Unread,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StreamRule {
    backend_refs: Vec<RawBackend>,
}

impl StreamSpec {
    pub(super) fn read(
        self,
        metadata: ObjectMeta,
        kind: Kind,
        told: RouteTold,
    ) -> Result<Object, String> {
        let mut unread = Unsaid::default();
        unread.note(self.use_default_gateways.is_some(), || "spec.useDefaultGateways".to_owned());
        // The definitions take one rule alone.
        unread.note(self.rules.len() > 1, || "spec.rules[1]".to_owned());
        let backends = self.rules.into_iter().next().unwrap_or_default().backend_refs;
        let backends = each(Some(backends), |index, one| {
            one.read(&format!("spec.rules[0].backendRefs[{index}]"), &mut unread)
        })?;
        Ok(Object::StreamRoute(Arc::new(StreamRoute {
            meta: meta(metadata, Annotations::Dropped)?,
            kind,
            parents: parents(self.parent_refs)?,
            hostnames: self.hostnames,
            backends,
            unread: unread.0,
            told_by: told.by(),
        })))
    }
}
