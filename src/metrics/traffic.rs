//! What the engine is at while a page is made: asked once, before the first piece.

use crate::front::Front;
use nginx::Nginx;
use request_metrics::Connections;
use runtime::Usage;

/// What the engine is at.
pub(super) struct Traffic {
    /// None while it does not say.
    pub(super) connections: Option<Connections>,
    /// The processes that carry traffic.
    pub(super) processes: Vec<Usage>,
    pub(super) nginx: Option<Supervised>,
}

/// The nginx of `--engine=nginx`.
pub(super) struct Supervised {
    pub(super) starts: u64,
    pub(super) reloads: u64,
    /// Workers that take connections.
    pub(super) serving: Vec<Usage>,
    /// Workers that only finish what they have.
    pub(super) leaving: Vec<Usage>,
}

impl Traffic {
    pub(super) async fn of(front: &Front) -> Self {
        match front {
            Front::Native(native) => Self {
                connections: native.metrics().map(|metrics| metrics.connections()),
                processes: Usage::now().into_iter().collect(),
                nginx: None,
            },
            Front::Nginx(nginx) => Self::of_nginx(nginx).await,
        }
    }

    async fn of_nginx(nginx: &Nginx) -> Self {
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
        Self { connections, processes, nginx }
    }
}
