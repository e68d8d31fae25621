//! Logs over real sockets: what a line says, how it is escaped, and where it goes.

use crate::bed;
use crate::bed::{apply, start, talk};
use crate::opentelemetry::LOG;
use engine::Engine;
use model::policy::{Access, Body, Condition, Errors, Logging, Policy, Retries};
use model::{
    Backend, Configuration, Global, Kind, Location, LogFormat, LogTarget, Logs, Origin, ServerName,
    ServiceRef, Syslog, Template, UpstreamId,
};
use proxy::Native;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// An upstream that gives each connection one answer.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = tcp.read(&mut buffer).await;
            let answer = b"HTTP/1.1 200 OK\r\nX-Up: a \"b\"\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
            let _ = tcp.write_all(answer).await;
        }
    });
    address
}

fn location(path: &str, logging: Logging) -> Arc<Location> {
    let policy = Arc::new(Policy { logging, ..Policy::default() });
    let service = ServiceRef { namespace: "demo".into(), name: "echo".into(), port: "80".into() };
    Arc::new(Location {
        service: Some(service.into()),
        origin: Some(Origin::new(Kind::Ingress, "demo", "web").into()),
        ..bed::location(path, Backend::Upstream(UpstreamId::new(bed::MAIN)), policy)
    })
}

fn configuration(endpoint: SocketAddr, global: Global) -> Configuration {
    let mut configuration = bed::with_global(endpoint, global);
    let quiet = Logging { access: false, ..Logging::default() };
    let server = Arc::make_mut(&mut configuration.servers[&ServerName::new("a.test")]);
    server.locations = vec![location("/", Logging::default()), location("/quiet", quiet)];
    configuration
}

async fn get(native: &Native, target: &str, headers: &str) -> String {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{headers}\r\n");
    talk(native, request.as_bytes()).await
}

fn global(access: LogTarget, format: &str) -> Global {
    let template = Template::parse(format).expect("known variables");
    Global {
        logs: Logs { access, ..Logs::default() },
        log_format: LogFormat { template, ..LogFormat::default() },
        ..Global::default()
    }
}

fn file(path: &Path) -> LogTarget {
    LogTarget::File(path.to_str().expect("it is text").to_owned())
}

/// The lines of a file once the engine has ended, which is when all of them are there.
async fn lines(native: Arc<Native>, path: &Path) -> Vec<String> {
    native.drain(Duration::from_secs(5)).await;
    let text = std::fs::read_to_string(path).expect("the log is a file");
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_line_says_what_nginx_would_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let endpoint = upstream().await;
    let format = Global::default().log_format.template.to_string();
    let native = start(&configuration(endpoint, global(file(&path), &format))).await;
    get(&native, "/x?a=1", "User-Agent: \"q\"\\\tend\r\nX-Request-ID: id-1\r\nReferer:\r\n").await;
    talk(&native, b"\x16\x03\x01\xff\x80 \"TLS\r\n\r\n").await;
    get(&native, "/none", "X-Request-ID: id-2\r\n").await;
    let lines = lines(native, &path).await;
    let fields = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    let first = fields(&lines[0]);
    assert_eq!(first[..3], ["127.0.0.1", "-", "-"], "{lines:?}");
    assert!(
        lines[0].contains("] \"GET /x?a=1 HTTP/1.1\" 200 5 \"\" \"\\x22q\\x22\\x5C\\x09end\" ")
    );
    let tail = format!(" [demo-echo-80] [] {endpoint} 5 ");
    assert!(lines[0].contains(&tail) && lines[0].ends_with(" 200 id-1"), "{}", lines[0]);
    assert!(lines[1].contains("] \"\\x16\\x03\\x01\\xFF\\x80 \\x22TLS\" 400 "), "{}", lines[1]);
    assert!(
        lines[1].contains(" \"-\" \"-\" ") && lines[1].contains(" [] [] - - - - "),
        "{}",
        lines[1]
    );
    assert_eq!(fields(&lines[1]).last().map(String::len), Some(32), "{}", lines[1]);
    assert!(lines[2].contains(" 200 5 \"-\" \"-\" "), "{}", lines[2]);
}

#[tokio::test]
async fn a_line_about_what_is_no_request_tells_of_no_method() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let format = "$request_method $server_protocol $request_uri $host $status";
    let native = start(&configuration(upstream().await, global(file(&path), format))).await;
    talk(&native, b"\x16\x03\x01\x00\x05hello\r\n\r\n").await;
    talk(&native, b"TRACE /t HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    get(&native, "/", "").await;
    let wanted = ["- - - _ 400", "TRACE HTTP/1.1 /t a.test 405", "GET HTTP/1.1 / a.test 200"];
    assert_eq!(lines(native, &path).await, wanted);
}

#[tokio::test]
async fn pages_of_an_error_backend_have_a_line_though_their_location_has_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let endpoint = upstream().await;
    let mut next = configuration(endpoint, global(file(&path), "$request_uri $status"));
    let errors = Errors {
        statuses: BTreeSet::from([200]),
        intercept: true,
        backend: Some(UpstreamId::new(bed::MAIN)),
        of_all: false,
    };
    let logging = Logging { access: false, ..Logging::default() };
    let policy = Policy { logging, errors: Some(errors), ..Policy::default() };
    let backend = Backend::Upstream(UpstreamId::new(bed::MAIN));
    let paged = bed::location("/paged", backend, Arc::new(policy));
    let server = Arc::make_mut(&mut next.servers[&ServerName::new("a.test")]);
    server.locations.push(Arc::new(paged));
    let native = start(&next).await;
    for target in ["/quiet", "/paged", "/"] {
        get(&native, target, "").await;
    }
    assert_eq!(lines(native, &path).await, ["/paged 200", "/ 200"]);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_escaped_as_they_came_and_head_is_told_the_length_of_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let global = global(file(&path), "$http_user_agent");
    let native = start(&configuration(upstream().await, global)).await;
    let request =
        b"HEAD / HTTP/1.1\r\nHost: none.test\r\nUser-Agent: caf\xe9\r\nConnection: close\r\n\r\n";
    let answer = talk(&native, request).await;
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("\r\nContent-Length: 146\r\n"));
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    assert_eq!(lines(native, &path).await, ["caf\\xE9"]);
}

#[tokio::test]
async fn no_request_moves_a_cursor_or_turns_a_line_of_the_error_log() {
    let log = LOG.clone();
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let endpoint = closed.local_addr().expect("bound");
    drop(closed);
    let deny = std::iter::once("127.0.0.0/8".parse().expect("a network")).collect();
    let denied = Policy { access: Access { deny, ..Access::default() }, ..Policy::default() };
    for (policy, status, name) in
        [(Policy::default(), " 502 ", "/failed-marked"), (denied, " 403 ", "/refused-marked")]
    {
        let native = start(&bed::configuration(&[(bed::MAIN, vec![endpoint])], policy)).await;
        let mut request = format!("GET {name}").into_bytes();
        request.extend(b"\xc2\x9b31mRED\xe2\x80\xae\xe2\x80\xa8\xc2\x85X HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let answer = talk(&native, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1{status}")), "{answer}");
        let lines = log.with(name).concat();
        let written = r"\u{9b}31mRED\u{202e}\u{2028}\u{85}X";
        assert!(lines.contains(&format!("{name}{written}")), "{lines:?}");
    }
}

#[tokio::test]
async fn what_is_refused_is_logged_as_far_as_it_could_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let format = "$status $request|$host|$server_name|$uri|$args|$http_user_agent|$sent_http_content_type|$req_id";
    let native = start(&configuration(upstream().await, global(file(&path), format))).await;
    let long = "x".repeat(9000);
    let known = "Host: a.test\r\nUser-Agent: me\r\nX-Request-ID: id\r\n";
    let cut =
        format!("GET /%61?b HTTP/1.1\r\n{known}A: {long}\r\nB: {long}\r\nC: {long}\r\nD: {long}");
    for (request, page) in [
        (format!("GET /%61?b HTTP/1.1\r\n{known}Cookie: {long}\r\n\r\n"), 226),
        (cut, 226),
        (format!("GET /%61?b HTTP/1.1\r\n{known}A : b\r\n\r\n"), 150),
        (format!("HEAD /%61?b HTTP/1.1\r\n{known}Content-Length: x\r\n\r\n"), 150),
    ] {
        let answer = talk(&native, request.as_bytes()).await;
        let length = format!("Content-Length: {page}\r\n");
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n") && answer.contains(&length));
        let told = "<center>Request Header Or Cookie Too Large</center>";
        assert_eq!(answer.contains(told), page == 226, "{answer}");
        assert_eq!(answer.ends_with("\r\n\r\n"), request.starts_with("HEAD"), "{answer}");
    }
    talk(&native, b"GET /a HTTP/1.1\r\nA : b\r\n\r\n").await;
    talk(&native, b"nothing\r\n\r\n").await;
    let line = |method| format!("400 {method} /%61?b HTTP/1.1|a.test|a.test|/a|b|me|text/html|id");
    let lines = lines(native, &path).await;
    assert_eq!(lines[..3], [line("GET"), line("GET"), line("GET")]);
    assert_eq!(lines[3], line("HEAD"));
    let nobody = "400 GET /a HTTP/1.1|_|-|/a|-|-|text/html|";
    assert!(lines[4].starts_with(nobody), "{}", lines[4]);
    assert!(lines[5].starts_with("400 nothing|_|-|-|-|-|text/html|"), "{}", lines[5]);
}

#[tokio::test]
async fn who_is_blocked_is_logged_with_path_and_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let mut global = global(file(&path), "$status|$host|$server_name|$uri");
    global.block.user_agents.values.insert("bad".to_owned());
    let native = start(&configuration(upstream().await, global)).await;
    get(&native, "/a/../%62?c", "User-Agent: bad\r\n").await;
    assert_eq!(lines(native, &path).await, ["403|a.test|a.test|/b"]);
}

#[tokio::test]
async fn variables_have_the_values_of_request_answer_and_ingress() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let endpoint = upstream().await;
    let format = "$request_method|$uri|$args|$is_args|$arg_q|$cookie_c|$http_x_own|$host|$scheme|$https|\
        $namespace/$ingress_name/$service_name:$service_port$location_path|$upstream_http_x_up|$sent_http_x_up|\
        $proxy_host:$proxy_port|$server_protocol|$status|$upstream_status|$upstream_cache_status|$ssl_protocol|$gzip_ratio";
    let mut global = global(file(&path), format);
    global.hide_headers.insert("x-up".to_owned());
    let native = start(&configuration(endpoint, global)).await;
    get(&native, "/a%20b?q=1&r", "Cookie: b=1; c=2\r\nX-Own: é\r\n").await;
    get(&native, "/", "").await;
    let lines = lines(native, &path).await;
    assert_eq!(
        lines[0],
        "GET|/a b|q=1&r|?|1|2|\\xC3\\xA9|a.test|http||demo/web/echo:80/|a \\x22b\\x22|-|\
         demo-echo-80:80|HTTP/1.1|200|200|-|-|-"
    );
    assert!(lines[1].starts_with("GET|/|-||-|-|-|a.test|http||demo/web/echo:80/|"), "{}", lines[1]);
}

/// A host whose Service is asked by its address, whose 404 have another page.
fn with_pages(main: SocketAddr, pages: SocketAddr, global: Global) -> Configuration {
    let pages_id = UpstreamId::new("custom-default-backend-demo-pages");
    let errors = Errors {
        statuses: [404].into_iter().collect(),
        intercept: true,
        backend: Some(pages_id.clone()),
        of_all: false,
    };
    let by_address = "cluster-ip:demo/echo:80";
    let upstreams = [(by_address, vec![main]), (pages_id.as_str(), vec![pages])];
    let mut configuration = bed::configuration(&upstreams, Policy::default());
    let policy = Policy { errors: Some(errors), ..Policy::default() };
    bed::put_host(&mut configuration, "a.test", &UpstreamId::new(by_address), policy);
    Configuration { global: Arc::new(global), ..configuration }
}

#[tokio::test]
async fn upstreams_are_called_as_there_and_an_error_page_names_its_own() {
    let whole = bed::is_whole;
    let (main, _main) = bed::upstream(bed::answer("404 None", "", "gone"), whole).await;
    let (pages, _pages) = bed::upstream(bed::answer("200 OK", "", "page"), whole).await;
    let fine = upstream().await;
    let format = "$proxy_upstream_name|$proxy_host|$upstream_addr|$upstream_status|$upstream_response_length";
    let (mut found, folder) = (Vec::new(), tempfile::tempdir().expect("a folder"));
    for (name, endpoint) in [("fine.log", fine), ("gone.log", main)] {
        let path = folder.path().join(name);
        let native = start(&with_pages(endpoint, pages, global(file(&path), format))).await;
        get(&native, "/", "").await;
        found.extend(lines(native, &path).await);
    }
    let paged =
        format!("custom-default-backend-demo-pages|demo-echo-80|{main} : {pages}|404 : 200|0 : 4");
    assert_eq!(found, [format!("demo-echo-80|demo-echo-80|{fine}|200|5"), paged]);
}

#[tokio::test]
async fn the_length_of_an_answer_that_nobody_gets_is_nothing() {
    let whole = bed::is_whole;
    let sorry = bed::answer("503 Sorry", "", "not now");
    let ((one, _one), (two, _two)) =
        (bed::upstream(sorry.clone(), whole).await, bed::upstream(sorry, whole).await);
    let (folder, mut conditions) = (tempfile::tempdir().expect("a folder"), BTreeSet::new());
    conditions.insert(Condition::Status(503));
    let path = folder.path().join("access.log");
    let policy =
        Policy { retries: Retries { conditions, ..Retries::default() }, ..Policy::default() };
    let global = global(file(&path), "$upstream_status|$upstream_response_length");
    let configuration = bed::configuration(&[(bed::MAIN, vec![one, two])], policy);
    let native = start(&Configuration { global: Arc::new(global), ..configuration }).await;
    let got = get(&native, "/", "").await;
    assert!(got.ends_with("not now"), "{got}");
    assert_eq!(lines(native, &path).await, ["503, 503, 503|0, 0, 7"]);
}

#[tokio::test]
async fn a_question_to_an_authenticator_has_a_line_where_that_is_asked_for() {
    let whole = bed::is_whole;
    for (status, is_asked) in [("200 OK", true), ("401 Unauthorized", true), ("200 OK", false)] {
        let (auth, _auth) = bed::upstream(bed::answer(status, "", "no"), whole).await;
        let (main, folder) = (upstream().await, tempfile::tempdir().expect("a folder"));
        let path = folder.path().join("access.log");
        let id = UpstreamId::new("auth");
        let asks = bed::authenticator("auth", Template::default(), id);
        let policy = Policy { auth_external: Some(asks.into()), ..Policy::default() };
        let upstreams = [(bed::MAIN, vec![main]), ("auth", vec![auth])];
        let format = "$request $status $body_bytes_sent [$proxy_upstream_name] $upstream_addr \
            $upstream_response_length $upstream_status";
        // The usual line is written in another way.
        let usual = Global::default().log_format.template.to_string();
        for format in [format, &usual] {
            let mut global = global(file(&path), format);
            global.logs.auth_access = is_asked;
            let global = Arc::new(global);
            let configuration = bed::configuration(&upstreams, policy.clone());
            let native = start(&Configuration { global, ..configuration }).await;
            get(&native, "/x", "").await;
            native.drain(Duration::from_secs(5)).await;
        }
        let code = &status[..3];
        let question = format!("GET /x HTTP/1.1 {code} 0 [demo-echo-80] {auth} 0 {code}");
        let text = std::fs::read_to_string(&path).expect("the log is a file");
        let found: Vec<&str> = text.lines().collect();
        assert_eq!(found.len(), if is_asked { 4 } else { 2 }, "{found:?}");
        assert_eq!(found[0] == question, is_asked, "{found:?}");
        let request = if is_asked { found[1] } else { found[0] };
        let main = format!("GET /x HTTP/1.1 200 5 [demo-echo-80] {main} 5 200");
        assert_eq!(request == main, code == "200", "{found:?}");
        if is_asked {
            let middle = format!("\"GET /x HTTP/1.1\" {code} 0 \"-\" \"-\" ");
            let end = format!("[demo-echo-80] [] {auth} 0 ");
            assert!(found[2].contains(&middle) && found[2].contains(&end), "{found:?}");
        }
    }
}

#[tokio::test]
async fn upstream_and_server_have_the_names_that_they_have_when_the_answer_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let format = "$status|$proxy_upstream_name|$server_name";
    let mut configuration = configuration(upstream().await, global(file(&path), format));
    let small = Body { max_size: Some(1), ..Body::default() };
    let small = Arc::new(Policy { body: small, ..Policy::default() });
    let with = |path: &str, policy: &Arc<Policy>, backend: Option<&str>| {
        let denied = backend.map(|why| Backend::Denied(why.to_owned()));
        let location = Location::clone(&location(path, Logging::default()));
        let backend = denied.unwrap_or_else(|| location.backend.clone());
        Arc::new(Location { policy: policy.clone(), backend, ..location })
    };
    let usual = Arc::new(Policy::default());
    let server = Arc::make_mut(&mut configuration.servers[&ServerName::new("a.test")]);
    server.locations.push(with("/small", &small, None));
    server.locations.push(with("/deep/", &usual, None));
    server.locations.push(with("/closed", &usual, Some("its Secret is not there")));
    server.app_root = Some(Template::parse("/app").expect("no variables"));
    server.www = Some(ServerName::new("www.a.test"));
    let native = start(&configuration).await;
    for target in ["/", "/deep", "/deep/x", "/closed"] {
        get(&native, target, "").await;
    }
    let body =
        b"POST /small HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab";
    talk(&native, body).await;
    talk(&native, b"GET /x HTTP/1.1\r\nHost: www.a.test\r\nConnection: close\r\n\r\n").await;
    let found = lines(native, &path).await;
    assert_eq!(
        found,
        [
            "302|-|a.test",
            "301|-|a.test",
            "200|demo-echo-80|a.test",
            "503|demo-echo-80|a.test",
            "413|-|a.test",
            "308||www.a.test",
        ]
    );
}

#[tokio::test]
async fn json_and_raw_lines_are_escaped_as_they_say() {
    let format = r#"{"own":"$http_x_own","referer":"$http_referer"}"#;
    for (json, raw, expected) in [
        (true, false, r#"{"own":"a\"b\\\té","referer":""}"#),
        (false, true, "{\"own\":\"a\"b\\\té\",\"referer\":\"\"}"),
        // Of both, no escaping counts.
        (true, true, "{\"own\":\"a\"b\\\té\",\"referer\":\"\"}"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let mut global = global(file(&path), format);
        (global.log_format.json, global.log_format.unescaped) = (json, raw);
        let native = start(&configuration(upstream().await, global)).await;
        get(&native, "/", "X-Own: a\"b\\\té\r\n").await;
        assert_eq!(lines(native, &path).await, [expected], "json {json}, raw {raw}");
    }
}

#[tokio::test]
async fn what_nobody_wants_to_read_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let mut global = global(file(&path), "$request_uri");
    global.skip_access_log.insert("/health?deep".to_owned());
    global
        .skip_access_log_patterns
        .push(model::Pattern::new("^/static/", false).expect("a pattern"));
    let native = start(&configuration(upstream().await, global)).await;
    for target in ["/quiet/x", "/Health?deep", "/static/a.css", "/health", "/"] {
        get(&native, target, "").await;
    }
    assert_eq!(lines(native, &path).await, ["/health", "/"]);
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, moved) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let before = configuration(upstream().await, global(file(&path), "$request_uri"));
    let native = start(&before).await;
    get(&native, "/one", "").await;
    until_there(&path, "/one\n").await;
    std::fs::rename(&path, &moved).expect("moved");
    native.reopen_logs();
    get(&native, "/two", "").await;
    until_there(&path, "/two\n").await;
    assert_eq!(std::fs::read_to_string(&moved).expect("it is still there"), "/one\n");
    // Another path counts from the next configuration on.
    let other = folder.path().join("other.log");
    let next = configuration(upstream().await, global(file(&other), "$request_uri"));
    apply(&native, &before, &next).await;
    get(&native, "/three", "").await;
    assert_eq!(lines(native, &other).await, ["/three"]);
}

/// Waits until a file holds this text; the writer needs no more than a moment.
async fn until_there(path: &Path, text: &str) {
    let holds = || std::fs::read_to_string(path).is_ok_and(|held| held == text);
    let look = || std::future::ready(holds().then_some(()));
    let waited = testkit::eventually(bed::PATIENCE, look).await;
    assert!(waited.is_some(), "{} never held {text:?}", path.display());
}

#[tokio::test]
async fn a_path_that_cannot_be_opened_stops_nothing() {
    let target = LogTarget::File("/proc/no-such-folder/access.log".to_owned());
    let native = start(&configuration(upstream().await, global(target, "$status"))).await;
    assert!(get(&native, "/", "").await.starts_with("HTTP/1.1 200"));
    native.drain(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn syslog_gets_a_datagram_for_each_line() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    server.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    let port = server.local_addr().expect("bound").port();
    let syslog = Syslog::new("127.0.0.1".to_owned(), port);
    let own = Syslog { nohostname: true, tag: "edge".to_owned(), facility: 16, ..syslog.clone() };
    for (syslog, begin, middle) in [(syslog, "<190>", " nginx: "), (own, "<134>", " edge: ")] {
        let mut global = global(LogTarget::Syslog(syslog.clone()), "$request_uri");
        global.logs.error = LogTarget::Syslog(syslog);
        let native = start(&configuration(upstream().await, global)).await;
        get(&native, "/one", "").await;
        let line = received(&server);
        assert!(line.starts_with(begin) && line.ends_with(&format!("{middle}/one")), "{line}");
        // `Mmm dd hh:mm:ss`, the day filled up with a space.
        let time = &line[5..20];
        assert!(time.as_bytes()[3] == b' ' && time.as_bytes()[9] == b':', "{line}");
        native.log_error(3, "it broke\n".to_owned());
        let line = received(&server);
        assert!(line.ends_with(&format!("{middle}it broke")), "{line}");
        assert_eq!(line.starts_with("<187>"), begin == "<190>", "{line}");
        native.drain(Duration::from_secs(5)).await;
    }
}

fn received(server: &UdpSocket) -> String {
    let mut buffer = [0; 4096];
    let count = server.recv(&mut buffer).expect("a datagram");
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}
