//! The names that upstreams of a Configuration stand for (ExternalName Services), so that nginx only ever has
//! addresses. They are followed beside everything else: nobody waits for a name server, but shortly for a name that is
//! new.

use model::{Configuration, Endpoints, Upstream, UpstreamId};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stream::{Following, Resolver};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long names that are new are waited for, all together, so that an ordinary change has its endpoints at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whose it is, its host, and a port. Namespaces share no name: with one that has thousands each is looked up rarely.
type Name = (Arc<str>, (String, u16));

/// The endpoints of names; none until a name was looked up for the first time.
pub(crate) type Known = BTreeMap<Name, Option<Arc<Endpoints>>>;

/// Endpoints of upstreams that stand for names.
pub(crate) type Resolved = BTreeMap<UpstreamId, Arc<Endpoints>>;

/// What is known of names.
#[derive(Debug)]
pub(crate) struct Names {
    resolver: Arc<Resolver>,
    followed: Mutex<BTreeMap<Name, Following>>,
    known: watch::Sender<Known>,
}

impl Names {
    /// Knows none yet.
    pub(crate) fn new(resolver: Arc<Resolver>) -> Self {
        Self { resolver, followed: Mutex::default(), known: watch::Sender::default() }
    }

    /// Who looks them up.
    pub(crate) fn resolver(&self) -> &Arc<Resolver> {
        &self.resolver
    }

    /// Follows the names of a Configuration too. Returns when those that are new were looked up, or after [`PATIENCE`].
    pub(crate) async fn follow(&self, configuration: &Configuration) {
        let new = self.begin(configuration);
        if new.is_empty() {
            return;
        }
        let mut changes = self.known.subscribe();
        let all = |known: &Known| new.iter().all(|name| known.get(name) != Some(&None));
        if timeout(PATIENCE, changes.wait_for(all)).await.is_err() {
            tracing::debug!(?new, "not all of these names are known yet");
        }
    }

    /// Begins to follow the names that are not followed yet, and says which these are.
    fn begin(&self, configuration: &Configuration) -> Vec<Name> {
        let mut followed = self.followed.lock();
        let mut new = Vec::new();
        for upstream in configuration.upstreams.values() {
            let Some(name) = name(upstream) else { continue };
            if followed.contains_key(&name) {
                continue;
            }
            self.known.send_if_modified(|known| known.insert(name.clone(), None).is_some());
            let note = self.note(name.clone());
            let following = self.resolver.follow(&name.0, name.1.clone(), note);
            followed.insert(name.clone(), following);
            new.push(name);
        }
        new
    }

    /// What keeps the answers for a name, and tells of those that differ.
    fn note(&self, name: Name) -> impl Fn(Arc<Endpoints>) + Send + 'static {
        let known = self.known.clone();
        move |endpoints| {
            known.send_if_modified(|known| match known.get_mut(&name) {
                Some(before) if before.as_ref() != Some(&endpoints) => {
                    *before = Some(endpoints);
                    true
                }
                _ => false,
            });
        }
    }

    /// Forgets the names that a Configuration does not have.
    pub(crate) fn keep(&self, configuration: &Configuration) {
        let wanted: BTreeSet<Name> = names(configuration).collect();
        let mut followed = self.followed.lock();
        followed.retain(|name, _| wanted.contains(name));
        self.known.send_if_modified(|known| {
            known.retain(|name, _| wanted.contains(name));
            false
        });
    }

    /// The endpoints of all upstreams that stand for names, as far as they are known.
    pub(crate) fn resolved(&self, configuration: &Configuration) -> Resolved {
        let named = configuration.upstreams.iter().filter(|(_, one)| one.external.is_some());
        named.map(|(id, upstream)| (id.clone(), self.endpoints(upstream))).collect()
    }

    /// The endpoints of an upstream, whether it stands for a name or not.
    pub(crate) fn endpoints(&self, upstream: &Upstream) -> Arc<Endpoints> {
        match name(upstream) {
            Some(name) => self.known.borrow().get(&name).cloned().flatten().unwrap_or_default(),
            None => upstream.endpoints.clone(),
        }
    }

    /// Tells when endpoints differ from those before.
    pub(crate) fn changes(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }
}

fn names(configuration: &Configuration) -> impl Iterator<Item = Name> {
    configuration.upstreams.values().filter_map(|upstream| name(upstream))
}

/// The name that an upstream stands for.
fn name(upstream: &Upstream) -> Option<Name> {
    Some((upstream.namespace.clone(), upstream.external.clone()?))
}
