//! Limits: what is full, and what was turned away.

use super::json;
use super::overview::pressure_text;
use crate::events;
use crate::now::Now;
use crate::pace;
use crate::query::{Query, Refusal};
use crate::sample::Sample;
use exposition::Places;
use serde::Serialize;

/// What is bounded.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Limits {
    /// `normal`, `high` or `full`; none with `--engine=nginx`.
    pub(crate) pressure: Option<&'static str>,
    /// What has room for so many.
    pub(crate) rooms: Vec<Room>,
    /// What was turned away or lost since the start.
    pub(crate) shed: Vec<Shed>,
}

/// What has room for so many.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Room {
    /// What.
    pub(crate) what: &'static str,
    /// How many there are.
    pub(crate) now: u64,
    /// How many there may be.
    pub(crate) most: Option<u64>,
    /// What becomes of more.
    pub(crate) beyond: &'static str,
}

/// What was turned away or lost.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Shed {
    /// What.
    pub(crate) what: &'static str,
    /// Why, and the remedy.
    pub(crate) why: &'static str,
    /// How often.
    pub(crate) count: u64,
}

pub(crate) fn make(now: &Now, _: &Query) -> Result<String, Refusal> {
    let Some(sample) = now.sample.as_deref() else {
        return Err(Refusal::Broken("nothing was sampled".to_owned()));
    };
    let pressure = sample.within.as_ref().map(|within| pressure_text(within.pressure));
    json(&Limits { pressure, rooms: rooms(now, sample), shed: shed(now, sample) })
}

fn rooms(now: &Now, sample: &Sample) -> Vec<Room> {
    let room = |what, now, most, beyond| Room { what, now, most, beyond };
    let processes = &sample.traffic.processes;
    let files = processes.iter().map(|usage| usage.open_files).sum();
    let most_files = processes.iter().map(|usage| usage.most_open_files).sum();
    let mut rooms = vec![room("open files", files, most_files, "connections are refused")];
    if let Some((series, most, _)) = sample.series {
        let beyond = "requests are counted under overflow (--metrics-series-limit)";
        rooms.push(room("series of request metrics", series as u64, Some(most as u64), beyond));
    }
    if let Some(connections) = &sample.traffic.connections {
        let most = sample.within.as_ref().map(|within| within.most_connections);
        let beyond = "idle ones end, new ones are refused: raise the limit of open files, or max-worker-connections";
        rooms.push(room("connections of clients", connections.active, most, beyond));
        // They are bounded by thread and endpoint, and go when nobody needs them.
        let beyond = "the connection ends after its answer: upstream-keepalive-connections";
        rooms.push(room("idle connections to upstreams", connections.idle_upstream, None, beyond));
    }
    rooms.extend(places(sample).map(|one| room(one.what, one.now, Some(one.most), one.beyond)));
    if let Some(copies) = &now.copies {
        let beyond = "further copies are only counted";
        let groups = copies.groups.len() as u64;
        rooms.push(room("groups of copies", groups, Some(copies.most_groups), beyond));
    }
    let (open, most) = (events::open() as u64, events::STREAMS as u64);
    rooms.push(room("pages that follow changes", open, Some(most), "503 for the page"));
    rooms
}

/// What the engine and layer 4 have room for.
fn places(sample: &Sample) -> impl Iterator<Item = &Places> {
    let within = sample.within.iter().flat_map(|within| &within.places);
    within.chain(&sample.of_ports)
}

fn shed(now: &Now, sample: &Sample) -> Vec<Shed> {
    let mut all: Vec<Shed> = places(sample)
        .map(|one| Shed { what: one.what, why: one.beyond, count: one.refused })
        .collect();
    let mut add = |what, why, count| all.push(Shed { what, why, count });
    add("requests to this API refused", pace::BEYOND, now.turned_away);
    add("pages that could not follow changes", "as many look as may", events::refused());
    if let Some(copies) = &now.copies {
        add("copies that were only counted", "of too many groups", copies.beyond);
    }
    if let Some(within) = &sample.within {
        for (reason, count) in within.refused {
            let why = match reason {
                "bound" => "too many at a time: more replicas, or max-worker-connections",
                "descriptors" => "no file descriptors: raise the limit of open files",
                "proxy_header" => {
                    "no PROXY header: the load balancer's setting, or use-proxy-protocol"
                }
                _ => "no memory: raise the memory limit, or add replicas",
            };
            add("connections refused", why, count);
        }
        add(
            "requests answered 503",
            "full pressure: raise the memory limit",
            within.refused_requests,
        );
        add(
            "connections ended unread",
            "they held most, or took or sent too little, under pressure",
            within.unread,
        );
        add("connections not accepted", "the system refused them", within.accept_failures);
        add("panics", "a fault of Fairway: report it", within.panics);
        for (log, count) in within.dropped_lines {
            let what = match log {
                "access" => "lines of the access log dropped",
                "error" => "lines of the error log dropped",
                _ => "messages of the process dropped",
            };
            add(what, "what takes them is too slow, or full", count);
        }
        within.lost.iter().for_each(|one| add(one.what, one.why, one.count));
        for (outcome, count) in within.spans {
            match outcome {
                "exported" => {}
                "dropped" => add("spans dropped", "too many waited for the collector", count),
                _ => add("spans failed", "the collector refused them, or was away", count),
            }
        }
    }
    for (reason, count) in controller::events::dropped() {
        let why = match reason {
            "queue" => "256 waited already: the API server is slow",
            "object" => "25 and then one each 5 min for one object",
            "namespace" => "200 and then 5 a second for one namespace",
            _ => "the API server did not take them: the log says why",
        };
        add("Events dropped", why, count);
    }
    if let Some((_, _, overflowed)) = sample.series {
        add("requests counted under overflow", "too many combinations of labels", overflowed);
    }
    all
}
