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
mod upstreams;

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
use model::UpstreamId;
use page::Writer;
use parking_lot::Mutex;
use requests::Pieces;
use runtime::admin::Page;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use stream::Streams;
use tokio::sync::watch;
use upstreams::{Row, Shown};

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
    /// Which of them have series of their own.
    upstreams: Mutex<Shown>,
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
    leads: lease::Leadership,
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
            upstreams: Mutex::default(),
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
            let _ = self.leadership.set(Leadership { name, leads });
        }
    }

    /// Of these upstreams the ones that have series of their own, and the rest together.
    fn shown(&self, all: Vec<Row>) -> Vec<Row> {
        // Two of each.
        let most = self.engine.requests().map_or(0, |requests| requests.budget().1 / 2).max(1);
        let known = self.known();
        let namespace = |id: &str| {
            let known = known.as_ref().map(|known| &known.configuration.upstreams);
            let upstream = known.and_then(|upstreams| upstreams.get(&UpstreamId::new(id)));
            upstream.map(|upstream| upstream.namespace.clone()).unwrap_or_default()
        };
        let mut shown = self.upstreams.lock();
        shown.rows(all, most, namespace)
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
    /// Whether it leads now; none if it never did.
    fn now(&self) -> Option<bool> {
        self.leads.has_led().then(|| self.leads.is_leader())
    }
}
