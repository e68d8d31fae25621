//! The page `/metrics`: everything is read when somebody asks, section by section, so that a long page is never held
//! whole.

mod about;
mod certificates;
#[cfg(test)]
mod documentation;
mod families;
mod page;
mod requests;
mod sections;
mod source;

pub use page::Identity;
pub use source::{
    AtEndpoint, AtEndpoints, Copied, Copies, Lost, Places, Sampled, Source, Step, Supervised,
    Traffic, Within,
};

use bytes::Bytes;
use controller::Known;
use controller::admission::{Certificate, Reviews};
use controller::lease;
use kubernetes::Following;
use page::Writer;
use requests::Pieces;
use runtime::admin::Page;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use stream::Streams;
use tokio::sync::watch;

/// Where the numbers come from.
pub struct Metrics {
    identity: Identity,
    engine: Box<dyn Source>,
    /// Set once there is one.
    controller: OnceLock<Controller>,
    reviews: OnceLock<(Arc<Reviews>, Arc<Certificate>)>,
    /// How the watches of a cluster are.
    following: Following,
    leadership: OnceLock<Leadership>,
    certificates: Mutex<certificates::Known>,
    /// Scrapes that are over, and those that are not.
    scrapes: AtomicU64,
    scraping: AtomicU64,
}

/// The loop and what follows it.
pub struct Controller {
    /// What the loop counts.
    pub loops: Arc<controller::Metrics>,
    /// What there is to know.
    pub known: watch::Receiver<Arc<Known>>,
    /// Layer 4.
    pub streams: Arc<Streams>,
}

/// The election that this replica takes part in.
struct Leadership {
    name: String,
    leads: Box<dyn Fn() -> bool + Send + Sync>,
    /// Whether it ever did.
    has_led: AtomicBool,
}

/// A scrape until its last piece.
struct Scrape {
    metrics: Arc<Metrics>,
    /// None where metrics are not wanted.
    traffic: Option<Traffic>,
}

impl Drop for Scrape {
    fn drop(&mut self) {
        self.metrics.scraping.fetch_sub(1, Ordering::Relaxed);
        self.metrics.scrapes.fetch_add(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// The numbers of an engine and of the watches of a cluster, told by this process.
    pub fn new(engine: impl Source, identity: Identity, following: Following) -> Arc<Self> {
        Arc::new(Self {
            identity,
            engine: Box::new(engine),
            controller: OnceLock::new(),
            reviews: OnceLock::new(),
            following,
            leadership: OnceLock::new(),
            certificates: Mutex::default(),
            scrapes: AtomicU64::new(0),
            scraping: AtomicU64::new(0),
        })
    }

    /// From now on the loop tells, too.
    pub fn follow(&self, controller: Controller) {
        let _ = self.controller.set(controller);
    }

    /// What there is to know, once there is a loop.
    pub fn known(&self) -> Option<Arc<Known>> {
        self.controller.get().map(|controller| controller.known.borrow().clone())
    }

    /// From now on the webhook tells, too.
    pub fn follow_reviews(&self, reviews: Arc<Reviews>, certificate: Arc<Certificate>) {
        let _ = self.reviews.set((reviews, certificate));
    }

    /// This replica takes part in the election of that name; without one it counts as its own leader.
    pub fn follow_leader(&self, election: Option<String>, leads: lease::Leadership) {
        if let Some(name) = election {
            let _ = self.leadership.set(Leadership::new(name, move || leads.is_leader()));
        }
    }

    /// The page.
    pub async fn page(self: Arc<Self>) -> Page {
        self.scraping.fetch_add(1, Ordering::Relaxed);
        let mut scrape = Scrape { metrics: self.clone(), traffic: None };
        let Some(requests) = self.engine.requests().cloned() else {
            // What was turned away is told in any case: nothing else says why.
            let sections = [sections::process, sections::shed].into_iter();
            return Page::metrics(sections.map(move |section| scrape.section(section)));
        };
        scrape.traffic = Some(self.engine.traffic().await);
        let scrape = Arc::new(scrape);
        let own = scrape.clone();
        let all = sections::ALL.iter().map(move |section| own.section(*section));
        Page::metrics(all.chain(Pieces::new(scrape, requests)))
    }
}

impl Scrape {
    fn section(&self, section: fn(&Self, &mut Writer<'_>)) -> Bytes {
        let mut writer = Writer::new(&self.metrics.identity);
        section(self, &mut writer);
        writer.finish()
    }
}

impl Leadership {
    fn new(name: String, leads: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { name, leads: Box::new(leads), has_led: AtomicBool::new(false) }
    }

    /// Whether it leads now; none if it never did.
    fn now(&self) -> Option<bool> {
        let leads = (self.leads)();
        let has_led = self.has_led.fetch_or(leads, Ordering::Relaxed) || leads;
        has_led.then_some(leads)
    }
}

#[cfg(test)]
mod tests {
    use super::Leadership;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn who_never_led_says_nothing_and_who_did_once_says_so() {
        let leads = Arc::new(AtomicBool::new(false));
        let own = leads.clone();
        let leadership =
            Leadership::new("election".to_owned(), move || own.load(Ordering::Relaxed));
        assert_eq!(leadership.now(), None);
        leads.store(true, Ordering::Relaxed);
        assert_eq!(leadership.now(), Some(true));
        leads.store(false, Ordering::Relaxed);
        assert_eq!(leadership.now(), Some(false));
    }
}
