//! Text of users that wants to be configuration (the injections that ingress-nginx had to mend: paths, aliases,
//! redirects, headers, realms, mirror targets …): it arrives as a value, and no directive is added or lost.

use super::reader::{Read, read};
use model::policy::{
    AuthBasic, AuthExternal, AuthScheme, ConnectionHeader, Cors, CustomHeaders, FastCgi, LimitKey,
    Limits, Mirror, Origins, Policy, Redirect, RequestLimit, Rewrite, Users,
};
use model::{
    Alias, Backend, Configuration, Kind, Location, Origin, Part, PathKind, Pattern, Server,
    ServerName, ServiceRef, SetHeader, Template, UpstreamId, Url,
};
use nginx::{Environment, conf};
use std::sync::Arc;

/// What was tried against ingress-nginx (research/reliability.md section 5), and what nginx's lexer stumbles over.
const HOSTILE: [&str; 14] = [
    "/;}location /x{return 200;}",
    "\"; return 200 injected; #",
    "a\";}}server{listen 81;return 200;}#",
    "x\nproxy_pass http://evil;\n",
    "'$(id)'",
    "${literal}",
    "$namespace",
    "\\",
    "\\\"; deny all;",
    "/#;\n}\n}\nssl_engine evil.so;\n",
    "} http { lua_package_path evil",
    "load_module /run/evil.so;",
    "_by_lua_block { os.execute('id') }",
    "\r\nX-Injected: 1",
];

fn environment() -> Environment {
    Environment { directory: "/run/n".into(), ..Environment::default() }
}

fn literal(text: &str) -> Template {
    Template::from_parts(vec![Part::Text(text.to_owned())])
}

fn url(text: &str) -> Url {
    Url {
        secure: false,
        authority: literal(text).into(),
        target: literal(text).into(),
        upstream: Some(UpstreamId::new(text)),
    }
}

/// A policy that says the text wherever a policy can say one.
fn policy(text: &str) -> Policy {
    let header = || SetHeader { name: "X-A".to_owned(), value: literal(text).into() };
    Policy {
        redirect: Some(Redirect { status: 302, target: literal(text).into() }),
        upstream_host: Some(literal(text)),
        rewrite: Some(Rewrite {
            pattern: Pattern::new(".", true).expect("a pattern"),
            target: literal(text),
            prefix: Some(literal(text)),
        }),
        mirror: Some(Mirror { url: url(text), host: Some(literal(text)), body: true }.into()),
        auth_basic: Some(
            AuthBasic {
                scheme: AuthScheme::Basic,
                realm: text.to_owned(),
                users: Arc::new(Users::default()),
            }
            .into(),
        ),
        auth_external: Some(
            AuthExternal {
                url: url(text),
                method: Some(text.to_owned()),
                sign_in: Some(literal(text).into()),
                response_headers: vec!["X-User".to_owned()],
                request_headers: vec![("X-B".to_owned(), literal(text).into())],
                request_redirect: Some(literal(text).into()),
                always_set_cookie: true,
                cache: None,
                snippet: None,
            }
            .into(),
        ),
        limits: Limits {
            per_second: Some(RequestLimit { rate: 1000, burst: 5000 }),
            key: LimitKey::Text(literal(text)),
            ..Limits::default()
        },
        cors: Some(
            Cors {
                origins: Origins::Any,
                credentials: true,
                methods: text.to_owned(),
                headers: text.to_owned(),
                expose: Some(text.to_owned()),
                max_age: 1,
            }
            .into(),
        ),
        connection_header: Some(ConnectionHeader::Close),
        custom_headers: CustomHeaders([header()].into()),
        fastcgi: FastCgi {
            index: Some(text.to_owned()),
            params: [("P".to_owned(), literal(text).into())].into(),
        },
        ..Policy::default()
    }
}

/// A Configuration that says the text wherever it can be said.
fn configuration(text: &str) -> Configuration {
    let location = Location {
        path: format!("/{text}"),
        kind: PathKind::Exact,
        whole: false,
        backend: Backend::Upstream(UpstreamId::new(text)),
        canary: None,
        service: Some(
            ServiceRef { namespace: text.into(), name: text.into(), port: text.into() }.into(),
        ),
        origin: Some(Origin::new(Kind::Ingress, text, text).into()),
        policy: Arc::new(policy(text)),
    };
    let server = Server {
        aliases: vec![Alias::Name(ServerName::new(text))],
        app_root: Some(literal(text)),
        locations: vec![Arc::new(location)],
        ..Server::new(ServerName::new(format!("x{text}")))
    };
    let mut configuration = Configuration::default();
    configuration.servers.insert(server.name.clone(), Arc::new(server));
    configuration
}

/// Names and nesting of all directives, without what they say.
fn skeleton(all: &[Read]) -> Vec<String> {
    all.iter()
        .map(|read| {
            let inner = read.block.as_ref().map(|block| format!("{:?}", skeleton(block)));
            format!("{} {} {}", read.words[0], read.words.len(), inner.unwrap_or_default())
        })
        .collect()
}

fn words(all: &[Read], found: &mut Vec<String>) {
    for read in all {
        found.extend(read.words.iter().cloned());
        words(read.block.as_deref().unwrap_or_default(), found);
    }
}

#[test]
fn a_value_adds_no_directive_and_takes_none_away() {
    let read = |text: &str| {
        let written = conf::write(&configuration(text), &environment()).expect("nginx can read it");
        read(&written.text.text).unwrap_or_else(|error| panic!("{error} for {text:?}"))
    };
    let harmless = skeleton(&read("harmless"));
    for text in HOSTILE {
        let all = read(text);
        assert_eq!(skeleton(&all), harmless, "{text:?}");
        let (mut found, dollar) = (Vec::new(), text.replace('$', "${fairway_dollar}"));
        words(&all, &mut found);
        // The realm, as a whole and as nothing else.
        assert!(found.contains(&dollar), "{text:?} does not arrive");
    }
}

#[test]
fn a_value_that_nginx_cannot_read_names_its_ingress() {
    for text in ["a\0b".to_owned(), "a".repeat(5000)] {
        let refused =
            conf::write(&configuration(&text), &environment()).expect_err("it cannot be read");
        assert!(!refused.owners.is_empty());
        assert!(refused.owners.iter().all(|owner| owner.origin.kind == Kind::Ingress));
    }
}
