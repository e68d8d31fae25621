//! One Ingress's `status.loadBalancer`, written over one version of it and no other.

use super::address::Address;
use super::plan::Write;
use crate::call::{Called, ask, remedy};
use crate::lease::Leadership;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use objects::ObjectKey;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the API server may take; less if the Lease ends earlier.
const PATIENCE: Duration = Duration::from_secs(10);
/// Whose fields these are.
pub(super) const MANAGER: &str = "fairway";

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Written,
    /// The Ingress is there in a later version.
    Conflict,
    /// It is not there.
    Gone,
    /// The API server does not take it, and hardly will.
    Refused(String),
    /// The API server forbids it for now: a right is missing, or there is a quota or a policy. To be looked at again.
    Forbidden(String),
    /// The API server has an error for this one: it may do the next time, and says nothing of others.
    Failed(String),
    /// The API server does not answer, or answers nobody.
    Silent(String),
    /// It stays as it is, since nobody is sure that it may go: to be looked at again later.
    Kept(String),
    /// This replica leads no more: nothing was sent.
    NotLeader,
}

/// Writes addresses. Copies share what they found out.
#[derive(Clone)]
pub(super) struct Writer {
    client: Client,
    leadership: Leadership,
    /// The ClusterRole of ingress-nginx allows `update` of ingresses/status and no `patch`.
    by_update: Arc<AtomicBool>,
}

impl Writer {
    pub(super) fn new(client: Client, leadership: Leadership) -> Self {
        Self { client, leadership, by_update: Arc::default() }
    }

    /// Writes, if this replica leads at this moment and for as long as it takes.
    pub(super) async fn write(&self, write: &Write) -> Outcome {
        let Some(left) = self.leadership.remaining() else { return Outcome::NotLeader };
        let patience = left.min(PATIENCE);
        let by_update = self.by_update.load(Ordering::Relaxed);
        let mut answer = if by_update {
            self.update(write, patience).await
        } else {
            self.patch(write, patience).await
        };
        if is_forbidden(&answer) {
            let Some(left) = self.leadership.remaining() else { return Outcome::NotLeader };
            let other = if by_update {
                self.patch(write, left.min(PATIENCE)).await
            } else {
                self.update(write, left.min(PATIENCE)).await
            };
            // Where both are, it is a policy about this one, or an API server that starts: that says nothing of others.
            if matches!(other, Called::Good(())) {
                self.by_update.store(!by_update, Ordering::Relaxed);
                tracing::info!(
                    by_update = !by_update,
                    "one way to write ingresses/status is forbidden: the other one is taken from now on"
                );
            }
            if !is_forbidden(&other) {
                answer = other;
            }
        }
        match with_remedy(answer) {
            Called::Bad { code: Some(403), reason } => Outcome::Forbidden(reason),
            Called::Bad { code: Some(400 | 422), reason } if is_denied(&reason) => {
                Outcome::Forbidden(reason)
            }
            answer => outcome(answer).map_or_else(|bad| bad, |()| Outcome::Written),
        }
    }

    async fn patch(&self, write: &Write, patience: Duration) -> Called<()> {
        let patch = json!({
            "metadata": {"resourceVersion": &*write.version},
            "status": status(&write.addresses),
        });
        let ingresses = self.ingresses(&write.key);
        let as_fairway =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
        let patch = Patch::Merge(patch);
        done(ask(patience, ingresses.patch_status(&write.key.name, &as_fairway, &patch)).await)
    }

    /// What is replaced is the whole object, so it is read whole before.
    async fn update(&self, write: &Write, patience: Duration) -> Called<()> {
        let ingresses = self.ingresses(&write.key);
        let found = match ask(patience, ingresses.get(&write.key.name)).await {
            Called::Good(found) => found,
            Called::Bad { code, reason } => return Called::Bad { code, reason },
        };
        if found.metadata.resource_version.as_deref() != Some(&*write.version) {
            return Called::Bad { code: Some(409), reason: "it has changed".to_owned() };
        }
        let mut found = found;
        found.data["status"] = status(&write.addresses);
        let Some(left) = self.leadership.remaining() else {
            return Called::Bad { code: None, reason: "the lead was lost".to_owned() };
        };
        let as_fairway =
            PostParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
        let update = ingresses.replace_status(&write.key.name, &as_fairway, &found);
        done(ask(left.min(PATIENCE), update).await)
    }

    /// The version of an Ingress as it is now, if it still has these addresses.
    pub(super) async fn version_with(
        &self,
        key: &ObjectKey,
        addresses: &[Address],
    ) -> Option<Arc<str>> {
        let Called::Good(found) = ask(PATIENCE, self.ingresses(key).get(&key.name)).await else {
            return None;
        };
        let ingress = objects::parse_ingress(&serde_json::to_string(&found).ok()?).ok()?;
        let theirs = super::address::sorted(ingress.addresses.clone());
        (theirs == addresses).then(|| ingress.meta.resource_version.clone())
    }

    /// Who wrote the status of an Ingress last, besides us.
    pub(super) async fn rival(&self, key: &ObjectKey) -> Option<String> {
        let Called::Good(found) = ask(PATIENCE, self.ingresses(key).get(&key.name)).await else {
            return None;
        };
        let entries = found.metadata.managed_fields.unwrap_or_default();
        let others = entries.into_iter().filter(|entry| {
            entry.subresource.as_deref() == Some("status")
                && entry.manager.as_deref() != Some(MANAGER)
        });
        others.max_by_key(|entry| entry.time.clone()).and_then(|entry| entry.manager)
    }

    /// Untyped, so that nothing is lost of an Ingress that has more fields than we know.
    fn ingresses(&self, key: &ObjectKey) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<Ingress>(&());
        Api::namespaced_with(self.client.clone(), &key.namespace, &kind)
    }
}

fn status(addresses: &[Address]) -> Value {
    let item = |(hostname, ip): &Address| {
        let mut item = serde_json::Map::new();
        for (name, value) in [("hostname", hostname), ("ip", ip)] {
            if let Some(value) = value {
                item.insert(name.to_owned(), Value::String(value.clone()));
            }
        }
        Value::Object(item)
    };
    json!({"loadBalancer": {"ingress": addresses.iter().map(item).collect::<Vec<_>>()}})
}

/// What was given back, or what became of it instead.
pub(super) fn outcome<T>(answer: Called<T>) -> Result<T, Outcome> {
    match answer {
        Called::Good(good) => Ok(good),
        Called::Bad { code: Some(404), .. } => Err(Outcome::Gone),
        Called::Bad { code: Some(409), .. } => Err(Outcome::Conflict),
        Called::Bad { code: Some(400 | 422), reason } => Err(Outcome::Refused(reason)),
        // Too many requests, and what stands for no answer: of the API server, or of what is before it.
        Called::Bad { code: None | Some(408 | 429 | 502 | 503 | 504), reason } => {
            Err(Outcome::Silent(reason))
        }
        Called::Bad { reason, .. } => Err(Outcome::Failed(reason)),
    }
}

fn is_forbidden<T>(answer: &Called<T>) -> bool {
    matches!(answer, Called::Bad { code: Some(403), .. })
}

/// Whether a policy says no: a ValidatingAdmissionPolicy by 422, a webhook without a code by 400. It may go, or be
/// about this one.
fn is_denied(reason: &str) -> bool {
    reason.contains(" denied request") || reason.contains(" denied the request")
}

/// Either verb would do, and the API server names the one that was tried first.
fn with_remedy(answer: Called<()>) -> Called<()> {
    match answer {
        Called::Bad { code, reason } => {
            let remedy = remedy(code, "patch (or get and update) of ingresses/status");
            Called::Bad { code, reason: reason + &remedy }
        }
        good => good,
    }
}

fn done<T>(answer: Called<T>) -> Called<()> {
    match answer {
        Called::Good(_) => Called::Good(()),
        Called::Bad { code, reason } => Called::Bad { code, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::{api_server, refusal};
    use super::{Leadership, ObjectKey, Outcome, Write, Writer, outcome};
    use crate::call::Called;
    use http::Method;
    use parking_lot::Mutex;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// The methods that an API server lets us use.
    type Rights = Arc<Mutex<BTreeSet<&'static str>>>;

    /// An API server that has one Ingress.
    async fn with_rights(rights: Rights) -> kube::Client {
        let object = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1"},
        });
        api_server(move |method, _, _| {
            if method == Method::GET || rights.lock().contains(method.as_str()) {
                (200, object.clone())
            } else {
                refusal(403, "no")
            }
        })
        .await
    }

    #[tokio::test]
    async fn what_is_forbidden_for_a_moment_or_for_one_ingress_takes_no_way_of_writing_away() {
        let rights = Rights::default();
        let allow = |methods: &[&'static str]| {
            *rights.lock() = methods.iter().copied().collect();
        };
        let writer = Writer::new(with_rights(rights.clone()).await, Leadership::always());
        let key = ObjectKey::new("shop", "web");
        let write = Write { key, version: "1".into(), addresses: Arc::default() };
        for (methods, is_written) in [
            (&[][..], false),
            // The rights of deploy/rbac.yaml, and those of ingress-nginx.
            (&["PATCH"], true),
            (&["PUT"], true),
            (&[], false),
            (&["PUT"], true),
            (&["PATCH"], true),
        ] {
            allow(methods);
            let outcome = writer.write(&write).await;
            assert_eq!(outcome == Outcome::Written, is_written, "{methods:?}: {outcome:?}");
            let is_forbidden = matches!(outcome, Outcome::Forbidden(_));
            assert_eq!(is_forbidden, methods.is_empty(), "{methods:?}: {outcome:?}");
        }
    }

    #[tokio::test]
    async fn what_a_policy_denies_is_forbidden_whatever_its_code_and_bad_addresses_are_not() {
        let policy = "ingresses.networking.k8s.io \"web\" is forbidden: ValidatingAdmissionPolicy 'frozen' with \
                      binding 'frozen' denied request: no";
        let webhook = "admission webhook \"frozen.test\" denied the request: no";
        let invalid = "Ingress.networking.k8s.io \"web\" is invalid: status.loadBalancer.ingress[0].ip: Invalid value";
        for (code, message, is_forbidden) in
            [(422, policy, true), (400, webhook, true), (403, webhook, true), (422, invalid, false)]
        {
            let client = api_server(move |_, _, _| refusal(code, message)).await;
            let key = ObjectKey::new("shop", "web");
            let write = Write { key, version: "1".into(), addresses: Arc::default() };
            let outcome = Writer::new(client, Leadership::always()).write(&write).await;
            assert_eq!(matches!(outcome, Outcome::Forbidden(_)), is_forbidden, "{outcome:?}");
            assert_eq!(matches!(outcome, Outcome::Refused(_)), !is_forbidden, "{outcome:?}");
        }
    }

    #[test]
    fn an_error_for_one_object_is_told_from_silence_for_all() {
        let of = |code| {
            outcome(Called::<()>::Bad { code, reason: String::new() }).expect_err("it is bad")
        };
        // What etcd says of an object that is too large, what a policy of admission says, a method that is not there.
        for code in [500, 403, 405, 413] {
            assert_eq!(of(Some(code)), Outcome::Failed(String::new()), "{code}");
        }
        for code in [None, Some(429), Some(503), Some(504)] {
            assert_eq!(of(code), Outcome::Silent(String::new()), "{code:?}");
        }
    }
}
