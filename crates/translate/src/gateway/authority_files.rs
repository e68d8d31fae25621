//! ConfigMaps with authorities: each is read once for each of its versions, however many policies and listeners name
//! it, and a certificate that several have is held once.

use crate::certificate;
use crate::settings::ABSENT;
use objects::{ConfigMap, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Certificates of authorities in DER.
pub(super) type Certificates = Arc<[Arc<[u8]>]>;

/// What was read of ConfigMaps.
#[derive(Debug, Default)]
pub(super) struct AuthorityFiles {
    read: BTreeMap<ObjectKey, Read>,
    known: BTreeSet<Arc<[u8]>>,
}

/// One version of a ConfigMap, and its certificates or what is wrong with it.
#[derive(Debug)]
struct Read {
    map: Arc<ConfigMap>,
    found: Result<Certificates, String>,
}

impl AuthorityFiles {
    /// The certificates in a ConfigMap. The error completes a sentence that begins with it.
    pub(super) fn of(
        &mut self,
        key: &ObjectKey,
        snapshot: &Snapshot,
    ) -> Result<Certificates, String> {
        let map = snapshot.config_maps.get(key).ok_or(ABSENT.to_owned())?;
        if let Some(read) = self.read.get(key).filter(|read| Arc::ptr_eq(&read.map, map)) {
            return read.found.clone();
        }
        let found = certificates(map).map(|all| all.into_iter().map(|der| self.one(der)).collect());
        let read = Read { map: Arc::clone(map), found: found.clone() };
        self.read.insert(key.clone(), read);
        found
    }

    fn one(&mut self, der: Arc<[u8]>) -> Arc<[u8]> {
        if let Some(known) = self.known.get(&*der) {
            return Arc::clone(known);
        }
        self.known.insert(Arc::clone(&der));
        der
    }

    /// Forgets those of ConfigMaps that changed or went; who still names one asks for it again.
    pub(super) fn forget(&mut self, changed: &BTreeSet<ObjectKey>) {
        if changed.is_empty() {
            return;
        }
        changed.iter().for_each(|key| drop(self.read.remove(key)));
        self.known.retain(|der| Arc::strong_count(der) > 1);
    }
}

fn certificates(map: &ConfigMap) -> Result<Vec<Arc<[u8]>>, String> {
    let text = map.data.get("ca.crt").filter(|text| !text.trim().is_empty());
    let text = text.ok_or("has no ca.crt: put the certificates of authorities there")?;
    certificate::roots(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::AuthorityFiles;
    use objects::{ConfigMap, Meta, ObjectKey, Snapshot};
    use std::sync::Arc;

    fn with(snapshot: &Snapshot, name: &str, text: &str) -> Snapshot {
        let meta = Meta { key: ObjectKey::new("a", name), ..Meta::default() };
        let data = [("ca.crt".to_owned(), text.to_owned())].into();
        let mut snapshot = snapshot.clone();
        let map = ConfigMap { meta, data };
        snapshot.config_maps.insert(ObjectKey::new("a", name), Arc::new(map));
        snapshot
    }

    #[test]
    fn a_version_is_read_once_and_a_certificate_held_once() {
        let made =
            rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
        let pem = made.cert.pem();
        let snapshot = with(&with(&Snapshot::default(), "one", &pem), "two", &pem.repeat(2));
        let mut files = AuthorityFiles::default();
        let [one, two] = ["one", "two"].map(|name| ObjectKey::new("a", name));
        let first = files.of(&one, &snapshot).expect("it has one");
        assert!(Arc::ptr_eq(&first, &files.of(&one, &snapshot).expect("it has one")));
        let both = files.of(&two, &snapshot).expect("it has two");
        assert!(both.iter().all(|der| Arc::ptr_eq(der, &first[0])));
        // Another version is read anew, and what nobody has any more is forgotten.
        let changed = with(&with(&snapshot, "one", "none"), "two", "none");
        drop((first, both));
        files.forget(&[one.clone()].into());
        assert!(files.read.len() == 1 && files.known.len() == 1, "{files:?}");
        files.forget(&[two].into());
        assert!(files.read.is_empty() && files.known.is_empty(), "{files:?}");
        assert!(files.of(&one, &changed).is_err_and(|why| why.contains("ca.crt")));
        assert!(files.of(&ObjectKey::new("a", "three"), &changed).is_err());
    }
}
