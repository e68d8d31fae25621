//! What is dear to do for one request, and is done only so often.

use crate::bed;
use model::policy::{
    AnswerRewrites, ClientDemand, ClientErrorPage, Policy, Protocol, RedirectRewrite, Replaced,
    Replacement, Rewrite,
};
use model::{Alias, Configuration, Pattern, Server, ServerName, Template, UpstreamId};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::certificates::{Certificates, Identity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn template(text: &str) -> Template {
    Template::parse(text).expect("known variables")
}

/// What takes the place of a text at the beginning.
fn replacement(from: &str, to: &str) -> Replacement {
    Replacement { from: Replaced::Text(template(from)), to: template(to).into() }
}

/// A host whose upstream gives this answer, with heads of up to a megabyte.
async fn host(answer: Vec<u8>, rewrites: AnswerRewrites) -> Configuration {
    let (address, _seen) = bed::answering(answer.leak()).await;
    let mut policy = Policy { answer_rewrites: rewrites, ..Policy::default() };
    policy.body.response_header = 1 << 20;
    bed::configuration(&[(bed::MAIN, vec![address])], policy)
}

/// The status of the answer to a plain request.
async fn status(configuration: &Configuration) -> String {
    let native = bed::start(configuration).await;
    let get = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let got = bed::talk(&native, get).await;
    got.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_head_of_an_upstream_is_not_looked_through_without_end_for_what_is_not_there() {
    for (bytes, expected) in [(100, "302"), (30_000, "500")] {
        let fields = format!("Location: from/a\r\nX-Long: {}\r\n", "a".repeat(bytes));
        let replace = replacement("from", &"$upstream_http_none".repeat(256));
        let redirect = RedirectRewrite::Replace(replace);
        let rewrites = AnswerRewrites { redirect, ..AnswerRewrites::default() };
        let all = host(bed::answer("302 Found", &fields, ""), rewrites).await;
        assert_eq!(status(&all).await, expected, "{bytes}");
    }
}

#[tokio::test]
async fn what_an_attribute_is_compared_with_is_filled_in_once_for_an_answer() {
    // 600k of texts, if it were for each.
    let domains = "; domain=x".repeat(30_000);
    let fields = format!("Set-Cookie: a=b{domains}\r\n");
    let cookie_domain = Some(replacement(&"a".repeat(20), "b"));
    let rewrites = AnswerRewrites { cookie_domain, ..AnswerRewrites::default() };
    let all = host(bed::answer("200 OK", &fields, ""), rewrites).await;
    assert_eq!(status(&all).await, "200");
}

#[tokio::test]
async fn what_takes_the_place_of_many_attributes_counts_each_time() {
    for (count, expected) in [(10, "200"), (100, "500")] {
        for path in ["path", "domain"] {
            let fields = format!("Set-Cookie: a=b{}\r\n", format!("; {path}=x").repeat(count));
            let long = Some(replacement("x", &"y".repeat(6000)));
            let rewrites = match path {
                "path" => AnswerRewrites { cookie_path: long, ..AnswerRewrites::default() },
                _ => AnswerRewrites { cookie_domain: long, ..AnswerRewrites::default() },
            };
            let all = host(bed::answer("200 OK", &fields, ""), rewrites).await;
            assert_eq!(status(&all).await, expected, "{count} {path}");
        }
    }
}

#[tokio::test]
async fn a_query_that_an_upstream_made_counts_for_what_is_looked_for_in_it() {
    for (arguments, expected) in [(10, "200"), (15_000, "500")] {
        let onward = format!("X-Accel-Redirect: /to?{}\r\n", "a&".repeat(arguments));
        let onward = bed::answer("200 OK", &onward, "");
        let address = bed::serving(move |mut tcp| {
            let onward = onward.clone();
            async move {
                let mut buffer = vec![0; 1 << 17];
                while let Ok(1..) = tcp.read(&mut buffer).await {
                    let is_first = buffer.starts_with(b"GET / ");
                    let last = bed::answer("200 OK", "Connection: close\r\n", "");
                    let _ = tcp.write_all(if is_first { &onward } else { &last }).await;
                    if !is_first {
                        break;
                    }
                }
            }
        })
        .await;
        let host = template(&format!("x{}", "$arg_none".repeat(256)));
        let mut policy = Policy { upstream_host: Some(host), ..Policy::default() };
        policy.body.response_header = 1 << 20;
        let all = bed::configuration(&[(bed::MAIN, vec![address])], policy);
        assert_eq!(status(&all).await, expected, "{arguments}");
    }
}

/// Thirty endpoints that show this certificate and go away after the handshake; how often they are asked.
async fn leaving(certificate: &str) -> (Vec<SocketAddr>, Arc<AtomicUsize>) {
    let shown = Certificates::shared();
    let Identity { certificate, key } = shown.get(certificate).expect("it is made");
    let chain = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            counts.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(acceptor.accept(tcp));
        }
    });
    let endpoints = (1..=30).map(|last| (Ipv4Addr::new(127, 0, 1, last), port).into()).collect();
    (endpoints, asked)
}

#[tokio::test]
async fn few_endpoints_whose_certificates_are_judged_are_asked_for_one_request() {
    let shown = Certificates::shared();
    let authority = &shown.get("ca").expect("it is made").certificate;
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate");
    for (certificate, verify, expected) in
        [("tls-other", true, 4), ("tls-demo", true, 16), ("tls-demo", false, 40)]
    {
        let (endpoints, asked) = leaving(certificate).await;
        let mut policy = Policy { protocol: Protocol::Https, ..Policy::default() };
        policy.upstream_tls.verify = verify;
        policy.upstream_tls.authorities = Arc::new([Arc::from(&authority[..])]);
        policy.upstream_tls.name = Some("demo.test".to_owned());
        policy.retries.tries = 40;
        let all = bed::configuration(&[(bed::MAIN, endpoints)], policy);
        assert_eq!(status(&all).await, "502", "{certificate}");
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{certificate} {verify}");
    }
}

#[tokio::test]
async fn patterns_of_others_cost_a_host_of_a_gateway_nothing() {
    let (address, _seen) = bed::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let mut all = bed::configuration(&[(bed::MAIN, vec![address])], Policy::default());
    let name = ServerName::new("a.test");
    let mut server = Server::clone(&all.servers[&name]);
    // What it ends with is not known, and it takes all steps of a request.
    server.aliases = Alias::parse("~^(a+)+(?!.)z").expect("an alias");
    all.servers.insert(name, Arc::new(server));
    let host = format!("{}.test", "a".repeat(40));
    bed::put_route(&mut all, &host, UpstreamId::new(bed::MAIN), Arc::default());
    let native = bed::start(&all).await;
    let status = async |host: &str| {
        let get = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let got = bed::talk(&native, get.as_bytes()).await;
        got.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status(&host).await, "200");
    assert_eq!(status(&format!("a{host}")).await, "500", "nobody's");
    assert_eq!(status("a.test").await, "200");
}

#[tokio::test]
async fn where_patterns_take_too_long_no_rule_has_what_may_be_an_ingress_s() {
    let (address, _seen) = bed::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let mut all = bed::configuration(&[(bed::MAIN, vec![address])], Policy::default());
    let name = ServerName::new("a.test");
    // What is asked at a wildcard host takes its turn among the patterns of others, by their names.
    for (host, aliases) in [("*.app.test", "~^(a+)+(?!.)z"), ("*.both.test", "")] {
        let mut server = Server::clone(&all.servers[&name]);
        server.name = ServerName::new(host);
        server.aliases = Alias::parse(aliases).into_iter().flatten().collect();
        all.servers.insert(server.name.clone(), Arc::new(server));
    }
    for host in ["*.both.test", "*.routes.test", "_"] {
        bed::put_route(&mut all, host, UpstreamId::new(bed::MAIN), Arc::default());
    }
    let native = bed::start(&all).await;
    let dear = "a".repeat(40);
    for (host, wanted) in [
        ("b.both.test".to_owned(), "200"),
        ("b.test".to_owned(), "200"),
        (format!("{dear}.both.test"), "500"),
        (format!("{dear}.routes.test"), "200"),
        (format!("{dear}.test"), "500"),
    ] {
        let get = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let got = bed::talk(&native, get.as_bytes()).await;
        assert_eq!(got.split(' ').nth(1), Some(wanted), "{host}: {got}");
    }
}

#[tokio::test]
async fn a_target_of_a_rewrite_looks_for_values_within_the_bound_of_a_request() {
    let (address, _seen) = bed::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let target = template(&format!("/{}", "$cookie_a".repeat(256)));
    let pattern = Pattern::new("^/", true).expect("a pattern");
    let rewrite = Some(Rewrite { pattern, target, prefix: None });
    let policy = Policy { rewrite, ..Policy::default() };
    let native = bed::start(&bed::configuration(&[(bed::MAIN, vec![address])], policy)).await;
    for (lines, wanted) in [(1, "200"), (40, "500")] {
        let cookies = format!("Cookie: {}\r\n", ";".repeat(700)).repeat(lines);
        let get = format!("GET / HTTP/1.1\r\nHost: a.test\r\n{cookies}Connection: close\r\n\r\n");
        let got = bed::talk(&native, get.as_bytes()).await;
        assert_eq!(got.split(' ').nth(1), Some(wanted), "{lines}: {got}");
    }
}

#[tokio::test]
async fn what_an_ingress_asks_of_clients_beyond_its_host_is_not_there_in_clear() {
    let (address, _seen) = bed::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let asks = |demand| bed::asks(demand, ClientErrorPage::Plain);
    for (own, wanted) in [(ClientDemand::Optional, "200"), (ClientDemand::Required, "403")] {
        let policy = Policy { client_certificate: asks(own), ..Policy::default() };
        let mut all = bed::configuration(&[(bed::MAIN, vec![address])], policy);
        let name = ServerName::new("a.test");
        let mut server = Server::clone(&all.servers[&name]);
        server.client_certificate = asks(ClientDemand::Off);
        all.servers.insert(name, Arc::new(server));
        assert_eq!(status(&all).await, wanted, "{own:?}");
    }
}
