//! The numbers of README.md: a few of docs/benchmarks.json, so that the two say the same.

use super::tables::grouped;
use super::targets;
use crate::results::{Control, Results};
use crate::scenario::KEEP_ALIVE;

const BEGIN: &str = "<!-- Written by `make bench`; edits are lost. -->\n";
const END: &str = "<!-- That was it. -->";

/// Processor time that is told: what it is of, and the scenario.
const TOLD: [(&str, &str); 4] = [
    ("an HTTP/1.1 request, keep-alive (`make bench`)", KEEP_ALIVE),
    ("a request over TLS, keep-alive", "tls"),
    ("a gRPC call over TLS", "grpc"),
    ("an answer of 1 MiB", "body-1m"),
];

/// README.md with the numbers of these results; none if it has no place for them.
pub(super) fn with_numbers(readme: &str, results: &Results) -> Option<String> {
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", numbers(results)))
}

fn numbers(results: &Results) -> String {
    let (met, all) = targets::met(results);
    let mut text = format!(
        "On {} cores; less is better. [docs/benchmarks.md](docs/benchmarks.md) has all of them, beside what is wanted: {met} of {all} \
         bounds are met.\n\n| what | Fairway | nginx |\n|---|--:|--:|\n",
        results.machine.cores
    );
    let cpu = |scenario: &str, peer: &str| {
        let figures = results.traffic.get(scenario).and_then(|traffic| traffic.peers.get(peer));
        figures.map_or("–".to_owned(), |figures| {
            let microseconds = figures.cpu_us_per_request.median;
            if microseconds < 100.0 {
                format!("{microseconds:.1} µs")
            } else {
                format!("{} µs", grouped(microseconds, 0))
            }
        })
    };
    for (what, scenario) in TOLD {
        let (fairway, nginx) = (cpu(scenario, "fairway"), cpu(scenario, "nginx"));
        text += &format!("| CPU for {what} | {fairway} | {nginx} |\n");
    }
    let cluster = |size| results.control.get(&Control::key("cluster", size));
    if let Some(changes) = cluster(1_000).and_then(|control| control.propagation) {
        text += &format!(
            "| a change in the API server until it is served, p99 (`make bench-cluster`) | {:.1} ms | – |\n",
            changes.p99_ms
        );
    }
    if let Some(control) = cluster(5_000) {
        let (ready, resident) = (control.ready_ms.median, control.resident_mib.median);
        text += &format!(
            "| ready after start with 5,000 Ingresses | {ready:.0} ms, {resident:.0} MiB | – |\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_numbers;
    use crate::results::Results;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_readme_says_what_was_measured() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let results = fs::read_to_string(root.join("docs/benchmarks.json")).expect("results");
        let results: Results = serde_json::from_str(&results).expect("they can be read");
        let readme = fs::read_to_string(root.join("README.md")).expect("a README");
        let wanted = with_numbers(&readme, &results).expect("it has a place for numbers");
        assert!(readme == wanted, "`cargo run -p bench -- report` writes it again:\n{wanted}");
    }
}
