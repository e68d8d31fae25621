//! What an explanation says of who is counted, and of redirects before a location has the request.

use crate::bed::{self, MAIN, configuration};
use crate::snippets::Host;
use model::policy::{
    ClientCertificate, ClientDemand, ClientErrorPage, LimitKey, Limits, Policy, RequestLimit,
};
use model::{Configuration, Kind, Location, Origin, Server, ServerName, Template};
use proxy::{Question, explain};
use std::sync::Arc;

const PAGE: &str = "https://www.test/no-certificate";
const ENDPOINT: &str = "127.0.0.1:1";

/// What is said of a step, with whoever asks for it.
async fn told(
    configuration: &Configuration,
    (url, client): (&str, &str),
    step: &str,
) -> Vec<String> {
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (host, path) = rest.split_once('/').expect("a path");
    let question = Question {
        head: format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into(),
        http2: false,
        tls: (scheme == "https").then(|| Some(host.to_owned())),
        client: format!("{client}:1").parse().expect("an address"),
        ports: (80, 443),
    };
    let decisions = explain(configuration, question).await.expect("an explanation");
    let told = decisions.into_iter().filter(|decision| decision.step == step);
    told.map(|it| it.by.map_or(it.outcome.clone(), |by| format!("{}  [{by}]", it.outcome)))
        .collect()
}

fn with(policy: Policy) -> Configuration {
    configuration(&[(MAIN, vec![ENDPOINT.parse().expect("an address")])], policy)
}

/// Changes the one host there is.
fn change(configuration: &mut Configuration, how: impl FnOnce(&mut Server)) {
    let name = ServerName::new("a.test");
    let mut server = Server::clone(&configuration.servers[&name]);
    how(&mut server);
    configuration.servers.insert(name, Arc::new(server));
}

/// The one location of the host is one of Ingress demo/x.
fn owned(server: &mut Server) {
    let origin = Some(Arc::new(Origin::new(Kind::Ingress, "demo", "x")));
    let own =
        |it: &Arc<Location>| Arc::new(Location { origin: origin.clone(), ..Location::clone(it) });
    server.locations = server.locations.iter().map(own).collect();
}

#[tokio::test]
async fn an_explanation_tells_who_is_exempt_from_limits() {
    let limits = Limits {
        per_second: Some(RequestLimit { rate: 10_000, burst: 50_000 }),
        connections: Some(20),
        exempt: std::iter::once("192.0.2.0/24".parse().expect("a network")).collect(),
        ..Limits::default()
    };
    let mut all = with(Policy { limits: limits.clone(), ..Policy::default() });
    change(&mut all, owned);
    let exempt = "192.0.2.1 is exempt: nothing is counted  [limit-allowlist of Ingress demo/x]";
    assert_eq!(told(&all, ("http://a.test/", "192.0.2.1"), "limits").await, [exempt]);
    assert!(!told(&all, ("http://a.test/", "192.0.2.1"), "body").await.is_empty());
    let counted = [
        "requests a second: 10, 50 more at once  [limit-rps of Ingress demo/x]",
        "requests at a time: 20  [limit-connections of Ingress demo/x]",
    ];
    assert_eq!(told(&all, ("http://a.test/", "198.51.100.1"), "limits").await, counted);
    // Who is exempt of nothing is not told to be.
    let nothing = Limits { per_second: None, connections: None, ..limits.clone() };
    let none = with(Policy { limits: nothing, ..Policy::default() });
    assert!(told(&none, ("http://a.test/", "192.0.2.1"), "limits").await.is_empty());
    // Where nothing tells clients apart nobody is counted.
    let key = LimitKey::Text(Template::parse("$arg_who").expect("a known variable"));
    let by_key = with(Policy { limits: Limits { key, ..limits }, ..Policy::default() });
    let client = "198.51.100.1";
    let nobody = told(&by_key, ("http://a.test/", client), "limits").await;
    let expected = "nothing is counted: what tells clients apart is empty here  [limit-conn-zone-variable of the ConfigMap]";
    assert_eq!(nobody, [expected]);
    assert_eq!(told(&by_key, ("http://a.test/?who=me", client), "limits").await.len(), 2);
}

/// What asks for a certificate, and sends who has none elsewhere.
fn asks() -> Option<ClientCertificate> {
    bed::asks(ClientDemand::Required, ClientErrorPage::Redirect(PAGE.to_owned()))
}

#[tokio::test]
async fn an_explanation_tells_the_page_for_who_shows_no_certificate_from_other_redirects() {
    let client = "192.0.2.1";
    let page = format!("302 to {PAGE}: the client shows no good certificate  [auth-tls-error-page");
    let of_ingress = format!("{page} of Ingress demo/x]");
    // The host asks, by an Ingress of it or by one whose paths it has not.
    for (own, expected) in [(true, of_ingress.clone()), (false, format!("{page}]"))] {
        let client_certificate = asks().filter(|_| own);
        let mut all = with(Policy { client_certificate, ..Policy::default() });
        change(&mut all, |server| {
            owned(server);
            server.client_certificate = asks();
            server.www = Some(ServerName::new("www.a.test"));
        });
        assert_eq!(told(&all, ("https://a.test/", client), "redirect").await, [expected]);
        // The other name is redirected before anything is asked.
        let www = told(&all, ("https://www.a.test/", client), "redirect").await;
        assert_eq!(www, ["308 to https://a.test:443: from-to-www-redirect of the host"]);
    }
    // An Ingress asks for more than its host does.
    let client_certificate = asks();
    let mut all = with(Policy { client_certificate, ..Policy::default() });
    change(&mut all, owned);
    assert_eq!(told(&all, ("https://a.test/", client), "redirect").await, [of_ingress]);
}

#[tokio::test]
async fn an_explanation_tells_a_redirect_of_a_hosts_snippet_from_one_to_a_slash() {
    let endpoint = ENDPOINT.parse().expect("an address");
    let host = Host::default().server("if ($arg_old) { return 301 https://new.test/; }");
    let all = host.path("/p/", "", Policy::default()).configuration(endpoint);
    let redirect = async |path: &str| {
        told(&all, (&format!("http://a.test{path}"), "192.0.2.1"), "redirect").await
    };
    let snippet = "301 to https://new.test/: as a snippet of the host says";
    assert_eq!(redirect("/p/?old=1").await, [snippet]);
    let slash = redirect("/p").await;
    assert_eq!(slash, ["301 to http://a.test/p/: the path lacks its slash"]);
}
