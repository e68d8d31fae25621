//! An object that was made of Ingresses, with what it leaves out.

use crate::lost::Loss;
use crate::yaml;
use objects::ObjectKey;
use serde_json::Value;
use std::collections::BTreeSet;

/// The version of nearly all kinds.
pub(crate) const API: &str = "gateway.networking.k8s.io/v1";

/// Kinds that are made.
const KINDS: [&str; 8] = [
    "backendtlspolicy",
    "configmap",
    "gateway",
    "gatewayclass",
    "grpcroute",
    "httproute",
    "referencegrant",
    "tlsroute",
];

/// Whether a file may be one of [`Object::file_name`].
pub fn is_file_name(name: &str) -> bool {
    let kind = name.strip_suffix(".yaml").and_then(|name| name.split_once('.'));
    kind.is_some_and(|(kind, _)| KINDS.contains(&kind))
}

/// An object, and what it leaves out.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The object as the API server takes it.
    pub value: Value,
    /// What it leaves out.
    pub losses: Vec<Loss>,
}

impl Object {
    /// The object as YAML, below comments about what it leaves out.
    pub fn yaml(&self) -> String {
        yaml::document(self)
    }

    /// A name for a file that holds it alone.
    pub fn file_name(&self) -> String {
        let text = |field: &str| self.value["metadata"][field].as_str().unwrap_or_default();
        let kind = self.value["kind"].as_str().unwrap_or_default().to_lowercase();
        let parts = [kind.as_str(), text("namespace"), text("name")];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}.yaml", parts.join("."))
    }
}

/// An object before anybody knows which comments it has.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) value: Value,
    /// The Ingress that it is of, if it is of one.
    pub(crate) of: Option<ObjectKey>,
}

impl Made {
    pub(crate) fn object(self, losses: &[Loss], placed: &mut BTreeSet<usize>) -> Object {
        let Self { value, of } = self;
        let own = |loss: &Loss| of.is_some() && loss.ingress == of;
        let own = losses.iter().enumerate().filter(|(_, loss)| own(loss));
        let own = own.filter(|(index, _)| placed.insert(*index)).map(|(_, loss)| loss.clone());
        Object { losses: own.collect(), value }
    }
}
