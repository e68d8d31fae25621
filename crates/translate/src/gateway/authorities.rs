//! Authorities that certificates must descend from, as references to ConfigMaps name them.

use super::authority_files::{AuthorityFiles, Certificates};
use super::ungranted;
use crate::certificate::MOST_AUTHORITIES;
use objects::gateway::ObjectRef;
use objects::{ObjectKey, Snapshot};
use std::collections::HashSet;
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
        // A certificate that several have is held once.
        let mut known: HashSet<*const u8> = HashSet::new();
        for one in named {
            match self.of(one, snapshot, files) {
                Ok(found) => {
                    let news = found.iter().filter(|der| known.insert(der.as_ptr()));
                    bytes += news.map(|der| der.len()).sum::<usize>();
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
            if known.len() > MOST_AUTHORITIES {
                let message = format!(
                    "{}: {} authorities, and {MOST_AUTHORITIES} are the most: name fewer of them",
                    self.field,
                    known.len()
                );
                return (Arc::default(), Some(("InvalidCACertificateRef", message)));
            }
        }
        let all = match &*all {
            // The usual one is held once, whoever names it.
            [one] => Arc::clone(one),
            all => {
                let each = all.iter().flat_map(|found| found.iter());
                each.filter(|der| known.remove(&der.as_ptr())).cloned().collect()
            }
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

#[cfg(test)]
mod tests {
    use super::{AuthorityFiles, Referring};
    use objects::gateway::ObjectRef;
    use objects::{ConfigMap, Meta, ObjectKey, Snapshot};
    use std::sync::Arc;

    /// Authorities in PEM, as short as they can be.
    fn short(numbers: std::ops::Range<u64>) -> String {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("keys can be made");
        let one = |number: u64| {
            let mut params = rcgen::CertificateParams::default();
            params.serial_number = Some(number.into());
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.self_signed(&key).expect("certificates can be made").pem()
        };
        numbers.map(one).collect()
    }

    fn found(maps: &[&str]) -> (usize, String) {
        let mut snapshot = Snapshot::default();
        let mut named = Vec::new();
        for (number, text) in maps.iter().enumerate() {
            let key = ObjectKey::new("a", format!("m{number}"));
            let name = key.name.to_string();
            let data = [("ca.crt".to_owned(), (*text).to_owned())].into();
            let meta = Meta { key: key.clone(), ..Meta::default() };
            snapshot.config_maps.insert(key, Arc::new(ConfigMap { meta, data }));
            let (group, kind) = ("".into(), "ConfigMap".into());
            named.push(ObjectRef { group, kind, namespace: None, name });
        }
        let namespace = Arc::from("a");
        let referring = Referring {
            kind: None,
            namespace: &namespace,
            field: "spec.validation.caCertificateRefs",
            unknown_kind: "InvalidKind",
        };
        let files = &mut AuthorityFiles::default();
        let (all, wrong) = referring.authorities(&named, &snapshot, files);
        (all.len(), wrong.map(|(_, message)| message).unwrap_or_default())
    }

    #[test]
    fn more_authorities_than_connections_are_judged_by_are_not_trusted() {
        let (few, many) = (short(0..600), short(600..1001));
        assert_eq!(found(&[&few, &few]), (600, String::new()), "each counts once");
        let (trusted, why) = found(&[&few, &many]);
        assert_eq!(trusted, 0, "{why}");
        assert!(
            why.contains("caCertificateRefs: 1001 authorities, and 1000 are the most"),
            "{why}"
        );
        let (trusted, why) = found(&[&[few, many].concat()]);
        assert_eq!(trusted, 0, "{why}");
        assert!(why.contains("ConfigMap a/m0 has 1001 authorities in ca.crt, and 1000"), "{why}");
    }
}
