//! What nginx does not take: it is closed, whoever wrote it is told, and nobody else notices.

use crate::engine::bed::{
    self, Folder, PATIENCE, apply, backend, configuration, environment, folder, free_port, options,
    start,
};
use engine::Engine;
use model::policy::{
    AuthExternal, ClientCertificate, ClientDemand, ClientErrorPage, ClientVerification,
    CustomHeaders, Policy,
};
use model::{
    Backend, Changes, Configuration, Endpoints, Kind, Location, Origin, Part, PathKind, Pattern,
    Server, ServerName, SetHeader, Template, Upstream, UpstreamId, Url, Variable,
};
use nginx::{Nginx, Options};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an honest host answers.
fn ok(name: &str) -> (u16, String) {
    (200, name.to_owned())
}

/// Status and body of a path.
fn get(port: u16, host: &str, path: &str) -> (u16, String) {
    let answer = ask(port, host, path, "");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or_else(|| panic!("no status for {path}: {answer}")), body.to_owned())
}

/// The whole answer to a request with more fields.
fn ask(port: u16, host: &str, path: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// A backend that answers with this.
pub(crate) fn answering(text: String) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 8192];
            if matches!(stream.read(&mut buffer), Ok(length) if length > 0) {
                let _sent = stream.write_all(text.as_bytes());
            }
        }
    });
    address
}

/// nginx, and a count of its tests; while there is a file `broken`, every test fails.
fn counting(folder: &Folder, port: u16) -> (Arc<Nginx>, impl Fn() -> usize + use<>) {
    let script = folder.path().join("nginx.sh");
    let (count, broken) = (folder.path().join("count"), folder.path().join("broken"));
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = -t ]; then echo >>{}; [ ! -e {} ] || exit 1; fi\nexec {} \"$@\"\n",
        count.display(),
        broken.display(),
        bed::program().display()
    );
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("its mode");
    let options = Options { program: script, ..options(environment(folder, port)) };
    let tests = move || std::fs::read(&count).map_or(0, |lines| lines.len());
    (Arc::new(Nginx::start(options).expect("the engine starts")), tests)
}

/// Adds a path of an Ingress to a host.
fn add(all: &mut Configuration, host: &str, name: &str, path: &str, to: Option<SocketAddr>) {
    edit(all, host, |server| {
        let location = server.locations.first().expect("a location");
        let id = UpstreamId::new(format!("demo-{host}-80"));
        let backend = Backend::Upstream(to.map_or(id, |to| UpstreamId::new(format!("to-{to}"))));
        server.locations.push(Arc::new(Location {
            path: path.to_owned(),
            whole: true,
            origin: Some(Origin::new(Kind::Ingress, "b", name).into()),
            backend,
            ..Location::clone(location)
        }));
    });
    if let Some(to) = to {
        upstream(all, &format!("to-{to}"), to);
    }
}

fn upstream(all: &mut Configuration, id: &str, to: SocketAddr) {
    let id = UpstreamId::new(id);
    let endpoints = Arc::new(Endpoints { ready: vec![to], draining: Vec::new() });
    let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
    all.upstreams.insert(id, Arc::new(upstream));
}

fn edit(all: &mut Configuration, host: &str, change: impl FnOnce(&mut Server)) {
    let server = all.servers.get_mut(&ServerName::new(host)).expect("a host");
    change(Arc::make_mut(server));
}

fn edit_policy(all: &mut Configuration, host: &str, path: &str, change: impl FnOnce(&mut Policy)) {
    edit(all, host, |server| {
        let of_path = server.locations.iter_mut().find(|location| location.path == path);
        let location = Arc::make_mut(of_path.expect("a path"));
        change(Arc::make_mut(&mut location.policy));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_nginx_does_not_take_is_closed_and_its_parent_does_not_serve_it() {
    let (folder, port) = (folder(), free_port());
    let one = backend("one");
    let (engine, tests) = counting(&folder, port);
    let long = format!("/{}", "a".repeat(5000));
    let (double, encoded) = (format!("/{}", "\"".repeat(2100)), format!("/{}", "%22".repeat(2100)));
    // The path, whether it is a pattern, and what it could mean.
    let bad: [(&str, bool, &str); 12] = [
        (&long, false, &long),
        (&double, false, &encoded),
        (&long, true, &long),
        ("/x\\u0041", true, "/xA"),
        ("/x\\p{Letter}", true, "/xy"),
        ("/x[[:foo:]]", true, "/xo"),
        ("/xa**", true, "/xa"),
        ("/xa{2}{3}", true, "/xaaaaaa"),
        ("/x\\x{10FFFF}", true, "/x1"),
        ("/x(?<n>y)(?&n)", true, "/xyy"),
        ("/x|/y\\p{Letter}", true, "/yy"),
        ("/x(?x) # [\n(?<remote_addr>a)", true, "/xa"),
    ];
    for (path, regex, asked) in bad {
        let hosts = [("shared.test", one, None), ("own.test", one, None)];
        let mut next = configuration(&hosts);
        add(&mut next, "shared.test", "bad", path, None);
        edit(&mut next, "shared.test", |server| server.regex = regex);
        let shown = &path[..path.len().min(40)];
        let before = tests();
        assert_eq!(apply(&engine, &next).await, ["bad"], "{shown}");
        assert!(tests() - before < 6, "{shown}: {} tests", tests() - before);
        assert_eq!(get(port, "shared.test", asked).0, 503, "{shown}");
        assert_eq!(get(port, "own.test", "/"), ok("one"), "{shown}");
        // The next change does not pay for it again.
        let before = tests();
        edit_policy(&mut next, "own.test", "/", |policy| policy.limit_rate.after += 1);
        apply(&engine, &next).await;
        assert_eq!(tests() - before, 1, "{shown}");
        if !path.contains('|') {
            assert_eq!(get(port, "shared.test", "/other"), ok("one"), "{shown}");
        }
    }
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_bad_ingresses_than_there_are_tests_keep_nobody_else_out() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let (engine, tests) = counting(&folder, port);
    let honest: Vec<String> = (0..20).map(|number| format!("honest-{number}.test")).collect();
    let mut hosts: Vec<_> = honest.iter().map(|host| (host.as_str(), one, None)).collect();
    let bad: Vec<String> = (0..100).map(|number| format!("bad-{number}.test")).collect();
    hosts.extend(bad.iter().map(|host| (host.as_str(), one, Some("no_such_directive on;"))));
    let mut next = configuration(&hosts);
    assert_eq!(apply(&engine, &next).await.len(), bad.len());
    assert!(tests() < 70, "{} tests", tests());
    for host in &honest {
        assert_eq!(get(port, host, "/"), ok("one"), "{host}");
    }
    for host in &bad {
        assert_eq!(get(port, host, "/").0, 503, "{host}");
    }
    // What was found out stays known: in the end a change costs one test.
    let mut costs = Vec::new();
    for number in 0..4 {
        let before = tests();
        edit_policy(&mut next, "honest-0.test", "/", |policy| policy.limit_rate.after = number + 1);
        assert_eq!(apply(&engine, &next).await.len(), bad.len());
        costs.push(tests() - before);
    }
    assert_eq!(costs.last(), Some(&1), "{costs:?}");
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_makes_a_test_take_too_long_is_closed_alone_and_others_change() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let script = folder.path().join("nginx.sh");
    // Reading what this host says never ends.
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = -t ] && grep -q never_ends \"$5\"; then exec tail -f /dev/null; fi\nexec {} \"$@\"\n",
        bed::program().display()
    );
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("its mode");
    let patience = Duration::from_secs(6);
    let options = Options { program: script, patience, ..options(environment(&folder, port)) };
    let engine = Arc::new(Nginx::start(options).expect("the engine starts"));
    let slow = ("slow.test", one, Some("set $never_ends 1;"));
    let both = configuration(&[("a.test", one, None), slow]);
    assert_eq!(apply(&engine, &both).await, ["slow.test"]);
    assert_eq!((get(port, "a.test", "/"), get(port, "slow.test", "/").0), (ok("one"), 503));
    // It is known now: the next change waits for nothing.
    let more = configuration(&[("a.test", one, None), slow, ("new.test", one, None)]);
    let begun = Instant::now();
    assert_eq!(apply(&engine, &more).await, ["slow.test"]);
    assert!(begun.elapsed() < patience, "{:?}", begun.elapsed());
    assert_eq!(get(port, "new.test", "/"), ok("one"));
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demand_for_certificates_that_nginx_does_not_take_closes_its_host_alone() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let pattern = |text: &str| Pattern::new(text, false).expect("a pattern");
    let broken = Arc::from([0x30, 3, 2, 1, 1].as_slice());
    let all = testkit::certificates::Certificates::shared();
    let pem = all.get("ca").expect("a fixture").certificate.as_bytes();
    let good = openssl::x509::X509::from_pem(pem).and_then(|it| it.to_der()).expect("DER");
    let mut next =
        configuration(&[("a.test", one, None), ("b.test", one, None), ("c.test", one, None)]);
    for (host, subject, authorities) in [
        ("b.test", Some(pattern("CN=(?<=C+N=)A")), vec![Arc::from(good)]),
        ("c.test", None, vec![broken]),
    ] {
        edit(&mut next, host, |server| {
            let verification = ClientVerification {
                secret: "b/s".to_owned(),
                authorities: authorities.into(),
                revocations: Arc::default(),
                demand: ClientDemand::Optional,
                depth: 1,
                subject,
                error_page: ClientErrorPage::Plain,
                pass_certificate: false,
            };
            let demand = ClientCertificate::Verified(Arc::new(verification));
            server.client_certificate = Some(demand);
        });
    }
    let told = apply(&engine, &next).await;
    assert!(!told.contains(&"a.test".to_owned()), "{told:?}");
    assert_eq!(get(port, "a.test", "/"), ok("one"));
    for host in ["b.test", "c.test"] {
        assert_eq!(get(port, host, "/").0, 403, "{host}: {told:?}");
    }
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_change_changes_nothing() {
    let (folder, port) = (folder(), free_port());
    let (one, two) = (backend("one"), backend("two"));
    let (engine, _) = counting(&folder, port);
    let serving = engine.serving();
    let before = configuration(&[("a.test", one, None)]);
    apply(&engine, &before).await;
    let files = || {
        let entries = std::fs::read_dir(engine.environment().files()).expect("a folder");
        let names = entries.flatten().map(|entry| entry.file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let (had, conf) = (files(), std::fs::read(engine.environment().conf()).expect("nginx.conf"));
    std::fs::write(folder.path().join("broken"), "").expect("a file");
    let mut next = configuration(&[("a.test", two, None), ("b.test", two, None)]);
    edit_policy(&mut next, "b.test", "/", |policy| policy.upstream_tls.verify = true);
    assert!(engine.apply(&next, &Changes::default()).await.is_err());
    assert_eq!(get(port, "a.test", "/"), ok("one"), "not even its endpoints");
    assert_eq!(get(port, "b.test", "/").0, 404);
    assert!(*serving.borrow() == before && files() == had);
    assert_eq!(std::fs::read(engine.environment().conf()).expect("nginx.conf"), conf);
    std::fs::remove_file(folder.path().join("broken")).expect("a file");
    apply(&engine, &next).await;
    assert_eq!(get(port, "a.test", "/"), ok("two"));
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_a_pattern_are_no_variables_of_others() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    let mut next = configuration(&[("a.test", one, None), ("b.test", one, None)]);
    let path = "/(?<http_x_token>x)(?P<loggable>0)(?<fairway_upstream>.)";
    add(&mut next, "b.test", "bad", path, None);
    edit(&mut next, "b.test", |server| server.regex = true);
    edit_policy(&mut next, "a.test", "/", |policy| {
        let token = Part::Variable(Variable::RequestHeader("x_token".to_owned()));
        let value = Template::from_parts(vec![token]);
        policy.custom_headers = CustomHeaders(
            vec![SetHeader { name: "X-Seen".to_owned(), value: value.into() }].into(),
        );
    });
    assert!(apply(&engine, &next).await.is_empty());
    let answer = ask(port, "a.test", "/", "X-Token: mine\r\n");
    assert!(answer.contains("X-Seen: mine"), "{answer}");
    assert_eq!(get(port, "b.test", "/x0y"), ok("one"));
    engine.drain(Duration::from_secs(5)).await;
}

fn literal(text: &str) -> Template {
    Template::from_parts(vec![Part::Text(text.to_owned())])
}

/// Who is asked at this upstream.
pub(crate) fn authenticator(id: &str) -> AuthExternal {
    let authority = literal("auth.test");
    let upstream = Some(UpstreamId::new(id));
    AuthExternal {
        url: Url {
            secure: false,
            authority: authority.into(),
            target: literal("/ask").into(),
            upstream,
        },
        method: None,
        sign_in: None,
        response_headers: Vec::new(),
        request_headers: Vec::new(),
        request_redirect: None,
        always_set_cookie: false,
        cache: None,
        snippet: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_the_paths_of_questions_and_no_answer_leads_there() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let engine = start(&folder, port);
    // Even to somebody who knows what it is called.
    let (question, reserved) = (engine.environment().internal("auth", 0), "/_fairway-auth-0");
    let led = |to: &str| {
        let head =
            format!("HTTP/1.1 200 OK\r\nX-Accel-Redirect: {to}\r\nContent-Length: 0\r\n\r\n");
        answering(head)
    };
    let secret = "HTTP/1.1 200 OK\r\nX-Secret: yes\r\nContent-Length: 6\r\n\r\nSECRET";
    let mut next = configuration(&[("a.test", one, None), ("other.test", one, None)]);
    upstream(&mut next, "auth", answering(secret.to_owned()));
    for host in ["a.test", "other.test"] {
        let auth = authenticator("auth");
        edit_policy(&mut next, host, "/", |policy| policy.auth_external = Some(auth.into()));
    }
    add(&mut next, "a.test", "bad", "/led", Some(led(&question)));
    edit_policy(&mut next, "a.test", "/led", |policy| policy.auth_external = None);
    for (name, path) in [("old", reserved), ("known", question.as_str())] {
        add(&mut next, "a.test", name, path, None);
        edit(&mut next, "a.test", |server| {
            Arc::make_mut(server.locations.last_mut().expect("a path")).kind = PathKind::Exact;
        });
    }
    assert!(apply(&engine, &next).await.is_empty());
    for host in ["a.test", "other.test"] {
        assert_eq!(get(port, host, "/"), ok("one"), "{host}");
    }
    let answer = ask(port, "a.test", "/led", "");
    assert!(
        answer.starts_with("HTTP/1.1 404") && !answer.to_lowercase().contains("secret"),
        "{answer}"
    );
    assert_eq!(get(port, "a.test", reserved).0, 503);
    // An authenticator that sends its own question on to that of another one has said nothing.
    upstream(&mut next, "auth", led(&question));
    apply(&engine, &next).await;
    let answer = ask(port, "a.test", "/", "");
    assert!(!answer.to_lowercase().contains("secret"), "{answer}");
    engine.drain(Duration::from_secs(5)).await;
}
