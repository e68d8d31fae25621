//! What the engine says of itself for `/metrics`.

use crate::http_engine::HttpEngine;
use exposition::{
    AtEndpoint, AtEndpoints, Copied, Copies, Places, Sampled, Source, Step, Supervised, Traffic,
    Within,
};
use model::PathKind;
use nginx::Nginx;
use proxy::{Decision, End, Native, Pressure, Sample, Shadowed, Shed, Spans};
use request_metrics::Metrics;
use runtime::Usage;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

impl Source for HttpEngine {
    fn requests(&self) -> Option<&Arc<Metrics>> {
        match self {
            Self::Native(native) => native.metrics(),
            Self::Nginx(nginx) => nginx.requests().map(|requests| requests.metrics()),
        }
    }

    fn own_certificate(&self) -> Option<Vec<u8>> {
        match self {
            Self::Native(native) => native.current().certificates.own().map(<[u8]>::to_vec),
            Self::Nginx(nginx) => Some(nginx.own_certificate().to_vec()),
        }
    }

    fn within(&self) -> Option<Within> {
        self.native().map(|native| within(native))
    }

    fn traffic(&self) -> Pin<Box<dyn Future<Output = Traffic> + Send + '_>> {
        match self {
            Self::Native(native) => {
                let connections = native.metrics().map(|metrics| metrics.connections());
                let processes = Usage::now().into_iter().collect();
                Box::pin(async move { Traffic { connections, processes, nginx: None } })
            }
            Self::Nginx(nginx) => Box::pin(of_nginx(nginx)),
        }
    }

    fn look_at_endpoints(&self) {
        if let Some(native) = self.native() {
            native.look_at_endpoints();
        }
    }

    fn endpoints(&self) -> Option<AtEndpoints> {
        self.native().map(|native| at_endpoints(native))
    }

    fn route_failure(&self, host: &str, kind: PathKind, path: &str) -> Option<(f64, String)> {
        let (at, why) = self.native()?.route_failure(host, kind, path)?;
        Some((seconds(at), why))
    }

    fn sample(&self, id: &str) -> Option<Sampled> {
        Some(match self.native()?.sample(id) {
            Sample::Awaited => Sampled::Awaited,
            Sample::TooMany => Sampled::TooMany,
            Sample::NoId => Sampled::NoId,
            Sample::Told(at, decisions) => {
                let step = |Decision { step, outcome, by }| Step { step, outcome, by };
                Sampled::Told(seconds(at), decisions.into_iter().map(step).collect())
            }
        })
    }

    fn copies(&self) -> Option<Copies> {
        self.native().and_then(|native| native.shadowed()).map(copies)
    }
}

fn at_endpoints(native: &Native) -> AtEndpoints {
    let proxy::AtEndpoints { bounds, each } = native.endpoints();
    let each = each.into_iter().map(|one| AtEndpoint {
        address: one.address,
        tries: one.tries,
        errors: one.errors,
        up_to: one.up_to,
        failed: one.failed.map(|(at, why)| (seconds(at), why)),
    });
    AtEndpoints { bounds, each: each.collect() }
}

/// Seconds since 1970.
fn seconds(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn copies(all: Shadowed) -> Copies {
    let Shadowed { groups, beyond, sums, without_client } = all;
    let groups = groups.into_iter().map(|(decided, count)| Copied {
        decision: decided.said.word(),
        host: decided.host,
        ingress: decided.ingress,
        upstream: decided.upstream,
        status: decided.status,
        by: by(decided.end),
        count: count.copies,
        example: count.example,
        times: (seconds(count.first), seconds(count.last)),
    });
    Copies { sums, groups: groups.collect(), beyond, without_client }
}

/// What ended a request, in the words of `explain`.
fn by(end: End) -> &'static str {
    match end {
        End::Unread => "head",
        End::Blocks => "block list",
        End::Location => "location",
        End::Preflight => "CORS preflight",
        End::Redirect => "redirect",
        End::Snippet => "snippet",
        End::HttpsRedirect => "redirect to HTTPS",
        End::Endpoints => "no endpoints",
        End::Limits => "limits",
        End::Access => "access",
        End::Body => "body",
        End::Upstream => "upstream",
    }
}

async fn of_nginx(nginx: &Nginx) -> Traffic {
    let connections = nginx.connections().await;
    let (mut serving, mut leaving) = (Vec::new(), Vec::new());
    let (master, workers) = nginx.processes().unzip();
    for worker in workers.unwrap_or_default() {
        let kind = if worker.is_leaving { &mut leaving } else { &mut serving };
        kind.extend(Usage::of(worker.pid));
    }
    let master = master.and_then(Usage::of);
    let processes = master.into_iter().chain(serving.iter().chain(&leaving).copied()).collect();
    let (starts, reloads) = (nginx.starts(), nginx.reloads());
    let nginx = Some(Supervised { starts, reloads, serving, leaving });
    Traffic { connections, processes, nginx }
}

fn within(native: &Native) -> Within {
    let Shed {
        pressure,
        over_bound,
        over_descriptors,
        over_pressure,
        requests,
        unread,
        accept_failures,
        panics,
    } = native.shed();
    let generation = native.current();
    let reuse = generation.reuse().map(|(upstream, reuse)| {
        (upstream.to_owned(), [("opened", reuse.opened), ("reused", reuse.reused)])
    });
    let copies = native.shadowed().map(|all| all.sums);
    let Spans { exported, dropped, failed } = native.spans();
    Within {
        pressure: match pressure {
            Pressure::Normal => 0,
            Pressure::High => 1,
            Pressure::Full => 2,
        },
        refused: [
            ("bound", over_bound),
            ("descriptors", over_descriptors),
            ("pressure", over_pressure),
        ],
        refused_requests: requests,
        unread,
        accept_failures,
        panics,
        reuse: reuse.collect(),
        copies,
        dropped_lines: native.dropped_lines(),
        spans: [("exported", exported), ("dropped", dropped), ("failed", failed)],
        most_connections: native.most_connections() as u64,
        places: room(native),
    }
}

/// Room for requests: their bodies, their heads over HTTP/2, and encoders of their answers.
fn room(native: &Native) -> Vec<Places> {
    let scratch = native.scratch();
    let [streams, encoders] = native.under_way();
    let places = |what, (now, most, refused), beyond| Places { what, now, most, beyond, refused };
    vec![
        places("bytes of request bodies in memory", scratch.memory(), "a file takes the body"),
        places(
            "bytes of request bodies in files",
            scratch.files(),
            "503, half for one namespace: raise --body-files-limit",
        ),
        places(
            "bytes of requests under way over HTTP/2",
            streams,
            "503, and who holds most ends: raise the memory limit",
        ),
        places(
            "bytes of encoders of answers",
            encoders,
            "answers go uncompressed, half for one namespace: raise the memory limit",
        ),
    ]
}
