//! What snippets make of requests, over real sockets: the order of programs, locations and guards is nginx's.

use crate::bed;
use crate::bed::{MAIN, apply, put_upstream, start, talk};
use model::policy::{Access, Policy, Rewrite};
use model::snippet::Scope;
use model::{
    Backend, Configuration, Global, Kind, Location, Origin, Pattern, Server, ServerName, Template,
};
use proxy::{Native, Question, explain};
use snippet::{Context, Names, Snippet, understand};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An upstream that says 200, or what the field X-Answer asks for, with the head that it got as its body.
pub(crate) async fn upstream(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = Vec::new();
                while let Ok(byte) = tcp.read_u8().await {
                    read.push(byte);
                    if !read.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    let head = String::from_utf8_lossy(&std::mem::take(&mut read)).into_owned();
                    let asked = head.lines().find_map(|line| line.strip_prefix("X-Answer: "));
                    let status = asked.unwrap_or("200 OK").to_owned();
                    let onward = head.lines().find(|line| line.starts_with("X-Accel-Redirect: "));
                    let onward = onward.filter(|_| head.starts_with("GET /onward"));
                    let onward = onward.map(|line| format!("{line}\r\n")).unwrap_or_default();
                    let body = format!("{name}: {head}");
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{onward}\r\n{body}"
                    );
                    let _ = tcp.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    address
}

/// What a snippet means beside an `http-snippet`.
pub(crate) fn scope(place: Context, text: &str, http: &str) -> Arc<Scope> {
    let parse = |place, text| Snippet::parse(place, text).expect("a snippet");
    let (snippet, mut names) = (parse(place, text), Names::default());
    parse(Context::Http, http).declare(&mut names);
    snippet.declare(&mut names);
    let meaning = snippet.understand(&names);
    Arc::new(meaning.unwrap_or_else(|mistakes| panic!("{text}: {mistakes:?}")).scope)
}

/// A host in the making: what its snippets say, and its paths.
#[derive(Default)]
pub(crate) struct Host {
    server: &'static str,
    http: &'static str,
    /// Path, `configuration-snippet` and what else is asked for.
    paths: Vec<(&'static str, &'static str, Policy)>,
    regex: bool,
}

impl Host {
    pub(crate) fn of(server: &'static str, location: &'static str) -> Self {
        Self { server, paths: vec![("/", location, Policy::default())], ..Self::default() }
    }

    pub(crate) fn path(
        mut self,
        path: &'static str,
        snippet: &'static str,
        policy: Policy,
    ) -> Self {
        self.paths.push((path, snippet, policy));
        self
    }

    pub(crate) fn server(self, server: &'static str) -> Self {
        Self { server, ..self }
    }

    /// Its paths are expressions.
    pub(crate) fn of_patterns() -> Self {
        Self { regex: true, ..Self::default() }
    }

    pub(crate) fn http(self, http: &'static str) -> Self {
        Self { http, ..self }
    }

    pub(crate) fn configuration(self, endpoint: SocketAddr) -> Configuration {
        let mut configuration = Configuration::default();
        let id = put_upstream(&mut configuration, MAIN, vec![endpoint]);
        let location = |(path, snippet, policy): &(&str, &str, Policy)| {
            let snippet =
                (!snippet.is_empty()).then(|| scope(Context::Location, snippet, self.http));
            let policy = Arc::new(Policy { snippet, ..policy.clone() });
            let origin = Some(Origin::new(Kind::Ingress, "demo", "x").into());
            let backend = Backend::Upstream(id.clone());
            let whole = self.regex;
            Arc::new(Location { origin, whole, ..bed::location(path, backend, policy) })
        };
        let name = ServerName::new("a.test");
        let server = Server {
            locations: self.paths.iter().map(location).collect(),
            snippet: (!self.server.is_empty())
                .then(|| scope(Context::Server, self.server, self.http)),
            regex: self.regex,
            ..Server::new(name.clone())
        };
        configuration.servers.insert(name, Arc::new(server));
        if !self.http.is_empty() {
            let http = understand(Context::Http, self.http).expect("a snippet").http;
            let http_snippet = Some(Arc::new(http));
            configuration.global = Arc::new(Global { http_snippet, ..Global::default() });
        }
        configuration
    }

    pub(crate) async fn serve(self) -> Arc<Native> {
        let endpoint = upstream("main").await;
        start(&self.configuration(endpoint)).await
    }
}

pub(crate) fn whitelist(network: &str) -> Policy {
    let allow = Some([network.parse().expect("a network")].into_iter().collect());
    Policy { access: Access { allow, ..Access::default() }, ..Policy::default() }
}

/// What a GET for a target with these fields is answered.
pub(crate) async fn get(native: &Native, target: &str, fields: &str) -> String {
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    talk(native, head.as_bytes()).await
}

/// Status, Location and body of the answer in one line; of the upstream's answer its name and the request line.
pub(crate) async fn told(native: &Native, target: &str) -> String {
    brief(&get(native, target, "").await)
}

pub(crate) fn brief(answer: &str) -> String {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return "closed".to_owned() };
    let status = head.split(' ').nth(1).unwrap_or_default();
    let location = head.lines().find_map(|line| line.strip_prefix("Location: "));
    let body =
        if body.starts_with("<html>") { "page" } else { body.lines().next().unwrap_or_default() };
    let body = body.strip_suffix(" HTTP/1.1").or(body.strip_suffix(" HTTP/1.0")).unwrap_or(body);
    [status, location.unwrap_or_default(), body].join(" ").replace("  ", " ").trim().to_owned()
}

#[tokio::test]
async fn return_answers_with_status_text_redirect_or_nothing() {
    let native = Host::of(
        "location = /close { return 444; }
         location = /gone { return 410; }
         location = /empty { return 204; }
         location = /robots.txt { return 200 \"User-agent: *\\n\"; }
         location = /json { default_type application/json; return 503 '{\"a\":1}'; }
         location /away { return 301 https://$host/new$is_args$args; }
         location = /here { return 302 /there; }
         location = /teapot { return 418; }",
        "",
    );
    let native = native.serve().await;
    assert_eq!(get(&native, "/close", "").await, "");
    assert_eq!(told(&native, "/gone").await, "410 page");
    assert_eq!(told(&native, "/empty").await, "204");
    assert!(!get(&native, "/empty", "").await.contains("Content-Type"));
    assert_eq!(told(&native, "/robots.txt").await, "200 User-agent: *");
    assert!(get(&native, "/robots.txt", "").await.contains("Content-Type: text/plain\r\n"));
    assert_eq!(told(&native, "/json").await, "503 {\"a\":1}");
    assert!(get(&native, "/json", "").await.contains("Content-Type: application/json\r\n"));
    assert_eq!(told(&native, "/away?x=1").await, "301 https://a.test/new?x=1 page");
    assert_eq!(told(&native, "/here").await, "302 http://a.test/there page");
    assert_eq!(told(&native, "/teapot").await, "418");
    assert_eq!(told(&native, "/other").await, "200 main: GET /other");
}

#[tokio::test]
async fn bytes_of_a_path_that_are_no_text_go_through_groups_as_they_are() {
    let native = Host::of("rewrite ^/moved/(.*)$ /r/$1 redirect;", "")
        .path("/query", "rewrite ^/query/(.*)$ /r?q=$1 break;", Policy::default())
        .path("/args", "if ($uri ~ ^/args/(.*)$) { set $args \"p=$1\"; }", Policy::default())
        .path(
            "/own",
            "if ($uri ~ ^/own/(.*)$) { set $v $1; } rewrite ^ /r/$v break;",
            Policy::default(),
        );
    let native = native.serve().await;
    // The last one is UTF-8 of a character that stands for a single byte within programs.
    for written in ["%E4", "a%FF.php", "%C3%28", "%F4%8F%BF%A4"] {
        let moved = told(&native, &format!("/moved/{}", written.to_lowercase())).await;
        let expected = if written.contains("%28") { "%C3(" } else { written };
        assert_eq!(moved, format!("302 http://a.test/r/{expected} page"));
        let query = told(&native, &format!("/query/{written}")).await;
        assert_eq!(query, format!("200 main: GET /r?q={expected}"));
        let args = told(&native, &format!("/args/{written}")).await;
        assert_eq!(args, format!("200 main: GET /args/{expected}?p={expected}"));
        let own = told(&native, &format!("/own/{written}")).await;
        assert_eq!(own, format!("200 main: GET /r/{}", expected.replace('%', "%25")));
    }
}

#[tokio::test]
async fn a_break_of_a_tenant_keeps_app_root_from_a_request_and_one_of_the_operator_does_not() {
    let native = async |owner: Option<&str>| {
        let text = "if ($arg_b) { break; } if ($arg_r) { rewrite ^/x$ / last; }";
        let mut configuration = Host::of(text, "").configuration(upstream("main").await);
        let server = configuration.servers.values().next().expect("one host").clone();
        let mut server = Server::clone(&server);
        server.app_root = Some(Template::parse("/app").expect("no variables"));
        if let (Some(owner), Some(snippet)) = (owner, &mut server.snippet) {
            Arc::make_mut(snippet).belong_to(&owner.into());
        }
        configuration.servers.insert(server.name.clone(), Arc::new(server));
        start(&configuration).await
    };
    let (tenants, operators) = (native(Some("demo")).await, native(None).await);
    let root = "302 http://a.test/app page";
    assert_eq!(told(&tenants, "/").await, root);
    assert_eq!(told(&tenants, "/?b=1").await, "200 main: GET /?b=1");
    assert_eq!(told(&tenants, "/x?r=1").await, "200 main: GET /?r=1");
    assert_eq!(told(&operators, "/?b=1").await, root);
}

#[tokio::test]
async fn a_named_location_tells_its_upstream_the_host_that_the_location_before_has_set() {
    let server = "location @n { proxy_pass http://upstream_balancer; }
        location /n { set $proxy_upstream_name demo-main-80; proxy_pass http://upstream_balancer; }";
    let native = Host::of(server, "error_page 404 @n; if ($arg_x) { return 404; }").serve().await;
    let answer = get(&native, "/?x=1", "").await;
    assert!(answer.contains(&format!("\r\nHost: {MAIN}\r\n")), "{answer}");
    let answer = get(&native, "/n", "").await;
    assert!(!answer.contains(&format!("\r\nHost: {MAIN}\r\n")), "{answer}");
}

#[tokio::test]
async fn return_in_the_rewrite_phase_comes_before_guards_and_everything_else_after_them() {
    let closed = || whitelist("192.0.2.0/24");
    let native = Host::default()
        .path("/", "if ($arg_x) { return 200 \"open\"; }", closed())
        .path("/moved", "rewrite ^/moved/(.*)$ /$1 last;", Policy::default())
        .path("/failed", "error_page 405 =200 /; return 405;", Policy::default())
        .path("/named", "error_page 405 =200 @shut; return 405;", Policy::default());
    let native = Host { server: "location @shut { deny all; }", ..native }.serve().await;
    assert_eq!(told(&native, "/").await, "403 page");
    assert_eq!(told(&native, "/?x=1").await, "200 open");
    assert_eq!(told(&native, "/moved/a").await, "403 page", "a rewrite opens no guard");
    assert_eq!(told(&native, "/failed").await, "403 page", "an error page opens no guard");
}

#[tokio::test]
async fn rewrites_change_the_path_and_look_again_for_a_location() {
    let native = Host::of(
        "rewrite ^/server/(.*)$ /b/$1; rewrite ^/last/(.*)$ /b/$1 last;",
        "rewrite ^/one/(.*)$ /two/$1; rewrite ^/two/(.*)$ /three/$1?own=1 break;
         rewrite ^/gone/(.*)$ /b/$1?x=$1? last; rewrite ^/to/(.*)$ https://new.test/$1 permanent;
         rewrite ^/loop/(.*)$ /loop/a$1 last; rewrite ^/next/(.*)$ /b/$1;",
    )
    .path("/b", "return 200 \"b: $uri $args $request_uri\";", Policy::default());
    let native = native.serve().await;
    assert_eq!(told(&native, "/one/a?q=1").await, "200 main: GET /three/a?own=1&q=1");
    assert_eq!(told(&native, "/gone/a?q=1").await, "200 b: /b/a x=a /gone/a?q=1");
    assert_eq!(told(&native, "/to/a?q=1").await, "301 https://new.test/a?q=1 page");
    assert_eq!(told(&native, "/loop/").await, "500 page");
    assert_eq!(told(&native, "/next/a").await, "200 b: /b/a  /next/a".replace("  ", " "));
    assert_eq!(told(&native, "/server/a").await, "200 b: /b/a /server/a");
    assert_eq!(told(&native, "/last/a").await, "200 b: /b/a /last/a");
    assert_eq!(told(&native, "/two%2Fb%20c").await, "200 main: GET /three/b%20c?own=1");
}

#[tokio::test]
async fn a_program_comes_before_rewrite_target_and_break_ends_both() {
    let target = || {
        let pattern = Pattern::new("^/app(/|$)(.*)", true).expect("a pattern");
        let target = Template::parse("/$2").expect("a template");
        Policy { rewrite: Some(Rewrite { pattern, target, prefix: None }), ..Policy::default() }
    };
    let snippet = "rewrite ^(/app)$ $1/ redirect; rewrite ^/app/old/(.*)$ /app/new/$1;
        rewrite ^/app/raw/(.*)$ /kept/$1 break; add_header X-Group $2;";
    let host = Host { regex: true, ..Host::default() }
        .path("/app(/|$)(.*)", snippet, target())
        .path("/", "", Policy::default());
    let native = host.serve().await;
    assert_eq!(told(&native, "/app").await, "302 http://a.test/app/ page");
    assert_eq!(told(&native, "/app/x?q=1").await, "200 main: GET /x?q=1");
    assert_eq!(told(&native, "/app/old/x").await, "200 main: GET /new/x");
    assert_eq!(told(&native, "/app/raw/x").await, "200 main: GET /kept/x");
}

#[tokio::test]
async fn dot_segments_that_a_request_brings_into_a_rewritten_path_lead_nowhere() {
    let to = |pattern, target| {
        let pattern = Pattern::new(pattern, true).expect("a pattern");
        let target = Template::parse(target).expect("a template");
        Policy { rewrite: Some(Rewrite { pattern, target, prefix: None }), ..Policy::default() }
    };
    let native = Host::of_patterns()
        .path("/static(.*)", "", to("^/static(.*)", "/static/$1"))
        .path("/one(.*)", "", to("^/one(.*)", "/$1"))
        .path("/own/(.*)", "", to("^/own/(.*)", "/a/../b/$1"))
        .path("/told(.*)", "rewrite ^/told(.*)$ /told/$1 break;", Policy::default())
        .path("/seek(.*)", "rewrite ^/seek(.*)$ /seek/$1 last;", Policy::default())
        .path("/admin", "return 403;", Policy::default());
    let native = native.serve().await;
    for (target, expected) in [
        ("/static/a", "200 main: GET /static/a"),
        ("/static.x/.y", "200 main: GET /static/.x/.y"),
        ("/static../admin", "400 page"),
        ("/static..%2fadmin", "400 page"),
        ("/static%2e%2e/admin", "400 page"),
        ("/static.", "400 page"),
        ("/one../admin", "400 page"),
        ("/own/x", "200 main: GET /b/x"),
        ("/told/a", "200 main: GET /told/a"),
        ("/told../admin", "400 page"),
        ("/seek../admin", "403 page"),
    ] {
        assert_eq!(told(&native, target).await, expected, "{target}");
    }
}

#[tokio::test]
async fn what_a_path_captures_is_one_argument_of_the_query_that_it_goes_into() {
    let to = |pattern, target| {
        let pattern = Pattern::new(pattern, true).expect("a pattern");
        let target = Template::parse(target).expect("a template");
        Policy { rewrite: Some(Rewrite { pattern, target, prefix: None }), ..Policy::default() }
    };
    let native = Host::of_patterns()
        .path("/old/(.*)", "", to("^/old/(.*)", "/index.php?p=$1"))
        .path("/red/(.*)", "", to("^/red/(.*)", "https://new.test/$1"));
    let native = native.serve().await;
    for (target, expected) in [
        ("/old/x%26admin=1", "200 main: GET /index.php?p=x%26admin=1"),
        (
            "/old/a%26b=c%20d%2Be%23f%25g?z=1",
            "200 main: GET /index.php?p=a%26b=c%20d%2Be%23f%25g&z=1",
        ),
        ("/old/a+b", "200 main: GET /index.php?p=a%2Bb"),
        ("/old/ab%C3%BC", "200 main: GET /index.php?p=ab%C3%BC"),
        ("/old/%FC", "200 main: GET /index.php?p=%FC"),
        ("/old/a&b", "200 main: GET /index.php?p=a&b"),
        ("/red/a%3Fb%26c", "302 https://new.test/a?b%26c page"),
        ("/red/a%3F?z=1", "302 https://new.test/a??z=1 page"),
        ("/red/a/b", "302 https://new.test/a/b page"),
    ] {
        assert_eq!(told(&native, target).await, expected, "{target}");
    }
}

#[tokio::test]
async fn if_blocks_are_places_of_their_own_and_inherit() {
    let native = Host::of(
        "",
        "set $flag 0; if ($http_x_a) { set $flag 1; } if ($http_x_b) { set $flag \"${flag}2\"; }
         if ($flag = 12) { return 200 \"both\"; }
         if ($request_method = DELETE) { return 405; }
         if ($request_uri ~ \"^/c/(?<name>[a-z]+)\") { return 200 \"$name $1\"; }
         error_page 405 = @outer; if ($arg_o) { return 405; }
         if ($arg_i) { error_page 405 = @inner; return 405; }",
    );
    let own = "location @outer { return 200 \"outer\"; } location @inner { return 200 \"inner\"; }";
    let native = Host { server: own, ..native };
    let native = native.serve().await;
    assert_eq!(brief(&get(&native, "/", "X-A: 1\r\nX-B: 1\r\n").await), "200 both");
    assert_eq!(brief(&get(&native, "/", "X-B: 1\r\n").await), "200 main: GET /");
    assert_eq!(told(&native, "/c/abc").await, "200 abc abc");
    assert_eq!(told(&native, "/?o=1").await, "200 outer");
    assert_eq!(told(&native, "/?i=1").await, "200 inner");
}

#[tokio::test]
async fn own_locations_are_chosen_as_nginx_does() {
    let native = Host::of(
        "location = /exact { return 200 \"exact\"; }
         location /pre { return 200 \"prefix\"; location /pre/in { return 200 \"within\"; } }
         location ^~ /final/ { return 200 \"final\"; }
         location ~* \\.php$ { return 200 \"php $uri\"; }
         location ~ ^/group/(\\d+)$ { return 200 \"group $1\"; }
         location @named { return 200 \"named\"; }
         location /hidden { internal; return 200 \"hidden\"; }
         location /empty/ { }",
        "",
    )
    .path(
        "/a",
        "location /a/in { return 200 \"nested\"; } rewrite ^/a/led$ /hidden;",
        Policy::default(),
    )
    .path(
        "/own",
        "internal; if ($uri ~ (in)$) { set $x 1; } location /own/in { return 200 \"within\"; }",
        Policy::default(),
    )
    .path(
        "/own-led",
        "rewrite ^/own-led/in$ /own/in last; rewrite ^ /own/x last;",
        Policy::default(),
    );
    let native = native.serve().await;
    for (target, answer) in [
        ("/exact", "200 exact"),
        ("/exact/", "200 main: GET /exact/"),
        ("/prefix", "200 prefix"),
        ("/pre/in", "200 within"),
        ("/pre/x.PHP", "200 php /pre/x.PHP"),
        ("/final/x.php", "200 final"),
        ("/group/12", "200 group 12"),
        ("/a/in", "200 nested"),
        ("/a/in.php", "200 php /a/in.php"),
        ("/a/x", "200 main: GET /a/x"),
        ("/hidden", "404 page"),
        ("/a/led", "200 hidden"),
        ("/own", "404 page"),
        ("/own/in", "404 page"),
        ("/own-led", "200 main: GET /own/x"),
        ("/own-led/in", "200 within"),
        ("/empty/x", "404 page"),
        ("/@named", "200 main: GET /@named"),
    ] {
        assert_eq!(told(&native, target).await, answer, "{target}");
    }
}

#[tokio::test]
async fn error_pages_word_what_was_made_here_and_what_is_intercepted() {
    let native = Host::of(
        "location @sorry { return 503 \"sorry\"; }
         location = /page { return 200 \"page of $request_uri\"; }
         location @behind { set $proxy_upstream_name demo-echo-80; proxy_pass http://upstream_balancer; }",
        "proxy_intercept_errors on;
         error_page 500 = @sorry; error_page 404 /page; error_page 403 =200 /page;
         error_page 401 https://login.test/?to=$uri; error_page 405 @nowhere;
         error_page 410 = @behind; error_page 402 =418 @sorry;
         if ($arg_s = 403) { return 403; } if ($arg_s = 405) { return 405; } if ($arg_s = 402) { return 402; }",
    )
    .path("/plain", "error_page 500 = @sorry;", Policy::default());
    let native = native.serve().await;
    let answered = async |target: &str, status: &str| {
        brief(&get(&native, target, &format!("X-Answer: {status}\r\n")).await)
    };
    assert_eq!(answered("/", "500 X").await, "503 sorry");
    assert_eq!(answered("/x", "404 X").await, "404 page of /x");
    assert_eq!(told(&native, "/?s=403").await, "200 page of /?s=403");
    assert_eq!(answered("/a", "401 X").await, "302 https://login.test/?to=/a page");
    assert_eq!(told(&native, "/?s=405").await, "500 page");
    assert_eq!(told(&native, "/?s=402").await, "418 sorry");
    assert_eq!(answered("/x", "302 X").await, "302 main: GET /x");
    assert_eq!(answered("/plain", "500 X").await, "500 main: GET /plain", "it is not intercepted");
}

#[tokio::test]
async fn a_status_that_says_no_length_has_none_whatever_the_answer_was_before() {
    let own = "location = /304 { set $proxy_upstream_name demo-other-80; proxy_pass http://upstream_balancer; }";
    let snippet = "error_page 404 =204 /304; error_page 403 =304 /304;
        if ($http_x_fails = 404) { return 404; } if ($http_x_fails = 403) { return 403; }";
    let mut configuration = Host::of(own, snippet).configuration(upstream("main").await);
    let unmodified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n";
    let (other, _seen) = bed::answering(unmodified).await;
    put_upstream(&mut configuration, "demo-other-80", vec![other]);
    let native = start(&configuration).await;
    for (status, shown, says) in [("404", "204", false), ("403", "304", true)] {
        let answer = get(&native, "/", &format!("X-Fails: {status}\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {shown} ")), "{answer}");
        assert_eq!(answer.contains("\r\nContent-Length: 77\r\n"), says, "{answer}");
        let mut client = crate::http2::client(&native).await;
        let (answer, _) =
            crate::http2::send(&mut client, http::Method::GET, &[("x-fails", status)], true);
        let answer = crate::http2::in_time(answer).await.expect("an answer");
        assert_eq!(answer.status().as_str(), shown);
        assert_eq!(answer.headers().contains_key("content-length"), says);
    }
}

#[tokio::test]
async fn the_balancer_leads_to_the_upstream_that_is_named_and_to_nobody_else() {
    let own = "if ($arg_server) { set $proxy_upstream_name demo-other-80; }
        location /up/ { set $proxy_upstream_name demo-other-80; proxy_pass http://upstream_balancer; }
        location /none/ { proxy_pass http://upstream_balancer; }
        location /gone/ { set $proxy_upstream_name demo-gone-80; proxy_pass http://upstream_balancer; }
        location @behind { proxy_pass http://upstream_balancer; }";
    let endpoint = upstream("main").await;
    let snippet = "error_page 405 = @behind; if ($arg_behind) { return 405; }
        if ($arg_up) { set $proxy_upstream_name demo-other-80; }";
    let mut configuration = Host::of(own, snippet).configuration(endpoint);
    put_upstream(&mut configuration, "demo-other-80", vec![upstream("other").await]);
    let native = start(&configuration).await;
    assert_eq!(told(&native, "/up/x?y").await, "200 other: GET /up/x?y");
    assert_eq!(told(&native, "/up").await, "301 http://a.test/up/ page");
    assert_eq!(told(&native, "/none/x").await, "502 page");
    assert_eq!(told(&native, "/gone/x").await, "502 page");
    assert_eq!(told(&native, "/?behind=1").await, "200 main: GET /?behind=1");
    assert_eq!(told(&native, "/?up=1").await, "200 other: GET /?up=1");
    // A location of an Ingress is its own: no server leads its requests elsewhere.
    assert_eq!(told(&native, "/none/x?server=1").await, "200 other: GET /none/x?server=1");
    assert_eq!(told(&native, "/?server=1").await, "200 main: GET /?server=1");
}

#[tokio::test]
async fn a_path_behind_proxy_pass_takes_the_place_of_what_the_location_matched() {
    let own = "location /svc/ { proxy_pass http://web.demo.svc.cluster.local:8080/base/; }
        location /all/ { proxy_pass http://web.demo.svc.cluster.local:8080/as$request_uri; }
        location /moved/ { rewrite ^/moved/(.*)$ /new/$1 break; proxy_pass http://web.demo.svc.cluster.local:8080/base/; }";
    let mut configuration = Host::of(own, "").configuration(upstream("main").await);
    let web = upstream("web").await;
    put_upstream(&mut configuration, "url:demo/web:8080", vec![web]);
    let native = start(&configuration).await;
    assert_eq!(told(&native, "/svc/a%20b?q=1").await, "200 web: GET /base/a%20b?q=1");
    assert_eq!(told(&native, "/all/a?q=1").await, "200 web: GET /as/all/a?q=1");
    assert_eq!(told(&native, "/moved/a?q=1").await, "200 web: GET /new/a?q=1");
}

#[tokio::test]
async fn dot_segments_that_a_request_brings_behind_proxy_pass_lead_nowhere() {
    let own = "location /part { proxy_pass http://web.demo.svc.cluster.local:8080/static/; }
        location /own { proxy_pass http://web.demo.svc.cluster.local:8080/a/../b/; }
        location /asks { proxy_pass http://web.demo.svc.cluster.local:8080/x?of=; }
        location ~ ^/group(.*)$ { proxy_pass http://web.demo.svc.cluster.local:8080/static/$1; }
        location ~ ^/root(.*)$ { proxy_pass http://web.demo.svc.cluster.local:8080/$1; }
        location ~ ^/told(.*)$ { proxy_pass http://web.demo.svc.cluster.local:8080/a/../b/$1; }
        location /all/ { proxy_pass http://web.demo.svc.cluster.local:8080/as$request_uri; }";
    let mut configuration = Host::of(own, "").configuration(upstream("main").await);
    put_upstream(&mut configuration, "url:demo/web:8080", vec![upstream("web").await]);
    let native = start(&configuration).await;
    for (target, expected) in [
        ("/part/a", "200 web: GET /static//a"),
        ("/part.x/.y", "200 web: GET /static/.x/.y"),
        ("/part../admin", "400 page"),
        ("/part..%2fadmin", "400 page"),
        ("/part%2e%2e/admin", "400 page"),
        ("/part.", "400 page"),
        ("/own/x", "200 web: GET /a/../b//x"),
        ("/asks../x", "200 web: GET /x?of=../x"),
        ("/group/a", "200 web: GET /static/a"),
        ("/group../admin", "400 page"),
        ("/group%2e%2e/admin", "400 page"),
        ("/root../admin", "400 page"),
        ("/told/x", "200 web: GET /b/x"),
        ("/x/../all/a", "200 web: GET /as/all/a"),
    ] {
        assert_eq!(told(&native, target).await, expected, "{target}");
    }
}

#[tokio::test]
async fn no_text_of_a_snippet_ends_a_line_of_a_message() {
    let own = r#"location /svc/ { proxy_pass "http://web.demo.svc.cluster.local:8080/p HTTP/1.1\r\nX-Own: 1\r\n\r\nGET /"; }
        location = /type { default_type "text/x\r\nX-Own: 1\r\n\r\nHTTP/1.1 200 OK"; return 200 x; }
        location = /types.x { types { "text/x\r\nX-Own: 1" x; } return 200 x; }"#;
    let mut configuration = Host::of(own, "").configuration(upstream("main").await);
    let web = upstream("web").await;
    put_upstream(&mut configuration, "url:demo/web:8080", vec![web]);
    let native = start(&configuration).await;
    let target = "/p%20HTTP/1.1%0D%0AX-Own:%201%0D%0A%0D%0AGET%20/a";
    assert_eq!(told(&native, "/svc/a").await, format!("200 web: GET {target}"));
    for path in ["/type", "/types.x"] {
        let answer = get(&native, path, "").await;
        assert!(!answer.contains("\nX-Own") && answer.ends_with("\r\n\r\nx"), "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_looked_through_for_cookies_is_counted() {
    let native = Host::of("", "set $a $cookie_z;".repeat(900).leak()).serve().await;
    for (fields, status) in [(1, "200"), (4, "500")] {
        let cookies = format!("Cookie: {}\r\n", "a=b; ".repeat(1_500)).repeat(fields);
        let answer = get(&native, "/", &cookies).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{fields}: {answer}");
    }
    // Lines without a value are visited, too.
    let answer = get(&native, "/", &"Cookie:\r\n".repeat(900)).await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
}

#[tokio::test]
async fn of_how_a_client_came_in_upstreams_hear_what_is_set_behind_snippets() {
    let native = Host::of(
        "set $pass_server_port 8443; location /own { proxy_pass http://upstream_balancer; }",
        "set $pass_access_scheme https; set $best_http_host out.test; set $pass_port 81;
         if ($arg_front) { set $pass_server_port $arg_front; set $req_id fixed; }
         proxy_set_header X-Said $pass_access_scheme/$best_http_host/$pass_port/$pass_server_port;
         rewrite ^/moved/ /other last;",
    );
    let native = native.path("/other", "", Policy::default()).serve().await;
    let said = |answer: &str, name: &str| {
        let start = format!("{name}: ");
        let line = answer.lines().rev().find_map(|line| line.strip_prefix(&*start));
        line.unwrap_or_default().to_owned()
    };
    let answer = get(&native, "/?front=8443%0d%0aX:1", "").await;
    for (name, wanted) in [
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Scheme", "http"),
        ("X-Scheme", "http"),
        ("X-Forwarded-Port", "8443%0d%0aX:1"),
        ("Host", "a.test"),
        ("X-Forwarded-Host", "a.test"),
        ("X-Request-ID", "fixed"),
        ("X-Said", "http/a.test/8443%0d%0aX:1/8443%0d%0aX:1"),
    ] {
        assert_eq!(said(&answer, name), wanted, "{name}: {answer}");
    }
    // A location sets its own before its snippet: what the server or another location has said is over.
    let usual = said(&get(&native, "/", "").await, "X-Forwarded-Port");
    assert_ne!(usual, "8443");
    let answer = get(&native, "/moved/?front=8443", "").await;
    assert_eq!(said(&answer, "X-Forwarded-Port"), usual, "{answer}");
}

#[tokio::test]
async fn an_end_of_an_expression_is_before_a_last_newline_too() {
    let own = r"location ~* \.php$ { deny all; } location ~ ^/adm$ { return 401; }";
    let native = Host::of(own, "if ($uri ~ ^/private/.*$) { return 403; }").serve().await;
    for (path, wanted) in [("/private/x%0a", "403"), ("/a.php%0a", "403"), ("/adm%0A", "401")] {
        assert_eq!(told(&native, path).await, format!("{wanted} page"), "{path}");
    }
    assert_eq!(told(&native, "/adm%0A%0A").await, "200 main: GET /adm%0A%0A");
}

#[tokio::test]
async fn what_is_read_with_the_head_is_known_to_variables() {
    let http = "map $http_content_length $large { default 0; \"~^[0-9]{8,}$\" 1; }";
    let own = "if ($http_transfer_encoding ~* chunked) { return 411; } if ($large) { return 413; }
        if ($http_expect) { return 417; } if ($request_method = POST) { set $post $content_length; }
        if ($post = \"\") { return 200 \"[$http_content_length]\"; } return 200 $post;";
    let own = format!("set $post \"\"; {own}").leak();
    let native = Host::of("", own).http(http).serve().await;
    let asked = async |method, fields, body| {
        let head =
            format!("{method} / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n\r\n");
        brief(&talk(&native, (head + body).as_bytes()).await)
    };
    assert_eq!(asked("POST", "transfer-encoding: Chunked", "0\r\n\r\n").await, "411 page");
    assert_eq!(asked("POST", "Content-Length:  20000000", "").await, "413 page");
    assert_eq!(asked("POST", "Content-Length: 1\r\nExpect: 100-continue", "").await, "417");
    assert_eq!(asked("POST", "Content-Length: 0", "").await, "200 0");
    assert_eq!(asked("POST", "Content-Length: 3", "abc").await, "200 3");
    assert_eq!(asked("PUT", "Content-Length: 3", "abc").await, "200 [3]");
    assert_eq!(asked("GET", "X-Content-Length: 3", "").await, "200 []");
}

#[tokio::test]
async fn what_takes_too_many_steps_fails_the_request_and_opens_nothing() {
    let hard = "if ($http_x_hard ~ \"([a-z]{1,150})+!\") { return 200 \"open\"; } ";
    let snippet = format!("{} return 403;", hard.repeat(6)).leak();
    let native = Host::of("", snippet).path("/other", "", Policy::default()).serve().await;
    let hard = format!("X-Hard: {}b\r\n", "a".repeat(7000));
    assert!(get(&native, "/", &hard).await.starts_with("HTTP/1.1 500"));
    assert_eq!(told(&native, "/").await, "403 page");
    assert_eq!(told(&native, "/other").await, "200 main: GET /other");
}

#[tokio::test]
async fn who_sends_many_requests_at_once_has_them_answered_in_turns_with_others() {
    const MANY: usize = 16;
    let hard = "if ($http_x_hard ~ \"([a-z]{1,150})+!\") { return 200 \"open\"; } return 403;";
    let usual = Host::of("", hard).configuration(upstream("main").await);
    let mut short = usual.clone();
    Arc::make_mut(&mut short.global).keep_alive.idle = Duration::from_secs(1);
    // Bodies that nobody reads, and connections that hardly wait for the next request, make no difference.
    for (settings, method, body) in
        [(&usual, "GET", ""), (&usual, "POST", "Content-Length: 1\r\n"), (&short, "GET", "")]
    {
        let native = start(settings).await;
        let (long, rest) = ("a".repeat(7000), if body.is_empty() { "" } else { "x" });
        let one =
            format!("{method} / HTTP/1.1\r\nHost: a.test\r\n{body}X-Hard: {long}b\r\n\r\n{rest}");
        let mut many = bed::connect(&native).await;
        many.write_all(one.repeat(MANY).as_bytes()).await.expect("written");
        assert_eq!(bed::read_exactly(&mut many, 12).await, "HTTP/1.1 403");
        assert_eq!(told(&native, "/").await, "403 page");
        let mut heard = vec![0; 1 << 16];
        let count = many.try_read(&mut heard).expect("the rest of the first answer");
        let heard = 1 + String::from_utf8_lossy(&heard[..count]).matches("HTTP/1.1 403").count();
        assert!((1..MANY).contains(&heard), "{heard} before the other one: {method} {body:?}");
    }
}

#[tokio::test]
async fn what_programs_hold_of_requests_under_way_has_a_bound_and_is_given_back() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = silent.local_addr().expect("bound");
    let (coming, mut came) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = silent.accept().await {
            let _ = coming.send(tcp).await;
        }
    });
    let snippet = format!("set $long \"{}\";", "$http_x".repeat(8)).leak();
    let native = start(&Host::of("", snippet).configuration(address)).await;
    // An eighth of it for all, half of that for a namespace: four times 64k.
    native.bound_memory(4 << 20);
    let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {}\r\n\r\n", "x".repeat(7_500));
    let (mut clients, mut upstreams) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let mut tcp = bed::connect(&native).await;
        tcp.write_all(request.as_bytes()).await.expect("written");
        clients.push(tcp);
        upstreams.push(came.recv().await.expect("it is sent on"));
    }
    let small = b"GET / HTTP/1.1\r\nHost: a.test\r\nX: x\r\nConnection: close\r\n\r\n";
    let large = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    assert_eq!(native.under_way()[2], (256 << 10, 512 << 10, 0));
    assert!(talk(&native, large.as_bytes()).await.starts_with("HTTP/1.1 503"));
    drop((upstreams, clients));
    let others = tokio::spawn(async move { while came.recv().await.is_some() {} });
    assert!(talk(&native, small).await.starts_with("HTTP/1.1 502"), "nobody answers there");
    assert!(
        talk(&native, large.as_bytes()).await.starts_with("HTTP/1.1 502"),
        "there is room again"
    );
    // The last request ends a moment after its answer.
    let ended = || async { (native.under_way()[2] == (0, 512 << 10, 1)).then_some(()) };
    eventually(Duration::from_secs(10), ended).await.expect("all is given back");
    others.abort();
}

#[tokio::test]
async fn maps_of_the_http_level_are_followed_when_only_they_change() {
    let host = |http| Host::of("", "return 200 $answer;").http(http);
    let endpoint = upstream("main").await;
    let before = host("map $uri $answer { default 1; /x 2; }").configuration(endpoint);
    let native = start(&before).await;
    assert_eq!(
        (told(&native, "/").await, told(&native, "/x").await),
        ("200 1".into(), "200 2".into())
    );
    let after = host("map $uri $answer { default 3; }").configuration(endpoint);
    apply(&native, &before, &after).await;
    assert_eq!(told(&native, "/x").await, "200 3");
}

/// A port that is free a moment ago.
pub(crate) async fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    listener.local_addr().expect("bound").port()
}

/// What a GET is answered on another port than the engine's; none if nobody takes the connection.
pub(crate) async fn get_at(port: u16, host: &str, target: &str) -> Option<String> {
    let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    tcp.write_all(head.as_bytes()).await.ok()?;
    Some(bed::read_to_end(&mut tcp).await).filter(|answer| !answer.is_empty())
}

/// Asks until somebody listens, or until nobody does.
pub(crate) async fn until_open(port: u16, open: bool) {
    let look = || async { (get_at(port, "x", "/").await.is_some() == open).then_some(()) };
    eventually(bed::PATIENCE, look).await.expect("the port follows");
}

#[tokio::test]
async fn servers_of_the_http_level_have_ports_of_their_own_that_come_and_go() {
    let (port, status) = (free_port().await, free_port().await);
    let http = format!(
        "server {{ listen {port}; return 308 https://$host$request_uri; }}
         server {{ listen {port}; server_name own.test *.wild.test; location / {{ return 200 \"own $host\"; }} }}
         server {{ listen 127.0.0.1:{status}; location = /nginx_status {{ stub_status; }} location /dot {{ empty_gif; }} }}"
    );
    let endpoint = upstream("main").await;
    let before = Host::of("", "").http(http.leak()).configuration(endpoint);
    let native = start(&before).await;
    until_open(port, true).await;
    until_open(status, true).await;
    let at = async |port, host, target| brief(&get_at(port, host, target).await.expect("open"));
    assert_eq!(at(port, "a.test", "/x?y=1").await, "308 https://a.test/x?y=1 page");
    assert_eq!(at(port, "own.test", "/x").await, "200 own own.test");
    assert_eq!(at(port, "a.wild.test", "/x").await, "200 own a.wild.test");
    let counted = at(status, "x", "/nginx_status").await;
    assert!(counted.starts_with("200 Active connections: "), "{counted}");
    assert_eq!(at(status, "x", "/other").await, "404 page");
    assert!(get_at(status, "x", "/dot").await.expect("open").contains("Content-Type: image/gif"));
    assert_eq!(told(&native, "/x").await, "200 main: GET /x", "the controller's port is its own");
    let after = Host::of("", "").configuration(endpoint);
    apply(&native, &before, &after).await;
    until_open(port, false).await;
    assert_eq!(told(&native, "/x").await, "200 main: GET /x");
}

#[tokio::test]
async fn an_explanation_tells_what_programs_did() {
    let configuration = Host::of("if ($arg_x) { set $y $arg_x; }", "rewrite ^/a/(.*)$ /b/$1 last;")
        .path("/b", "if ($arg_x) { return 200 \"$uri\"; }", Policy::default())
        .configuration(upstream("main").await);
    let question = Question {
        head: "GET /a/c?x=1 HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
        http2: false,
        tls: None,
        client: "192.0.2.1:1".parse().expect("an address"),
        ports: (80, 443),
    };
    let decisions = explain(&configuration, question).await.expect("an explanation");
    let told: Vec<&str> = decisions
        .iter()
        .filter(|decision| decision.step == "snippet")
        .map(|decision| decision.outcome.as_str())
        .collect();
    assert_eq!(
        told,
        [
            "server of the ConfigMap, line 1, column 1: if: entered",
            "server of the ConfigMap, line 1, column 15: set $y to \"${arg_x}\"",
            "location of the ConfigMap, line 1, column 1: rewrite: now at \"/b/c\" with \"x=1\"",
            "location of the ConfigMap, line 1, column 1: if: entered",
            "location of the ConfigMap, line 1, column 15: return: 200 with 4 bytes",
        ]
    );
    // Where the `if` is for itself is no other path.
    let near = decisions.iter().find(|decision| decision.step == "near miss");
    assert!(near.is_none_or(|near| !near.outcome.contains("Prefix /b")), "{near:?}");
}

#[tokio::test]
async fn of_very_many_expressions_only_some_are_compiled_to_tell_near_misses() {
    let near = async |others: usize| {
        let mut host = Host::of_patterns().path("/a[a-z]+/longest", "", Policy::default());
        for number in 0..others {
            let path = format!("/a[0-9]+/{number}");
            host = host.path(path.leak(), "", Policy::default());
        }
        let host = host.path("/a[a-z]+", "", Policy::default());
        let question = Question {
            head: "GET /ab/longest HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            http2: false,
            tls: None,
            client: "192.0.2.1:1".parse().expect("an address"),
            ports: (80, 443),
        };
        let configuration = host.configuration(upstream("main").await);
        let decisions = explain(&configuration, question).await.expect("an explanation");
        decisions.into_iter().filter(|decision| decision.step == "near miss").count()
    };
    assert_eq!((near(31).await, near(32).await), (1, 0));
}

#[tokio::test]
async fn an_upstream_sends_requests_on_to_named_and_internal_locations() {
    let own = "location @named { return 200 \"named $uri\"; }
        location /files/ { internal; return 200 \"internal $uri\"; }
        location @shut { deny all; }";
    let native = Host::of(own, "").serve().await;
    let sent = async |to: &str| {
        brief(&get(&native, "/onward", &format!("X-Accel-Redirect: {to}\r\n")).await)
    };
    assert_eq!(sent("@named").await, "200 named /onward");
    assert_eq!(sent("/files/x").await, "200 internal /files/x");
    assert_eq!(told(&native, "/files/x").await, "404 page");
    assert_eq!(sent("@shut").await, "403 page");
    assert_eq!(sent("@nobody").await, "500 page");
}

#[tokio::test]
async fn over_http2_a_return_without_answer_ends_its_stream_alone() {
    let native = Host::of("location = /close { return 444; }", "").serve().await;
    let (client, connection) =
        h2::client::handshake(bed::connect(&native).await).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let mut client = client.ready().await.expect("a stream");
    let mut ask = |path: &str| {
        let request = http::Request::get(format!("http://a.test{path}")).body(());
        client.send_request(request.expect("a request"), true).expect("it is sent").0
    };
    let (closed, open) = (ask("/close"), ask("/open"));
    let error = closed.await.expect_err("there is no answer");
    assert_eq!(error.reason(), Some(h2::Reason::INTERNAL_ERROR));
    assert_eq!(open.await.expect("an answer").status(), 200);
}

#[tokio::test]
async fn a_location_within_one_of_an_ingress_has_its_guards_and_one_beside_it_has_none() {
    let pass = "set $proxy_upstream_name demo-echo-80; proxy_pass http://upstream_balancer;";
    let within = format!("location /g/in {{ {pass} }}").leak();
    let beside = format!("location /beside/ {{ {pass} }}").leak();
    let native = Host { server: beside, ..Host::default() }
        .path("/g", within, whitelist("192.0.2.0/24"))
        .path("/o", format!("location /o/in {{ {pass} }}").leak(), whitelist("127.0.0.0/8"));
    let native = native.serve().await;
    assert_eq!(told(&native, "/g/x").await, "403 page");
    assert_eq!(told(&native, "/g/in").await, "403 page");
    assert_eq!(told(&native, "/o/in").await, "200 main: GET /o/in");
    assert_eq!(told(&native, "/beside/x").await, "200 main: GET /beside/x");
}

#[tokio::test]
async fn the_log_names_the_ingress_that_the_request_met_last() {
    let own = "location @behind { return 200 \"$namespace $proxy_upstream_name\"; }
        location /own { return 200 \"[$namespace] $proxy_upstream_name\"; }";
    let native = Host::of(own, "error_page 405 = @behind; return 405;").serve().await;
    assert_eq!(told(&native, "/").await, "200 demo demo-echo-80");
    assert_eq!(told(&native, "/own").await, "200 [] -");
}

#[tokio::test]
async fn expressions_see_the_bytes_of_a_path_and_may_part_those_of_a_character() {
    let guards = [
        ("/dots", "if ($uri ~ \"\\xc0[\\xae\\xaf]\") { return 403; }"),
        ("/high", "if ($uri ~ \"[\\xc0\\xc1\\xf5-\\xff]\") { return 403; }"),
        ("/table", "if ($bad) { return 403; }"),
        ("/parted", "rewrite \"^/parted/(..)(.*)$\" /$1/$2 break;"),
    ];
    let named = "if ($uri ~ \"^/caf.{1,2}/secret\") { return 403; }";
    let host = Host::of("", named).http("map $uri $bad { default 0; \"~\\xc0[\\xae\\xaf]\" 1; }");
    let host = guards
        .into_iter()
        .fold(host, |host, (path, text)| host.path(path, text, Policy::default()));
    let native = host.serve().await;
    for (path, expected) in [
        ("/dots/%c0%ae%c0%ae/b", "403 page"),
        ("/dots/%c3%a4", "200 main: GET /dots/%c3%a4"),
        ("/high/a%ff", "403 page"),
        ("/caf%E9/secret", "403 page"),
        ("/caf%C3%A9/secret", "403 page"),
        ("/table/a%c0%afb", "403 page"),
        ("/parted/x%C3%A4.jpg", "200 main: GET /x%C3/%A4.jpg"),
        ("/parted/x%C3%B6.jpg", "200 main: GET /x%C3/%B6.jpg"),
        ("/parted/%E4%F6", "200 main: GET /%E4%F6/"),
    ] {
        assert_eq!(told(&native, path).await, expected, "{path}");
    }
}

#[tokio::test]
async fn a_byte_that_is_no_text_hides_nothing_beside_it() {
    let native = Host::of("", "if ($http_user_agent ~ \"böse\") { return 403; }")
        .path("/cookie", "if ($cookie_u ~ \"^ä\") { return 403; }", Policy::default())
        .path("/uri", "if ($request_uri ~ \"/geheim-ä\") { return 403; }", Policy::default())
        .path(
            "/none",
            "valid_referers none *.good.test; if ($invalid_referer) { return 403; } return 200 in;",
            Policy::default(),
        )
        .path(
            "/old",
            "if ($server_protocol = \"HTTP/1.0\") { return 403; } return 200 in;",
            Policy::default(),
        )
        .path("/away", "error_page 418 http://a.test/?x=$uri; return 418;", Policy::default());
    let native = native.serve().await;
    for (line, field, expected) in [
        (&b"GET / HTTP/1.1"[..], &b"User-Agent: b\xc3\xb6se \xff"[..], "403 page"),
        (b"GET /cookie HTTP/1.1", b"Cookie: u=\xc3\xa4\xff", "403 page"),
        (b"GET /uri/geheim-\xc3\xa4?\xff HTTP/1.1", b"A: b", "403 page"),
        (b"GET /none HTTP/1.1", b"Referer: http://evil.test/\xff", "403 page"),
        (b"GET /none HTTP/1.1", b"Referer: http://a.good.test/\xff", "200 in"),
        (b"GET /none HTTP/1.1", b"A: b", "200 in"),
        (b"- /old HTTP/1.0", b"A: b", "403 page"),
        (b"- /old HTTP/1.1", b"A: b", "200 in"),
    ] {
        let head = [line, b"\r\nHost: a.test\r\nConnection: close\r\n", field, b"\r\n\r\n"];
        let answer = talk(&native, &head.concat()).await;
        assert_eq!(brief(&answer), expected, "{} {}", line.escape_ascii(), field.escape_ascii());
    }
    // What a text is made of leaves as the bytes that it was.
    let mut tcp = bed::connect(&native).await;
    let head = b"GET /away/%e4 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    tcp.write_all(head).await.expect("written");
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).await.expect("an answer");
    let location = &b"?x=/away/\xe4\r\n"[..];
    assert!(
        answer.windows(location.len()).any(|found| found == location),
        "{}",
        answer.escape_ascii()
    );
}

#[tokio::test]
async fn no_variable_ends_a_request_line_wherever_it_stands() {
    let native = Host::of("", "rewrite ^/(?!in)(.*) /in?q=$uri last;");
    let native = native.serve().await;
    let hostile = "/a%20HTTP/1.1%0d%0aHost:%20b%0d%0a%0d%0aGET%20/b";
    let seen = told(&native, hostile).await;
    assert!(seen.contains("%20HTTP/1.1%0D%0AHost:%20b%0D%0A%0D%0AGET%20/b"), "{seen}");
    assert_eq!(seen.lines().count(), 1, "{seen}");
}

#[tokio::test]
async fn a_path_that_a_program_makes_is_canonical_before_anything_is_decided() {
    let native = Host::of(
        "",
        "rewrite ^/join/(.*)$ /$arg_under/$1 last; rewrite ^/up$ /../x last;",
    )
    .path("/closed", "", whitelist("192.0.2.0/24"));
    let native = native.serve().await;
    assert_eq!(told(&native, "/join/x?under=a/../closed").await, "403 page");
    assert_eq!(told(&native, "/join/x?under=/closed").await, "403 page");
    assert_eq!(told(&native, "/up").await, "500 page", "nothing is above the root");
    let kept = told(&native, "/join/x%FFy?under=b").await;
    assert_eq!(kept, "200 main: GET /b/x%FFy?under=b", "bytes that are no text stay what they are");
}
