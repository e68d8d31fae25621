//! Logs in every form they come in, and mistakes in them.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The objects of docs/explain.md and docs/prove.md.
const SHOP: &str = "tests/tools/shop.yaml";
/// A format that has all that a verdict needs.
const FULL: &str =
    r#"$remote_addr $scheme $host "$request" $status [$proxy_upstream_name] $upstream_addr"#;

pub(crate) fn fairway(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may end before it has read all.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What `check` makes of a log on standard input.
fn checked(format: &str, log: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let start = ["check", SHOP, "--output", "json", "--log-format", format];
    let output = fairway(&[&start[..], more, &["--log", "-"]].concat(), log.as_bytes());
    let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), value, text(&output.stderr))
}

const ALIKE: &str = "10.1.2.3 https shop.test \"GET /api/x?token=secret HTTP/1.1\" 200 [demo-shop-80] 10.1.1.1:8080\n";
const OTHER: &str = "10.1.2.3 https shop.test \"GET /api/x?token=secret HTTP/1.1\" 200 [demo-other-80] 10.1.1.9:8080\n";
const REFUSED: &str =
    "192.0.2.9 https shop.test \"GET /api/x HTTP/1.1\" 200 [demo-shop-80] 10.1.1.1:8080\n";
const NOWHERE: &str = "192.0.2.9 http plain.test \"GET /foobar HTTP/1.1\" 404 [upstream-default-backend] 127.0.0.1:8181\n";

#[test]
fn requests_are_compared_and_counted_by_cause() {
    let log = [ALIKE, OTHER, REFUSED, REFUSED, NOWHERE].concat();
    let (code, report, said) = checked(FULL, &log, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(report["requests"], 5, "{report:#}");
    assert_eq!(report["standings"]["differs"], 3, "{report:#}");
    let kinds: Vec<&Value> = report["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .map(|group| &group["cause"]["kind"])
        .collect();
    assert!(kinds.contains(&&Value::from("objects")), "{report:#}");
    let never = report["never-asked"].as_array().expect("a list");
    assert_eq!(report["paths-asked"].as_u64().expect("a number") + never.len() as u64, 4);
    // The root that a host has because every host has one is no Ingress's, and nobody misses requests for it.
    assert!(never.iter().all(|path| path["path"] != "Prefix /"), "{report:#}");
    let (code, _, _) = checked(FULL, &log, &["--fail-on", "never"]);
    assert_eq!(code, Some(0));
    let (code, _, _) = checked(FULL, NOWHERE, &[]);
    assert_eq!(code, Some(0));
}

#[test]
fn what_differs_on_purpose_stops_a_pipeline_that_wants_it_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shop.yaml");
    let shop = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SHOP));
    // hsts is false there and true here.
    let map = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ingress-nginx-controller, namespace: ingress-nginx}\n\
        data: {hsts: ''}\n";
    std::fs::write(&path, shop.expect("a file") + map).expect("a file");
    let path = path.to_str().expect("a path");
    let code = |more: &[&str]| {
        let start = ["check", path, "--log-format", FULL, "--log", "-"];
        let output = fairway(&[&start[..], more].concat(), ALIKE.as_bytes());
        let page = text(&output.stdout);
        assert!(page.contains("on purpose not alike"), "{page}{}", text(&output.stderr));
        output.status.code()
    };
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--fail-on", "differs"]), Some(2));
}

#[test]
fn a_log_that_breaks_off_is_judged_and_never_green() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for number in 0_u32..20_000 {
        let path = format!("/foobar/{}", number.wrapping_mul(2_654_435_761));
        packed.write_all(NOWHERE.replace("/foobar", &path).as_bytes()).expect("it packs");
    }
    let whole = packed.finish().expect("it packs");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.gz");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("a file");
    let path = path.to_str().expect("a path");
    let output =
        fairway(&["check", SHOP, "--output", "json", "--log-format", FULL, "--log", path], b"");
    let (said, report) = (text(&output.stderr), serde_json::from_slice::<Value>(&output.stdout));
    let requests = report.expect("JSON")["requests"].as_u64().expect("a number");
    assert!(
        requests > 1_000 && said.contains(&format!("broken off after line {requests}: ")),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn query_strings_are_shown_only_where_that_is_asked_for() {
    let (_, report, _) = checked(FULL, OTHER, &[]);
    assert!(!report.to_string().contains("secret"), "{report:#}");
    let (_, report, _) = checked(FULL, OTHER, &["--show-queries"]);
    assert!(report.to_string().contains("secret"), "{report:#}");
}

#[test]
fn lines_that_cannot_be_read_are_named_and_many_of_them_never_green() {
    let long = "x".repeat(300_000);
    let log = format!("I1123 10:00:00.1 7 main.go:1] hello\n{NOWHERE}nonsense\n{long}\n");
    let output = fairway(&["check", SHOP, "--log-format", FULL, "--log", "-"], log.as_bytes());
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{page}");
    assert!(page.contains("standard input:3: not of the log format"), "{page}");
    assert!(page.contains("standard input:4: longer than 262144 bytes"), "{page}");
    // A stranger writes what he likes into a log: one line of his decides nothing.
    for log in [format!("{NOWHERE}nonsense\n"), format!("{}nonsense\n{long}\n", NOWHERE.repeat(30))]
    {
        let (code, report, said) = checked(FULL, &log, &[]);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            report["unread"].as_u64() > Some(0) && said.contains("could not be read"),
            "{said}"
        );
    }
    let output = fairway(&["check", SHOP, "--log", "-"], "nonsense\n".repeat(200).as_bytes());
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("--log-format"), "{said}");
}

#[test]
fn the_longest_line_that_nginx_writes_is_read_whole_and_in_parts() {
    // Nearly 8k of each, which is what nginx takes; in the log it is four times as much.
    let bytes = r"\xC3\xBC".repeat(4_000);
    let line = NOWHERE.trim_end().replace("/foobar", &format!("/foobar{bytes}"));
    let format = format!("{FULL} \"$http_referer\" \"$http_user_agent\"");
    let line = format!("{line} \"{bytes}\" \"{bytes}\"");
    let cri = |tag: &str, part: &[u8]| {
        format!("2026-01-01T00:00:00.000000000Z stdout {tag} {}\n", text(part))
    };
    let parts: Vec<&[u8]> = line.as_bytes().chunks(16 << 10).collect();
    let (last, before) = parts.split_last().expect("parts");
    let split: String = before.iter().map(|part| cri("P", part)).chain([cri("F", last)]).collect();
    for log in [format!("{line}\n"), split] {
        let (code, report, said) = checked(&format, &log, &[]);
        assert_eq!((code, report["requests"].as_u64()), (Some(0), Some(1)), "{said}");
        assert_eq!(report["unread"], 0, "{said}");
    }
}

#[test]
fn what_cannot_be_used_is_said_in_one_line_with_the_remedy() {
    for (arguments, words) in [
        (&["check", SHOP, "--log", "no-such-file"][..], "cannot read no-such-file"),
        (&["check", SHOP, "--log", "tests"], "it is a folder"),
        (&["check", SHOP, "--log-format", "$host", "--log", "-"], "has no $request"),
        (
            &["check", SHOP, "--log-format", "$request $", "--log", "-"],
            "without the name of a variable",
        ),
        (&["check", "-", "--log", "-"], "standard input is either"),
        (&["check", SHOP, "--format", "markdown", "--log", "-"], "choose table, json or lines"),
        (&["check", SHOP, "--format", "lines"], "needs --log"),
        (&["check", SHOP, "--log", "/dev/null"], "--log-format names it"),
    ] {
        let output = fairway(arguments, b"");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn the_format_of_the_config_map_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join(SHOP);
    std::fs::copy(shop, folder.path().join("shop.yaml")).expect("a copy");
    let map = r#"{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress-nginx-controller, namespace: ingress-nginx},
        data: {log-format-escape-json: "true", log-format-upstream: '{"r": "$request", "h": "$host", "s": $status, "p": "$scheme", "a": "$upstream_addr"}'}}"#;
    std::fs::write(folder.path().join("map.yaml"), map).expect("a file");
    let log = "{\"s\": 404, \"p\": \"http\", \"h\": \"plain.test\", \"r\": \"GET /foobar HTTP/1.1\", \"a\": \"\"}\n";
    let path = folder.path().to_str().expect("a path");
    let output = fairway(&["check", path, "--output", "json", "--log", "-"], log.as_bytes());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["standings"]["alike"], 1, "{report:#}");
}

/// So many lines of the default format, in a file.
fn many(count: usize, folder: &Path) -> PathBuf {
    let path = folder.join("access.log");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    for number in 0..count {
        writeln!(file, "10.1.2.3 https shop.test \"GET /api/x{number} HTTP/1.1\" 200 [demo-shop-80] 10.1.1.1:8080").expect("a line");
    }
    file.flush().expect("a file");
    path
}

#[test]
fn many_lines_are_read_in_little_memory_and_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = many(20_000, folder.path());
    let begun = Instant::now();
    let path = path.to_str().expect("a path");
    let output =
        fairway(&["check", SHOP, "--output", "json", "--log-format", FULL, "--log", path], b"");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["requests"], 20_000);
    // Without optimisation, beside other tests: the bound is generous, and would still show what is not linear.
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}
