//! What the engine counts of connections, of requests and of kept connections to upstreams.

use crate::bed::{
    MAIN, PATIENCE, answer, answering, apply, configuration, connect, is_whole, options,
    read_until, start, talk, upstream,
};
use model::policy::Policy;
use model::{Configuration, Server, ServerName};
use proxy::{Native, Options};
use request_metrics::{Connections, Measure, Reading, Settings};
use snippet::{Context, understand};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn settings() -> Settings {
    Settings {
        per_host: true,
        undefined_hosts: false,
        status_classes: false,
        times: vec![1000.0],
        lengths: vec![10.0],
        sizes: vec![10.0],
        excluded: BTreeSet::new(),
        most: 10,
    }
}

/// An engine that counts, in front of an upstream that says hello once for each connection.
async fn counting() -> (Arc<Native>, Configuration) {
    let (address, mut seen) =
        upstream(answer("200 OK", "Connection: close\r\n", "hello"), is_whole).await;
    tokio::spawn(async move { while seen.recv().await.is_some() {} });
    let configuration = configuration(&[(MAIN, vec![address])], Policy::default());
    let options = options(vec![Ipv4Addr::LOCALHOST.into()]);
    let options = Options { metrics: Some(settings()), ..options };
    let native = Arc::new(Native::start(options).expect("ports chosen by the system"));
    apply(&native, &Configuration::default(), &configuration).await;
    (native, configuration)
}

/// Waits until what the threads say, which they do once a second, is so.
async fn until(native: &Native, what: impl Fn(&Connections) -> bool) {
    let metrics = native.metrics().expect("it counts");
    let look = || std::future::ready(what(&metrics.connections()).then_some(()));
    let waited = eventually(PATIENCE, look).await;
    assert!(waited.is_some(), "{:?}", metrics.connections());
}

#[tokio::test]
async fn connections_are_told_by_what_they_are_at() {
    let (native, _) = counting().await;
    let connect = async || {
        let port = native.listening().http_port;
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("listening")
    };
    let _silent = connect().await;
    let mut kept = connect().await;
    kept.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
    let mut head = [0; 12];
    kept.read_exact(&mut head).await.expect("an answer");
    until(&native, |now| (now.active, now.reading, now.writing, now.waiting) == (2, 1, 0, 1)).await;
    let mut busy = connect().await;
    // The rest of its body never comes.
    busy.write_all(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nx")
        .await
        .expect("written");
    until(&native, |now| (now.active, now.writing) == (3, 1)).await;
    drop((kept, busy));
    until(&native, |now| (now.active, now.reading, now.writing, now.waiting) == (1, 1, 0, 0)).await;
    let now = native.metrics().expect("it counts").connections();
    assert_eq!((now.accepted, now.refused, now.requests), (3, 0, 2));
}

#[tokio::test]
async fn requests_are_counted_once_with_their_bytes_and_times() {
    let (native, _) = counting().await;
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answer = talk(&native, request).await;
    assert!(answer.ends_with("hello"), "{answer}");
    until(&native, |now| now.active == 0).await;
    let metrics = native.metrics().expect("it counts");
    let [series] = metrics.series().try_into().expect("one combination of labels");
    let labels: Vec<_> = series.labels.pairs().filter(|(_, value)| !value.is_empty()).collect();
    assert_eq!(labels, [("host", "a.test"), ("method", "GET"), ("path", "/"), ("status", "200")]);
    for part in metrics.parts() {
        match (part.measure, series.read(part)) {
            (Measure::Requests, reading) => assert_eq!(reading, Reading::Count(1)),
            (measure, Reading::Histogram { up_to, sum }) => {
                assert_eq!(up_to.last(), Some(&1), "{measure:?}");
                match measure {
                    Measure::RequestSize => assert_eq!(sum, request.len() as f64),
                    Measure::ResponseSize | Measure::BytesSent => {
                        assert_eq!(sum, answer.len() as f64);
                    }
                    // A connection that stands at once takes no time: the clock is read once for each wake-up.
                    Measure::ConnectDuration => assert!((0.0..60.0).contains(&sum), "{sum}"),
                    _ => assert!(sum > 0.0 && sum < 60.0 && up_to[0] == 1, "{measure:?}: {sum}"),
                }
            }
            (measure, reading) => panic!("{measure:?} is {reading:?}"),
        }
    }
    let reuse: Vec<_> =
        native.current().reuse().map(|(id, reuse)| (id.to_owned(), reuse.opened)).collect();
    assert_eq!(reuse, [(MAIN.to_owned(), 1)]);
}

#[tokio::test]
async fn series_go_with_their_host() {
    let (native, configuration) = counting().await;
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    talk(&native, request).await;
    until(&native, |now| now.requests == 1 && now.active == 0).await;
    let metrics = native.metrics().expect("it counts");
    assert_eq!(metrics.series().len(), 1);
    let mut without = configuration.clone();
    without.servers.clear();
    apply(&native, &configuration, &without).await;
    // Threads let go of the last generation with the next look that they take.
    until(&native, |_| metrics.series().is_empty()).await;
    apply(&native, &without, &configuration).await;
    talk(&native, request).await;
    until(&native, |now| now.requests == 2 && now.active == 0).await;
    let [again] = metrics.series().try_into().expect("one combination of labels");
    let requests = metrics.parts().iter().find(|part| part.measure == Measure::Requests);
    assert_eq!(again.read(requests.expect("it is measured")), Reading::Count(1), "it began anew");
}

#[tokio::test]
async fn numbers_of_connections_are_counted_as_soon_as_a_snippet_asks() {
    const ASKED: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    const ASK: &str = "location = /status { stub_status; }
        location = /active { add_header X-Active $connections_active; return 204; }";
    let endpoint = answering(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await.0;
    let plain = configuration(&[(MAIN, vec![endpoint])], Policy::default());
    let native = start(&plain).await;
    talk(&native, ASKED).await;
    let mut asking = plain.clone();
    let scope = understand(Context::Server, ASK).expect("it is right").scope;
    let server =
        Server { snippet: Some(Arc::new(scope)), ..Server::new(ServerName::new("c.test")) };
    asking.servers.insert(server.name.clone(), Arc::new(server));
    apply(&native, &plain, &asking).await;
    talk(&native, ASKED).await;
    let mut kept = connect(&native).await;
    kept.write_all(b"GET /status HTTP/1.1\r\nHost: c.test\r\n\r\n").await.expect("written");
    let status = read_until(&mut kept, "Waiting: 0 \n").await;
    assert!(status.contains("\n 2 2 2 \n"), "what was before is not counted: {status}");
    // What connections are at is told once a second.
    let active = b"GET /active HTTP/1.1\r\nHost: c.test\r\nConnection: close\r\n\r\n";
    let look = || async {
        let answer = talk(&native, active).await;
        (answer.contains("X-Active: ") && !answer.contains("X-Active: 0")).then_some(())
    };
    eventually(PATIENCE, look).await.expect("the connection that is open is counted");
}
