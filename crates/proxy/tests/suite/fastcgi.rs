//! FastCGI responders behind the engine, over real sockets.

use crate::bed::{MAIN, configuration, start, talk, upstream};
use model::Template;
use model::policy::{Body, Condition, FastCgi, Policy, Protocol};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A record of the one request.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("short").to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// The records of an answer, whole.
fn whole(stdout: &[u8]) -> Vec<u8> {
    [record(6, stdout), record(6, b""), record(3, &[0; 8])].concat()
}

/// Whether the empty piece of the body, which ends a request, is there.
fn ended(request: &[u8]) -> bool {
    request.ends_with(&record(5, b""))
}

fn policy() -> Policy {
    Policy { protocol: Protocol::Fcgi, ..Policy::default() }
}

async fn ask(answer: Vec<u8>, request: &str) -> (String, Vec<u8>) {
    let (address, mut seen) = upstream(answer, ended).await;
    let native = start(&configuration(&[(MAIN, vec![address])], policy())).await;
    let answer = talk(&native, request.as_bytes()).await;
    (answer, seen.try_recv().unwrap_or_default())
}

const GET: &str = "GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

/// The parameter `name`, where name and value are shorter than 128 bytes.
fn parameter(request: &[u8], name: &str, value: &str) -> bool {
    let lengths = [name.len() as u8, value.len() as u8];
    let written = [&lengths[..], name.as_bytes(), value.as_bytes()].concat();
    request.windows(written.len()).any(|window| window == written)
}

#[tokio::test]
async fn the_status_and_the_fields_of_a_script_reach_the_client() {
    let stdout = b"Status: 418 Short and stout\nX-Script: yes\n\nbody";
    let (answer, seen) = ask(whole(stdout), GET).await;
    assert!(answer.starts_with("HTTP/1.1 418 Short and stout\r\n"), "{answer}");
    assert!(answer.contains("\r\nX-Script: yes\r\n") && !answer.contains("Status:"), "{answer}");
    assert!(answer.contains("body"), "{answer}");
    assert!(parameter(&seen, "QUERY_STRING", "y=1") && parameter(&seen, "SCRIPT_NAME", "/x"));
}

#[tokio::test]
async fn fields_become_parameters_but_those_that_nobody_may_believe_do_not() {
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nProxy: http://evil\r\n\
                   ssl-client-verify: SUCCESS\r\nX-Two: a\r\nX-Two: b\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n";
    let (_, seen) = ask(whole(b"\r\n"), request).await;
    assert!(parameter(&seen, "HTTP_X_TWO", "a, b") && parameter(&seen, "HTTP_COOKIE", "a=1; b=2"));
    let text = String::from_utf8_lossy(&seen);
    assert!(!text.contains("HTTP_PROXY") && !text.contains("HTTP_SSL_CLIENT"), "{text}");
}

#[tokio::test]
async fn what_ends_with_the_connection_of_the_client_is_no_parameter() {
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nX-HTTP-Method-Override: DELETE\r\nX-Kept: 1\r\n\
                   Connection: close, X-HTTP-Method-Override\r\nTE: trailers\r\n\r\n";
    let (_, seen) = ask(whole(b"\r\n"), request).await;
    assert!(parameter(&seen, "HTTP_X_KEPT", "1") && parameter(&seen, "HTTP_HOST", "a.test"));
    let text = String::from_utf8_lossy(&seen);
    for name in ["HTTP_X_HTTP_METHOD_OVERRIDE", "HTTP_CONNECTION", "HTTP_TE"] {
        assert!(!text.contains(name), "{text}");
    }
}

#[tokio::test]
async fn no_spelling_of_a_field_passes_for_what_nobody_may_believe() {
    let (address, mut seen) = upstream(whole(b"\r\n"), ended).await;
    let mut configuration = configuration(&[(MAIN, vec![address])], policy());
    Arc::make_mut(&mut configuration.global).underscores_in_headers = true;
    let native = start(&configuration).await;
    let request =
        b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nssl_client_verify: SUCCESS\r\n\
                    Ssl-Client_Subject-Dn: CN=admin\r\nx_other: y\r\n\r\n";
    talk(&native, request).await;
    let seen = seen.recv().await.expect("one request");
    let text = String::from_utf8_lossy(&seen);
    assert!(text.contains("HTTP_X_OTHER") && !text.contains("HTTP_SSL_CLIENT"), "{text}");
}

#[tokio::test]
async fn parameters_of_the_configuration_are_filled_in() {
    let (address, mut seen) = upstream(whole(b"\r\nok"), ended).await;
    let script = Template::parse("/www$fastcgi_script_name").expect("a known variable");
    let fastcgi = FastCgi {
        index: Some("index.php".to_owned()),
        params: [("SCRIPT_FILENAME".to_owned(), script.into())].into(),
    };
    let policy = Policy { fastcgi, ..policy() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    talk(&native, b"GET /dir/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    let seen = seen.recv().await.expect("one request");
    assert!(parameter(&seen, "SCRIPT_FILENAME", "/www/dir/index.php"));
    assert!(parameter(&seen, "DOCUMENT_URI", "/dir/"));
}

#[tokio::test]
async fn a_parameter_of_a_field_that_the_ingress_says_is_said_by_nobody_else() {
    let (address, mut seen) = upstream(whole(b"\r\nok"), ended).await;
    let text = |text: &str| Template::parse(text).expect("a template").into();
    let params = [("HTTP_X_USER", "op"), ("HTTP_PROXY_USER", ""), ("HTTP_HOST", "in.test")];
    let params = params.into_iter().map(|(name, value)| (name.to_owned(), text(value))).collect();
    let policy = Policy { fastcgi: FastCgi { params, ..FastCgi::default() }, ..policy() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nx-user: evil\r\nProxy-User: evil\r\n\
                    X-Other: 1\r\nConnection: close\r\n\r\n";
    talk(&native, request).await;
    let seen = seen.recv().await.expect("one request");
    let text = String::from_utf8_lossy(&seen);
    assert!(parameter(&seen, "HTTP_X_USER", "op") && parameter(&seen, "HTTP_HOST", "in.test"));
    assert!(parameter(&seen, "HTTP_X_OTHER", "1"), "{text}");
    for gone in ["evil", "HTTP_PROXY_USER", "HTTP_HOSTa.test"] {
        assert!(!text.contains(gone), "{text}");
    }
}

#[tokio::test]
async fn values_of_all_parameters_have_a_bound_and_many_fields_are_read_once() {
    let (address, mut seen) = upstream(whole(b"\r\nok"), ended).await;
    let long = |number: usize| {
        let template = Template::parse(&"$http_x".repeat(8)).expect("a known variable");
        (format!("P{number}"), template.into())
    };
    let fastcgi = FastCgi { params: (0..20).map(long).collect(), ..FastCgi::default() };
    let policy = Policy { fastcgi, ..policy() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let fields: String = (0..900).map(|number| format!("h{number}: 1\r\n")).collect();
    let request = |length: usize| {
        let x = "x".repeat(length);
        format!("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX: {x}\r\n{fields}\r\n")
    };
    assert!(talk(&native, request(7_900).as_bytes()).await.starts_with("HTTP/1.1 500"));
    assert!(talk(&native, request(8).as_bytes()).await.starts_with("HTTP/1.1 200"));
    let seen = seen.recv().await.expect("one request");
    assert!(parameter(&seen, "P19", &"x".repeat(64)) && parameter(&seen, "HTTP_H899", "1"));
}

#[tokio::test]
async fn what_is_looked_through_for_values_has_a_bound() {
    let (address, _seen) = upstream(whole(b"\r\nok"), ended).await;
    let many: String = (0..250).map(|number| format!("$cookie_{number}")).collect();
    let many = Template::parse(&many).expect("known variables");
    let fastcgi =
        FastCgi { params: [("MANY".to_owned(), many.into())].into(), ..FastCgi::default() };
    let policy = Policy { fastcgi, ..policy() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    for (fields, status) in [(1, "200"), (3, "500")] {
        let cookies = format!("Cookie: {}\r\n", "a=b; ".repeat(400)).repeat(fields);
        let request =
            format!("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{cookies}\r\n");
        let answer = talk(&native, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{fields}: {answer}");
    }
}

#[tokio::test]
async fn a_chunked_body_arrives_with_its_length() {
    let request = "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nhello\r\n0\r\n\r\n";
    let (_, seen) = ask(whole(b"\r\n"), request).await;
    assert!(parameter(&seen, "CONTENT_LENGTH", "5"));
    assert!(seen.ends_with(&[record(5, b"hello"), record(5, b"")].concat()));
}

#[tokio::test]
async fn answers_that_are_none_are_502() {
    let heads: [Vec<u8>; 6] = [
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        whole(b"Status: none\r\n\r\n"),
        whole(b"X Y: z\r\n\r\n"),
        whole(b"X-Never: ended\r\n"),
        whole(&[b"X-Long: ".as_slice(), &[b'a'; 5000], b"\r\n\r\n"].concat()),
        Vec::new(),
    ];
    for head in heads {
        let (answer, _) = ask(head.clone(), GET).await;
        let status = "HTTP/1.1 502 Bad Gateway\r\n";
        assert!(answer.starts_with(status), "{:?}: {answer}", String::from_utf8_lossy(&head));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_ended_as_if_it_were_whole() {
    let (answer, _) = ask(record(6, b"\r\nhalf"), GET).await;
    assert!(answer.contains("half") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    let (answer, _) = ask(whole(b"Content-Length: 9\r\n\r\nhalf"), GET).await;
    assert!(answer.contains("Content-Length: 9\r\n") && answer.ends_with("half"), "{answer}");
}

#[tokio::test]
async fn a_body_ends_where_its_length_says() {
    let answers = [whole(b"Content-Length: 4\r\n\r\nbodymore"), {
        // The connection ends before the record that would end the answer.
        record(6, b"Content-Length: 4\r\n\r\nbody")
    }];
    for records in answers {
        let (answer, _) = ask(records, GET).await;
        assert!(answer.ends_with("\r\n\r\nbody"), "{answer}");
    }
}

#[tokio::test]
async fn what_a_script_complains_about_is_no_part_of_its_answer() {
    let answer =
        [record(7, b"careful"), record(6, b"\r\nok"), record(7, b"!"), whole(b"")].concat();
    let (answer, _) = ask(answer, GET).await;
    assert!(answer.contains("ok") && !answer.contains("careful"), "{answer}");
}

/// A responder that begins its answer with `first`, and then writes to its standard error without end.
async fn complainer(first: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let endless = [record(7, b""), record(7, b"careful")].concat().repeat(4096);
        // Whoever takes too long is asked again.
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut seen = Vec::new();
            while !ended(&seen) {
                assert!(tcp.read_buf(&mut seen).await.expect("a request") > 0);
            }
            let mut written = tcp.write_all(&first).await;
            while written.is_ok() {
                written = tcp.write_all(&endless).await;
            }
        }
    });
    address
}

#[tokio::test]
async fn what_a_script_complains_about_is_no_progress_of_its_answer() {
    let mut policy = policy();
    policy.timeouts.read = Duration::from_millis(100);
    for (first, ends) in [(Vec::new(), "504 Gateway"), (record(6, b"\r\nhalf"), "half")] {
        let address = complainer(first).await;
        let native = start(&configuration(&[(MAIN, vec![address])], policy.clone())).await;
        let answer = talk(&native, GET.as_bytes()).await;
        assert!(answer.contains(ends) && !answer.ends_with("0\r\n\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn another_responder_is_asked_where_one_gives_no_valid_answer() {
    let (bad, _bad) = upstream(whole(b"Status: none\r\n\r\n"), ended).await;
    let (good, _good) = upstream(whole(b"\r\ngood"), ended).await;
    let mut policy = policy();
    policy.retries.conditions.insert(Condition::InvalidHeader);
    let native = start(&configuration(&[(MAIN, vec![bad, good])], policy)).await;
    for _ in 0..4 {
        let answer = talk(&native, GET.as_bytes()).await;
        assert!(answer.contains("good"), "{answer}");
    }
}

#[tokio::test]
async fn each_try_has_all_parameters_however_long_those_of_the_one_before_were() {
    let (bad, _bad) = upstream(whole(b"Status: none\r\n\r\n"), ended).await;
    let (good, mut seen) = upstream(whole(b"\r\ngood"), ended).await;
    let long = |number: usize| {
        let template = Template::parse(&"$http_x".repeat(8)).expect("a known variable");
        (format!("P{number}"), template.into())
    };
    let mut policy = Policy {
        fastcgi: FastCgi { params: (0..5).map(long).collect(), ..FastCgi::default() },
        ..policy()
    };
    policy.retries.conditions.insert(Condition::InvalidHeader);
    let native = start(&configuration(&[(MAIN, vec![bad, good])], policy)).await;
    let x = "x".repeat(7_500);
    let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX: {x}\r\n\r\n");
    for _ in 0..2 {
        let answer = talk(&native, request.as_bytes()).await;
        assert!(answer.contains("good"), "{answer}");
        let seen = seen.recv().await.expect("it was asked");
        assert!(seen.len() > 5 * 8 * x.len(), "{} bytes", seen.len());
    }
}

#[tokio::test]
async fn nobody_who_listens_is_502() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let native = start(&configuration(&[(MAIN, vec![nobody])], policy())).await;
    let answer = talk(&native, GET.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn a_responder_that_answers_early_still_gets_the_whole_body() {
    const SIZE: usize = 16 << 20;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (count, counted) = oneshot::channel();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        let mut seen = vec![0; 1 << 16];
        let mut read = tcp.read(&mut seen).await.expect("a request");
        tcp.write_all(&record(6, b"\r\nbegin ")).await.expect("written");
        let end = record(5, b"");
        let mut tail = Vec::new();
        while !tail.ends_with(&end) {
            let more = tcp.read(&mut seen).await.expect("the rest");
            assert!(more > 0, "{read}");
            read += more;
            tail.extend_from_slice(&seen[..more]);
            tail.drain(..tail.len().saturating_sub(end.len()));
        }
        count.send(read).expect("somebody waits");
        tcp.write_all(&whole(b"end")).await.expect("written");
    });
    let body = Body { max_size: None, request_buffer: Some(SIZE), ..Body::default() };
    let policy = Policy { body, ..policy() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: {SIZE}\r\n\r\n"
    );
    let answer = talk(&native, &[head.as_bytes(), &vec![b'x'; SIZE]].concat()).await;
    assert!(counted.await.expect("all of it") > SIZE);
    assert!(answer.contains("begin ") && answer.contains("end"), "{answer}");
}

#[tokio::test]
async fn records_that_came_together_are_one_piece_whatever_stands_between_them() {
    let begin = record(6, b"\r\n");
    let small: Vec<u8> =
        (0..1000).flat_map(|_| [record(6, b"x"), record(7, b"!")].concat()).collect();
    let large = record(6, &[b'y'; 5000]);
    let (answer, _) = ask([begin, small, large, whole(b"z")].concat(), GET).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    // A few where the system divides them.
    let pieces = body.lines().count() / 2;
    assert!(pieces <= 10, "{pieces}");
    let count = |byte| body.bytes().filter(|other| *other == byte).count();
    assert_eq!([b'x', b'y', b'z'].map(count), [1000, 5000, 1], "{body}");
}

#[tokio::test]
async fn what_came_before_a_record_that_is_none_is_still_to_be_had() {
    let bad = [record(6, b"\r\na"), record(6, b"b"), record(6, b"c"), record(9, b"?")].concat();
    let (answer, _) = ask(bad, GET).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let data: String = body.lines().skip(1).step_by(2).collect();
    assert_eq!((data.as_str(), body.ends_with("\r\n0\r\n\r\n")), ("abc", false), "{answer}");
}
