//! What is counted of requests and connections, for `/metrics`, whichever engine serves them.
//!
//! Each thread counts in cells of its own, which nobody else writes: counting is a load and a store. Whoever reads adds
//! up the threads. A request finds its cells by numbers, never by texts.

mod books;
mod counter;
mod labels;
mod layout;
mod series;
mod tally;

pub use books::Metrics;
pub use counter::{Counter, Request};
pub use labels::{Counted, CountedLocation, Labels, Name, label_value};
pub use layout::{Measure, Observed, Part};
pub use series::{Reading, Series};
pub use tally::{Connections, Tallies, Tally};

use std::collections::BTreeSet;

/// What is counted of requests, and how finely.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Series have the label `host` (`--metrics-per-host`).
    pub per_host: bool,
    /// Hosts that no Ingress names count, too (`--metrics-per-undefined-host`).
    pub undefined_hosts: bool,
    /// The label `status` is `2xx` instead of `200` (`--report-status-classes`).
    pub status_classes: bool,
    /// Upper bounds in seconds, ascending (`--time-buckets`).
    pub times: Vec<f64>,
    /// Upper bounds in bytes, ascending (`--length-buckets`).
    pub lengths: Vec<f64>,
    /// Upper bounds in bytes, ascending (`--size-buckets`).
    pub sizes: Vec<f64>,
    /// What is not measured (`--exclude-socket-metrics`).
    pub excluded: BTreeSet<Measure>,
    /// Combinations of labels at most; what exceeds them is counted under `overflow`.
    pub most: usize,
}

/// What ingress-nginx counts by default.
#[cfg(test)]
pub(crate) fn tests_settings() -> Settings {
    Settings {
        per_host: true,
        undefined_hosts: false,
        status_classes: false,
        times: vec![0.005, 0.01],
        lengths: vec![10.0],
        sizes: vec![10.0],
        excluded: BTreeSet::new(),
        most: 100,
    }
}
