//! The engine drives a real nginx: what reloads it and what does not, what it does not take, and how it ends.

mod again;
pub(crate) mod bed;
mod blamed;
mod changes;
mod halfway;
mod leaving;
mod led;
mod names;
mod peers;
mod refused;
mod remembered;
mod room;
mod smuggled;
mod socket;
mod unread;

use bed::{
    PATIENCE, apply, backend, configuration, environment, folder, free_port, get, is_alive,
    options, pid, start, until,
};
use engine::Engine;
use model::policy::RawServer;
use model::{CertificateId, Changes, Kind, Origin, Server, ServerName};
use nginx::{Care, Nginx, Options};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn ok(name: &str) -> Option<(u16, String)> {
    Some((200, name.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_follow_without_a_reload_and_hosts_with_one() {
    let (folder, port) = (folder(), free_port());
    let (engine, one, two) = (start(&folder, port), backend("one"), backend("two"));
    apply(&engine, &configuration(&[("a.test", one, None)])).await;
    assert_eq!(get(port, "a.test"), ok("one"));
    let before = engine.reloads();
    apply(&engine, &configuration(&[("a.test", two, None)])).await;
    assert_eq!(get(port, "a.test"), ok("two"));
    assert_eq!(engine.reloads(), before, "endpoints need no reload");
    apply(&engine, &configuration(&[("a.test", two, None), ("b.test", one, None)])).await;
    assert_eq!((get(port, "a.test"), get(port, "b.test")), (ok("two"), ok("one")));
    assert_eq!(engine.reloads(), before + 1);
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_a_wildcard_host_redirects_hosts_of_its_own_namespace_alone() {
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    for (owners, status) in [(["e", "v"], 200), (["v", "v"], 308)] {
        let hosts = ["*.shop.test", "v.shop.test"];
        let mut next = configuration(&hosts.map(|host| (host, one, None)));
        for (host, owner) in hosts.into_iter().zip(owners) {
            let server = next.servers.get_mut(&ServerName::new(host)).expect("it was put there");
            let server = Arc::make_mut(server);
            server.owner = Some(owner.into());
            server.certificate = host.starts_with('*').then(CertificateId::of_default);
        }
        apply(&engine, &next).await;
        let got = get(port, "v.shop.test").map(|(status, _)| status);
        assert_eq!(got, Some(status), "{owners:?}");
    }
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_read_in_memory_that_is_there() {
    let (folder, port) = (folder(), free_port());
    let engine = start(&folder, port);
    apply(&engine, &configuration(&[("a.test", backend("one"), None)])).await;
    let master = pid(&folder).expect("nginx runs");
    let stat = std::fs::read_to_string(format!("/proc/{master}/stat")).expect("it runs");
    let after_its_name = stat.rsplit_once(") ").expect("proc(5)").1;
    let faults = after_its_name.split(' ').nth(7).and_then(|faults| faults.parse::<u32>().ok());
    // Twice it was read: with pages that come and go 37,000 are touched, and 3,000 out of one room.
    assert!(faults.expect("proc(5)") < 12_000, "{faults:?}");
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reloads_keep_their_distance_and_what_needs_none_does_not_wait() {
    const PACE: Duration = Duration::from_secs(12);
    let (folder, port) = (folder(), free_port());
    let options = Options { pace: PACE, ..options(environment(&folder, port)) };
    let engine = Arc::new(Nginx::start(options).expect("the engine starts"));
    let (one, two) = (backend("one"), backend("two"));
    apply(&engine, &configuration(&[("a.test", one, None)])).await;
    apply(&engine, &configuration(&[("a.test", one, None), ("b.test", one, None)])).await;
    let reloaded = Instant::now();
    let all = [("a.test", two, None), ("b.test", one, None), ("c.test", one, None)];
    apply(&engine, &configuration(&all[..2])).await;
    assert_eq!(get(port, "a.test"), ok("two"));
    assert!(reloaded.elapsed() < PACE, "an endpoint waits for nobody");
    apply(&engine, &configuration(&all)).await;
    assert!(reloaded.elapsed() > PACE / 2 && get(port, "c.test") == ok("one"));
    // Whoever ends does not wait for the turn of a reload.
    let (next, changes) = (configuration(&all[..1]), Changes::default());
    let ended = engine.clone().drain(Duration::from_secs(5));
    let (applied, ()) = tokio::join!(engine.apply(&next, &changes), ended);
    assert!(applied.is_err(), "it was meant to end");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nginx_does_not_take_is_left_out_and_the_rest_is_served() {
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    let good = [("a.test", one, Some("more_set_headers \"X-A: 1\";"))];
    assert!(apply(&engine, &configuration(&good)).await.is_empty());
    let broken = [
        "no_such_directive on;",
        "deny all; } location /x { return 200;",
        "proxy_pass http://${",
        "include /nowhere/at/all.conf;",
        "set $x 'a\0b';",
    ];
    for (number, snippet) in broken.iter().enumerate() {
        let b = format!("b{number}.test");
        let all = [good[0], (b.as_str(), one, Some(*snippet)), ("c.test", one, None)];
        assert_eq!(apply(&engine, &configuration(&all)).await, [b.as_str()], "{snippet}");
        assert_eq!(get(port, &b).map(|(status, _)| status), Some(503), "{snippet}");
        assert_eq!((get(port, "a.test"), get(port, "c.test")), (ok("one"), ok("one")), "{snippet}");
    }
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_location_of_a_host_has_a_word_about_it_and_nobody_is_served_without_it() {
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    let with = |text: &str| {
        let mut all = configuration(&[("a.test", one, None), ("c.test", one, None)]);
        let name = ServerName::new("a.test");
        let mut server = Server::clone(&all.servers[&name]);
        let origin = Arc::new(Origin::new(Kind::Ingress, "demo", "word"));
        server.raw = Some(Arc::new(RawServer { origin, text: text.to_owned().into() }));
        all.servers.insert(name, Arc::new(server));
        all
    };
    let status = |host| get(port, host).map(|(status, _)| status);
    assert!(apply(&engine, &with("deny all;")).await.is_empty());
    assert_eq!((status("a.test"), status("c.test")), (Some(403), Some(200)));
    // It may have been a guard.
    assert_eq!(apply(&engine, &with("deny al;")).await, ["word"]);
    assert_eq!((status("a.test"), status("c.test")), (Some(503), Some(200)));
    // A mistake of its Ingress elsewhere takes it away from nobody.
    let mut all = with("deny all;");
    let bad = configuration(&[("b.test", one, Some("no_such_directive on;"))]);
    let name = ServerName::new("b.test");
    let mut server = Server::clone(&bad.servers[&name]);
    let location = Arc::make_mut(&mut server.locations[0]);
    location.origin =
        all.servers[&ServerName::new("a.test")].raw.as_ref().map(|raw| raw.origin.clone());
    all.servers.insert(name, Arc::new(server));
    assert_eq!(apply(&engine, &all).await, ["word"]);
    assert_eq!((status("a.test"), status("b.test")), (Some(403), Some(503)));
    assert!(apply(&engine, &with("allow all;")).await.is_empty());
    assert_eq!((status("a.test"), status("c.test")), (Some(200), Some(200)));
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_dies_is_started_again_with_all_it_knew() {
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    apply(&engine, &configuration(&[("a.test", one, None)])).await;
    let first = pid(&folder);
    let master = first.and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(master, rustix::process::Signal::KILL).expect("it runs");
    // Workers outlive their master: what they still answer says nothing.
    until("another one runs", || pid(&folder).is_some_and(|pid| Some(pid) != first)).await;
    until("and serves", || get(port, "a.test") == ok("one")).await;
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_whose_master_was_killed_leave_no_zombies() {
    // As in a container, where the first process takes up what lost its parent.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("Linux 3.4");
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    apply(&engine, &configuration(&[("a.test", one, None)])).await;
    let (master, workers) = engine.processes().expect("nginx runs");
    assert!(!workers.is_empty());
    let kill = rustix::process::Signal::KILL;
    let pid = rustix::process::Pid::from_raw(master).expect("a process");
    rustix::process::kill_process(pid, kill).expect("it runs");
    let exists = |pid: i32| Path::new(&format!("/proc/{pid}")).exists();
    until("nobody is left", || workers.iter().all(|worker| !exists(worker.pid))).await;
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_hangs_is_told_of_until_it_goes_on() {
    let (folder, port) = (folder(), free_port());
    let care = Care { every: Duration::from_millis(20), silence: Duration::from_secs(1) };
    let options = Options { care, ..options(environment(&folder, port)) };
    let engine = Arc::new(Nginx::start(options).expect("the engine starts"));
    apply(&engine, &configuration(&[("a.test", backend("one"), None)])).await;
    let (_, mut workers) = engine.processes().expect("nginx runs");
    // Those of the start without traffic may end at any moment.
    workers.retain(|worker| !worker.is_leaving);
    let all = |signal| {
        for pid in workers.iter().filter_map(|worker| rustix::process::Pid::from_raw(worker.pid)) {
            rustix::process::kill_process(pid, signal).expect("it runs");
        }
    };
    // On a machine that is busy it may have been silent for longer than that.
    until("it is well", || engine.ailment().is_none()).await;
    all(rustix::process::Signal::STOP);
    until("it is told", || engine.ailment() == Some("nginx does not answer")).await;
    all(rustix::process::Signal::CONT);
    until("it is well again", || engine.ailment().is_none()).await;
    all(rustix::process::Signal::STOP);
    until("it hangs once more", || engine.ailment().is_some()).await;
    // Nothing is waited for that will not come.
    let drained = tokio::time::timeout(PATIENCE, engine.clone().drain(2 * PATIENCE)).await;
    assert!(drained.is_ok() && engine.ailment().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_when_the_engine_ends() {
    let (folder, port) = (folder(), free_port());
    let (engine, one) = (start(&folder, port), backend("one"));
    apply(&engine, &configuration(&[("a.test", one, None)])).await;
    let master = pid(&folder).expect("nginx runs");
    engine.clone().drain(Duration::from_secs(5)).await;
    assert!(!is_alive(master));
    // A change that comes now starts nothing that would be left behind.
    let late = configuration(&[("a.test", one, None), ("b.test", one, None)]);
    assert!(engine.apply(&late, &Changes::default()).await.is_err());
    assert_eq!(get(port, "a.test"), None);
}

#[test]
fn what_a_crash_left_behind_is_found_and_ended() {
    let (folder, port) = (folder(), free_port());
    let (one, two) = (backend("one"), backend("two"));
    let run = |address, end: bool| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let master = runtime.block_on(async {
            let engine = start(&folder, port);
            apply(&engine, &configuration(&[("a.test", address, None)])).await;
            let master = pid(&folder).expect("nginx runs");
            if end {
                engine.drain(Duration::from_secs(5)).await;
            }
            master
        });
        // As a crash does: everything of ours is gone at once, and nobody told nginx.
        runtime.shutdown_timeout(Duration::from_secs(5));
        master
    };
    let first = run(one, false);
    assert!(is_alive(first));
    assert_eq!(get(port, "a.test"), ok("one"));
    let second = run(two, true);
    assert!(!is_alive(first) && !is_alive(second));
}
