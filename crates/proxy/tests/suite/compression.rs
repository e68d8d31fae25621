//! Compression over real sockets: who gets it, what the answer says then, and that nothing is held back.

use crate::bed;
use model::{Brotli, Compression, Global, Gzip, Unwanted};
use proxy::{Native, Pressure};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// An upstream that answers what the path says: `/<status>/<size>`, with what follows `?` as header lines, `&` between
/// them; `/200/chunked` is of unknown length, `/200/cut` breaks off.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let request = head(&mut tcp).await;
                let target = request.split(' ').nth(1).unwrap_or_default();
                let (path, lines) = target.split_once('?').unwrap_or((target, ""));
                let (status, size) = path[1..].split_once('/').unwrap_or(("200", "0"));
                let lines: String = lines
                    .split('&')
                    .filter(|line| !line.is_empty())
                    .map(|line| format!("{}\r\n", line.replace("%20", " ")))
                    .collect();
                let (length, body) = match size {
                    "chunked" => ("Transfer-Encoding: chunked".to_owned(), chunked("5")),
                    "cut" => ("Transfer-Encoding: chunked".to_owned(), chunked("1")),
                    size => {
                        (format!("Content-Length: {size}"), "x".repeat(size.parse().unwrap_or(0)))
                    }
                };
                let body = if request.starts_with("HEAD") { String::new() } else { body };
                let answer = format!(
                    "HTTP/1.1 {status} Fine\r\n{lines}{length}\r\nConnection: close\r\n\r\n{body}"
                );
                let _ = tcp.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

fn chunked(end: &str) -> String {
    let rest = if end == "1" { "" } else { "0\r\n\r\n" };
    format!("190\r\n{}\r\n{rest}", "x".repeat(400))
}

/// What comes up to an empty line.
async fn head(tcp: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        match tcp.read_u8().await {
            Ok(byte) => read.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

async fn start(endpoint: SocketAddr, compression: Compression) -> Arc<Native> {
    let global = Global { compression, access_log: false, ..Global::default() };
    bed::start(&bed::with_global(endpoint, global)).await
}

fn both() -> Compression {
    Compression { gzip: Some(Gzip::default()), brotli: Some(Brotli::default()) }
}

fn gzip() -> Compression {
    Compression { gzip: Some(Gzip::default()), brotli: None }
}

/// An answer: its head in lower case, and what came after it until the proxy closed.
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn has(&self, line: &str) -> bool {
        self.head.lines().any(|own| own == line)
    }

    fn coding(&self) -> &str {
        self.head.lines().find_map(|line| line.strip_prefix("content-encoding: ")).unwrap_or("none")
    }

    /// The body without chunks and compression.
    fn decoded(&self) -> Vec<u8> {
        let mut plain = self.body.clone();
        if self.has("transfer-encoding: chunked") {
            plain.clear();
            let mut rest = &self.body[..];
            while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
                let size = std::str::from_utf8(&rest[..at]).expect("hexadecimal digits");
                let size = usize::from_str_radix(size, 16).expect("a chunk");
                plain.extend_from_slice(&rest[at + 2..at + 2 + size]);
                rest = &rest[(at + 4 + size).min(rest.len())..];
            }
        }
        let mut out = Vec::new();
        match self.coding() {
            "gzip" => flate2::read::GzDecoder::new(&plain[..]).read_to_end(&mut out),
            "br" => brotli::Decompressor::new(&plain[..], 4096).read_to_end(&mut out),
            _ => return plain,
        }
        .expect("it is whole");
        out
    }
}

/// `line` is the request line; the connection ends after the answer.
async fn ask(native: &Native, line: &str, headers: &str) -> Answer {
    let mut tcp = connect(native).await;
    let request = format!("{line}\r\nHost: a.test\r\nConnection: close\r\n{headers}\r\n");
    tcp.write_all(request.as_bytes()).await.expect("written");
    let head = head(&mut tcp).await.to_ascii_lowercase();
    let mut body = Vec::new();
    tcp.read_to_end(&mut body).await.expect("read");
    Answer { head, body }
}

async fn connect(native: &Native) -> TcpStream {
    let port = native.listening().http_port;
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("listening")
}

const TEXT: &str = "?Content-Type:%20text/plain";

#[tokio::test]
async fn the_client_the_type_the_size_and_the_status_decide() {
    let native = start(upstream().await, both()).await;
    let table = [
        ("GET /200/1000?Content-Type:%20text/plain HTTP/1.1", "gzip", "gzip"),
        ("GET /200/1000?Content-Type:%20text/plain HTTP/1.1", "gzip, br", "br"),
        ("GET /200/1000?Content-Type:%20text/plain HTTP/1.1", "br;q=0, gzip;q=0.1", "gzip"),
        ("GET /200/1000?Content-Type:%20text/plain HTTP/1.1", "gzip;q=0", "none"),
        ("GET /200/1000?Content-Type:%20text/plain HTTP/1.1", "*", "none"),
        ("GET /200/1000?Content-Type:%20Text/HTML;charset=x HTTP/1.1", "gzip", "gzip"),
        ("GET /200/1000?Content-Type:%20text/html;level=1 HTTP/1.1", "gzip", "none"),
        ("GET /200/1000?Content-Type:%20image/png HTTP/1.1", "gzip, br", "none"),
        ("GET /200/1000 HTTP/1.1", "gzip, br", "none"),
        ("GET /200/255?Content-Type:%20text/css HTTP/1.1", "gzip", "none"),
        ("GET /200/256?Content-Type:%20text/css HTTP/1.1", "gzip", "gzip"),
        ("GET /200/19?Content-Type:%20text/css HTTP/1.1", "br", "none"),
        ("GET /200/20?Content-Type:%20text/css HTTP/1.1", "br", "br"),
        ("GET /200/chunked?Content-Type:%20text/css HTTP/1.1", "gzip", "gzip"),
        ("GET /403/1000?Content-Type:%20text/plain HTTP/1.1", "gzip", "gzip"),
        ("GET /404/1000?Content-Type:%20text/plain HTTP/1.1", "br", "br"),
        ("GET /201/1000?Content-Type:%20text/plain HTTP/1.1", "gzip, br", "none"),
        ("GET /206/1000?Content-Type:%20text/plain HTTP/1.1", "gzip, br", "none"),
        ("GET /500/1000?Content-Type:%20text/plain HTTP/1.1", "gzip, br", "none"),
        ("GET /200/1000?Content-Type:%20text/plain&Content-Encoding:%20x HTTP/1.1", "gzip", "none"),
        ("GET /200/1000?Content-Type:%20text/plain HTTP/1.0", "gzip", "none"),
        ("GET /200/1000?Content-Type:%20text/plain HTTP/1.0", "br", "br"),
        ("POST /200/1000?Content-Type:%20text/plain HTTP/1.1", "gzip", "gzip"),
    ];
    for (line, accept, coding) in table {
        let headers = format!("Accept-Encoding: {accept}\r\nContent-Length: 0\r\n");
        let answer = ask(&native, line, &headers).await;
        let got = answer.coding();
        let expected = if line.contains("Content-Encoding") { "x" } else { coding };
        assert_eq!(got, expected, "{line} with {accept}: {}", answer.head);
        if got != "x" {
            let size = line.split(['/', '?', ' ']).nth(3).and_then(|size| size.parse().ok());
            assert_eq!(answer.decoded().len(), size.unwrap_or(400), "{line} with {accept}");
        }
    }
}

#[tokio::test]
async fn a_compressed_answer_says_so_and_takes_back_what_no_longer_holds() {
    let native = start(upstream().await, gzip()).await;
    let line = |more: &str| format!("GET /200/1000{TEXT}{more} HTTP/1.1");
    let accept = "Accept-Encoding: gzip\r\n";
    let answer =
        ask(&native, &line("&ETag:%20\"a\"&Accept-Ranges:%20bytes&Vary:%20Origin"), accept).await;
    assert!(answer.has("content-encoding: gzip") && answer.has("etag: w/\"a\""), "{}", answer.head);
    // As nginx, in this order.
    assert!(answer.head.contains("vary: accept-encoding\r\nvary: origin\r\n"), "{}", answer.head);
    assert!(answer.has("transfer-encoding: chunked") && !answer.head.contains("accept-ranges"));
    assert!(!answer.head.contains("content-length"), "{}", answer.head);
    let answer = ask(&native, &line("&ETag:%20W/\"a\""), accept).await;
    assert!(answer.has("etag: w/\"a\""), "{}", answer.head);
    let answer = ask(&native, &line("&ETag:%20bare"), accept).await;
    assert!(!answer.head.contains("etag"), "{}", answer.head);
    // Who does not ask gets it as it is, and caches are told that others may get it otherwise.
    let answer = ask(&native, &line("&ETag:%20\"a\"&Accept-Ranges:%20bytes"), "").await;
    assert!(answer.has("vary: accept-encoding") && answer.has("etag: \"a\""), "{}", answer.head);
    assert!(answer.has("content-length: 1000") && answer.has("accept-ranges: bytes"));
}

#[tokio::test]
async fn head_gets_the_fields_of_get_and_no_body() {
    let native = start(upstream().await, gzip()).await;
    let line = format!("HEAD /200/1000{TEXT} HTTP/1.1");
    let answer = ask(&native, &line, "Accept-Encoding: gzip\r\n").await;
    assert!(answer.has("content-encoding: gzip") && answer.has("vary: accept-encoding"));
    assert!(!answer.head.contains("content-length") && answer.body.is_empty(), "{}", answer.head);
    let answer = ask(&native, &line, "").await;
    assert!(answer.has("content-length: 1000"), "{}", answer.head);
}

#[tokio::test]
async fn brotli_alone_says_nothing_to_caches_as_gzip_vary_comes_with_gzip() {
    let native = start(upstream().await, Compression { gzip: None, ..both() }).await;
    let line = format!("GET /200/1000{TEXT} HTTP/1.1");
    let answer = ask(&native, &line, "Accept-Encoding: gzip, br\r\n").await;
    assert!(answer.coding() == "br" && !answer.head.contains("vary"), "{}", answer.head);
}

#[tokio::test]
async fn a_user_agent_can_be_left_out_and_own_pages_are_answers_like_others() {
    let mut compression = gzip();
    if let Some(gzip) = &mut compression.gzip {
        gzip.not_for = Some(Unwanted::OldExplorer);
        gzip.eligible.min_length = 100;
    }
    let native = start(upstream().await, compression).await;
    let line = format!("GET /200/1000{TEXT} HTTP/1.1");
    let old = "Accept-Encoding: gzip\r\nUser-Agent: Mozilla/4.0 (compatible; MSIE 6.0)\r\n";
    assert_eq!(ask(&native, &line, old).await.coding(), "none");
    let mut tcp = connect(&native).await;
    let request = b"GET / HTTP/1.1\r\nHost: unknown.test\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
    tcp.write_all(request).await.expect("written");
    let head = head(&mut tcp).await;
    assert!(head.starts_with("HTTP/1.1 404") && head.contains("Content-Encoding: gzip"), "{head}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_ended_as_if_it_were_whole() {
    let native = start(upstream().await, gzip()).await;
    let line = format!("GET /200/cut{TEXT} HTTP/1.1");
    let answer = ask(&native, &line, "Accept-Encoding: gzip\r\n").await;
    assert_eq!(answer.coding(), "gzip");
    assert!(!answer.body.ends_with(b"0\r\n\r\n"), "the last chunk is there");
}

#[tokio::test]
async fn events_go_out_one_by_one() {
    for (compression, accept) in [(gzip(), "gzip"), (both(), "br")] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let endpoint = listener.local_addr().expect("bound");
        let native = start(endpoint, compression).await;
        let mut client = connect(&native).await;
        let request =
            format!("GET /events HTTP/1.1\r\nHost: a.test\r\nAccept-Encoding: {accept}\r\n\r\n");
        client.write_all(request.as_bytes()).await.expect("written");
        let (mut source, _) = listener.accept().await.expect("the proxy");
        head(&mut source).await;
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
        source.write_all(answer.as_bytes()).await.expect("written");
        let mut compressed = Vec::new();
        let head = head(&mut client).await.to_ascii_lowercase();
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let mut expected = String::new();
        for number in 0..5 {
            // The next event is sent only once the one before has arrived.
            let event = format!("data: {number}\n\n");
            expected.push_str(&event);
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            source.write_all(chunk.as_bytes()).await.expect("written");
            while decodable(accept, &compressed) != expected.as_bytes() {
                compressed.extend(next_chunk(&mut client).await);
            }
        }
    }
}

async fn next_chunk(tcp: &mut TcpStream) -> Vec<u8> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(tcp.read_u8().await.expect("a chunk"));
    }
    let size = std::str::from_utf8(&line).expect("digits").trim();
    let mut data = vec![0; usize::from_str_radix(size, 16).expect("digits") + 2];
    tcp.read_exact(&mut data).await.expect("a chunk");
    data.truncate(data.len() - 2);
    data
}

/// What can be decoded of a stream that has not ended.
fn decodable(coding: &str, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = match coding {
        "gzip" => flate2::read::GzDecoder::new(data).read_to_end(&mut out),
        _ => brotli::Decompressor::new(data, 4096).read_to_end(&mut out),
    };
    out
}

/// An upstream whose answers stop in the middle until what comes with its address is dropped.
async fn stopping() -> (SocketAddr, watch::Sender<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (stop, stopped) = watch::channel(());
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut stopped = stopped.clone();
            tokio::spawn(async move {
                head(&mut tcp).await;
                let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
                let _ = tcp.write_all((begin.to_owned() + &chunked("1")).as_bytes()).await;
                // That there is no sender any more is what is waited for.
                let _ = stopped.changed().await;
                let _ = tcp.write_all(b"0\r\n\r\n").await;
            });
        }
    });
    (address, stop)
}

#[tokio::test]
async fn answers_go_as_they_are_where_encoders_hold_as_much_memory_as_they_may() {
    let (address, stop) = stopping().await;
    let native = start(address, gzip()).await;
    // A quarter of it for encoders, half of that for a namespace: two of about 400 KiB.
    native.bound_memory(8 << 20);
    let (mut codings, mut open) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let mut tcp = connect(&native).await;
        let get =
            b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nAccept-Encoding: gzip\r\n\r\n";
        tcp.write_all(get).await.expect("written");
        let head = head(&mut tcp).await.to_ascii_lowercase();
        assert!(head.contains("vary: accept-encoding"), "{head}");
        codings.push(head.contains("content-encoding: gzip"));
        open.push(tcp);
    }
    assert_eq!(codings, [true, true, false, false]);
    drop(stop);
    for mut tcp in open {
        tcp.read_to_end(&mut Vec::new()).await.expect("read");
    }
    assert_eq!(native.under_way()[1], (0, 2 << 20, 2), "all is given back");
    let get = async || ask(&native, "GET / HTTP/1.1", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(get().await.coding(), "gzip");
    native.press(Pressure::High);
    let plain = get().await;
    assert_eq!((plain.coding(), plain.decoded().len()), ("none", 400));
    native.press(Pressure::Normal);
    assert_eq!(get().await.coding(), "gzip");
}
