//! A remark about an object.

use objects::ObjectKey;
use serde::Serialize;

/// What stands before the name of a ConfigMap, behind which its key is.
const CONFIG_MAP: &str = "ConfigMap ";

/// What a remark begins with that is about a setting of another Ingress.
pub(super) const OF_ANOTHER: &str = "is set by Ingress ";

/// What a remark begins with that says what becomes of an Ingress with the other engine.
pub(super) const WITH_NGINX: &str = "with the nginx engine: ";

/// What is said where a flag decides that may not have been given.
pub(super) const FLAG: &str = "; if ingress-nginx has that flag, give it to `check`, too";

/// What a remark about a key of the ConfigMap is about.
pub(super) fn named_of_config_map(map: &ObjectKey, key: &str) -> String {
    format!("{CONFIG_MAP}{}/{} {key}", map.namespace, map.name)
}

/// The key of the ConfigMap that a remark is about.
pub(super) fn key_of_config_map(remark: &Remark) -> Option<&str> {
    let (_, key) = remark.key.as_deref()?.strip_prefix(CONFIG_MAP)?.split_once(' ')?;
    Some(key)
}

/// Something to know about an Ingress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Remark {
    /// The annotation or field, where there is one.
    pub key: Option<String>,
    /// What is to be known, and the remedy where there is one.
    pub message: String,
}

impl Remark {
    /// Whether it is about a canary of another Ingress: many may have to be told of the same one.
    fn is_of_another_canary(&self) -> bool {
        let name = self.key.as_deref().and_then(|key| key.rsplit('/').next());
        name == Some("canary") && self.message.starts_with(OF_ANOTHER)
    }

    /// By key, and by line of a snippet: 9 before 10. What is said of the other engine comes late, and what others ask
    /// for last.
    pub(super) fn order(&self) -> (bool, bool, &Option<String>, Vec<u32>, &str) {
        let is_of_another = self.is_of_another_canary();
        let is_of_nginx = self.message.starts_with(WITH_NGINX);
        let numbers = self.message.strip_prefix("line ").map(|at| {
            at.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).take(2)
        });
        let numbers = numbers.into_iter().flatten().collect();
        (is_of_another, is_of_nginx, &self.key, numbers, &self.message)
    }
}
