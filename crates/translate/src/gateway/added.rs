//! A ListenerSet as its Gateway has it: the listeners that it adds, and the Secrets that they show.

use super::certificates::is_secret;
use objects::ObjectKey;
use objects::gateway::{Listener, ListenerSet};
use std::sync::Arc;

/// A ListenerSet that names a Gateway.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Set {
    /// The object.
    pub(super) object: Arc<ListenerSet>,
    /// Why none of its listeners is added: reason and message.
    pub(super) refused: Option<(&'static str, String)>,
    /// Which listener of the Gateway is its first one, if any is added.
    pub(super) first: usize,
}

impl Set {
    /// The listeners that it adds.
    pub(super) fn added(&self) -> &[Listener] {
        if self.refused.is_some() { &[] } else { &self.object.listeners }
    }
}

/// The Secrets that the listeners of a ListenerSet show: of each the first one that it names.
pub(super) fn secrets(set: &ListenerSet) -> impl Iterator<Item = ObjectKey> {
    let tls = set.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let named = tls.filter_map(|tls| tls.certificates.first());
    let named = named.filter(|named| is_secret(named));
    named.map(|named| named.key(&set.meta.key.namespace))
}
