//! Whatever changes in whatever order: following the changes means the same as translating anew.

use crate::builders::*;
use model::{Kind, Origin, Problem};
use objects::{Ingress, IngressRule, IngressTls, PathType, PortRef, Snapshot};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::{Arc, LazyLock};
use translate::{Options, Problems, Translator, translate};

/// `x` with `y-s` and `x-y` with `s` have upstreams of the same name.
const NAMESPACES: &[&str] = &["x", "x-y"];
const SERVICES: &[&str] = &["s", "y-s", "d"];
const SECRETS: &[&str] = &["one", "two"];

/// Annotations that never take an Ingress out: what was valid before does not matter then.
const ANNOTATIONS: &[(&str, &str)] = &[
    ("use-regex", "true"),
    ("rewrite-target", "/p"),
    ("rewrite-target", "/$nope"),
    ("backend-protocol", "HTTPS"),
    ("backend-protocol", "FCGI"),
    ("proxy-ssl-secret", "x/one"),
    ("proxy-ssl-secret", "x/two"),
    ("proxy-read-timeout", "soon"),
    ("proxy-body-size", "2m"),
    ("auth-url", "http://auth"),
    ("auth-tls-secret", "x/one"),
    ("canary", "true"),
    ("canary", "true"),
    ("canary-weight", "20"),
    ("canary-by-header", "X-Canary"),
    ("canary-by-header-pattern", "(["),
    ("affinity", "cookie"),
    ("affinity-canary-behavior", "legacy"),
    ("session-cookie-name", "a;b"),
    ("load-balance", "ewma"),
    ("upstream-hash-by", "$nope$request_uri"),
    ("service-upstream", "true"),
    ("enable-global-auth", "false"),
    ("server-alias", "b.test, c.test, *.a.test"),
    ("server-alias", "www.b.test, c.test, ~c, .d.test"),
    ("server-alias", "www.a.test, a.test, d.test"),
    ("from-to-www-redirect", "true"),
    ("app-root", "/x"),
    ("ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("permanent-redirect", "/y"),
    ("ssl-passthrough", "true"),
    ("nonsense", ""),
];

static CERTIFICATES: LazyLock<Vec<(String, String)>> =
    LazyLock::new(|| vec![certificate(&["a.test"]), certificate(&["*.a.test", "b.test"])]);

#[derive(Clone, Debug)]
enum Change {
    Ingress(&'static str, &'static str, Option<Arc<Ingress>>),
    Service(&'static str, &'static str, u8),
    Slice(&'static str, &'static str, u8, u8),
    Secret(&'static str, &'static str, u8),
    ConfigMap(u8),
    TcpServices(u8),
    Class(u8),
    Malformed(bool),
}

impl Change {
    fn apply(&self, snapshot: &mut Snapshot) {
        match self {
            Self::Ingress(namespace, name, Some(ingress)) => {
                let mut ingress = Ingress::clone(ingress);
                ingress.meta.key = key(namespace, name);
                put_ingress(snapshot, ingress);
            }
            Self::Ingress(namespace, name, None) => {
                drop(snapshot.ingresses.remove(&key(namespace, name)))
            }
            Self::Service(namespace, name, kind) => {
                change_service(snapshot, namespace, name, *kind)
            }
            Self::Slice(namespace, name, number, kind) => {
                change_slice(snapshot, namespace, name, *number, *kind)
            }
            Self::Secret(namespace, name, kind) => change_secret(snapshot, namespace, name, *kind),
            Self::ConfigMap(kind) => change_config_map(snapshot, *kind),
            Self::TcpServices(kind) => change_tcp_services(snapshot, *kind),
            Self::Class(kind) => change_class(snapshot, *kind),
            Self::Malformed(there) => {
                let message = "no Service".to_owned();
                let malformed = objects::Malformed {
                    kind: None,
                    key: key("", "x.yaml:1:1"),
                    of: Some((objects::Kind::Secret, key("x", "one"))),
                    why: objects::Unread::Wrong,
                    message,
                };
                match there {
                    true => snapshot.malformed.insert("Secret x/one".into(), Arc::new(malformed)),
                    false => snapshot.malformed.remove("Secret x/one"),
                };
            }
        }
    }
}

fn change_service(snapshot: &mut Snapshot, namespace: &str, name: &str, kind: u8) {
    let mut new = service(namespace, name, 80 + u16::from(kind % 2));
    new.cluster_ip = (kind == 1).then(|| "10.96.0.1".to_owned());
    if kind > 2 {
        let names = ["db.example", "s.x.svc.cluster.local", "y-s.x.svc"];
        new.kind = "ExternalName".to_owned();
        new.external_name = Some(names[usize::from(kind) % 3].to_owned());
    }
    if kind == 2 {
        snapshot.services.remove(&key(namespace, name));
    } else {
        put_service(snapshot, new);
    }
}

fn change_tcp_services(snapshot: &mut Snapshot, kind: u8) {
    let all = [("9000", "x/s:80"), ("9001", "x-y/y-s:http"), ("9002", "x/d:81"), ("x", "x/s:80")];
    let some = match kind {
        0 => &all[..],
        1 => &all[1..3],
        _ => return drop(snapshot.config_maps.remove(&key("x", "tcp"))),
    };
    put_config_map(snapshot, config_map("x", "tcp", some));
}

fn change_slice(snapshot: &mut Snapshot, namespace: &str, name: &str, number: u8, kind: u8) {
    if kind == 0 {
        snapshot.slices.remove(&key(namespace, name));
        return;
    }
    let mut one = endpoint("10.0.0.1");
    one.ready = kind != 2;
    one.terminating = kind == 2;
    put_slice(
        snapshot,
        slice(
            namespace,
            &format!("{name}-{number}"),
            name,
            vec![one, endpoint(&format!("10.0.0.{kind}"))],
        ),
    );
    if kind == 4 {
        put_slice(snapshot, slice(namespace, &format!("{name}-{number}"), name, Vec::new()));
    }
}

fn change_secret(snapshot: &mut Snapshot, namespace: &str, name: &str, kind: u8) {
    let [(a, a_key), (b, b_key)] = CERTIFICATES.as_slice() else { panic!("two certificates") };
    let new = match kind {
        0 => return drop(snapshot.secrets.remove(&key(namespace, name))),
        1 => secret(namespace, name, &[("tls.crt", a), ("tls.key", a_key)]),
        2 => secret(namespace, name, &[("tls.crt", b), ("tls.key", b_key), ("ca.crt", b)]),
        // Under a name that never has a good version, which would stay in use.
        3 => secret(namespace, "three", &[("tls.crt", a), ("tls.key", b_key)]),
        _ => secret(namespace, name, &[("ca.crt", a)]),
    };
    put_secret(snapshot, new);
}

fn change_config_map(snapshot: &mut Snapshot, kind: u8) {
    let data: &[(&str, &str)] = match kind {
        0 => return drop(snapshot.config_maps.remove(&key("x", "settings"))),
        1 => &[
            ("proxy-read-timeout", "7"),
            ("retry-non-idempotent", "true"),
            ("proxy-ssl-location-only", "true"),
        ],
        2 => &[("allow-cross-namespace-resources", "true"), ("hsts", "maybe")],
        5 => &[("allow-cross-namespace", "all")],
        6 => &[
            ("allow-cross-namespace", "aliases, paths"),
            ("namespace-budget", "paths=4, hosts=3, problems=5"),
        ],
        7 => &[("namespace-budget", "ingresses=2, certificate-bytes=2500")],
        3 => &[("global-auth-url", "http://auth")],
        _ => &[("block-cidrs", "10.0.0.0/8"), ("nonsense", "")],
    };
    put_config_map(snapshot, config_map("x", "settings", data));
}

fn change_class(snapshot: &mut Snapshot, kind: u8) {
    match kind {
        0 => snapshot.classes = None,
        1 => put_class(snapshot, class("nginx", "example.com/other")),
        2 => put_class(snapshot, class("other", "k8s.io/ingress-nginx")),
        _ => put_class(snapshot, class("nginx", "k8s.io/ingress-nginx")),
    }
}

fn port() -> impl Strategy<Value = Option<PortRef>> {
    prop_oneof![
        4 => Just(Some(PortRef::Number(80))),
        1 => Just(Some(PortRef::Number(81))),
        1 => Just(Some(PortRef::Name("http".to_owned()))),
        1 => Just(None),
    ]
}

fn rules() -> impl Strategy<Value = Vec<IngressRule>> {
    let kind = prop_oneof![
        Just(PathType::Prefix),
        Just(PathType::Exact),
        Just(PathType::ImplementationSpecific)
    ];
    let path = (select(&["/", "/p", "/p/", "/p(", ""][..]), kind, select(SERVICES), port())
        .prop_map(|(at, kind, service, port)| path(at, kind, backend(service, port)));
    let host = select(
        &[
            None,
            Some("a.test"),
            Some("*.a.test"),
            Some("b.test"),
            Some("A.test"),
            Some("_"),
            Some("c.test"),
            Some("www.a.test"),
        ][..],
    );
    vec(
        (host, option::weighted(0.8, vec(path, 0..3))).prop_map(|(host, paths)| rule(host, paths)),
        0..3,
    )
}

fn sections() -> impl Strategy<Value = Vec<IngressTls>> {
    let hosts = vec(select(&["a.test", "*.a.test", "b.test"][..]), 0..2);
    let secret = option::of(select(&["one", "two", "three"][..]));
    vec((hosts, secret).prop_map(|(hosts, secret)| tls(&hosts, secret)), 0..3)
}

fn an_ingress() -> impl Strategy<Value = Ingress> {
    let default = option::weighted(0.3, (select(SERVICES), port()));
    let class = select(&[Some("nginx"), Some("nginx"), Some("other"), None][..]);
    (rules(), sections(), default, class, 0..3i64, vec(select(ANNOTATIONS), 0..3)).prop_map(
        |(rules, tls, default, class, created, annotations)| {
            let default_backend = default.map(|(service, port)| backend(service, port));
            let class = class.map(str::to_owned);
            let mut made = Ingress {
                rules,
                tls,
                default_backend: default_backend.map(Box::new),
                class,
                ..ingress("", "")
            };
            made.meta.created = created;
            for (name, value) in annotations {
                annotate(&mut made, name, value);
            }
            made
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let namespace = || select(NAMESPACES);
    prop_oneof![
        6 => (namespace(), select(&["a", "b", "c"][..]), option::weighted(0.8, an_ingress()))
            .prop_map(|(namespace, name, ingress)| Change::Ingress(namespace, name, ingress.map(Arc::new))),
        2 => (namespace(), select(SERVICES), 0..6u8).prop_map(|(namespace, name, kind)| Change::Service(namespace, name, kind)),
        2 => (namespace(), select(SERVICES), 0..2u8, 0..5u8)
            .prop_map(|(namespace, name, number, kind)| Change::Slice(namespace, name, number, kind)),
        2 => (namespace(), select(SECRETS), 0..5u8).prop_map(|(namespace, name, kind)| Change::Secret(namespace, name, kind)),
        1 => (0..9u8).prop_map(Change::ConfigMap),
        1 => (0..3u8).prop_map(Change::TcpServices),
        1 => (0..4u8).prop_map(Change::Class),
        1 => any::<bool>().prop_map(Change::Malformed),
    ]
}

fn options() -> Options {
    Options {
        config_map: Some(key("x", "settings")),
        default_ssl_certificate: Some(key("x", "one")),
        default_backend_service: Some(key("x", "d")),
        tcp_services: Some(key("x", "tcp")),
        passthrough: true,
        ..Options::default()
    }
}

/// All but those of a class that was ours and is gone, or of the ConfigMap: whoever comes later cannot know whose it
/// was (`classes`), unless it is called as `--ingress-class` says.
fn of_now(problems: &Problems) -> Vec<&Problem> {
    let was_ours = |origin: &Origin| origin.kind == Kind::IngressClass && &*origin.name != "nginx";
    let was_there = |problem: &Problem| problem.message.starts_with("it is gone");
    let of_now =
        problems.iter().filter(|problem| !was_ours(&problem.origin) && !was_there(problem));
    of_now.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn following_changes_means_the_same_as_translating_anew(steps in vec(vec(change(), 1..4), 1..16)) {
        let mut snapshot = cluster();
        let mut translator = Translator::new(options());
        for step in steps {
            for change in &step {
                change.apply(&mut snapshot);
            }
            let followed = translator.update(&snapshot);
            let anew = translate(&snapshot, &options());
            prop_assert_eq!(&followed.configuration, &anew.configuration, "after {:?}", step);
            let [followed, anew] = [&followed.problems, &anew.problems].map(of_now);
            prop_assert_eq!(followed, anew, "after {:?}", step);
            let again = translator.update(&snapshot);
            prop_assert!(again.changes.is_empty());
        }
    }

    #[test]
    fn every_server_has_a_root_and_every_upstream_and_certificate_exists(changes in vec(change(), 1..30)) {
        let mut snapshot = cluster();
        changes.iter().for_each(|change| change.apply(&mut snapshot));
        let configuration = translate(&snapshot, &options()).configuration;
        prop_assert!(configuration.servers.contains_key(&model::ServerName::catch_all()));
        let mut names = std::collections::BTreeSet::new();
        for name in configuration.servers.values().flat_map(|server| server.other_names()) {
            let name = name.to_string();
            let is_host = configuration.servers.contains_key(&model::ServerName::new(name.as_str()));
            prop_assert!(!is_host, "{name} is a host itself");
            prop_assert!(names.insert(name.clone()), "{name} leads to two servers");
        }
        for server in configuration.servers.values() {
            let has_root = server.locations.iter().any(|location| location.path == "/" && location.kind == model::PathKind::Prefix);
            prop_assert!(has_root, "{} has no root", server.name);
            for location in &server.locations {
                if let model::Backend::Upstream(id) = &location.backend {
                    prop_assert!(configuration.upstreams.contains_key(id), "{id} is nowhere");
                }
                if let Some(canary) = &location.canary {
                    let id = &canary.upstream;
                    prop_assert!(configuration.upstreams.contains_key(id), "{id} is nowhere");
                }
            }
            if let Some(id) = &server.certificate {
                let exists = configuration.certificates.contains_key(id);
                prop_assert!(exists || *id == model::CertificateId::of_default(), "{id} is nowhere");
            }
        }
    }
}

/// Objects that come and go: two Ingresses whose snippets name an upstream of the same name, others that share their
/// host, Services, and what the ConfigMap says for all.
fn put_snippets(snapshot: &mut Snapshot, bits: u32) {
    const ALLOWED: [(&str, &str); 2] =
        [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    const OWN: &str =
        "location /own/ { set $proxy_upstream_name x-y-s-80; } satisfy any; merge_slashes off;";
    const OTHER: &str =
        "if ($uri) { set $proxy_upstream_name x-y-s-80; } limit_req zone=keyed; set $a $uri;";
    let is_there = |bit: u32| bits & (1 << bit) != 0;
    let own =
        [("server-snippet", OWN), ("configuration-snippet", "location ~ x { return 204 $pool; }")];
    let other = [("configuration-snippet", OTHER), ("allowlist-source-range", "10.0.0.0/8")];
    type Annotations<'a> = &'a [(&'a str, &'a str)];
    let ingresses: [(&str, &str, &str, Annotations<'_>); 3] = [
        ("x", "own", "/", &own),
        ("x-y", "other", "/other", &other),
        ("x", "third", "/third", &[("server-snippet", "add_header A $a;")]),
    ];
    for (bit, (namespace, name, at, annotations)) in (0..).zip(ingresses) {
        snapshot.ingresses.remove(&key(namespace, name));
        if is_there(bit) {
            let mut made = simple(namespace, name, "a.test", at, "d");
            annotations.iter().for_each(|(name, value)| annotate(&mut made, name, value));
            put_ingress(snapshot, made);
        }
    }
    for (bit, namespace, name) in [(3, "x", "y-s"), (4, "x-y", "s")] {
        snapshot.services.remove(&key(namespace, name));
        if is_there(bit) {
            put_service(snapshot, service(namespace, name, 80));
        }
    }
    let all = [
        (
            "http-snippet",
            "map $uri $pool { default a; } limit_req_zone $uri zone=keyed:1m rate=1r/s;",
        ),
        ("server-snippet", "set $a all; add_header B $a;"),
        ("location-snippet", "proxy_set_header Pool $pool;"),
        ("stream-snippet", "server { listen 7777 udp; listen 7778; proxy_pass s.x-y.svc:80; }"),
    ];
    let data = if is_there(5) { [&ALLOWED[..], &all].concat() } else { ALLOWED.to_vec() };
    put_config_map(snapshot, config_map("x", "settings", &data));
}

#[test]
fn snippets_mean_the_same_whatever_came_before() {
    let mut snapshot = cluster();
    let mut translator = Translator::new(options());
    let mut seen = std::collections::BTreeSet::new();
    // Each step changes one thing, and all combinations are met.
    for step in 0..64u32 {
        put_snippets(&mut snapshot, step ^ (step >> 1));
        let followed = translator.update(&snapshot);
        let anew = translate(&snapshot, &options());
        assert_eq!(followed.configuration, anew.configuration, "step {step}");
        assert_eq!(followed.problems, anew.problems, "step {step}");
        assert!(translator.update(&snapshot).changes.is_empty());
        let text = told(&followed.configuration);
        for id in ["x-y-s-80", "x-y/s:80"].map(|id| format!("[\"proxy_upstream_name\",\"{id}\"]")) {
            seen.extend(text.contains(&id).then_some(id));
        }
    }
    assert_eq!(seen.len(), 2, "the two upstreams were told apart");
}

/// All that a Configuration says, hidden values included.
#[expect(clippy::disallowed_methods, reason = "the values are looked at, and are no secrets")]
fn told(configuration: &model::Configuration) -> String {
    model::revealed(|| serde_json::to_string(configuration)).expect("plain data")
}
