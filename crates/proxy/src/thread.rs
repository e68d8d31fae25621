//! The life of one thread of traffic.

use crate::listen::{Sockets, accept};
use crate::log::AccessLog;
use crate::pulse::Pulse;
use crate::worker::{Shared, Stage, Worker};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::Instant;

/// Serves until the process ends. Blocks the thread.
pub fn run(
    shared: Arc<Shared>,
    sockets: Sockets,
    log: AccessLog,
    mut stage: watch::Receiver<Stage>,
    pulse: &Pulse,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        tracing::error!("a traffic thread could not start its event loop");
        return;
    };
    let pulse = pulse.clone();
    LocalSet::new().block_on(&runtime, async move {
        let worker = Rc::new(Worker::new(shared, log));
        let accepting = accept(&worker, sockets);
        tokio::task::spawn_local(worker.clone().tick(pulse));
        drop(stage.wait_for(|stage| *stage != Stage::Serving).await);
        worker.leave();
        let draining = stage.wait_for(|stage| matches!(stage, Stage::Draining(_))).await;
        let until = match draining.as_deref() {
            Ok(Stage::Draining(until)) => *until,
            _ => Instant::now(),
        };
        accepting.stop().await;
        worker.drain(until).await;
        worker.log.flush();
    });
}
