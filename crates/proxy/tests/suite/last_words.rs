//! Who has the last word of a header section where snippets and annotations say one: the order is that of nginx.tmpl
//! and of nginx's filters.

use crate::bed::{self, MAIN, put_host, put_upstream, start, talk};
use crate::snippets::scope;
use model::policy::{
    Affinity, AffinityMode, Algorithm, AllowedOrigin, Balance, Cors, CustomHeaders, Origins,
    Policy, TlsRedirect,
};
use model::{Configuration, SetHeader, Template, UpstreamId};
use proxy::Native;
use snippet::Context;
use std::sync::Arc;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: up=1\r\n\r\nok";
const ORIGIN: &str = "Origin: https://a.test\r\n";

fn cors(origins: Origins) -> Policy {
    let cors = Cors {
        origins,
        credentials: true,
        methods: "GET".to_owned(),
        headers: "X-A".to_owned(),
        expose: None,
        max_age: 5,
    };
    Policy { cors: Some(cors.into()), ..Policy::default() }
}

fn listed() -> Policy {
    cors(Origins::Listed(vec![AllowedOrigin::new("https://a.test")]))
}

fn custom(value: &str) -> Policy {
    let value = Template::parse(value).expect("a template").into();
    let header = SetHeader { name: "X-Both".to_owned(), value };
    Policy { custom_headers: CustomHeaders([header].into()), ..Policy::default() }
}

/// Host `a.test` with this `configuration-snippet`.
fn host(configuration: &mut Configuration, id: &UpstreamId, text: &str, policy: Policy) {
    let snippet = Some(scope(Context::Location, text, ""));
    put_host(configuration, "a.test", id, Policy { snippet, ..policy });
}

async fn with(text: &str, policy: Policy) -> Arc<Native> {
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, MAIN, vec![bed::answering(OK).await.0]);
    host(&mut configuration, &id, text, policy);
    start(&configuration).await
}

async fn ask(native: &Arc<Native>, method: &str, target: &str, fields: &str) -> String {
    let head =
        format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    talk(native, head.as_bytes()).await
}

/// The values of a field, in their order.
fn said<'a>(answer: &'a str, name: &str) -> Vec<&'a str> {
    let values = answer.lines().filter_map(|line| line.split_once(": "));
    values.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[tokio::test]
async fn cors_has_the_last_word_of_its_fields_and_none_where_an_if_of_a_snippet_holds() {
    const ALLOW: &str = "Access-Control-Allow-Origin";
    for text in [
        "more_set_headers 'Access-Control-Allow-Origin: x';",
        "more_clear_headers 'Access-Control-*';",
        "add_header X-A 1; if ($arg_x) { set $y 1; }",
    ] {
        let native = with(text, listed()).await;
        for method in ["GET", "OPTIONS"] {
            let answer = ask(&native, method, "/", ORIGIN).await;
            assert_eq!(said(&answer, ALLOW), ["https://a.test"], "{text} {answer}");
            assert_eq!(said(&answer, "Access-Control-Max-Age"), ["5"], "{text} {answer}");
        }
        let answer = ask(&native, "GET", "/?x=1", ORIGIN).await;
        assert_eq!(said(&answer, ALLOW).is_empty(), text.contains("if"), "{text} {answer}");
    }
    let text = "add_header Access-Control-Allow-Origin y;";
    let answer = ask(&with(text, listed()).await, "GET", "/", ORIGIN).await;
    assert_eq!(said(&answer, ALLOW), ["https://a.test", "y"], "what is added is added");
    let answer = ask(&with("return 403;", listed()).await, "GET", "/", ORIGIN).await;
    assert_eq!(said(&answer, ALLOW), ["https://a.test"]);
}

#[tokio::test]
async fn the_origin_is_a_star_to_snippets_where_any_is_allowed_and_cors_says_who_is() {
    let text =
        "add_header X-O \"$http_origin|$cors\" always; if ($http_origin ~ ^https) { return 403; }";
    let native = with(text, cors(Origins::Any)).await;
    assert_eq!(said(&ask(&native, "GET", "/", ORIGIN).await, "X-O"), ["*|true"]);
    assert_eq!(said(&ask(&native, "GET", "/", "").await, "X-O"), ["*|true"]);
    assert_eq!(said(&ask(&native, "OPTIONS", "/", ORIGIN).await, "X-O"), ["*|trueoptions"]);
    let native = with(text, listed()).await;
    let other = ask(&native, "OPTIONS", "/", "Origin: http://b.test\r\n").await;
    assert_eq!(said(&other, "X-O"), ["http://b.test|options"]);
    let refused = ask(&native, "GET", "/", ORIGIN).await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let native = with(text, Policy::default()).await;
    assert_eq!(said(&ask(&native, "GET", "/", "").await, "X-O"), ["|"]);
}

#[tokio::test]
async fn custom_headers_stand_between_the_location_and_its_if_blocks() {
    let text = "more_set_headers 'X-Both: sn'; if ($arg_x) { more_set_headers 'X-Both: if'; }
        location /in { more_set_headers 'X-Both: in'; }";
    let native = with(text, custom("cu")).await;
    for (target, expected) in [("/", "cu"), ("/?x=1", "if"), ("/in", "in")] {
        assert_eq!(said(&ask(&native, "GET", target, "").await, "X-Both"), [expected], "{target}");
    }
    let native = with("more_clear_headers 'X-*'; add_header X-Both ad;", custom("cu")).await;
    assert_eq!(said(&ask(&native, "GET", "/", "").await, "X-Both"), ["cu", "ad"]);
}

#[tokio::test]
async fn cookies_of_an_authenticator_are_added_behind_what_is_set() {
    const SAYS: &[u8] =
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-User: al\r\nContent-Length: 0\r\n\r\n";
    for (text, target, expected) in [
        ("", "/", &["up=1", "a=1"][..]),
        ("more_clear_headers Set-Cookie;", "/", &["a=1"]),
        ("more_set_headers 'Set-Cookie: z=1';", "/", &["z=1", "a=1"]),
        ("add_header X-A 1;", "/", &["up=1", "a=1"]),
        ("if ($arg_x) { add_header X-A 1; }", "/?x=1", &["up=1"]),
        ("if ($arg_x) { more_set_headers 'X-A: 1'; }", "/?x=1", &["up=1", "a=1"]),
    ] {
        let mut configuration = Configuration::default();
        let id = put_upstream(&mut configuration, MAIN, vec![bed::answering(OK).await.0]);
        let auth = put_upstream(&mut configuration, "auth", vec![bed::answering(SAYS).await.0]);
        let target_of = Template::parse("/auth").expect("no variables");
        let mut asks = bed::authenticator("auth", target_of, auth);
        asks.response_headers = vec!["X-None".to_owned(), "X-User".to_owned()];
        let policy = Policy { auth_external: Some(asks.into()), ..Policy::default() };
        let text = format!("{text} more_set_headers \"X-Heard: $authHeader0|$authHeader1\";");
        host(&mut configuration, &id, &text, policy);
        let native = start(&configuration).await;
        let answer = ask(&native, "GET", target, "").await;
        assert_eq!(said(&answer, "Set-Cookie"), expected, "{text}");
        assert_eq!(said(&answer, "X-Heard"), ["|al"], "{text}");
    }
}

#[tokio::test]
async fn the_cookie_of_a_session_is_there_before_snippets_are() {
    let affinity = Affinity {
        mode: AffinityMode::Persistent,
        name: "s".to_owned(),
        secure: false,
        expires: None,
        max_age: None,
        path: None,
        domain: None,
        same_site: None,
        conditional_same_site_none: false,
        change_on_failure: false,
        of_rule: None,
    };
    let balance = Balance { algorithm: Algorithm::RoundRobin, affinity: Some(affinity.into()) };
    let policy = Policy { balance, ..Policy::default() };
    for (text, expected) in [
        ("add_header X-Sent $sent_http_set_cookie;", &["s=", "up=1"][..]),
        ("more_clear_headers Set-Cookie;", &[]),
        ("more_set_headers 'Set-Cookie: z=1';", &["z=1"]),
    ] {
        let answer = ask(&with(text, policy.clone()).await, "GET", "/", "").await;
        let cookies = said(&answer, "Set-Cookie");
        assert_eq!(cookies.len(), expected.len(), "{text} {answer}");
        let begin = cookies.iter().zip(expected).all(|(cookie, start)| cookie.starts_with(start));
        assert!(begin, "{text} {answer}");
        let sent = said(&answer, "X-Sent");
        assert!(sent.iter().all(|sent| sent.starts_with("s=")), "{answer}");
        assert_eq!(sent.len(), usize::from(text.contains("X-Sent")), "{answer}");
    }
}

#[tokio::test]
async fn a_host_that_snippets_set_is_the_name_that_they_see() {
    let (address, mut seen) = bed::answering(OK).await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, MAIN, vec![address]);
    let text = "more_set_input_headers 'Host: Foo.test:81'; add_header X-H $host; proxy_set_header X-V $host;";
    host(&mut configuration, &id, text, Policy::default());
    let native = start(&configuration).await;
    assert_eq!(said(&ask(&native, "GET", "/", "").await, "X-H"), ["foo.test"]);
    let request = seen.recv().await.expect("it was asked");
    assert_eq!(said(&request, "X-V"), ["foo.test"], "{request}");
}

#[tokio::test]
async fn a_snippet_says_whether_http_is_redirected() {
    let always = |always| {
        let tls_redirect = TlsRedirect { always, ..TlsRedirect::NEVER };
        Policy { tls_redirect, ..Policy::default() }
    };
    let text = "if ($arg_x) { set $force_ssl_redirect \"true\"; }
        if ($arg_slash) { set $preserve_trailing_slash true; }
        add_header X-Says \"$force_ssl_redirect $ssl_redirect $literal_dollar\";";
    let native = with(text, always(false)).await;
    let answer = ask(&native, "GET", "/", "").await;
    assert_eq!(said(&answer, "X-Says"), ["false false $"], "{answer}");
    let answer = ask(&native, "GET", "/a/?x=1", "").await;
    assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
    assert_eq!(said(&answer, "Location"), ["https://a.test/a/?x=1"]);
    let text = "if ($arg_x) { set $force_no_ssl_redirect true; } if ($arg_y) { set $force_ssl_redirect no; }";
    let native = with(text, always(true)).await;
    for (target, expected) in [("/", "308"), ("/?x=1", "200"), ("/?y=1", "200"), ("/?z=1", "308")] {
        let answer = ask(&native, "GET", target, "").await;
        assert_eq!(answer.get(9..12), Some(expected), "{target} {answer}");
    }
}
