//! `fairway top`, as a person runs it on the machine itself; `tests/cluster` runs it through an API server.

use crate::console::bed::{BINARY, CLASS, Fairway, ask, ingress, services};
use serde_json::json;
use std::process::Command;

fn top(arguments: &[&str]) -> (bool, String, String) {
    let output =
        Command::new(BINARY).arg("top").args(arguments).output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn where_there_is_no_terminal_it_prints_once_and_begins_with_the_most() {
    let hosts = ["a.test".to_owned(), "b.test".to_owned()];
    let front = ingress("shop", "front", &json!({}), &hosts);
    // Nothing is behind it: 503.
    let services = services(&["shop"])
        .replace("[10.0.0.1], conditions: {ready: true}", "[10.0.0.1], conditions: {ready: false}");
    let fairway = Fairway::start(&format!("{CLASS}{services}{front}"), &[]);
    let port = fairway.admin.port().to_string();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let load = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(ask(fairway.http, "/", "Host: b.test\r\n").expect("an answer").0, 503);
            }
        });
        let seen = top(&["--healthz-port", &port, "--by", "errors", "--lines", "2"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        asking.join().expect("it asked");
        seen
    });
    let (works, page, errors) = load;
    assert!(works, "{errors}");
    assert!(!page.contains('\u{1b}'), "{page}");
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines.len(), 6, "{page}");
    assert!(lines[4].contains("  b.test/  shop/front  shop-web-http"), "{page}");
    let errors: f64 =
        lines[4].split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a rate");
    assert!(errors > 0.0, "{page}");
}

#[test]
fn what_cannot_be_asked_is_one_line_with_the_remedy() {
    let uncounted = Fairway::start(CLASS, &["--enable-metrics=false"]);
    let port = uncounted.admin.port().to_string();
    for (arguments, says) in [
        (vec!["--healthz-port", &port], "--enable-metrics=true"),
        (vec!["--healthz-port", "1"], "--healthz-port"),
        (vec!["--pod", "fairway-0"], "expected namespace/name"),
        (vec!["--pod", "fairway/../secrets/a"], "expected namespace/name"),
        (vec!["--pod", "fairway/fairway-0"], "--token-file"),
        (vec!["--token-file", "x"], "--pod namespace/name"),
        (vec!["--pod", "a/b", "--token-file", "/nonexistent"], "cannot read /nonexistent"),
        (vec!["--by", "size"], "rate, errors, latency"),
        (vec!["--lines", "0"], "1..=500"),
    ] {
        let (works, page, errors) = top(&arguments);
        assert!(!works && page.is_empty(), "{arguments:?}: {page}");
        assert!(errors.lines().count() == 1 && errors.contains(says), "{arguments:?}: {errors}");
    }
}
