//! All series, and the bound on how many there are.

use super::labels::{
    CountedLocation, Labels, LocationLabels, Name, OVERFLOW, label_value, method_text, status_text,
    text,
};
use super::layout::{Layout, Part};
use super::series::{Cells, Series};
use super::tally::{Connections, Tallies, Tally};
use super::{Counted, Settings};
use foldhash::fast::RandomState;
use model::{Alias, Location, Server, ServerName, UpstreamId};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// What all threads have counted. One for each process.
#[derive(Debug)]
pub struct Metrics {
    pub(super) settings: Settings,
    pub(super) layout: Layout,
    books: RwLock<Books>,
    /// One more whenever series went, so that threads forget their cells.
    swept: AtomicUsize,
    overflowed: AtomicU64,
    threads: Tallies,
}

#[derive(Debug, Default)]
struct Books {
    numbers: u64,
    names: HashMap<Arc<str>, Weak<Name>>,
    /// Those that nobody else holds go with the next sweep.
    places: HashSet<Known>,
    series: HashMap<Key, Arc<Series>, RandomState>,
    /// How many of them each namespace has.
    by_namespace: HashMap<Arc<str>, usize>,
    /// By the namespace and the class of the status.
    overflow: BTreeMap<(Arc<str>, u16), Arc<Series>>,
    /// Hosts that no Ingress names, which therefore nobody else holds.
    undefined: Vec<Arc<Name>>,
}

/// Where requests are answered, found by its labels. They stand in it alone: there are tens of thousands, and a table
/// of labels has twice the room that they need.
#[derive(Debug)]
struct Known(Arc<CountedLocation>);

impl Borrow<LocationLabels> for Known {
    fn borrow(&self) -> &LocationLabels {
        &self.0.spot
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.0.spot == other.0.spot
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.spot.hash(state);
    }
}

/// What tells series apart: numbers, so that a request needs no text to find its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) place: u64,
    /// 0 for none.
    pub(super) host: u64,
    /// 0 for none.
    pub(super) canary: u64,
    /// The number of the status, or of its class.
    pub(super) status: u16,
    pub(super) method: u8,
}

/// What the labels of a new series are made of.
pub(super) struct Parts<'a> {
    pub(super) place: &'a Arc<CountedLocation>,
    pub(super) host: Option<&'a Arc<Name>>,
    /// No Ingress names the host: a client chose it.
    pub(super) is_made_up: bool,
    pub(super) canary: Option<&'a Arc<Name>>,
}

impl Metrics {
    /// Nothing is counted yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            layout: Layout::new(&settings),
            settings,
            books: RwLock::default(),
            swept: AtomicUsize::new(0),
            overflowed: AtomicU64::new(0),
            threads: Tallies::default(),
        }
    }

    /// What is measured of requests.
    pub fn parts(&self) -> &[Part] {
        &self.layout.parts
    }

    /// The series now, in the order of their labels.
    pub fn series(&self) -> Vec<Arc<Series>> {
        self.sweep();
        let books = self.read();
        let mut all: Vec<_> =
            books.series.values().chain(books.overflow.values()).cloned().collect();
        drop(books);
        all.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        all
    }

    /// How many series there are, and may be.
    pub fn budget(&self) -> (usize, usize) {
        (self.read().series.len(), self.settings.most)
    }

    /// Requests that were counted under `overflow`.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// What the connections of clients are at.
    pub fn connections(&self) -> Connections {
        self.threads.connections()
    }

    /// Forgets what nothing can be counted under any more.
    pub fn sweep(&self) {
        let mut books = self.write();
        books.names.retain(|_, name| name.strong_count() > 0);
        books.places.retain(|Known(place)| Arc::strong_count(place) > 1);
        let Books { places, series, by_namespace, overflow, .. } = &mut *books;
        let before = series.len();
        series.retain(|_, series| series.is_alive());
        if series.len() < before {
            by_namespace.clear();
            for series in series.values() {
                *by_namespace.entry(series.labels.namespace.clone()).or_default() += 1;
            }
            self.swept.fetch_add(1, Ordering::Relaxed);
        }
        if !overflow.is_empty() {
            let namespaces = places.iter().map(|Known(place)| place.spot.namespace());
            let alive: HashSet<&str> = namespaces.map(text).collect();
            let is_alive = |namespace: &str| namespace == OVERFLOW || alive.contains(namespace);
            overflow.retain(|(namespace, _), _| is_alive(namespace));
        }
    }

    /// What a location's requests count under.
    pub fn location(&self, location: &Location, canary: Option<&UpstreamId>) -> Counted {
        let spot = LocationLabels::of(location);
        let canary = canary.map(|canary| self.name(canary.as_str()));
        let mut books = self.write();
        if let Some(Known(place)) = books.places.get(&spot) {
            return Counted { place: place.clone(), canary };
        }
        let place = Arc::new(CountedLocation { number: books.number(), spot });
        books.places.insert(Known(place.clone()));
        Counted { place, canary }
    }

    /// The names under which a server's requests count, its own first; none where hosts are not told apart.
    pub fn hosts(&self, server: &Server) -> Vec<Arc<Name>> {
        if !self.settings.per_host {
            return Vec::new();
        }
        let alias = |alias: &Alias| match alias {
            Alias::Name(name) => Some(self.host(name)),
            Alias::Below(_) | Alias::Beginning(_) | Alias::Pattern(_) => None,
        };
        let own = self.host(&server.name);
        std::iter::once(own).chain(server.aliases.iter().filter_map(alias)).collect()
    }

    /// A thread begins to count; its number.
    pub(super) fn join(&self) -> (usize, Arc<Tally>) {
        self.threads.join()
    }

    /// How often series went.
    pub(super) fn swept(&self) -> usize {
        self.swept.load(Ordering::Relaxed)
    }

    /// The cells of a thread for a series, which begins with it; none if there are too many series.
    pub(super) fn cells(&self, thread: usize, key: Key, parts: &Parts<'_>) -> Option<Arc<Cells>> {
        let cells = |series: &Arc<Series>| series.cells(thread, self.layout.cells);
        let books = self.read();
        if let Some(series) = books.series.get(&key) {
            return Some(cells(series));
        }
        if !books.has_room(self.settings.most, parts) {
            return None;
        }
        drop(books);
        let mut books = self.write();
        if let Some(series) = books.series.get(&key) {
            return Some(cells(series));
        }
        if !books.has_room(self.settings.most, parts) {
            return None;
        }
        let series = Arc::new(self.begin(key, parts));
        *books.by_namespace.entry(series.labels.namespace.clone()).or_default() += 1;
        let own = cells(&series);
        books.series.insert(key, series);
        Some(own)
    }

    fn begin(&self, key: Key, parts: &Parts<'_>) -> Series {
        let spot = &parts.place.spot;
        let labels = Labels {
            namespace: spot.namespace().cloned().unwrap_or_default(),
            ingress: spot.ingress().cloned().unwrap_or_default(),
            host: parts.host.map(|host| host.text.clone()),
            path: spot.path.clone(),
            service: spot.service().cloned().unwrap_or_default(),
            canary: parts.canary.map(|canary| canary.text.clone()).unwrap_or_default(),
            method: method_text(key.method),
            status: status_text(key.status),
        };
        Series::new(labels, Some(Arc::downgrade(parts.place)), parts.host.map(Arc::downgrade))
    }

    /// The cells of a thread for what is not told apart any more, by namespace and the class of the status. There may
    /// be a quarter as many of them as of the others; beyond that namespaces are not told apart, either.
    pub(super) fn overflow(&self, thread: usize, namespace: &Arc<str>, class: u16) -> Arc<Cells> {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        let cells = |series: &Arc<Series>| series.cells(thread, self.layout.cells);
        let mut key = (namespace.clone(), class);
        let books = self.read();
        if !books.overflow.contains_key(&key)
            && books.overflow.len() >= self.settings.most.div_ceil(4)
        {
            key.0 = OVERFLOW.into();
        }
        if let Some(series) = books.overflow.get(&key) {
            return cells(series);
        }
        drop(books);
        let labels = Labels::overflow(&key.0, class, self.settings.per_host);
        let begin = || Arc::new(Series::new(labels, None, None));
        cells(self.write().overflow.entry(key).or_insert_with(begin))
    }

    /// A host that no Ingress names; none if there are too many. They get a quarter of the series, so that whoever
    /// makes hosts up does not take the place of those that are served.
    pub(super) fn undefined(&self, host: &str) -> Option<Arc<Name>> {
        let host = &*label_value(host);
        let books = self.read();
        if let Some(known) = books.names.get(host).and_then(Weak::upgrade) {
            return Some(known);
        }
        if books.undefined.len() >= self.settings.most / 4 {
            return None;
        }
        drop(books);
        let name = self.name(host);
        self.write().undefined.push(name.clone());
        Some(name)
    }

    /// A text that is to be a label's value.
    pub fn name(&self, text: &str) -> Arc<Name> {
        self.named(text, || text.into())
    }

    /// The name of a host, whose text the label shares.
    fn host(&self, name: &ServerName) -> Arc<Name> {
        self.named(name.as_str(), || name.text().clone())
    }

    fn named(&self, text: &str, own: impl FnOnce() -> Arc<str>) -> Arc<Name> {
        let mut books = self.write();
        if let Some(known) = books.names.get(text).and_then(Weak::upgrade) {
            return known;
        }
        let name = Arc::new(Name { number: books.number(), text: own() });
        books.names.insert(name.text.clone(), Arc::downgrade(&name));
        name
    }

    fn read(&self) -> RwLockReadGuard<'_, Books> {
        self.books.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Books> {
        self.books.write()
    }
}

impl Books {
    /// The next number, from 1 on.
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Whether one more series may begin: a namespace may have as many as are free, so that those that take all they
    /// can leave half of what they found. For hosts that clients make up half of all are there at most.
    fn has_room(&self, most: usize, parts: &Parts<'_>) -> bool {
        let namespace = text(parts.place.spot.namespace());
        let own = self.by_namespace.get(namespace).copied().unwrap_or(0);
        let for_all = if parts.is_made_up { most / 2 } else { most };
        own < for_all.saturating_sub(self.series.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Metrics, Parts};
    use crate::{Counted, Settings, tests_settings};
    use model::{Backend, Kind, Location, Origin, PathKind, Server, ServerName};

    fn location(path: &str) -> Location {
        Location {
            path: path.to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::NotFound,
            canary: None,
            service: None,
            origin: None,
            policy: Default::default(),
        }
    }

    fn of(metrics: &Metrics, namespace: &str) -> Counted {
        let origin = Some(Origin::new(Kind::Ingress, namespace, "i").into());
        metrics.location(&Location { origin, ..location("/") }, None)
    }

    fn parts(counted: &Counted) -> Parts<'_> {
        Parts { place: &counted.place, host: None, is_made_up: false, canary: None }
    }

    /// Counts under one status after the other while there is room for another series.
    fn fill(metrics: &Metrics, parts: &Parts<'_>) -> usize {
        let key = |status| key(parts.place.number, status);
        (100..999).take_while(|status| metrics.cells(1, key(*status), parts).is_some()).count()
    }

    fn key(place: u64, status: u16) -> Key {
        Key { place, host: 0, canary: 0, status, method: 0 }
    }

    #[test]
    fn locations_with_the_same_labels_count_together_and_their_series_go_with_the_last() {
        let metrics = Metrics::new(tests_settings());
        let first = metrics.location(&location("/"), None);
        let again = metrics.location(&location("/"), None);
        assert_eq!(first.place.number, again.place.number);
        let parts = parts(&first);
        let cells = metrics.cells(1, key(first.place.number, 200), &parts);
        assert!(cells.is_some());
        drop(first);
        assert_eq!(metrics.series().len(), 1);
        drop(again);
        assert_eq!(metrics.series().len(), 0);
        assert_ne!(metrics.swept(), 0, "threads are told");
    }

    #[test]
    fn a_series_too_many_is_none_until_another_one_goes() {
        let metrics = Metrics::new(Settings { most: 1, ..tests_settings() });
        let (old, new) =
            (metrics.location(&location("/a"), None), metrics.location(&location("/b"), None));
        let (old_parts, new_parts) = (parts(&old), parts(&new));
        assert!(metrics.cells(1, key(old.place.number, 200), &old_parts).is_some());
        assert!(metrics.cells(2, key(old.place.number, 200), &old_parts).is_some(), "the same one");
        assert!(metrics.cells(1, key(new.place.number, 200), &new_parts).is_none());
        metrics.overflow(1, &"shop".into(), 2);
        assert_eq!((metrics.budget(), metrics.overflowed()), ((1, 1), 1));
        let overflow = metrics.books.read().overflow.values().next().unwrap().clone();
        assert_eq!((&*overflow.labels.namespace, &*overflow.labels.status), ("shop", "2xx"));
        drop(old);
        metrics.sweep();
        assert!(metrics.cells(1, key(new.place.number, 200), &new_parts).is_some());
    }

    #[test]
    fn one_namespace_leaves_series_to_others_and_what_is_beyond_tells_its_namespace() {
        let metrics = Metrics::new(Settings { most: 40, ..tests_settings() });
        let (evil, more, victim) = (of(&metrics, "e"), of(&metrics, "f"), of(&metrics, "v"));
        assert_eq!(fill(&metrics, &parts(&evil)), 20, "as many as are free then");
        assert_eq!(fill(&metrics, &parts(&more)), 10);
        assert_eq!(fill(&metrics, &parts(&victim)), 5, "half of what they left");
        assert_eq!(metrics.budget(), (35, 40));
        for class in 2..6 {
            metrics.overflow(1, &"v".into(), class);
        }
        let beyond = metrics.series().into_iter().filter(|one| &*one.labels.ingress == "overflow");
        assert!(beyond.clone().all(|series| &*series.labels.namespace == "v"));
        assert_eq!(beyond.count(), 4);
        // There is an end to those, too.
        (0..20).for_each(|other| drop(metrics.overflow(1, &other.to_string().into(), 2)));
        let overflow = metrics.books.read().overflow.clone();
        assert!(overflow.len() <= 11 && overflow.contains_key(&("overflow".into(), 2)));
        // Whoever goes leaves room, and takes what was beyond along.
        drop((evil, victim));
        assert!(metrics.series().iter().all(|series| &*series.labels.namespace != "v"));
        assert_eq!(fill(&metrics, &parts(&of(&metrics, "w"))), 15);
    }

    #[test]
    fn made_up_hosts_take_a_quarter_of_the_series() {
        let metrics = Metrics::new(Settings { most: 8, ..tests_settings() });
        let served = metrics.hosts(&Server::new(ServerName::new("a.test")));
        assert_eq!(metrics.undefined("a.test").unwrap().number, served[0].number);
        assert!(metrics.undefined("x.test").is_some() && metrics.undefined("y.test").is_some());
        assert!(metrics.undefined("z.test").is_none());
        assert!(metrics.undefined("x.test").is_some(), "it is known already");
        let wild = of(&metrics, "w");
        assert_eq!(fill(&metrics, &Parts { is_made_up: true, ..parts(&wild) }), 2);
        assert_eq!(fill(&metrics, &parts(&wild)), 2 + 2, "those that are served have room");
    }
}
