//! An object that was made of Ingresses, with what it leaves out.

use crate::lost::Loss;
use crate::yaml;
use objects::ObjectKey;
use objects::manifests::{is_a_label, is_a_name};
use serde_json::Value;
use std::collections::BTreeSet;

/// The version of nearly all kinds.
pub(crate) const API: &str = "gateway.networking.k8s.io/v1";

/// Bytes of the longest name of a file.
const LONGEST: usize = 255;

/// Characters of a name that is refused.
const SHOWN: usize = 300;

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

    /// A name for a file that holds it alone; or which object it is and why there is none: names in files may be
    /// anything.
    pub fn file_name(&self) -> Result<String, String> {
        let text = |field: &str| self.value["metadata"][field].as_str().unwrap_or_default();
        let (kind, namespace, name) =
            (self.value["kind"].as_str().unwrap_or_default(), text("namespace"), text("name"));
        // A namespace without dots, so that two objects never have one name of a file.
        if !(namespace.is_empty() || is_a_label(namespace)) || !is_a_name(name) {
            let shown: String = format!("{namespace}/{name}").chars().take(SHOWN).collect();
            return Err(format!(
                "{kind} {shown:?}: no API server takes this name, and it may lead out of the folder: rename the Ingress, \
                 or what it names"
            ));
        }
        let parts = [kind.to_lowercase().as_str(), namespace, name].map(str::to_owned);
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let file = format!("{}.yaml", parts.join("."));
        if file.len() > LONGEST {
            return Err(format!(
                "{kind} {namespace}/{name}: its file would have a name of {} bytes, and {LONGEST} are the most: convert it \
                 without --output",
                file.len()
            ));
        }
        Ok(file)
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

#[cfg(test)]
mod tests {
    use super::{LONGEST, Object, is_file_name};
    use serde_json::json;

    #[test]
    fn no_object_has_a_file_elsewhere_or_that_of_another_one() {
        let file = |namespace: &str, name: &str| {
            let metadata = json!({"namespace": namespace, "name": name});
            let value = json!({"kind": "HTTPRoute", "metadata": metadata});
            Object { value, losses: Vec::new() }.file_name()
        };
        for (namespace, name) in [
            ("demo", "a/../../x"),
            ("demo", ".."),
            ("..", "a"),
            ("a/b", "c"),
            ("demo", "a\0b"),
            ("demo", "A"),
            ("a.b", "c"),
            ("demo", ""),
        ] {
            let refused = file(namespace, name).expect_err("it is refused");
            assert!(refused.contains("rename the Ingress"), "{refused}");
        }
        assert_eq!(file("a", "b.c").as_deref(), Ok("httproute.a.b.c.yaml"));
        assert!(is_file_name(&file("a", "b.c").unwrap_or_default()));
        let long = |length: usize| file("demo", &format!("a{}", ".a".repeat(length / 2)));
        assert!(long(250).is_err_and(|why| why.contains("without --output")));
        assert!(long(220).is_ok_and(|file| file.len() <= LONGEST));
    }
}
