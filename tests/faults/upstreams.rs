//! Upstreams that break, hang, refuse or talk nonsense over HTTP/1.

use crate::faults::bed::{Fairway, OK, PATIENCE, Setup, good, request, reset, status, upstream};
use anyhow::{Context, Result, ensure};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

/// Counts requests.
type Count = Arc<AtomicUsize>;

fn count(of: &Count) -> usize {
    of.load(Ordering::Relaxed)
}

/// An upstream that says `answer` to each request and then does `after` with the connection.
async fn says(answer: impl Into<Vec<u8>>, after: fn(TcpStream)) -> Result<(SocketAddr, Count)> {
    let (answer, seen) = (Arc::new(answer.into()), Count::default());
    let counted = seen.clone();
    let serve = move |mut tcp: TcpStream, _| {
        let (answer, counted) = (answer.clone(), counted.clone());
        async move {
            while request(&mut tcp).await.is_some() {
                counted.fetch_add(1, Ordering::Relaxed);
                if tcp.write_all(&answer).await.is_err() || !answer.ends_with(b"yes") {
                    break;
                }
            }
            after(tcp);
        }
    };
    Ok((upstream(serve).await?, seen))
}

#[tokio::test]
async fn an_answer_that_is_reset_in_its_middle_is_never_taken_for_whole() -> Result<()> {
    let known = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this".to_vec();
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n".to_vec();
    for answer in [known, chunked] {
        let (address, seen) = says(answer, late_reset).await?;
        let fairway = Setup::of(address).start().await?;
        let answer = fairway.get("/").await?;
        ensure!(status(&answer) == Some(200) && answer.contains("only this"), "{answer}");
        ensure!(!answer.ends_with("0\r\n\r\n"), "the end was made up: {answer}");
        ensure!(count(&seen) == 1, "what the client has half of is not asked for again");
    }
    Ok(())
}

/// Resets once what was written has been read: a reset at once would overtake it.
fn late_reset(tcp: TcpStream) {
    tokio::spawn(async move {
        #[expect(
            clippy::disallowed_methods,
            reason = "an upstream whose reset comes late on purpose"
        )]
        tokio::time::sleep(Duration::from_millis(200)).await;
        reset(tcp);
    });
}

#[tokio::test]
async fn a_reset_before_the_answer_is_passed_over_but_nothing_is_posted_twice() -> Result<()> {
    let (broken, tried) = says("", reset).await?;
    let (whole, seen) = says(OK, drop).await?;
    let fairway = Setup { endpoints: vec![broken, whole], ..Setup::default() }.start().await?;
    for _ in 0..4 {
        fairway.expect(200).await?;
    }
    ensure!(count(&tried) >= 2, "the broken endpoint was never tried");
    let before = count(&tried) + count(&seen);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(status(&fairway.post().await?).unwrap_or_default());
    }
    statuses.sort_unstable();
    ensure!(statuses == [200, 200, 502, 502], "{statuses:?}");
    ensure!(count(&tried) + count(&seen) - before == 4, "a POST was sent twice");
    Ok(())
}

#[tokio::test]
async fn connections_that_close_just_as_a_request_is_sent_cost_nobody_anything() -> Result<()> {
    // Every connection is closed some microseconds after its answer, without a word.
    let serve = |mut tcp: TcpStream, number: usize| async move {
        if request(&mut tcp).await.is_some() && tcp.write_all(OK).await.is_ok() {
            let until = Instant::now() + Duration::from_micros(number as u64 % 40 * 25);
            while Instant::now() < until {
                tokio::task::yield_now().await;
            }
        }
    };
    let fairway = Setup::of(upstream(serve).await?).start().await?;
    let mut tcp = TcpStream::connect(fairway.http).await?;
    tcp.set_nodelay(true)?;
    let mut read = vec![0; 4096];
    for number in 0..3000 {
        tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
        let mut answer = String::new();
        while !answer.ends_with("yes") {
            let more = tcp.read(&mut read).await?;
            ensure!(more > 0, "request {number}: {answer}\n{}", fairway.said());
            answer += &String::from_utf8_lossy(&read[..more]);
        }
        ensure!(status(&answer) == Some(200), "request {number}: {answer}");
        if answer.contains("Connection: close") {
            tcp = TcpStream::connect(fairway.http).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_upstream_that_never_answers_is_504_and_let_go() -> Result<()> {
    let (tell, mut told) = tokio::sync::mpsc::channel(8);
    let serve = move |mut tcp: TcpStream, _| {
        let tell = tell.clone();
        async move {
            let _ = request(&mut tcp).await;
            let ended = matches!(tcp.read(&mut [0; 8]).await, Ok(0) | Err(_));
            let _ = tell.send(ended).await;
        }
    };
    let annotations = vec![("proxy-read-timeout", "1"), ("proxy-next-upstream-tries", "1")];
    let setup = Setup { annotations, ..Setup::of(upstream(serve).await?) };
    let fairway = setup.start().await?;
    let began = Instant::now();
    fairway.expect(504).await?;
    // Half of what it would be without the annotation.
    ensure!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    let ended = tokio::time::timeout(PATIENCE, told.recv()).await?;
    ensure!(ended == Some(true), "the connection to the upstream stays open");
    Ok(())
}

#[tokio::test]
async fn an_answer_may_drip_as_long_as_it_moves_and_is_cut_once_it_stops() -> Result<()> {
    let serve = |mut tcp: TcpStream, _| async move {
        let Some(asked) = request(&mut tcp).await else { return };
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n").await;
        let drips = if asked.starts_with("GET /stops") { 2 } else { 8 };
        for _ in 0..drips {
            #[expect(clippy::disallowed_methods, reason = "an upstream that drips on purpose")]
            tokio::time::sleep(Duration::from_millis(300)).await;
            let _ = tcp.write_all(b"x").await;
        }
        let _ = tcp.read(&mut [0; 8]).await;
    };
    let annotations = vec![("proxy-read-timeout", "1"), ("proxy-buffering", "off")];
    let fairway = Setup { annotations, ..Setup::of(upstream(serve).await?) }.start().await?;
    let drips = fairway.get("/drips").await?;
    ensure!(drips.ends_with("\r\n\r\nxxxxxxxx"), "{drips}");
    let stops = fairway.get("/stops").await?;
    ensure!(stops.ends_with("\r\n\r\nxx"), "{stops}");
    Ok(())
}

/// A port where connecting takes for ever: its queue is full, and what comes more is dropped.
async fn blackhole() -> Result<(SocketAddr, Vec<TcpStream>, TcpListener)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(1)?;
    let (address, mut held) = (listener.local_addr()?, Vec::new());
    let quick = Duration::from_millis(200);
    while let Ok(Ok(tcp)) = tokio::time::timeout(quick, TcpStream::connect(address)).await {
        held.push(tcp);
        ensure!(held.len() < 100, "the queue is never full");
    }
    Ok((address, held, listener))
}

#[tokio::test]
async fn an_endpoint_that_swallows_connections_is_passed_over_in_time() -> Result<()> {
    let (hole, _held, _listener) = blackhole().await?;
    let endpoints = vec![hole, good().await?];
    let annotations = vec![("proxy-connect-timeout", "1")];
    // What counts without the annotation is longer than anybody waits here.
    let settings = vec![("proxy-connect-timeout", "75".to_owned())];
    let fairway = Setup { endpoints, annotations, settings, ..Setup::default() }.start().await?;
    for _ in 0..4 {
        let began = Instant::now();
        fairway.expect(200).await?;
        ensure!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn endpoints_that_all_refuse_are_502_at_once_and_cost_little() -> Result<()> {
    let (held, nobody) = {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = socket.local_addr()?;
        (socket, address)
    };
    let fairway = Setup::of(nobody).start().await?;
    let before = fairway.processor_time()?;
    for _ in 0..50 {
        fairway.expect(502).await?;
    }
    let used = fairway.processor_time()? - before;
    ensure!(used < Duration::from_secs(1), "50 refusals cost {used:?} of a processor");
    drop(held);
    Ok(())
}

#[tokio::test]
async fn an_upstream_without_tls_never_gets_a_request_that_was_to_be_encrypted() -> Result<()> {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = seen.clone();
    let serve = move |mut tcp: TcpStream, _| {
        let noted = noted.clone();
        async move {
            let mut read = vec![0; 4096];
            let count = tcp.read(&mut read).await.unwrap_or(0);
            noted.lock().expect("nobody panicked").extend_from_slice(&read[..count]);
            let _ = tcp.write_all(OK).await;
        }
    };
    let annotations = vec![("backend-protocol", "HTTPS")];
    let fairway = Setup { annotations, ..Setup::of(upstream(serve).await?) }.start().await?;
    fairway.expect(502).await?;
    let seen = seen.lock().expect("nobody panicked").clone();
    ensure!(seen.first() == Some(&22), "a handshake comes first: {seen:?}");
    ensure!(!String::from_utf8_lossy(&seen).contains("HTTP/1.1"), "the request went out in clear");
    let why = || async { fairway.said().contains("connecting: ").then_some(()) };
    eventually(Duration::from_secs(10), why).await.context("the log does not say why")?;
    Ok(())
}

#[tokio::test]
async fn a_flood_of_interim_answers_and_a_head_without_end_are_502() -> Result<()> {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)
        + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let long =
        format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(300_000));
    for answer in [interim, long] {
        let (address, _) = says(answer, drop).await?;
        let fairway = Setup::of(address).start().await?;
        fairway.expect(502).await?;
    }
    Ok(())
}

#[tokio::test]
async fn who_goes_away_takes_the_upstreams_work_along() -> Result<()> {
    let (tell, mut told) = tokio::sync::mpsc::channel(8);
    let serve = move |mut tcp: TcpStream, _| {
        let tell = tell.clone();
        async move {
            let _ = request(&mut tcp).await;
            let _ = tell.send("asked").await;
            let _ = tcp.read(&mut [0; 8]).await;
            let _ = tell.send("left alone").await;
        }
    };
    let fairway = Setup::of(upstream(serve).await?).start().await?;
    let mut next = async || -> Result<&str> {
        let next = tokio::time::timeout(PATIENCE, told.recv()).await;
        next.context("the upstream waits")?.context("the upstream ended")
    };
    let mut tcp = TcpStream::connect(fairway.http).await?;
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
    ensure!(next().await? == "asked");
    drop(tcp);
    ensure!(next().await? == "left alone");
    Ok(())
}

#[tokio::test]
async fn where_all_endpoints_answer_503_nothing_is_asked_more_than_once() -> Result<()> {
    let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nyes";
    let ((one, first), (two, second)) = (says(answer, drop).await?, says(answer, drop).await?);
    let fairway = Setup { endpoints: vec![one, two], ..Setup::default() }.start().await?;
    for _ in 0..20 {
        fairway.expect(503).await?;
    }
    ensure!(count(&first) + count(&second) == 20, "{} and {}", count(&first), count(&second));
    Ok(())
}

#[tokio::test]
async fn an_upstream_that_keeps_no_connection_leaves_none_behind() -> Result<()> {
    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nyes".to_vec();
    let (address, seen) = says(answer, drop).await?;
    let fairway = Setup::of(address).start().await?;
    fairway.expect(200).await?;
    let before = fairway.descriptors()?;
    for _ in 0..200 {
        fairway.expect(200).await?;
    }
    let settled = || async { settled(&fairway, before).ok() };
    eventually(Duration::from_secs(10), settled).await.context("descriptors are left over")?;
    ensure!(count(&seen) == 201, "{}", count(&seen));
    Ok(())
}

fn settled(fairway: &Fairway, before: usize) -> Result<()> {
    let now = fairway.descriptors()?;
    ensure!(now <= before + 3, "{now} descriptors, {before} before");
    Ok(())
}
