//! URLs whose host variables make: they lead where objects may lead, and to no socket.

use crate::engine::bed::{
    Folder, PATIENCE, apply, backend, configuration, environment, folder, free_port, get, options,
    until,
};
use engine::Engine;
use model::policy::{AuthExternal, Mirror, Policy};
use model::{Configuration, Outside, ServerName, Template, Url};
use nginx::{Nginx, Options};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use stream::Resolver;

fn url(authority: &str, target: &str) -> Url {
    let template = |text| Template::parse(text).expect("known variables").into();
    Url { secure: false, authority: template(authority), target: template(target), upstream: None }
}

fn mirror(url: Url) -> Policy {
    Policy { mirror: Some(Mirror { url, host: None, body: true }.into()), ..Policy::default() }
}

fn question(url: Url) -> Policy {
    let asked = AuthExternal {
        url,
        method: None,
        sign_in: None,
        response_headers: Vec::new(),
        request_headers: Vec::new(),
        request_redirect: None,
        always_set_cookie: false,
        cache: None,
        snippet: None,
    };
    Policy { auth_external: Some(asked.into()), ..Policy::default() }
}

/// Hosts with these policies.
fn with(one: SocketAddr, policies: [(&str, Policy); 2]) -> Configuration {
    let mut next = configuration(&policies.each_ref().map(|(host, _)| (*host, one, None)));
    for (host, policy) in policies {
        let server = next.servers.get_mut(&ServerName::new(host)).expect("it was put there");
        let server = Arc::make_mut(server);
        Arc::make_mut(&mut server.locations[0]).policy = Arc::new(policy);
    }
    next
}

fn start(folder: &Folder, port: u16, outside: Outside) -> Arc<Nginx> {
    let resolver = Arc::new(Resolver::from(outside));
    let options = Options { resolver, ..options(environment(folder, port)) };
    Arc::new(Nginx::start(options).expect("the engine starts"))
}

/// Counts connections, and answers 200.
fn counted() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("it is free");
    let (address, count) = (listener.local_addr().expect("bound"), Arc::<AtomicUsize>::default());
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            let _read = stream.read(&mut [0; 4096]);
            let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (address, count)
}

/// The status of a request that says where it leads.
fn send(port: u16, host: &str, to: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("nginx listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let length = body.len();
    let head = format!(
        "PATCH / HTTP/1.1\r\nHost: {host}\r\nX-D: {to}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(&[head, body.to_owned()].concat().into_bytes()).expect("nginx reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("nginx answers");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_variables_make_of_a_url_leads_to_no_socket_and_not_to_this_machine() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let ((to, asked), (stranger, _)) = (counted(), counted());
    let engine = start(&folder, port, Outside::default());
    let all = || url("$http_x_d", "/configuration/backends");
    apply(&engine, &with(one, [("a.test", mirror(all())), ("b.test", question(all()))])).await;
    let control = engine.environment().control().display().to_string();
    let taken = format!(
        r#"[{{"name":"demo-a.test-80","endpoints":[{{"address":"127.0.0.1","port":"{}"}}]}}]"#,
        stranger.port()
    );
    for to in [
        to.to_string(),
        format!("unix:{control}:"),
        "localhost".into(),
        "a b".into(),
        String::new(),
    ] {
        assert_eq!(send(port, "a.test", &to, &taken), 200, "{to}");
        assert_eq!(send(port, "b.test", &to, &taken), 500, "{to}");
    }
    assert_eq!(get(port, "a.test"), Some((200, "one".to_owned())));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    engine.drain(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_an_operator_allows_it_they_lead_to_this_machine() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let (to, asked) = counted();
    let allowed = Outside::and(["127.0.0.0/8".parse().expect("a network")]);
    let engine = start(&folder, port, allowed);
    let policies = [
        ("a.test", mirror(url("$http_x_d", "/copy"))),
        ("b.test", question(url(&format!("localhost:{}$is_args", to.port()), "/check"))),
    ];
    apply(&engine, &with(one, policies)).await;
    assert_eq!(send(port, "a.test", &to.to_string(), "copied"), 200);
    until("the copy is there", || asked.load(Ordering::SeqCst) == 1).await;
    assert_eq!(send(port, "b.test", "", ""), 200);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    engine.drain(Duration::from_secs(5)).await;
}

/// An authenticator that lets everybody in, and what it is told in `X-Mine`.
fn told() -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("it is free");
    let (address, (sender, told)) = (listener.local_addr().expect("bound"), mpsc::sync_channel(16));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = String::new();
            let mut buffer = [0; 4096];
            while !head.contains("\r\n\r\n") {
                let length = stream.read(&mut buffer).expect("nginx asks");
                head.push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
            let own = head.lines().find_map(|line| line.strip_prefix("X-Mine: "));
            let _over = sender.send(own.unwrap_or_default().to_owned());
            let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (address, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_question_is_called_opens_no_socket() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let (asked, told) = told();
    let allowed = Outside::and(["127.0.0.0/8".parse().expect("a network")]);
    let engine = start(&folder, port, allowed);
    let mut policy = question(url(&format!("localhost:{}$is_args", asked.port()), "/check"));
    let own = Template::parse("$uri").expect("a known variable");
    let asks = policy.auth_external.as_mut().expect("it asks");
    Arc::make_mut(asks).request_headers = vec![("X-Mine".to_owned(), own.into())];
    apply(&engine, &with(one, [("a.test", policy), ("b.test", Policy::default())])).await;
    assert_eq!(get(port, "a.test"), Some((200, "one".to_owned())));
    let name = told.recv_timeout(PATIENCE).expect("somebody is asked");
    let of_locations = &engine.environment().secret;
    assert_eq!(name, format!("/_fairway-{of_locations}auth-0"));
    let status = |secret: &str| {
        let control = engine.environment().control();
        let mut stream = UnixStream::connect(control).expect("nginx listens");
        let own = format!("Host: x\r\nConnection: close\r\nX-Fairway-Secret: {secret}\r\n");
        let request = format!("GET /configuration/backends HTTP/1.1\r\n{own}\r\n");
        stream.write_all(request.as_bytes()).expect("nginx reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("nginx answers");
        answer.split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(status(of_locations).as_deref(), Some("403"));
    assert_eq!(status(&engine.environment().password).as_deref(), Some("200"));
    engine.drain(Duration::from_secs(5)).await;
}
