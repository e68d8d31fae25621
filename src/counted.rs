//! What the engine says of itself for `/metrics`.

use crate::front::Front;
use exposition::{Source, Supervised, Traffic, Within};
use nginx::Nginx;
use proxy::{Native, Pressure, Shed, Spans};
use request_metrics::Metrics;
use runtime::Usage;
use std::pin::Pin;
use std::sync::Arc;

impl Source for Front {
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
        dropped_lines: native.dropped_lines(),
        spans: [("exported", exported), ("dropped", dropped), ("failed", failed)],
    }
}
