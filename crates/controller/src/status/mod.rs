//! The addresses in the status of the Ingresses that we serve: written by the leader, only where they differ, and
//! never in a quarrel with another writer.

mod address;
mod astray;
mod denial;
mod document;
mod farewell;
mod gateways;
mod later;
mod leave;
mod pending;
mod plan;
mod refusals;
mod replace;
#[cfg(test)]
pub(crate) mod server;
mod service_objects;
mod services;
mod shown;
mod siblings;
mod which;
mod write;

pub use address::AddressSource;
pub use shown::{SHOWN, Shown};

use crate::Known;
use crate::budget::Budget;
use crate::clock::Moment;
use crate::events::{Event, Kind, Recorder, Speaker};
use crate::lease::Leadership;
use crate::pod::OwnPod;
use crate::task::{Stop, Task};
use address::{Address, AtHand, Patience};
use gateways::Gateways;
use kube::Client;
use later::{Naming, Silence};
use objects::ObjectKey;
use plan::{Plan, Quarrel};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use write::{Outcome, Writer};

/// Writes at a time.
const AT_A_TIME: usize = 10;
/// Writes each second: 5,000 Ingresses take 16 s.
const RATE: u32 = 300;
/// How long the end may take: writes that are under way, and those that take addresses away.
const FAREWELL: Duration = Duration::from_secs(50);

/// What is written, and as whom.
#[derive(Clone)]
pub struct StatusOptions {
    /// The client for all of it.
    pub client: Client,
    /// Where the addresses come from.
    pub source: AddressSource,
    /// The Pod of this replica.
    pub pod: OwnPod,
    /// `--healthz-port`, at which every replica says what it serves.
    pub admin_port: u16,
    /// How often everything is looked at anew: `--status-update-interval`.
    pub interval: Duration,
    /// `--gateway-controller-name`: whose part of the status of routes is ours.
    pub gateway_controller: Arc<str>,
    /// Whether the objects of all namespaces are seen.
    pub sees_all: bool,
    /// Whether Gateways have Services: `--gateway-services`.
    pub makes_services: bool,
    /// The Service whose endpoints are the replicas: `--publish-service`.
    pub replicas: Option<ObjectKey>,
    /// The last replica takes the addresses away when it ends: `--update-status-on-shutdown`.
    pub clear_at_end: bool,
}

/// Keeps the status of Ingresses current.
#[derive(Debug)]
pub struct StatusWriter {
    ingresses: Task,
    gateways: Task,
}

impl StatusWriter {
    /// Begins. Must be called within a tokio runtime.
    pub fn start(
        options: StatusOptions,
        leadership: Leadership,
        known: watch::Receiver<Arc<Known>>,
        recorder: Recorder,
    ) -> Self {
        let now = Moment::now();
        let published = watch::Sender::new(None);
        let gateways = Gateways {
            client: options.client.clone(),
            leadership: leadership.clone(),
            controller: options.gateway_controller.clone(),
            sees_all: options.sees_all,
            makes_services: options.makes_services,
            replicas: options.replicas.clone(),
            addresses: published.subscribe(),
            pod: options.pod.clone(),
            admin_port: options.admin_port,
            clear_at_end: options.clear_at_end,
            recorder: recorder.clone(),
        };
        let keeper = Keeper {
            published,
            writer: Writer::new(options.client.clone(), leadership.clone()),
            options,
            leadership,
            recorder,
            plan: Plan::default(),
            writes: JoinSet::new(),
            budget: Budget::new(RATE, f64::from(RATE), now),
            silence: Silence::default(),
            refused: None,
            naming: Naming::default(),
            naming_refused: Naming::default(),
            naming_forbidden: Naming::default(),
            count: 0,
            unknown: None,
            patience: Patience::default(),
        };
        let others = known.clone();
        Self {
            ingresses: Task::start(|stop| keeper.run(known, stop)),
            gateways: Task::start(|stop| gateways.run(others, stop)),
        }
    }

    /// Ends; the last replica takes its addresses away, if it was told to.
    pub async fn stop(self) {
        let gateways = self.gateways.end(FAREWELL);
        let (ingresses, gateways) = tokio::join!(self.ingresses.end(FAREWELL), gateways);
        if !(ingresses && gateways) {
            tracing::warn!("the status of Ingresses and Gateways could not be finished in time");
        }
    }
}

struct Keeper {
    /// The addresses, for whoever tells them besides.
    published: watch::Sender<Option<Arc<[Address]>>>,
    options: StatusOptions,
    leadership: Leadership,
    recorder: Recorder,
    writer: Writer,
    plan: Plan,
    writes: JoinSet<(ObjectKey, Outcome)>,
    budget: Budget,
    silence: Silence,
    /// What the API server has said about addresses that it does not take, told once.
    refused: Option<String>,
    naming: Naming,
    /// When what is refused may be told again, and what waits since it is forbidden.
    naming_refused: Naming,
    naming_forbidden: Naming,
    /// Written since it was told last.
    count: usize,
    /// Why the addresses are not known, which was told.
    unknown: Option<String>,
    patience: Patience,
}

impl Keeper {
    #[expect(clippy::disallowed_methods, reason = "what was refused is tried again by the clock")]
    async fn run(mut self, mut known: watch::Receiver<Arc<Known>>, mut stop: Stop) {
        let mut ticks = interval(self.options.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut led = false;
        loop {
            let leads = self.leadership.is_leader();
            if leads && !led {
                self.plan.follow(known.borrow_and_update().clone());
                self.refresh().await;
            }
            led = leads;
            let wait = self.send();
            tokio::select! {
                () = stop.asked() => break,
                () = self.leadership.changed() => {}
                Ok(()) = known.changed(), if leads => {
                    self.plan.follow(known.borrow_and_update().clone());
                    self.take_addresses();
                }
                Some(Ok((key, outcome))) = self.writes.join_next() => self.done(key, &outcome).await,
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                _ = ticks.tick() => if leads { self.refresh().await },
            }
        }
        while self.writes.join_next().await.is_some() {}
        let StatusOptions { client, pod, clear_at_end, .. } = &self.options;
        if *clear_at_end && farewell::may_clear("Ingresses", client, pod, &self.leadership).await {
            self.plan.follow(known.borrow_and_update().clone());
            if self.plan.wanted().is_none() {
                self.refresh().await;
            }
            farewell::clear(&self.plan, &self.writer).await;
        }
    }

    /// Finds out the addresses and looks at everything anew.
    async fn refresh(&mut self) {
        self.take_addresses();
        if let AddressSource::Nodes { internal } = self.options.source {
            let (client, own) = (&self.options.client, &self.options.pod);
            match address::of_nodes(client, own, internal).await {
                Ok(addresses) => self.want(addresses),
                Err(reason) => {
                    let _ = self.tell_unknown(&reason);
                }
            }
        }
        self.plan.look_again(Moment::now());
    }

    /// Takes the addresses that need no asking.
    fn take_addresses(&mut self) {
        let at_hand = address::at_hand(&self.options.source, &self.plan.known().snapshot);
        let pending = at_hand == AtHand::Pending;
        match (self.patience.wanted(at_hand, Moment::now()), &self.options.source) {
            (Some(addresses), AddressSource::Service(key)) => {
                if addresses.is_empty() && self.plan.wanted().is_none_or(|old| !old.is_empty()) {
                    tracing::warn!(
                        namespace = %key.namespace, name = %key.name,
                        "the Service has no address: the status of Ingresses is emptied"
                    );
                }
                self.want(addresses);
            }
            (Some(addresses), _) => self.want(addresses),
            (None, AddressSource::Service(key)) if pending => self.tell_pending(&key.clone()),
            (None, AddressSource::Service(key)) => {
                let reason = format!("there is no Service {}/{}", key.namespace, key.name);
                let _ = self.tell_unknown(&reason);
            }
            (None, AddressSource::Fixed(_) | AddressSource::Nodes { .. }) => {}
        }
    }

    fn want(&mut self, addresses: Vec<Address>) {
        self.published.send_if_modified(|known| {
            let is_new = known.as_deref() != Some(&addresses[..]);
            if is_new {
                *known = Some(addresses.clone().into());
            }
            is_new
        });
        self.plan.want(addresses);
        self.unknown = None;
    }

    /// The Service is there and has no address: said in the log, and on the Service.
    fn tell_pending(&mut self, key: &ObjectKey) {
        let reason = format!(
            "the load balancer of Service {}/{} has no address; unless it gets one, Ingresses tell none in {} s",
            key.namespace,
            key.name,
            address::PENDING.as_secs()
        );
        if !self.tell_unknown(&reason) {
            return;
        }
        if let Some(service) = self.plan.known().snapshot.services.get(key) {
            let object = crate::events::Object::service(&service.meta);
            let (kind, speaker) = (Kind::Warning, Speaker::Leader);
            let message = format!("{reason}; what is written stays until then");
            self.recorder.record(Event {
                object,
                kind,
                reason: "AddressPending",
                message,
                speaker,
            });
        }
    }

    /// Says why the addresses are not known; false if that was said already.
    fn tell_unknown(&mut self, reason: &str) -> bool {
        if self.unknown.as_deref() == Some(reason) {
            return false;
        }
        self.unknown = Some(reason.to_owned());
        tracing::warn!(
            reason,
            "the addresses of Ingresses cannot be found out; what is written stays"
        );
        true
    }

    /// Sends as much as may be sent now; how long to wait for more.
    fn send(&mut self) -> Option<Duration> {
        if !self.leadership.is_leader() {
            return None;
        }
        while self.writes.len() < AT_A_TIME && !self.plan.is_idle(Moment::now()) {
            let now = Moment::now();
            let pause = self.silence.left(now);
            if !pause.is_zero() {
                return Some(pause);
            }
            if let Err(wait) = self.budget.take(now) {
                return Some(wait);
            }
            let Some(write) = self.plan.next(now) else { break };
            let writer = self.writer.clone();
            self.writes.spawn(async move {
                let outcome = writer.write(&write).await;
                (write.key, outcome)
            });
        }
        for quarrel in self.plan.take_quarrels() {
            self.give_way(quarrel);
        }
        if self.writes.is_empty() && self.count > 0 {
            tracing::info!(
                ingresses = self.count,
                "addresses were written into the status of Ingresses"
            );
            self.count = 0;
        }
        // Where there is no room, the end of a write makes some.
        self.plan.wait(Moment::now()).filter(|_| self.writes.len() < AT_A_TIME)
    }

    async fn done(&mut self, key: ObjectKey, outcome: &Outcome) {
        match outcome {
            Outcome::Written => {
                self.count += 1;
                self.refused = None;
            }
            Outcome::Refused(reason)
                if self.refused.is_none() && self.naming_refused.is_due(Moment::now()) =>
            {
                let (namespace, name) = (&key.namespace, &key.name);
                tracing::error!(
                    %namespace, %name, reason,
                    "the API server does not take the addresses; check --publish-status-address or --publish-service"
                );
                self.refused = Some(reason.clone());
            }
            Outcome::Failed(reason) | Outcome::Forbidden(reason) => {
                if self.naming.is_due(Moment::now()) {
                    let (namespace, name) = (&key.namespace, &key.name);
                    tracing::warn!(
                        %namespace, %name, reason,
                        "cannot write the status of this Ingress, trying again; others do not wait for it"
                    );
                }
            }
            Outcome::Silent(reason) => {
                if self.silence.begin(Moment::now()) {
                    tracing::warn!(reason, "cannot write the status of Ingresses, trying again");
                }
            }
            Outcome::Refused(_)
            | Outcome::Conflict
            | Outcome::Gone
            | Outcome::Kept(_)
            | Outcome::NotLeader => {}
        }
        if !matches!(outcome, Outcome::Silent(_) | Outcome::NotLeader) {
            self.silence.end();
        }
        let now = Moment::now();
        if self.plan.done(key, outcome, now) && self.naming_forbidden.is_due(now) {
            tracing::warn!(
                "the status of many Ingresses in a row is forbidden: those of their namespaces wait, and one is tried each 30 s"
            );
        }
    }

    /// Says that an Ingress is left to somebody else, and to whom.
    fn give_way(&self, quarrel: Quarrel) {
        let (writer, recorder) = (self.writer.clone(), self.recorder.clone());
        let known = self.plan.known().clone();
        tokio::spawn(async move {
            let Quarrel { key, theirs, pause } = quarrel;
            let rival = writer.rival(&key).await.unwrap_or_else(|| {
                "another controller, such as a second Fairway with another --election-id,"
                    .to_owned()
            });
            let theirs: Vec<String> =
                theirs.into_iter().filter_map(|(host, ip)| host.or(ip)).collect();
            let message = format!(
                "{rival} keeps replacing our addresses in the status by {}; left alone for {} s: \
                 let one controller only serve the class of this Ingress",
                theirs.join(", "),
                pause.as_secs()
            );
            tracing::warn!(namespace = %key.namespace, name = %key.name, "{message}");
            if let Some(ingress) = known.snapshot.ingresses.get(&key) {
                let object = crate::events::Object::ingress(&ingress.meta);
                let speaker = Speaker::Leader;
                let kind = Kind::Warning;
                recorder.record(Event {
                    object,
                    kind,
                    reason: "StatusContested",
                    message,
                    speaker,
                });
            }
        });
    }
}
