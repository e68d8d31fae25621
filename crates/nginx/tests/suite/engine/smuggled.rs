//! What a client sends with line breaks in it (a path, the name of a handshake, a user, a certificate) begins no line
//! of its own, whichever variable or group of a path carries it into whatever head.

use crate::engine::bed::{PATIENCE, apply, environment, folder, free_port, options};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::Engine;
use model::policy::{
    AnswerRewrites, AuthExternal, ClientCertificate, ClientDemand, ClientErrorPage,
    ClientVerification, CustomHeaders, Mirror, Policy, Redirect, RedirectRewrite, Replaced,
    Replacement, Rewrite,
};
use model::{
    Backend, Configuration, Endpoints, Global, Kind, Location, Origin, PathKind, Pattern, RealIp,
    Server, ServerName, SetHeader, Template, Upstream, UpstreamId, Url, Variable,
};
use nginx::Nginx;
use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::ssl::{SslConnector, SslMethod, SslStream, SslVerifyMode};
use openssl::x509::{X509, X509NameBuilder};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What is to be no line of its own, wherever it comes from.
const LINE: &str = "x\r\nInjected: 1\r\ny";
const INJECTED: &str = "x%0d%0aInjected:%201%0d%0ay?q=%0d%0aInjected:%201";
const HOST: &str = "a.test";
/// Where what is behind nginx leads to, as far as it is rewritten.
const BEHIND: &str = "http://behind.test/";
/// What Debian's nginx has no module for.
const MISSING: &str = "opentelemetry_";

/// Everything that anybody behind nginx was sent.
type Heard = Arc<Mutex<String>>;

/// A backend that lets nobody in who is only asked about, and answers all others.
fn listener(heard: Heard) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                let mut buffer = [0; 65_536];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..length]);
                    let status = if text.contains("/question") { 401 } else { 200 };
                    heard.lock().expect("nobody panics").push_str(&text);
                    let led = text.starts_with("GET /lead/").then(|| {
                        let to = text.split([' ', '/']).nth(3).unwrap_or_default();
                        format!("X-Accel-Redirect: /moved/{to}\r\n")
                    });
                    let led = led.unwrap_or_default();
                    let answer = format!(
                        "HTTP/1.1 {status} Said\r\nLocation: {BEHIND}qqqq\r\n{led}Content-Length: 0\r\n\r\n"
                    );
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("known variables")
}

fn url(target: &str) -> Url {
    Url {
        secure: false,
        authority: template("heard.test").into(),
        target: template(target).into(),
        upstream: Some(UpstreamId::new("heard")),
    }
}

/// Policies that say a variable in every head that there is: what upstreams are told, what clients are.
fn policies(said: &str) -> [Policy; 3] {
    let text = template(&format!("a{said}b"));
    let told = Policy {
        upstream_host: Some(text.clone()),
        rewrite: Some(Rewrite {
            pattern: Pattern::new("^/[^/]*/([^/]*)", true).expect("a pattern"),
            target: template("/x"),
            prefix: Some(text.clone()),
        }),
        mirror: Some(
            Mirror { url: url(&format!("/copy{said}")), host: Some(text.clone()), body: true }
                .into(),
        ),
        custom_headers: CustomHeaders(
            [SetHeader { name: "X-A".to_owned(), value: text.clone().into() }].into(),
        ),
        ..Policy::default()
    };
    let asked = AuthExternal {
        url: url(&format!("/question{said}")),
        method: None,
        sign_in: Some(template(&format!("https://login.test/{said}")).into()),
        response_headers: Vec::new(),
        request_headers: vec![("X-B".to_owned(), text.clone().into())],
        request_redirect: Some(text.into()),
        always_set_cookie: false,
        cache: None,
        snippet: None,
    };
    let to = template(&format!("https://other.test/{said}"));
    [
        told,
        Policy { auth_external: Some(asked.into()), ..Policy::default() },
        Policy { redirect: Some(Redirect { status: 302, target: to.into() }), ..Policy::default() },
    ]
}

/// A host with paths for each of these texts, whose certificates of clients may be anybody's.
fn configuration(
    said: &[String],
    policies: impl Fn(&str) -> [Policy; 3],
    heard: SocketAddr,
) -> Configuration {
    let policies = &policies;
    let id = UpstreamId::new("heard");
    let location = |path: String, policy: Policy| Location {
        path,
        kind: PathKind::Prefix,
        whole: true,
        backend: Backend::Upstream(id.clone()),
        canary: None,
        service: None,
        origin: Some(Origin::new(Kind::Ingress, "demo", "a").into()),
        policy: Arc::new(policy),
    };
    let certificate = ClientVerification {
        secret: "demo/ca".to_owned(),
        authorities: [identity().0.to_der().expect("a certificate").into()].into(),
        revocations: [].into(),
        demand: ClientDemand::OptionalUnknown,
        depth: 1,
        subject: None,
        error_page: ClientErrorPage::Plain,
        pass_certificate: true,
    };
    let locations = said.iter().enumerate().flat_map(|(index, said)| {
        let policies = ["told", "asked", "sent"].into_iter().zip(policies(said));
        policies.map(move |(kind, policy)| (format!("/{kind}{index}/([^/#]*)"), policy))
    });
    let moved = Policy {
        rewrite: Some(Rewrite {
            pattern: Pattern::new("^/moved/(.*)", true).expect("a pattern"),
            target: template("https://moved.test/$1"),
            prefix: None,
        }),
        ..Policy::default()
    };
    let others = [("/moved/".to_owned(), moved), ("/lead/".to_owned(), Policy::default())];
    let locations = locations.chain(others);
    let server = Server {
        regex: true,
        client_certificate: Some(ClientCertificate::Verified(certificate.into())),
        locations: locations.map(|(path, policy)| Arc::new(location(path, policy))).collect(),
        ..Server::new(ServerName::new(HOST))
    };
    let global = Global { access_log: false, ..Global::default() };
    let mut all = Configuration { global: Arc::new(global), ..Configuration::default() };
    all.servers.insert(server.name.clone(), Arc::new(server));
    let endpoints = Arc::new(Endpoints { ready: vec![heard], draining: Vec::new() });
    let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
    all.upstreams.insert(id, Arc::new(upstream));
    all
}

/// A certificate of a client whose name has line breaks.
fn identity() -> (X509, PKey<Private>) {
    let key = Rsa::generate(2048).and_then(PKey::from_rsa).expect("a key");
    let mut name = X509NameBuilder::new().expect("OpenSSL works");
    name.append_entry_by_text("CN", LINE).expect("a name");
    let name = name.build();
    let mut builder = X509::builder().expect("OpenSSL works");
    builder.set_subject_name(&name).expect("a name");
    builder.set_issuer_name(&name).expect("a name");
    builder.set_pubkey(&key).expect("a key");
    builder.set_not_before(&Asn1Time::days_from_now(0).expect("a time")).expect("a time");
    builder.set_not_after(&Asn1Time::days_from_now(9).expect("a time")).expect("a time");
    builder.sign(&key, MessageDigest::sha256()).expect("a key");
    (builder.build(), key)
}

/// A connection whose handshake names a server, with or without a certificate.
fn connect(
    port: u16,
    name: &str,
    identity: Option<&(X509, PKey<Private>)>,
) -> SslStream<TcpStream> {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("OpenSSL works");
    builder.set_verify(SslVerifyMode::NONE);
    if let Some((certificate, key)) = identity {
        builder.set_certificate(certificate).expect("a certificate");
        builder.set_private_key(key).expect("a key");
    }
    let mut ssl =
        builder.build().configure().expect("OpenSSL works").into_ssl(HOST).expect("a name");
    ssl.set_hostname(name).expect("what fits into a handshake");
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("nginx listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut stream = SslStream::new(ssl, stream).expect("OpenSSL works");
    stream.connect().expect("a handshake");
    stream
}

/// The head of the answer for a path; the connection is kept.
fn ask(stream: &mut SslStream<TcpStream>, path: &str, fields: &str) -> String {
    let user = BASE64_STANDARD.encode(format!("{LINE}:secret"));
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Basic {user}\r\n{fields}\r\n"
    );
    stream.write_all(head.as_bytes()).expect("nginx reads");
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error} for {path}"));
        answer.extend(byte);
    }
    let head = String::from_utf8_lossy(&answer).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    stream.read_exact(&mut body).expect("the body is whole");
    head
}

/// Every variable that nginx has, one of each kind, and groups of the path.
fn everything() -> Vec<String> {
    let kinds = ["http_x_c", "cookie_c", "arg_q", "sent_http_x_c", "upstream_http_x_c"];
    let named = Variable::NAMES.iter().filter(|name| !name.starts_with(MISSING));
    named.chain(&kinds).chain(&["1", "2"]).map(|name| format!("${{{name}}}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_variable_and_no_group_carries_a_line_break_into_a_head() {
    let (folder, heard, said) = (folder(), Heard::default(), everything());
    let environment = environment(&folder, free_port());
    let https = environment.https_port;
    let engine = Arc::new(Nginx::start(options(environment)).expect("the engine starts"));
    let next = configuration(&said, policies, listener(Arc::clone(&heard)));
    assert_eq!(apply(&engine, &next).await, Vec::<String>::new());
    let found = tokio::task::spawn_blocking(move || {
        let (identity, mut found) = (identity(), Vec::new());
        for (name, identity) in [(LINE, None), (HOST, Some(&identity))] {
            let mut stream = connect(https, name, identity);
            for (index, said) in said.iter().enumerate() {
                // Another identity changes nothing else.
                if identity.is_some() && !said.contains("ssl_") {
                    continue;
                }
                for kind in ["told", "asked", "sent"] {
                    let path = format!("/{kind}{index}/{INJECTED}");
                    let answer = ask(&mut stream, &path, "X-C: %0d%0aInjected: 1\r\n");
                    if answer.contains("Connection: close") {
                        stream = connect(https, name, identity);
                    }
                    let heard = std::mem::take(&mut *heard.lock().expect("nobody panics"));
                    if format!("{answer}{heard}").contains("\nInjected: 1") {
                        found.push(format!("{said} {kind}:\n{heard}{answer}"));
                    }
                }
            }
        }
        found
    });
    let found = found.await.expect("it does not panic");
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
    engine.drain(Duration::from_secs(5)).await;
}

/// A host that is longer than what stands beside it.
const LONG: &str = concat!(
    "shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.",
    "shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.test"
);
/// Variables that a `map` with patterns finds out, and what they are for a client that is believed.
const MAPPED: [(&str, &str); 5] = [
    ("best_http_host", LONG),
    ("pass_access_scheme", "https"),
    ("pass_port", "8443"),
    ("pass_server_port", "8443"),
    ("remote_user", ""),
];

/// Policies that say a group and a variable in one text, each beside a match of its own.
fn beside_groups(said: &str) -> [Policy; 3] {
    let text = || template(&format!("/${{1}}{said}"));
    let rewrite = |target, prefix| {
        let pattern = Pattern::new("^/[^/]*/([^/]*)", true).expect("a pattern");
        Some(Rewrite { pattern, target, prefix })
    };
    let redirect = RedirectRewrite::Replace(Replacement {
        from: Replaced::Pattern(Pattern::new(&format!("^{BEHIND}(.*)"), false).expect("a pattern")),
        to: text().into(),
    });
    let answer_rewrites = AnswerRewrites { redirect, ..AnswerRewrites::default() };
    [
        Policy { rewrite: rewrite(template("/x"), Some(text())), ..Policy::default() },
        Policy { rewrite: rewrite(text(), None), ..Policy::default() },
        Policy { answer_rewrites, ..Policy::default() },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_a_group_is_that_group_whatever_is_found_out_beside_it() {
    let (folder, heard) = (folder(), Heard::default());
    let environment = environment(&folder, free_port());
    let https = environment.https_port;
    let engine = Arc::new(Nginx::start(options(environment)).expect("the engine starts"));
    let said = MAPPED.map(|(name, _)| format!("${{{name}}}"));
    let mut next = configuration(&said, beside_groups, listener(Arc::clone(&heard)));
    let real_ip = RealIp {
        enabled: true,
        forwarded_headers: true,
        trusted: ["127.0.0.0/8".parse().expect("a network")].into_iter().collect(),
        ..RealIp::default()
    };
    next.global = Arc::new(Global { real_ip, ..(*next.global).clone() });
    assert_eq!(apply(&engine, &next).await, Vec::<String>::new());
    let wrong = tokio::task::spawn_blocking(move || {
        let group = "z".repeat(500);
        let fields = format!(
            "X-Forwarded-Host: {LONG}\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 8443\r\n"
        );
        let mut wrong = Vec::new();
        for (index, (name, value)) in MAPPED.into_iter().enumerate() {
            let all = [
                ("told", format!("X-Forwarded-Prefix: /{group}{value}\r\n")),
                ("asked", format!("GET /{group}{value} HTTP")),
                ("sent", format!("/qqqq{value}\r\n")),
            ];
            for (kind, expected) in all {
                let mut stream = connect(https, HOST, None);
                let answer = ask(&mut stream, &format!("/{kind}{index}/{group}/%0a"), &fields);
                let heard = std::mem::take(&mut *heard.lock().expect("nobody panics"));
                if !format!("{answer}{heard}").contains(&expected) {
                    wrong.push(format!("{name} {kind}:\n{heard}{answer}"));
                }
            }
        }
        wrong
    });
    let wrong = wrong.await.expect("it does not panic");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_a_path_are_said_in_heads_where_they_are_of_one_line() {
    let (folder, heard) = (folder(), Heard::default());
    let environment = environment(&folder, free_port());
    let https = environment.https_port;
    let engine = Arc::new(Nginx::start(options(environment)).expect("the engine starts"));
    let next = configuration(&["$1".to_owned()], policies, listener(Arc::clone(&heard)));
    assert_eq!(apply(&engine, &next).await, Vec::<String>::new());
    let asked = tokio::task::spawn_blocking(move || {
        let expected: [(&str, &[&str]); 6] = [
            (
                "/told0/shop",
                &["\r\nHost: ashopb\r\n", "X-Forwarded-Prefix: ashopb\r\n", "X-A: ashopb\r\n"],
            ),
            // The copy: as in nginx, a subrequest has matched nothing. Neither has the question.
            ("/told0/shop", &["/copy HTTP/1.0\r\nHost: ab\r\n"]),
            (
                "/asked0/shop",
                &["/question HTTP", "X-B: ab\r\n", "Location: https://login.test/shop\r\n"],
            ),
            ("/sent0/shop", &["Location: https://other.test/shop\r\n"]),
            ("/moved/sh%0dop", &["400 Bad Request"]),
            ("/lead/shop", &["302 ", "Location: https://moved.test/shop\r\n"]),
        ];
        for (path, texts) in expected {
            let answer = ask(&mut connect(https, HOST, None), path, "");
            let is_all = || texts.iter().all(|text| all(&heard, &answer).contains(text));
            let begun = Instant::now();
            while !is_all() && begun.elapsed() < PATIENCE {
                std::thread::yield_now();
            }
            assert!(is_all(), "{path} {texts:?}:\n{}", all(&heard, &answer));
        }
        let answer = ask(&mut connect(https, HOST, None), "/lead/x%0d%0aInjected:%201", "");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    });
    asked.await.expect("it does not panic");
    engine.drain(Duration::from_secs(5)).await;
}

fn all(heard: &Heard, answer: &str) -> String {
    format!("{}{answer}", heard.lock().expect("nobody panics"))
}
