//! Churn: what a thousand changes a second do to the answers that are given meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::{Changes, STAYS, STORM, Wanted, host};
use crate::load::{Generator, Pace, Plan};
use crate::process::pause;
use crate::results::{Churn, Spread};

impl Wanted {
    /// Times answers while nothing changes and while other objects change all the time, in turns. `None` where changes
    /// cost others on this machine more than they cost Fairway.
    pub(super) fn churn(
        &self,
        changes: &mut Changes<'_>,
        generator: &mut Generator,
        target: SocketAddr,
    ) -> Result<Option<Churn>> {
        if !changes.source.is_alone() {
            return Ok(None);
        }
        let request = format!(
            "GET {STAYS} HTTP/1.1\r\nHost: {}\r\nUser-Agent: fairway-bench\r\n\r\n",
            host(0)
        );
        let plan = Plan {
            requests: Arc::new(vec![request.into_bytes()]),
            connections: 16,
            pace: Pace::Open { rate: self.rate, spins: false },
            warm_up: self.turn / 4,
            measure: self.turn,
            ..Plan::one(target, Vec::new())
        };
        let (mut quiet, mut churning, mut made) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..self.rounds {
            quiet.push(p99(generator, &plan, |_| Ok(()))?);
            let mut count = 0;
            churning.push(p99(generator, &plan, |is_over| {
                let begin = Instant::now();
                while !is_over() {
                    let (number, path) = changes.next();
                    changes.source.change(number, &path)?;
                    count += 1;
                    let due = begin + Duration::from_secs(1) * count / STORM as u32;
                    pause(due.saturating_duration_since(Instant::now()));
                }
                made += f64::from(count) / begin.elapsed().as_secs_f64();
                Ok(())
            })?);
        }
        let spread = |turns: &[f64]| Spread::of(turns).context("at least one round");
        let churn = Churn {
            requests_per_second: self.rate,
            changes_per_second: made / self.rounds as f64,
            quiet_p99_us: spread(&quiet)?,
            churning_p99_us: spread(&churning)?,
        };
        eprintln!("{}: churn: {churn:?}", changes.size);
        Ok(Some(churn))
    }
}

/// The 99th percentile of the answers in microseconds, while `meanwhile` does what it does until it hears that they are
/// over.
fn p99(
    generator: &mut Generator,
    plan: &Plan,
    meanwhile: impl FnOnce(&dyn Fn() -> bool) -> Result<()>,
) -> Result<f64> {
    std::thread::scope(|scope| {
        let load = scope.spawn(move || generator.run(plan, &mut |_| Ok(())));
        let done = meanwhile(&|| load.is_finished());
        let mut load = load.join().map_err(|_| anyhow!("the load generator panicked"))??;
        done?;
        let first = load.first_error.take().unwrap_or_default();
        ensure!(load.errors == 0, "{} requests failed during changes: {first}", load.errors);
        load.latencies.microseconds(0.99).context("no request was answered")
    })
}
