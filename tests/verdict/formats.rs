//! Every form of a log that ingress-nginx can write, of the same requests: the same verdict.

use crate::verdict::logs::fairway;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// The objects of docs/explain.md and docs/prove.md.
const SHOP: &str = "tests/tools/shop.yaml";

/// A request as it was answered: path and query, status, the upstream and its address.
type Logged = (&'static str, u16, &'static str, &'static str);

/// What was asked of plain.test over HTTP: a Prefix, an Exact, and nothing.
const REQUESTS: [Logged; 3] = [
    ("/foo/a?token=1", 200, "demo-shop-80", "10.1.1.1:8080"),
    ("/Bar", 200, "demo-shop-80", "10.1.1.2:8080"),
    ("/foobar", 404, "upstream-default-backend", "127.0.0.1:8181"),
];

/// The default of ingress-nginx, as its documentation shows it.
fn by_default() -> String {
    let mut log = String::new();
    for (path, status, upstream, address) in REQUESTS {
        let _ = writeln!(
            log,
            "192.0.2.7 - - [01/Feb/2026:12:00:00 +0000] \"GET {path} HTTP/1.1\" {status} 12 \"-\" \"curl/8.5.0\" 78 0.003 \
             [{upstream}] [] {address} 12 0.002 {status} 0123456789abcdef0123456789abcdef"
        );
    }
    log
}

/// An object of JSON for each, with the keys that many clusters use.
const JSON: &str = r#"{"time": "$time_iso8601", "remote_addr": "$remote_addr", "vhost": "$host", "method": "$request_method", "path": "$uri", "args": "$args", "scheme": "$scheme", "status": $status, "upstream": "$proxy_upstream_name", "upstream_addr": "$upstream_addr", "agent": "$http_user_agent", "duration": $request_time}"#;

fn in_json() -> String {
    let mut log = String::new();
    for (path, status, upstream, address) in REQUESTS {
        let (uri, args) = path.split_once('?').unwrap_or((path, ""));
        let line = json!({
            "agent": "a \"quoted\" \\ one", "duration": 0.003, "vhost": "plain.test", "method": "GET", "path": uri,
            "args": args, "scheme": "http", "status": status, "upstream": upstream, "upstream_addr": address,
            "remote_addr": "192.0.2.7", "time": "2026-02-01T12:00:00+00:00",
        });
        let _ = writeln!(log, "{line}");
    }
    log
}

const SHORT: &str = r#"$host $scheme "$request" $status $proxy_upstream_name $upstream_addr"#;

fn short() -> String {
    let mut log = String::new();
    for (path, status, upstream, address) in REQUESTS {
        let _ =
            writeln!(log, "plain.test http \"GET {path} HTTP/1.1\" {status} {upstream} {address}");
    }
    log
}

fn verdict(flags: &[&str], input: &[u8]) -> (Option<i32>, Value, String) {
    let output = fairway(&[&["check", SHOP, "--output", "json"], flags].concat(), input);
    let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), value, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn alike(report: &Value) -> u64 {
    let standings = &report["standings"];
    ["alike", "alike-if", "alike-but"].iter().filter_map(|name| standings[name].as_u64()).sum()
}

#[test]
fn the_same_requests_are_decided_alike_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(short().as_bytes()).expect("memory");
    std::fs::write(path("access.log.gz"), gzip.finish().expect("memory")).expect("a file");
    std::fs::write(path("access.log"), short()).expect("a file");
    let cri: String = short()
        .lines()
        .map(|line| format!("2026-02-01T12:00:00.000000000Z stdout F {line}\n"))
        .collect();
    let (plain, packed) = (path("access.log"), path("access.log.gz"));
    for (what, flags, input) in [
        ("a file", vec!["--log-format", SHORT, "--log", &plain], String::new()),
        ("gzip", vec!["--log-format", SHORT, "--log", &packed], String::new()),
        ("standard input", vec!["--log-format", SHORT, "--log", "-"], short()),
        ("a container's", vec!["--log-format", SHORT, "--log", "-"], cri),
        ("JSON", vec!["--log-format", JSON, "--log", "-"], in_json()),
    ] {
        let (code, report, said) = verdict(&flags, input.as_bytes());
        assert_eq!(
            (code, alike(&report), report["unread"].as_u64()),
            (Some(0), 3, Some(0)),
            "{what}: {said} {report:#}"
        );
    }
}

#[test]
fn the_default_format_tells_by_the_upstream_and_never_guesses_a_host() {
    let (code, report, said) = verdict(&["--log", "-"], by_default().as_bytes());
    assert_eq!(
        (report["requests"].as_u64(), report["unread"].as_u64()),
        (Some(3), Some(0)),
        "{said}"
    );
    assert_eq!(report["standings"]["differs"], Value::Null, "{report:#}");
    // Both hosts have the upstream of the first two, and nobody that of the last: nothing can be told.
    assert_eq!((code, alike(&report)), (Some(1), 0), "{said} {report:#}");
    assert!(said.contains("nothing is proven"), "{said}");
    // Where one host has it, that is the one.
    let only = std::fs::read_to_string(SHOP).expect("objects");
    let only =
        only.split("---\n").filter(|object| !object.contains("shop.test")).collect::<Vec<_>>();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plain.yaml"), only.join("---\n")).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let output =
        fairway(&["check", path, "--output", "json", "--log", "-"], by_default().as_bytes());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), alike(&report)), (Some(0), 2), "{report:#}");
}

#[test]
fn bytes_that_are_no_text_never_make_a_difference() {
    let line = |path: &[u8]| {
        let before = b"{\"h\": \"plain.test\", \"s\": \"http\", \"m\": \"GET\", \"u\": \"";
        let after = b"\", \"c\": 200, \"p\": \"demo-shop-80\", \"a\": \"10.1.1.1:8080\"}\n";
        [&before[..], path, after].concat()
    };
    let format = r#"{"h": "$host", "s": "$scheme", "m": "$request_method", "u": "$request_uri", "c": $status, "p": "$proxy_upstream_name", "a": "$upstream_addr"}"#;
    let flags = ["--log-format", format, "--log", "-"];
    // As they came: %FC means the same.
    let log = [line(b"/foo/\xfc"), line(b"/foo/\xc3\xbc"), line(b"/foo/\xf0\x9f")].concat();
    let (code, report, said) = verdict(&flags, &log);
    assert_eq!((code, alike(&report)), (Some(0), 3), "{said} {report:#}");
    // Replaced by whoever kept the log, in the very segment that decides: what was asked for is not known any more.
    let log = [line("/\u{fffd}".as_bytes()), line(b"/foo")].concat();
    let (code, report, said) = verdict(&flags, &log);
    assert_eq!((code, &report["standings"]["unknown"]), (Some(0), &json!(1)), "{said} {report:#}");
    assert_eq!(report["standings"]["differs"], Value::Null, "{report:#}");
}
