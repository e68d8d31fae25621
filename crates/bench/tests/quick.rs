//! The bench itself, on nginx and HAProxy: every protocol once, briefly.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// One of each kind; the folder of a test is its own.
const KINDS: [&str; 9] = [
    "http1",
    "body-1m",
    "upload-16k",
    "tls-full",
    "tls-resumed",
    "http2",
    "grpc",
    "websocket",
    "idle-tls",
];

/// What HAProxy has no part in.
const SNIPPETS: [&str; 2] = ["snippet-headers", "snippet-rewrite"];

fn bench(name: &str, arguments: &[&str]) -> (Output, PathBuf) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(["--quick", "--peer", "nginx", "--peer", "haproxy"]).args(arguments);
    command.arg("--folder").arg(folder.join("bench"));
    (command.output().expect("start the bench"), folder)
}

#[test]
fn every_kind_of_traffic_passes_both_peers_without_an_error() {
    let all = KINDS.iter().chain(&SNIPPETS);
    let only: Vec<&str> = all.flat_map(|name| ["--only", name]).collect();
    let (output, folder) = bench("kinds", &only);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read(folder.join("bench.quick.json")).expect("results");
    let results: Value = serde_json::from_slice(&text).expect("results are JSON");
    for peer in ["nginx", "haproxy"] {
        for kind in KINDS.iter().filter(|kind| !kind.starts_with("idle")) {
            let figures = &results["traffic"][kind]["peers"][peer];
            assert_eq!(figures["errors"], 0, "{peer} {kind}: {figures}");
            let cpu = figures["cpu_us_per_request"]["median"].as_f64().expect("a number");
            assert!(cpu > 0.1, "{peer} {kind}: {figures}");
            let p99 = figures["p99_us"]["median"].as_f64().expect("a number");
            assert!(p99 > 1.0, "{peer} {kind}: {figures}");
        }
        let resumed = |kind: &str| results["traffic"][kind]["peers"][peer]["resumed"].as_f64();
        assert_eq!(resumed("tls-full"), Some(0.0));
        assert!(resumed("tls-resumed").expect("a share") > 0.9);
        let idle = &results["idle"]["idle-tls"];
        assert_eq!(idle["connections"], 200);
        let bytes = idle["bytes_per_connection"][peer]["median"].as_f64().expect("a number");
        assert!(bytes > 100.0, "{peer}: {idle}");
    }
    for kind in SNIPPETS {
        let peers = &results["traffic"][kind]["peers"];
        assert_eq!(peers["nginx"]["errors"], 0, "{kind}: {peers}");
        assert!(peers["haproxy"].is_null(), "{kind}: {peers}");
    }
    let document = fs::read_to_string(folder.join("bench.quick.md")).expect("a document");
    assert!(document.contains("WebSocket echo"), "{document}");
    assert!(document.contains("not measured"), "Fairway was not measured:\n{document}");
}

#[test]
fn a_wrong_name_says_which_names_there_are() {
    let (output, _) = bench("names", &["--only", "http9"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("http9") && text.contains("tls-resumed"), "{text}");
}
