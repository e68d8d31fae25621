//! The webhook's certificate where nobody else provides one: a Secret, and its authority in the webhook.

mod pair;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use objects::ObjectKey;
use pair::Pair;
use serde_json::json;
use std::collections::BTreeMap;
use thiserror::Error;

/// What there has to be.
#[derive(Clone, Debug)]
pub struct WebhookCertificate {
    /// The Secret that Pods mount, with the keys `ca`, `cert` and `key`.
    pub secret: ObjectKey,
    /// The names by which the API server calls the webhook.
    pub hosts: Vec<String>,
    /// The ValidatingWebhookConfiguration that has to believe it. Without one, only the Secret is seen to.
    pub webhook: Option<String>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was none, now there is one.
    Made,
    /// The one that was there is good.
    Kept,
    /// The one that was there was not good any more, and was replaced.
    Renewed,
}

/// What can go wrong.
#[derive(Debug, Error)]
pub enum Error {
    /// The API server said no, or nothing.
    #[error("cannot {attempted}")]
    Api {
        /// What was attempted.
        attempted: String,
        /// What it answered.
        source: Box<kube::Error>,
    },
    /// There is nothing that could believe the certificate.
    #[error(
        "there is no ValidatingWebhookConfiguration {0}; create it, or name another with --webhook"
    )]
    NoWebhook(String),
    /// No certificate can be made for these names.
    #[error("cannot make a certificate for {hosts}")]
    Unmakeable {
        /// The names.
        hosts: String,
        /// Why not.
        source: rcgen::Error,
    },
}

/// Sees to it that the certificate is there, is good, and is believed. Running it again changes nothing.
pub async fn ensure(client: kube::Client, wanted: &WebhookCertificate) -> Result<Outcome, Error> {
    let ObjectKey { namespace, name } = &wanted.secret;
    let place = Place {
        secrets: Api::namespaced(client.clone(), namespace),
        webhooks: Api::all(client),
        wanted,
    };
    let found = place.secrets.get_opt(name).await;
    let found = found.map_err(|error| place.failed("read", error))?;
    match found {
        None => place.make().await,
        Some(secret) => place.review(secret).await,
    }
}

struct Place<'a> {
    secrets: Api<Secret>,
    webhooks: Api<ValidatingWebhookConfiguration>,
    wanted: &'a WebhookCertificate,
}

impl Place<'_> {
    /// There is no Secret.
    async fn make(&self) -> Result<Outcome, Error> {
        let pair = Pair::make(&self.wanted.hosts)?;
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.wanted.secret.name.to_string()),
                ..ObjectMeta::default()
            },
            data: Some(bytes(&pair)),
            ..Secret::default()
        };
        match self.secrets.create(&PostParams::default(), &secret).await {
            Ok(_) => {}
            // Somebody was faster: theirs counts.
            Err(kube::Error::Api(refusal)) if refusal.code == 409 => {
                let theirs = self.secrets.get(&self.wanted.secret.name).await;
                let theirs = theirs.map_err(|error| self.failed("read", error))?;
                return Box::pin(self.review(theirs)).await;
            }
            Err(error) => return Err(self.failed("create", error)),
        }
        self.believe(&pair.authority).await?;
        Ok(Outcome::Made)
    }

    /// There is a Secret.
    async fn review(&self, mut secret: Secret) -> Result<Outcome, Error> {
        let old = Pair::of(secret.data.as_ref());
        match old {
            Some(old) if old.serves(&self.wanted.hosts) => {
                self.believe(&old.authority).await?;
                return Ok(Outcome::Kept);
            }
            // To renew what is in use takes both steps below; the run that can do both will.
            Some(_) if self.wanted.webhook.is_none() => return Ok(Outcome::Kept),
            _ => {}
        }
        let mut pair = Pair::make(&self.wanted.hosts)?;
        if let Some(old) = old {
            pair.believe_also(&old);
        }
        // In this order, and with both authorities, there is no moment at which the certificate in use is not believed.
        self.believe(&pair.authority).await?;
        secret.data.get_or_insert_default().extend(bytes(&pair));
        let name = &self.wanted.secret.name;
        let replaced = self.secrets.replace(name, &PostParams::default(), &secret).await;
        replaced.map_err(|error| self.failed("update", error))?;
        Ok(Outcome::Renewed)
    }

    /// Writes the authority into every webhook of the configuration that has another one.
    async fn believe(&self, authority: &str) -> Result<(), Error> {
        let Some(name) = &self.wanted.webhook else { return Ok(()) };
        let failed = |verb: &str, error| Error::Api {
            attempted: format!("{verb} ValidatingWebhookConfiguration {name}"),
            source: Box::new(error),
        };
        let found = self.webhooks.get_opt(name).await.map_err(|error| failed("read", error))?;
        let found = found.ok_or_else(|| Error::NoWebhook(name.clone()))?;
        let bundle = ByteString(authority.as_bytes().to_vec());
        let stale: Vec<_> = found
            .webhooks
            .iter()
            .flatten()
            .filter(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(&bundle))
            .map(|webhook| json!({"name": webhook.name, "clientConfig": {"caBundle": &bundle}}))
            .collect();
        if !stale.is_empty() {
            let patch = Patch::Strategic(json!({"webhooks": stale}));
            let patched = self.webhooks.patch(name, &PatchParams::default(), &patch).await;
            patched.map_err(|error| failed("patch", error))?;
        }
        Ok(())
    }

    fn failed(&self, verb: &str, error: kube::Error) -> Error {
        let ObjectKey { namespace, name } = &self.wanted.secret;
        let attempted = format!("{verb} Secret {namespace}/{name}");
        Error::Api { attempted, source: Box::new(error) }
    }
}

fn bytes(pair: &Pair) -> BTreeMap<String, ByteString> {
    let entries = [("ca", &pair.authority), ("cert", &pair.certificate), ("key", &pair.key)];
    let bytes = |text: &String| ByteString(text.as_bytes().to_vec());
    entries.map(|(name, text)| (name.to_owned(), bytes(text))).into()
}
