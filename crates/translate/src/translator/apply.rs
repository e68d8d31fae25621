//! Making again what was touched: drafts of Ingresses, then upstreams, servers, certificates, lists of faults.

use super::{Cluster, Finder, Translator, Work};
use crate::budget::{Budget, Left, Versions};
use crate::endpoint_budget::too_many;
use crate::host;
use crate::ingress::{
    Context, Draft, Drafts, Ground, Standing, Target, is_meant_alike, is_ours, origin, references,
};
use crate::kinds::kind_of;
use crate::settings::Scope;
use crate::upstream::{self, Behind};
use model::{
    Backend, CertificateId, Kind, Origin, Problem, Server, ServerName, Severity, Upstream,
};
use objects::{Asks, Ingress, ObjectKey, Reference, interleaved};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

impl Translator {
    /// Problems of what could not even be read.
    pub(super) fn take_malformed(&mut self, keys: &[Arc<str>]) {
        for key in keys {
            let found = self.snapshot.malformed.get(key).map(|malformed| {
                let kind = malformed.kind.map_or(Kind::File, kind_of);
                let ObjectKey { namespace, name } = malformed.key.clone();
                let message = malformed.message.as_str().into();
                Problem {
                    origin: Origin { kind, namespace, name },
                    key: None,
                    severity: Severity::Error,
                    message,
                }
            });
            self.ledger.set(Finder::Malformed(Arc::clone(key)), found.into_iter().collect());
        }
    }

    /// Reads the touched Ingresses again, and those that have to wait now or need not any longer. A version that was
    /// kept and is served no more leaves room for others, hence the second turn.
    pub(super) fn take_ingresses(&mut self, ground: &Ground, work: &mut Work) {
        let budget = self.options.namespace_budget.with(&ground.permissions.budget);
        work.weighed.extend(work.ingresses.iter().cloned());
        let mut namespaces = self.budgets.take_unfinished();
        while !work.weighed.is_empty() || !namespaces.is_empty() {
            for key in interleaved(std::mem::take(&mut work.weighed)) {
                self.weigh(&key, work.refused.contains(&key));
                namespaces.insert(key.namespace);
            }
            for namespace in std::mem::take(&mut namespaces) {
                // nginx would have to read its configuration anew for each portion.
                let news = self.budgets.admit(&namespace, &budget, !self.options.raw);
                work.ingresses.extend(news);
            }
            self.make_drafts(ground, work);
        }
    }

    /// `is_refused`: whether the current version is known not to be taken.
    fn weigh(&mut self, key: &ObjectKey, is_refused: bool) {
        let ours = |ingress: &&Arc<Ingress>| is_ours(ingress, &self.classes, &self.options);
        let current = self.snapshot.ingresses.get(key).filter(ours);
        let last = self.last_valid(key).cloned();
        let waits = self.budgets.is_waiting(key);
        let is_other = |last: &&Ingress, current: &Ingress| {
            last.meta.uid == current.meta.uid
                && !last.asks_the_same_as(current)
                // It must not weigh on one that may fit, unless that is not taken.
                && (!waits || is_refused)
        };
        let versions = current.map(|current| Versions {
            current,
            kept: last.as_deref().filter(|last| is_other(last, current)),
        });
        self.budgets.weigh(key, versions, &self.snapshot, &self.options);
    }

    /// Reads the touched Ingresses again.
    pub(super) fn make_drafts(&mut self, ground: &Ground, work: &mut Work) {
        for key in interleaved(std::mem::take(&mut work.ingresses)) {
            let waits = self.budgets.waits(&key);
            let before = self.last_valid(&key).cloned();
            let (draft, aside) = match &waits {
                Some((problem, left)) => (
                    self.waiting(&key, ground, problem, *left),
                    // What is too large to be kept closed is not read, either.
                    self.put_aside(&key, before.as_ref(), ground, |_, _| {
                        matches!(left, Left::Closed { .. })
                    }),
                ),
                None => self.draft(&key, ground, before.as_ref()),
            };
            let draft = draft.map(Arc::new);
            let taken = draft.as_ref().filter(|draft| is_taken(draft)).map(|draft| &draft.ingress);
            let last = taken.or(aside.as_ref());
            if waits.is_none() && last.is_some_and(|last| self.is_earlier(&key, last)) {
                // Of who has waited it has not weighed.
                if work.refused.insert(key.clone()) {
                    work.weighed.insert(key.clone());
                }
            } else if before.is_some()
                && (last != before.as_ref() || waits.is_some() && !work.refused.contains(&key))
            {
                work.weighed.insert(key.clone());
            }
            match aside {
                Some(aside) => drop(self.aside.insert(key.clone(), aside)),
                None => drop(self.aside.remove(&key)),
            }
            if let Some(old) = self.drafts.remove(&key) {
                self.take_out(&key, &old, work);
            }
            let problems = match &draft {
                Some(draft) => draft.problems.clone(),
                None => waits.into_iter().map(|(problem, _)| problem).collect(),
            };
            self.ledger.set(Finder::Ingress(key.clone()), problems);
            match draft {
                Some(draft) => self.put_in(key, draft, work),
                None => {
                    // What waits is weighed with its Secrets.
                    let ours =
                        |ingress: &&Arc<Ingress>| is_ours(ingress, &self.classes, &self.options);
                    let current = self.snapshot.ingresses.get(&key).filter(ours);
                    let found = current.map(|waiting| references(waiting, &self.options));
                    self.refer(&key, found.unwrap_or_default());
                }
            }
        }
    }

    /// The last valid version of an Ingress of which nothing is served now: it waits for room, or its class is gone.
    /// The current one takes its place where it would be taken: else a mistake behind that would bring back what had
    /// fewer guards. `counts`: whether the current one is a later version of the last, which may be read; of any other
    /// nothing is known.
    fn put_aside(
        &self,
        key: &ObjectKey,
        last: Option<&Arc<Ingress>>,
        ground: &Ground,
        counts: impl Fn(&Ingress, &Ingress) -> bool,
    ) -> Option<Arc<Ingress>> {
        let current = self.snapshot.ingresses.get(key)?;
        let last = last.filter(|last| last.meta.uid == current.meta.uid)?;
        if last.asks_the_same_as(current) {
            return Some(Arc::clone(last));
        }
        if !counts(last, current) {
            return None;
        }
        let is_valid = is_taken(&Draft::read(current, self.context(ground)));
        Some(Arc::clone(if is_valid { current } else { last }))
    }

    /// Whether a version of an Ingress is none that is there.
    fn is_earlier(&self, key: &ObjectKey, version: &Arc<Ingress>) -> bool {
        let current = self.snapshot.ingresses.get(key);
        current.is_some_and(|current| !Arc::ptr_eq(current, version))
    }

    /// The last version of an Ingress that was taken, or would have been.
    fn last_valid(&self, key: &ObjectKey) -> Option<&Arc<Ingress>> {
        let served = self.drafts.get(key).filter(|draft| is_taken(draft));
        served.map(|draft| &draft.ingress).or_else(|| self.aside.get(key))
    }

    /// What an Ingress asks for; where its current version is not taken, what its last valid one did. And that one,
    /// where it is not taken, either, for now.
    fn draft(
        &self,
        key: &ObjectKey,
        ground: &Ground,
        last_valid: Option<&Arc<Ingress>>,
    ) -> (Option<Draft>, Option<Arc<Ingress>>) {
        let ours = |ingress: &&Arc<Ingress>| is_ours(ingress, &self.classes, &self.options);
        let Some(current) = self.snapshot.ingresses.get(key).filter(ours) else {
            // What is another controller's, or refused as it is, was never to be served here.
            let counts =
                |last: &Ingress, current: &Ingress| is_meant_alike(last, current, &self.options);
            return (None, self.put_aside(key, last_valid, ground, counts));
        };
        let context = self.context(ground);
        let draft = Draft::read(current, context);
        let uid = &current.meta.uid;
        let is_other = |last: &&Arc<Ingress>| draft.refused && last.meta.uid == *uid;
        let Some(kept) = last_valid.filter(is_other).filter(|_| !is_taken(&draft)) else {
            return (Some(draft), None);
        };
        let mut last = Draft::read(kept, context);
        if !is_taken(&last) {
            return (Some(draft), Some(Arc::clone(kept)));
        }
        last.problems = draft.problems;
        last.problems.push(Problem {
            origin: origin(key),
            key: None,
            severity: Severity::Error,
            message: "the current version is not taken: the last valid one stays served until it is mended".into(),
        });
        (Some(last), None)
    }

    /// What an Ingress is read with.
    fn context<'a>(&'a self, ground: &'a Ground) -> Context<'a> {
        let scope = Scope::new(&self.options, &self.snapshot, &self.files);
        let scope = Scope {
            has_databases: ground.global.geoip2,
            snippets: Some(&*ground.snippets).filter(|_| !self.options.raw),
            ..ground.permissions.within(scope)
        };
        Context { deep_inspect: self.options.deep_inspect, scope, ground }
    }

    /// What an Ingress that waits for room closes.
    fn waiting(
        &self,
        key: &ObjectKey,
        ground: &Ground,
        problem: &Problem,
        left: Left,
    ) -> Option<Draft> {
        let Left::Closed { certificates } = left else { return None };
        let ours = |ingress: &&Arc<Ingress>| is_ours(ingress, &self.classes, &self.options);
        let current = self.snapshot.ingresses.get(key).filter(ours)?;
        Draft::waiting(current, self.context(ground), problem.clone(), certificates)
    }

    fn take_out(&mut self, key: &ObjectKey, draft: &Draft, work: &mut Work) {
        self.served.remove(key);
        self.kept.remove(key);
        for server in draft.servers() {
            if let Some(drafts) = self.hosts.get_mut(&server) {
                drafts.remove(draft);
                if drafts.is_empty() {
                    self.hosts.remove(&server);
                }
            }
            work.hosts.insert(server);
        }
        for target in draft.targets() {
            let renamed = self.users.remove(target, key);
            self.rename(target, renamed, work);
        }
        work.backends.insert(key.clone());
    }

    fn put_in(&mut self, key: ObjectKey, draft: Arc<Draft>, work: &mut Work) {
        for server in draft.servers() {
            self.hosts.entry(server.clone()).or_default().insert(Arc::clone(&draft));
            work.hosts.insert(server);
        }
        for target in draft.targets() {
            let renamed = self.users.add(target, &key);
            self.rename(target, renamed, work);
        }
        // Both the version that is served and the one that is not may be mended by a Secret.
        let mut found = references(&draft.ingress, &self.options);
        if let Some(current) = self
            .snapshot
            .ingresses
            .get(&key)
            .filter(|current| !Arc::ptr_eq(current, &draft.ingress))
        {
            found.extend(references(current, &self.options));
            self.kept.insert(key.clone(), Arc::clone(&draft.ingress));
        }
        self.refer(&key, found);
        work.backends.insert(key.clone());
        if is_taken(&draft) {
            self.served.insert(key.clone());
        }
        self.drafts.insert(key, draft);
    }

    /// Notes what an Ingress refers to, and forgets certificates that nobody refers to any more.
    fn refer(&mut self, key: &ObjectKey, references: Vec<Reference>) {
        let before = self.references.references_of(key).to_vec();
        self.references.set(key.clone(), references);
        for reference in before {
            if let Reference::Secret(secret) = &reference
                && !self.references.is_referenced(&reference)
                && self.options.default_ssl_certificate.as_ref() != Some(secret)
            {
                self.certificates.forget(secret);
            }
        }
    }

    /// Where two targets would have the same upstream's name, all that use them are touched.
    pub(super) fn rename(&self, target: &Target, renamed: Vec<Target>, work: &mut Work) {
        if renamed.len() > 1 {
            for user in renamed.iter().flat_map(|target| self.users.of(target)) {
                work.hosts.extend(self.drafts.get(user).iter().flat_map(|draft| draft.servers()));
            }
        }
        work.targets.extend(renamed);
        work.targets.insert(target.clone());
    }

    /// Weighs the lists of endpoints of the touched targets; those that stay empty now, or need not any longer, are
    /// touched.
    pub(super) fn weigh_lists(&mut self, budget: &Budget, work: &mut Work) {
        for target in &work.targets {
            let Some(service) = target.service() else { continue };
            let weight = upstream::weight(target, &self.snapshot);
            let weight = weight.filter(|_| self.users.is_used(target));
            self.lists.weigh(&service.namespace, target, weight);
        }
        work.targets.extend(self.lists.admit(budget.endpoints()));
    }

    /// Who is behind a target, unless it has to wait.
    fn behind(&self, target: &Target) -> Behind {
        match target.service() {
            Some(service) if self.lists.waits(&service.namespace, target) => {
                Behind::nobody(too_many(service))
            }
            _ => upstream::behind(target, &self.snapshot, &self.options),
        }
    }

    /// Looks again who is behind the touched targets.
    pub(super) fn make_upstreams(&mut self, work: &mut Work) {
        let targets = std::mem::take(&mut work.targets);
        for target in &targets {
            let kept = self.users.is_used(target).then(|| self.users.id(target));
            if let Some(name) =
                self.names.get(target).filter(|name| Some(*name) != kept.as_ref()).cloned()
            {
                self.names.remove(target);
                self.configuration.upstreams.remove(&name);
            }
        }
        let mut default_backend = self.default_backend.clone();
        for target in targets {
            let behind = self.behind(&target);
            let used = self.users.is_used(&target);
            let fault = behind.fault.filter(|_| used);
            if self.faults.get(&target) != fault.as_ref() {
                work.backends.extend(self.users.of(&target).cloned());
            }
            match fault {
                Some(fault) => drop(self.faults.insert(target.clone(), fault)),
                None => drop(self.faults.remove(&target)),
            }
            if !used {
                continue;
            }
            let id = self.users.id(&target);
            if matches!(target, Target::Default(_)) {
                let is_empty = behind.endpoints.usable().is_empty() && behind.external.is_none();
                default_backend =
                    if is_empty { Backend::NotFound } else { Backend::Upstream(id.clone()) };
            }
            let upstream = Upstream {
                id: id.clone(),
                endpoints: Arc::new(behind.endpoints),
                external: behind.external,
                namespace: target.service().map(|key| key.namespace.clone()).unwrap_or_default(),
            };
            if self.configuration.upstreams.get(&id).is_none_or(|old| **old != upstream) {
                self.configuration.upstreams.insert(id.clone(), Arc::new(upstream));
            }
            self.names.insert(target, id);
        }
        if default_backend != self.default_backend {
            self.default_backend = default_backend;
            work.hosts.extend(self.hosts.keys().cloned());
            work.hosts.insert(ServerName::catch_all());
        }
    }

    /// Makes the touched servers.
    pub(super) fn make_servers(&mut self, ground: &Ground, work: &mut Work) {
        let nobody = Drafts::default();
        let mut sections = HashMap::new();
        for name in interleaved(std::mem::take(&mut work.hosts)) {
            let drafts = self.hosts.get(&name);
            // A canary alone makes no server.
            let creates = |draft: &Arc<Draft>| draft.standing != Standing::Canary;
            let is_served = name == ServerName::catch_all()
                || drafts.is_some_and(|drafts| drafts.values().any(creates));
            let (server, problems) = if is_served {
                let mut cluster = Cluster {
                    users: &self.users,
                    certificates: &mut self.certificates,
                    snapshot: &self.snapshot,
                    sections: &mut sections,
                };
                let drafts = drafts.unwrap_or(&nobody);
                let (mut server, mut problems) =
                    host::server(&name, drafts, ground, &self.default_backend, &mut cluster);
                problems.extend(self.names_of_hosts.name(
                    &mut server,
                    drafts,
                    ground.permissions.cross_namespace,
                    &self.options.annotations_prefix,
                ));
                (Some(server), problems)
            } else {
                (None, host::beside_nobody(&name, drafts.unwrap_or(&nobody)))
            };
            self.ledger.set(Finder::Host(name.clone()), problems);
            self.replace(name, server, work);
        }
    }

    fn replace(&mut self, name: ServerName, server: Option<Server>, work: &mut Work) {
        let old = self.configuration.servers.get(&name).cloned();
        if old.as_deref() == server.as_ref() {
            return;
        }
        let certificate = |server: Option<&Server>| {
            server.and_then(|server| secret_of(server.certificate.as_ref()?))
        };
        let before = certificate(old.as_deref());
        let now = certificate(server.as_ref());
        if before != now {
            if let Some(secret) = before {
                if let Some(count) = self.certificate_users.get_mut(&secret) {
                    *count -= 1;
                    if *count == 0 {
                        self.certificate_users.remove(&secret);
                    }
                }
                work.certificates.insert(secret);
            }
            if let Some(secret) = now {
                *self.certificate_users.entry(secret.clone()).or_default() += 1;
                work.certificates.insert(secret);
            }
        }
        match server {
            Some(server) => self.configuration.servers.insert(name, Arc::new(server)),
            None => self.configuration.servers.remove(&name),
        };
    }

    /// Puts in and takes out the certificates that servers name.
    pub(super) fn make_certificates(&mut self, work: &Work) {
        for secret in &work.certificates {
            let is_default = self.options.default_ssl_certificate.as_ref() == Some(secret);
            let is_used = is_default
                || self.certificate_users.contains_key(secret)
                || self.gateway.secrets.contains(secret);
            let found = is_used.then(|| self.certificates.get(secret, &self.snapshot));
            let certificates = &mut self.configuration.certificates;
            match &found {
                Some(Ok(judged)) => {
                    let certificate = &judged.certificate;
                    if certificates.get(&certificate.id).is_none_or(|old| **old != **certificate) {
                        certificates.insert(certificate.id.clone(), Arc::clone(certificate));
                    }
                }
                Some(Err(_)) | None => drop(certificates.remove(&id_of(secret))),
            }
            if is_default {
                let wrong = found.as_ref().and_then(|found| found.as_ref().err());
                self.configuration.default_certificate = wrong.is_none().then(|| id_of(secret));
                let problem = wrong.map(|wrong| Problem {
                    origin: Origin::new(Kind::Secret, Arc::clone(&secret.namespace), Arc::clone(&secret.name)),
                    key: Some("--default-ssl-certificate".to_owned()),
                    severity: Severity::Error,
                    message: format!("the Secret {wrong}; until then the default certificate is a self-signed one").into(),
                });
                self.ledger.set(Finder::DefaultCertificate, problem.into_iter().collect());
            }
        }
    }

    /// Lists the faults behind the backends of the touched Ingresses.
    pub(super) fn list_faults(&mut self, work: &Work) {
        for key in &work.backends {
            if key.name.is_empty() {
                self.default_backend_fault();
                continue;
            }
            let draft = self.drafts.get(key);
            let targets = draft.into_iter().flat_map(|draft| draft.targets());
            let faults = targets.filter_map(|target| {
                let fault = self.faults.get(target)?;
                Some(format!("{fault}; {}", target.without_endpoints()))
            });
            let faults: BTreeSet<String> = faults.collect();
            let problems = faults.into_iter().map(|message| Problem {
                origin: origin(key),
                key: Some("spec".to_owned()),
                severity: Severity::Error,
                message: message.into(),
            });
            let problems = problems.collect();
            self.ledger.set(Finder::Backends(key.clone()), problems);
        }
    }

    fn default_backend_fault(&mut self) {
        let Some(service) = &self.options.default_backend_service else { return };
        let fault = self.faults.get(&Target::Default(service.clone()));
        let problem = fault.map(|fault| Problem {
            origin: Origin::new(
                Kind::Service,
                Arc::clone(&service.namespace),
                Arc::clone(&service.name),
            ),
            key: Some("--default-backend-service".to_owned()),
            severity: Severity::Error,
            message: format!("{fault}; until then unmatched requests answer 404").into(),
        });
        self.ledger.set(Finder::DefaultBackend, problem.into_iter().collect());
    }
}

/// Whether an Ingress is served as it was read.
fn is_taken(draft: &Draft) -> bool {
    matches!(draft.standing, Standing::Taken | Standing::Canary)
}

fn id_of(secret: &ObjectKey) -> CertificateId {
    CertificateId::new(format!("{}/{}", secret.namespace, secret.name))
}

/// The Secret behind a certificate; none behind the default one.
fn secret_of(id: &CertificateId) -> Option<ObjectKey> {
    let (namespace, name) = id.as_str().split_once('/')?;
    Some(ObjectKey::new(namespace, name))
}
