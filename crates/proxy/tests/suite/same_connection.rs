//! What a connection knows of the requests before: each request is answered, and told to its upstream, as if it were
//! the first one.

use crate::bed::{self, apply, put_host, put_upstream};
use model::policy::Policy;
use model::{CertificateId, Configuration, Global, ServerName, Template};
use proxy::Native;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Answers whatever is asked with what it was told, in one line.
async fn echo(mut tcp: TcpStream) {
    let mut read = Vec::new();
    while let Ok(byte) = tcp.read_u8().await {
        read.push(byte);
        if read.ends_with(b"\r\n\r\n") {
            let told = String::from_utf8_lossy(&read).trim_end().replace("\r\n", "|");
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Told: {told}\r\n\r\n");
            let _ = tcp.write_all(answer.as_bytes()).await;
            read.clear();
        }
    }
}

/// The answer without its date.
async fn ask(tcp: &mut TcpStream, host: &str, fields: &str) -> String {
    let request = format!("GET /a HTTP/1.1\r\nHost: {host}\r\nX-Request-ID: 1\r\n{fields}\r\n");
    tcp.write_all(request.as_bytes()).await.expect("written");
    let head = bed::read_until(tcp, "\r\n\r\n").await;
    let field = |line: &str| Some(line.strip_prefix("Content-Length: ")?.parse::<usize>());
    let length = head.lines().find_map(field).expect("it has a length").expect("a number");
    bed::read_exactly(tcp, length).await;
    let lines = head.lines().filter(|line| !line.starts_with("Date: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Hosts of which one tells its upstream another name, and one may have a certificate.
fn configuration(first: std::net::SocketAddr, is_certified: bool, told: &str) -> Configuration {
    let mut all = Configuration::default();
    let echo = put_upstream(&mut all, "echo", vec![first]);
    let nobody = put_upstream(&mut all, "nobody", Vec::new());
    put_host(&mut all, "a.test", if told.is_empty() { &nobody } else { &echo }, Policy::default());
    let upstream_host = Some(Template::parse(told).expect("a text"));
    put_host(&mut all, "b.test", &echo, Policy { upstream_host, ..Policy::default() });
    put_host(&mut all, "c.test", &echo, Policy::default());
    let server = all.servers.get_mut(&ServerName::new("c.test")).expect("it was put there");
    Arc::make_mut(server).certificate = is_certified.then(CertificateId::of_default);
    all
}

async fn compare(native: &Native, kept: &mut TcpStream, fields: &str) -> Vec<String> {
    let mut statuses = Vec::new();
    for host in [
        "a.test",
        "a.test",
        "A.test:81",
        "b.test",
        "a.test",
        "c.test",
        "c.test",
        "d.test",
        "b.test",
    ] {
        let again = ask(kept, host, fields).await;
        let alone = ask(&mut bed::connect(native).await, host, fields).await;
        assert_eq!(again, alone, "{host}");
        statuses.push(again[9..12].to_owned());
    }
    statuses
}

#[tokio::test]
async fn every_request_of_a_connection_is_answered_as_the_first_one_would_be() {
    let upstream = bed::serving(echo).await;
    for believes in [false, true] {
        let with = |is_certified: bool, told: &str| {
            let mut all = configuration(upstream, is_certified, told);
            let mut global = Global { access_log: false, ..Global::default() };
            global.real_ip.forwarded_headers = believes;
            all.global = Arc::new(global);
            all
        };
        let [plain, certified, renamed, gone] =
            [with(false, "one"), with(true, "one"), with(true, "other"), with(false, "")];
        let native = bed::start(&plain).await;
        let mut kept = bed::connect(&native).await;
        let usual = ["200", "200", "200", "200", "200", "200", "200", "404", "200"];
        assert_eq!(compare(&native, &mut kept, "").await, usual);
        apply(&native, &plain, &certified).await;
        let secured = ["200", "200", "200", "200", "200", "308", "308", "404", "200"];
        assert_eq!(compare(&native, &mut kept, "").await, secured);
        apply(&native, &certified, &renamed).await;
        assert_eq!(compare(&native, &mut kept, "").await, secured);
        for said in ["X-Forwarded-Proto: https\r\n", "X-Forwarded-Host: e.test\r\n", ""] {
            let fields = format!("X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Port: 8443\r\n{said}");
            let got = compare(&native, &mut kept, &fields).await;
            let is_https = believes && said.contains("https");
            assert_eq!(got, if is_https { usual } else { secured }, "{said}");
        }
        apply(&native, &renamed, &gone).await;
        let without = ["503", "503", "503", "200", "503", "200", "200", "404", "200"];
        assert_eq!(compare(&native, &mut kept, "").await, without);
    }
}
