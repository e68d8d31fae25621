//! docs/benchmarks.md, made of docs/benchmarks.json and nothing else.

mod readme;
mod tables;
mod targets;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::results::Results;

/// What ingress-nginx was measured to need, for comparison.
const ORIGINAL: &str = "\
## What Fairway replaces

Measured on ingress-nginx v1.15.1, before Fairway existed: it needs 1.8 times the CPU of plain nginx for each request. With 1,000
Ingresses it takes 2.4 to 3.5 s from a new Ingress to its first answer, 0.43 to 0.49 s for each admission, 88 MiB + 123 MiB and
125 MiB for each worker, and 5.3 s from its start to the first answer.
";

const METHOD: &str = "\
## How it is measured

- The proxies run side by side, each on the same single core, with one worker; the load generator and the upstream share another
  core, in one thread. In every round each proxy has its turn; figures are medians of the rounds, with the smallest and the largest.
- CPU is user and system time of all the proxy's processes, from the scheduler's own count in nanoseconds, divided by answered
  requests. It holds on a noisy machine; requests per second and latencies hold less.
- *One core* is a closed loop: 64 requests under way, on 64 connections (HTTP/2 and gRPC: 8 connections with 8 streams each).
  Where the proxy's core was busy for less than 95 % of the time, it could do more than the number says: `≥`.
- *Fixed rate* is an open loop: requests are due at a constant rate, the same for all, half of what the slowest peer could do;
  latency counts from the moment when a request was due.
- *fairway-nginx* is Fairway with `--engine=nginx`, the same manifests and one worker of nginx; CPU and memory are those of its own
  process and of nginx's together. Rate limits, the control side and instructions are measured with the native engine alone.
- All proxies serve the same ECDSA P-256 certificate with TLS 1.3; clients offer X25519 and AES-128-GCM only. Sessions are kept at
  the server, as ingress-nginx has it.
- nginx has the settings that ingress-nginx writes by default: request buffering on, response buffering off, 320 idle connections
  to the upstream, 1,000 requests for each client connection, its forwarded headers and its access log, which all proxies write
  to a file. HAProxy is set up to do the same work; it cannot spill uploads to a file.
- Bytes for each idle connection are the growth of resident memory of a fresh process, after each connection has had one answer.
- Fairness: two hosts, one of which is asked for 500 times a second in an open loop, first alone and then while clients flood the
  other one as fast as they are answered. These clients share the generator's core, at the lowest priority. No host has a limit.
  As a control the flood goes to another process of Fairway on the proxies' core.
- A change is the second path of an Ingress; it has shown when the new path answers 200. The API server, etcd and the load share
  the machine.
";

/// Where the document lies in this repository: README.md takes its numbers from the same results.
const PLACE: &str = "docs/benchmarks.md";

/// Writes the document, and the numbers of README.md.
pub(crate) fn write(results: &Results, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    fs::write(path, document(results)).with_context(|| format!("write {}", path.display()))?;
    let readme = match path.to_str().and_then(|path| path.strip_suffix(PLACE)) {
        Some(root) => Path::new(root).join("README.md"),
        None => return Ok(()),
    };
    let text = fs::read_to_string(&readme).unwrap_or_default();
    match readme::with_numbers(&text, results) {
        Some(text) => {
            fs::write(&readme, text).with_context(|| format!("write {}", readme.display()))
        }
        None => Ok(()),
    }
}

fn document(results: &Results) -> String {
    let sections = [
        head(results),
        targets::section(results),
        tables::processor(results),
        tables::throughput(results),
        tables::latency(results),
        tables::idle(results),
        tables::limits(results),
        tables::fairness(results),
        tables::control(results),
        tables::instructions(results),
        ORIGINAL.to_owned(),
        METHOD.to_owned(),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|text| !text.is_empty()).collect();
    sections.join("\n")
}

fn head(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "# Benchmarks\n\nWritten by `make bench`; edits are lost.\n\n\
         Machine: {}, {} cores, {:.0} GiB, Linux {}, {} open files for each process.\n",
        machine.processor,
        machine.cores,
        machine.memory_mib as f64 / 1024.0,
        machine.kernel,
        machine.open_files
    );
    let versions: Vec<String> =
        results.versions.iter().map(|(peer, version)| format!("{peer}: {version}")).collect();
    if !versions.is_empty() {
        text += &format!("Versions: {}.\n", versions.join("; "));
    }
    let mut days: Vec<&str> = results.traffic.values().map(|traffic| &*traffic.date).collect();
    days.extend(results.idle.values().map(|idle| &*idle.date));
    days.extend(results.control.values().map(|control| &*control.date));
    days.sort_unstable();
    match (days.first(), days.last()) {
        (Some(first), Some(last)) if first == last => text += &format!("Measured on {first}.\n"),
        (Some(first), Some(last)) => text += &format!("Measured from {first} to {last}.\n"),
        _ => text += "Nothing was measured yet.\n",
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Figures, Spread, Traffic};

    fn measured(microseconds: f64) -> Figures {
        let spread = Spread { median: microseconds, min: microseconds, max: microseconds };
        Figures { cpu_us_per_request: spread, ..Figures::default() }
    }

    #[test]
    fn a_document_without_results_holds_no_numbers_of_proxies() {
        let text = document(&Results::default());
        assert!(text.contains("Nothing was measured yet."));
        assert!(text.contains("not measured"));
        assert!(!text.contains("## CPU"));
    }

    #[test]
    fn ratios_and_targets_follow_from_what_was_measured() {
        let peers = [("fairway", 15.0), ("fairway-nginx", 30.0), ("nginx", 20.0)];
        let peers = peers.map(|(name, cpu)| (name.to_owned(), measured(cpu))).into();
        let mut results = Results::default();
        results.traffic.insert("http1".to_owned(), Traffic { peers, ..Traffic::default() });
        let text = document(&results);
        let row = "| 15.0 | 30.0 | 20.0 | – | 0.75 | – | 1.50 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| ≤ 0.65 | 0.75 | **missed** |"), "{text}");
        assert!(text.contains("| ≤ 0.60 | – | not measured |"), "{text}");
    }
}
