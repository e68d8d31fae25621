//! An nginx that dies while somebody waits for it: it is started again at once, with what there is for it by then.

use crate::engine::bed::{
    Folder, PATIENCE, apply, backend, configuration, environment, folder, free_port, get, options,
    program, start, until,
};
use crate::engine::ok;
use engine::Engine;
use model::{Changes, Configuration};
use nginx::{Care, Nginx, Options};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;
use testkit::eventually;
use tokio::time::timeout;

/// An engine whose first nginx does this instead of serving.
fn dying(folder: &Folder, port: u16, how: &str) -> Arc<Nginx> {
    let marker = folder.path().join("died").display().to_string();
    beginning(
        folder,
        port,
        &format!("if [ \"$1\" != -t ] && mkdir {marker} 2>/dev/null; then {how}\nfi"),
    )
}

/// An engine whose nginx, and each test, begins with this.
fn beginning(folder: &Folder, port: u16, how: &str) -> Arc<Nginx> {
    let script = folder.path().join("nginx.sh");
    let text = format!("#!/bin/sh\n{how}\nexec {} \"$@\"\n", program().display());
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

/// Ends nginx as the kernel does where memory is short.
fn kill(engine: &Nginx) {
    let (master, _) = engine.processes().expect("nginx runs");
    kill_process(Pid::from_raw(master).expect("a process"), Signal::KILL).expect("it runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_cannot_be_started_with_what_it_ran_with_leaves_out_who_is_to_blame() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let included = folder.path().join("included");
    fs::write(&included, "more_set_headers \"X-A: 1\";").expect("a file");
    let text = format!("include {};", included.display());
    let next = configuration(&[("a.test", one, None), ("b.test", one, Some(&text))]);
    assert!(apply(&engine, &next).await.is_empty());
    fs::remove_file(&included).expect("it is there");
    kill(&engine);
    timeout(PATIENCE, engine.due()).await.expect("it says that it wants to be asked again");
    assert_eq!(apply(&engine, &next).await, ["b.test"]);
    assert_eq!(get(port, "a.test"), ok("one"));
    assert_eq!(get(port, "b.test").map(|(status, _)| status), Some(503));
    assert!(timeout(Duration::from_secs(2), engine.due()).await.is_err(), "that was all");
    // And it dies once more.
    kill(&engine);
    until("nginx runs again", || get(port, "a.test") == ok("one")).await;
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_answers_and_has_nothing_to_serve_ails() {
    let (folder, port) = (folder(), free_port());
    let care = Care { every: Duration::from_millis(50), silence: Duration::from_millis(900) };
    let options = Options { care, ..options(environment(&folder, port)) };
    let engine = Arc::new(Nginx::start(options).expect("the engine starts"));
    let next = configuration(&[("a.test", backend("one"), None)]);
    apply(&engine, &next).await;
    // Somebody else has the port before nginx has it again.
    let taken = || async {
        if engine.processes().is_some() {
            kill(&engine);
        }
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
    };
    let held = eventually(PATIENCE, taken).await.expect("in time");
    timeout(PATIENCE, engine.due()).await.expect("it wants to be asked again");
    assert!(engine.apply(&next, &Changes::default()).await.is_err(), "the port is not to be had");
    until("it ails", || engine.ailment().is_some()).await;
    assert!(engine.connections().await.is_some(), "it answers");
    drop(held);
    apply_again(&engine, &next).await;
    assert_eq!(get(port, "a.test"), ok("one"));
    until("it is well again", || engine.ailment().is_none()).await;
    engine.drain(Duration::from_secs(5)).await;
}
