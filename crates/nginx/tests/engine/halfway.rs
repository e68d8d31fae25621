//! A change that fails halfway has not happened, whatever nginx has got of it by then.

use crate::bed::{apply, backend, configuration, folder, free_port, get, start};
use engine::Engine;
use model::Changes;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Hides the socket of pushes once nginx.conf is another one: between the push before a reload and the one after it.
fn hide_on_change(conf: PathBuf, socket: PathBuf) -> std::thread::JoinHandle<()> {
    let before = fs::read(&conf).expect("nginx.conf");
    std::thread::spawn(move || {
        while fs::read(&conf).expect("nginx.conf") == before {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        fs::rename(&socket, socket.with_extension("hidden")).expect("a socket");
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_after_a_change_that_failed_halfway_is_what_is_asked_for_next() {
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    let before = configuration(&[("a.test", one, None)]);
    apply(&engine, &before).await;
    let (conf, socket) = (engine.place().conf(), engine.place().control());
    // On a busy machine the socket may be hidden too late.
    for attempt in 0..10 {
        let more = format!("b{attempt}.test");
        let after = configuration(&[("a.test", one, None), (&more, one, None)]);
        let hidden = hide_on_change(conf.clone(), socket.clone());
        let failed = engine.apply(&after, &Changes::default()).await.is_err();
        hidden.join().expect("it is hidden");
        fs::rename(socket.with_extension("hidden"), &socket).expect("a socket");
        if failed {
            assert_eq!(get(port, &more).map(|(status, _)| status), Some(200), "nginx has it");
        }
        apply(&engine, &before).await;
        assert_eq!(
            get(port, &more).map(|(status, _)| status),
            Some(404),
            "it was asked for no more"
        );
        if failed {
            return engine.drain(Duration::from_secs(5)).await;
        }
    }
    panic!("no change failed halfway");
}
