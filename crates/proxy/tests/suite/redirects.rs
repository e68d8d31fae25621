//! The order of what can answer before an upstream does, over real sockets and in every combination.

use crate::bed;
use crate::bed::{apply, put_upstream, talk};
use model::policy::{
    Algorithm, AuthCache, AuthExternal, Balance, Policy, Redirect, Rewrite, TlsRedirect,
};
use model::{
    Alias, Backend, CertificateId, Configuration, Global, Pattern, Server, ServerName, Template,
    UpstreamId,
};
use proxy::Native;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const APP_ROOT: u32 = 1;
const DENIED: u32 = 2;
const REDIRECT: u32 = 4;
const REWRITE: u32 = 8;
const HTTPS: u32 = 16;
const EMPTY: u32 = 32;
const NOWHERE: u32 = 64;
const ALL: u32 = 128;

/// An upstream that answers 200, with the request line as a header field.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                while let Some(head) = head(&mut tcp).await {
                    let line = head.lines().next().unwrap_or_default();
                    let fields = head.lines().filter(|line| line.starts_with("X-Forwarded-Prefix"));
                    let fields: Vec<&str> = fields.collect();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Line: {line}\r\nX-Prefix: {}\r\n\r\n",
                        fields.join("; ")
                    );
                    let _ = tcp.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    address
}

/// What comes up to an empty line; none once the peer is gone.
async fn head(tcp: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(tcp.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&read).into_owned())
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("known variables")
}

fn policy(features: u32) -> Policy {
    let has = |feature| features & feature != 0;
    let rewrite = Rewrite {
        pattern: Pattern::new("/p/(.*)", true).expect("a pattern"),
        target: template("/new/$1"),
        prefix: Some(template("/p/$1")),
    };
    Policy {
        redirect: has(REDIRECT)
            .then(|| Redirect { status: 303, target: template("/moved").into() }),
        rewrite: has(REWRITE).then_some(rewrite),
        tls_redirect: TlsRedirect { always: has(HTTPS), ..TlsRedirect::default() },
        ..Policy::default()
    }
}

fn server(features: u32) -> Server {
    let has = |feature| features & feature != 0;
    let backend = match () {
        () if has(DENIED) => Backend::Denied("a test".to_owned()),
        () if has(NOWHERE) => Backend::NotFound,
        () if has(EMPTY) => Backend::Upstream(UpstreamId::new("empty")),
        () => Backend::Upstream(UpstreamId::new("echo")),
    };
    let policy = Arc::new(policy(features));
    let location = |path: &str| Arc::new(bed::location(path, backend.clone(), policy.clone()));
    let host = format!("f{features}.test");
    Server {
        app_root: has(APP_ROOT).then(|| template("/app")),
        www: Some(ServerName::new(format!("www.{host}"))),
        aliases: Alias::parse(&format!("*.{host}")).expect("an alias"),
        locations: vec![location("/p/"), location("/")],
        ..Server::new(ServerName::new(host))
    }
}

async fn start() -> Arc<Native> {
    let echo = upstream().await;
    let global = Arc::new(Global { access_log: false, ..Global::default() });
    let mut configuration = Configuration { global, ..Configuration::default() };
    for server in (0..ALL).map(server) {
        configuration.servers.insert(server.name.clone(), Arc::new(server));
    }
    put_upstream(&mut configuration, "echo", vec![echo]);
    put_upstream(&mut configuration, "empty", Vec::new());
    bed::start(&configuration).await
}

/// Status and Location of the answer, or what the upstream saw.
async fn get(native: &Native, host: &str, target: &str) -> String {
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-Prefix: /forged\r\nConnection: close\r\n\r\n"
    );
    let answer = talk(native, request.as_bytes()).await;
    let status = &answer[9..12];
    let field = |name: &str| {
        answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or("")
    };
    match status {
        "200" => format!("200 {} {}", field("X-Line"), field("X-Prefix")),
        _ => format!("{status} {}", field("Location")).trim_end().to_owned(),
    }
}

/// What nginx's phases make of a request (compat/behaviour.md section 13).
fn expected(features: u32, host: &str, target: &str) -> String {
    let has = |feature| features & feature != 0;
    match target {
        "/" if has(APP_ROOT) => return format!("302 http://{host}/app"),
        // nginx adds a slash where it would ask an upstream: not to denied paths.
        "/p?a=b" if !has(DENIED) => return format!("301 http://{host}/p/?a=b"),
        _ => {}
    }
    match () {
        () if has(DENIED) => "503".to_owned(),
        () if has(REDIRECT) => format!("303 http://{host}/moved"),
        () if has(HTTPS) => format!("308 https://{host}{}", target.trim_end_matches('/')),
        () if has(NOWHERE) => "404".to_owned(),
        () if has(EMPTY) => "503".to_owned(),
        () if has(REWRITE) && target == "/p/x" => {
            "200 GET /new/x HTTP/1.1 X-Forwarded-Prefix: /p/x".to_owned()
        }
        () => format!("200 GET {target} HTTP/1.1 X-Forwarded-Prefix: /forged"),
    }
}

#[tokio::test]
async fn whatever_is_combined_the_earlier_phase_answers() {
    let native = start().await;
    for features in 0..ALL {
        let own = format!("f{features}.test");
        for host in [own.clone(), format!("deep.alias.{own}")] {
            for target in ["/", "/p?a=b", "/p/x", "/other/"] {
                let answer = get(&native, &host, target).await;
                assert_eq!(
                    answer,
                    expected(features, &host, target),
                    "{features:#b} {host}{target}"
                );
            }
        }
        let port = native.listening().http_port;
        let www = get(&native, &format!("WWW.{own}."), "/p/").await;
        assert_eq!(www, format!("308 http://{own}:{port}/p"));
    }
}

#[tokio::test]
async fn what_a_path_decodes_to_never_ends_a_header_line() {
    let native = start().await;
    let seen = get(&native, &format!("f{REWRITE}.test"), "/p/a%0d%0aX-Evil:%20b").await;
    // The dot of a pattern stops at the end of a line, and what it took is escaped.
    assert!(seen.ends_with("X-Forwarded-Prefix: /p/a%0D"), "{seen}");
}

#[tokio::test]
async fn an_alias_that_moves_from_one_server_to_another_leads_to_the_new_one() {
    let native = start().await;
    let before = native.current().configuration.clone();
    let mut after = before.clone();
    let moving = || Alias::parse("moving.test").expect("an alias");
    let with =
        |features: u32, aliases: Vec<Alias>| Arc::new(Server { aliases, ..server(features) });
    let name = |features: u32| ServerName::new(format!("f{features}.test"));
    for (from, to) in [(REDIRECT, HTTPS), (HTTPS, REDIRECT)] {
        let old = after.clone();
        after.servers.insert(name(from), with(from, Vec::new()));
        after.servers.insert(name(to), with(to, moving()));
        apply(&native, &old, &after).await;
        let answer = get(&native, "moving.test", "/x").await;
        assert_eq!(answer, expected(to, "moving.test", "/x"));
    }
    let old = after.clone();
    apply(&native, &old, &before).await;
    assert_eq!(get(&native, "moving.test", "/x").await, "404");
}

#[tokio::test]
async fn a_text_that_variables_make_too_long_ends_its_request_and_nothing_else() {
    let often = |text: &str| template(&format!("/x{}", text.repeat(200)));
    let rewrite = |target: Template, prefix: Option<Template>| Rewrite {
        pattern: Pattern::new("/(.*)", true).expect("a pattern"),
        target,
        prefix,
    };
    let of_cache = AuthCache { key: often("$request_uri"), durations: Vec::new() };
    let (asked, _questions) = bed::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let mut configuration = Configuration::default();
    let echo = put_upstream(&mut configuration, "echo", vec![upstream().await]);
    let auth = put_upstream(&mut configuration, "auth", vec![asked]);
    let authenticator = |target: Template, cache| AuthExternal {
        cache,
        ..bed::authenticator("auth", target, auth.clone())
    };
    let usual = Policy::default;
    let redirect = Redirect { status: 303, target: often("$request_uri").into() };
    let algorithm = Algorithm::Hash(often("$request_uri"));
    let all = [
        ("rewritten", Policy { rewrite: Some(rewrite(often("$1"), None)), ..usual() }),
        (
            "prefix",
            Policy { rewrite: Some(rewrite(template("/$1"), Some(often("$1")))), ..usual() },
        ),
        ("redirect", Policy { redirect: Some(redirect), ..usual() }),
        ("hash", Policy { balance: Balance { algorithm, affinity: None }, ..usual() }),
        ("host", Policy { upstream_host: Some(often("$request_uri")), ..usual() }),
        (
            "asked",
            Policy {
                auth_external: Some(authenticator(often("$request_uri"), None).into()),
                ..usual()
            },
        ),
        (
            "remembered",
            Policy {
                auth_external: Some(authenticator(template("/"), Some(of_cache)).into()),
                ..usual()
            },
        ),
    ];
    for (name, policy) in all.clone() {
        bed::put_host(&mut configuration, name, &echo, policy);
    }
    bed::put_host(&mut configuration, "plain", &echo, usual());
    let native = bed::start(&configuration).await;
    let long = format!("/{}", "a".repeat(1000));
    for (name, _) in all {
        let short = get(&native, name, "/a").await;
        assert!(short.starts_with("200") || short.starts_with("303"), "{name}: {short}");
        assert_eq!(get(&native, name, &long).await, "500", "{name}");
    }
    assert!(get(&native, "plain", &long).await.starts_with("200"));
}

#[tokio::test]
async fn a_value_that_is_dear_to_find_and_empty_is_not_looked_for_without_end() {
    let mut configuration = Configuration::default();
    let echo = put_upstream(&mut configuration, "echo", vec![upstream().await]);
    let dear = [
        "$remote_user",
        "$fastcgi_path_info",
        "$cookie_none",
        "$arg_none",
        "$content_type",
        "$proxy_add_x_forwarded_for",
    ];
    for (number, variable) in dear.iter().enumerate() {
        let host = template(&format!("x{}", variable.repeat(256)));
        let policy = Policy { upstream_host: Some(host), ..Policy::default() };
        bed::put_host(&mut configuration, &format!("dear{number}"), &echo, policy);
    }
    let native = bed::start(&configuration).await;
    for (bytes, status) in [(8, "200"), (7000, "500")] {
        for (number, variable) in dear.iter().enumerate() {
            // Nobody's name, and no cookie or argument of that name.
            let authorization = "Ojo6".repeat(bytes / 4);
            let path = format!("/{}", "a".repeat(bytes));
            let request = format!(
                "GET {path}?{} HTTP/1.1\r\nHost: dear{number}\r\nAuthorization: Basic {authorization}\r\n\
                 Cookie: {}\r\nConnection: close\r\n\r\n",
                "b&".repeat(bytes / 16),
                "c;".repeat(bytes / 2),
            );
            let got = talk(&native, request.as_bytes()).await;
            assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{variable}: {got}");
        }
    }
}

#[tokio::test]
async fn the_certificate_of_a_wildcard_host_redirects_hosts_of_its_own_namespace_alone() {
    let (address, _seen) = bed::answering(bed::answer("200 OK", "", "plain").leak()).await;
    let with = |owners: [Option<&str>; 2]| {
        let mut all = bed::configuration(&[(bed::MAIN, vec![address])], Policy::default());
        let id = UpstreamId::new(bed::MAIN);
        for (name, owner) in ["*.shop.test", "v.shop.test"].into_iter().zip(owners) {
            bed::put_host(&mut all, name, &id, Policy::default());
            let server = all.servers.get_mut(&ServerName::new(name)).expect("it was put there");
            let server = Arc::make_mut(server);
            server.owner = owner.map(Into::into);
            server.certificate = name.starts_with('*').then(CertificateId::of_default);
        }
        all
    };
    let get = b"GET / HTTP/1.1\r\nHost: v.shop.test\r\nConnection: close\r\n\r\n";
    for (owners, status) in [
        ([Some("e"), Some("v")], "200"),
        ([Some("v"), Some("v")], "308"),
        // Where namespaces may do so, nobody is noted.
        ([None, None], "308"),
    ] {
        let native = bed::start(&with(owners)).await;
        let got = talk(&native, get).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{owners:?}: {got}");
    }
}
