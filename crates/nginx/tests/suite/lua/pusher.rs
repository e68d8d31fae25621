//! `push::Pusher` against a real nginx.

use crate::lua::bed::{Answer, Nginx, try_ask};
use model::policy::{Algorithm, Balance, Canary, CanaryRules, Policy};
use model::{
    Backend, Certificate, CertificateId, Configuration, Endpoints, Kind, Location, Origin,
    PathKind, PrivateKey, Server, ServerName, Template, Upstream, UpstreamId,
};
use nginx::push::{Control, General, PushError, Pusher, Told, Wish};
use rcgen::{CertificateParams, KeyPair};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

fn certificate(id: &str) -> Arc<Certificate> {
    let key = KeyPair::generate().expect("a key");
    let names = vec!["shop.example".to_owned()];
    let params = CertificateParams::new(names.clone()).expect("a name");
    let issued = params.self_signed(&key).expect("a certificate");
    Arc::new(Certificate {
        id: CertificateId::new(id),
        chain: vec![issued.der().to_vec()],
        key: PrivateKey(key.serialize_der()),
        names: names.into(),
        not_after: i64::MAX,
    })
}

fn pusher(nginx: &Nginx) -> Pusher {
    Pusher::new(nginx.control_socket(), certificate("fallback"))
}

fn general() -> General {
    General { http_redirect_code: 308, enable_ocsp: false, metrics: None }
}

/// Upstreams with these endpoints, `demo-cart-80` first.
fn upstreams(nginx: &Nginx, named: &[(&str, &[u8])]) -> Configuration {
    let mut configuration = Configuration::default();
    for (name, hosts) in named {
        let ready = hosts.iter().map(|host| SocketAddr::from(([127, 0, 0, *host], nginx.backend)));
        let endpoints = Arc::new(Endpoints { ready: ready.collect(), draining: Vec::new() });
        let id = UpstreamId::new(*name);
        let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
        configuration.upstreams.insert(id, Arc::new(upstream));
    }
    configuration
}

/// The server shop.example with one location.
fn serve(configuration: &mut Configuration, policy: Policy, canary: Option<Canary>) {
    let mut server = Server::new(ServerName::new("shop.example"));
    server.locations.push(Arc::new(Location {
        path: "/".to_owned(),
        kind: PathKind::Prefix,
        whole: false,
        backend: Backend::Upstream(UpstreamId::new("demo-cart-80")),
        canary: canary.map(Box::new),
        service: None,
        origin: None,
        policy: Arc::new(policy),
    }));
    configuration.servers.insert(server.name.clone(), Arc::new(server));
}

fn wish(next: &Configuration) -> Wish<'_> {
    static NOBODY: BTreeMap<UpstreamId, Arc<Endpoints>> = BTreeMap::new();
    Wish { now: next, all: next, resolved: &NOBODY }
}

async fn settle(pusher: &Pusher, next: &Configuration) -> u64 {
    let Told { generation, problems } = settle_some(pusher, next).await;
    assert!(problems.is_empty(), "{problems:?}");
    generation
}

/// As much as there is room for.
async fn settle_some(pusher: &Pusher, next: &Configuration) -> Told {
    pusher.settle(wish(next), general()).await.expect("nginx takes it")
}

#[tokio::test]
async fn only_what_differs_is_pushed_and_what_is_gone_goes() {
    let nginx = Nginx::start().await;
    let pusher = pusher(&nginx);
    let first = upstreams(&nginx, &[("demo-cart-80", &[2]), ("demo-old-80", &[3])]);
    let generation = settle(&pusher, &first).await;
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
    assert_eq!(settle(&pusher, &first).await, generation, "nothing differs, nothing is pushed");
    let second = upstreams(&nginx, &[("demo-cart-80", &[4])]);
    pusher.extend(wish(&second), general()).await.expect("nginx takes it");
    assert_eq!(nginx.get("/", "").body, "127.0.0.4");
    let shown = || nginx.control("GET", "/configuration/backends", "").body;
    assert!(shown().contains("demo-old-80"), "the old workers may need it");
    settle(&pusher, &second).await;
    assert!(!shown().contains("demo-old-80"));
}

#[tokio::test]
async fn policies_of_a_location_reach_its_route() {
    let nginx = Nginx::start().await;
    let pusher = pusher(&nginx);
    let named: &[(&str, &[u8])] = &[("demo-cart-80", &[2, 3, 4, 5]), ("demo-new-80", &[9])];
    let mut next = upstreams(&nginx, named);
    let algorithm = Algorithm::Hash(Template::parse("$arg_user").expect("a variable"));
    let policy = Policy { balance: Balance { algorithm, affinity: None }, ..Policy::default() };
    serve(&mut next, policy.clone(), None);
    settle(&pusher, &next).await;
    let home = nginx.get("/?user=1", "").body;
    assert!((0..9).all(|_| nginx.get("/?user=1", "").body == home), "by the key");
    let canary = Canary {
        upstream: UpstreamId::new("demo-new-80"),
        origin: Origin::new(Kind::Ingress, "demo", "canary"),
        rules: CanaryRules { weight: 100, weight_total: 100, ..CanaryRules::default() }.into(),
        balance: Balance::default(),
    };
    serve(&mut next, policy, Some(canary));
    settle(&pusher, &next).await;
    assert_eq!(nginx.get("/?user=1", "").body, "127.0.0.9", "to the canary");
}

#[tokio::test]
async fn certificates_follow_their_hosts() {
    let nginx = Nginx::start().await;
    let pusher = pusher(&nginx);
    let mut next = upstreams(&nginx, &[("demo-cart-80", &[2])]);
    serve(&mut next, Policy::default(), None);
    settle(&pusher, &next).await;
    let hosts = || nginx.control("GET", "/configuration/servers", "").body;
    assert!(hosts().starts_with(r#"{"_":"fallback@"#), "{}", hosts());
    let shop = certificate("demo/shop");
    next.certificates.insert(shop.id.clone(), shop.clone());
    let mut server = (*next.servers[&ServerName::new("shop.example")]).clone();
    server.certificate = Some(shop.id.clone());
    next.servers.insert(server.name.clone(), Arc::new(server));
    settle(&pusher, &next).await;
    assert!(hosts().contains(r#""shop.example":"demo\/shop@"#), "{}", hosts());
    assert_eq!(nginx.get("/secure", "").status, 308, "the host has a certificate");
    next.certificates.remove(&shop.id);
    settle(&pusher, &next).await;
    assert!(hosts().contains(r#""shop.example":"_""#), "the default one stands in: {}", hosts());
}

#[tokio::test]
async fn an_nginx_that_was_started_anew_or_changed_by_others_gets_everything_again() {
    let mut nginx = Nginx::start().await;
    let pusher = pusher(&nginx);
    let mut next = upstreams(&nginx, &[("demo-cart-80", &[2]), ("demo-other-80", &[3])]);
    settle(&pusher, &next).await;
    nginx.restart().await;
    assert_eq!(nginx.get("/", "").status, 503, "a new nginx knows nothing");
    next.upstreams.remove(&UpstreamId::new("demo-other-80"));
    settle(&pusher, &next).await;
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
    nginx.push("[]");
    next = upstreams(&nginx, &[("demo-cart-80", &[5])]);
    settle(&pusher, &next).await;
    assert_eq!(nginx.get("/", "").body, "127.0.0.5");
}

#[tokio::test]
async fn what_is_too_much_for_a_push_or_for_nginx_is_left_out_and_everybody_else_changes() {
    // 1 MiB of memory, and requests of 256 KiB.
    let nginx =
        Nginx::start_with(&[("client_max_body_size 8m;", "client_max_body_size 256k;")]).await;
    let pusher = pusher(&nginx);
    let mut next = upstreams(&nginx, &[("demo-cart-80", &[2]), ("demo-other-80", &[3])]);
    let many = |count: u16| {
        let ready = (1..=count).map(|port| SocketAddr::from(([10, 0, 0, 1], port))).collect();
        Arc::new(Endpoints { ready, draining: Vec::new() })
    };
    let mut add = |name: &str, endpoints: Arc<Endpoints>| {
        let id = UpstreamId::new(name);
        let namespace = "greedy".into();
        let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace };
        next.upstreams.insert(id, Arc::new(upstream));
    };
    // More than a request may have, and together more than there is memory for.
    add("greedy-body-80", many(20_000));
    for number in 0..8 {
        add(&format!("greedy-memory-{number}-80"), many(5_000));
    }
    let told = settle_some(&pusher, &next).await;
    let lacks = |told: &Told, text: &str| {
        told.problems.iter().filter(|problem| problem.message.to_string().contains(text)).count()
    };
    assert_eq!(lacks(&told, "greedy-body-80"), 1, "{:?}", told.problems);
    assert!((1..8).contains(&lacks(&told, "greedy-memory-")), "{:?}", told.problems);
    assert_eq!(lacks(&told, "demo-"), 0, "{:?}", told.problems);
    assert!(told.problems.iter().all(|problem| problem.message.contains("fewer endpoints")));
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
    // The next change of somebody else is taken as ever, and so is what is no longer too much.
    let changed = upstreams(&nginx, &[("demo-cart-80", &[4])]);
    next.upstreams.extend(changed.upstreams);
    settle_some(&pusher, &next).await;
    assert_eq!(nginx.get("/", "").body, "127.0.0.4");
    for number in 0..8 {
        next.upstreams.remove(&UpstreamId::new(format!("greedy-memory-{number}-80")));
    }
    let told = settle_some(&pusher, &next).await;
    assert_eq!((told.problems.len(), lacks(&told, "greedy-body-80")), (1, 1));
    assert!(!nginx.log().contains("[alert]"), "{}", nginx.log());
}

#[tokio::test]
async fn a_certificate_that_finds_no_room_leaves_its_host_the_default_one() {
    let nginx = Nginx::start().await;
    let pusher = pusher(&nginx);
    let mut next = upstreams(&nginx, &[("demo-cart-80", &[2])]);
    serve(&mut next, Policy::default(), None);
    let mut shop = Certificate::clone(&certificate("greedy/shop"));
    shop.chain = vec![shop.chain[0].clone(); 3_000];
    let id = shop.id.clone();
    next.certificates.insert(id.clone(), Arc::new(shop));
    let name = ServerName::new("shop.example");
    let server = Server { certificate: Some(id), ..Server::clone(&next.servers[&name]) };
    next.servers.insert(name, Arc::new(server));
    let told = settle_some(&pusher, &next).await;
    assert_eq!(told.problems.len(), 1, "{:?}", told.problems);
    assert_eq!(told.problems[0].origin, Origin::new(Kind::Secret, "greedy", "shop"));
    let hosts = nginx.control("GET", "/configuration/servers", "").body;
    assert!(hosts.contains(r#""shop.example":"_""#), "{hosts}");
    assert_eq!(nginx.get("/secure", "").status, 308, "it was promised TLS");
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
}

#[tokio::test]
async fn certificates_that_nginx_cannot_read_are_left_out_however_many_and_those_of_others_are_not()
{
    let nginx = Nginx::start().await;
    let pusher = pusher(&nginx);
    let mut next = upstreams(&nginx, &[("demo-cart-80", &[2])]);
    let mut add = |id: String, chain: Option<Vec<u8>>| {
        let mut certificate = Certificate::clone(&certificate(&id));
        certificate.chain = chain.map_or(certificate.chain, |der| vec![der]);
        let mut server = Server::new(ServerName::new(id.replace('/', ".")));
        server.certificate = Some(certificate.id.clone());
        next.certificates.insert(certificate.id.clone(), Arc::new(certificate));
        next.servers.insert(server.name.clone(), Arc::new(server));
    };
    (0..150).for_each(|number| add(format!("bad/{number}"), Some(vec![0x30; 400])));
    (0..3).for_each(|number| add(format!("good/{number}"), None));
    let told = settle_some(&pusher, &next).await;
    assert_eq!(told.problems.len(), 150);
    assert!(told.problems.iter().all(|problem| &*problem.origin.namespace == "bad"));
    let hosts = nginx.control("GET", "/configuration/servers", "").body;
    assert_eq!(hosts.matches(r#":"good\/"#).count(), 3, "{hosts}");
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
}

#[tokio::test(start_paused = true)]
async fn nobody_listening_is_an_error_that_names_the_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("nobody.sock");
    let control = Control { socket, secret: String::new() };
    let pusher = Pusher::new(control, certificate("fallback"));
    let error = pusher.settle(wish(&Configuration::default()), general()).await;
    let error = error.expect_err("nobody listens");
    assert!(matches!(error, PushError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("nobody.sock"), "{error}");
}

/// Clients that ask without a pause until they are told to stop.
struct Load {
    over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    asked: usize,
    failed: usize,
}

impl Load {
    fn start(port: u16) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let over = over.clone();
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("nginx listens");
                let mut counts = Counts::default();
                while !over.load(Ordering::Relaxed) {
                    let answer = try_ask(&mut stream, "GET", "/", "", "");
                    let fine = |answer: &Answer| {
                        answer.status == 200 && answer.body.starts_with("127.0.0.")
                    };
                    counts.asked += 1;
                    counts.failed += usize::from(!answer.is_ok_and(|answer| fine(&answer)));
                }
                counts
            })
        };
        let clients = (0..8).map(client).collect();
        Self { over, clients }
    }

    fn stop(self) -> Counts {
        self.over.store(true, Ordering::Relaxed);
        let counts = self.clients.into_iter().map(|client| client.join().expect("a client"));
        counts.fold(Counts::default(), |all, one| Counts {
            asked: all.asked + one.asked,
            failed: all.failed + one.failed,
        })
    }
}

#[tokio::test]
async fn a_thousand_pushes_under_load_fail_no_request_and_end_no_worker() {
    let nginx = Nginx::start().await;
    let pusher = pusher(&nginx);
    settle(&pusher, &upstreams(&nginx, &[("demo-cart-80", &[2])])).await;
    let workers = nginx.workers();
    let load = Load::start(nginx.http);
    let mut generation = 0;
    for round in 0..1000u32 {
        let host = 2 + (round % 50) as u8;
        let hosts: Vec<u8> = (host..=host + (round % 7) as u8).collect();
        let extra = format!("demo-extra-{}", round % 3);
        let next = upstreams(&nginx, &[("demo-cart-80", &hosts), (&extra, &hosts)]);
        generation = settle(&pusher, &next).await;
    }
    let counts = load.stop();
    assert!(generation >= 1000, "{generation} generations");
    assert!(counts.asked > 1000, "there was load: {counts:?}");
    assert_eq!(counts.failed, 0, "{counts:?}: {}", nginx.log());
    assert_eq!(nginx.workers(), workers, "no worker ended");
}
