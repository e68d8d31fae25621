//! One load on one proxy: connections, what is due, what was answered.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, ensure};
use rustix::fd::OwnedFd;
use rustls::HandshakeKind;

use super::link::{Dial, Link, Received};
use super::talk::{After, Finished, Talk};
use super::{Outcome, Pace, Plan};

/// So many connections are opened at once when each carries one request and stays.
const OPENING: usize = 64;
/// More errors than this end a run.
const ERRORS: u64 = 50;

/// The state of a run.
pub(super) struct Run<'a> {
    pub(super) plan: &'a Plan,
    slots: Vec<Option<(Link, Talk)>>,
    /// Each entry is room for one request on the connection of that slot.
    room: VecDeque<usize>,
    /// Room on connections that end as soon as their last answers are there.
    parked: Vec<usize>,
    due: VecDeque<Instant>,
    next_due: Instant,
    in_flight: usize,
    to_open: usize,
    touched: Vec<usize>,
    done: Vec<Finished>,
    random: u64,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let slots = 0..plan.connections;
        let room = (0..plan.streams).flat_map(|_| slots.clone()).collect();
        Self {
            plan,
            slots: slots.map(|_| None).collect(),
            room,
            parked: Vec::new(),
            due: VecDeque::new(),
            next_due: Instant::now(),
            in_flight: 0,
            to_open: plan.connections,
            touched: Vec::new(),
            done: Vec::new(),
            random: 0x9e37_79b9_7f4a_7c15,
            outcome: Outcome::default(),
        }
    }

    /// Whether there is nothing left to do.
    pub(super) fn complete(&self) -> bool {
        self.plan.pace == Pace::Once && self.to_open == 0 && self.in_flight == 0
    }

    /// Whether every connection has had its first requests, which differ from all later ones.
    pub(super) fn is_warm(&self) -> bool {
        let firsts = (self.plan.connections * self.plan.streams) as u64;
        self.plan.pace == Pace::Once || self.outcome.requests >= 2 * firsts
    }

    /// Whether so much was answered that a measurement may end.
    pub(super) fn has_enough(&self) -> bool {
        self.plan.pace == Pace::Once || self.outcome.requests >= self.plan.answers
    }

    /// Forgets what was counted during the warm-up.
    pub(super) fn count_from_here(&mut self) {
        if self.plan.pace != Pace::Once {
            self.outcome = Outcome::default();
        }
    }

    /// The counts; ends all connections.
    pub(super) fn finish(mut self) -> Outcome {
        self.outcome.unsent = self.due.len();
        for (link, _) in self.slots.into_iter().flatten() {
            link.close();
        }
        self.outcome
    }

    /// Sends what is due, as far as there is room.
    pub(super) fn pump(&mut self, epoll: &OwnedFd) -> Result<()> {
        let now = Instant::now();
        if let Pace::Open { rate, .. } = self.plan.pace {
            while self.next_due <= now {
                self.due.push_back(self.next_due);
                self.next_due += Duration::from_secs_f64(1.0 / rate);
            }
        }
        while self.has_work() {
            let Some(slot) = self.room.pop_front() else { break };
            if self.slots[slot].as_ref().is_some_and(|(_, talk)| talk.free() == 0) {
                self.parked.push(slot);
                continue;
            }
            let intended = self.due.pop_front().unwrap_or(now);
            if self.plan.pace == Pace::Once {
                self.to_open -= 1;
            }
            self.send(slot, intended, epoll)?;
        }
        for slot in std::mem::take(&mut self.touched) {
            let Some((link, _)) = &mut self.slots[slot] else { continue };
            if let Err(error) = link.flush(epoll) {
                self.fail(slot, &error)?;
            }
        }
        Ok(())
    }

    /// How long nothing new is due.
    pub(super) fn next_due_in(&self) -> Duration {
        match self.plan.pace {
            Pace::Open { .. } => self.next_due.saturating_duration_since(Instant::now()),
            Pace::Closed | Pace::Once => Duration::MAX,
        }
    }

    fn has_work(&self) -> bool {
        match self.plan.pace {
            Pace::Closed => true,
            Pace::Open { .. } => !self.due.is_empty(),
            Pace::Once => self.to_open > 0 && self.in_flight < OPENING,
        }
    }

    fn send(&mut self, slot: usize, intended: Instant, epoll: &OwnedFd) -> Result<()> {
        let plan = self.plan;
        let connection = &mut self.slots[slot];
        if connection.is_none() {
            let tls = plan.tls.as_ref().map(|(config, name)| (config, name));
            let dial = Dial { address: plan.target, tls };
            let mut link = Link::connect(&dial, epoll, slot as u64)?;
            let talk = Talk::new(plan.protocol, plan.streams, link.out());
            *connection = Some((link, talk));
        }
        let (link, talk) = connection.as_mut().context("a connection that was just made")?;
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let request = &plan.requests[(self.random % plan.requests.len() as u64) as usize];
        talk.start(request, intended, link.out());
        self.touched.push(slot);
        self.in_flight += 1;
        Ok(())
    }

    /// Handles an event on the connection of `token`.
    pub(super) fn handle(&mut self, token: u64, epoll: &OwnedFd, scratch: &mut [u8]) -> Result<()> {
        let slot = token as usize;
        match self.receive(slot, epoll, scratch) {
            Ok(After::Continue) => {}
            Ok(After::Reconnect) => self.forget(slot),
            Err(error) => self.fail(slot, &error)?,
        }
        Ok(())
    }

    fn receive(&mut self, slot: usize, epoll: &OwnedFd, scratch: &mut [u8]) -> Result<After> {
        let Some(Some((link, talk))) = self.slots.get_mut(slot) else { return Ok(After::Continue) };
        link.flush(epoll)?;
        let heard = match link.receive(epoll, scratch)? {
            Received::Nothing => return Ok(After::Continue),
            Received::End => {
                let busy = talk.busy();
                ensure!(busy == 0, "the connection ended before {busy} answers were complete");
                return Ok(After::Reconnect);
            }
            Received::Bytes(count) => talk.receive(&scratch[..count], link.out(), &mut self.done),
        };
        let now = Instant::now();
        let mut answered = false;
        for finished in self.done.drain(..) {
            self.in_flight -= 1;
            self.room.push_back(slot);
            match finished {
                Finished::Refused(intended) => self.due.push_front(intended),
                Finished::Answered(intended) => {
                    answered = true;
                    self.outcome.requests += 1;
                    self.outcome.latencies.add(now.saturating_duration_since(intended));
                }
            }
        }
        let after = heard?;
        if self.plan.fresh && answered {
            let resumed = link.handshake() == Some(HandshakeKind::Resumed);
            self.outcome.resumed += u64::from(resumed);
            return Ok(After::Reconnect);
        }
        link.flush(epoll)?;
        Ok(after)
    }

    /// Ends a connection that carries nothing any more; the next request makes a new one.
    fn forget(&mut self, slot: usize) {
        if let Some((link, _)) = self.slots[slot].take() {
            link.close();
        }
        let parked = std::mem::take(&mut self.parked);
        let (free, parked) = parked.into_iter().partition::<Vec<_>, _>(|parked| *parked == slot);
        self.parked = parked;
        self.room.extend(free);
    }

    /// Counts what was lost with a connection; too much of it ends the run.
    fn fail(&mut self, slot: usize, error: &Error) -> Result<()> {
        let lost = self.slots[slot].as_ref().map_or(0, |(_, talk)| talk.busy());
        self.in_flight -= lost;
        self.room.extend(std::iter::repeat_n(slot, lost));
        self.forget(slot);
        self.outcome.errors += lost.max(1) as u64;
        self.outcome.first_error.get_or_insert_with(|| format!("{error:#}"));
        if self.outcome.errors > ERRORS {
            let first = self.outcome.first_error.take().unwrap_or_default();
            return Err(anyhow!("more than {ERRORS} requests went wrong, the first one: {first}"));
        }
        Ok(())
    }
}
