//! Idle connections: how much the resident memory of a fresh proxy grows with each of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::load::{Pace, Plan, Stage};
use crate::measure::Bench;
use crate::peers::Peer;
use crate::results::{Idle, Spread};
use crate::scenario::Scenario;

/// As many as the issue asks for.
const WANTED: usize = 10_000;
/// A full handshake each, on one core, may take this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many connections are possible here.
pub(crate) fn connections(open_files: u64, quick: bool) -> usize {
    // Fairway gives 45 % of them to its clients (docs/limits.md) and ends idle ones beyond that.
    let possible = usize::try_from(open_files / 5 * 2).unwrap_or(usize::MAX);
    possible.min(if quick { 200 } else { WANTED })
}

impl Bench {
    /// Measures `count` idle connections, each of which has had one answer.
    pub(crate) fn idle(&mut self, scenario: &Scenario, count: usize) -> Result<Idle> {
        let mut grown: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for round in 1..=self.rounds {
            for peer in self.peers.clone().into_iter().filter(|peer| scenario.is_for(*peer)) {
                let bytes = self.idle_turn(scenario, peer, count)?;
                let name = peer.name();
                eprintln!(
                    "{:12} {name:13} round {round} {count} idle connections, {bytes:.0} bytes each",
                    scenario.name
                );
                grown.entry(name.to_owned()).or_default().push(bytes);
            }
        }
        let bytes_per_connection = grown
            .into_iter()
            .filter_map(|(peer, bytes)| Some((peer, Spread::of(&bytes)?)))
            .collect();
        Ok(Idle { date: self.date.clone(), connections: count, bytes_per_connection })
    }

    fn idle_turn(&mut self, scenario: &Scenario, peer: Peer, count: usize) -> Result<f64> {
        // A fresh process, so that nothing is left over from an earlier crowd.
        let running = self.start_one(peer, 1)?;
        let warm = scenario.plan(&running, &self.certificate, Pace::Closed, self.turn)?;
        self.generator.run(&warm, &mut |_| Ok(()))?;
        let family = running.family();
        let plan = scenario.plan(&running, &self.certificate, Pace::Once, PATIENCE)?;
        let plan = Plan { connections: count, warm_up: Duration::ZERO, ..plan };
        let (mut before, mut after) = (0, 0);
        let outcome = self.generator.run(&plan, &mut |stage| {
            match stage {
                Stage::Start => before = family.resident()?,
                Stage::Begin => {}
                Stage::End => after = family.resident()?,
            }
            Ok(())
        })?;
        ensure!(
            outcome.requests == count as u64 && outcome.errors == 0,
            "{} kept {} of {count} connections: {}",
            peer.name(),
            outcome.requests,
            outcome.first_error.as_deref().unwrap_or("it was too slow")
        );
        // Few connections may take less than the process gives back meanwhile.
        Ok((after as f64 - before as f64) / count as f64)
    }
}
