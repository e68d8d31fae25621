//! Which change needs what (compat/behaviour.md section 27), and that a push never leaves nginx.conf behind.

use model::policy::{Algorithm, Balance, Canary, CanaryRules, Cors, Origins, Policy};
use model::{
    Backend, Certificate, CertificateId, Configuration, Endpoints, Global, Kind, Location, Origin,
    PathKind, PrivateKey, Server, ServerName, StreamSettings, Telemetry, TlsSettings, Upstream,
    UpstreamId,
};
use nginx::plan::{Plan, plan};
use std::sync::Arc;

fn id() -> UpstreamId {
    UpstreamId::new("demo-echo-80")
}

fn location(policy: Policy) -> Location {
    Location {
        path: "/".to_owned(),
        kind: PathKind::Prefix,
        whole: false,
        backend: Backend::Upstream(id()),
        canary: None,
        service: None,
        origin: Some(Origin::new(Kind::Ingress, "demo", "a").into()),
        policy: Arc::new(policy),
    }
}

fn upstream(addresses: &[&str]) -> Arc<Upstream> {
    let ready = addresses.iter().map(|text| text.parse().expect("an address")).collect();
    let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
    Arc::new(Upstream { id: id(), endpoints, external: None, namespace: "".into() })
}

fn before() -> Configuration {
    let mut configuration = Configuration::default();
    put(&mut configuration, "a.test", location(Policy::default()));
    configuration.upstreams.insert(id(), upstream(&["10.0.0.1:80"]));
    configuration
}

fn put(configuration: &mut Configuration, host: &str, location: Location) {
    let name = ServerName::new(host);
    let server = Server { locations: vec![Arc::new(location)], ..Server::new(name.clone()) };
    configuration.servers.insert(name, Arc::new(server));
}

fn with_server(change: impl Fn(&mut Server)) -> impl Fn(&mut Configuration) {
    move |configuration| {
        let name = ServerName::new("a.test");
        let mut server = Server::clone(&configuration.servers[&name]);
        change(&mut server);
        configuration.servers.insert(name, Arc::new(server));
    }
}

fn with_policy(policy: impl Fn() -> Policy) -> impl Fn(&mut Configuration) {
    with_server(move |server| server.locations = vec![Arc::new(location(policy()))])
}

fn canary() -> Canary {
    Canary {
        upstream: UpstreamId::new("demo-new-80"),
        origin: Origin::new(Kind::Ingress, "demo", "b"),
        rules: CanaryRules { weight: 10, ..CanaryRules::default() }.into(),
        balance: Balance::default(),
    }
}

fn certificate() -> Certificate {
    Certificate {
        id: CertificateId::new("demo/tls"),
        chain: vec![vec![1]],
        key: PrivateKey(vec![2]),
        names: Vec::new().into(),
        not_after: 0,
    }
}

type Change<'a> = (&'a str, Plan, Box<dyn Fn(&mut Configuration)>);

/// What needs no reload.
fn small() -> Vec<Change<'static>> {
    vec![
        ("nothing", Plan::Nothing, Box::new(|_| {})),
        (
            "endpoints",
            Plan::Push,
            Box::new(|c| drop(c.upstreams.insert(id(), upstream(&["10.0.0.2:80"])))),
        ),
        ("no endpoints", Plan::Push, Box::new(|c| drop(c.upstreams.insert(id(), upstream(&[]))))),
        ("an upstream goes", Plan::Push, Box::new(|c| drop(c.upstreams.remove(&id())))),
        (
            "a certificate",
            Plan::Push,
            Box::new(|c| {
                drop(
                    c.certificates.insert(CertificateId::new("demo/tls"), Arc::new(certificate())),
                );
            }),
        ),
        (
            "whose certificate",
            Plan::Push,
            Box::new(with_server(|server| {
                server.certificate = Some(CertificateId::of_default());
            })),
        ),
        (
            "the default certificate",
            Plan::Push,
            Box::new(|c| {
                c.default_certificate = Some(CertificateId::new("demo/tls"));
            }),
        ),
        (
            "stapling",
            Plan::Push,
            Box::new(|c| {
                let tls = TlsSettings { ocsp: true, ..TlsSettings::default() };
                c.global = Arc::new(Global { tls, ..Global::default() });
            }),
        ),
        (
            "tracing",
            Plan::Nothing,
            Box::new(|c| {
                let service_name = "edge".to_owned();
                let telemetry = Telemetry { service_name, ..Telemetry::default() };
                c.global = Arc::new(Global { telemetry, ..Global::default() });
            }),
        ),
        (
            "an algorithm",
            Plan::Push,
            Box::new(with_policy(|| Policy {
                balance: Balance { algorithm: Algorithm::Random, affinity: None },
                ..Policy::default()
            })),
        ),
        (
            "a canary",
            Plan::Push,
            Box::new(with_server(|server| {
                let location =
                    Location { canary: Some(canary().into()), ..location(Policy::default()) };
                server.locations = vec![Arc::new(location)];
            })),
        ),
    ]
}

/// What needs one, and what concerns nginx not at all.
fn large() -> Vec<Change<'static>> {
    let global = |change: fn(&mut Global)| {
        move |configuration: &mut Configuration| {
            let mut global = Global::clone(&configuration.global);
            change(&mut global);
            configuration.global = Arc::new(global);
        }
    };
    vec![
        (
            "layer 4",
            Plan::Nothing,
            Box::new(global(|global| {
                global.streams = StreamSettings { tries: 7, ..StreamSettings::default() };
            })),
        ),
        ("the ConfigMap", Plan::Reload, Box::new(global(|global| global.server_tokens = true))),
        ("a host", Plan::Reload, Box::new(|c| put(c, "b.test", location(Policy::default())))),
        (
            "a host goes",
            Plan::Reload,
            Box::new(|c| drop(c.servers.remove(&ServerName::new("a.test")))),
        ),
        (
            "a path",
            Plan::Reload,
            Box::new(with_server(|server| {
                server
                    .locations
                    .push(Arc::new(Location { path: "/p".into(), ..location(Policy::default()) }));
            })),
        ),
        (
            "the backend of a path",
            Plan::Reload,
            Box::new(with_server(|server| {
                let backend = Backend::Upstream(UpstreamId::new("demo-other-80"));
                server.locations =
                    vec![Arc::new(Location { backend, ..location(Policy::default()) })];
            })),
        ),
        (
            "denied",
            Plan::Reload,
            Box::new(with_server(|server| {
                let backend = Backend::Denied("no secret".into());
                server.locations =
                    vec![Arc::new(Location { backend, ..location(Policy::default()) })];
            })),
        ),
    ]
}

/// What annotations say that stands in nginx.conf.
fn annotations() -> Vec<Change<'static>> {
    vec![
        (
            "an algorithm that measures",
            Plan::Reload,
            Box::new(with_policy(|| Policy {
                balance: Balance { algorithm: Algorithm::Ewma, affinity: None },
                ..Policy::default()
            })),
        ),
        (
            "an annotation",
            Plan::Reload,
            Box::new(with_policy(|| Policy {
                cors: Some(
                    Cors {
                        origins: Origins::Any,
                        credentials: false,
                        methods: "GET".into(),
                        headers: "X".into(),
                        expose: None,
                        max_age: 1,
                    }
                    .into(),
                ),
                ..Policy::default()
            })),
        ),
    ]
}

fn changes() -> Vec<Change<'static>> {
    small().into_iter().chain(large()).chain(annotations()).collect()
}

#[test]
fn a_change_has_its_plan_in_both_directions() {
    for (what, expected, change) in changes() {
        let (before, mut after) = (before(), before());
        change(&mut after);
        assert_eq!(plan(&before, &after), expected, "{what}");
        assert_eq!(plan(&after, &before), expected, "{what}, taken back");
    }
}

#[test]
fn what_is_only_pushed_is_not_in_nginx_conf() {
    let place = nginx::Environment { directory: "/run/n".into(), ..nginx::Environment::default() };
    let text = |configuration: &Configuration| {
        nginx::conf::write(configuration, &place).expect("nginx can read it").text.text
    };
    for (what, expected, change) in changes() {
        let mut after = before();
        change(&mut after);
        assert_eq!(text(&before()) != text(&after), expected == Plan::Reload, "{what}");
    }
}
