//! One controller after another in a network namespace of its own: several lanes share the work, since cases mostly
//! wait.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result, anyhow};
use tokio::sync::{
    mpsc::{Receiver, Sender, channel},
    watch,
};

use super::{Options, bed::Bed, steps};
use crate::{
    case::Case,
    exchange::{Answer, Outcome},
    namespace,
};

/// Cases that share a controller with these flags.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) flags: Vec<String>,
    pub(super) cases: Vec<Case>,
}

/// Cases with what happened at each of their steps.
type Outcomes = Vec<(Case, Vec<Outcome>)>;

/// All lanes; their controllers have ended once this is dropped.
#[derive(Debug)]
pub(super) struct Lanes {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// What a lane needs to know.
struct Lane {
    options: Options,
    work: Arc<Mutex<VecDeque<Batch>>>,
    tell: Sender<Result<Outcomes>>,
    stopped: watch::Receiver<bool>,
}

impl Lanes {
    /// Starts them; the outcomes come in the order in which they are there.
    pub(super) fn start(
        options: &Options,
        work: VecDeque<Batch>,
    ) -> (Self, Receiver<Result<Outcomes>>) {
        let count = options.lanes.clamp(1, work.len().max(1));
        let work = Arc::new(Mutex::new(work));
        let (tell, told) = channel(count);
        let (stop, stopped) = watch::channel(false);
        let start = |number: usize| {
            let ending = format!("{}-{number}.log", options.engine.name());
            let log = options.log.with_extension(ending);
            let options = Options { log, ..options.clone() };
            let (work, tell) = (Arc::clone(&work), tell.clone());
            let lane = Lane { options, work, tell, stopped: stopped.clone() };
            thread::spawn(move || {
                if let Err(error) = lane.run() {
                    // Nobody listens any more once another lane has failed.
                    let _late = lane.tell.blocking_send(Err(error));
                }
            })
        };
        (Self { threads: (1..=count).map(start).collect(), stop }, told)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            // One that panicked has said so, and its cases are missing.
            let _panicked = thread.join();
        }
    }
}

impl Lane {
    fn run(&self) -> Result<()> {
        namespace::enter_by_thread()?;
        let log = &self.options.log;
        std::fs::write(log, "").with_context(|| format!("{}: cannot be written", log.display()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("no runtime")?.block_on(async {
            let mut bed = Bed::new(&self.options).await?;
            let mut stopped = self.stopped.clone();
            let outcome = tokio::select! {
                outcome = self.follow(&mut bed) => outcome,
                _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
            };
            bed.stop().await?;
            outcome
        })
    }

    async fn follow(&self, bed: &mut Bed) -> Result<()> {
        while let Some(Batch { flags, cases }) = self.next() {
            bed.start(&flags).await?;
            let outcomes = run_batch(bed, &cases).await?;
            let outcomes = cases.into_iter().zip(outcomes).collect();
            let _stopping = self.tell.send(Ok(outcomes)).await;
        }
        Ok(())
    }

    fn next(&self) -> Option<Batch> {
        self.work.lock().expect("nobody panics while the work is locked").pop_front()
    }
}

/// Runs cases that share the controller.
async fn run_batch(bed: &mut Bed, cases: &[Case]) -> Result<Vec<Vec<Outcome>>> {
    bed.revive().await?;
    if cases.iter().any(|case| case.settings.alone) {
        // Nothing of the cases before it is left, such as whose turn it is.
        bed.settle().await?;
    }
    for object in cases.iter().flat_map(|case| &case.objects) {
        bed.manifests.apply(object)?;
    }
    let settled = bed.settle().await;
    let mut all = Vec::new();
    for case in cases {
        let outcomes = match &settled {
            Ok(()) => steps::run(bed, case).await,
            // It would run against what was there before.
            Err(error) => Err(anyhow!("{error:#}")),
        };
        all.push(match outcomes {
            Ok(outcomes) => outcomes,
            Err(error) => case.steps.iter().map(|_| failed(&error)).collect(),
        });
    }
    for case in cases {
        bed.remove(&case.all_objects(&bed.references)?)?;
    }
    Ok(all)
}

fn failed(error: &anyhow::Error) -> Outcome {
    Outcome { answer: Some(Answer::failed(format!("{error:#}"))), ..Outcome::default() }
}
