//! From the JSON of ListenerSets to what is kept of them: listeners that somebody adds to a Gateway.

use super::parse::{InNamespaces, RawListener, RawRef, resource};
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

resource! { RawListenerSet, ListenerSet, InNamespaces }

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
