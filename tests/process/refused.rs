//! Who a guard keeps out has a line in the error log, as with nginx: what bans clients reads it.

use super::{Running, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

const REFUSED: &str = include_str!("refused.yaml");

/// The status of an answer.
fn ask(port: u16, host: &str, authorization: Option<&str>) -> Option<String> {
    let field =
        authorization.map(|user| format!("Authorization: Basic {}\r\n", STANDARD.encode(user)));
    let field = field.unwrap_or_default();
    let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    let request = format!("GET /door HTTP/1.1\r\nHost: {host}\r\n{field}Connection: close\r\n\r\n");
    tcp.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).ok()?;
    text(&answer).split(' ').nth(1).map(str::to_owned)
}

#[test]
fn who_is_kept_out_by_an_address_list_or_a_password_is_told_in_the_error_log() {
    let running = Running::start("fairway", &[]);
    let [http, _] = running.ports();
    fs::write(running.folder.path().join("objects/refused.yaml"), REFUSED).expect("a file");
    running.until("the lists count", || ask(http, "far.test", None).as_deref() == Some("403"));
    running.until("passwords count", || ask(http, "door.test", None).as_deref() == Some("401"));
    assert!(!running.log().contains("host=\"door.test\""), "nobody guessed: {}", running.log());
    let guess = Some("ali\"ce\n:let-me-in");
    assert_eq!(ask(http, "door.test", guess).as_deref(), Some("401"));
    let line = |what: &str, host: &str| {
        let log = running.log();
        log.lines().any(|line| {
            let ends = format!("client=127.0.0.1 host=\"{host}\" request=/door");
            line.contains(" ERROR ") && line.contains(what) && line.ends_with(&ends)
        })
    };
    running.until("both are told", || {
        line("access forbidden by rule", "far.test")
            && line(r#"user "ali\"ce\n": password mismatch"#, "door.test")
    });
    assert!(!running.log().contains("let-me-in"), "{}", running.log());
}
