//! The epoll loop: hands events to the upstream and to the run that is going on.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event};
use rustix::fd::OwnedFd;

use super::run::Run;
use super::upstream::{TOKENS, Upstream};
use super::{Outcome, Pace, Plan, Stage};
use crate::process::thread_nanoseconds;

const SCRATCH: usize = 256 << 10;
const EVENTS: usize = 256;
/// An epoll wait never outlasts this, so that the clock is looked at.
const TICK: Duration = Duration::from_millis(5);

/// A measurement with too few answers goes on, but not longer than this.
const LONGEST: Duration = Duration::from_secs(30);

/// Both ends of a proxy.
pub(crate) struct Generator {
    epoll: OwnedFd,
    upstream: Upstream,
    scratch: Vec<u8>,
}

impl Generator {
    /// A generator whose upstream is `upstream`.
    pub(crate) fn new(upstream: Upstream) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("create an epoll")?;
        upstream.register(&epoll)?;
        Ok(Self { epoll, upstream, scratch: vec![0; SCRATCH] })
    }

    /// The upstream behind the proxies.
    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Serves as the upstream only, until told to stop.
    pub(crate) fn serve(&mut self, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.turn(TICK, None)?;
        }
        Ok(())
    }

    /// Applies a load and calls `sample` at its stages.
    pub(crate) fn run(
        &mut self,
        plan: &Plan,
        sample: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<Outcome> {
        self.run_until(plan, sample, &AtomicBool::new(false))
    }

    /// The same, ended early by `stop`.
    pub(crate) fn run_until(
        &mut self,
        plan: &Plan,
        sample: &mut dyn FnMut(Stage) -> Result<()>,
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        sample(Stage::Start)?;
        let mut run = Run::new(plan);
        let begin = Instant::now() + plan.warm_up;
        while !run.complete() && !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= begin && (run.is_warm() || now >= begin + LONGEST) {
                break;
            }
            self.step(&mut run)?;
        }
        sample(Stage::Begin)?;
        let busy = thread_nanoseconds()?;
        let begin = Instant::now();
        run.count_from_here();
        while !run.complete() && !stop.load(Ordering::Relaxed) {
            let elapsed = begin.elapsed();
            if elapsed >= plan.measure && (run.has_enough() || elapsed >= LONGEST) {
                break;
            }
            self.step(&mut run)?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let busy = thread_nanoseconds()?.saturating_sub(busy);
        sample(Stage::End)?;
        let mut outcome = run.finish();
        outcome.seconds = seconds;
        outcome.generator_busy = busy as f64 / 1e9 / seconds;
        Ok(outcome)
    }

    fn step(&mut self, run: &mut Run<'_>) -> Result<()> {
        run.pump(&self.epoll)?;
        // Where latency is measured the loop spins: a sleep would be late for the next request.
        let spins = matches!(run.plan.pace, Pace::Open { spins: true, .. });
        let patience = if spins { Duration::ZERO } else { run.next_due_in().min(TICK) };
        self.turn(patience, Some(run))
    }

    fn turn(&mut self, patience: Duration, mut run: Option<&mut Run<'_>>) -> Result<()> {
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS];
        let patience = Timespec::try_from(patience).expect("a few milliseconds");
        let (events, _) = match epoll::wait(&self.epoll, &mut events, Some(&patience)) {
            Ok(events) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error).context("wait for events"),
        };
        for event in events {
            let token = event.data.u64();
            if token & TOKENS != 0 {
                self.upstream.handle(token, &self.epoll, &mut self.scratch)?;
            } else if let Some(run) = run.as_deref_mut() {
                run.handle(token, &self.epoll, &mut self.scratch)?;
            }
        }
        Ok(())
    }
}
