//! What was wanted, and whether it is so.

use crate::control::ROUTES;
use crate::results::{Control, Results};
use crate::scenario::KEEP_ALIVE;

/// A wish with its bound, and what was measured.
struct Target {
    what: &'static str,
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

fn targets(results: &Results) -> Vec<Target> {
    let ratio = |scenario: &str| {
        let peers = &results.traffic.get(scenario)?.peers;
        let cpu = |peer: &str| Some(peers.get(peer)?.cpu_us_per_request.median);
        Some(cpu("fairway")? / cpu("nginx")?)
    };
    let above_the_floor = || {
        let peers = &results.traffic.get(KEEP_ALIVE)?.peers;
        let cpu = |peer: &str| Some(peers.get(peer)?.cpu_us_per_request.median);
        let floor = cpu("floor")?;
        Some((cpu("fairway")? - floor) / (cpu("nginx")? - floor))
    };
    let cluster = |size: usize| results.control.get(&Control::key("cluster", size));
    let idle = results.idle.get("idle-tls");
    let idle = idle.and_then(|idle| idle.bytes_per_connection.get("fairway"));
    let p99 = |control: &Control| control.propagation.map(|changes| changes.p99_ms);
    let busy_p99 = |control: &Control| control.propagation_under_load.map(|changes| changes.p99_ms);
    let target = |what, bound, unit, measured| Target { what, bound, unit, measured };
    vec![
        target(
            "CPU for each request, HTTP/1.1 keep-alive, Fairway / nginx",
            0.8,
            "",
            ratio("http1"),
        ),
        target("the same of what is above the floor", 0.3, "", above_the_floor()),
        target("CPU for each request, TLS keep-alive, Fairway / nginx", 1.0, "", ratio("tls")),
        target(
            "five headers by more_set_headers, Fairway / nginx",
            1.0,
            "",
            ratio("snippet-headers"),
        ),
        target(
            "if with an expression, and rewrite, Fairway / nginx",
            1.0,
            "",
            ratio("snippet-rewrite"),
        ),
        target(
            "propagation p99, 1,000 Ingresses in the API server",
            50.0,
            " ms",
            cluster(1_000).and_then(p99),
        ),
        target("the same while requests flow", 50.0, " ms", cluster(1_000).and_then(busy_p99)),
        target(
            "ready after start, 5,000 Ingresses in the API server",
            2_000.0,
            " ms",
            cluster(5_000).map(|control| control.ready_ms.median),
        ),
        target(
            "resident memory then",
            120.0,
            " MiB",
            cluster(5_000).map(|control| control.resident_mib.median),
        ),
        target(
            "memory for each idle TLS connection",
            12.0,
            " KiB",
            idle.map(|bytes| bytes.median / 1024.0),
        ),
    ]
    .into_iter()
    .chain(of_routes(results))
    .collect()
}

/// Of HTTPRoutes.
fn of_routes(results: &Results) -> [Target; 2] {
    let routes = results.control.get(&Control::key(ROUTES, 5_000));
    let p99 = routes.and_then(|routes| Some(routes.propagation?.p99_ms));
    let resident = routes.map(|routes| routes.resident_mib.median);
    let what = "propagation p99, 5,000 HTTPRoutes in the API server";
    [
        Target { what, bound: 10.0, unit: " ms", measured: p99 },
        Target { what: "resident memory then", bound: 60.0, unit: " MiB", measured: resident },
    ]
}

fn number(value: f64, unit: &str) -> String {
    if unit.is_empty() { format!("{value:.2}") } else { format!("{value:.1}{unit}") }
}
