//! What was wanted, and whether it is so.

use super::tables::grouped;
use crate::control::ROUTES;
use crate::results::{Control, Results};
use crate::scenario::{KEEP_ALIVE, LONG};

/// A wish with its bound, and what was measured.
struct Target {
    what: String,
    bound: f64,
    unit: &'static str,
    measured: Option<f64>,
}

/// The table of wishes.
pub(super) fn section(results: &Results) -> String {
    let mut text = "## Wanted\n\n| what | bound | measured | |\n|---|---|---|---|\n".to_owned();
    for Target { what, bound, unit, measured } in targets(results) {
        let (value, verdict) = match measured {
            None => ("–".to_owned(), "not measured"),
            Some(value) if value <= bound => (number(value, unit), "met"),
            Some(value) => (number(value, unit), "**missed**"),
        };
        text += &format!("| {what} | ≤ {} | {value} | {verdict} |\n", number(bound, unit));
    }
    text
}

/// How many wishes are fulfilled, and how many there are.
pub(super) fn met(results: &Results) -> (usize, usize) {
    let all = targets(results);
    let is_met = |target: &&Target| target.measured.is_some_and(|value| value <= target.bound);
    (all.iter().filter(is_met).count(), all.len())
}

/// What is wanted of the processor time of a request: the traffic, its name, who is compared, and the bound.
const RATIOS: [(&str, &str, &str, f64); 12] = [
    ("HTTP/1.1 keep-alive", KEEP_ALIVE, "nginx", 0.65),
    ("16 KiB up, buffered", "upload-16k", "nginx", 0.60),
    ("TLS keep-alive", "tls", "nginx", 0.60),
    ("full handshake", "tls-full", "nginx", 0.45),
    ("resumed handshake", "tls-resumed", "nginx", 0.55),
    ("HTTP/2", "http2", "haproxy", 0.85),
    ("gRPC", "grpc", "haproxy", 0.85),
    ("WebSocket echo", "websocket", "nginx", 0.85),
    ("five headers by more_set_headers", "snippet-headers", "nginx", 1.0),
    ("if with an expression, and rewrite", "snippet-rewrite", "nginx", 1.0),
    ("1,000 hosts", "hosts-1000", "nginx", 1.0),
    ("10,000 hosts", "hosts-10000", "nginx", 1.0),
];

/// The most instructions of a request.
const INSTRUCTIONS: [(&str, &str, f64); 3] = [
    ("HTTP/1.1, log on", "http1", 12_000.0),
    ("HTTP/2 over TLS", "http2", 35_000.0),
    ("gRPC over TLS", "grpc", 45_000.0),
];

/// The most memory of an idle connection, in KiB.
const IDLE: [(&str, &str, f64); 3] =
    [("plain", "idle-plain", 1.5), ("TLS", "idle-tls", 8.0), ("HTTP/2", "idle-http2", 12.0)];

fn target(
    what: impl Into<String>,
    bound: f64,
    unit: &'static str,
    measured: Option<f64>,
) -> Target {
    Target { what: what.into(), bound, unit, measured }
}

fn targets(results: &Results) -> Vec<Target> {
    let mut all = of_traffic(results);
    all.extend(of_changes(results));
    all
}

/// Of requests and connections.
fn of_traffic(results: &Results) -> Vec<Target> {
    let cpu = |scenario: &str, peer: &str| {
        Some(results.traffic.get(scenario)?.peers.get(peer)?.cpu_us_per_request.median)
    };
    let ratio = |scenario, peer| Some(cpu(scenario, "fairway")? / cpu(scenario, peer)?);
    let above_the_floor = || {
        let floor = cpu(KEEP_ALIVE, "floor")?;
        Some((cpu(KEEP_ALIVE, "fairway")? - floor) / (cpu(KEEP_ALIVE, "nginx")? - floor))
    };
    let instructions = |name: &str| results.instructions.get(name).map(|count| *count as f64);
    let many = || Some(instructions("many-hosts")? / instructions("http1")?);
    let idle = |name: &str| {
        let bytes = results.idle.get(name)?.bytes_per_connection.get("fairway")?;
        Some(bytes.median / 1024.0)
    };
    let what = "HTTP/1.1 keep-alive, CPU above the floor, Fairway / nginx";
    let mut all = vec![target(what, 0.3, "", above_the_floor())];
    let what = "1 MiB down in clear, CPU, Fairway / a loop that splices it";
    all.push(target(what, 1.15, "", ratio(LONG, "floor")));
    let what = "HTTP/1.1 keep-alive, CPU, Fairway with the nginx engine / nginx";
    let engine = || Some(cpu(KEEP_ALIVE, "fairway-nginx")? / cpu(KEEP_ALIVE, "nginx")?);
    all.push(target(what, 1.15, "", engine()));
    let p99 = |scenario: &str, peer: &str| {
        Some(results.traffic.get(scenario)?.peers.get(peer)?.p99_us.median)
    };
    for (what, scenario) in [("HTTP/1.1 keep-alive", KEEP_ALIVE), ("HTTP/2", "http2")] {
        let best = ["nginx", "haproxy"].into_iter().filter_map(|peer| p99(scenario, peer));
        let best = best.min_by(f64::total_cmp);
        let ratio = || Some(p99(scenario, "fairway")? / best?);
        let what = format!("{what}, p99 at a fixed rate, Fairway / the best of nginx and HAProxy");
        all.push(target(what, 1.0, "", ratio()));
    }
    all.extend(RATIOS.map(|(what, scenario, peer, bound)| {
        target(format!("{what}, CPU, Fairway / {peer}"), bound, "", ratio(scenario, peer))
    }));
    all.extend(INSTRUCTIONS.map(|(what, name, bound)| {
        target(format!("{what}, instructions"), bound, "", instructions(name))
    }));
    let what = "10,000 hosts with 10 paths each, instructions / those with one host";
    all.push(target(what, 1.05, "", many()));
    all.extend(IDLE.map(|(what, name, bound)| {
        target(format!("an idle connection, {what}"), bound, " KiB", idle(name))
    }));
    all
}

/// Of objects and their changes.
fn of_changes(results: &Results) -> Vec<Target> {
    let control = |source: &str, size| results.control.get(&Control::key(source, size));
    let cluster = |size| control("cluster", size);
    let p99 = |control: &Control| control.propagation.map(|changes| changes.p99_ms);
    let busy_p99 = |control: &Control| control.propagation_under_load.map(|changes| changes.p99_ms);
    let resident = |control: &Control| control.resident_mib.median;
    let churn = control("manifests", 1_000).and_then(|control| control.churn);
    let churn = churn.map(|churn| churn.churning_p99_us.median / churn.quiet_p99_us.median);
    let ready = cluster(5_000).map(|control| control.ready_ms.median);
    let routes = control(ROUTES, 5_000);
    let what = "propagation p99, 1,000 Ingresses in the API server";
    vec![
        target(what, 50.0, " ms", cluster(1_000).and_then(p99)),
        target("the same while requests flow", 50.0, " ms", cluster(1_000).and_then(busy_p99)),
        target("ready after start, 5,000 Ingresses in the API server", 2_000.0, " ms", ready),
        target("resident memory, 1,000 Ingresses", 30.0, " MiB", cluster(1_000).map(resident)),
        target("resident memory, 10,000 Ingresses", 60.0, " MiB", cluster(10_000).map(resident)),
        target("p99 with 1,000 changes a second / without, 1,000 Ingresses", 2.0, "", churn),
        target("propagation p99, 5,000 HTTPRoutes", 10.0, " ms", routes.and_then(p99)),
        target("resident memory, 5,000 HTTPRoutes", 60.0, " MiB", routes.map(resident)),
    ]
}

fn number(value: f64, unit: &str) -> String {
    match unit {
        "" if value >= 1000.0 => grouped(value, 0),
        "" => format!("{value:.2}"),
        _ => format!("{value:.1}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Peer;
    use crate::scenario::SCENARIOS;

    #[test]
    fn what_is_wanted_is_measured_by_these_names() {
        let scenario = |name: &str| SCENARIOS.iter().any(|scenario| scenario.name == name);
        for (what, name, peer, _) in RATIOS {
            assert!(scenario(name), "{what}");
            assert!(Peer::ALL.iter().any(|known| known.name() == peer), "{what}");
        }
        for (what, name, _) in IDLE {
            assert!(crate::scenario::IDLE.iter().any(|idle| idle.name == name), "{what}");
        }
        assert!(INSTRUCTIONS.iter().all(|(_, name, _)| *name == "http1" || scenario(name)));
    }
}
