//! What becomes of each Ingress of a cluster that moves from ingress-nginx to Fairway: a pure function of its objects.

mod beside;
mod challenges;
mod closed;
mod config_map;
mod databases;
mod differences;
mod early;
mod elsewhere;
mod empty_here;
mod finding;
mod gateway;
mod heard_there;
mod left_out;
mod refusals;
mod remark;
mod sent;
mod surprises;
mod twice;
mod unused;

use crate::ingress::{Classes, annotation_of, is_ours, origin, why_not_ours};
use crate::problems::OF_ONE;
use crate::review::misfits;
use crate::settings::{ANNOTATIONS, parse};
use crate::{Options, Translation, certificate, snippets, translate_telling_all};
pub use challenges::name_issuers;
use closed::Closed;
use config_map::{CIPHERS, needs_nginx};
use differences::Shared;
pub use finding::{Finding, Standing};
pub use gateway::GatewayApi;
pub use left_out::left_out_of_host;
use model::policy::{ClientCertificate, ClientDemand};
use model::{Configuration, Origin, Printable, Problem, Severity, Why};
use objects::{Ingress, Malformed, ObjectKey, Reference, Snapshot, Unread};
pub use refusals::RefusedBy;
pub use remark::Remark;
use remark::{FLAG, WITH_NGINX};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use twice::{Hosts, counts, is_about};

/// An Ingress that is not ours and was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Other {
    /// Why it is not ours, and the remedy.
    pub reason: String,
    /// `namespace/name`.
    pub ingress: String,
}

impl Other {
    fn new(ingress: &Arc<Ingress>, snapshot: &Snapshot, options: &Options) -> Self {
        let ObjectKey { namespace, name } = &ingress.meta.key;
        let reason = why_not_ours(ingress, snapshot, options);
        Self { reason, ingress: format!("{namespace}/{name}") }
    }
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Every Ingress of our classes, by name.
    pub ingresses: Vec<Finding>,
    /// Ingresses that are not ours, by reason: they stay as they are.
    pub others: Vec<Other>,
    /// What could not be read, so that nothing was found out about it.
    pub unread: Vec<Remark>,
    /// Whether objects stand there again as overlays have them, and nothing says how they are put together.
    #[serde(skip)]
    pub has_overlays: bool,
    /// Keys of the ConfigMap with a mistake for which they are not heard, or close everything.
    pub refused: Vec<Remark>,
    /// What else concerns no Ingress: the ConfigMap, Secrets that nobody uses.
    pub objects: Vec<Remark>,
    /// Objects of the Gateway API: what is wrong with them.
    pub gateway: GatewayApi,
}

impl Check {
    /// Makes one line of each text, in which nothing moves a cursor: names and keys may hold anything where objects
    /// come from files.
    fn printable(mut self) -> Self {
        let one_line = |text: &mut String| *text = Printable(text).to_string();
        let Self { ingresses, others, unread, has_overlays: _, refused, objects, gateway } =
            &mut self;
        let names = ingresses.iter_mut().map(|finding| &mut finding.ingress);
        let others = others.iter_mut().flat_map(|other| [&mut other.reason, &mut other.ingress]);
        names.chain(others).for_each(one_line);
        let of_ingresses =
            ingresses.iter_mut().flat_map(|it| it.reasons.iter_mut().chain(&mut it.notes));
        let of_gateway = gateway.refused.iter_mut().chain(&mut gateway.notes);
        let of_others = unread.iter_mut().chain(refused).chain(objects);
        for remark in of_ingresses.chain(of_others).chain(of_gateway) {
            remark.key.iter_mut().for_each(one_line);
            one_line(&mut remark.message);
        }
        self
    }
}

/// Checks all objects at this second since 1970.
pub fn check(snapshot: &Snapshot, options: &Options, now: i64) -> Check {
    let translation = translate_telling_all(snapshot, options);
    let classes = Classes::accepted(snapshot, options);
    let (ours, others): (Vec<_>, Vec<_>) =
        snapshot.ingresses.values().partition(|ingress| is_ours(ingress, &classes, options));
    let ours: Vec<&Ingress> = ours.into_iter().map(AsRef::as_ref).collect();
    let objects = config_map::about(&translation, options);
    let everywhere = config_map::needed_everywhere(&objects);
    let mistakes = config_map::mistakes(&objects, &everywhere);
    let closed = Closed::among(&translation.configuration, mistakes, snapshot, options);
    let hosts = Hosts::among(&ours, snapshot, options);
    let checker = Checker {
        snapshot,
        options,
        classes: &classes,
        translation: &translation,
        shared: Shared::among(&ours, options),
        surprises: surprises::by_ingress(&translation.configuration),
        everywhere,
        closed,
        lost: differences::lost_certificates(&ours, &translation),
        of_tls: config_map::lost_by_tls(&objects),
        otherwise: heard_there::of_all(snapshot, options),
        databases: databases::of_all(snapshot, &translation, options),
        empty: empty_here::of_all(snapshot, options),
        pasted: twice::pasted(&objects, &hosts, snapshot, options),
        hosts,
    };
    let mut ingresses: Vec<Finding> = ours.iter().map(|ingress| checker.finding(ingress)).collect();
    checker.look_at_nginx(&ours, &mut ingresses);
    let ingresses = ingresses.into_iter().map(Finding::in_order).collect();
    let (refused, mut objects) = config_map::apart(objects, &checker.everywhere);
    // What is a difference says more than what is wrong with the same key.
    objects.retain(|it| checker.otherwise.iter().all(|other| other.key != it.key));
    objects.retain(|it| !checker.pasted.iter().any(|other| is_about(it, other)));
    objects.extend(checker.for_all().cloned());
    objects.extend(differences::of_peers(&translation.configuration, options));
    objects.extend(beside::problems(snapshot, &translation, options));
    objects.extend(beside::unnamed_services(snapshot, options));
    objects.extend(unused::secrets(snapshot, &ours, options));
    objects.extend(undated(&ours));
    objects.extend(ending(&translation.configuration, now));
    objects.extend(ended_authorities(&translation.configuration, now));
    let others = told(others.into_iter(), snapshot, options);
    let mut unread = unread(snapshot);
    unread.extend(secrets(snapshot, &ours, options));
    let gateway = gateway::check(snapshot, &translation, options);
    let is_any = |why| snapshot.malformed.values().any(|malformed| malformed.why == why);
    let has_overlays = is_any(Unread::Twice) && !is_any(Unread::Kustomization);
    Check { ingresses, others, unread, has_overlays, refused, objects, gateway }.printable()
}

/// Ingresses that are not ours, in the order of their reasons.
pub fn others(snapshot: &Snapshot, options: &Options) -> Vec<Other> {
    let classes = Classes::accepted(snapshot, options);
    let ingresses = snapshot.ingresses.values();
    told(ingresses.filter(|ingress| !is_ours(ingress, &classes, options)), snapshot, options)
}

fn told<'a>(
    others: impl Iterator<Item = &'a Arc<Ingress>>,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Other> {
    let mut others: Vec<Other> =
        others.map(|ingress| Other::new(ingress, snapshot, options)).collect();
    others.sort();
    others
}

/// Ingresses that name a host and are not ours.
pub fn others_of_host(host: &str, snapshot: &Snapshot, options: &Options) -> Vec<Other> {
    let classes = Classes::accepted(snapshot, options);
    let others = naming(host, snapshot).filter(|ingress| !is_ours(ingress, &classes, options));
    others.map(|ingress| Other::new(ingress, snapshot, options)).collect()
}

/// What Ingresses that name a host ask for in vain, since another namespace owns it or a path, or no other
/// Ingress is there for a canary: who, and the problem.
pub fn not_heard_of_host(
    host: &str,
    snapshot: &Snapshot,
    translation: &Translation,
) -> Vec<(String, String)> {
    let all = naming(host, snapshot).flat_map(|ingress| {
        let ObjectKey { namespace, name } = &ingress.meta.key;
        let problems = translation.problems.of(&origin(&ingress.meta.key));
        let vain = problems.iter().filter(|it| it.is(Why::OtherNamespace) || it.is(Why::InVain));
        vain.map(move |problem| {
            let key = problem.key.as_deref().unwrap_or("spec");
            (format!("{namespace}/{name}"), format!("{key}: {}", Printable(&problem.message)))
        })
    });
    all.collect()
}

/// Ingresses with a rule for a host.
fn naming<'a>(host: &'a str, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<Ingress>> {
    let names_it = move |ingress: &&Arc<Ingress>| {
        let mut hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
        hosts.any(|named| named.eq_ignore_ascii_case(host))
    };
    snapshot.ingresses.values().filter(names_it)
}

/// The oldest Ingress of a host counts first, and files seldom say how old one is.
fn undated(ours: &[&Ingress]) -> Option<Remark> {
    let mut seen = BTreeSet::new();
    let rules = ours.iter().filter(|ingress| ingress.meta.created == 0).flat_map(|ingress| {
        let hosts: BTreeSet<Option<&str>> =
            ingress.rules.iter().map(|rule| rule.host.as_deref()).collect();
        hosts
    });
    let shared = rules.filter(|host| !seen.insert(*host)).flatten().next()?;
    Some(Remark {
        key: Some("metadata.creationTimestamp".to_owned()),
        message: format!(
            "is not there, so that of the Ingresses of one host ({shared}, for one) the last by name counts as the \
             oldest; check the objects of the cluster to be sure"
        ),
    })
}

/// Certificates that clients refuse, or will soon.
fn ending(configuration: &Configuration, now: i64) -> impl Iterator<Item = Remark> {
    configuration.certificates.values().filter_map(move |certificate| {
        let early = || {
            let begins = certificate::not_before(certificate).filter(|begins| *begins > now);
            begins.map(|_| {
                "its certificate does not count yet, clients refuse it until then; see its notBefore and the clock of \
                 whoever signed it"
                    .to_owned()
            })
        };
        let message = certificate.ending(now).or_else(early)?;
        Some(Remark { key: Some(format!("Secret {}", certificate.id)), message })
    })
}

/// Authorities of clients that have all ended: no certificate descends from them any more.
fn ended_authorities(configuration: &Configuration, now: i64) -> impl Iterator<Item = Remark> {
    let servers = || configuration.servers.values();
    let of_hosts = servers().filter_map(|server| server.client_certificate.as_ref());
    // A path whose Ingress asks in another way than the host asks for both.
    let of_paths = servers().flat_map(|server| &server.locations);
    let of_paths = of_paths.filter_map(|location| location.policy.client_certificate.as_ref());
    let asked = of_hosts.chain(of_paths).filter_map(|asked| match asked {
        ClientCertificate::Verified(asked) if asked.demand != ClientDemand::Off => {
            Some((&asked.secret, &asked.authorities))
        }
        _ => None,
    });
    let asked: BTreeMap<_, _> = asked.collect();
    let ended = asked.into_iter().filter_map(move |(secret, authorities)| {
        let last = certificate::last_of(authorities)?;
        (last < now).then_some((secret, last))
    });
    ended.map(move |(secret, last)| Remark {
        key: Some(format!("Secret {secret}")),
        message: format!(
            "its authorities in ca.crt have all ended, the last one {} ago: what they have signed is good no more; renew them",
            model::days(now - last)
        ),
    })
}

/// What could not be read, by its file or its name.
fn unread(snapshot: &Snapshot) -> Vec<Remark> {
    let remark = |malformed: &Arc<Malformed>| {
        let Malformed { kind, key, message, .. } = malformed.as_ref();
        let place = match kind {
            None => key.name.to_string(),
            Some(kind) => format!("{kind} {}/{}", key.namespace, key.name),
        };
        Remark { key: Some(place), message: message.clone() }
    };
    let mut unread: Vec<Remark> = snapshot.malformed.values().map(remark).collect();
    unread.sort();
    unread
}

/// Where no Secret at all was read, those that Ingresses name are not missing but unknown.
fn secrets(snapshot: &Snapshot, ours: &[&Ingress], options: &Options) -> Option<Remark> {
    if !snapshot.secrets.is_empty() {
        return None;
    }
    let named: BTreeSet<ObjectKey> = ours
        .iter()
        .flat_map(|ingress| crate::references(ingress, options))
        .filter_map(|reference| match reference {
            Reference::Secret(key) => Some(key),
            Reference::ConfigMap(_) | Reference::Service(_) => None,
        })
        .filter(|key| !Malformed::is_among(&snapshot.malformed, objects::Kind::Secret, key))
        .collect();
    let ObjectKey { namespace, name } = named.first()?;
    Some(Remark {
        key: Some("Secrets".to_owned()),
        message: format!(
            "none is among the objects, and {}: certificates, passwords and what they guard could not be judged; add the \
             Secrets",
            match named.len() {
                1 => format!("{namespace}/{name} is named"),
                several => format!("{several} are named ({namespace}/{name}, for one)"),
            }
        ),
    })
}

struct Checker<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
    classes: &'a Classes,
    translation: &'a Translation,
    shared: Shared<'a>,
    surprises: BTreeMap<Origin, Vec<Remark>>,
    /// What the ConfigMap asks for every Ingress that only nginx has.
    everywhere: Vec<Remark>,
    /// Who has paths that answer 503.
    closed: Closed<'a>,
    /// Owners of hosts that had the certificate of another namespace.
    lost: BTreeMap<ObjectKey, Vec<Remark>>,
    /// What the ConfigMap asks of TLS that is not there: old clients of every host with TLS are cut off.
    of_tls: Vec<Remark>,
    /// Keys of the ConfigMap that ingress-nginx hears, or reads, otherwise.
    otherwise: Vec<Remark>,
    /// What of the ConfigMap hangs on databases.
    databases: Vec<Remark>,
    /// What of the ConfigMap's snippets hangs on variables that are empty here.
    empty: Vec<Remark>,
    /// What they say in vain, or twice in nginx.
    pasted: Vec<Remark>,
    /// Whose annotations count for the servers of hosts there.
    hosts: Hosts<'a>,
}

/// Whether two keys name the same annotation, with its prefix or without.
fn ends_alike(one: &Option<String>, other: &Option<String>) -> bool {
    let name = |key: &Option<String>| {
        key.as_deref().map(|key| key.rsplit('/').next().unwrap_or(key).to_owned())
    };
    name(one) == name(other)
}

impl Checker<'_> {
    /// Differences of every Ingress.
    fn for_all(&self) -> impl Iterator<Item = &Remark> {
        self.otherwise.iter().chain(&self.databases).chain(&self.empty).chain(&self.pasted)
    }

    /// Paths that are served, and that the webhook takes at no change: of either controller, where there is one.
    fn misfits(&self, ingress: &Ingress) -> Option<Remark> {
        let paths = misfits(ingress, self.snapshot, self.options);
        let which = paths.first()?;
        let more = match paths.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let message = format!(
            "the webhook refuses the next change of it: {which}{more}; write pathType ImplementationSpecific, or \
             strict-validate-path-type: \"false\" in the ConfigMap"
        );
        Some(Remark { key: Some("spec.rules".to_owned()), message })
    }

    fn finding(&self, ingress: &Ingress) -> Finding {
        let origin = origin(&ingress.meta.key);
        let problems = self.translation.problems.of(&origin);
        let (mut standing, mut reasons, told) = self.judged(ingress, problems);
        let mut notes = self.surprises.get(&origin).cloned().unwrap_or_default();
        notes.extend(told);
        notes.extend(self.understood(ingress, problems));
        notes.extend(self.misfits(ingress));
        let counts = |key: &str| counts(key, problems);
        notes.extend(early::of_ingress(ingress, self.options, counts));
        notes.extend(challenges::elsewhere(ingress, self.snapshot, self.classes, self.options));
        if !self.everywhere.is_empty() {
            standing = standing.max(Standing::NeedsNginx);
            reasons.extend_from_slice(&self.everywhere);
        }
        if !self.of_tls.is_empty() && !ingress.tls.is_empty() {
            standing = standing.max(Standing::Differs);
            reasons.extend_from_slice(&self.of_tls);
        }
        let mut differences = differences::of(ingress, self.snapshot, self.options, &self.shared);
        // What is not heard closes no path by what it asks for.
        let heard = |key: &Option<String>| {
            let is_vain = |it: &&Problem| it.is(Why::OtherNamespace) || it.is(Why::NotAllowed);
            let mut vain = problems.iter().filter(is_vain);
            !vain.any(|problem| problem.key.is_some() && ends_alike(&problem.key, key))
        };
        differences.retain(|remark| heard(&remark.key));
        differences.extend(self.lost.get(&ingress.meta.key).into_iter().flatten().cloned());
        differences.extend(databases::of_ingress(ingress, self.translation, self.options));
        differences.extend(empty_here::of_ingress(ingress, self.options));
        let twice = twice::of_ingress(ingress, &self.hosts, self.snapshot, self.options, counts);
        // That nginx takes nothing with it goes before what it would do with it.
        for told in [&mut reasons, &mut notes] {
            told.retain(|it| !twice.iter().any(|other| is_about(it, other)));
        }
        differences.extend(twice);
        differences.extend(self.for_all().cloned());
        if !differences.is_empty() {
            standing = standing.max(Standing::Differs);
            reasons.extend(differences);
        }
        let paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
        if paths.count() == 0 && ingress.default_backend.is_none() {
            let message =
                "it has neither paths nor a default backend: it serves nothing".to_owned();
            notes.push(Remark { key: Some("spec.rules".to_owned()), message });
        }
        let refused_by = self.refused_by(ingress, problems);
        let name = format!("{}/{}", ingress.meta.key.namespace, ingress.meta.key.name);
        let mut finding = Finding { ingress: name, standing, refused_by, reasons, notes };
        // What needs nginx is denied here, and may be served there.
        if standing != Standing::NeedsNginx {
            self.closed.refuse(ingress, &mut finding);
        }
        finding
    }

    /// What all its problems make of an Ingress, the reasons for it and what else is to be known of them. Of more than
    /// [`OF_ONE`] the gravest are told; all of them count.
    fn judged(
        &self,
        ingress: &Ingress,
        problems: &[Problem],
    ) -> (Standing, Vec<Remark>, Vec<Remark>) {
        let weighed = |it: &Problem| Reverse(self.weight(it).max(self.lost_suites(ingress, it)));
        let mut all: Vec<(Reverse<Standing>, &Problem)> =
            problems.iter().map(|problem| (weighed(problem), problem)).collect();
        all.sort_by_key(|(standing, _)| *standing);
        let worst = all.first().map_or(Standing::Identical, |(Reverse(worst), _)| *worst);
        let left_out = all.len().saturating_sub(OF_ONE);
        all.truncate(OF_ONE);
        let (notes, reasons): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(standing, _)| *standing == Reverse(Standing::Identical));
        let remarks = |all: Vec<(_, &Problem)>| -> Vec<Remark> {
            all.into_iter().map(|(_, problem)| self.remark(problem)).collect()
        };
        let mut notes = remarks(notes);
        if left_out > 0 {
            let message = format!(
                "{left_out} more problems of this object are not told, none graver than these: mend these first"
            );
            notes.push(Remark { key: None, message });
        }
        (worst, remarks(reasons), notes)
    }

    /// A problem as it is told.
    fn remark(&self, problem: &Problem) -> Remark {
        const GIVE: &str =
            "; no ConfigMap was read: give `check` that of the controller, which may allow it";
        const GIVE_OR_SET: &str = "; no ConfigMap was read: give `check` that of the controller, or set \
            allow-snippet-annotations: \"true\" and annotations-risk-level: Critical there; until then nothing is said of \
            its text";
        let is_passthrough = problem.key.as_deref() == Some("ssl-passthrough");
        let more = match problem {
            problem if self.hangs_on_config_map(problem) => match self.annotation(problem) {
                Some(name) if snippets::ANNOTATIONS.contains(&name) => GIVE_OR_SET,
                _ => GIVE,
            },
            _ if is_passthrough && !self.options.passthrough => FLAG,
            _ => "",
        };
        Remark { key: problem.key.clone(), message: format!("{}{more}", problem.message) }
    }

    /// Whether the controller's ConfigMap, which was not read, may allow what a problem says it does not.
    fn hangs_on_config_map(&self, problem: &Problem) -> bool {
        let map = self.options.config_map.as_ref();
        let is_read = map.is_some_and(|key| self.snapshot.config_maps.contains_key(key));
        !is_read && problem.is(Why::NotAllowed)
    }

    /// Who refuses an Ingress with these problems, if they refuse it.
    fn refused_by(&self, ingress: &Ingress, problems: &[Problem]) -> Option<RefusedBy> {
        let refuses = |problem: &&Problem| self.weight(problem) == Standing::Refused;
        let mut refusing = problems.iter().filter(refuses).peekable();
        refusing.peek()?;
        let canary = annotation_of(ingress, "canary", self.options)
            .is_some_and(|text| parse::boolean(&text) == Ok(true));
        let is_taken = self.translation.served.contains(&ingress.meta.key);
        let by = |it: &Problem| match refusals::of(it, self.annotation(it), canary) {
            // What denies the paths of a canary that is taken denied nothing there.
            Some(_) if canary && is_taken && it.is(Why::NotAllowed) => Some(RefusedBy::Fairway),
            Some(RefusedBy::Both) if self.hangs_on_config_map(it) => Some(RefusedBy::Unknown),
            by => by,
        };
        let by = refusing.filter_map(by).max();
        Some(by.unwrap_or(RefusedBy::Both))
    }

    /// The snippets that nothing is wrong with.
    fn understood(&self, ingress: &Ingress, problems: &[Problem]) -> Vec<Remark> {
        let has = |name: &&str| annotation_of(ingress, name, self.options).is_some();
        let names = snippets::ANNOTATIONS.into_iter().filter(has);
        let names = names.map(|name| format!("{}/{name}", self.options.annotations_prefix));
        let is_wrong = |name: &String| {
            let of_it = |problem: &&Problem| problem.key.as_ref() == Some(name);
            problems.iter().filter(of_it).any(|problem| problem.severity != Severity::Notice)
        };
        let fine = names.filter(|name| !is_wrong(name));
        let said = |name| Remark { key: Some(name), message: snippets::NATIVE.to_owned() };
        fine.map(said).collect()
    }

    /// Adds what the nginx engine cannot do of Ingresses that need it. What is refused there, too, needs no nginx.
    fn look_at_nginx(&self, ingresses: &[&Ingress], findings: &mut [Finding]) {
        if findings.iter().all(|finding| finding.standing != Standing::NeedsNginx) {
            return;
        }
        let options = Options { raw: true, ..self.options.clone() };
        let translation = translate_telling_all(self.snapshot, &options);
        let mistakes = config_map::mistakes(&config_map::about(&translation, &options), &[]);
        let closed =
            Closed::among(&translation.configuration, mistakes, self.snapshot, self.options);
        for (ingress, finding) in ingresses.iter().zip(findings) {
            if finding.standing != Standing::NeedsNginx {
                continue;
            }
            let origin = origin(&ingress.meta.key);
            let known: BTreeSet<&Problem> = self.translation.problems.of(&origin).iter().collect();
            let problems = translation.problems.of(&origin);
            let new = problems.iter().filter(|it| !known.contains(it));
            finding.reasons.extend(new.take(OF_ONE).map(|problem| Remark {
                key: problem.key.clone(),
                message: format!("{WITH_NGINX}{}", problem.message),
            }));
            if let Some(by) = self.refused_by(ingress, problems) {
                (finding.standing, finding.refused_by) = (Standing::Refused, Some(by));
            }
            closed.refuse(ingress, finding);
        }
    }

    /// The annotation that a problem is about, without prefix.
    fn annotation<'p>(&self, problem: &'p Problem) -> Option<&'p str> {
        let prefix = self.options.annotations_prefix.as_str();
        problem.key.as_deref()?.strip_prefix(prefix)?.strip_prefix('/')
    }

    /// Clients of hosts with TLS are cut off if suites that an Ingress names are gone.
    fn lost_suites(&self, ingress: &Ingress, problem: &Problem) -> Standing {
        let is_lost = self.annotation(problem) == Some(CIPHERS) && !ingress.tls.is_empty();
        if is_lost { Standing::Differs } else { Standing::Identical }
    }

    /// What a problem makes of its Ingress. A Service that does not exist answered 503 under ingress-nginx, too.
    fn weight(&self, problem: &Problem) -> Standing {
        let name = problem.key.as_deref().unwrap_or_default();
        let annotation = self.annotation(problem);
        // It is closed, whatever else is to be said of it.
        let is_left = problem.is(Why::NotTaken) || problem.is(Why::NotAllowed);
        if problem.severity == Severity::Error && is_left {
            return Standing::Refused;
        }
        if annotation == Some("stream-snippet") {
            // Layer 4 is served alike by both engines, and asked for by the ConfigMap.
            return Standing::Differs;
        }
        let is_snippet = annotation.is_some_and(|name| snippets::ANNOTATIONS.contains(&name));
        let needs_nginx = if is_snippet {
            problem.is(Why::NeedsNginx)
        } else {
            annotation.is_some_and(|name| needs_nginx(&ANNOTATIONS, name))
        };
        if needs_nginx && problem.severity != Severity::Notice {
            return Standing::NeedsNginx;
        }
        match problem.severity {
            Severity::Error if name == "spec" => Standing::Identical,
            Severity::Error => Standing::Refused,
            _ if problem.is(Why::OtherNamespace) || problem.is(Why::TookIt) => Standing::Differs,
            // It is passed over here, and nobody knows whether it was there.
            _ if self.hangs_on_config_map(problem) => Standing::Differs,
            Severity::Warning | Severity::Notice => Standing::Identical,
        }
    }
}
