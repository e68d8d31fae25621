//! A start that the API server keeps waiting.

use super::{BINARY, PATIENCE, Running};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::ports;

/// Answers what is asked over a connection: there is nothing in the cluster, and kinds of the Gateway API may not be
/// listed. A Pod, of which it is said here that it is asked for, is not told of.
fn answer(stream: TcpStream, pods: &Sender<()>) {
    let mut answers = stream.try_clone().expect("the same connection");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(asked) = lines.next() {
        let path = asked.split(' ').nth(1).unwrap_or_default().to_owned();
        // The end of the head; what is asked has no body.
        let _head = lines.by_ref().take_while(|line| !line.is_empty()).count();
        let (status, body) = if path.starts_with("/version") {
            let version = r#"{"major":"1","minor":"24","gitVersion":"v1.24.0","gitCommit":"","gitTreeState":"",
                "buildDate":"","goVersion":"","compiler":"","platform":""}"#;
            ("200 OK", version)
        } else if path.contains("gateway.networking.k8s.io") || path == "/apis" {
            let no = r#"{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}"#;
            ("403 Forbidden", no)
        } else if path.contains("/pods/") {
            pods.send(()).expect("somebody listens");
            continue;
        } else if path.contains("watch=true") {
            continue;
        } else {
            (
                "200 OK",
                r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#,
            )
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}"
        );
        if answers.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_start_ends_at_the_first_signal_whatever_it_waits_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let server = listener.local_addr().expect("an address");
    let (sender, pods) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || answer(stream, &sender));
        }
    });
    let folder = TempDir::new().expect("a folder");
    let port = ports::free();
    let child = Command::new(BINARY)
        .args(["run", "--http-port=0", "--https-port=0", "-v=3"])
        .arg(format!("--healthz-port={port}"))
        .arg(format!("--apiserver-host=http://{server}"))
        .env_remove("KUBECONFIG")
        .envs([("POD_NAMESPACE", "fairway"), ("POD_NAME", "one")])
        .stderr(fs::File::create(folder.path().join("log")).expect("a file"))
        .stdout(Stdio::null())
        .spawn()
        .expect("the program runs");
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut running = Running { child, admin, folder };
    let asked = pods.recv_timeout(PATIENCE);
    assert!(asked.is_ok(), "it does not ask for its Pod\n{}", running.log());
    let id = rustix::process::Pid::from_raw(running.child.id().cast_signed()).expect("a process");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is signalled");
    let began = Instant::now();
    let stat = format!("/proc/{}/stat", running.child.id());
    running.until("it has ended", || {
        fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "))
    });
    let ended = running.child.wait().expect("a state");
    assert!(ended.success(), "{ended}\n{}", running.log());
    // One question for the Pod takes 10 s, and there are six.
    assert!(began.elapsed() < Duration::from_secs(9), "{}", running.log());
}
