//! What `$uri` is: the path as it is now, and for whoever is asked about a request the one that its client asked for.

use crate::bed::{self, MAIN, answer, configuration, is_whole, named, start, talk, upstream};
use crate::snippets::{Host, get};
use engine::Engine;
use model::policy::{
    Algorithm, AuthExternal, Balance, Errors, FastCgi, Mirror, Policy, Protocol, Rewrite,
};
use model::{
    Configuration, Global, LogFormat, LogTarget, Logs, Pattern, SetHeader, Template, UpstreamId,
    Url,
};
use proxy::Native;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const COPY: &str = "url:demo/copy:80";
const PAGES: &str = "custom-default-backend-demo-pages";

fn template(text: &str) -> Template {
    Template::parse(text).expect("known variables")
}

/// `/p/…` becomes `/new/…`.
fn rewriting() -> Policy {
    let pattern = Pattern::new("/p/(.*)", true).expect("a pattern");
    let rewrite = Rewrite { pattern, target: template("/new/$1"), prefix: None };
    Policy { rewrite: Some(rewrite), ..Policy::default() }
}

/// A log that has it, and a header field of every answer.
fn told(path: &Path) -> Global {
    let target = LogTarget::File(path.to_str().expect("it is text").to_owned());
    let set = |name: &str| SetHeader { name: name.to_owned(), value: template("$uri").into() };
    Global {
        logs: Logs { access: target, ..Logs::default() },
        log_format: LogFormat { template: template("$uri|$document_uri"), ..LogFormat::default() },
        add_headers: vec![set("X-Added")],
        proxy_set_headers: vec![set("X-Set")],
        ..Global::default()
    }
}

fn with(global: Global, configuration: Configuration) -> Configuration {
    Configuration { global: Arc::new(global), ..configuration }
}

async fn asked(native: &Native, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    talk(native, request.as_bytes()).await
}

async fn line(native: Arc<Native>, path: &Path) -> String {
    native.drain(Duration::from_secs(5)).await;
    std::fs::read_to_string(path).expect("the log is a file")
}

#[tokio::test]
async fn it_is_the_new_path_behind_a_rewrite_but_for_who_is_asked_about_the_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let (main, mut seen) = upstream(answer("200 OK", "", "main"), is_whole).await;
    let (copy, mut copied) = upstream(answer("200 OK", "", ""), is_whole).await;
    let (auth, mut questions) = upstream(answer("200 OK", "", ""), is_whole).await;
    let url = Url {
        secure: false,
        authority: template("copy.demo.svc:80").into(),
        target: template("/copy$uri").into(),
        upstream: Some(UpstreamId::new(COPY)),
    };
    let authenticator = bed::authenticator("auth", template("/ask$uri"), UpstreamId::new("auth"));
    let request_headers = vec![("X-Asked".to_owned(), template("$document_uri").into())];
    let authenticator = AuthExternal { request_headers, ..authenticator };
    let policy = Policy {
        upstream_host: Some(template("h$uri")),
        mirror: Some(Mirror { url, host: None, body: true }.into()),
        auth_external: Some(authenticator.into()),
        ..rewriting()
    };
    let upstreams = [(MAIN, vec![main]), (COPY, vec![copy]), ("auth", vec![auth])];
    let native = start(&with(told(&path), configuration(&upstreams, policy))).await;
    let got = asked(&native, "/p/%20x?a=b").await;
    assert!(got.contains("\r\nX-Added: /new/ x\r\n"), "{got}");
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.expect("one")).expect("text");
    let seen = text(seen.recv().await);
    assert!(seen.starts_with("GET /new/%20x?a=b HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("\r\nX-Set: /new/ x\r\n"), "{seen}");
    assert!(seen.contains("\r\nHost: h/new/ x\r\n"), "{seen}");
    let question = text(questions.recv().await);
    assert!(question.starts_with("GET /ask/p/%20x HTTP/1.1\r\n"), "{question}");
    assert!(question.contains("\r\nX-Asked: /p/ x\r\n"), "{question}");
    let copied = text(copied.recv().await);
    assert!(copied.starts_with("GET /copy/p/x HTTP/1.0\r\n"), "{copied}");
    assert_eq!(line(native, &path).await, "/new/ x|/new/ x\n");
}

#[tokio::test]
async fn it_is_the_root_once_an_error_page_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let (main, _main) = upstream(answer("404 Not Found", "", "gone"), is_whole).await;
    let (pages, _pages) = upstream(answer("404 Not Found", "", "page"), is_whole).await;
    let errors = Errors {
        statuses: [404].into_iter().collect(),
        intercept: true,
        backend: Some(UpstreamId::new(PAGES)),
        of_all: false,
    };
    let policy = Policy { errors: Some(errors), ..rewriting() };
    let upstreams = [(MAIN, vec![main]), (PAGES, vec![pages])];
    let native = start(&with(told(&path), configuration(&upstreams, policy))).await;
    let got = asked(&native, "/p/x").await;
    assert!(got.ends_with("page") && got.contains("\r\nX-Added: /\r\n"), "{got}");
    assert_eq!(line(native, &path).await, "/|/\n");
}

#[tokio::test]
async fn endpoints_are_chosen_by_the_new_path() {
    let policy = Policy {
        balance: Balance { algorithm: Algorithm::Hash(template("$uri")), affinity: None },
        rewrite: rewriting()
            .rewrite
            .map(|rewrite| Rewrite { target: template("/fixed"), ..rewrite }),
        ..Policy::default()
    };
    let mut endpoints = Vec::new();
    for name in ["a", "b", "c", "d"] {
        endpoints.push(named(name, 200, Duration::ZERO).await);
    }
    let native = start(&configuration(&[(MAIN, endpoints)], policy)).await;
    let mut seen = BTreeSet::new();
    for number in 0..16 {
        let answer = asked(&native, &format!("/p/{number}")).await;
        seen.insert(answer.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned());
    }
    assert_eq!(seen.len(), 1, "all of them are one path: {seen:?}");
}

#[tokio::test]
async fn annotations_and_snippets_agree_about_it() {
    let policy = Policy { upstream_host: Some(template("h$uri")), ..rewriting() };
    let snippet = "proxy_set_header X-Said $uri;";
    let passes = "proxy_pass http://upstream_balancer/other;";
    let own = Policy { upstream_host: Some(template("h$uri")), ..Policy::default() };
    let native = Host::of_patterns().path("/p/(.*)", snippet, policy).serve().await;
    let got = get(&native, "/p/x", "").await;
    assert!(got.contains("\nHost: h/new/x\r\n") && got.contains("\nX-Said: /new/x\r\n"), "{got}");
    let native = Host::default().path("/p", passes, own).serve().await;
    let got = get(&native, "/p/x", "").await;
    assert!(got.contains("GET /other/x ") && got.contains("\nHost: h/p/x\r\n"), "{got}");
}

#[tokio::test]
async fn fastcgi_is_told_one_path() {
    let (main, mut seen) = upstream(Vec::new(), |read| read.ends_with(b"\x05\0\x01\0\0\0\0")).await;
    let params = [("X_DOC".to_owned(), template("$document_uri").into())];
    let policy = Policy {
        protocol: Protocol::Fcgi,
        fastcgi: FastCgi { params: params.into_iter().collect(), ..FastCgi::default() },
        ..rewriting()
    };
    let native = start(&configuration(&[(MAIN, vec![main])], policy)).await;
    asked(&native, "/p/q.php").await;
    let seen = seen.recv().await.expect("one request");
    let has = |text: &[u8]| seen.windows(text.len()).any(|part| part == text);
    assert!(has(b"DOCUMENT_URI/new/q.php") && has(b"X_DOC/new/q.php"), "{}", seen.escape_ascii());
}
