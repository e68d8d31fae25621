//! What the objects of one namespace may take together. Beyond it the newest of them wait, and nobody else does.

use crate::Options;
use crate::ingress::{Age, annotation_of, named, references};
use crate::snippets;
use model::{Problem, Severity};
use objects::{Ingress, ObjectKey, Reference, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The key of the ConfigMap, and with `--` the flag.
pub(crate) const KEY: &str = "namespace-budget";

/// Names of what is counted, in the order of [`Budget`].
const NAMES: [&str; KINDS] = [
    "ingresses",
    "hosts",
    "paths",
    "patterns",
    "pattern-bytes",
    "certificate-bytes",
    "problems",
    "snippet-bytes",
    "snippet-settings",
    "route-places",
    LISTENERS,
    ENDPOINTS,
    "named-bytes",
    "gateway-ports",
];
const KINDS: usize = 14;
/// Listeners of ListenerSets.
pub(crate) const LISTENERS: &str = "listeners";
/// Endpoints of the Services that Ingresses or routes lead to: counted where their lists are made.
pub(crate) const ENDPOINTS: &str = "endpoints";
const LISTENERS_COUNTED: usize = 10;
const ENDPOINTS_COUNTED: usize = 11;
const NAMED_BYTES: usize = 12;
const GATEWAY_PORTS: usize = 13;
const ROUTE_PLACES: usize = 9;
const CERTIFICATE_BYTES: usize = 5;
/// What a namespace can do without: regular expressions, certificates, and what annotations name.
const MAY_BE_NONE: [usize; 4] = [PATTERNS_COUNTED, PATTERN_BYTES, CERTIFICATE_BYTES, NAMED_BYTES];
/// Problems are counted where they are published, not in objects.
pub(crate) const PROBLEMS: usize = 6;
const INGRESSES: usize = 0;
const HOSTS: usize = 1;
const PATHS: usize = 2;
const PATTERNS_COUNTED: usize = 3;
const PATTERN_BYTES: usize = 4;
/// Annotations that make regular expressions of the paths.
const OF_PATHS: [&str; 2] = ["use-regex", "rewrite-target"];
/// Annotations that are one themselves.
const PATTERNS: [&str; 2] = ["canary-by-header-pattern", "auth-tls-match-cn"];

/// Bytes of Ingresses that waited, and of what their annotations name, which come in at a time, with those that each
/// Ingress and each path counts for: reading them takes time, for which others have to wait.
const PORTION: u64 = 16 << 10;
const EACH: u64 = 64;

type Amounts = [u64; KINDS];

/// What one namespace may have (`--namespace-budget`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(Amounts);

impl Default for Budget {
    fn default() -> Self {
        Self([
            20_000,
            50_000,
            100_000,
            20_000,
            8 << 20,
            256 << 20,
            20_000,
            4 << 20,
            4_000_000,
            20_000,
            256,
            100_000,
            64 << 20,
            256,
        ])
    }
}

/// Some amounts in place of others.
pub(crate) type Changes = Vec<(usize, u64)>;

/// Reads `paths=1000, hosts=100`.
pub(crate) fn changes(text: &str) -> Result<Changes, String> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let read = items.map(|item| {
        let (name, number) = item.split_once('=').unwrap_or((item, ""));
        let kind = NAMES.iter().position(|known| *known == name.trim());
        let (kind, amount) = kind.zip(number.trim().parse().ok()).ok_or_else(|| {
            format!("has {item:?} in it: write name=number with one of {}", NAMES.join(", "))
        })?;
        if amount == 0 && !MAY_BE_NONE.contains(&kind) {
            let name = NAMES[kind];
            return Err(format!(
                "has {item:?} in it, with which nobody would be served or told: write a number above 0, such as {name}=1000"
            ));
        }
        Ok((kind, amount))
    });
    read.collect()
}

impl std::str::FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self::default().with(&changes(text)?))
    }
}

impl Budget {
    /// With some amounts in place of its own.
    #[must_use]
    pub(crate) fn with(mut self, changes: &Changes) -> Self {
        for (kind, amount) in changes {
            self.0[*kind] = *amount;
        }
        self
    }

    /// Problems that are published of a namespace.
    pub(crate) fn problems(&self) -> usize {
        usize::try_from(self.0[PROBLEMS]).unwrap_or(usize::MAX)
    }

    /// What the routes of a namespace may have: places, and regular expressions with their text besides those of its
    /// Ingresses.
    pub(crate) fn of_routes(&self) -> [(&'static str, u64); 3] {
        [ROUTE_PLACES, PATTERNS_COUNTED, PATTERN_BYTES].map(|kind| (NAMES[kind], self.0[kind]))
    }

    /// Listeners that the ListenerSets of a namespace may have.
    pub(crate) fn listeners(&self) -> u64 {
        self.0[LISTENERS_COUNTED]
    }

    /// Endpoints that the Services of a namespace may have: those that Ingresses lead to, and as many again that routes
    /// do.
    pub(crate) fn endpoints(&self) -> u64 {
        self.0[ENDPOINTS_COUNTED]
    }

    /// Ports behind their Services that the Gateways of a namespace may have.
    pub(crate) fn gateway_ports(&self) -> u64 {
        self.0[GATEWAY_PORTS]
    }

    /// The first that is exceeded.
    fn exceeded(&self, amounts: &Amounts) -> Option<usize> {
        (0..KINDS).find(|kind| amounts[*kind] > self.0[*kind])
    }
}

/// What one Ingress takes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Weight {
    /// When it was made.
    created: i64,
    /// Kinds with their amounts, without those of which it takes nothing: most take of three.
    amounts: Box<[(usize, u64)]>,
    /// Bytes of it that take time to read.
    said: u64,
    secrets: BTreeSet<ObjectKey>,
}

impl Weight {
    fn of(ingress: &Ingress, options: &Options, snapshot: &Snapshot) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let aliases = annotation_of(ingress, "server-alias", options).unwrap_or_default();
        let paths = || ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
        let of_paths = OF_PATHS.iter().any(|name| annotation_of(ingress, name, options).is_some());
        let mut patterns: Vec<usize> =
            paths().filter(|_| of_paths).map(|path| path.path.len()).collect();
        let aliases = || aliases.split(',').map(str::trim).filter(|alias| !alias.is_empty());
        patterns.extend(aliases().filter(|alias| alias.starts_with('~')).map(str::len));
        patterns.extend(
            PATTERNS.iter().filter_map(|name| {
                annotation_of(ingress, name, options).map(|pattern| pattern.len())
            }),
        );
        let hosts: BTreeSet<_> = ingress.rules.iter().map(|rule| &rule.host).collect();
        let hosts = count(hosts.len() + aliases().count());
        let of_snippets = snippets::weight(ingress, options, hosts, count(paths().count()));
        patterns.extend(of_snippets.expressions);
        let amounts = [
            1,
            hosts,
            count(paths().count()),
            count(patterns.len()),
            count(patterns.iter().sum()),
            0,
            0,
            count(of_snippets.bytes),
            of_snippets.settings,
            0,
            0,
            0,
            named(ingress, options).iter().map(|one| bytes_named(one, snapshot)).sum(),
            0,
        ];
        // Those of other namespaces are not its own: their size is nothing that it may find out.
        let is_own = |key: &ObjectKey| key.namespace == ingress.meta.key.namespace;
        let secrets = references(ingress, options).into_iter().filter_map(|found| match found {
            Reference::Secret(key) => Some(key).filter(is_own),
            Reference::ConfigMap(_) | Reference::Service(_) => None,
        });
        let (created, said) = (ingress.meta.created, count(ingress.said()));
        Self { created, amounts: those_taken(&amounts), said, secrets: secrets.collect() }
    }

    /// Bytes that it counts for where it comes in with others.
    fn portion(&self) -> u64 {
        let of =
            |wanted| self.amounts.iter().find(|(kind, _)| *kind == wanted).map_or(0, |it| it.1);
        let each = of(PATHS).saturating_add(1).saturating_mul(EACH);
        each.saturating_add(self.said).saturating_add(of(NAMED_BYTES))
    }

    /// At least as much as another one.
    fn or(mut self, other: Self) -> Self {
        let mut amounts = Amounts::default();
        for (kind, amount) in self.amounts.iter().chain(&other.amounts) {
            amounts[*kind] = amounts[*kind].max(*amount);
        }
        self.amounts = those_taken(&amounts);
        self.said = self.said.max(other.said);
        self.secrets.extend(other.secrets);
        self
    }
}

fn those_taken(amounts: &Amounts) -> Box<[(usize, u64)]> {
    let taken = amounts.iter().enumerate().filter(|(_, amount)| **amount > 0);
    taken.map(|(kind, amount)| (kind, *amount)).collect()
}

/// What a namespace takes, and who waits.
#[derive(Debug, Default)]
struct Namespace {
    total: Amounts,
    /// The Secrets of all, with the number of their users and their bytes.
    secrets: BTreeMap<ObjectKey, (usize, u64)>,
    weights: BTreeMap<ObjectKey, Weight>,
    /// Who waits.
    waiting: BTreeMap<ObjectKey, Waits>,
}

/// How an Ingress waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waits {
    /// What there is too little of.
    lacks: usize,
    /// Whether its hosts and paths stay its own, closed.
    keeps: bool,
    /// Whether its hosts keep their certificates.
    certificates: bool,
}

/// What is left to an Ingress that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Its hosts and paths are closed, and whether its hosts keep their certificates.
    Closed { certificates: bool },
    /// Nothing of it is kept.
    Nothing,
}

/// What every namespace takes: costs time by what changes, unless a namespace has too much.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    namespaces: BTreeMap<Arc<str>, Namespace>,
    /// Those of which more may come in than have.
    unfinished: BTreeSet<Arc<str>>,
}

/// An Ingress to be weighed: the current version, and the one that is served in its stead.
pub(crate) struct Versions<'a> {
    pub(crate) current: &'a Ingress,
    pub(crate) kept: Option<&'a Ingress>,
}

impl Budgets {
    /// Weighs an Ingress again, or forgets it.
    pub(crate) fn weigh(
        &mut self,
        key: &ObjectKey,
        versions: Option<Versions<'_>>,
        snapshot: &Snapshot,
        options: &Options,
    ) {
        let namespace = self.namespaces.entry(Arc::clone(&key.namespace)).or_default();
        namespace.take_out(key);
        if let Some(Versions { current, kept }) = versions {
            let own = Weight::of(current, options, snapshot);
            let weight = match kept {
                Some(kept) => own.or(Weight::of(kept, options, snapshot)),
                None => own,
            };
            namespace.put_in(key, weight, snapshot);
        }
        if namespace.weights.is_empty() && namespace.waiting.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
    }

    /// Decides again who of a namespace waits; returns those of whom it is news. Of those that need not wait any longer
    /// a portion comes in, if they are to come in portions, and the rest when it is asked again, which
    /// [`Self::are_unfinished`] says.
    pub(crate) fn admit(
        &mut self,
        name: &Arc<str>,
        budget: &Budget,
        in_portions: bool,
    ) -> Vec<ObjectKey> {
        let Some(namespace) = self.namespaces.get_mut(name) else { return Vec::new() };
        let mut waiting = match budget.exceeded(&namespace.total) {
            None => BTreeMap::new(),
            Some(_) => namespace.newest(budget),
        };
        // A second turn of the same round takes no second portion.
        let portion = if self.unfinished.contains(name) { 0 } else { PORTION };
        if in_portions && namespace.hold_back(&mut waiting, portion) {
            self.unfinished.insert(Arc::clone(name));
        }
        let waiting = namespace.closed(waiting, budget);
        let before = std::mem::replace(&mut namespace.waiting, waiting);
        let now = &namespace.waiting;
        let keys: BTreeSet<&ObjectKey> = before.keys().chain(now.keys()).collect();
        let news = keys.into_iter().filter(|key| before.get(*key) != now.get(*key));
        let news = news.cloned().collect();
        if namespace.weights.is_empty() {
            self.namespaces.remove(name);
        }
        news
    }

    /// Takes the namespaces of which more may come in.
    pub(crate) fn take_unfinished(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.unfinished)
    }

    /// Whether there are any.
    pub(crate) fn are_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Why an Ingress waits, and what of it is left meanwhile.
    pub(crate) fn waits(&self, key: &ObjectKey) -> Option<(Problem, Left)> {
        let waits = self.namespaces.get(&key.namespace)?.waiting.get(key)?;
        let Waits { lacks, keeps, certificates } = *waits;
        let name = NAMES[lacks];
        let then = if keeps {
            "until then its paths answer 503"
        } else {
            "until then its hosts and paths are not kept for it, either"
        };
        let message = format!(
            "the Ingress is not served: the older ones of its namespace leave too little of the {name} that it may have; \
             remove some, or raise {name} in {KEY} of the ConfigMap; {then}"
        );
        let (origin, severity) = (crate::ingress::origin(key), Severity::Error);
        let left = if keeps { Left::Closed { certificates } } else { Left::Nothing };
        Some((Problem { origin, key: None, severity, message: message.into() }, left))
    }

    /// Whether an Ingress waits.
    pub(crate) fn is_waiting(&self, key: &ObjectKey) -> bool {
        let namespace = self.namespaces.get(&key.namespace);
        namespace.is_some_and(|namespace| namespace.waiting.contains_key(key))
    }
}

impl Namespace {
    fn put_in(&mut self, key: &ObjectKey, weight: Weight, snapshot: &Snapshot) {
        for (kind, own) in &weight.amounts {
            self.total[*kind] = self.total[*kind].saturating_add(*own);
        }
        for secret in &weight.secrets {
            let bytes = bytes_of(secret, snapshot);
            let (users, known) = self.secrets.entry(secret.clone()).or_default();
            self.total[CERTIFICATE_BYTES] += bytes;
            self.total[CERTIFICATE_BYTES] -= *known;
            (*users, *known) = (*users + 1, bytes);
        }
        self.weights.insert(key.clone(), weight);
    }

    fn take_out(&mut self, key: &ObjectKey) {
        let Some(weight) = self.weights.remove(key) else { return };
        for (kind, own) in &weight.amounts {
            self.total[*kind] -= *own;
        }
        for secret in &weight.secrets {
            let Some((users, bytes)) = self.secrets.get_mut(secret) else { continue };
            *users -= 1;
            if *users == 0 {
                self.total[CERTIFICATE_BYTES] -= *bytes;
                self.secrets.remove(secret);
            }
        }
    }

    /// Has those wait for longer who waited and are not in the first portion of these, the oldest first; whether there
    /// are any.
    fn hold_back(&self, waiting: &mut BTreeMap<ObjectKey, usize>, portion: u64) -> bool {
        let free = self.waiting.iter().filter(|(key, _)| !waiting.contains_key(*key));
        let mut free: Vec<_> =
            free.filter_map(|(key, it)| Some((key, it.lacks, self.weights.get(key)?))).collect();
        free.sort_by_cached_key(|(key, _, weight)| Age::new(key, weight.created));
        let mut taken = 0;
        let of_first = free.iter().take_while(|(_, _, weight)| {
            let is_first = taken == 0;
            taken += weight.portion();
            portion > 0 && (is_first || taken <= portion)
        });
        let first = of_first.count();
        waiting.extend(free[first..].iter().map(|(key, kind, _)| ((*key).clone(), *kind)));
        first < free.len()
    }

    /// Of those who wait, the oldest keep their hosts and paths, closed, as far as these would fit a budget of the same
    /// size once more: what an Ingress guards is open to nobody because an older one has grown. So do of these the
    /// oldest keep their certificates.
    fn closed(
        &self,
        waiting: BTreeMap<ObjectKey, usize>,
        budget: &Budget,
    ) -> BTreeMap<ObjectKey, Waits> {
        let with_weight = |(key, lacks)| Some((self.weights.get(&key)?, key, lacks));
        let mut order: Vec<_> = waiting.into_iter().filter_map(with_weight).collect();
        order.sort_by_cached_key(|(weight, key, _)| Age::new(key, weight.created));
        let mut kept = Amounts::default();
        let mut secrets = BTreeSet::new();
        let each = order.into_iter().map(|(weight, key, lacks)| {
            let mut then = kept;
            for (kind, own) in &weight.amounts {
                if [INGRESSES, HOSTS, PATHS].contains(kind) {
                    then[*kind] = then[*kind].saturating_add(*own);
                }
            }
            let keeps = budget.exceeded(&then).is_none();
            if keeps {
                kept = then;
            }
            let bytes = self.bytes_besides(weight, &secrets);
            then[CERTIFICATE_BYTES] = then[CERTIFICATE_BYTES].saturating_add(bytes);
            let certificates = keeps && budget.exceeded(&then).is_none();
            if certificates {
                kept = then;
                secrets.extend(&weight.secrets);
            }
            (key, Waits { lacks, keeps, certificates })
        });
        each.collect()
    }

    /// Bytes of the Secrets of an Ingress that are not among others.
    fn bytes_besides(&self, weight: &Weight, others: &BTreeSet<&ObjectKey>) -> u64 {
        let new = weight.secrets.iter().filter(|secret| !others.contains(secret));
        new.filter_map(|secret| self.secrets.get(secret)).map(|(_, bytes)| *bytes).sum()
    }

    /// Those for whom the older ones leave too little.
    fn newest(&self, budget: &Budget) -> BTreeMap<ObjectKey, usize> {
        let mut order: Vec<(&ObjectKey, &Weight)> = self.weights.iter().collect();
        order.sort_by_cached_key(|(key, weight)| Age::new(key, weight.created));
        let mut taken = Amounts::default();
        let mut secrets = BTreeSet::new();
        let mut waiting = BTreeMap::new();
        for (key, weight) in order {
            let mut then = taken;
            for (kind, own) in &weight.amounts {
                then[*kind] = then[*kind].saturating_add(*own);
            }
            let bytes = self.bytes_besides(weight, &secrets);
            then[CERTIFICATE_BYTES] = then[CERTIFICATE_BYTES].saturating_add(bytes);
            match budget.exceeded(&then) {
                Some(kind) => drop(waiting.insert(key.clone(), kind)),
                None => {
                    taken = then;
                    secrets.extend(&weight.secrets);
                }
            }
        }
        waiting
    }
}

fn bytes_of(secret: &ObjectKey, snapshot: &Snapshot) -> u64 {
    let data = snapshot.secrets.get(secret).and_then(|secret| secret.data.as_ref());
    let bytes = data.into_iter().flat_map(BTreeMap::values).map(Vec::len).sum::<usize>();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The bytes of a Secret or a ConfigMap that an annotation names.
fn bytes_named(reference: &Reference, snapshot: &Snapshot) -> u64 {
    let bytes = match reference {
        Reference::Secret(key) => return bytes_of(key, snapshot),
        Reference::ConfigMap(key) => {
            let data = snapshot.config_maps.get(key).map(|found| &found.data);
            let entries = data.into_iter().flatten();
            entries.map(|(name, value)| name.len() + value.len()).sum()
        }
        Reference::Service(_) => 0,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Budget, KINDS};

    #[test]
    fn amounts_are_read_by_name_and_others_stay() {
        let read: Budget = "paths=3, hosts = 2".parse().expect("a budget");
        let plain = Budget::default();
        assert_eq!((read.0[1], read.0[2]), (2, 3));
        assert!((3..KINDS).all(|kind| read.0[kind] == plain.0[kind]));
        for wrong in ["tea=1", "paths", "paths=many", "paths=-1"] {
            assert!(
                wrong.parse::<Budget>().is_err_and(|why| why.contains("certificate-bytes")),
                "{wrong}"
            );
        }
        for nothing in ["ingresses=0", "hosts=0", "paths=0", "problems=0", "endpoints=0"] {
            let why = nothing.parse::<Budget>().expect_err(nothing);
            assert!(why.contains("write a number above 0"), "{why}");
        }
        assert!("patterns=0, certificate-bytes=0".parse::<Budget>().is_ok());
    }
}
