//! Error backends and stand-ins behind the engine, over real sockets.

use crate::bed::{
    self, MAIN, PATIENCE, answer, apply, configuration, is_whole, location, start, talk, upstream,
};
use crate::snippets::scope;
use engine::Engine;
use model::policy::{
    Access, AnswerRewrites, AuthExternal, Body, CustomHeaders, Errors, Policy, Replaced,
    Replacement, Timeouts,
};
use model::{
    Backend, LogFormat, LogTarget, Logs, Server, ServerName, SetHeader, Template, UpstreamId,
};
use proxy::{Question, explain};
use snippet::Context;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const PAGES: &str = "custom-default-backend-demo-pages";

fn errors(statuses: &[u16]) -> Policy {
    let errors = Errors {
        statuses: statuses.iter().copied().collect::<BTreeSet<_>>(),
        intercept: true,
        backend: Some(UpstreamId::new(PAGES)),
        of_all: false,
    };
    let default_backend = Some(UpstreamId::new(PAGES));
    Policy { errors: Some(errors), default_backend, ..Policy::default() }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[tokio::test]
async fn an_error_page_gets_the_request_as_it_was_and_cannot_be_told_tales() {
    let (main, _main) =
        upstream(answer("404 Not Found", "X-Main: yes\r\n", "gone"), is_whole).await;
    let (pages, mut seen) = upstream(answer("200 OK", "X-Page: yes\r\n", "page"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages])];
    let native = start(&configuration(&upstreams, errors(&[404]))).await;
    let request = b"POST /a?b=c HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Code: 200\r\n\
        X-Namespace: forged\r\nAccept: text/html\r\nContent-Length: 4\r\n\r\nbody";
    let got = talk(&native, request).await;
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("page"), "{got}");
    assert!(got.contains("X-Page: yes") && !got.contains("X-Main"), "{got}");
    let seen = text(seen.recv().await.expect("one request"));
    assert!(
        seen.starts_with("POST /?b=c HTTP/1.0\r\nX-Code: 404\r\nX-Format: text/html\r\n"),
        "{seen}"
    );
    assert!(
        seen.contains("\r\nX-Original-URI: /a?b=c\r\n") && seen.ends_with("\r\n\r\nbody"),
        "{seen}"
    );
    for absent in ["forged", "X-Code: 200", "X-Hop"] {
        assert!(!seen.contains(absent), "{absent} in {seen}");
    }
}

#[tokio::test]
async fn a_challenge_survives_its_page() {
    let challenge = "WWW-Authenticate: Basic realm=\"x\"\r\n";
    let (main, _main) = upstream(answer("401 Unauthorized", challenge, ""), is_whole).await;
    let (pages, _pages) = upstream(answer("401 Unauthorized", "", "page"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages])];
    let native = start(&configuration(&upstreams, errors(&[401]))).await;
    let got = talk(&native, b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(got.contains(challenge) && got.ends_with("page"), "{got}");
}

#[tokio::test]
async fn a_challenge_of_another_status_is_gone_with_its_answer() {
    let challenge = "WWW-Authenticate: Basic realm=\"x\"\r\n";
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let (main, _main) = upstream(answer("403 Forbidden", challenge, ""), is_whole).await;
    let (pages, _pages) = upstream(answer("403 Forbidden", "", "page"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages])];
    let native = start(&configuration(&upstreams, errors(&[403]))).await;
    let got = talk(&native, request).await;
    assert!(!got.contains(challenge) && got.ends_with("page"), "{got}");
    for (status, stays) in [("401 Unauthorized", true), ("404 Not Found", false)] {
        let text = "proxy_intercept_errors on; error_page 401 404 =200 @e;";
        let snippet = Some(scope(Context::Location, text, ""));
        let (main, _main) = upstream(answer(status, challenge, ""), is_whole).await;
        let policy = Policy { snippet, ..Policy::default() };
        let mut configuration = configuration(&[(MAIN, vec![main])], policy);
        let server = configuration.servers.values().next().expect("one host").clone();
        let page = scope(Context::Server, "location @e { return 200 page; }", "");
        let server = Server { snippet: Some(page), ..Server::clone(&server) };
        configuration.servers.insert(server.name.clone(), Arc::new(server));
        let native = start(&configuration).await;
        let got = talk(&native, request).await;
        assert!(got.ends_with("page") && got.contains(challenge) == stays, "{got}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_goes_nowhere() {
    let (main, mut main_saw) = upstream(answer("200 OK", "", ""), is_whole).await;
    let (pages, mut seen) = upstream(answer("413 Too Large", "", "page"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages])];
    let body = Body { max_size: Some(3), ..Body::default() };
    let policy = Policy { body, ..errors(&[413]) };
    let native = start(&configuration(&upstreams, policy)).await;
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody";
    let got = talk(&native, request).await;
    assert!(got.starts_with("HTTP/1.1 413 ") && got.ends_with("page"), "{got}");
    let seen = text(seen.recv().await.expect("one request"));
    assert!(seen.ends_with("\r\n\r\n") && !seen.contains("Content-Length"), "{seen}");
    assert!(main_saw.try_recv().is_err());
}

#[tokio::test]
async fn whoever_is_refused_cannot_fill_the_disk_by_way_of_the_error_page() {
    let (main, mut main_saw) = upstream(answer("200 OK", "", ""), is_whole).await;
    let (pages, mut seen) = upstream(answer("403 Forbidden", "", "page"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages])];
    let body = Body { max_size: Some(3), ..Body::default() };
    let access = Access { allow: Some(Default::default()), ..Access::default() };
    let policy = Policy { body, access, ..errors(&[403]) };
    let native = start(&configuration(&upstreams, policy)).await;
    let small = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nbod\r\n0\r\n\r\n";
    let got = talk(&native, small).await;
    assert!(got.starts_with("HTTP/1.1 403 ") && got.ends_with("page"), "{got}");
    assert!(text(seen.recv().await.expect("one request")).ends_with("\r\n\r\nbod"));
    // It never ends: what is too much is known before that.
    let large =
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n";
    let got = talk(&native, large).await;
    assert!(got.starts_with("HTTP/1.1 413 "), "{got}");
    assert!(seen.try_recv().is_err() && main_saw.try_recv().is_err());
}

#[tokio::test]
async fn without_anybody_to_ask_the_page_is_the_built_in_one() {
    let (main, _main) = upstream(answer("503 Sorry", "", "sorry"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (PAGES, Vec::new())];
    let native = start(&configuration(&upstreams, errors(&[503]))).await;
    let got = talk(&native, b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 404 Not Found\r\n") && !got.contains("sorry"), "{got}");
}

#[tokio::test]
async fn an_error_of_the_error_backend_is_not_replaced_again() {
    let (pages, mut seen) = upstream(answer("503 Sorry", "", "page"), is_whole).await;
    let upstreams = [(MAIN, Vec::new()), (PAGES, vec![pages])];
    let mut policy = errors(&[503]);
    policy.default_backend = None;
    let native = start(&configuration(&upstreams, policy)).await;
    let got = talk(&native, b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 503 ") && got.ends_with("page"), "{got}");
    assert!(seen.try_recv().is_ok() && seen.try_recv().is_err());
}

#[tokio::test]
async fn an_error_backend_has_longer_than_its_location_gives_an_upstream() {
    let pages = bed::named("page", 503, Duration::from_millis(300)).await;
    let short = Duration::from_millis(20);
    let timeouts = Timeouts { connect: PATIENCE, send: short, read: short };
    let policy = Policy { timeouts, default_backend: None, ..errors(&[503]) };
    let native = start(&configuration(&[(MAIN, Vec::new()), (PAGES, vec![pages])], policy)).await;
    let got = talk(&native, b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 503 X\r\n") && got.ends_with("page"), "{got}");
}

#[tokio::test]
async fn a_stand_in_gets_the_path_and_is_told_why() {
    let (pages, mut seen) = upstream(answer("200 OK", "", "instead"), is_whole).await;
    let upstreams = [(MAIN, Vec::new()), (PAGES, vec![pages])];
    let policy = Policy { errors: None, ..errors(&[]) };
    let native = start(&configuration(&upstreams, policy)).await;
    let request = b"GET /a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX-Code: 1\r\n\r\n";
    let got = talk(&native, request).await;
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("instead"), "{got}");
    let seen = text(seen.recv().await.expect("one request"));
    assert!(seen.starts_with("GET /a HTTP/1.1\r\n") && seen.contains("X-Code: 503\r\n"), "{seen}");
    assert!(!seen.contains("X-Code: 1\r\n"), "{seen}");
}

#[tokio::test]
async fn where_everything_leads_back_here_one_request_is_not_two_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.log");
    let nobody = configuration(&[], errors(&[500, 502, 503, 504, 508]));
    let native = start(&nobody).await;
    let own = SocketAddr::from((Ipv4Addr::LOCALHOST, native.listening().http_port));
    let upstreams = [(MAIN, vec![own]), (PAGES, vec![own])];
    let mut circle = configuration(&upstreams, errors(&[500, 502, 503, 504, 508]));
    let global = Arc::make_mut(&mut circle.global);
    let access = LogTarget::File(file.to_str().expect("it is text").to_owned());
    global.logs = Logs { access, ..Logs::default() };
    let template = Template::parse("$status").expect("known variables");
    global.log_format = LogFormat { template, ..LogFormat::default() };
    apply(&native, &nobody, &circle).await;
    let got = talk(&native, b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 508"), "{got}");
    native.drain(Duration::from_secs(5)).await;
    let requests = std::fs::read_to_string(file).expect("the log is a file").lines().count();
    assert!((6..=20).contains(&requests), "{requests} of one");
}

#[tokio::test]
async fn a_denied_location_has_a_page_if_its_policy_has_one() {
    let (pages, mut seen) = upstream(answer("503 Sorry", "", "page"), is_whole).await;
    let mut configuration = configuration(&[(PAGES, vec![pages])], Policy::default());
    let denied = Backend::Denied("its Secret is missing".to_owned());
    let location = location("/", denied, Arc::new(errors(&[503])));
    let name = ServerName::new("a.test");
    let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
    configuration.servers.insert(name, Arc::new(server));
    let native = start(&configuration).await;
    let got = talk(&native, b"GET /a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 503 Sorry\r\n") && got.ends_with("page"), "{got}");
    let seen = text(seen.recv().await.expect("one request"));
    assert!(seen.starts_with("GET / HTTP/1.0\r\nX-Code: 503\r\n"), "{seen}");
}

/// What a location may say about answers: a field, its upstream's paths in cookies, and the authenticator's cookies.
fn talkative(errors: Policy, authenticator: UpstreamId) -> Policy {
    let template = |text: &str| Template::parse(text).expect("no variables");
    let field = SetHeader { name: "X-Custom".to_owned(), value: template("yes").into() };
    let to_front =
        Replacement { from: Replaced::Text(template("/old")), to: template("/new").into() };
    let asked = bed::authenticator("auth", Template::default(), authenticator);
    let asked = AuthExternal { always_set_cookie: true, ..asked };
    Policy {
        custom_headers: CustomHeaders([field].into()),
        answer_rewrites: AnswerRewrites {
            cookie_path: Some(to_front),
            ..AnswerRewrites::default()
        },
        auth_external: Some(asked.into()),
        ..errors
    }
}

#[tokio::test]
async fn what_a_location_says_about_answers_is_not_for_the_error_backends() {
    let cookie = "Set-Cookie: a=b; Path=/old\r\n";
    let (auth, _auth) = upstream(answer("200 OK", "Set-Cookie: seen=1\r\n", ""), is_whole).await;
    let (pages, _pages) = upstream(answer("200 OK", cookie, "page"), is_whole).await;
    for (status, paged) in [("404 Not Found", true), ("202 Accepted", false)] {
        let (main, _main) = upstream(answer(status, cookie, "main"), is_whole).await;
        let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages]), ("auth", vec![auth])];
        let policy = talkative(errors(&[404]), UpstreamId::new("auth"));
        let native = start(&configuration(&upstreams, policy)).await;
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        let got = talk(&native, request).await;
        assert!(got.ends_with(if paged { "page" } else { "main" }), "{got}");
        assert_eq!(got.contains("a=b; Path=/old\r\n"), paged, "{got}");
        for of_location in ["X-Custom: yes", "seen=1", "Path=/new"] {
            assert_eq!(got.contains(of_location), !paged, "{of_location} in {got}");
        }
    }
}

#[tokio::test]
async fn an_applications_own_401_leads_to_the_sign_in_page_where_its_answers_are_looked_at() {
    let challenge = "WWW-Authenticate: Bearer\r\n";
    let (main, _main) = upstream(answer("401 Unauthorized", challenge, "own"), is_whole).await;
    let (auth, _auth) = upstream(answer("200 OK", "", ""), is_whole).await;
    let (pages, _pages) = upstream(answer("200 OK", "", "page"), is_whole).await;
    let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages]), ("auth", vec![auth])];
    let asked = bed::authenticator("auth", Template::default(), UpstreamId::new("auth"));
    let page = Template::parse("https://login.test/").expect("no variables");
    let with = |errors: Policy, page: Option<&Template>| {
        let sign_in = page.cloned().map(Into::into);
        let asked = AuthExternal { sign_in, ..asked.clone() };
        Policy { auth_external: Some(asked.into()), ..errors }
    };
    let intercepts = |intercept: bool, statuses: &[u16]| {
        let mut policy = errors(statuses);
        policy.errors.iter_mut().for_each(|errors| errors.intercept = intercept);
        policy
    };
    for (policy, status, body) in [
        (with(intercepts(true, &[503]), Some(&page)), "302", "html>\r\n"),
        // Its own is the first `error_page` for the status.
        (with(intercepts(true, &[401]), Some(&page)), "302", "html>\r\n"),
        (with(intercepts(true, &[]), Some(&page)), "302", "html>\r\n"),
        (with(intercepts(false, &[503]), Some(&page)), "401", "own"),
        (with(Policy::default(), Some(&page)), "401", "own"),
        (with(intercepts(true, &[503]), None), "401", "own"),
        (with(intercepts(true, &[401]), None), "200", "page"),
    ] {
        let native = start(&configuration(&upstreams, policy)).await;
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        let got = talk(&native, request).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")) && got.ends_with(body), "{got}");
        assert!(got.contains(challenge), "{got}");
        assert_eq!(got.contains("Location: https://login.test/\r\n"), status == "302", "{got}");
    }
}

#[tokio::test]
async fn an_explanation_tells_what_an_error_page_stands_in_for_and_whose_it_is() {
    let (pages, _pages) = upstream(answer("200 OK", "", "page"), is_whole).await;
    let upstreams = [(MAIN, vec![pages]), (PAGES, vec![pages])];
    let deny = std::iter::once("192.0.2.0/24".parse().expect("a network")).collect();
    let policy = Policy { access: Access { deny, ..Access::default() }, ..errors(&[403]) };
    let question = |client: &str| Question {
        head: "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
        http2: false,
        tls: None,
        client: client.parse().expect("an address"),
        ports: (80, 443),
    };
    let configuration = configuration(&upstreams, policy);
    let told = async |client: &str, step: &str| -> Vec<String> {
        let told = explain(&configuration, question(client)).await.expect("an explanation");
        let told = told.into_iter().filter(|decision| decision.step == step);
        told.map(|decision| decision.outcome).collect()
    };
    let refused = "192.0.2.1:1";
    assert!(told(refused, "access").await.contains(&"refused with 403".to_owned()));
    assert_eq!(told(refused, "error page").await, [format!("403 is answered by {PAGES}")]);
    assert_eq!(told(refused, "answer").await, ["the error page's, with these fields besides"]);
    assert!(told("198.51.100.1:1", "error page").await.is_empty());
}
