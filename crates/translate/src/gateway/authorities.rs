//! Authorities that certificates must descend from, as references to ConfigMaps name them.

use super::listeners::key_of;
use super::ungranted;
use crate::certificate;
use crate::settings::ABSENT;
use objects::gateway::ObjectRef;
use objects::{ObjectKey, Snapshot};
use std::sync::Arc;

/// Bytes of authorities (DER) at most that one place trusts.
const BYTES: usize = 256 * 1024;

/// Who refers to authorities, and what its mistakes are called.
pub(super) struct Referring<'a> {
    /// Whose ReferenceGrants count; none: only its own namespace does.
    pub(super) kind: Option<&'static str>,
    /// Its namespace.
    pub(super) namespace: &'a Arc<str>,
    /// The field.
    pub(super) field: &'static str,
    /// The reason for a kind that is not known.
    pub(super) unknown_kind: &'static str,
}

/// What references lead to: certificates in DER, and the first reference that is wrong. Those that are right count
/// without the others: fewer are trusted, never more.
pub(super) type Found = (Vec<Arc<[u8]>>, Option<(&'static str, String)>);

impl Referring<'_> {
    /// Follows all references.
    pub(super) fn authorities(&self, named: &[ObjectRef], snapshot: &Snapshot) -> Found {
        let (mut all, mut wrong, mut bytes) = (Vec::<Arc<[u8]>>::new(), None, 0);
        for one in named {
            match self.of(one, snapshot) {
                Ok(found) => {
                    bytes += found.iter().map(|der| der.len()).sum::<usize>();
                    all.extend(found);
                }
                Err(why) => drop(wrong.get_or_insert(why)),
            }
        }
        if bytes > BYTES {
            let message = format!(
                "{}: authorities of more than {BYTES} bytes: name fewer of them",
                self.field
            );
            return (Vec::new(), Some(("InvalidCACertificateRef", message)));
        }
        (all, wrong)
    }

    fn of(
        &self,
        named: &ObjectRef,
        snapshot: &Snapshot,
    ) -> Result<Vec<Arc<[u8]>>, (&'static str, String)> {
        let (own, field) = (self.namespace, self.field);
        if !is_config_map(named) {
            let message = format!("{field}: kind {} is not known; name a ConfigMap", named.kind);
            return Err((self.unknown_kind, message));
        }
        let key = match self.kind {
            Some(_) => key_of(named, own),
            None => ObjectKey::new(own.clone(), named.name.as_str()),
        };
        let ObjectKey { namespace, name } = &key;
        if let Some(kind) = self.kind.filter(|kind| !snapshot.grants.permit(kind, own, named)) {
            let remedy = ungranted::remedy(kind, own, named, snapshot);
            let message = format!(
                "{field}: ConfigMap {namespace}/{name} may not be referred to from namespace {own}: {remedy}"
            );
            return Err(("RefNotPermitted", message));
        }
        let text = snapshot.config_maps.get(&key).ok_or(ABSENT.to_owned());
        let text = text.and_then(|map| {
            let text = map.data.get("ca.crt").filter(|text| !text.trim().is_empty());
            text.ok_or("has no ca.crt: put the certificates of authorities there".to_owned())
        });
        let found = text.and_then(|text| certificate::roots(text.as_bytes()));
        found.map_err(|why| {
            ("InvalidCACertificateRef", format!("{field}: ConfigMap {namespace}/{name} {why}"))
        })
    }
}

fn is_config_map(named: &ObjectRef) -> bool {
    named.group.is_empty() && named.kind == "ConfigMap"
}

/// The ConfigMaps that references of an object in this namespace lead to.
pub(super) fn config_maps<'a>(
    named: &'a [ObjectRef],
    own: &'a Arc<str>,
) -> impl Iterator<Item = ObjectKey> + 'a {
    named.iter().filter(|one| is_config_map(one)).map(|one| key_of(one, own))
}
