//! From the JSON of ListenerSets to what is kept of them: listeners that somebody adds to a Gateway.

use super::parse::{RawListener, RawRef};
use super::{GROUP, ListenerSet};
use crate::trim::{Annotations, meta};
use crate::{Kind, Object, Trim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::sync::Arc;

/// A ListenerSet as the API server has it.
#[derive(Clone, Debug, Deserialize)]
pub struct RawListenerSet {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SetSpec,
}

impl k8s_openapi::Resource for RawListenerSet {
    const API_VERSION: &'static str = "gateway.networking.k8s.io/v1";
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = "ListenerSet";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "listenersets";
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for RawListenerSet {
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
struct SetSpec {
    parent_ref: RawRef,
    listeners: Vec<RawListener>,
}

impl Trim for RawListenerSet {
    const KIND: Kind = Kind::ListenerSet;

    fn trim(self) -> Result<Object, String> {
        let listeners = self.spec.listeners.into_iter().enumerate();
        let listeners = listeners.map(|(index, listener)| listener.read(index));
        Ok(Object::ListenerSet(Arc::new(ListenerSet {
            meta: meta(self.metadata, Annotations::Dropped)?,
            parent: self.spec.parent_ref.read(GROUP, "Gateway"),
            listeners: listeners.collect::<Result<_, _>>()?,
        })))
    }
}
