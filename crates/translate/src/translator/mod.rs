//! The Translator: what it made of one Snapshot is kept, and of the next one only the difference is looked at.

mod apply;
mod certificates;
mod classes;
mod guards;
mod routes;
mod secrets;
mod streams;
mod touched;
mod users;

use crate::aliases::Aliases;
use crate::budget::Budgets;
use crate::certificate::Judged;
use crate::endpoint_budget::Lists;
use crate::gateway::{Gateways, Statuses};
use crate::host::{Sections, Surroundings};
use crate::ingress::{Classes, Draft, Drafts, Ground, Target, names_by_annotation};
use crate::names::{Registry, Wishes};
use crate::problems::{Ledger, Problems};
use crate::secret_files::SecretFiles;
use crate::settings::{Scope, Settings};
use crate::snippets::ForAll;
use crate::{Options, annotations, config_map};
use certificates::Certificates;
use classes::NamedClasses;
use guards::Guards;
pub use guards::guards_gone;
use imbl::{OrdMap, OrdSet};
use model::policy::Policy;
use model::{
    Backend, Changes, Configuration, Kind, Message, Nowhere, ServerName, StreamPort, UpstreamId,
};
use objects::{Ingress, ObjectKey, Reference, ReverseIndex, Snapshot, interleaved};
use secrets::Secrets;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use touched::Touched;
pub(crate) use touched::differing;
use users::Users;

/// What a Snapshot means.
#[derive(Clone, Debug)]
pub struct Translation {
    /// What should be served.
    pub configuration: Configuration,
    /// What users should change.
    pub problems: Problems,
    /// The Ingresses that are served, be it in their last valid version: those whose status tells an address.
    pub served: OrdSet<ObjectKey>,
    /// How many Ingresses are not served since their class, which is or was ours, does not exist.
    pub without_class: usize,
    /// Of those whose current version is not taken, the version that is served.
    pub kept: OrdMap<ObjectKey, Arc<Ingress>>,
    /// What objects of the Gateway API are told about themselves.
    pub statuses: Statuses,
    /// Why every location answers 503, but for those that are exempt: a guard of the ConfigMap that cannot be read.
    pub closed: Option<Arc<str>>,
    /// Whether more comes with the next update though nothing changes: Ingresses for which there was no room come in by
    /// and by when there is.
    pub more: bool,
    /// What differs from the translation before.
    pub changes: Changes,
}

/// Turns Snapshots into Configurations, each from the one before. It remembers the last valid version of every Ingress,
/// which is served while the current one cannot be.
#[derive(Debug)]
pub struct Translator {
    options: Options,
    snapshot: Snapshot,
    ground: Option<Ground>,
    classes: Classes,
    named_classes: NamedClasses,
    drafts: BTreeMap<ObjectKey, Arc<Draft>>,
    /// Those of them that are taken.
    served: OrdSet<ObjectKey>,
    /// Those that are served in an earlier version.
    kept: OrdMap<ObjectKey, Arc<Ingress>>,
    /// Last valid versions of which nothing is served now: while later ones are not taken, or they wait for room, or
    /// have no class.
    aside: BTreeMap<ObjectKey, Arc<Ingress>>,
    hosts: BTreeMap<ServerName, Drafts>,
    /// Which host has which other names.
    names_of_hosts: Registry,
    references: ReverseIndex,
    users: Users,
    /// Which ExternalName Services lead to which Service.
    aliases: Aliases,
    names: BTreeMap<Target, UpstreamId>,
    faults: BTreeMap<Target, String>,
    secrets: Secrets,
    guards: Guards,
    files: SecretFiles,
    certificates: Certificates,
    certificate_users: BTreeMap<ObjectKey, usize>,
    default_backend: Backend,
    /// Upstreams that the ConfigMap's policies name.
    targets_for_all: BTreeSet<Target>,
    /// Services that TCP and UDP services lead to.
    stream_services: BTreeSet<ObjectKey>,
    /// Their ports.
    stream_ports: BTreeSet<StreamPort>,
    budgets: Budgets,
    /// The lists of endpoints of Ingresses.
    lists: Lists<Target>,
    gateway: Gateways,
    configuration: Configuration,
    ledger: Ledger<Finder>,
}

/// Who found a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finder {
    ConfigMap,
    Guards,
    Classes,
    DefaultCertificate,
    DefaultBackend,
    Streams,
    Malformed(Arc<str>),
    Secret(ObjectKey),
    Ingress(ObjectKey),
    Backends(ObjectKey),
    Host(ServerName),
    Gateway(Kind, ObjectKey),
}

/// What has to be made again.
#[derive(Debug, Default)]
struct Work {
    ingresses: BTreeSet<ObjectKey>,
    /// Ingresses of which it is to be decided again whether they wait.
    weighed: BTreeSet<ObjectKey>,
    /// Those of them whose current version was found not to be taken, so that an earlier one counts.
    refused: BTreeSet<ObjectKey>,
    targets: BTreeSet<Target>,
    hosts: BTreeSet<ServerName>,
    certificates: BTreeSet<ObjectKey>,
    /// Ingresses whose backends' faults are to be listed again.
    backends: BTreeSet<ObjectKey>,
}

impl Translator {
    /// A Translator that has seen nothing yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            snapshot: Snapshot::default(),
            ground: None,
            classes: Classes::default(),
            named_classes: NamedClasses::default(),
            drafts: BTreeMap::new(),
            served: OrdSet::new(),
            kept: OrdMap::new(),
            aside: BTreeMap::new(),
            hosts: BTreeMap::new(),
            names_of_hosts: Registry::default(),
            references: ReverseIndex::default(),
            users: Users::default(),
            aliases: Aliases::default(),
            names: BTreeMap::new(),
            faults: BTreeMap::new(),
            secrets: Secrets::default(),
            guards: Guards::default(),
            files: SecretFiles::default(),
            certificates: Certificates::default(),
            certificate_users: BTreeMap::new(),
            default_backend: Backend::NotFound,
            targets_for_all: BTreeSet::new(),
            stream_services: BTreeSet::new(),
            stream_ports: BTreeSet::new(),
            budgets: Budgets::default(),
            lists: Lists::default(),
            gateway: Gateways::default(),
            configuration: Configuration::default(),
            ledger: Ledger::default(),
        }
    }

    /// One whose list of problems has no bound.
    pub(crate) fn telling_all(options: Options) -> Self {
        Self { ledger: Ledger::whole(), ..Self::new(options) }
    }

    /// Which Ingresses refer to what.
    pub fn references(&self) -> &ReverseIndex {
        &self.references
    }

    /// Follows to another Snapshot. Costs time by what differs from the one before, and by what that touches.
    pub fn update(&mut self, snapshot: &Snapshot) -> Translation {
        let before = self.configuration.clone();
        let is_first = self.ground.is_none();
        let snapshot = self.secrets.follow(snapshot, &mut self.ledger);
        let (options, files) = (&self.options, &self.files);
        let denied = self.guards.denied();
        let snapshot = &self.guards.follow(snapshot, options, files, &mut self.ledger);
        let old = std::mem::replace(&mut self.snapshot, snapshot.clone());
        let mut touched = Touched::between(&old, snapshot);
        if denied != self.guards.denied() {
            touched.config_maps.extend(self.options.config_map.clone());
        }
        let mut work = Work { ingresses: touched.ingresses, ..Work::default() };
        // First: it counts what differs, of which the ConfigMap makes everything.
        self.take_classes(&old, &mut work);
        self.take_config_map(&touched.config_maps, &mut work);
        if is_first {
            work.hosts.insert(ServerName::catch_all());
            work.certificates.extend(self.options.default_ssl_certificate.clone());
            self.use_default_backend(&mut work);
        }
        let mut make_streams = is_first || self.names_streams(&touched.config_maps);
        for service in &touched.services {
            self.aliases.follow(service, &old, snapshot);
            for key in std::iter::once(service).chain(self.aliases.of(service)) {
                make_streams |= self.stream_services.contains(key);
                work.targets.extend(self.users.targets_of(key).cloned());
            }
        }
        self.take_secrets(&touched.secrets, &mut work);
        for config_map in &touched.config_maps {
            let reference = Reference::ConfigMap(config_map.clone());
            work.ingresses.extend(self.references.touched_by(&reference).cloned());
        }
        self.take_malformed(&touched.malformed);
        let ground = self.ground.take().expect("take_config_map has set it");
        self.take_ingresses(&ground, &mut work);
        self.take_names(&ground, &mut work);
        let budget = self.options.namespace_budget.with(&ground.permissions.budget);
        self.weigh_lists(&budget, &mut work);
        self.make_upstreams(&mut work);
        self.make_servers(&ground, &mut work);
        // Gateways keep clear of their ports.
        if make_streams {
            self.make_streams();
        }
        let behind = (&*touched.secrets, &touched.config_maps);
        self.make_routes(&old, &touched.services, behind, &budget, &mut work);
        self.make_certificates(&work);
        self.list_faults(&work);
        let closed = ground.denied.as_deref().or(ground.auth_denied.as_deref()).map(Arc::from);
        self.ground = Some(ground);
        self.files.forget();
        let changes = Changes::between(&before, &self.configuration);
        Translation {
            configuration: self.configuration.clone(),
            problems: self.ledger.publish(budget.problems()),
            served: self.served.clone(),
            without_class: self.named_classes.without,
            kept: self.kept.clone(),
            statuses: self.gateway.statuses.clone(),
            closed,
            more: self.budgets.are_unfinished(),
            changes,
        }
    }

    /// The ConfigMap is behind everything: when it changes, or one that it names, every Ingress is read again.
    fn take_config_map(&mut self, touched: &BTreeSet<ObjectKey>, work: &mut Work) {
        let key = self.options.config_map.as_ref();
        let behind = self.ground.as_ref().map(|ground| key.into_iter().chain(&ground.config_maps));
        if behind.is_some_and(|mut behind| !behind.any(|key| touched.contains(key))) {
            return;
        }
        let scope = Scope::new(&self.options, &self.snapshot, &self.files);
        let mut settings = Settings::of_config_map(scope);
        config_map::check(&mut settings);
        let mut global = config_map::global(&mut settings);
        let permissions = config_map::permissions(&mut settings);
        let made_of = key.and_then(|key| self.snapshot.config_maps.get(key));
        let made_of = made_of.map(|map| Arc::clone(&map.meta.uid));
        // Of one that was made anew nothing is known from before, also where no Snapshot was without it.
        let same = |ground: &&Ground| ground.made_of.is_some() && ground.made_of == made_of;
        let before = self.ground.as_ref().filter(same).map(|ground| &*ground.snippets);
        let snippets =
            Arc::new(ForAll::read(&mut settings, &self.options.ports_of_snippets(), before));
        if !global.geoip2 {
            snippets.lacks_databases(&mut settings);
        }
        global.http_snippet.clone_from(&snippets.http);
        let policy = annotations::policy(&mut settings);
        global.nowhere = Nowhere::of(&policy);
        let policy = Arc::new(Policy { snippet: snippets.location.clone(), ..policy });
        let (denied, auth_denied) = annotations::deny_by_config_map(&mut settings);
        let denied = settings.verdict.denied.take().or(denied).or_else(|| snippets.denied.clone());
        let denied = denied.or_else(|| self.guards.denied());
        let (problems, targets, config_maps) = settings.finish();
        self.ledger.set(Finder::ConfigMap, problems);
        self.use_for_all(targets, work);
        if *self.configuration.global != global {
            self.configuration.global = Arc::new(global);
        }
        let global = Arc::clone(&self.configuration.global);
        self.ground = Some(Ground {
            global,
            policy,
            snippets,
            permissions,
            denied,
            auth_denied,
            made_of,
            config_maps,
            passthrough: self.options.passthrough,
            annotations_prefix: self.options.annotations_prefix.clone(),
        });
        work.ingresses.extend(self.snapshot.ingresses.keys().cloned());
        work.hosts.insert(ServerName::catch_all());
    }

    /// A name that one host wants may be another one's: those that want the same are touched, too.
    fn take_names(&mut self, ground: &Ground, work: &mut Work) {
        for host in interleaved(&work.hosts) {
            let wishes = self
                .hosts
                .get(host)
                .map(|drafts| Wishes::of(host, drafts, ground.permissions.cross_namespace));
            self.names_of_hosts.follow(host, wishes);
        }
        work.hosts.extend(self.names_of_hosts.touched());
    }

    fn use_default_backend(&mut self, work: &mut Work) {
        if let Some(service) = &self.options.default_backend_service {
            let target = Target::Default(service.clone());
            // No Ingress has an empty name: nobody takes this use away.
            work.targets.extend(self.users.add(&target, &ObjectKey::new("", "")));
        }
    }

    /// The upstreams that the ConfigMap's policies name are used by an Ingress that cannot exist, either.
    fn use_for_all(&mut self, targets: BTreeSet<Target>, work: &mut Work) {
        let user = ObjectKey::new("", "*");
        for gone in self.targets_for_all.difference(&targets) {
            let renamed = self.users.remove(gone, &user);
            self.rename(gone, renamed, work);
        }
        for new in targets.difference(&self.targets_for_all) {
            let renamed = self.users.add(new, &user);
            self.rename(new, renamed, work);
        }
        self.targets_for_all = targets;
    }

    fn take_secrets(&mut self, secrets: &[ObjectKey], work: &mut Work) {
        for secret in secrets {
            let choose_again = self.certificates.refresh(secret, &self.snapshot);
            work.certificates.insert(secret.clone());
            for ingress in self.references.touched_by(&Reference::Secret(secret.clone())) {
                work.weighed.insert(ingress.clone());
                let Some(draft) = self.drafts.get(ingress) else { continue };
                let current = self.snapshot.ingresses.get(ingress);
                let mut versions = current.into_iter().chain([&draft.ingress]);
                if versions.any(|version| names_by_annotation(version, secret, &self.options)) {
                    work.ingresses.insert(ingress.clone());
                } else if choose_again {
                    work.hosts.extend(draft.servers());
                }
            }
        }
    }
}

/// What a server needs to know of the rest, while the servers themselves are being made.
struct Cluster<'a> {
    users: &'a Users,
    certificates: &'a mut Certificates,
    snapshot: &'a Snapshot,
    /// TLS sections of Ingresses with many hosts.
    sections: &'a mut HashMap<ObjectKey, Sections>,
}

impl Surroundings for Cluster<'_> {
    fn upstream(&self, target: &Target) -> UpstreamId {
        self.users.id(target)
    }

    fn certificate(&mut self, secret: &ObjectKey) -> Result<Arc<Judged>, Message> {
        self.certificates.get(secret, self.snapshot)
    }

    fn take_sections(&mut self, ingress: &ObjectKey) -> Option<Sections> {
        self.sections.remove(ingress)
    }

    fn put_sections(&mut self, ingress: &ObjectKey, sections: Sections) {
        self.sections.insert(ingress.clone(), sections);
    }
}
