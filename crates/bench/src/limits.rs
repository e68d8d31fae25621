//! Rate limits: how much the resident memory of a fresh Fairway grows with each client address that it has to remember.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::load::{Pace, Plan, Protocol};
use crate::measure::Bench;
use crate::peers::{Peer, Ports, Running, fairway_command, ingress, surroundings};
use crate::results::{Limits, Spread};

/// The name for `--only`.
pub(crate) const NAME: &str = "limits";
/// As many as the issue asks for.
const ADDRESSES: u32 = 50_000;
/// The host whose Ingress has a limit that is never reached.
const HOST: &str = "limited.bench.test";
/// Requests for each address: chosen at random, so many reach 98 of 100 addresses.
const EACH: u64 = 4;

impl Bench {
    /// Measures the memory of the limits for 50,000 addresses, or a fiftieth of that.
    pub(crate) fn limits(&mut self, quick: bool) -> Result<Limits> {
        let addresses = if quick { ADDRESSES / 50 } else { ADDRESSES };
        let mut grown = Vec::new();
        for round in 1..=self.rounds {
            let bytes = self.limits_turn(addresses)?;
            eprintln!(
                "{NAME:12} fairway  round {round} {addresses} addresses, {bytes:.0} bytes each"
            );
            grown.push(bytes);
        }
        let bytes_per_address = Spread::of(&grown).context("at least one round")?;
        Ok(Limits { date: self.date.clone(), addresses: addresses as usize, bytes_per_address })
    }

    fn limits_turn(&mut self, addresses: u32) -> Result<f64> {
        let running = self.start_limited()?;
        let mut ask = |addresses: u32, answers: u64| {
            let requests: Arc<Vec<_>> = Arc::new((0..addresses).map(request).collect());
            let mut answered = 0;
            while answered < answers {
                let plan = Plan {
                    protocol: Protocol::Http1,
                    requests: requests.clone(),
                    connections: 64,
                    pace: Pace::Closed,
                    measure: Duration::from_millis(200),
                    ..Plan::one(running.http, Vec::new())
                };
                let outcome = self.generator.run(&plan, &mut |_| Ok(()))?;
                ensure!(outcome.errors == 0, "{}", outcome.first_error.unwrap_or_default());
                answered += outcome.requests;
            }
            Ok(())
        };
        // The same work for one address: what remains is for addresses alone.
        ask(1, u64::from(addresses) * EACH)?;
        let before = running.family().resident()?;
        ask(addresses, u64::from(addresses) * EACH)?;
        let after = running.family().resident()?;
        let seen = f64::from(addresses) * (1.0 - (-(EACH as f64)).exp());
        Ok(after.saturating_sub(before) as f64 / seen)
    }

    fn start_limited(&mut self) -> Result<Running> {
        let folder = self.folder.join(NAME);
        let manifests = folder.join("manifests");
        fs::create_dir_all(&manifests).context("create the folder of manifests")?;
        let mut items = surroundings(self.generator.upstream().http());
        items.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "bench"},
            "data": {"use-forwarded-headers": "true"},
        }));
        let mut limited = ingress(HOST, &["/"]);
        limited["metadata"]["annotations"] =
            json!({"nginx.ingress.kubernetes.io/limit-rps": "1000000"});
        items.push(limited);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let text = serde_json::to_vec_pretty(&list).context("objects as JSON")?;
        fs::write(manifests.join("all.json"), text).context("write a manifest")?;
        let ports = Ports::free()?;
        let source = [
            "--manifests".to_owned(),
            manifests.display().to_string(),
            "--configmap=bench/settings".to_owned(),
        ];
        let command = fairway_command(&self.binary, ports, &source);
        let mut running = Running::start(Peer::Fairway, &command, ports, &folder, &self.cores)?;
        let plan = Plan::one(running.http, request(0));
        running.wait(|| {
            let outcome = self.generator.run(&plan, &mut |_| Ok(()))?;
            ensure!(outcome.requests == 1 && outcome.errors == 0, "no answer yet");
            Ok(())
        })?;
        Ok(running)
    }
}

/// A request of the client with this number.
fn request(number: u32) -> Vec<u8> {
    let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 | number);
    format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nX-Forwarded-For: {address}\r\n\r\n").into_bytes()
}
