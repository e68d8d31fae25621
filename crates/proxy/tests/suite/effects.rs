//! What settings of snippets do to requests and answers, over real sockets.

use crate::bed::{
    self, MAIN, answering, configuration, put_host, put_upstream, read_until, start, talk, upstream,
};
use model::policy::{AuthBasic, AuthExternal, AuthScheme, Password, Policy, Users};
use model::snippet::GlobalScope;
use model::{Configuration, Global, Template};
use proxy::Native;
use snippet::{Context, Names, Snippet};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Up: yes\r\nX-Secret: 1\r\n\r\nok";

/// What a location's snippet and an `http-snippet` mean together.
fn understood(location: &str, http: &str) -> (Policy, GlobalScope) {
    let snippets = [(Context::Location, location), (Context::Http, http)]
        .map(|(place, text)| Snippet::parse(place, text).expect("the test writes a snippet"));
    let mut names = Names::default();
    snippets.iter().for_each(|snippet| snippet.declare(&mut names));
    let [location, http] =
        snippets.map(|snippet| snippet.understand(&names).expect("it can be understood"));
    (Policy { snippet: Some(Arc::new(location.scope)), ..Policy::default() }, http.http)
}

/// Host `a.test` with a `configuration-snippet`, in front of `endpoint`.
fn with(text: &str, endpoint: SocketAddr) -> Configuration {
    configuration(&[(MAIN, vec![endpoint])], understood(text, "").0)
}

async fn get(native: &Native, target: &str, fields: &str) -> String {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    talk(native, request.as_bytes()).await
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or_default()
}

#[tokio::test]
async fn headers_of_answers_whoever_made_them() {
    let (address, _seen) = answering(OK).await;
    let text =
        "more_set_headers 'X-A: 1' 'X-B: $arg_b' 'Content-Length: 9' 'Transfer-Encoding: chunked';
        add_header X-C $uri; add_header X-D 2 always; proxy_hide_header X-Secret;
        deny 192.0.2.1; if ($arg_deny) { more_set_headers 'X-If: 1'; }";
    let native = start(&with(text, address)).await;
    let answer = get(&native, "/a%0d%0aX-Forged:%20b?b=c", "").await;
    let expected = "X-Up: yes\r\nX-A: 1\r\nX-B: c\r\nX-C: /a%0D%0AX-Forged: b\r\nX-D: 2\r\n";
    assert!(answer.contains(expected), "{answer}");
    assert!(answer.ends_with("Content-Length: 2\r\nConnection: close\r\n\r\nok"), "{answer}");
    assert!(!answer.contains("X-Secret") && !answer.contains("chunked"), "{answer}");
    let entered = get(&native, "/?deny=1", "").await;
    assert!(entered.contains("X-A: 1\r\n") && entered.contains("X-If: 1\r\n"), "{entered}");

    let (address, _seen) = answering(OK).await;
    let closed = "more_set_headers 'X-A: 1'; add_header X-B 1; add_header X-C 1 always; deny all;";
    let native = start(&with(closed, address)).await;
    let answer = get(&native, "/", "").await;
    assert_eq!(status(&answer), "403");
    assert!(answer.contains("X-A: 1\r\nX-C: 1\r\n") && !answer.contains("X-B"), "{answer}");
}

#[tokio::test]
async fn an_answer_whose_headers_exceed_the_bounds_fails_and_no_other_one() {
    let (address, _seen) = answering(OK).await;
    let long = "$request_uri".repeat(40);
    let text = format!("more_set_headers 'X-A: {long}';");
    let native = start(&with(&text, address)).await;
    let answer = get(&native, &format!("/{}", "x".repeat(2000)), "").await;
    assert_eq!(status(&answer), "500");
    assert!(!answer.contains("X-A"), "{answer}");
    assert_eq!(status(&get(&native, "/x", "").await), "200");
}

#[tokio::test]
async fn upstreams_are_told_what_snippets_say_and_no_framing_is_forged() {
    let (address, mut seen) = answering(OK).await;
    let text = "proxy_set_header X-Real-IP $http_x_mine; proxy_set_header X-Gone '';
        proxy_set_header Host $http_x_host; proxy_set_header Content-Length 7;
        proxy_set_header Transfer-Encoding chunked; proxy_set_header Connection upgrade;
        proxy_set_header Upgrade h2c; proxy_set_header X-Line $uri;
        more_set_input_headers 'X-In: $http_x_mine' 'X-Fixed: 1' 'Transfer-Encoding: chunked';
        more_clear_input_headers 'X-Drop*';";
    let native = start(&with(text, address)).await;
    let fields =
        "X-Mine: me\r\nX-Gone: 1\r\nX-Drop-A: 1\r\nX-Fixed: theirs\r\nX-Host: b.test:81\r\n";
    get(&native, "/%0aX-Forged:1", fields).await;
    let request = seen.recv().await.expect("the upstream was asked");
    assert!(request.starts_with("GET /%0aX-Forged:1 HTTP/1.1\r\nHost: b.test:81\r\n"), "{request}");
    for line in ["X-Real-IP: me", "X-Line: /%0AX-Forged:1", "X-In: me", "X-Fixed: 1", "X-Mine: me"]
    {
        assert_eq!(request.matches(&format!("\r\n{line}\r\n")).count(), 1, "{line} in {request}");
    }
    assert!(request.contains("\r\nX-Forwarded-For: 127.0.0.1\r\n"), "{request}");
    let lower = request.to_ascii_lowercase();
    for name in
        ["x-gone", "x-drop", "content-length", "transfer-encoding", "upgrade", "connection:"]
    {
        assert!(!lower.contains(&format!("\r\n{name}")), "{name} in {request}");
    }
    get(&native, "/", "X-Host: b.test/evil\r\n").await;
    let request = seen.recv().await.expect("the upstream was asked");
    assert!(request.contains("\r\nHost: a.test\r\n"), "{request}");
}

#[tokio::test]
async fn another_method_and_another_body_keep_both_sides_whole() {
    let (address, mut seen) =
        upstream(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec(), |read| {
            read.ends_with(b"\r\n\r\n")
        })
        .await;
    let native = start(&with("proxy_method HEAD; proxy_pass_request_body off;", address)).await;
    let request =
        b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let answer = talk(&native, request).await;
    assert!(answer.contains("\r\nContent-Length: 0\r\n"), "{answer}");
    let seen = seen.recv().await.expect("the upstream was asked");
    assert!(seen.starts_with(b"HEAD / ") && !seen.ends_with(b"hello"));

    let (address, mut seen) = answering(OK).await;
    let native = start(&with("proxy_set_body \"$request_method+$arg_x\";", address)).await;
    let answer = get(&native, "/?x=y", "").await;
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    let request = seen.recv().await.expect("the upstream was asked");
    assert!(request.contains("\r\nContent-Length: 5\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\nGET+y"), "{request}");
}

#[tokio::test]
async fn limits_count_by_key_and_survive_a_change() {
    let (address, _seen) = answering(OK).await;
    let http = "limit_req_zone $http_x_key zone=a:1m rate=1r/m; limit_req_zone $http_none zone=b:1m rate=1r/m;";
    let text = "limit_req zone=a burst=1 nodelay; limit_req zone=b; limit_req_status 429;
        add_header X-Said $limit_req_status always;";
    let (policy, http) = understood(text, http);
    let mut configuration = configuration(&[(MAIN, vec![address])], policy.clone());
    let global = Global { http_snippet: Some(Arc::new(http)), ..Global::default() };
    configuration.global = Arc::new(global);
    let native = start(&configuration).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let answer = get(&native, "/", "X-Key: me\r\n").await;
        statuses.push((status(&answer).to_owned(), answer.contains("X-Said: PASSED\r\n")));
    }
    let expected = [("200", true), ("200", true), ("429", false)];
    assert_eq!(statuses, expected.map(|(status, passed)| (status.to_owned(), passed)));
    assert_eq!(status(&get(&native, "/", "X-Key: you\r\n").await), "200");
    for _ in 0..3 {
        assert_eq!(status(&get(&native, "/", "").await), "200");
    }
    let mut next = configuration.clone();
    put_host(&mut next, "b.test", &model::UpstreamId::new(MAIN), policy);
    bed::apply(&native, &configuration, &next).await;
    assert_eq!(status(&get(&native, "/", "X-Key: me\r\n").await), "429");
}

#[tokio::test]
async fn a_place_is_held_until_the_answer_is_at_its_end() {
    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nab";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (text, zone) =
        ("limit_conn c 1; limit_conn_status 429;", "limit_conn_zone $http_x_key zone=c:1m;");
    let (policy, http) = understood(text, zone);
    let mut configuration = configuration(&[(MAIN, vec![address])], policy);
    configuration.global =
        Arc::new(Global { http_snippet: Some(Arc::new(http)), ..Global::default() });
    let native = start(&configuration).await;
    let mut first = bed::connect(&native).await;
    first.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Key: me\r\n\r\n").await.expect("sent");
    let (mut upstream, _) = listener.accept().await.expect("the upstream is asked");
    upstream.write_all(answer).await.expect("half of an answer");
    read_until(&mut first, "\r\n\r\nab").await;
    assert_eq!(status(&get(&native, "/", "X-Key: me\r\n").await), "429");
    upstream.write_all(b"cde").await.expect("the other half");
    read_until(&mut first, "cde").await;
    let again = get(&native, "/", "X-Key: me\r\n");
    let answering = async {
        let (mut upstream, _) = listener.accept().await.expect("the upstream is asked");
        upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.expect("sent");
        upstream
    };
    let (answer, _upstream) = tokio::join!(again, answering);
    assert_eq!(status(&answer), "200");
}

#[tokio::test]
async fn real_addresses_rules_and_methods_that_are_excepted() {
    let (address, mut seen) = answering(OK).await;
    let text = "set_real_ip_from 127.0.0.0/8; real_ip_header CF-Connecting-IP;
        deny 203.0.113.7; limit_except GET { deny all; } if ($request_method != GET) { return 204; }
        if ($request_method = HEAD) { return 204; }";
    let native = start(&with(text, address)).await;
    assert_eq!(status(&get(&native, "/", "CF-Connecting-IP: 203.0.113.7\r\n").await), "403");
    assert_eq!(status(&get(&native, "/", "CF-Connecting-IP: 203.0.113.8\r\n").await), "200");
    let request = seen.recv().await.expect("the upstream was asked");
    assert!(request.contains("\r\nX-Real-IP: 203.0.113.8\r\n"), "{request}");
    for (method, expected) in [("HEAD", "204"), ("DELETE", "403"), ("POST", "403"), ("get", "403")]
    {
        let request = format!("{method} / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let answer = talk(&native, request.as_bytes()).await;
        assert_eq!(status(&answer), expected, "{method}: {answer}");
    }
}

fn authenticator(configuration: &mut Configuration, at: SocketAddr, text: &str) -> AuthExternal {
    let scope = snippet::understand(Context::Auth, text).expect("the test writes a snippet").scope;
    let target = Template::parse("/auth").expect("no variables");
    let upstream = put_upstream(configuration, "auth", vec![at]);
    let snippet = Some(Arc::new(scope));
    AuthExternal { snippet, ..bed::authenticator("auth", target, upstream) }
}

#[tokio::test]
async fn authenticators_are_told_skipped_and_heard() {
    let (address, mut seen) = answering(OK).await;
    let (asked, mut questions) = answering(
        b"HTTP/1.1 200 OK\r\nX-Auth-User: al\r\nSet-Cookie: s=1; Path=/\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, MAIN, vec![address]);
    let auth = "proxy_set_header X-Uri $request_uri; proxy_set_header X-Gone '';
        proxy_pass_request_headers off; proxy_read_timeout 5s;
        if ($request_uri = /open) { return 200; } if ($request_uri = /shut) { return 403; }
        if ($request_uri = /odd) { return 418; }";
    let auth_external = Some(authenticator(&mut configuration, asked, auth).into());
    let text =
        "auth_request_set $who $upstream_http_x_auth_user; auth_request_set $s $upstream_cookie_s;
        proxy_set_header X-Who \"$who $s $upstream_status\";";
    let policy = Policy { auth_external, ..understood(text, "").0 };
    put_host(&mut configuration, "a.test", &id, policy.clone());
    let plain = Policy { snippet: None, ..policy.clone() };
    put_host(&mut configuration, "plain.test", &id, plain);
    let off = Policy { snippet: understood("auth_request off;", "").0.snippet, ..policy };
    put_host(&mut configuration, "off.test", &id, off);
    let native = start(&configuration).await;

    assert_eq!(status(&get(&native, "/x?y", "X-Gone: 1\r\nX-Mine: 1\r\n").await), "200");
    let question = questions.recv().await.expect("the authenticator was asked");
    assert!(question.contains("\r\nX-Uri: /x?y\r\n"), "{question}");
    assert!(!question.contains("X-Gone") && !question.contains("X-Mine"), "{question}");
    let request = seen.recv().await.expect("the upstream was asked");
    assert!(request.contains("\r\nX-Who: al 1 \r\n"), "{request}");
    assert!(request.contains("\r\nX-Gone: 1\r\n"), "{request}");
    for (target, expected) in [("/open", "200"), ("/shut", "403"), ("/odd", "500")] {
        assert_eq!(status(&get(&native, target, "").await), expected, "{target}");
        let plain =
            format!("GET {target} HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&talk(&native, plain.as_bytes()).await), expected, "{target}");
    }
    let off = "GET /shut HTTP/1.1\r\nHost: off.test\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&talk(&native, off.as_bytes()).await), "200");
    assert!(questions.try_recv().is_err(), "nobody else was asked");
}

#[tokio::test]
async fn passwords_may_be_off_have_another_realm_or_close() {
    let (address, _seen) = answering(OK).await;
    let mut configuration = Configuration::default();
    let id = put_upstream(&mut configuration, MAIN, vec![address]);
    let users =
        Arc::new(Users([(b"a".as_slice().into(), Password::Plain(b"b".as_slice().into()))].into()));
    let auth_basic = AuthBasic { scheme: AuthScheme::Basic, realm: "R".to_owned(), users };
    let auth_basic = Some(Arc::new(auth_basic));
    for (host, text, auth_basic) in [
        ("off.test", "auth_basic off;", auth_basic.clone()),
        (
            "realm.test",
            "auth_basic 'to $host'; satisfy any; allow 192.0.2.1; deny all;",
            auth_basic,
        ),
        ("nobody.test", "auth_basic closed;", None),
    ] {
        let policy = Policy { auth_basic, ..understood(text, "").0 };
        put_host(&mut configuration, host, &id, policy);
    }
    let native = start(&configuration).await;
    let ask = async |host: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        talk(&native, request.as_bytes()).await
    };
    assert_eq!(status(&ask("off.test").await), "200");
    let challenged = ask("realm.test").await;
    assert_eq!(status(&challenged), "401");
    assert!(challenged.contains("Basic realm=\"to realm.test\"\r\n"), "{challenged}");
    assert_eq!(status(&ask("nobody.test").await), "403");
}

#[tokio::test]
async fn bodies_are_looked_through_before_they_are_compressed() {
    let page =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"a\"\r\nContent-Length: 30\r\n\r\n\
        <head></head><a href=\"/x\">x</a>";
    let (address, _seen) = answering(&page[..page.len() - 1]).await;
    let text =
        "sub_filter '<head>' '<head><base href=\"/$arg_p/\">'; sub_filter 'href=\"/' 'href=\"';
        sub_filter_once off; gzip on; gzip_min_length 1; limit_rate 1g;";
    let native = start(&with(text, address)).await;
    let answer = get(&native, "/?p=app", "").await;
    assert!(answer.contains("<head><base href=\"/app/\"></head><a href=\"x\">x</a"), "{answer}");
    assert!(!answer.contains("ETag") && !answer.contains("\r\nContent-Length"), "{answer}");
    let packed = get(&native, "/?p=app", "Accept-Encoding: gzip\r\n").await;
    assert!(
        packed.contains("Content-Encoding: gzip\r\n") && !packed.contains("<head>"),
        "{packed}"
    );
}

#[tokio::test]
async fn redirects_and_cookies_of_upstreams_are_rewritten() {
    let moved =
        b"HTTP/1.1 302 Found\r\nLocation: http://app.internal/a\r\nSet-Cookie: s=1; Path=/app\r\n\
        X-Accel-Redirect: /elsewhere\r\nContent-Length: 0\r\n\r\n";
    let (address, _seen) = answering(moved).await;
    let text = "proxy_redirect http://app.internal/ /front/; proxy_cookie_path /app /;
        proxy_cookie_flags s secure; proxy_ignore_headers X-Accel-Redirect;";
    let native = start(&with(text, address)).await;
    let answer = get(&native, "/", "").await;
    assert!(answer.contains("\r\nLocation: http://a.test/front/a\r\n"), "{answer}");
    assert!(answer.contains("\r\nSet-Cookie: s=1; Path=/; Secure\r\n"), "{answer}");
    assert!(!answer.contains("X-Accel"), "{answer}");
}
