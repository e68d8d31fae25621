//! What docs/benchmarks.json holds: measured figures, and nothing that was not measured. It is kept beside the
//! document, so that whoever measures a part again does not lose the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Everything that was measured so far; a run replaces what it measures again.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Results {
    /// Where.
    pub(crate) machine: Machine,
    /// The versions of the proxies, by peer.
    pub(crate) versions: BTreeMap<String, String>,
    /// Traffic, by scenario.
    pub(crate) traffic: BTreeMap<String, Traffic>,
    /// The generator against its own upstream, by scenario: requests per second.
    pub(crate) generator_alone: BTreeMap<String, Spread>,
    /// Idle connections, by `idle-plain` and `idle-tls`.
    pub(crate) idle: BTreeMap<String, Idle>,
    /// Clients that rate limits remember.
    pub(crate) limits: Option<Limits>,
    /// What a flood of one host leaves to another one, by flood.
    pub(crate) fairness: BTreeMap<String, Fairness>,
    /// The control side, by where objects come from and how many there are.
    pub(crate) control: BTreeMap<String, Control>,
    /// Instructions per request of Fairway, by scenario.
    pub(crate) instructions: BTreeMap<String, u64>,
}

/// Median, smallest and largest of several rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// The middle one.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
}

/// One scenario.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    /// The day.
    pub(crate) date: String,
    /// How often every peer had its turn.
    pub(crate) rounds: usize,
    /// Requests per second of the open loop; the same for all peers.
    pub(crate) fixed_rate: f64,
    /// Figures by peer.
    pub(crate) peers: BTreeMap<String, Figures>,
}

/// One peer in one scenario.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// User and system time of all the proxy's processes for each request.
    pub(crate) cpu_us_per_request: Spread,
    /// Answers per second in the closed loop.
    pub(crate) requests_per_second: Spread,
    /// The share of its core that the proxy took meanwhile.
    pub(crate) proxy_busy: Spread,
    /// The share of its core that the generator took meanwhile.
    pub(crate) generator_busy: Spread,
    /// Latencies in the open loop, in microseconds.
    pub(crate) p50_us: Spread,
    /// The same.
    pub(crate) p99_us: Spread,
    /// The same.
    pub(crate) p999_us: Spread,
    /// Processor time for each request at the fixed rate.
    pub(crate) cpu_us_at_fixed_rate: Spread,
    /// Requests that were not answered right, in all rounds.
    pub(crate) errors: u64,
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_error: Option<String>,
    /// Requests that were due and never sent in the open loop, in all rounds.
    pub(crate) unsent: usize,
    /// The share of connections that resumed a session, where each has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumed: Option<f64>,
}

/// Idle connections.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Idle {
    /// The day.
    pub(crate) date: String,
    /// How many connections; fewer than wanted where files are limited.
    pub(crate) connections: usize,
    /// Growth of resident memory by connection in bytes, by peer.
    pub(crate) bytes_per_connection: BTreeMap<String, Spread>,
}

/// One host while another one is flooded.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fairness {
    /// The day.
    pub(crate) date: String,
    /// Its requests per second.
    pub(crate) rate: f64,
    /// Figures by peer.
    pub(crate) peers: BTreeMap<String, Calm>,
}

/// One peer under one flood: latencies of the host that nobody floods, in microseconds.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calm {
    /// Before the flood.
    pub(crate) quiet_p99_us: Spread,
    /// Under it.
    pub(crate) flooded_p99_us: Spread,
    /// Requests that were not answered right, or not even sent, in all rounds.
    pub(crate) unanswered: u64,
}

/// Clients that rate limits remember.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// The day.
    pub(crate) date: String,
    /// How many addresses.
    pub(crate) addresses: usize,
    /// Growth of resident memory by address in bytes.
    pub(crate) bytes_per_address: Spread,
}

/// The control side with one number of Ingresses, or of HTTPRoutes.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Control {
    /// The day.
    pub(crate) date: String,
    /// `manifests`, `cluster` or `cluster, HTTPRoutes`.
    pub(crate) source: String,
    /// Ingresses or HTTPRoutes, with two paths each.
    pub(crate) ingresses: usize,
    /// From the start of the process to `/healthz` saying 200, in milliseconds.
    pub(crate) ready_ms: Spread,
    /// Resident memory then, in MiB.
    pub(crate) resident_mib: Spread,
    /// Changes that were made, idle.
    pub(crate) changes: usize,
    /// Processor time of Fairway for each change, in milliseconds.
    pub(crate) cpu_ms_per_change: Option<f64>,
    /// From the acknowledged change to the first request served accordingly, in milliseconds.
    pub(crate) propagation: Option<Propagation>,
    /// The same while requests flow.
    pub(crate) propagation_under_load: Option<Propagation>,
    /// A thousand changes in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) storm: Option<Storm>,
    /// A thousand changes in each second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) churn: Option<Churn>,
}

/// Answers while other objects change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Churn {
    /// Answers in a second.
    pub(crate) requests_per_second: f64,
    /// Changes in a second.
    pub(crate) changes_per_second: f64,
    /// The 99th percentile while nothing changes, in microseconds.
    pub(crate) quiet_p99_us: Spread,
    /// The same meanwhile.
    pub(crate) churning_p99_us: Spread,
}

/// Very many changes at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Storm {
    /// How many, each of another object.
    pub(crate) changes: usize,
    /// How fast the API server took them.
    pub(crate) changes_per_second: f64,
    /// From the last one that was acknowledged until all of them showed, in milliseconds.
    pub(crate) settled_ms: f64,
    /// Processor time of Fairway for each change, in milliseconds.
    pub(crate) cpu_ms_per_change: f64,
    /// Resident memory then, in MiB.
    pub(crate) resident_mib: f64,
}

/// How long changes took to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Propagation {
    /// Answers per second that flowed meanwhile.
    pub(crate) requests_per_second: f64,
    /// Milliseconds.
    pub(crate) p50_ms: f64,
    /// Milliseconds.
    pub(crate) p99_ms: f64,
    /// Milliseconds.
    pub(crate) max_ms: f64,
}

impl Control {
    /// Where it stands in benchmarks.json.
    pub(crate) fn key(source: &str, ingresses: usize) -> String {
        format!("{source}-{ingresses}")
    }
}

impl Spread {
    /// Of what was measured; none of nothing.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        };
        Some(Self { median, min, max })
    }
}

impl Results {
    /// What a file holds; nothing when there is none. What is of another machine makes way for a `whole` measurement
    /// alone: of a part, the document would have nothing but that.
    pub(crate) fn load(path: &Path, machine: &Machine, whole: bool) -> Result<Self> {
        let known = if path.exists() { Some(Self::read(path)?) } else { None };
        match known {
            Some(results) if results.machine == *machine => Ok(results),
            Some(_) if !whole => bail!(
                "{} was measured on another machine: measure everything here (make bench), or name files of your own \
                 with --json and --docs",
                path.display()
            ),
            _ => Ok(Self { machine: machine.clone(), ..Self::default() }),
        }
    }

    /// What a file holds.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("read {}", path.display()))?;
        let remedy = || format!("{} is not a result of this bench: remove it", path.display());
        serde_json::from_slice(&text).with_context(remedy)
    }

    /// Writes the file anew.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        }
        let text = serde_json::to_string_pretty(self).context("results as JSON")?;
        fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_of_an_even_number_between_two() {
        assert_eq!(Spread::of(&[]), None);
        let spread = Spread::of(&[3.0, 1.0, 2.0]).expect("values");
        assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
        assert_eq!(Spread::of(&[4.0, 1.0]).expect("values").median, 2.5);
    }

    #[test]
    fn results_come_back_from_their_file_and_not_from_another_machine() {
        let path = std::env::temp_dir().join(format!("fairway-bench-{}.json", std::process::id()));
        let machine = Machine { cores: 2, ..Machine::default() };
        let mut results = Results { machine: machine.clone(), ..Results::default() };
        results.instructions.insert("http1".to_owned(), 12_345);
        results.save(&path).expect("save");
        assert_eq!(Results::load(&path, &machine, false).expect("load"), results);
        let other = |whole| Results::load(&path, &Machine::default(), whole);
        assert!(other(true).expect("load").instructions.is_empty());
        let refused = other(false).expect_err("a part of another machine's").to_string();
        assert!(refused.contains("make bench"), "{refused}");
        fs::remove_file(&path).expect("remove");
    }
}
