//! Pushes by hand: what is taken, what is refused, what stays.

use crate::lua::bed::{Nginx, ask};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

const BACKENDS: &str = "/configuration/backends";
const ROUTES: &str = "/configuration/routes";
const SERVERS: &str = "/configuration/servers";
const GENERAL: &str = "/configuration/general";

fn upstream(host: u8) -> String {
    format!(
        r#"[{{"name":"demo-cart-80","endpoints":[{{"address":"127.0.0.{host}","port":"PORT"}}]}}]"#
    )
}

#[tokio::test]
async fn a_push_is_in_force_in_every_worker_when_it_is_answered() {
    let nginx = Nginx::start().await;
    assert_eq!(nginx.control("GET", "/is-dynamic-lb-initialized", "").status, 500);
    assert_eq!(nginx.get("/", "").status, 503, "nobody is known yet");
    let mut streams: Vec<TcpStream> = (0..30)
        .map(|_| TcpStream::connect(("127.0.0.1", nginx.http)).expect("nginx listens"))
        .collect();
    let mut workers = std::collections::BTreeSet::new();
    for host in 2..22 {
        nginx.push(&upstream(host));
        for stream in &mut streams {
            assert_eq!(ask(stream, "GET", "/", "", "").body, format!("127.0.0.{host}"));
        }
    }
    for stream in &mut streams {
        workers.insert(ask(stream, "GET", "/worker", "", "").body);
    }
    assert!(workers.len() > 1, "one worker alone shows nothing");
    assert_eq!(nginx.control("GET", "/is-dynamic-lb-initialized", "").status, 200);
}

#[tokio::test]
async fn nobody_without_the_secret_is_heard_on_the_control_socket() {
    let nginx = Nginx::start().await;
    nginx.push(&upstream(2));
    let taken = upstream(3).replace("PORT", &nginx.backend.to_string());
    for fields in ["", "X-Fairway-Secret:\r\n", "X-Fairway-Secret: a\r\n"] {
        for (method, path) in [("PATCH", BACKENDS), ("POST", BACKENDS), ("GET", SERVERS)] {
            let mut stream = UnixStream::connect(nginx.socket()).expect("nginx listens");
            let answer = ask(&mut stream, method, path, fields, &taken);
            assert_eq!(answer.status, 403, "{method} {path} {fields}");
        }
    }
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
}

#[tokio::test]
async fn what_was_pushed_outlives_a_reload() {
    let nginx = Nginx::start().await;
    let generation = nginx.push(&upstream(2));
    nginx.reload().await;
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
    assert_eq!(nginx.control("GET", BACKENDS, "").generation(), generation);
}

/// Pushes that are no good, and what is said of them.
const BAD: &[(&str, &str, &str, &str)] = &[
    ("POST", BACKENDS, "", "there is no body"),
    ("POST", BACKENDS, "{", "the body is no JSON"),
    ("POST", BACKENDS, "7", "a list or an object is wanted"),
    ("POST", BACKENDS, r#"{"name":"x"}"#, "a list of upstreams is wanted"),
    ("PATCH", BACKENDS, r#"[{"endpoints":[]}]"#, "an upstream has no name"),
    (
        "PATCH",
        BACKENDS,
        r#"[{"name":"x","endpoints":7}]"#,
        "upstream x, endpoints: a list is wanted",
    ),
    (
        "PATCH",
        BACKENDS,
        r#"[{"name":"x","endpoints":[{"address":"example.com","port":"80"}]}]"#,
        "each needs an address",
    ),
    (
        "PATCH",
        BACKENDS,
        r#"[{"name":"x","endpoints":[{"address":"10.0.0.1","port":"0"}]}]"#,
        "10.0.0.1 has no port",
    ),
    (
        "PATCH",
        BACKENDS,
        r#"[{"name":"x","draining":[{"address":"10.0.0.1"}]}]"#,
        "10.0.0.1 has no port",
    ),
    ("POST", ROUTES, r#"{"general":"{}"}"#, "general is no text of a part, a route or a name"),
    ("POST", ROUTES, r#"{"part r":7}"#, "part r is no text"),
    ("POST", ROUTES, r#"{"part r":"{"}"#, "part r: it is no JSON"),
    (
        "POST",
        ROUTES,
        r#"{"part r":"{\"load-balance\":\"best\"}"}"#,
        "part r: load-balance is unknown",
    ),
    (
        "POST",
        ROUTES,
        r#"{"part r":"{\"upstreamHashByConfig\":{}}"}"#,
        "upstream-hash-by is missing",
    ),
    ("POST", ROUTES, r#"{"part r":"{\"sessionAffinityConfig\":{}}"}"#, "the cookie has no name"),
    ("POST", ROUTES, r#"{"part r":"{\"weight\":\"1\"}"}"#, "weight is no number"),
    ("POST", ROUTES, r#"{"route r":"{\"alternative\":{}}"}"#, "the alternative has no backend"),
    ("POST", ROUTES, r#"{"route r":"{\"spread\":{}}"}"#, "spread or names is no key"),
    (
        "POST",
        ROUTES,
        r#"{"route r":"{\"alternative\":{\"backend\":\"y\"}}"}"#,
        "the alternative has no rules",
    ),
    ("POST", SERVERS, r#"{"certificates":{"u":"nonsense"}}"#, "certificate u cannot be used"),
    ("POST", SERVERS, r#"{"servers":{"h":7}}"#, "h has no text"),
    ("POST", GENERAL, r#"{"http-redirect-code":200}"#, "no status of a redirect"),
    ("POST", GENERAL, r#"{"metrics":{"socket":7}}"#, "metrics has no socket"),
    ("DELETE", BACKENDS, "", "DELETE means nothing here"),
];

#[tokio::test]
async fn a_worker_that_dies_is_replaced_by_one_that_knows_everything() {
    let nginx = Nginx::start().await;
    nginx.push(&upstream(2));
    nginx.kill_workers().await;
    assert!((0..9).all(|_| nginx.get("/", "").body == "127.0.0.2"));
    nginx.push(&upstream(3));
    assert!((0..9).all(|_| nginx.get("/", "").body == "127.0.0.3"));
}

#[tokio::test]
async fn a_bad_push_is_refused_whole_and_says_why() {
    let nginx = Nginx::start().await;
    let generation = nginx.push(&upstream(2));
    let good = r#"{"name":"good","endpoints":[]}"#;
    for (method, path, body, reason) in BAD {
        let body = body.replacen("[{", &format!("[{good},{{"), 1);
        let answer = nginx.control(method, path, &body);
        assert_eq!(answer.status, 400, "{method} {path} {body}");
        assert!(answer.body.contains(reason), "{body}: {}", answer.body);
        assert_eq!(answer.generation(), generation, "{body}");
    }
    assert_eq!(nginx.control("GET", "/configuration/other", "").status, 404);
    assert!(!nginx.control("GET", BACKENDS, "").body.contains("good"));
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
    assert!(!nginx.log().contains("[alert]"), "{}", nginx.log());
}

#[tokio::test]
async fn a_push_that_finds_no_room_changes_nothing() {
    let nginx = Nginx::start().await;
    let generation = nginx.push(&upstream(2));
    let before = nginx.control("GET", BACKENDS, "").body;
    let filler = "x".repeat(4000);
    let many: Vec<String> = (0..1000).map(|at| format!(r#"{{"name":"u{at}{filler}"}}"#)).collect();
    let other = upstream(3).replace("PORT", "80");
    let body = format!("[{},{}", many.join(","), &other[1..]);
    let answer = nginx.control("PATCH", BACKENDS, &body);
    assert_eq!(answer.status, 507, "{}", answer.body);
    assert!(answer.body.contains("lua_shared_dict"), "{}", answer.body);
    assert_eq!(nginx.control("GET", BACKENDS, "").body, before);
    assert_eq!(nginx.control("GET", BACKENDS, "").generation(), generation);
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
}

#[tokio::test]
async fn a_push_that_follows_another_generation_changes_nothing() {
    let nginx = Nginx::start().await;
    let generation = nginx.push(&upstream(2));
    let body = upstream(3).replace("PORT", &nginx.backend.to_string());
    let after = |generation: u64| {
        let field = format!("X-After: {generation}\r\n");
        nginx.control_after("PATCH", BACKENDS, &field, &body)
    };
    let answer = after(generation + 1);
    assert_eq!((answer.status, answer.generation()), (409, generation));
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
    assert_eq!(after(generation).status, 201);
    assert_eq!(nginx.get("/", "").body, "127.0.0.3");
}

#[tokio::test]
async fn upstreams_are_shown_changed_and_taken_away() {
    let nginx = Nginx::start().await;
    assert_eq!(nginx.control("GET", BACKENDS, "").body, "[]");
    nginx.push(&upstream(2));
    let patch = |body: &str| assert_eq!(nginx.control("PATCH", BACKENDS, body).status, 201);
    patch(r#"[{"name":"other","endpoints":[]}]"#);
    let shown = nginx.control("GET", BACKENDS, "").body;
    assert!(shown.contains("demo-cart-80") && shown.contains("other"), "{shown}");
    patch(r#"[{"name":"demo-cart-80","gone":true}]"#);
    assert_eq!(nginx.control("GET", BACKENDS, "").body, r#"[{"name":"other"}]"#);
    assert_eq!(nginx.get("/", "").status, 503);
    nginx.push(&upstream(2));
    assert!(!nginx.control("GET", BACKENDS, "").body.contains("other"), "POST replaces all");
}
