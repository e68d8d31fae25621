//! Authorities that certificates must descend from, as references to ConfigMaps name them.

use super::authority_files::{AuthorityFiles, Certificates};
use super::ungranted;
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
pub(super) type Found = (Certificates, Option<(&'static str, String)>);

impl Referring<'_> {
    /// Follows all references.
    pub(super) fn authorities(
        &self,
        named: &[ObjectRef],
        snapshot: &Snapshot,
        files: &mut AuthorityFiles,
    ) -> Found {
        let (mut all, mut wrong, mut bytes) = (Vec::<Certificates>::new(), None, 0);
        for one in named {
            match self.of(one, snapshot, files) {
                Ok(found) => {
                    bytes += found.iter().map(|der| der.len()).sum::<usize>();
                    all.push(found);
                }
                Err(why) => drop(wrong.get_or_insert(why)),
            }
            if bytes > BYTES {
                let message = format!(
                    "{}: authorities of more than {BYTES} bytes: name fewer of them",
                    self.field
                );
                return (Arc::default(), Some(("InvalidCACertificateRef", message)));
            }
        }
        let all = match &*all {
            // The usual one is held once, whoever names it.
            [one] => Arc::clone(one),
            all => all.iter().flat_map(|found| found.iter().cloned()).collect(),
        };
        (all, wrong)
    }

    fn of(
        &self,
        named: &ObjectRef,
        snapshot: &Snapshot,
        files: &mut AuthorityFiles,
    ) -> Result<Certificates, (&'static str, String)> {
        let (own, field) = (self.namespace, self.field);
        if !is_config_map(named) {
            let message = format!("{field}: kind {} is not known; name a ConfigMap", named.kind);
            return Err((self.unknown_kind, message));
        }
        let key = match self.kind {
            Some(_) => named.key(own),
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
        files.of(&key, snapshot).map_err(|why| {
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
    named.iter().filter(|one| is_config_map(one)).map(|one| one.key(own))
}
