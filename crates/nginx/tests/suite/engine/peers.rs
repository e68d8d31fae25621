//! Behind passthrough everybody comes through one socket: who a client is says its peer, and a field of proxies where
//! that one is trusted.

use crate::engine::bed::{
    PATIENCE, apply, backend, configuration, environment, folder, free_port, options,
};
use engine::Engine;
use model::policy::{Access, Policy};
use model::{Configuration, Global, RealIp, ServerName};
use nginx::Nginx;
use openssl::ssl::{SslConnector, SslMethod, SslVerifyMode};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Who is trusted, and who is let in.
fn with(one: SocketAddr, trusted: &str, allowed: &str) -> Configuration {
    let mut next = configuration(&[("a.test", one, None)]);
    let networks = |text: &str| [text.parse().expect("a network")].into_iter().collect();
    let real_ip = RealIp {
        forwarded_headers: true,
        forwarded_for_header: "x-forwarded-for".to_owned(),
        trusted: networks(trusted),
        ..RealIp::default()
    };
    next.global = Arc::new(Global { real_ip, ..Global::clone(&next.global) });
    let access = Access { allow: Some(networks(allowed)), ..Access::default() };
    let server = next.servers.get_mut(&ServerName::new("a.test")).expect("it was put there");
    Arc::make_mut(&mut Arc::make_mut(server).locations[0]).policy =
        Arc::new(Policy { access, ..Policy::default() });
    next
}

/// The status of a request with these fields.
fn send(stream: &mut (impl Read + Write), fields: &str) -> u16 {
    let head = format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("nginx reads");
    let mut answer = Vec::new();
    // Whether the end of TLS is said is not the matter here.
    let _end = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

fn plain(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// The same in clear and over TLS.
fn both(http: u16, https: u16, fields: &str) -> [u16; 2] {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("OpenSSL works");
    builder.set_verify(SslVerifyMode::NONE);
    let mut tls = builder.build().connect("a.test", plain(https)).expect("a handshake");
    [send(&mut plain(http), fields), send(&mut tls, fields)]
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_passthrough_no_client_chooses_its_address_and_each_has_one() {
    let (folder, port, one) = (folder(), free_port(), backend("one"));
    let mut environment = environment(&folder, port);
    environment.passthrough = true;
    let https = environment.https_port;
    let engine = Arc::new(Nginx::start(options(environment)).expect("the engine starts"));
    let said = "X-Forwarded-For: 10.9.9.1\r\n";
    let hops = "X-Forwarded-For: 10.9.9.1, 127.0.0.7\r\n";
    let own = "X-Fairway-Forwarded-For: 10.9.9.1\r\nX-Fairway-Forwarded-For: 10.9.9.1\r\n";
    // Who is trusted and who is let in, what is said, and what comes of it.
    let all = [
        ("10.0.0.0/8", "10.9.9.0/24", said, 403),
        ("10.0.0.0/8", "10.9.9.0/24", own, 403),
        ("10.0.0.0/8", "10.9.9.0/24", "", 403),
        ("10.0.0.0/8", "127.0.0.1/32", said, 200),
        ("127.0.0.0/8", "10.9.9.0/24", said, 200),
        ("127.0.0.0/8", "10.9.9.0/24", hops, 200),
        ("127.0.0.0/8", "10.9.9.0/24", own, 403),
        ("127.0.0.0/8", "127.0.0.1/32", "", 200),
        ("127.0.0.0/8", "127.0.0.1/32", said, 403),
    ];
    for (trusted, allowed, fields, status) in all {
        assert!(apply(&engine, &with(one, trusted, allowed)).await.is_empty());
        let got = tokio::task::spawn_blocking(move || both(port, https, fields)).await;
        assert_eq!(got.expect("it does not panic"), [status; 2], "{trusted} {allowed} {fields}");
    }
    engine.drain(Duration::from_secs(5)).await;
}
