//! What the engine says of itself for `/metrics`.

use crate::http_engine::HttpEngine;
use exposition::{
    AtEndpoint, AtEndpoints, Copied, Copies, Lost, Places, Sampled, Source, Step, Supervised,
    Traffic, Within,
};
use model::PathKind;
use nginx::Nginx;
use proxy::{
    Crowd, Crowds, Decision, End, MOST_GROUPS, Native, Pressure, Sample, Shadowed, Shed, Spans,
};
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
                let step = |Decision { step, outcome, by, .. }| Step { step, outcome, by };
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
    let most_groups = MOST_GROUPS as u64;
    Copies { sums, groups: groups.collect(), most_groups, beyond, without_client }
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
        unannounced,
        requests,
        unread,
        accept_failures,
        panics,
    } = native.shed();
    let generation = native.current();
    let reuse = generation.reuse().map(|(upstream, reuse)| {
        (upstream.to_owned(), [("opened", reuse.opened), ("reused", reuse.reused)])
    });
    let crowds = native.crowds();
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
            ("proxy_header", unannounced),
        ],
        refused_requests: requests,
        unread,
        accept_failures,
        panics,
        reuse: reuse.collect(),
        copies,
        dropped_lines: dropped_lines(native),
        spans: [("exported", exported), ("dropped", dropped), ("failed", failed)],
        most_connections: native.most_connections() as u64,
        places: places(native, &crowds),
        lost: lost(&crowds),
    }
}

/// Lines of each log that were dropped.
fn dropped_lines(native: &Native) -> [(&'static str, u64); 3] {
    let [access, error] = native.dropped_lines();
    [access, error, ("messages", runtime::lost_messages())]
}

/// Its name in `/metrics`, what it is, how full, and what becomes of more.
type Named = (&'static str, &'static str, Crowd, &'static str);

/// What requests come to and what has a bound, in the order of the page; what is not there has no room.
fn places(native: &Native, crowds: &Crowds) -> Vec<Places> {
    let place = |(name, what, crowd, beyond): Named| {
        let Crowd { now, most, refused } = crowd;
        Places { name, what, now, most, beyond, refused }
    };
    let all = held(native).into_iter().chain(remembered(crowds)).map(place);
    all.filter(|place| place.most > 0 || place.refused > 0).collect()
}

/// What requests and answers hold.
fn held(native: &Native) -> [Named; 6] {
    let (scratch, [streams, encoders, programs]) = (native.scratch(), native.under_way());
    let crowd = |(now, most, refused)| Crowd { now, most, refused };
    [
        (
            "body_memory",
            "bytes of request bodies in memory",
            crowd(scratch.memory()),
            "a file takes the body",
        ),
        (
            "body_files",
            "bytes of request bodies in files",
            crowd(scratch.files()),
            "503, half for one namespace: raise --body-files-limit",
        ),
        (
            "requests",
            "bytes of requests under way over HTTP/2",
            crowd(streams),
            "503, and who holds most ends: raise the memory limit",
        ),
        (
            "encoders",
            "bytes of encoders of answers",
            crowd(encoders),
            "answers go uncompressed, half for one namespace: raise the memory limit",
        ),
        (
            "snippets",
            "bytes that programs of snippets hold of requests under way",
            crowd(programs),
            "503, half for one namespace: raise the memory limit",
        ),
        (
            "upstream_connections",
            "connections towards upstreams",
            crowd(native.upstream_connections()),
            "503, three quarters for one namespace: raise the limit of open files",
        ),
    ]
}

/// What waits or is remembered beside them.
fn remembered(crowds: &Crowds) -> [Named; 8] {
    [
        (
            "tls_connections",
            "connections of TLS that are carried on",
            crowds.carried,
            "the quietest of whoever holds most ends, half for one namespace: raise the limit of open files",
        ),
        (
            "copies",
            "copies for mirrors in flight",
            crowds.copies,
            "the copy is left out, half for one namespace: make the mirror faster",
        ),
        (
            "passwords",
            "passwords of one namespace that wait to be computed",
            crowds.passwords,
            "503: hashes that cost less, or more processors",
        ),
        (
            "authenticator_answers",
            "bytes of answers of authenticators",
            crowds.answers,
            "the oldest are forgotten, and asked for again: fewer values of auth-cache-key",
        ),
        (
            "looked_up_hosts",
            "hosts of URLs with variables",
            crowds.hosts,
            "the oldest is asked for again, a quarter for one namespace: fewer hosts in auth-url and mirror-target",
        ),
        (
            "digest_numbers",
            "numbers of digest authentication in use",
            crowds.digests,
            "clients are given another one: auth-type basic over TLS keeps none",
        ),
        (
            "zone_clients",
            "clients in the fullest zone of http-snippet",
            crowds.zones,
            "limit_req forgets who was away longest, limit_conn refuses: a larger zone",
        ),
        (
            "ocsp_waiting",
            "certificates that wait for OCSP",
            crowds.ocsp,
            "the next handshake asks again: make the responder reachable",
        ),
    ]
}

/// What a namespace had no share left of.
fn lost(crowds: &Crowds) -> Vec<Lost> {
    let lost = |name, what, why, count| Lost { name, what, why, count };
    vec![
        lost(
            "route_retries",
            "tries of routes left out",
            "a namespace has one for each 5 requests to a Service port: mend the Service",
            crowds.tries,
        ),
        lost(
            "long_key_handshakes",
            "handshakes with long RSA keys refused",
            "10 a second for a namespace: keys of P-256, or RSA up to 4096 bits",
            crowds.handshakes,
        ),
        lost(
            "failure_lines",
            "lines about failed requests left out",
            "600 a minute for a namespace: the error log says how many",
            crowds.lines,
        ),
    ]
}
