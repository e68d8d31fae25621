//! The tables of the report.

use std::collections::BTreeMap;

use crate::fairness::FLOODS;
use crate::peers::Peer;
use crate::results::{Calm, Figures, Propagation, Results, Spread};
use crate::scenario::{ECHO, IDLE, KEEP_ALIVE, LONG, SCENARIOS, Scenario};

/// A proxy whose core was busy for a smaller part of the time was not at its limit.
const AT_ITS_LIMIT: f64 = 0.95;

/// CPU for each request.
pub(super) fn processor(results: &Results) -> String {
    let mut rows = String::new();
    for (title, traffic) in measured(results) {
        let cpu = |figures: &Figures| figures.cpu_us_per_request;
        rows += &compared(title, &traffic.peers, cpu, |spread, _| range(&spread, 1));
    }
    let head = "## CPU for each request\n\nMicroseconds, user and system; less is better.\n";
    table(head, "", &rows) + &floor(results)
}

/// What the system calls cost that no proxy can do without.
fn floor(results: &Results) -> String {
    let above = |name: &str, what: &str| {
        let peers = &results.traffic.get(name)?.peers;
        let cpu = |peer: Peer| Some(peers.get(peer.name())?.cpu_us_per_request.median);
        let floor = cpu(Peer::Floor)?;
        let above = Peer::PROXIES
            .into_iter()
            .filter_map(|peer| Some(format!("{} {}", peer.name(), grouped(cpu(peer)? - floor, 1))));
        let above: Vec<_> = above.collect();
        let (floor, above) = (grouped(floor, 1), above.join(", "));
        Some(format!("\nThe floor of {what} costs {floor} in the same run; above it: {above}.\n"))
    };
    let loops = [
        (KEEP_ALIVE, "HTTP/1.1 keep-alive, a loop that reads twice, writes twice and waits,"),
        (LONG, "1 MiB down, the same loop with a pipe of the kernel (splice),"),
        (ECHO, "WebSocket echo, the same loop,"),
    ];
    loops.into_iter().filter_map(|(name, what)| above(name, what)).collect()
}

/// Answers of one core.
pub(super) fn throughput(results: &Results) -> String {
    let mut rows = String::new();
    for (title, traffic) in measured(results) {
        let rate = |figures: &Figures| figures.requests_per_second;
        rows += &compared(title, &traffic.peers, rate, |spread, figures| {
            let bounded = figures.proxy_busy.median < AT_ITS_LIMIT;
            format!("{}{}", if bounded { "≥ " } else { "" }, range(&spread, 0))
        });
    }
    let mut text = table("## One core\n\nRequests per second; more is better.\n", "", &rows);
    if !text.is_empty() && !results.generator_alone.is_empty() {
        text += "\nThe generator against its own upstream, without a proxy, on one core:";
        for scenario in &SCENARIOS {
            if let Some(alone) = results.generator_alone.get(scenario.name) {
                text += &format!("\n- {}: {} requests/s", scenario.title, grouped(alone.median, 0));
            }
        }
        text += "\n";
    }
    text + &faults(results)
}

/// Whatever makes a figure doubtful.
fn faults(results: &Results) -> String {
    let mut text = String::new();
    for (title, traffic) in measured(results) {
        for (peer, figures) in &traffic.peers {
            if figures.errors > 0 {
                let first = figures.first_error.as_deref().unwrap_or("unknown");
                text += &format!("- {title}, {peer}: {} errors ({first})\n", figures.errors);
            }
            if figures.unsent > 0 {
                text += &format!(
                    "- {title}, {peer}: {} requests were due and not sent at the end\n",
                    figures.unsent
                );
            }
            if let Some(resumed) = figures.resumed {
                let percent = resumed * 100.0;
                text += &format!("- {title}, {peer}: {percent:.1} % of the handshakes resumed\n");
            }
        }
    }
    if text.is_empty() { text } else { format!("\nTo be known with these figures:\n\n{text}") }
}

/// Percentiles at the same rate for all.
pub(super) fn latency(results: &Results) -> String {
    let mut rows = String::new();
    for (title, traffic) in measured(results) {
        for peer in Peer::ALL {
            let Some(figures) = traffic.peers.get(peer.name()) else { continue };
            let Figures { p50_us, p99_us, p999_us, cpu_us_at_fixed_rate, .. } = figures;
            let cells = [p50_us, p99_us, p999_us].map(|spread| range(spread, 0));
            rows += &format!(
                "| {title} | {} | {} | {} | {} |\n",
                grouped(traffic.fixed_rate, 0),
                peer.name(),
                cells.join(" | "),
                range(cpu_us_at_fixed_rate, 1)
            );
        }
    }
    let head = "| traffic | requests/s | proxy | p50 | p99 | p99.9 | CPU |\n|---|--:|---|--:|--:|--:|--:|\n";
    let title = "## Latency at a fixed rate\n\nMicroseconds, CPU for each request beside it; less is better.\n";
    table(title, head, &rows)
}

/// Memory of idle connections.
pub(super) fn idle(results: &Results) -> String {
    let mut rows = String::new();
    for scenario in &IDLE {
        let Some(idle) = results.idle.get(scenario.name) else { continue };
        let title =
            format!("{}, {} connections", scenario.title, grouped(idle.connections as f64, 0));
        rows += &compared(
            &title,
            &idle.bytes_per_connection,
            |spread| *spread,
            |spread, _| range(&spread, 0),
        );
    }
    table("## Idle connections\n\nBytes for each connection; less is better.\n", "", &rows)
}

/// Memory of rate limits.
pub(super) fn limits(results: &Results) -> String {
    let Some(limits) = &results.limits else { return String::new() };
    format!(
        "## Rate limits\n\n{} client addresses under a rate limit take {} bytes each; at most 65,536 are remembered for \
         each Ingress.\n",
        grouped(limits.addresses as f64, 0),
        range(&limits.bytes_per_address, 0)
    )
}

/// What a flood of one host leaves to another one.
pub(super) fn fairness(results: &Results) -> String {
    let mut rows = String::new();
    for flood in FLOODS {
        let peers = results.fairness.get(flood.name).map(|fairness| &fairness.peers);
        for (peer, calm) in peers.into_iter().flatten() {
            let Calm { quiet_p99_us: quiet, flooded_p99_us: flooded, unanswered } = calm;
            let more = (flooded.median / quiet.median - 1.0) * 100.0;
            rows += &format!(
                "| {} | {peer} | {} | {} | {more:+.0} % | {unanswered} |\n",
                flood.title,
                range(quiet, 0),
                range(flooded, 0)
            );
        }
    }
    table(
        "## Fairness\n\nAnswers of one host, p99 in microseconds, while another host is flooded; wanted: at most +10 %. Where the flood goes\n\
         to another process, which shares nothing but the machine, what is more is not the proxy's: it answers for what its row\n\
         has beyond that.\n",
        "| flood | proxy | quiet | flooded | more | unanswered |\n|---|---|--:|--:|--:|--:|\n",
        &rows,
    )
}

/// The control side.
pub(super) fn control(results: &Results) -> String {
    let mut controls: Vec<_> = results.control.values().collect();
    controls.sort_by_key(|control| (&control.source, control.ingresses));
    let mut rows = String::new();
    for control in controls {
        let shown = |propagation: &Option<Propagation>| {
            propagation.map_or_else(
                || "–".to_owned(),
                |Propagation { p50_ms, p99_ms, max_ms, .. }| {
                    format!("{p50_ms:.1} / {p99_ms:.1} / {max_ms:.1}")
                },
            )
        };
        let load = control.propagation_under_load.map_or(0.0, |load| load.requests_per_second);
        rows += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            control.source,
            grouped(control.ingresses as f64, 0),
            range(&control.ready_ms, 0),
            range(&control.resident_mib, 1),
            control.cpu_ms_per_change.map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.2}")),
            shown(&control.propagation),
            shown(&control.propagation_under_load),
            grouped(load, 0)
        );
    }
    let head = "| objects from | objects | ready, ms | resident, MiB | CPU for each change, ms | \
                a change shows, ms (p50 / p99 / max) | the same under load | requests/s then |\n\
                |---|--:|--:|--:|--:|--:|--:|--:|\n";
    let title = "## Control side\n\nIngresses with two paths each, or HTTPRoutes with two matches each; `manifests` is a \
                 folder, `cluster` a real API server.\n";
    table(title, head, &rows) + &storms(results) + &churns(results)
}

/// Answers while objects change.
fn churns(results: &Results) -> String {
    let churns = results.control.values().filter_map(|control| Some((control, control.churn?)));
    let rows: String = churns
        .map(|(control, churn)| {
            format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                control.source,
                grouped(control.ingresses as f64, 0),
                grouped(churn.changes_per_second, 0),
                grouped(churn.requests_per_second, 0),
                range(&churn.quiet_p99_us, 0),
                range(&churn.churning_p99_us, 0),
            )
        })
        .collect();
    let head = "| objects from | objects | changes/s | requests/s | p99 without changes, µs | p99 with them, µs |\n\
                |---|--:|--:|--:|--:|--:|\n";
    let title = "### Requests while objects change\n\nOf one host whose objects stay, at a fixed rate. Traffic and changes have the same core.\n";
    table(title, head, &rows)
}

/// Very many changes at once.
fn storms(results: &Results) -> String {
    let storms = results.control.values().filter_map(|control| Some((control, control.storm?)));
    let rows: String = storms
        .map(|(control, storm)| {
            format!(
                "| {} | {} | {} | {} | {:.0} | {:.2} | {:.1} |\n",
                control.source,
                grouped(control.ingresses as f64, 0),
                grouped(storm.changes as f64, 0),
                grouped(storm.changes_per_second, 0),
                storm.settled_ms,
                storm.cpu_ms_per_change,
                storm.resident_mib,
            )
        })
        .collect();
    let head = "| objects from | objects | changes | a second, as the API server took them | all show after the last one, ms | \
                CPU for each, ms | resident then, MiB |\n|---|--:|--:|--:|--:|--:|--:|\n";
    table("### A storm of changes\n\nEach of another object.\n", head, &rows)
}

/// Instructions for each request.
pub(super) fn instructions(results: &Results) -> String {
    let rows: String = results
        .instructions
        .iter()
        .map(|(name, count)| format!("| {name} | {} |\n", grouped(*count as f64, 0)))
        .collect();
    let title = "## Instructions\n\nFairway's, in user space, for each request (callgrind).\n";
    table(title, "| traffic | instructions |\n|---|--:|\n", &rows)
}

/// Scenarios that were measured, in their order.
fn measured(results: &Results) -> impl Iterator<Item = (&'static str, &crate::results::Traffic)> {
    SCENARIOS
        .iter()
        .filter_map(|Scenario { name, title, .. }| Some((*title, results.traffic.get(*name)?)))
}

/// A row with a cell for each peer, Fairway's share of nginx and of HAProxy, and that of its nginx engine of nginx.
fn compared<T>(
    title: &str,
    peers: &BTreeMap<String, T>,
    spread: impl Fn(&T) -> Spread,
    cell: impl Fn(Spread, &T) -> String,
) -> String {
    let mut row = format!("| {title} |");
    for peer in Peer::PROXIES {
        let cell = peers.get(peer.name()).map(|figures| cell(spread(figures), figures));
        row += &format!(" {} |", cell.unwrap_or_else(|| "–".to_owned()));
    }
    let median = |peer: Peer| peers.get(peer.name()).map(|figures| spread(figures).median);
    for (ours, other) in [
        (Peer::Fairway, Peer::Nginx),
        (Peer::Fairway, Peer::Haproxy),
        (Peer::FairwayNginx, Peer::Nginx),
    ] {
        let ratio = median(ours).zip(median(other));
        let ratio = ratio.map(|(ours, other)| format!("{:.2}", ours / other));
        row += &format!(" {} |", ratio.unwrap_or_else(|| "–".to_owned()));
    }
    row + "\n"
}

fn table(title: &str, head: &str, rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let compared = "| traffic | Fairway | Fairway, nginx engine | nginx | HAProxy | Fairway / nginx | \
                    Fairway / HAProxy | nginx engine / nginx |\n|---|--:|--:|--:|--:|--:|--:|--:|\n";
    format!("{title}\n{}{rows}", if head.is_empty() { compared } else { head })
}

fn range(spread: &Spread, digits: usize) -> String {
    let Spread { median, min, max } = spread;
    let [median, min, max] = [median, min, max].map(|value| grouped(*value, digits));
    if min == max { median } else { format!("{median} ({min}–{max})") }
}

/// A number with commas between its thousands.
pub(super) fn grouped(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (value, digits, text) in [
            (0.0, 0, "0"),
            (999.0, 0, "999"),
            (1_000.0, 0, "1,000"),
            (1_234_567.89, 1, "1,234,567.9"),
            (-100.0, 0, "-100"),
        ] {
            assert_eq!(grouped(value, digits), text);
        }
    }
}
