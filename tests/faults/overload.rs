//! Too few file descriptors, too little memory: load is shed, the admin server answers, and it is over afterwards.

use crate::faults::bed::{Fairway, OK, PATIENCE, Setup, good, request, status, upstream};
use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use h2::client::SendRequest;
use std::time::Duration;
use testkit::{cluster, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

/// Waits until requests are answered again.
async fn recovers(fairway: &Fairway) -> Result<()> {
    let works = || async { fairway.expect(200).await.ok() };
    let works = eventually(Duration::from_secs(20), works).await;
    works.map(drop).with_context(|| format!("it does not recover:\n{}", fairway.said()))
}

#[tokio::test]
async fn without_descriptors_it_waits_quietly_and_its_probes_go_on() -> Result<()> {
    let through = vec!["prlimit".to_owned(), "--nofile=120:120".to_owned()];
    let fairway = Setup { through, ..Setup::of(good().await?) }.start().await?;
    let mut held = Vec::new();
    // Clients that begin a request and leave it there are not idle.
    while held.len() < 200 {
        let mut tcp = TcpStream::connect(fairway.http).await?;
        let _ = tcp.write_all(b"GET / HTTP/1.1\r\nHost: a").await;
        held.push(tcp);
    }
    let (began, before) = (Instant::now(), fairway.processor_time()?);
    while began.elapsed() < Duration::from_secs(2) {
        ensure!(fairway.health().await? == 200, "the probe fails at the limit");
        #[expect(clippy::disallowed_methods, reason = "looks while processor time is measured")]
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let used = (fairway.processor_time()? - before).as_secs_f64() / began.elapsed().as_secs_f64();
    ensure!(used < 0.05, "{:.0} % of a processor at the limit", used * 100.0);
    ensure!(fairway.descriptors()? < 120, "nothing is left in reserve");
    drop(held);
    recovers(&fairway).await
}

/// An upstream that answers after two seconds.
async fn slow() -> Result<std::net::SocketAddr> {
    upstream(|mut tcp, _| async move {
        while request(&mut tcp).await.is_some() {
            #[expect(clippy::disallowed_methods, reason = "an upstream that is slow on purpose")]
            tokio::time::sleep(Duration::from_secs(2)).await;
            let _ = tcp.write_all(OK).await;
        }
    })
    .await
}

#[tokio::test]
async fn without_descriptors_for_upstreams_requests_are_503_and_nothing_breaks() -> Result<()> {
    // So many that all clients find room, and not all of their upstream connections.
    let through = vec!["prlimit".to_owned(), "--nofile=160:160".to_owned()];
    let flags = vec!["--worker-threads=1".to_owned()];
    let fairway = Setup { through, flags, ..Setup::of(slow().await?) }.start().await?;
    // All of them are connected before the first one asks for an upstream.
    let mut clients = Vec::new();
    for _ in 0..72 {
        clients.push(connected(fairway.http).await?);
    }
    let asking: Vec<_> = clients.into_iter().map(|client| tokio::spawn(asked(client))).collect();
    let mut statuses = Vec::new();
    for answer in asking {
        statuses.push(status(&answer.await??));
    }
    let count = |wanted| statuses.iter().filter(|status| **status == Some(wanted)).count();
    ensure!(count(200) + count(503) == 72, "{statuses:?}\n{}", fairway.said());
    ensure!(count(200) >= 40 && count(503) >= 1, "{statuses:?}");
    recovers(&fairway).await
}

#[tokio::test]
async fn requests_of_http2_that_wait_leave_files_to_newcomers() -> Result<()> {
    let hangs = upstream(|mut tcp, _| async move { while request(&mut tcp).await.is_some() {} });
    let through = vec!["prlimit".to_owned(), "--nofile=256:256".to_owned()];
    let fairway = Setup { through, ..Setup::of(hangs.await?) }.start().await?;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let tcp = TcpStream::connect(fairway.http).await?;
        let (mut sender, connection): (SendRequest<bytes::Bytes>, _) =
            h2::client::handshake(tcp).await?;
        let driven = tokio::spawn(connection);
        let waiting = futures_util::stream::FuturesUnordered::new();
        for _ in 0..100 {
            let get = http::Request::get("http://a.test/").body(())?;
            sender = sender.ready().await?;
            waiting.push(sender.send_request(get, true)?.0);
        }
        sessions.push((sender, driven, waiting));
    }
    // The first that finds no place says that they are all taken.
    for (.., waiting) in &mut sessions {
        let answer =
            tokio::time::timeout(PATIENCE, waiting.next()).await?.context("an answer")??;
        ensure!(answer.status() == 503, "{}\n{}", answer.status(), fairway.said());
    }
    let mut newcomers = Vec::new();
    for _ in 0..40 {
        newcomers.push(connected(fairway.http).await.with_context(|| fairway.said())?);
    }
    // Hundreds were refused.
    ensure!(
        fairway.said().matches("no more connections to upstreams").count() == 1,
        "{}",
        fairway.said()
    );
    drop(sessions);
    Ok(())
}

/// A client that has had an answer that needs no upstream.
async fn connected(http: std::net::SocketAddr) -> Result<TcpStream> {
    let mut tcp = TcpStream::connect(http).await?;
    tcp.write_all(b"HEAD / HTTP/1.1\r\nHost: nobody.test\r\n\r\n").await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        ensure!(tcp.read_buf(&mut answer).await? > 0, "it ends after {answer:?}");
    }
    Ok(tcp)
}

/// What a client gets of the upstream.
async fn asked(mut tcp: TcpStream) -> Result<String> {
    let get = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    tcp.write_all(get).await?;
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[test]
fn without_ports_towards_an_upstream_requests_are_503_and_it_recovers() {
    // In a network of its own, whose range of ports is twenty.
    cluster::private_network(async || {
        let fairway = Setup::of(slow().await?).start().await?;
        std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "50000 50019")?;
        let http = fairway.http;
        let clients: Vec<_> =
            (0..40).map(|number| tokio::spawn(ask_from(number + 2, http))).collect();
        let mut statuses = Vec::new();
        for client in clients {
            statuses.push(status(&client.await??));
        }
        let count = |wanted| statuses.iter().filter(|status| **status == Some(wanted)).count();
        ensure!(count(200) + count(503) == 40, "{statuses:?}\n{}", fairway.said());
        ensure!(count(200) >= 10 && count(503) >= 1, "{statuses:?}");
        recovers(&fairway).await
    });
}

/// A GET from another address of this machine.
async fn ask_from(number: u8, http: std::net::SocketAddr) -> Result<String> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, number], 0).into())?;
    let mut tcp = socket.connect(http).await?;
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Bytes of memory that Fairway uses with nothing to do.
async fn resting() -> Result<u64> {
    let fairway = Setup::of(good().await?).start().await?;
    fairway.expect(200).await?;
    let id = fairway.process.id().context("it has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("RssAnon")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}

/// Whether some of many newcomers are turned away. That may last for a moment only, and a few are let in all the same,
/// as many besides as were ended.
async fn some_are_refused(fairway: &Fairway) -> Result<bool> {
    let newcomers: Vec<_> = (0..600).map(|_| TcpStream::connect(fairway.http)).collect();
    let read = |newcomer: std::io::Result<TcpStream>| async {
        let mut newcomer = match newcomer {
            Ok(newcomer) => newcomer,
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionRefused,
        };
        let mut answer = [0; 8];
        let read = tokio::time::timeout(Duration::from_secs(2), newcomer.read(&mut answer)).await;
        matches!(read, Ok(Ok(0) | Err(_)))
    };
    let newcomers = futures_util::future::join_all(newcomers).await;
    let refused = futures_util::future::join_all(newcomers.into_iter().map(read)).await;
    Ok(refused.contains(&true))
}

#[tokio::test]
async fn short_of_memory_it_turns_clients_away_answers_probes_and_recovers() -> Result<()> {
    let limit = resting().await? + (16 << 20);
    let flags = vec![format!("--memory-limit={limit}")];
    let settings = vec![("large-client-header-buffers", "4 64k".to_owned())];
    let fairway = Setup { flags, settings, ..Setup::of(good().await?) }.start().await?;
    let mut kept = TcpStream::connect(fairway.http).await?;
    // Heads that do not end are held in memory.
    let part = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {}", "x".repeat(60_000));
    let (mut held, mut told) = (Vec::new(), 0);
    let refused = loop {
        let mut tcp = TcpStream::connect(fairway.http).await?;
        if tcp.write_all(part.as_bytes()).await.is_err() || held.len() > 2000 {
            break held.len() <= 2000;
        }
        held.push(tcp);
        let last = held.last_mut().context("one was pushed")?;
        let mut answer = [0; 8];
        let read = tokio::time::timeout(Duration::from_millis(1), last.read(&mut answer)).await;
        if matches!(read, Ok(Ok(0) | Err(_))) {
            break true;
        }
        let tells = fairway.said().matches("turned away").count();
        if tells > std::mem::replace(&mut told, tells) && some_are_refused(&fairway).await? {
            break true;
        }
    };
    ensure!(refused, "nobody was turned away:\n{}", fairway.said());
    ensure!(fairway.health().await? == 200, "the probe fails under pressure");
    // Who is there already is told.
    kept.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
    let mut answer = String::new();
    let _ = kept.read_to_string(&mut answer).await;
    ensure!(answer.is_empty() || status(&answer) == Some(503), "{answer}");
    drop(held);
    recovers(&fairway).await?;
    let calm = || async {
        fairway.expect(200).await.ok()?;
        fairway.said().contains("enough again").then_some(())
    };
    let calm = eventually(Duration::from_secs(20), calm).await;
    calm.map(drop).with_context(|| format!("it stays pressed:\n{}", fairway.said()))
}

/// A memory control group with a bound, if this machine lets us make one.
struct Group(std::path::PathBuf);

impl Group {
    fn make(bytes: u64) -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let path =
            own.lines().find_map(|line| line.split_once(":memory:")).map(|(_, path)| path)?;
        let around =
            std::path::Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/'));
        let folder = around.join(format!("fairway-faults-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        std::fs::write(group.0.join("memory.limit_in_bytes"), bytes.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It goes once nobody is in it; what is left over is empty.
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test]
async fn a_control_group_with_little_memory_is_respected_without_a_kill() -> Result<()> {
    let limit = resting().await? + (48 << 20);
    let Some(group) = Group::make(limit) else {
        eprintln!(
            "left out: no memory control group of version 1 can be made here; --memory-limit is tested instead"
        );
        return Ok(());
    };
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.0.display());
    let through = ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec();
    let settings = vec![("large-client-header-buffers", "4 64k".to_owned())];
    let mut fairway = Setup { through, settings, ..Setup::of(good().await?) }.start().await?;
    let part = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {}", "x".repeat(60_000));
    let mut held = Vec::new();
    while held.len() < 3000 && !fairway.said().contains("turned away") {
        let mut tcp = TcpStream::connect(fairway.http).await?;
        let _ = tcp.write_all(part.as_bytes()).await;
        // The bound is small: more at once would pass it between two looks at memory. Before that it goes fast, since a
        // head that has been on its way for three seconds ends under pressure.
        let is_near = fairway.said().contains("idle connections end");
        let pause = Duration::from_millis(if is_near { 3 } else { 1 });
        let _ = tokio::time::timeout(pause, tcp.read(&mut [0; 8])).await;
        held.push(tcp);
    }
    ensure!(fairway.said().contains("turned away"), "{} clients\n{}", held.len(), fairway.said());
    ensure!(fairway.health().await? == 200, "the probe fails under pressure");
    ensure!(fairway.process.try_wait()?.is_none(), "it was killed");
    drop(held);
    recovers(&fairway).await?;
    fairway.process.kill().await?;
    Ok(())
}
