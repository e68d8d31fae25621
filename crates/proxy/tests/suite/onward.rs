//! X-Accel-Redirect over real sockets: what the next upstream gets, what the client gets, what the log says.

use crate::bed;
use engine::Engine;
use model::policy::Policy;
use model::{Configuration, Global, LogFormat, LogTarget, Logs, Template};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The first lines and bodies of the requests that came to an upstream.
type Seen = Arc<Mutex<Vec<String>>>;

/// An upstream that sends requests on from `/from` to `/to`, and from `/cycle` to itself.
async fn upstream() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let seen = Seen::default();
    let noted = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            // The body is what comes last, and is known.
            let is_whole = |request: &[u8]| {
                let end =
                    if holds(request, b"Content-Length") { &b"hello"[..] } else { b"\r\n\r\n" };
                request.ends_with(end)
            };
            while !is_whole(&request) {
                match tcp.read(&mut buffer).await {
                    Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            let line = text.lines().next().unwrap_or_default();
            let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            noted.lock().expect("nobody panics").push(format!("{line} {body}"));
            let headers = match line.split(' ').nth(1).unwrap_or_default() {
                "/from" => {
                    "X-Accel-Redirect: /to?x=1\r\nSet-Cookie: a=b\r\nX-Up: first\r\n".to_owned()
                }
                "/cycle" => "X-Accel-Redirect: /cycle\r\n".to_owned(),
                "/heavy" => {
                    format!("X-Accel-Redirect: /heavy\r\nSet-Cookie: {}\r\n", "x".repeat(20_000))
                }
                "/far" => format!("X-Accel-Redirect: /{}\r\n", "x".repeat(33_000)),
                _ => "Set-Cookie: c=d\r\nX-Up: second\r\n".to_owned(),
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\nConnection: close\r\n\r\nok"
            );
            let _ = tcp.write_all(answer.as_bytes()).await;
        }
    });
    (address, seen)
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn configuration(endpoint: SocketAddr, log: &str, format: &str) -> Configuration {
    let template = Template::parse(format).expect("known variables");
    let global = Global {
        logs: Logs { access: LogTarget::File(log.to_owned()), ..Logs::default() },
        log_format: LogFormat { template, ..LogFormat::default() },
        ..Global::default()
    };
    let mut policy = Policy::default();
    policy.body.response_header = 1 << 20;
    let all = bed::configuration(&[(bed::MAIN, vec![endpoint])], policy);
    Configuration { global: Arc::new(global), ..all }
}

/// Sends one request; the answer and the log's only line.
async fn exchange(request: &str, format: &str) -> (String, String, Seen) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let (endpoint, seen) = upstream().await;
    let configuration = configuration(endpoint, log.to_str().expect("it is text"), format);
    let native = bed::start(&configuration).await;
    let answer = bed::talk(&native, request.as_bytes()).await;
    native.drain(Duration::from_secs(5)).await;
    let lines = std::fs::read_to_string(&log).expect("the log is a file");
    (answer, lines.trim_end().to_owned(), seen)
}

#[tokio::test]
async fn a_request_that_is_sent_on_is_a_get_with_the_same_body_and_the_log_keeps_both() {
    let request = "POST /from HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let format = "$request|$request_uri|$uri|$status|$upstream_status|$upstream_http_x_up|$sent_http_set_cookie";
    let (answer, line, seen) = exchange(request, format).await;
    let seen = seen.lock().expect("nobody panics").clone();
    assert_eq!(seen, ["POST /from HTTP/1.1 hello", "GET /to?x=1 HTTP/1.1 hello"]);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok"), "{answer}");
    assert!(answer.contains("X-Up: second") && !answer.contains("first"), "{answer}");
    assert!(answer.contains("Set-Cookie: a=b") && !answer.contains("X-Accel"), "{answer}");
    assert_eq!(line, "POST /from HTTP/1.1|/from|/to|200|200 : 200|second|c=d, a=b");
}

#[tokio::test]
async fn a_request_is_sent_on_ten_times_at_most() {
    let request = "GET /cycle HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let (answer, line, seen) = exchange(request, "$status $upstream_status").await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert_eq!(seen.lock().expect("nobody panics").len(), 11);
    assert_eq!(line, format!("500 {}", ["200"; 11].join(" : ")));
}

#[tokio::test]
async fn what_is_left_for_the_last_answer_and_the_path_to_it_have_bounds() {
    for (path, requests) in [("/heavy", 4), ("/far", 1)] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let (answer, _, seen) = exchange(&request, "$status").await;
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert_eq!(seen.lock().expect("nobody panics").len(), requests, "{path}");
    }
}
