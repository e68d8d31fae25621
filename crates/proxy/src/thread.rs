//! The life of one thread of traffic.

use crate::listen::{Entrance, OwnPorts, Sockets, accept, addresses};
use crate::log::AccessLog;
use crate::pulse::Pulse;
use crate::worker::{Shared, Stage, Worker};
use model::Speaks;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use stream::own;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::watch;
use tokio::time::Instant;

/// The event loop of a thread of traffic.
pub(crate) fn event_loop() -> io::Result<LocalRuntime> {
    // Its tasks are those of the event loop itself: a set of local ones inside would be woken before each of them.
    Builder::new_current_thread()
        .enable_all()
        .on_thread_unpark(|| {
            wire::wakes_up();
            wire::lane::all_went();
        })
        .on_thread_start(give_way)
        .build_local(LocalOptions::default())
}

/// Serves until the process ends. Blocks the thread.
pub(crate) fn run(
    runtime: &LocalRuntime,
    shared: Arc<Shared>,
    sockets: Sockets,
    log: AccessLog,
    mut stage: watch::Receiver<Stage>,
    pulse: &Pulse,
) {
    wire::keep_time();
    let pulse = pulse.clone();
    runtime.block_on(async move {
        let worker = Rc::new(Worker::new(shared, log));
        let accepting = accept(&worker, sockets);
        // Ports of snippets and Gateways; none any more once the thread takes no connections.
        let ports = Rc::new(RefCell::new(Some(OwnPorts::default())));
        let follow = {
            let (worker, ports) = (worker.clone(), ports.clone());
            move || follow(&worker, ports.borrow_mut().as_mut())
        };
        let mut asked = worker.shared.openings.asked();
        let (serving, at_once) = (worker.clone(), follow.clone());
        tokio::task::spawn_local(async move {
            loop {
                let number = *asked.borrow_and_update();
                at_once();
                serving.shared.openings.done(number);
                if asked.changed().await.is_err() {
                    return;
                }
            }
        });
        tokio::task::spawn_local(worker.clone().tick(pulse, follow));
        drop(stage.wait_for(|stage| *stage != Stage::Serving).await);
        worker.leave();
        let draining = stage.wait_for(|stage| matches!(stage, Stage::Draining(_))).await;
        let until = match draining.as_deref() {
            Ok(Stage::Draining(until)) => *until,
            _ => Instant::now(),
        };
        let own = ports.take();
        accepting.stop().await;
        if let Some(mut own) = own {
            own.stop().await;
        }
        worker.drain(until).await;
        worker.log.flush();
    });
}

/// A thread beside that of traffic, which computes passwords or writes to files, leaves it most of a core that they
/// share. Not all of it: what it holds meanwhile, the thread of traffic may wait for.
fn give_way() {
    // Where the system refuses it they are equals.
    let _ = rustix::process::nice(5);
}

/// Opens and closes the ports of snippets and Gateways.
fn follow(worker: &Rc<Worker>, ports: Option<&mut OwnPorts>) {
    let (generation, Some(ports)) = (worker.generation(), ports) else { return };
    let nobody = generation.own_servers.is_none() && generation.doors.is_empty();
    if nobody && ports.is_empty() {
        return;
    }
    if generation.doors.keys().any(|door| !door.ip().is_unspecified()) {
        own::listens_elsewhere();
    }
    let main = [worker.listen.http_port, worker.listen.https_port];
    let own = generation.own_servers.as_ref();
    let own = own.map(|own| own.addresses(main)).unwrap_or_default();
    let mut wanted: BTreeMap<_, _> =
        own.into_iter().map(|address| (address, Entrance::Http)).collect();
    let everywhere = addresses(&worker.listen.addresses, &generation.global().listeners);
    for (at, door) in &generation.doors {
        let (tls, port) = (door.speaks != Speaks::Http, door.port.unwrap_or(at.port()));
        let entrance = Entrance::Gateway { tls, door: *at, port };
        if at.ip().is_unspecified() {
            let all = everywhere.iter().map(|ip| (SocketAddr::new(*ip, at.port()), entrance));
            wanted.extend(all);
        } else {
            wanted.insert(*at, entrance);
        }
    }
    ports.follow(&wanted, worker);
}
