//! The certificate that a listener shows: the first of those that it names. The others are judged, too, since whoever
//! wrote them believes that they are shown.

use super::ungranted;
use crate::settings::ABSENT;
use objects::gateway::{Listener, ObjectRef};
use objects::{ObjectKey, Snapshot};

/// Whether a Secret holds a certificate: what is said of it all the same, or why it is none.
pub(super) type Certified<'a> = &'a mut dyn FnMut(&ObjectKey) -> Result<Option<String>, String>;

/// Reason and message.
type Why = (&'static str, String);

/// What a listener shows.
pub(super) struct Shown {
    /// Its certificate.
    pub(super) secret: ObjectKey,
    /// What is wrong with others that it names.
    pub(super) unshown: Option<Why>,
    /// What its owner is told, though it is served.
    pub(super) warning: Option<String>,
}

/// The certificate of a listener that is written in an object of this kind and namespace, or why it has none.
pub(super) fn of(
    listener: &Listener,
    from: (&'static str, &str),
    snapshot: &Snapshot,
    certified: Certified<'_>,
) -> Result<Shown, Why> {
    let named = listener.tls.iter().flat_map(|tls| &tls.certificates);
    let Some(first) = named.clone().next() else {
        return Err(wrong("tls.certificateRefs is empty: name a Secret"));
    };
    let secret = lent(first, from, snapshot)?;
    let of_it = |why: String| format!("Secret {}/{} {why}", secret.namespace, secret.name);
    let costly = certified(&secret).map_err(|why| wrong(&of_it(why)))?.map(of_it);
    let number = named.clone().count();
    let unshown = named.skip(1).find_map(|named| usable(named, from, snapshot).err());
    let alone = (number > 1).then(|| {
        format!("of its {number} certificateRefs the first alone is shown: name no other one")
    });
    let told: Vec<String> = costly.into_iter().chain(alone).collect();
    let warning = (!told.is_empty()).then(|| told.join("; "));
    Ok(Shown { secret, unshown, warning })
}

pub(super) fn is_secret(named: &ObjectRef) -> bool {
    named.group.is_empty() && named.kind == "Secret"
}

fn wrong(message: &str) -> Why {
    ("InvalidCertificateRef", message.to_owned())
}

/// The Secret that a reference means, if whoever refers to it may.
fn lent(
    named: &ObjectRef,
    (kind, own): (&'static str, &str),
    snapshot: &Snapshot,
) -> Result<ObjectKey, Why> {
    if !is_secret(named) {
        return Err(wrong("tls.certificateRefs may name Secrets only"));
    }
    let key = named.key(&own.into());
    if snapshot.grants.permit(kind, own, named) {
        return Ok(key);
    }
    let message = format!(
        "Secret {}/{} may not be referred to from namespace {own}: {}",
        key.namespace,
        key.name,
        ungranted::remedy(kind, own, named, snapshot)
    );
    Err(("RefNotPermitted", message))
}

/// Whether a reference leads to a Secret, which nobody shows: what is in it is not read. Of ListenerSets the Secrets
/// behind it are not kept: whether they are there is not known.
fn usable(named: &ObjectRef, from: (&'static str, &str), snapshot: &Snapshot) -> Result<(), Why> {
    let key = lent(named, from, snapshot)?;
    if from.0 != "Gateway" {
        return Ok(());
    }
    let absent = || wrong(&format!("Secret {}/{} {ABSENT}", key.namespace, key.name));
    snapshot.secrets.contains_key(&key).then_some(()).ok_or_else(absent)
}
