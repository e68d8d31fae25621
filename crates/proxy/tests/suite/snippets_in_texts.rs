//! Variables of snippets in texts of the controller, over sockets: the line of the log, and the key that endpoints are
//! chosen by.

use crate::bed::{self, MAIN, answering, put_host, put_upstream, start, talk};
use engine::Engine;
use model::policy::{Algorithm, Balance, Policy};
use model::snippet::{GlobalScope, Scope};
use model::{
    Configuration, Global, Kind, Location, LogFormat, LogTarget, Logs, Origin, Part, Server,
    ServerName, Template, Variable,
};
use snippet::{Context, Names, Snippet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const HTTP: &str = r#"map $request_uri $safe_uri { "~^(?<before>[^?]*)\?.*token=" "$before?hidden"; default $request_uri; }
    map $sent_http_x_kind $kind { wood tree; default none; }"#;
const OK: &[u8] =
    b"HTTP/1.1 200 OK\r\nX-Kind: wood\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// What a `configuration-snippet` of a namespace means beside [`HTTP`], and what that means.
fn understood(text: &str, owner: &str) -> (Scope, GlobalScope) {
    let parse = |place, text| Snippet::parse(place, text).expect("a snippet");
    let (http, own) = (parse(Context::Http, HTTP), parse(Context::Location, text));
    let mut names = Names::default();
    http.declare(&mut names);
    let mut names = names.of_tenant(owner);
    own.declare(&mut names);
    let mut scope = own.understand(&names).expect("it is right").scope;
    scope.belong_to(&owner.into());
    (scope, http.understand(&names).expect("it is right").http)
}

fn template(text: &str) -> Template {
    let other = |name: &str| Some(Part::Variable(Variable::OfSnippets(name.into())));
    Template::parse_for(text, other).expect("a text")
}

/// Two endpoints that are chosen by what a snippet sets, and beside them a host without snippets.
async fn configuration(path: &Path) -> Configuration {
    let mut configuration = Configuration::default();
    let endpoints = vec![answering(OK).await.0, answering(OK).await.0];
    let id = put_upstream(&mut configuration, MAIN, endpoints);
    let (scope, http) = understood("set $client_ip $arg_who;", "demo");
    let algorithm = Algorithm::Hash(template("$client_ip"));
    let policy = Policy {
        snippet: Some(Arc::new(scope)),
        balance: Balance { algorithm, affinity: None },
        ..Policy::default()
    };
    let origin = Some(Origin::new(Kind::Ingress, "demo", "x").into());
    let backend = model::Backend::Upstream(id.clone());
    let location = Location { origin, ..bed::location("/", backend, Arc::new(policy)) };
    let name = ServerName::new("a.test");
    let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
    configuration.servers.insert(name, Arc::new(server));
    put_host(&mut configuration, "b.test", &id, Policy::default());
    let line = "$safe_uri|$client_ip|$kind|$loggable|$ssl_session_id|$nope|$upstream_addr";
    configuration.global = Arc::new(Global {
        http_snippet: Some(Arc::new(http)),
        logs: Logs {
            access: LogTarget::File(path.to_str().expect("it is text").to_owned()),
            ..Logs::default()
        },
        log_format: LogFormat { template: template(line), ..LogFormat::default() },
        ..Global::default()
    });
    configuration
}

#[tokio::test]
async fn what_snippets_declare_is_logged_and_chooses_endpoints() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let native = start(&configuration(&path).await).await;
    let asked = ["a.test/x?token=1&who=0", "b.test/x?token=2", "b.test/y?z"].map(str::to_owned);
    let asked = asked.into_iter().chain((1..20).map(|who| format!("a.test/?who={who}")));
    for (host, target) in asked.collect::<Vec<_>>().iter().filter_map(|it| it.split_once('/')) {
        let head = format!("GET /{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert!(talk(&native, head.as_bytes()).await.starts_with("HTTP/1.1 200"), "{target}");
    }
    native.drain(Duration::from_secs(5)).await;
    let text = std::fs::read_to_string(&path).expect("the log is a file");
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.rsplit_once('|')).collect();
    assert_eq!(lines[0].0, "/x?hidden|0|tree|1|-|-");
    assert_eq!(lines[1].0, "/x?hidden|-|tree|1|-|-");
    assert_eq!(lines[2].0, "/y?z|-|tree|1|-|-");
    let chosen: std::collections::BTreeSet<&str> = lines[3..].iter().map(|line| line.1).collect();
    assert_eq!(chosen.len(), 2, "all requests went to one endpoint: {text}");
}
