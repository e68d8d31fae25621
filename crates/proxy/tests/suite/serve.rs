//! The native engine over real sockets, with a Configuration made by hand.

use crate::bed;
use crate::bed::{
    MAIN, answering, apply, connect, read_exactly, read_to_end, read_until, start, talk,
};
use engine::Engine;
use model::Configuration;
use model::policy::{Body, HeaderEdits, HttpVersion, Policy, RouteFilters};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

fn configuration(endpoints: Vec<SocketAddr>, policy: Policy) -> Configuration {
    bed::configuration(&[(MAIN, endpoints)], policy)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Up: yes\r\n\r\nok";

#[tokio::test]
async fn a_request_reaches_the_upstream_and_its_answer_the_client() {
    let (address, mut seen) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let answer = talk(
        &native,
        b"GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX-A: b\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.ends_with("X-Up: yes\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
        "{answer}"
    );
    let seen = seen.recv().await.expect("one request");
    assert!(seen.starts_with("GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nX-Request-ID: "), "{seen}");
    assert!(seen.contains("\r\nX-Real-IP: 127.0.0.1\r\nX-Forwarded-For: 127.0.0.1\r\n"), "{seen}");
    assert!(seen.ends_with("X-A: b\r\n\r\n"), "{seen}");
}

#[tokio::test]
async fn several_requests_share_a_connection() {
    let (address, _seen) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let one = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let answer = talk(&native, &[one.repeat(4).as_bytes(), GET].concat()).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 5, "{answer}");
}

#[tokio::test]
async fn a_chunked_body_is_measured_before_it_is_sent() {
    let (address, mut seen) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
    let answer = talk(&native, request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let seen = seen.recv().await.expect("one request");
    assert!(
        seen.contains("\r\nContent-Length: 6\r\n") && seen.ends_with("\r\n\r\nhello!"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_streamed_body_goes_out_in_whole_chunks_and_small_ones_are_joined() {
    let (address, mut seen) = answering(OK).await;
    let body = Body { request_buffering: false, ..Body::default() };
    let policy = Policy { body, ..Policy::default() };
    let native = start(&configuration(vec![address], policy)).await;
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let answer = talk(&native, request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let seen = seen.recv().await.expect("one request");
    assert!(seen.ends_with("\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"), "{seen}");
}

/// An upstream that answers one request: with `first` at once, with `rest` once it is told to.
pub(crate) async fn in_two_steps(
    first: &'static [u8],
    rest: &'static [u8],
) -> (SocketAddr, oneshot::Sender<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (go, going) = oneshot::channel();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        tcp.read_buf(&mut Vec::new()).await.expect("a request");
        tcp.write_all(first).await.expect("written");
        going.await.expect("somebody says go");
        tcp.write_all(rest).await.expect("written");
    });
    (address, go)
}

pub(crate) const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
    HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Hop: 1\r\nConnection: x-hop\r\n\r\n";
pub(crate) const NOTHING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn interim_answers_are_passed_on_before_the_answer_is_there() {
    let (address, go) = in_two_steps(INTERIM, NOTHING).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let mut client = connect(&native).await;
    client.write_all(GET).await.expect("written");
    let interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    // The upstream waits until they are here.
    assert_eq!(read_exactly(&mut client, interim.len()).await, interim);
    go.send(()).expect("the upstream waits");
    let answer = read_to_end(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn hints_are_links_and_nothing_that_an_answer_would_not_say() {
    let hints = b"HTTP/1.1 102 Processing\r\nX-Pod: a\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Pod: 10.1.2.3\r\n\
        Set-Cookie: a=b; Domain=internal\r\nLink: </a>\r\n\r\n";
    let edits = HeaderEdits { remove: vec!["Link".to_owned()], ..HeaderEdits::default() };
    let filters = RouteFilters { response: edits, ..RouteFilters::default() };
    let removed = Policy { route: Some(filters.into()), ..Policy::default() };
    for (policy, link) in [(Policy::default(), "Link: </a>\r\n"), (removed, "")] {
        let (address, go) = in_two_steps(hints, NOTHING).await;
        go.send(()).expect("the upstream waits");
        let native = start(&configuration(vec![address], policy)).await;
        let answer = talk(&native, GET).await;
        let wanted = format!(
            "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n{link}\r\nHTTP/1.1 200 OK\r\n"
        );
        assert!(answer.starts_with(&wanted), "{answer}");
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_interim_answers() {
    let (address, go) = in_two_steps(INTERIM, NOTHING).await;
    go.send(()).expect("the upstream waits");
    let native = start(&configuration(vec![address], Policy::default())).await;
    let answer = talk(&native, b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn an_endpoint_that_refuses_is_passed_over() {
    let (gone, _kept) = bed::nobody();
    let (address, _seen) = answering(OK).await;
    let native = start(&configuration(vec![gone, address], Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let native = start(&configuration(vec![gone], Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway"), "{answer}");
}

#[tokio::test]
async fn whoever_ends_in_the_midst_of_a_head_is_passed_over_as_who_gives_none() {
    let (cut, _) = bed::upstream(b"HTTP/1.1 200 OK\r\nX-A: b".to_vec(), bed::is_whole).await;
    let (whole, _seen) = answering(OK).await;
    let native = start(&configuration(vec![cut, whole], Policy::default())).await;
    for _ in 0..4 {
        let answer = talk(&native, GET).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}

/// As RFC 9112 section 2.2 lets a recipient read them, and nginx does; what goes on is written as it should be.
#[tokio::test]
async fn an_answer_is_read_whose_lines_end_with_lf_alone_or_that_says_its_status_twice() {
    for said in [
        "HTTP/1.1 200 OK\nX-Up: yes\nContent-Length: 2\n\nok",
        "HTTP/1.1 200 OK\r\nX-Up: yes\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 103 Early Hints\nX: y\n\nHTTP/1.1 200 OK\nX-Up: yes\nContent-Length: 2\n\r\nok",
        "HTTP/1.1 200 OK\nX-Up: yes\nTransfer-Encoding: chunked\n\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nHTTP/1.1 500 No\r\nX-Up: yes\r\nContent-Length: 2\r\n\r\nok",
    ] {
        let (address, _seen) = answering(said.as_bytes()).await;
        let native = start(&configuration(vec![address], Policy::default())).await;
        let answer = talk(&native, GET).await;
        assert!(answer.contains("HTTP/1.1 200 OK\r\n"), "{said:?}: {answer}");
        assert!(answer.contains("\r\nX-Up: yes\r\n"), "{said:?}: {answer}");
        let body = answer.rsplit_once("Connection: close\r\n\r\n").map(|(_, body)| body);
        assert!(matches!(body, Some("ok" | "2\r\nok\r\n0\r\n\r\n")), "{said:?}: {answer}");
    }
}

#[tokio::test]
async fn what_looks_like_the_end_of_a_head_in_the_body_behind_it_is_none() {
    for body in [format!("{}\r\n\r\nend", "b".repeat(8000)), " folded: no\r\n\r\nend".to_owned()] {
        let said = format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{body}", body.len());
        for said in [said.replacen('\n', "\r\n", 1), said] {
            let (address, _seen) = answering(said.clone().leak().as_bytes()).await;
            let native = start(&configuration(vec![address], Policy::default())).await;
            let answer = talk(&native, GET).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{said:?}: {answer}");
            assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{said:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn no_endpoints_are_503_and_unknown_hosts_404() {
    let native = start(&configuration(Vec::new(), Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 503 Service Temporarily Unavailable"), "{answer}");
    let answer =
        talk(&native, b"GET / HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 Not Found"), "{answer}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_completed() {
    let (address, _seen) =
        answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nX\r\n").await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.contains("2\r\nok\r\n") && !answer.contains("0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_change_of_endpoints_takes_effect_and_draining_ends_the_threads() {
    let (first, _seen) = answering(OK).await;
    let before = configuration(vec![first], Policy::default());
    let native = start(&before).await;
    let (second, _seen) = answering(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await;
    let after = configuration(vec![second], Policy::default());
    apply(&native, &before, &after).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    native.drain(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_connection_that_waits_for_an_endpoint_that_is_gone_ends() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let first = listener.local_addr().expect("bound");
    let upstream = tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        read_until(&mut tcp, "\r\n\r\n").await;
        tcp.write_all(OK).await.expect("it is read");
        read_to_end(&mut tcp).await
    });
    let before = configuration(vec![first], Policy::default());
    let native = start(&before).await;
    assert!(talk(&native, GET).await.starts_with("HTTP/1.1 200"));
    let (second, _seen) = answering(OK).await;
    apply(&native, &before, &configuration(vec![second], Policy::default())).await;
    let ended = tokio::time::timeout(Duration::from_secs(20), upstream).await;
    let more = ended.expect("it ends long before its idle time of a minute").expect("no panic");
    assert_eq!(more, "");
}

/// A policy under which bodies go on as they come.
fn streaming() -> Policy {
    let body = Body { request_buffering: false, max_size: None, ..Body::default() };
    Policy { body, ..Policy::default() }
}

/// An upstream that begins its answer when it has the head of the request, and answers with what the body looks like on
/// the wire: the chunks of a body are chunks of its answer. The number of its connections is counted.
async fn echo(head: &'static [u8]) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let count = Arc::new(AtomicUsize::new(0));
    let connections = count.clone();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                let mut at = None;
                while at.is_none() && matches!(tcp.read_buf(&mut seen).await, Ok(1..)) {
                    at = seen.windows(4).position(|end| end == b"\r\n\r\n");
                }
                let Some(at) = at else { return };
                let _ = tcp.write_all(head).await;
                let _ = tcp.write_all(&seen[at + 4..]).await;
                let (mut from, mut to) = tcp.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    (address, count)
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_streamed_body_goes_on_while_its_answer_flows() {
    let (address, connections) = echo(CHUNKED).await;
    let native = start(&configuration(vec![address], streaming())).await;
    let mut client = connect(&native).await;
    let head = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head).await.expect("written");
    let answer = read_until(&mut client, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for number in 0..5 {
        let chunk = format!("5\r\nstep{number}\r\n");
        client.write_all(chunk.as_bytes()).await.expect("written");
        assert_eq!(read_exactly(&mut client, chunk.len()).await, chunk);
    }
    client.write_all(b"0\r\n\r\n").await.expect("written");
    assert_eq!(read_exactly(&mut client, 5).await, "0\r\n\r\n");
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn five_megabytes_go_both_ways_at_once() {
    const SIZE: usize = 5_000_000;
    let (address, _) = echo(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n").await;
    let native = start(&configuration(vec![address], streaming())).await;
    let (mut from, mut to) = connect(&native).await.into_split();
    let body = bed::bytes(SIZE);
    let sent = body.clone();
    let sending = tokio::spawn(async move {
        let head = format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {SIZE}\r\n\r\n");
        to.write_all(head.as_bytes()).await.expect("written");
        to.write_all(&sent).await.expect("written");
        to
    });
    let mut answer = Vec::new();
    let reading = async {
        while !answer.ends_with(&body[SIZE - 1000..]) || answer.len() < SIZE {
            assert!(matches!(from.read_buf(&mut answer).await, Ok(1..)), "{}", answer.len());
        }
    };
    tokio::time::timeout(bed::PATIENCE, reading).await.expect("all of it");
    assert!(answer.ends_with(&body));
    sending.await.expect("sent");
}

#[tokio::test]
async fn a_connection_that_echoed_a_whole_body_is_used_again_and_no_other_one() {
    let (whole, connections) = echo(CHUNKED).await;
    let native = start(&configuration(vec![whole], streaming())).await;
    let mut client = connect(&native).await;
    let head = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head).await.expect("written");
    read_until(&mut client, "\r\n\r\n").await;
    client.write_all(b"2\r\nok\r\n0\r\n\r\n").await.expect("written");
    read_until(&mut client, "0\r\n\r\n").await;
    // The next request is echoed by the connection that the first one went over.
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.ends_with("</html>\r\n"), "{answer}");
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_upstream_that_answers_without_the_whole_body_gets_no_other_request() {
    let answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
    let (address, connections) = echo(answer).await;
    let native = start(&configuration(vec![address], streaming())).await;
    for number in 1..=2 {
        let mut client = connect(&native).await;
        let head = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 90000000\r\n\r\nbegin";
        client.write_all(head).await.expect("written");
        let answer = read_to_end(&mut client).await;
        assert!(answer.contains("\r\nConnection: close\r\n\r\nno"), "{answer}");
        assert_eq!(connections.load(Ordering::Relaxed), number);
    }
}

#[tokio::test]
async fn a_streamed_body_that_breaks_off_breaks_its_answer_off() {
    let (address, _) = echo(CHUNKED).await;
    let native = start(&configuration(vec![address], streaming())).await;
    let request =
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n";
    let mut client = connect(&native).await;
    client.write_all(request).await.expect("written");
    read_until(&mut client, "2\r\nok\r\n").await;
    client.write_all(b"Z\r\n").await.expect("written");
    let rest = read_to_end(&mut client).await;
    assert_eq!(rest, "");
}

#[tokio::test]
async fn an_early_answer_keeps_what_it_promises_about_the_connection() {
    let native = start(&configuration(Vec::new(), streaming())).await;
    for (size, stays) in [(70_000, true), (900_000, true), (1 << 20, true), (2_000_000, false)] {
        let mut client = connect(&native).await;
        let head = format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n");
        client.write_all(head.as_bytes()).await.expect("written");
        let answer = read_until(&mut client, "\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert_eq!(answer.contains("\r\nConnection: keep-alive\r\n"), stays, "{size}: {answer}");
        // Who still sends is not cut off.
        client.write_all(&vec![b'x'; size]).await.expect("written");
        if stays {
            client.write_all(GET).await.expect("written");
        }
        let rest = read_to_end(&mut client).await;
        assert_eq!(rest.contains("HTTP/1.1 503 "), stays, "{size}: {rest}");
    }
}

#[tokio::test]
async fn a_kept_connection_is_served_by_what_is_in_force_when_its_request_comes() {
    const KEPT: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let (address, _seen) = answering(OK).await;
    let with = |prefix: &str| {
        let redirect = model::policy::Redirect {
            target: model::Template::parse(prefix).expect("no variable").into(),
            status: 307,
        };
        configuration(vec![address], Policy { redirect: Some(redirect), ..Policy::default() })
    };
    let (first, second) = (with("http://first.test/"), with("http://second.test/"));
    let native = start(&first).await;
    let mut client = connect(&native).await;
    let mut ask = async |expected: &str| {
        client.write_all(KEPT).await.expect("written");
        let answer = read_until(&mut client, "</html>\r\n").await;
        assert!(answer.contains(expected), "{answer}");
    };
    ask("http://first.test/").await;
    apply(&native, &first, &second).await;
    ask("http://second.test/").await;
    apply(&native, &second, &first).await;
    ask("http://first.test/").await;
}

#[tokio::test]
async fn an_early_answer_to_chunks_stays_if_they_are_all_there() {
    let native = start(&configuration(Vec::new(), Policy::default())).await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (chunks, expected) in [("2\r\nok\r\n0\r\n\r\n", "keep-alive"), ("2\r\nok\r\n", "close")] {
        let mut client = connect(&native).await;
        client.write_all(format!("{head}{chunks}").as_bytes()).await.expect("written");
        let answer = read_until(&mut client, "\r\n\r\n").await;
        assert!(answer.contains(&format!("\r\nConnection: {expected}\r\n")), "{answer}");
    }
}

#[tokio::test]
async fn http_1_0_upstreams_get_no_chunks() {
    let (address, mut seen) = answering(OK).await;
    let policy = Policy { http_version: HttpVersion::Http10, ..streaming() };
    let native = start(&configuration(vec![address], policy)).await;
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    talk(&native, request).await;
    let seen = seen.recv().await.expect("one request");
    assert!(
        seen.starts_with("POST / HTTP/1.0\r\n") && !seen.contains("Transfer-Encoding"),
        "{seen}"
    );
    assert!(
        seen.contains("\r\nContent-Length: 5\r\n") && seen.ends_with("\r\n\r\nabcde"),
        "{seen}"
    );
}

#[tokio::test]
async fn trailers_of_a_request_end_here() {
    let (address, mut seen) = answering(OK).await;
    let native = start(&configuration(vec![address], streaming())).await;
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Real-IP: 1.2.3.4\r\nX-Other: 1\r\n\r\n";
    talk(&native, request).await;
    let seen = seen.recv().await.expect("one request");
    assert!(seen.ends_with("\r\n\r\n2\r\nab\r\n0\r\n\r\n"), "{seen}");
}

#[tokio::test]
async fn a_body_in_single_bytes_arrives_whole() {
    let (address, mut seen) = bed::upstream(OK.to_vec(), bed::is_whole).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let body: Vec<u8> = (0..100_000).map(|at| b'a' + (at % 23) as u8).collect();
    let mut request =
        b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for byte in &body {
        request.extend_from_slice(&[b'1', b'\r', b'\n', *byte, b'\r', b'\n']);
    }
    request.extend_from_slice(b"0\r\n\r\n");
    let answer = talk(&native, &request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let seen = seen.recv().await.expect("one request");
    assert!(seen.ends_with(&[b"\r\n\r\n", &body[..]].concat()));
}

#[tokio::test]
async fn what_no_two_readers_agree_about_is_refused_and_the_rest_goes_on() {
    let (address, mut seen) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    for (head, status) in [
        ("GET / HTTP/1.1\r\nX: a\0b", "400"),
        ("GET / HTTP/1.1\r\nX: a\rb", "400"),
        ("OPTIONS * HTTP/1.1", "400"),
        ("GET / HTTP/1.1\r\nX: a\u{1}b\u{7f}c", "200"),
        ("get / HTTP/1.1", "200"),
    ] {
        let request = format!("{head}\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let answer = talk(&native, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?}: {answer}");
    }
    let seen = [seen.recv().await, seen.recv().await].map(Option::unwrap_or_default);
    assert!(
        seen[0].contains("\r\nX: a\u{1}b\u{7f}c\r\n") && seen[1].starts_with("get / "),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_request_has_four_empty_lines_before_it_at_most_however_they_come() {
    let (address, _) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    for (lines, status) in [(4, "200"), (9, "400")] {
        let mut tcp = connect(&native).await;
        tcp.set_nodelay(true).expect("it is connected");
        for _ in 0..lines {
            // Whatever was refused meanwhile is read below.
            let _ = tcp.write_all(b"\r\n").await;
            tokio::task::yield_now().await;
        }
        let _ = tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
        let answer = read_until(&mut tcp, "\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{lines}: {answer}");
    }
}

#[tokio::test]
async fn a_body_that_comes_over_http_2_goes_on_while_its_answer_flows() {
    let (address, _) = echo(CHUNKED).await;
    let native = start(&configuration(vec![address], streaming())).await;
    let (mut sender, connection) =
        h2::client::handshake(connect(&native).await).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = http::Request::post("http://a.test/").body(()).expect("a request");
    let (answer, mut body) = sender.send_request(request, false).expect("sent");
    let talking = async {
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let mut answer = answer.into_body();
        for step in ["one", "two", "three"] {
            body.send_data(step.into(), false).expect("sent");
            assert_eq!(answer.data().await.expect("more").expect("whole"), step);
        }
        body.send_data(bytes::Bytes::new(), true).expect("sent");
        assert!(answer.data().await.is_none_or(|end| end.expect("whole").is_empty()));
    };
    tokio::time::timeout(bed::PATIENCE, talking).await.expect("in time");
}
