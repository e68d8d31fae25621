//! An nginx that dies while somebody waits for it: it is started again at once, with what there is for it by then.

use crate::engine::bed::{
    Folder, PATIENCE, apply, backend, configuration, environment, folder, free_port, get, options,
    program,
};
use crate::engine::ok;
use engine::Engine;
use model::{Changes, Configuration};
use nginx::{Care, Nginx, Options};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;
use testkit::eventually;
use tokio::time::timeout;

/// An engine whose first nginx does this instead of serving.
fn dying(folder: &Folder, port: u16, how: &str) -> Arc<Nginx> {
    let (script, marker) = (folder.path().join("nginx.sh"), folder.path().join("died"));
    let (marker, program) = (marker.display(), program().display().to_string());
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" != -t ] && mkdir {marker} 2>/dev/null; then {how}\nfi\nexec {program} \"$@\"\n"
    );
    fs::write(&script, text).expect("a script");
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("its mode");
    let options = Options { program: script, ..options(environment(folder, port)) };
    Arc::new(Nginx::start(options).expect("the engine starts"))
}

/// Why a Configuration is not taken, which nobody waits long for.
async fn refused(engine: &Nginx, next: &Configuration) -> String {
    let changes = Changes::default();
    let applied = timeout(PATIENCE, engine.apply(next, &changes)).await;
    applied.expect("in time").expect_err("nginx has ended").reason
}

/// Asks for it until nginx has it, as whoever is refused does.
async fn apply_again(engine: &Nginx, next: &Configuration) {
    let tried = || async { engine.apply(next, &Changes::default()).await.ok() };
    assert!(eventually(PATIENCE, tried).await.is_some(), "nginx takes it");
}

const ENDED: &str = "nginx has ended; it is being started again";

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_dies_before_it_has_run_with_anything_is_started_with_what_is_asked_for() {
    let at_its_reload =
        format!("{} \"$@\" &\ntrap 'kill -9 $!; exit 1' HUP\nwait\nexit 1", program().display());
    for how in ["exit 1", &at_its_reload] {
        let (folder, port) = (folder(), free_port());
        let engine = dying(&folder, port, how);
        let next = configuration(&[("a.test", backend("one"), None)]);
        assert_eq!(refused(&engine, &next).await, ENDED, "{how}");
        apply_again(&engine, &next).await;
        assert_eq!(get(port, "a.test"), ok("one"), "{how}");
        engine.drain(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_dies_is_not_waited_for_by_who_tells_it_of_endpoints() {
    let (folder, port) = (folder(), free_port());
    // Nobody else asks on its socket.
    let care = Care { every: Duration::from_secs(3600), ..Care::default() };
    let options = Options { care, ..options(environment(&folder, port)) };
    let engine = Arc::new(Nginx::start(options).expect("the engine starts"));
    let [before, after] =
        ["one", "two"].map(|name| configuration(&[("a.test", backend(name), None)]));
    apply(&engine, &before).await;
    let (master, _) = engine.processes().expect("nginx runs");
    // Whoever is told of endpoints there says nothing.
    let socket = engine.environment().control();
    fs::remove_file(&socket).expect("it is there");
    let listener = UnixListener::bind(&socket).expect("the name is free");
    let changing = tokio::spawn({
        let (engine, after) = (engine.clone(), after.clone());
        async move { refused(&engine, &after).await }
    });
    let told = tokio::task::spawn_blocking(move || listener.accept().map(|told| (told, listener)));
    let told = timeout(PATIENCE, told).await.expect("in time").expect("no panic");
    kill_process(Pid::from_raw(master).expect("a process"), Signal::KILL).expect("it runs");
    assert_eq!(changing.await.expect("no panic"), ENDED);
    drop(told.expect("endpoints are told"));
    apply_again(&engine, &after).await;
    assert_eq!((get(port, "a.test"), engine.starts()), (ok("two"), 2));
    engine.drain(Duration::from_secs(5)).await;
}
