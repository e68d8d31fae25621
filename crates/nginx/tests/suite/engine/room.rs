//! What is asked for in small objects and is much for nginx: it is told once, and where it is too much, its owner alone
//! is not served.

use crate::engine::bed::{
    Folder, PATIENCE, apply, backend, configuration, folder, free_port, get, start,
};
use engine::Engine;
use model::policy::{Affinity, AffinityMode, Algorithm, Balance, Limits, Policy, RequestLimit};
use model::{
    Alias, Configuration, Kind, Location, Origin, Part, Server, ServerName, Template, Variable,
};
use nginx::Nginx;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

fn ok(name: &str) -> Option<(u16, String)> {
    Some((200, name.to_owned()))
}

fn bed() -> (Folder, u16, Arc<Nginx>) {
    let (folder, port) = (folder(), free_port());
    let engine = start(&folder, port);
    (folder, port, engine)
}

/// The Set-Cookie of a path.
fn cookie(port: u16, host: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("nginx listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{host}{path}: {answer}");
    answer.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).map(str::to_owned)
}

/// Gives the host an Ingress's paths, all with this policy.
fn paths(all: &mut Configuration, host: &str, count: usize, balance: Balance) {
    let server = all.servers.get_mut(&ServerName::new(host)).expect("a host");
    let server = Arc::make_mut(server);
    let policy = Arc::new(Policy { balance, ..Policy::default() });
    let root = Location { policy, ..Location::clone(&server.locations[0]) };
    let path = |number| Arc::new(Location { path: format!("/{number}"), ..root.clone() });
    server.locations =
        std::iter::once(Arc::new(root.clone())).chain((1..count).map(path)).collect();
}

fn sessions() -> Balance {
    let affinity = Affinity {
        mode: AffinityMode::Balanced,
        name: "S".to_owned(),
        secure: false,
        expires: None,
        max_age: None,
        path: None,
        domain: None,
        same_site: None,
        conditional_same_site_none: false,
        change_on_failure: false,
        of_rule: None,
    };
    Balance { affinity: Some(affinity.into()), ..Balance::default() }
}

fn hash(text: String) -> Balance {
    let key = Template::from_parts(vec![Part::Text(text), Part::Variable(Variable::RequestUri)]);
    Balance { algorithm: Algorithm::Hash(key), affinity: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_names_and_a_thousand_paths_are_told_once_and_hold_nobody_up() {
    let (_folder, port, engine) = bed();
    let (one, two) = (backend("one"), backend("two"));
    let mut next = configuration(&[
        ("greedy.test", one, None),
        ("hash.test", one, None),
        ("b.test", one, None),
    ]);
    paths(&mut next, "greedy.test", 1000, sessions());
    paths(&mut next, "hash.test", 500, hash("x".repeat(140_000)));
    let server = next.servers.get_mut(&ServerName::new("greedy.test")).expect("a host");
    let alias = |text: String| Alias::parse(&text).expect("an alias");
    let aliases = (0..1000).flat_map(|number| alias(format!("{number:055}.test")));
    let odd = ["*.below.test", "~^odd[0-9]\\.test$"].map(str::to_owned);
    Arc::make_mut(server).aliases = aliases.chain(odd.into_iter().flat_map(alias)).collect();
    assert!(apply(&engine, &next).await.is_empty(), "all of it is served");
    assert_eq!(get(port, "hash.test"), ok("one"));
    for host in ["greedy.test", &format!("{:055}.test", 7), "a.below.test"] {
        let cookie = cookie(port, host, "/7").expect("a session");
        assert!(cookie.starts_with("S=") && cookie.contains("; Path=/7;"), "{host}: {cookie}");
    }
    assert_eq!(cookie(port, "odd1.test", "/7"), None, "as in ingress-nginx");
    assert_eq!(cookie(port, "a.b.below.test", "/7"), None, "two labels below the wildcard");
    let before = engine.reloads();
    let upstream = configuration(&[("b.test", two, None)]).upstreams;
    next.upstreams.extend(upstream);
    assert!(apply(&engine, &next).await.is_empty());
    assert_eq!((get(port, "b.test"), engine.reloads()), (ok("two"), before));
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_its_share_a_namespace_has_paths_closed_and_nobody_else() {
    let (_folder, port, engine) = bed();
    let (one, two) = (backend("one"), backend("two"));
    let greedy: Vec<String> = (0..100).map(|number| format!("greedy-{number}.test")).collect();
    let mut hosts: Vec<_> = greedy.iter().map(|host| (host.as_str(), one, None)).collect();
    hosts.push(("b.test", one, None));
    let mut next = configuration(&hosts);
    let own = |host: &str, server: &mut Server| {
        for location in &mut server.locations {
            let origin = Some(Origin::new(Kind::Ingress, "greedy", host).into());
            *location = Arc::new(Location { origin, ..Location::clone(location) });
        }
    };
    for (number, host) in greedy.iter().enumerate() {
        paths(&mut next, host, 2, hash(format!("{number}{}", "x".repeat(140_000 + number * 10))));
        let server = next.servers.get_mut(&ServerName::new(host.as_str())).expect("a host");
        own(host, Arc::make_mut(server));
    }
    paths(&mut next, "b.test", 2, hash("b".repeat(140_000)));
    let told = apply(&engine, &next).await;
    // 12 MiB hold 86 texts of 141 to 144 kB.
    assert!((10..20).contains(&told.len()), "{}: {told:?}", told.len());
    assert!(told.iter().all(|host| host.starts_with("greedy-")), "{told:?}");
    assert!(told.contains(&"greedy-99.test".to_owned()), "the largest: {told:?}");
    for host in &greedy {
        let wanted = if told.contains(host) { 503 } else { 200 };
        assert_eq!(get(port, host).map(|(status, _)| status), Some(wanted), "{host}");
    }
    assert_eq!(get(port, "b.test"), ok("one"));
    next.upstreams.extend(configuration(&[("b.test", two, None)]).upstreams);
    assert_eq!(apply(&engine, &next).await, told, "they are told again");
    assert_eq!(get(port, "b.test"), ok("two"));
    for host in greedy.iter().take(20) {
        next.servers.remove(&ServerName::new(host.as_str()));
    }
    assert!(apply(&engine, &next).await.is_empty(), "there is room for the rest");
    assert_eq!(get(port, "greedy-99.test"), ok("one"));
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_crowd_into_one_bucket_are_left_out_and_others_are_served() {
    let (_folder, port, engine) = bed();
    // To nginx `aw` and `c9` are the same number.
    let same =
        |number: u32| (0..9).map(move |bit| if number >> bit & 1 == 0 { "aw" } else { "c9" });
    let label = ["x".repeat(60), "y".repeat(60), "z".repeat(60)].join(".");
    let name =
        |number| format!("{}{}.{label}", same(number).collect::<String>(), "-".repeat(40) + "a");
    let crowd: Vec<String> = (0..400).map(name).collect();
    let one = backend("one");
    let hosts: Vec<_> = crowd.iter().map(|host| (host.as_str(), one, None)).collect();
    // Somebody else has a name in the same crowd.
    let other = name(511);
    let mut next = configuration(&[("a.test", one, None), (&other, one, None)]);
    for (name, mut server) in configuration(&hosts).servers {
        let server_of_b = Arc::make_mut(&mut server);
        let location = Arc::make_mut(&mut server_of_b.locations[0]);
        location.origin = Some(Origin::new(Kind::Ingress, "b", name.as_str()).into());
        next.servers.insert(name, server);
    }
    let left_out = apply(&engine, &next).await;
    assert!(left_out.len() > 100 && left_out.len() < 250, "{} hosts", left_out.len());
    assert!(left_out.iter().all(|host| crowd.contains(host)), "{left_out:?}");
    assert_eq!((get(port, "a.test"), get(port, &other)), (ok("one"), ok("one")));
    assert_eq!(get(port, &left_out[0]).map(|(status, _)| status), Some(404));
    engine.drain(Duration::from_secs(5)).await;
}

/// The shared memory that nginx's master has touched, in kB.
fn shared(engine: &Nginx) -> u32 {
    let (master, _) = engine.processes().expect("nginx runs");
    let status = std::fs::read_to_string(format!("/proc/{master}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).expect("Linux 4.5");
    line.trim_end_matches("kB").trim().parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_take_no_more_memory_than_is_counted_for_them() {
    const INGRESSES: u32 = 200;
    let (_folder, port, engine) = bed();
    let one = backend("one");
    let hosts: Vec<String> = (0..INGRESSES).map(|number| format!("h{number}.test")).collect();
    let hosts: Vec<_> = hosts.iter().map(|host| (host.as_str(), one, None)).collect();
    let mut next = configuration(&hosts);
    apply(&engine, &next).await;
    let before = shared(&engine);
    let limit = Some(RequestLimit { rate: 1000, burst: 5000 });
    let limits =
        Limits { per_second: limit, per_minute: limit, connections: Some(5), ..Limits::default() };
    let policy = Arc::new(Policy { limits, ..Policy::default() });
    for (host, _, _) in &hosts {
        let server = next.servers.get_mut(&ServerName::new(*host)).expect("a host");
        let location = Location { policy: policy.clone(), ..Location::clone(&server.locations[0]) };
        Arc::make_mut(server).locations = vec![Arc::new(location)];
    }
    assert!(apply(&engine, &next).await.is_empty());
    assert_eq!(get(port, "h7.test"), ok("one"));
    let taken = shared(&engine) - before;
    // Two times 16 kB for requests and 24 for connections, and what is not theirs.
    let counted = INGRESSES * 56;
    assert!((counted / 2..=counted + 1000).contains(&taken), "{taken} kB, {counted} are counted");
    engine.drain(Duration::from_secs(5)).await;
}
