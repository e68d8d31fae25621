//! Certificates that were parsed once and stay until their Secret changes or nobody refers to it.

use crate::certificate::{self, Judged};
use crate::settings::no_secret;
use model::Message;
use objects::{ObjectKey, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

type Parsed = Result<Arc<Judged>, Message>;

/// Certificates that were parsed once.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    parsed: BTreeMap<ObjectKey, Parsed>,
}

impl Certificates {
    /// The certificate in a Secret, or what is wrong with it.
    pub(super) fn get(&mut self, secret: &ObjectKey, snapshot: &Snapshot) -> Parsed {
        if let Some(parsed) = self.parsed.get(secret) {
            return parsed.clone();
        }
        let parsed = parse(secret, snapshot);
        self.parsed.insert(secret.clone(), parsed.clone());
        parsed
    }

    /// Looks at a changed Secret again; returns whether hosts may choose otherwise now, or are told something else.
    pub(super) fn refresh(&mut self, secret: &ObjectKey, snapshot: &Snapshot) -> bool {
        let Some(before) = self.parsed.get_mut(secret) else { return false };
        let now = parse(secret, snapshot);
        let same = match (&*before, &now) {
            (Ok(before), Ok(now)) => {
                before.certificate.names == now.certificate.names && before.said() == now.said()
            }
            (Err(before), Err(now)) => before == now,
            _ => false,
        };
        *before = now;
        !same
    }

    /// Forgets a Secret that nobody refers to.
    pub(super) fn forget(&mut self, secret: &ObjectKey) {
        self.parsed.remove(secret);
    }
}

fn parse(secret: &ObjectKey, snapshot: &Snapshot) -> Parsed {
    match snapshot.secrets.get(secret) {
        Some(found) => certificate::served(found).map(Judged::of).map(Arc::new),
        None => Err(no_secret(secret, &snapshot.malformed).into()),
    }
}
