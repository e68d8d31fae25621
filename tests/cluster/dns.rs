//! ExternalDNS beside Fairway: its source, plan and in-memory provider (`tests/ecosystem/dns`), deletions included.

use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::cluster::{Cluster, Process, eventually, go_programs};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);

/// A running ExternalDNS with an empty zone `test`.
pub(crate) struct Dns(Process);

impl Dns {
    pub(crate) fn start(cluster: &Cluster) -> Result<Self> {
        let program = go_programs("tests/ecosystem/dns")?.join("dns");
        let mut command = Command::new(program);
        command.env("KUBECONFIG", cluster.admin_kubeconfig()?);
        let log = cluster.folder().join("dns.log");
        Ok(Self(Process::start(&mut command, &log)?))
    }

    /// What it has done to records so far, one line each: `create a.test A 192.0.2.1`.
    pub(crate) fn done(&self) -> Vec<String> {
        let log = self.0.log();
        let verbs = ["create ", "update ", "delete "];
        let lines = log.lines().filter(|line| verbs.iter().any(|verb| line.starts_with(verb)));
        lines.map(str::to_owned).collect()
    }

    /// Waits until it has done exactly this, in whatever order.
    pub(crate) async fn has_done(&self, wanted: &[&str]) -> Result<()> {
        let mut wanted: Vec<&str> = wanted.to_vec();
        wanted.sort_unstable();
        eventually(format!("ExternalDNS to do {wanted:?}"), PATIENCE, async || {
            let mut done = self.done();
            done.sort_unstable();
            ensure!(done == wanted, "it did {done:?}: {}", self.0.log());
            anyhow::Ok(())
        })
        .await
    }
}
