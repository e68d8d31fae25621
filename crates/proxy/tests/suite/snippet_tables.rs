//! Tables of an `http-snippet` that make what the controller makes by itself, over sockets: `$loggable`, `$req_id`,
//! `$full_x_forwarded_for` and `$connection_upgrade`. In nginx the last table of a variable counts. And limits that go
//! by a table.

use crate::bed::{MAIN, answering, configuration, put_host, put_upstream, start, talk};
use engine::Engine;
use model::policy::{LimitKey, Limits, Policy, RequestLimit};
use model::{
    Configuration, Global, Kind, LogFormat, LogTarget, Logs, Origin, Part, RealIp, ServerName,
    Template, Variable,
};
use proxy::Native;
use snippet::{Context, Names, Snippet, understand};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const OK: &[u8] =
    b"HTTP/1.1 200 OK\r\nX-Kind: quiet\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A host without snippets beside an `http-snippet`, and one whose `configuration-snippet` is `text`.
fn served(endpoint: SocketAddr, http: &str, text: &str) -> Configuration {
    let parse = |place, text| Snippet::parse(place, text).expect("a snippet");
    let (own, mut names) = (parse(Context::Location, text), Names::default());
    parse(Context::Http, http).declare(&mut names);
    own.declare(&mut names);
    let scope = own.understand(&names).expect("it is right").scope;
    let mut configuration = configuration(&[(MAIN, vec![endpoint])], Policy::default());
    let id = put_upstream(&mut configuration, MAIN, vec![endpoint]);
    let policy = Policy { snippet: Some(Arc::new(scope)), ..Policy::default() };
    put_host(&mut configuration, "b.test", &id, policy);
    let http = understand(Context::Http, http).expect("it is right").http;
    let global = Global { http_snippet: Some(Arc::new(http)), ..Global::default() };
    Configuration { global: Arc::new(global), ..configuration }
}

async fn get(native: &Native, host: &str, target: &str, more: &str) {
    let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
    let answer = talk(native, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{host}{target}: {answer}");
}

/// Which of these requests are logged.
async fn logged(http: &str, text: &str, global: Global, asked: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let mut configuration = served(answering(OK).await.0, http, text);
    let access = LogTarget::File(Path::to_str(&path).expect("it is text").to_owned());
    let template = Template::parse("$host$request_uri").expect("known variables");
    configuration.global = Arc::new(Global {
        http_snippet: configuration.global.http_snippet.clone(),
        logs: Logs { access, ..Logs::default() },
        log_format: LogFormat { template, ..LogFormat::default() },
        ..global
    });
    let native = start(&configuration).await;
    for (host, target) in asked {
        get(&native, host, target, "").await;
    }
    native.drain(Duration::from_secs(5)).await;
    let text = std::fs::read_to_string(&path).expect("the log is a file");
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_map_of_loggable_keeps_requests_out_of_the_log_and_takes_the_place_of_other_lists() {
    let http = "map $request_uri $loggable { /healthz 0; ~^/empty ''; default 1; }";
    let skipped = Global { skip_access_log: ["/listed".to_owned()].into(), ..Global::default() };
    let asked = ["/healthz", "/empty", "/listed", "/x"];
    let asked: Vec<_> =
        ["a.test", "b.test"].iter().flat_map(|host| asked.map(|path| (*host, path))).collect();
    let lines = logged(http, "set $mine 1;", skipped, &asked).await;
    assert_eq!(lines, ["a.test/listed", "a.test/x", "b.test/listed", "b.test/x"]);
}

#[tokio::test]
async fn what_is_logged_goes_by_the_answer_and_a_set_goes_before_a_map() {
    let http = "map $sent_http_x_kind:$status $loggable { quiet:200 0; default 1; }";
    let asked = [("a.test", "/x"), ("b.test", "/x"), ("b.test", "/said"), ("b.test", "/not")];
    let text = "if ($uri = /said) { set $loggable yes; } if ($uri = /not) { set $loggable 0; }";
    assert_eq!(logged(http, text, Global::default(), &asked).await, ["b.test/said"]);
    // Without a table a program alone says it.
    let lines = logged("", text, Global::default(), &asked).await;
    assert_eq!(lines, ["a.test/x", "b.test/x", "b.test/said"]);
}

#[tokio::test]
async fn nobody_leaves_the_log_by_a_map_that_takes_too_long() {
    let many = "$request_uri".repeat(40);
    let http = format!("map $uri $all {{ default {many}; }} map $all $loggable {{ default 0; }}");
    let long = format!("/{}", "a".repeat(2000));
    let asked = [("a.test", "/y"), ("a.test", long.as_str())];
    let lines = logged(&http, "", Global::default(), &asked).await;
    assert_eq!(lines, [format!("a.test{long}")]);
}

#[tokio::test]
async fn a_limit_goes_by_what_a_table_makes_and_is_not_evaded_by_one_that_takes_too_long() {
    let many = "$request_uri".repeat(40);
    let http = format!("map $arg_who $who {{ '' {many}; default $arg_who; }}");
    let mut configuration = served(answering(OK).await.0, &http, "set $mine 1;");
    let key = Part::Variable(Variable::OfSnippets("who".into()));
    let limits = Limits {
        per_minute: Some(RequestLimit { rate: 16, burst: 0 }),
        key: LimitKey::Text(Template::from_parts(vec![key])),
        ..Limits::default()
    };
    let server = Arc::make_mut(&mut configuration.servers[&ServerName::new("a.test")]);
    let location = Arc::make_mut(&mut server.locations[0]);
    location.policy = Arc::new(Policy { limits, ..Policy::default() });
    location.origin = Some(Origin::new(Kind::Ingress, "demo", "x").into());
    let native = start(&configuration).await;
    let long = format!("/{}", "a".repeat(2000));
    for (target, status) in
        [("/?who=a", 200), ("/?who=b", 200), ("/x?who=a", 503), (&long, 500), (&long, 500)]
    {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let answer = talk(&native, head.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{target}: {answer}");
    }
}

#[tokio::test]
async fn upstreams_hear_what_tables_make_of_the_controllers_variables() {
    let http = "map $http_x_call $req_id { '' none; default $http_x_call/$request_id; }
        map $http_x_forwarded_for $full_x_forwarded_for { '' nobody; default 'by $http_x_forwarded_for'; }
        map $http_x_end $connection_upgrade { yes close; default ''; }";
    let (endpoint, mut heard) = answering(OK).await;
    let mut configuration =
        served(endpoint, http, "set $full_x_forwarded_for mine; add_header X-Id $req_id;");
    let trusted = ["127.0.0.0/8".parse().expect("a network")].into_iter().collect();
    let real_ip =
        RealIp { forwarded_headers: true, full_forwarded_for: true, trusted, ..RealIp::default() };
    Arc::make_mut(&mut configuration.global).real_ip = real_ip;
    let native = start(&configuration).await;
    let fields = "X-Forwarded-For: 10.1.1.1\r\nX-Call: c\r\nX-End: yes\r\n";
    get(&native, "a.test", "/", fields).await;
    let head = heard.recv().await.expect("a request").to_ascii_lowercase();
    assert!(head.contains("\r\nx-forwarded-for: by 10.1.1.1\r\n"), "{head}");
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    let id = head.split("\r\nx-request-id: c/").nth(1).and_then(|rest| rest.split('\r').next());
    assert!(id.is_some_and(|id| id.len() == 32), "{head}");
    get(&native, "b.test", "/", "").await;
    let head = heard.recv().await.expect("a request").to_ascii_lowercase();
    assert!(head.contains("\r\nx-forwarded-for: mine\r\nx-"), "{head}");
    assert!(head.contains("\r\nx-request-id: none\r\n"), "{head}");
    assert!(!head.contains("\r\nconnection: close\r\n"), "{head}");
}
