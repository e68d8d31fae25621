//! The contest for a Lease: look, take, renew, lose, give back.

use super::view::View;
use super::{ElectionOptions, Standing};
use crate::call::{Called, ask, remedy};
use crate::clock::Moment;
use crate::pod::has_ended;
use crate::task::Stop;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;
use kubernetes::Pod;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How often those who wait look at most, so that a Lease that is given back finds its next holder soon.
const LOOK: Duration = Duration::from_secs(2);
/// How soon to look again at what was changed by somebody else at the same moment.
const AGAIN: Duration = Duration::from_millis(100);

/// One contender.
pub(super) struct Contest {
    leases: Api<Lease>,
    pods: Api<Pod>,
    namespace: String,
    name: String,
    ttl: Duration,
    view: View,
    /// Who holds it, and whether a Pod of that name was seen that had not ended.
    holder: Option<(String, bool)>,
    /// `view` is what the API server has, unless somebody else has written since: no need to look before a renewal.
    certain: bool,
    standing: watch::Sender<Standing>,
    /// Trouble was told, and is not over.
    troubled: bool,
}

/// How a round ended.
enum Round {
    /// It is ours.
    Held,
    /// It is somebody else's.
    Waiting,
    /// It has changed in between: look again.
    Overtaken,
    /// Nobody knows.
    Failed,
}

impl Contest {
    pub(super) fn new(options: ElectionOptions, standing: watch::Sender<Standing>) -> Self {
        let ElectionOptions { client, namespace, name, identity, ttl } = options;
        Self {
            leases: Api::namespaced(client.clone(), &namespace),
            pods: Api::namespaced(client, &namespace),
            namespace,
            view: View::new(name.clone(), identity, ttl),
            name,
            ttl,
            holder: None,
            certain: false,
            standing,
            troubled: false,
        }
    }

    /// Contends until it is stopped; then gives back what is ours.
    pub(super) async fn run(mut self, mut stop: Stop) {
        loop {
            let began = Moment::now();
            let round = tokio::select! {
                round = self.round() => round,
                () = stop.asked() => break,
            };
            let pause = self.pause(&round, began);
            if timeout(pause, stop.asked()).await.is_ok() {
                break;
            }
            self.expire();
        }
        self.release().await;
    }

    /// When to look next.
    fn pause(&self, round: &Round, began: Moment) -> Duration {
        let retry = self.ttl / 4;
        let pause = match round {
            Round::Overtaken => AGAIN,
            Round::Held => retry.saturating_sub(began.until(Moment::now())),
            // While it is still ours, there is not much time to lose.
            Round::Failed if self.standing.borrow().until.is_some() => (retry / 4).min(LOOK),
            Round::Waiting | Round::Failed => retry.min(LOOK).mul_f64(1.0 + fastrand::f64() / 5.0),
        };
        // Whoever waits for writes to stop is woken when the time is over.
        match self.standing.borrow().until {
            Some(until) => pause.min(Moment::now().until(until)),
            None => pause,
        }
    }

    async fn round(&mut self) -> Round {
        if !self.certain {
            let found = self.ask(self.leases.get_opt(&self.name)).await;
            match found {
                Called::Good(lease) => self.view.see(lease, Moment::now()),
                Called::Bad { code, reason } => return self.failed(code, &reason),
            }
        }
        if !self.view.is_free(Moment::now()) && !self.has_lost_its_pod().await {
            self.certain = false;
            self.wait();
            return Round::Waiting;
        }
        let sent = Moment::now();
        let wanted = self.view.claim(Timestamp::now());
        self.certain = false;
        match self.write(&wanted).await {
            Called::Good(lease) => {
                self.view.see(Some(lease), Moment::now());
                self.certain = true;
                self.hold(sent + self.ttl * 3 / 4);
                Round::Held
            }
            Called::Bad { code: Some(409), .. } => Round::Overtaken,
            Called::Bad { code: Some(404), .. } if wanted.metadata.resource_version.is_some() => {
                Round::Overtaken
            }
            Called::Bad { code, reason } => self.failed(code, &reason),
        }
    }

    /// Whether the holder is late, and the Pod that it was in is gone or has ended: nobody waits for such a one. Who is
    /// only late may lead still, and who was never seen in a Pod may be anywhere.
    async fn has_lost_its_pod(&mut self) -> bool {
        let Some(holder) = self.view.holder() else { return false };
        let known = self.holder.as_ref().filter(|(name, _)| name == holder);
        let was_there = known.map(|(_, was_there)| *was_there);
        let is_late = self.view.is_late(Moment::now());
        if was_there == Some(false) || was_there == Some(true) && !is_late {
            return false;
        }
        let holder = holder.to_owned();
        let is_there = match self.ask(self.pods.get_opt(&holder)).await {
            Called::Good(pod) => pod.is_some_and(|pod| !has_ended(&pod)),
            Called::Bad { code: Some(403), .. } if was_there.is_none() => false,
            Called::Bad { .. } => return false,
        };
        if was_there.is_none() || is_there {
            self.holder = Some((holder, is_there));
            return false;
        }
        tracing::info!(lease = self.name, leader = holder, "the Pod of the leader is gone");
        true
    }

    async fn write(&self, lease: &Lease) -> Called<Lease> {
        let post = PostParams::default();
        match lease.metadata.resource_version {
            Some(_) => self.ask(self.leases.replace(&self.name, &post, lease)).await,
            None => self.ask(self.leases.create(&post, lease)).await,
        }
    }

    /// One call, within its time.
    async fn ask<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Called<T> {
        let deadline = self.ttl / 4;
        let left = self.standing.borrow().until.map(|until| Moment::now().until(until));
        ask(left.filter(|left| !left.is_zero()).unwrap_or(deadline).min(deadline), call).await
    }

    /// It is ours until then, unless it is renewed.
    fn hold(&mut self, until: Moment) {
        let won = self.standing.borrow().until.is_none();
        self.recovered();
        if won {
            tracing::info!(lease = self.name, "this replica is the leader now");
        }
        let leader = self.view.holder().map(Arc::from);
        self.standing.send_replace(Standing { until: Some(until), leader, has_led: true });
    }

    /// It is somebody else's.
    fn wait(&mut self) {
        let leader: Option<Arc<str>> = self.view.holder().map(Arc::from);
        let before = self.standing.borrow().clone();
        self.recovered();
        let name = leader.as_deref().unwrap_or_default();
        if before.until.is_some() {
            tracing::warn!(lease = self.name, leader = name, "another replica has taken the lead");
        } else if before.leader != leader {
            tracing::info!(lease = self.name, leader = name, "another replica is the leader");
        }
        if before.until.is_some() || before.leader != leader {
            self.standing
                .send_modify(|standing| (standing.until, standing.leader) = (None, leader));
        }
    }

    /// The time may be over without anybody having taken it.
    fn expire(&mut self) {
        let until = self.standing.borrow().until;
        if until.is_some_and(|until| Moment::now() >= until) {
            self.certain = false;
            tracing::warn!(
                lease = self.name,
                "the lead could not be renewed in time: this replica serves on and writes nothing"
            );
            self.standing.send_modify(|standing| standing.until = None);
        }
    }

    fn failed(&mut self, code: Option<u16>, reason: &str) -> Round {
        if !std::mem::replace(&mut self.troubled, true) {
            let (namespace, lease) = (&self.namespace, &self.name);
            let remedy = remedy(code, "get, create and update of leases");
            tracing::warn!(%namespace, %lease, reason, "cannot read or write the Lease, trying again{remedy}");
        }
        Round::Failed
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.troubled) {
            tracing::info!(lease = self.name, "the Lease can be read and written again");
        }
    }

    /// From here on nothing is written any more, and others need not wait.
    async fn release(mut self) {
        let held = self.standing.borrow().until.is_some();
        self.standing.send_modify(|standing| (standing.until, standing.leader) = (None, None));
        if !held {
            return;
        }
        if !self.certain
            && let Called::Good(lease) = self.ask(self.leases.get_opt(&self.name)).await
        {
            self.view.see(lease, Moment::now());
        }
        let Some(lease) = self.view.release(Timestamp::now()) else { return };
        match self.write(&lease).await {
            Called::Good(_) => tracing::info!(lease = self.name, "the lead was given back"),
            Called::Bad { reason, .. } => {
                tracing::warn!(lease = self.name, reason, "the Lease could not be given back")
            }
        }
    }
}
