//! What a `server-snippet` says of connections, heads, redirects and compression, and FastCGI beside it, over real
//! sockets.

use crate::bed::{
    self, MAIN, answering, configuration, connect, put_upstream, read_until, start, talk, upstream,
};
use model::policy::{Policy, Protocol};
use model::{Backend, Configuration, Server, ServerName};
use proxy::Native;
use snippet::{Context, understand};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn put(configuration: &mut Configuration, host: &str, text: &str, policy: Policy) {
    let id = model::UpstreamId::new(MAIN);
    let scope = |place| understand(place, text).expect("the test writes a snippet").scope;
    let location = bed::location("/", Backend::Upstream(id), Arc::new(policy));
    let name = ServerName::new(host);
    let server = Server {
        locations: vec![Arc::new(location)],
        snippet: (!text.is_empty()).then(|| Arc::new(scope(Context::Server))),
        ..Server::new(name.clone())
    };
    configuration.servers.insert(name, Arc::new(server));
}

/// Host `a.test` with a `server-snippet`, and `b.test` without one.
async fn served(text: &str, endpoint: SocketAddr, policy: Policy) -> Arc<Native> {
    let mut configuration = Configuration::default();
    put_upstream(&mut configuration, MAIN, vec![endpoint]);
    put(&mut configuration, "a.test", text, policy.clone());
    put(&mut configuration, "b.test", "", policy);
    start(&configuration).await
}

async fn get(native: &Native, host: &str, target: &str, fields: &str) -> String {
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n");
    talk(native, head.as_bytes()).await
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or_default()
}

#[tokio::test]
async fn a_server_says_how_long_connections_stay() {
    let (address, _seen) = answering(OK).await;
    let native = served("keepalive_requests 2;", address, Policy::default()).await;
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let mut client = connect(&native).await;
    client.write_all(request).await.expect("sent");
    let first = read_until(&mut client, "\r\n\r\nok").await;
    assert!(!first.contains("Connection: close"), "{first}");
    client.write_all(request).await.expect("sent");
    let second = bed::read_to_end(&mut client).await;
    assert!(second.contains("Connection: close"), "{second}");
    let native = served("keepalive_timeout 0;", address, Policy::default()).await;
    let mut client = connect(&native).await;
    client.write_all(request).await.expect("sent");
    let answer = bed::read_to_end(&mut client).await;
    assert!(answer.contains("Connection: close"), "{answer}");
    let native = served("keepalive_time 1ms;", address, Policy::default()).await;
    let mut client = connect(&native).await;
    client.write_all(request).await.expect("sent");
    let mut answer = read_until(&mut client, "\r\n\r\nok").await;
    // Its first answer may have come sooner than that. Before it nobody knows that the connection has begun.
    if !answer.contains("Connection: close") {
        #[expect(clippy::disallowed_methods, reason = "what is tested ends after a millisecond")]
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        client.write_all(request).await.expect("sent");
        answer = bed::read_to_end(&mut client).await;
    }
    assert!(answer.contains("Connection: close"), "{answer}");
    let native = served("keepalive_timeout 100ms;", address, Policy::default()).await;
    let mut client = connect(&native).await;
    client.write_all(request).await.expect("sent");
    let idle = bed::read_to_end(&mut client).await;
    assert!(!idle.contains("Connection: close"), "it was closed for being idle: {idle}");
}

#[tokio::test]
async fn a_server_says_how_large_heads_may_be_and_nobody_else_is_touched() {
    let (address, mut seen) = answering(OK).await;
    let native = served("large_client_header_buffers 2 24k;", address, Policy::default()).await;
    let cookie = |size: usize| format!("Cookie: {}\r\n", "c".repeat(size));
    let target = |size: usize| format!("/{}", "t".repeat(size));
    for (host, target, fields, expected) in [
        ("a.test", "/".to_owned(), cookie(20 << 10), "200"),
        ("a.test", target(20 << 10), String::new(), "200"),
        ("b.test", "/".to_owned(), cookie(20 << 10), "400"),
        ("b.test", target(20 << 10), String::new(), "414"),
        ("b.test", "/".to_owned(), cookie(7 << 10), "200"),
        ("a.test", "/".to_owned(), cookie(25 << 10), "400"),
        ("a.test", "/".to_owned(), cookie(17 << 10).repeat(3), "400"),
    ] {
        let answer = get(&native, host, &target, &fields).await;
        let (target, fields) = (target.len(), fields.len());
        assert_eq!(status(&answer), expected, "{host}: a target of {target}, fields of {fields}");
    }
    while let Ok(request) = seen.try_recv() {
        assert!(request.contains("\r\nHost: a.test\r\n") || request.len() < 9 << 10);
    }
    // Less than all others have.
    let native = served("large_client_header_buffers 1 1k;", address, Policy::default()).await;
    assert_eq!(status(&get(&native, "a.test", "/", &cookie(2 << 10)).await), "400");
    assert_eq!(status(&get(&native, "b.test", "/", &cookie(2 << 10)).await), "200");
}

#[tokio::test]
async fn a_server_says_which_names_of_headers_pass_and_nobody_else_is_touched() {
    let fields = "X_Low: 1\r\nX-Odd!: 2\r\nX-Plain: 3\r\n";
    let cases = [
        ("underscores_in_headers on;", true, false),
        ("ignore_invalid_headers off;", true, true),
        ("underscores_in_headers off; ignore_invalid_headers on;", false, false),
    ];
    for (text, low, odd) in cases {
        let (address, mut seen) = answering(OK).await;
        let native = served(text, address, Policy::default()).await;
        for (host, low, odd) in [("a.test", low, odd), ("b.test", false, false)] {
            assert_eq!(status(&get(&native, host, "/", fields).await), "200");
            let request = seen.recv().await.expect("the upstream was asked");
            let has = |line: &str| request.contains(line);
            assert_eq!(
                (has("\r\nX_Low: 1\r\n"), has("\r\nX-Odd!: 2\r\n"), has("\r\nX-Plain: 3\r\n")),
                (low, odd, true),
                "{text} {host}: {request}"
            );
        }
    }
}

#[tokio::test]
async fn redirects_name_what_a_server_says() {
    let (address, _seen) = answering(OK).await;
    let rest = "location = /r { return 301 /to; } server_name_in_redirect";
    for (text, expected) in [
        (format!("{rest} off; port_in_redirect off;"), "http://a.test/to"),
        (format!("{rest} on; port_in_redirect off;"), "http://a.test/to"),
        (format!("{rest} off; absolute_redirect off;"), "/to"),
    ] {
        let native = served(&text, address, Policy::default()).await;
        let answer = get(&native, "a.test", "/r", "").await;
        assert!(answer.contains(&format!("\r\nLocation: {expected}\r\n")), "{text}: {answer}");
    }
    let text = format!("{rest} off; port_in_redirect on;");
    let native = served(&text, address, Policy::default()).await;
    let answer = get(&native, "a.test", "/r", "").await;
    let port = native.listening().http_port;
    assert!(answer.contains(&format!("\r\nLocation: http://a.test:{port}/to\r\n")), "{answer}");
    // Of a host with another name the first one is the server's.
    let mut configuration = Configuration::default();
    put_upstream(&mut configuration, MAIN, vec![address]);
    for (by_name, expected) in [("on", "http://a.test/to"), ("off", "http://alias.test/to")] {
        let text = format!("{rest} {by_name}; port_in_redirect off;");
        put(&mut configuration, "a.test", &text, Policy::default());
        let name = ServerName::new("a.test");
        let mut server = Server::clone(&configuration.servers[&name]);
        server.aliases = vec![model::Alias::Name(ServerName::new("alias.test"))];
        configuration.servers.insert(name, Arc::new(server));
        let native = start(&configuration).await;
        let answer = get(&native, "alias.test", "/r", "").await;
        assert!(answer.contains(&format!("\r\nLocation: {expected}\r\n")), "{by_name}: {answer}");
    }
}

#[tokio::test]
async fn requests_of_proxies_are_compressed_as_gzip_proxied_says() {
    for (words, fields, plain, signed) in [
        ("off", "", false, false),
        ("any", "Cache-Control: public\r\n", true, true),
        ("private", "", true, true),
        ("private", "Cache-Control: max-age=1, private\r\n", true, true),
        ("private auth", "Cache-Control: public\r\n", false, true),
        ("private", "Expires: 0\r\n", false, false),
        ("expired", "Expires: Mon, 02 Nov 1998 00:00:00 GMT\r\n", true, true),
        ("expired", "Expires: Mon, 02 Nov 2099 00:00:00 GMT\r\n", false, false),
        ("no_etag", "ETag: \"x\"\r\n", false, false),
        ("no_etag", "Last-Modified: Mon, 02 Nov 1998 00:00:00 GMT\r\n", true, true),
        ("no_last_modified auth", "Last-Modified: Mon, 02 Nov 1998 00:00:00 GMT\r\n", false, true),
    ] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{fields}Content-Length: 50\r\n\r\n{}",
            "a".repeat(50)
        );
        let (address, _seen) = upstream(answer.into_bytes(), bed::is_whole).await;
        let text =
            format!("gzip on; gzip_types text/plain; gzip_min_length 1; gzip_proxied {words};");
        let native = served(&text, address, Policy::default()).await;
        let gzip = "Accept-Encoding: gzip\r\n";
        for (of_request, expected) in [
            (String::new(), true),
            ("Via: 1.1 cdn\r\n".to_owned(), plain),
            ("Via: 1.1 cdn\r\nAuthorization: x\r\n".to_owned(), signed),
        ] {
            let request = format!(
                "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{gzip}{of_request}\r\n"
            );
            let mut client = connect(&native).await;
            client.write_all(request.as_bytes()).await.expect("sent");
            let head = read_until(&mut client, "\r\n\r\n").await;
            let is_gzip = head.contains("Content-Encoding: gzip");
            assert_eq!(is_gzip, expected, "{words}, {fields:?}, {of_request:?}: {head}");
        }
    }
}

/// A record of the one request.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("short").to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// The parameter `name`, where name and value are shorter than 128 bytes.
fn parameter(request: &[u8], name: &str, value: &str) -> bool {
    let lengths = [name.len() as u8, value.len() as u8];
    let written = [&lengths[..], name.as_bytes(), value.as_bytes()].concat();
    request.windows(written.len()).any(|window| window == written)
}

#[tokio::test]
async fn fastcgi_responders_are_told_what_snippets_say() {
    let stdout =
        b"Status: 200 OK\r\nX-Secret: 1\r\nX-Shown: 2\r\nX-Accel-Limit-Rate: 1\r\n\r\nbody";
    let answer = [record(6, stdout), record(6, b""), record(3, &[0; 8])].concat();
    let (address, mut seen) =
        upstream(answer, |request: &[u8]| request.ends_with(&record(5, b""))).await;
    let text = "fastcgi_param MY_SCRIPT $fastcgi_script_name; fastcgi_param MY_INFO $fastcgi_path_info;
        fastcgi_param EMPTY '' if_not_empty; fastcgi_param HTTP_X_MINE replaced; fastcgi_index start.php;
        fastcgi_split_path_info ^(.+\\.php)(/.*)$; fastcgi_hide_header X-Secret;
        fastcgi_ignore_headers X-Accel-Limit-Rate; fastcgi_pass_request_headers off;";
    let snippet = understand(Context::Location, text).expect("the test writes a snippet").scope;
    let policy =
        Policy { protocol: Protocol::Fcgi, snippet: Some(Arc::new(snippet)), ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let answer = get(&native, "a.test", "/app/", "X-Theirs: 1\r\n").await;
    assert!(answer.contains("X-Shown: 2\r\n") && !answer.contains("X-Secret"), "{answer}");
    let request = seen.recv().await.expect("the responder was asked");
    assert!(parameter(&request, "MY_SCRIPT", "/app/start.php"));
    assert!(parameter(&request, "HTTP_X_MINE", "replaced"));
    assert!(!parameter(&request, "HTTP_X_THEIRS", "1") && !parameter(&request, "EMPTY", ""));
    get(&native, "a.test", "/app/a.php/rest", "").await;
    let request = seen.recv().await.expect("the responder was asked");
    let text = String::from_utf8_lossy(&request);
    assert!(parameter(&request, "MY_SCRIPT", "/app/a.php"), "{text:?}");
    assert!(parameter(&request, "MY_INFO", "/rest"));
}
