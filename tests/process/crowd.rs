//! A crowd that comes at once, and one who is connected already: how many of the crowd go first. What counts is the
//! order in which the upstream hears of them, on a thread that all of them share, however busy the machine is.

use crate::process::{PATIENCE, Running};
use rustix::process::{Pid, Signal, kill_process};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How many come at once, and how often that is tried.
const CROWD: usize = 100;
const ROUNDS: usize = 9;

/// The hosts of the requests, in the order in which they arrived.
type Heard = Arc<Mutex<Vec<String>>>;

#[test]
fn who_is_connected_waits_for_few_of_a_crowd_that_knocks_at_once() {
    // Where all who knock are let in before anybody else is heard, nearly all of them go first.
    check("calm.test", async |bed| bed.beside_a_crowd_that_knocks().await);
}

#[test]
fn a_host_waits_for_few_of_very_many_requests_that_came_for_another_one() {
    // Where requests go in the order in which they came, all of them go first.
    check("calm.test", async |bed| bed.beside_a_crowd_that_asks().await);
}

#[test]
fn a_host_of_a_gateway_waits_for_few_of_very_many_requests_for_another_one() {
    check("calm.of-gateway.test", async |bed| bed.beside_a_crowd_that_asks().await);
}

/// Half of the rounds have few of the crowd go first.
fn check(calm: &'static str, rounds: impl AsyncFnOnce(&mut Bed) -> Vec<usize>) {
    let flags = ["--worker-threads=1", "--allow-target-networks=127.0.0.0/8"];
    let running = Running::start("fairway", &flags);
    let http = (Ipv4Addr::LOCALHOST, running.ports()[0]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut ahead = runtime.expect("a runtime").block_on(async {
        let mut bed = Bed::open(&running, http, calm).await;
        rounds(&mut bed).await
    });
    ahead.sort_unstable();
    assert!(ahead[ROUNDS / 2] < CROWD / 3, "of {CROWD} went first: {ahead:?}");
}

/// A process, its upstream, and who is connected already.
struct Bed {
    heard: Heard,
    http: (Ipv4Addr, u16),
    pid: Pid,
    calm: TcpStream,
    host: &'static str,
}

impl Bed {
    async fn open(running: &Running, http: (Ipv4Addr, u16), host: &'static str) -> Self {
        let heard = Heard::default();
        let port = upstream(heard.clone()).await;
        let objects = include_str!("crowd.yaml").replace("PORT", &port.to_string());
        std::fs::write(running.folder.path().join("objects/crowd.yaml"), objects).expect("a file");
        let pid = Pid::from_raw(running.child.id().cast_signed()).expect("it runs");
        let served = eventually(PATIENCE, async || {
            let mut tcp = TcpStream::connect(http).await.ok()?;
            ask(&mut tcp, host).await.filter(|answer| answer.starts_with("HTTP/1.1 200 "))
        });
        served.await.expect("it is served");
        let mut calm = TcpStream::connect(http).await.expect("it listens");
        ask(&mut calm, host).await.expect("an answer");
        Self { heard, http, pid, calm, host }
    }

    async fn beside_a_crowd_that_knocks(&mut self) -> Vec<usize> {
        let mut ahead = Vec::new();
        for _ in 0..ROUNDS {
            self.stop();
            let mut crowd = Vec::new();
            for _ in 0..CROWD {
                let tcp = TcpStream::connect(self.http).await.expect("the system takes it");
                crowd.push(tcp);
                let crowded = self.host.replace("calm", "crowd");
                send(crowd.last_mut().expect("it was pushed"), &crowded).await;
            }
            self.go_on();
            // From now on the thread has its hands full.
            until(|| self.count() > 0).await;
            let before = self.count();
            ask(&mut self.calm, self.host).await.expect("an answer");
            ahead.push(self.place_of_calm() - before);
            until(|| self.count() > CROWD).await;
        }
        ahead
    }

    async fn beside_a_crowd_that_asks(&mut self) -> Vec<usize> {
        let mut crowd = Vec::new();
        for _ in 0..CROWD {
            crowd.push(TcpStream::connect(self.http).await.expect("it listens"));
        }
        let mut ahead = Vec::new();
        // All connections to the upstream are there after the first round, which does not count.
        for _ in 0..=ROUNDS {
            self.stop();
            for tcp in &mut crowd {
                send(tcp, &self.host.replace("calm", "crowd")).await;
            }
            send(&mut self.calm, self.host).await;
            self.go_on();
            for tcp in crowd.iter_mut().chain([&mut self.calm]) {
                hear(tcp).await.expect("an answer");
            }
            ahead.push(self.place_of_calm());
        }
        ahead.split_off(1)
    }

    /// Nothing goes on until it may, and nothing was heard yet.
    fn stop(&self) {
        self.heard.lock().expect("nobody panics").clear();
        kill_process(self.pid, Signal::STOP).expect("it may be signalled");
    }

    fn go_on(&self) {
        kill_process(self.pid, Signal::CONT).expect("it may be signalled");
    }

    fn count(&self) -> usize {
        self.heard.lock().expect("nobody panics").len()
    }

    fn place_of_calm(&self) -> usize {
        let order = self.heard.lock().expect("nobody panics");
        order.iter().position(|host| host == self.host).expect("it was heard")
    }
}

async fn ask(tcp: &mut TcpStream, host: &str) -> Option<String> {
    send(tcp, host).await;
    hear(tcp).await
}

async fn send(tcp: &mut TcpStream, host: &str) {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    tcp.write_all(request.as_bytes()).await.expect("the system takes it");
}

/// What is read first of the answer.
async fn hear(tcp: &mut TcpStream) -> Option<String> {
    let mut answer = [0; 4096];
    let read = tokio::time::timeout(PATIENCE, tcp.read(&mut answer)).await.ok()?.ok()?;
    Some(String::from_utf8_lossy(&answer[..read]).into_owned())
}

/// Waits until something is so, and hears what comes meanwhile.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it comes to that");
}

/// An upstream that notes who asks; its port.
async fn upstream(heard: Heard) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(answer(tcp, heard.clone()));
        }
    });
    port
}

async fn answer(mut tcp: TcpStream, heard: Heard) -> Option<()> {
    let mut read = Vec::new();
    loop {
        while !read.ends_with(b"\r\n\r\n") {
            tcp.read_buf(&mut read).await.ok().filter(|count| *count > 0)?;
        }
        let head = String::from_utf8_lossy(&read).into_owned();
        let host = head.lines().find_map(|line| line.strip_prefix("Host: "))?.to_owned();
        heard.lock().expect("nobody panics").push(host);
        read.clear();
        tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.ok()?;
    }
}
