//! Hosts that are known only once a request is there: URLs with variables in their host. What was found is kept for a
//! while, as nginx's resolver does (`valid=30s`); that nothing was found, for a moment. Requests that ask for the same
//! host at the same time are one question.

use model::Endpoints;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use stream::Resolver;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long an address is believed.
const VALID: Duration = Duration::from_secs(30);
/// How long it is believed that there is none.
const FAILED: Duration = Duration::from_secs(2);
/// How long a request waits for a lookup (nginx: resolver_timeout).
const PATIENCE: Duration = Duration::from_secs(5);
/// Hosts that are kept at most: clients may choose them. As many are kept that have no address.
const MOST: usize = 1000;
/// Of these, those that the Ingresses of one namespace asked for first.
const OF_ONE: usize = 250;
/// Questions under way or waiting, and those of one namespace: what comes beyond is not found.
const ASKED: usize = 256;
const ASKED_BY_ONE: usize = ASKED / 4;

type Host = (String, u16);
/// The endpoints at a host, if it has an address.
type Found = Option<Arc<Endpoints>>;

/// What is known of a host.
#[derive(Debug)]
struct Entry {
    since: Instant,
    found: Found,
    /// The namespace that asked first.
    whose: Arc<str>,
}

/// Hosts of which something is known.
#[derive(Debug)]
struct Known {
    /// How long that is believed.
    valid: Duration,
    hosts: HashMap<Host, Entry>,
    counts: HashMap<Arc<str>, usize>,
    /// Hosts that made room for others before their time.
    forgotten: u64,
}

/// What is known of all hosts.
#[derive(Debug)]
struct Book {
    found: Known,
    failed: Known,
    /// Questions under way, by namespace: one namespace waits for no turn of another one.
    asked: HashMap<Arc<str>, HashMap<Host, watch::Receiver<Option<Found>>>>,
    /// Questions for which there was no room.
    refused: u64,
}

/// The addresses of hosts, shared by all threads.
#[derive(Debug)]
pub struct Names {
    book: Arc<Mutex<Book>>,
    resolver: Arc<Resolver>,
    /// Where questions are asked: those of a thread of traffic would end with it.
    runtime: Option<Handle>,
}

impl Names {
    /// Names that this one looks up, in the runtime that calls, if there is one.
    pub fn new(resolver: Arc<Resolver>) -> Self {
        let (found, failed) = (Known::new(VALID), Known::new(FAILED));
        let book = Book { found, failed, asked: HashMap::new(), refused: 0 };
        let runtime = Handle::try_current().ok();
        Self { book: Arc::new(Mutex::new(book)), resolver, runtime }
    }

    /// The addresses of a host, in the order of the answer; none if there is none, or no answer in time. An Ingress of
    /// `whose` namespace asks.
    pub async fn lookup(&self, host: &str, port: u16, whose: &Arc<str>) -> Option<Arc<Endpoints>> {
        let host = (host.to_owned(), port);
        let mut answer = {
            let mut book = self.book();
            if let Some(found) = book.kept(&host) {
                return found;
            }
            match book.under_way(&host, whose) {
                Some(answer) => answer,
                None => self.ask(&mut book, host, whose)?,
            }
        };
        let answer = timeout(PATIENCE, answer.wait_for(Option::is_some)).await.ok()?.ok()?;
        answer.clone().flatten()
    }

    /// How many hosts are kept, how many may be, and how many made room for others before their time or were not asked
    /// for.
    pub fn kept_hosts(&self) -> (u64, u64, u64) {
        let book = self.book();
        (book.found.hosts.len() as u64, MOST as u64, book.found.forgotten + book.refused)
    }

    /// Asks for a host, if there is room for one more question. It goes on if the request goes away.
    fn ask(
        &self,
        book: &mut Book,
        host: Host,
        whose: &Arc<str>,
    ) -> Option<watch::Receiver<Option<Found>>> {
        let all: usize = book.asked.values().map(HashMap::len).sum();
        let own = book.asked.entry(whose.clone()).or_default();
        // No more than is left for others.
        if own.len() >= ASKED_BY_ONE.min(ASKED.saturating_sub(all)) {
            book.refused += 1;
            return None;
        }
        let (sender, answer) = watch::channel(None);
        own.insert(host.clone(), answer.clone());
        let (resolver, whose) = (self.resolver.clone(), whose.clone());
        let book = self.book.clone();
        let asking = async move {
            let found = resolver.addresses(&whose, &host.0, host.1).await;
            let was_asked =
                found.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::WouldBlock);
            let found = found.ok().map(|ready| Arc::new(Endpoints { ready, draining: Vec::new() }));
            book.lock().note(host, &whose, found.clone(), was_asked);
            // Who waits for it may have gone away.
            drop(sender.send(Some(found)));
        };
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(asking)),
            None => drop(tokio::spawn(asking)),
        }
        Some(answer)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }
}

impl Book {
    /// What is known of a host.
    fn kept(&self, host: &Host) -> Option<Found> {
        self.found.kept(host).or_else(|| self.failed.kept(host))
    }

    /// The answer that somebody of the same namespace waits for already.
    fn under_way(&self, host: &Host, whose: &Arc<str>) -> Option<watch::Receiver<Option<Found>>> {
        let answer = self.asked.get(whose)?.get(host)?;
        // One whose task is gone will have none.
        answer.has_changed().is_ok().then(|| answer.clone())
    }

    /// Notes what came of a question.
    fn note(&mut self, host: Host, whose: &Arc<str>, found: Found, was_asked: bool) {
        if let Some(own) = self.asked.get_mut(whose) {
            own.remove(&host);
            if own.is_empty() {
                self.asked.remove(whose);
            }
        }
        let list = if found.is_some() { &mut self.found } else { &mut self.failed };
        if was_asked {
            list.keep(host, Entry { since: Instant::now(), found, whose: whose.clone() });
        }
    }
}

impl Known {
    fn new(valid: Duration) -> Self {
        Self { valid, hosts: HashMap::new(), counts: HashMap::new(), forgotten: 0 }
    }

    fn kept(&self, host: &Host) -> Option<Found> {
        let entry = self.hosts.get(host)?;
        (entry.since.elapsed() < self.valid).then(|| entry.found.clone())
    }

    /// Keeps an entry. Where there are too many, the oldest one goes: of its own namespace if that has its share, else
    /// of the one that has most.
    fn keep(&mut self, host: Host, entry: Entry) {
        self.forget(&host);
        if self.hosts.len() >= MOST {
            let old = self.hosts.iter().filter(|(_, entry)| entry.since.elapsed() >= self.valid);
            let old: Vec<Host> = old.map(|(host, _)| host.clone()).collect();
            old.iter().for_each(|host| self.forget(host));
        }
        let own = self.counts.get(&entry.whose).copied().unwrap_or(0);
        let gives = if own >= OF_ONE {
            Some(entry.whose.clone())
        } else if self.hosts.len() >= MOST {
            self.counts.iter().max_by_key(|(_, count)| **count).map(|(whose, _)| whose.clone())
        } else {
            None
        };
        if let Some(whose) = gives {
            let theirs = self.hosts.iter().filter(|(_, entry)| entry.whose == whose);
            let oldest = theirs.min_by_key(|(_, entry)| entry.since);
            if let Some(oldest) = oldest.map(|(host, _)| host.clone()) {
                self.forgotten += 1;
                self.forget(&oldest);
            }
        }
        *self.counts.entry(entry.whose.clone()).or_default() += 1;
        self.hosts.insert(host, entry);
    }

    fn forget(&mut self, host: &Host) {
        let Some(entry) = self.hosts.remove(host) else { return };
        if let Some(count) = self.counts.get_mut(&entry.whose) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&entry.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ASKED_BY_ONE, Entry, Known, MOST, Names, OF_ONE, VALID};
    use std::sync::Arc;
    use std::time::Duration;
    use stream::Resolver;
    use testkit::eventually;
    use testkit::name_server::{NameServer, Says};
    use tokio::task::JoinSet;
    use tokio::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(60);

    async fn bed() -> (NameServer, Arc<Names>) {
        let server = NameServer::start().await;
        let resolver = Arc::new(Resolver::from(server.resolver(PATIENCE)));
        (server, Arc::new(Names::new(resolver)))
    }

    /// Requests for these hosts at the same time; how many found somebody.
    fn requests(names: &Arc<Names>, whose: &str, hosts: &[String]) -> JoinSet<bool> {
        let whose: Arc<str> = whose.into();
        let request = |host: &String| {
            let (names, host, whose) = (names.clone(), host.clone(), whose.clone());
            async move { names.lookup(&host, 80, &whose).await.is_some() }
        };
        hosts.iter().map(request).collect()
    }

    #[tokio::test]
    async fn hosts_without_an_answer_are_few_questions_and_others_are_found_meanwhile() {
        let (server, names) = bed().await;
        let hosts: Vec<_> = (0..200).map(|number| format!("x{number}.slow.example")).collect();
        hosts.iter().for_each(|host| server.says(host, Says::Nothing));
        server.says("auth.example", Says::Addresses(vec![[192, 0, 2, 7].into()], 1));
        let evil = requests(&names, "evil", &hosts);
        let asked = || hosts.iter().filter(|host| server.asked(host) > 0).count();
        eventually(PATIENCE, || async { (asked() >= 8).then_some(()) }).await.expect("some are");
        let good = requests(&names, "good", &["auth.example".to_owned()]).join_all().await;
        assert_eq!(good, [true]);
        assert!(asked() <= 16, "the rest waits for its turn: {}", asked());
        let refused = hosts.len() - ASKED_BY_ONE;
        assert_eq!(names.kept_hosts().2, refused as u64, "few wait");
        assert!(evil.join_all().await.iter().all(|found| !found), "in time, and not found");
    }

    #[tokio::test]
    async fn requests_for_one_host_are_one_question_and_that_there_is_none_is_known_for_a_moment() {
        let (server, names) = bed().await;
        server.says("auth.example", Says::Nothing);
        let all = requests(&names, "demo", &vec!["auth.example".to_owned(); 100]);
        let asked = || async { (server.asked("auth.example") > 0).then_some(()) };
        eventually(PATIENCE, asked).await.expect("it is asked");
        server.says("auth.example", Says::Addresses(vec![[192, 0, 2, 7].into()], 1));
        assert!(all.join_all().await.iter().all(|found| *found));
        assert_eq!(server.asked("auth.example"), 1);
        let nobody = ["nobody.example".to_owned()];
        assert_eq!(requests(&names, "demo", &nobody).join_all().await, [false]);
        let before = server.asked("nobody.example");
        assert_eq!(requests(&names, "demo", &nobody).join_all().await, [false]);
        assert_eq!(server.asked("nobody.example"), before, "it was not asked again at once");
        server.says("nobody.example", Says::Addresses(vec![[192, 0, 2, 8].into()], 1));
        let found = || async { names.lookup("nobody.example", 80, &"demo".into()).await };
        eventually(PATIENCE, found).await.expect("it is asked again after a moment");
    }

    fn keep(known: &mut Known, host: &str, whose: &str) {
        let entry = Entry { since: Instant::now(), found: None, whose: whose.into() };
        known.keep((host.to_owned(), 80), entry);
    }

    #[test]
    fn who_asks_for_many_hosts_loses_its_own() {
        let mut known = Known::new(VALID);
        let has = |known: &Known, host: &str| known.hosts.contains_key(&(host.to_owned(), 80));
        keep(&mut known, "first.of-b", "b");
        for number in 0..3 * OF_ONE {
            keep(&mut known, &format!("{number}.of-a"), "a");
        }
        assert!(has(&known, "first.of-b") && !has(&known, "0.of-a"));
        assert_eq!((known.counts["a"], known.counts["b"]), (OF_ONE, 1));
        assert_eq!(known.forgotten, 2 * OF_ONE as u64);
        for namespace in 0..20 {
            for number in 0..OF_ONE / 2 {
                keep(&mut known, &format!("{number}.of-{namespace}"), &namespace.to_string());
            }
        }
        assert!(has(&known, "first.of-b"), "who has little loses nothing to who has much");
        assert_eq!(known.hosts.len(), MOST);
        assert_eq!(known.counts.values().sum::<usize>(), MOST);
    }
}
