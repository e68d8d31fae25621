//! A crowd that knocks at once, and one who is connected already: how many of the crowd go first. What counts is the
//! order in which the upstream hears of them, on a thread that all of them share, however busy the machine is.

use crate::process::{PATIENCE, Running};
use rustix::process::{Pid, Signal, kill_process};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How many knock at once, and how often that is tried.
const CROWD: usize = 100;
const ROUNDS: usize = 9;

/// The hosts of the requests, in the order in which they arrived.
type Heard = Arc<Mutex<Vec<String>>>;

#[test]
fn who_is_connected_waits_for_few_of_a_crowd_that_knocks_at_once() {
    let flags = ["--worker-threads=1", "--allow-target-networks=127.0.0.0/8"];
    let running = Running::start("fairway", &flags);
    let port = running.ports()[0];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut ahead = runtime.expect("a runtime").block_on(rounds(&running, port));
    ahead.sort_unstable();
    // Where all who knock are let in before anybody else is heard, nearly all of them go first.
    assert!(ahead[ROUNDS / 2] < CROWD / 3, "of {CROWD} went first: {ahead:?}");
}

async fn rounds(running: &Running, port: u16) -> Vec<usize> {
    let (heard, http) = (Heard::default(), (Ipv4Addr::LOCALHOST, port));
    let port = upstream(heard.clone()).await;
    let objects = include_str!("crowd.yaml").replace("PORT", &port.to_string());
    std::fs::write(running.folder.path().join("objects/crowd.yaml"), objects).expect("a file");
    let pid = Pid::from_raw(running.child.id().cast_signed()).expect("it runs");
    let served = eventually(PATIENCE, async || {
        let mut tcp = TcpStream::connect(http).await.ok()?;
        ask(&mut tcp, "calm.test").await.filter(|answer| answer.starts_with("HTTP/1.1 200 "))
    });
    served.await.expect("it is served");
    let mut calm = TcpStream::connect(http).await.expect("it listens");
    ask(&mut calm, "calm.test").await.expect("an answer");
    let mut ahead = Vec::new();
    for _ in 0..ROUNDS {
        heard.lock().expect("nobody panics").clear();
        kill_process(pid, Signal::STOP).expect("it may be signalled");
        let mut crowd = Vec::new();
        for _ in 0..CROWD {
            let mut tcp = TcpStream::connect(http).await.expect("the system takes it");
            tcp.write_all(request("crowd.test").as_bytes()).await.expect("it is sent");
            crowd.push(tcp);
        }
        kill_process(pid, Signal::CONT).expect("it may be signalled");
        // From now on the thread has its hands full.
        until(|| !heard.lock().expect("nobody panics").is_empty()).await;
        let before = heard.lock().expect("nobody panics").len();
        ask(&mut calm, "calm.test").await.expect("an answer");
        let order = heard.lock().expect("nobody panics").clone();
        let at = order.iter().position(|host| host == "calm.test").expect("it was heard");
        ahead.push(at - before);
        until(|| heard.lock().expect("nobody panics").len() > CROWD).await;
    }
    ahead
}

fn request(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// What is read first of the answer.
async fn ask(tcp: &mut TcpStream, host: &str) -> Option<String> {
    tcp.write_all(request(host).as_bytes()).await.ok()?;
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
