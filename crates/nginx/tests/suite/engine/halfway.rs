//! A change that fails halfway has not happened, whatever nginx has got of it by then.

use crate::engine::bed::{apply, backend, configuration, folder, free_port, get, start};
use engine::Engine;
use model::{CertificateId, Changes, Server, ServerName};
use nginx::Environment;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// Stands before the socket of pushes, and lets nobody through once nginx.conf is another one: between the push before
/// a reload and the one after it.
struct Gate {
    socket: PathBuf,
    behind: PathBuf,
    task: JoinHandle<()>,
}

impl Gate {
    fn before(environment: &Environment) -> Self {
        let (conf, socket) = (environment.conf(), environment.control());
        let behind = socket.with_extension("behind");
        // nginx goes on listening there under the other name.
        fs::rename(&socket, &behind).expect("a socket");
        let listener = UnixListener::bind(&socket).expect("the name is free");
        let (before, inner) = (fs::read(&conf).expect("nginx.conf"), behind.clone());
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                if fs::read(&conf).expect("nginx.conf") == before {
                    let mut nginx = UnixStream::connect(&inner).await.expect("nginx listens");
                    copy_bidirectional(&mut client, &mut nginx).await.ok();
                }
            }
        });
        Self { socket, behind, task }
    }

    fn open(self) {
        self.task.abort();
        fs::rename(&self.behind, &self.socket).expect("a socket");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_after_a_change_that_failed_halfway_is_what_is_asked_for_next() {
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    let mut before = configuration(&[("a.test", one, None)]);
    // What goes is told after the reload: that a.test asked for a certificate.
    let name = ServerName::new("a.test");
    let asking = Server {
        certificate: Some(CertificateId::new("demo/a")),
        ..Server::clone(&before.servers[&name])
    };
    before.servers.insert(name, Arc::new(asking));
    apply(&engine, &before).await;
    let gate = Gate::before(engine.environment());
    let after = configuration(&[("a.test", one, None), ("b.test", one, None)]);
    let failed = engine.apply(&after, &Changes::default()).await;
    assert!(failed.is_err(), "nobody could be told after the reload");
    let status = |host| get(port, host).map(|(status, _)| status);
    assert_eq!(status("b.test"), Some(200), "nginx has it");
    gate.open();
    apply(&engine, &before).await;
    assert_eq!(status("b.test"), Some(404), "it was asked for no more");
    assert_eq!(status("a.test"), Some(308), "its certificate is asked for as ever");
    engine.drain(Duration::from_secs(5)).await;
}
