//! What is in force at a location, and who asks for it: found out by taking away what is written, one thing at a time.

use crate::cases::{CLASS, folders, options, pool, root};
use model::policy::Policy;
use model::{Configuration, Location, Server};
use objects::{ObjectKey, Snapshot, snapshot_of};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use translate::{
    Asked, Fate, InForce, Options, Row, Setting, Translation, Translator, annotation_rows,
    translate,
};

/// A place, as a host has it: its name, the kind of its path, and that.
type Place = (String, String, String);

/// What is in force at each place, by field, with the object that owns it.
type Told = BTreeMap<Place, (String, BTreeMap<&'static str, Setting>)>;

fn each(configuration: &Configuration, mut look: impl FnMut(Place, &Location, Option<&Server>)) {
    let place = |host: &str, location: &Location| {
        (host.to_owned(), format!("{:?}", location.kind), location.path.clone())
    };
    for server in configuration.servers.values() {
        for location in &server.locations {
            look(place(server.name.as_str(), location), location, Some(server));
        }
    }
    for (number, host) in configuration.routes.values().enumerate() {
        for (at, location) in host.locations.iter().enumerate() {
            let (name, kind, path) = place(host.name.as_str(), location);
            look((format!("{name} {number}.{at}"), kind, path), location, None);
        }
    }
}

fn settings(
    snapshot: &Snapshot,
    options: &Options,
    made: &Translation,
    location: &Location,
    server: Option<&Server>,
) -> Vec<Setting> {
    InForce { snapshot, options, kept: &made.kept }.at(location, server)
}

fn told(snapshot: &Snapshot, options: &Options) -> Told {
    let made = translate(snapshot, options);
    let mut told = Told::new();
    each(&made.configuration, |place, location, server| {
        let owner = location.origin.as_deref().map(ToString::to_string).unwrap_or_default();
        let all = settings(snapshot, options, &made, location, server);
        let fields: BTreeMap<_, _> = all.into_iter().map(|one| (one.field, one)).collect();
        told.insert(place, (owner, fields));
    });
    told
}

/// The objects of each case, and the same without one of the things that are written there: who says it, and the key.
fn cases() -> Vec<(String, Options, Snapshot)> {
    let of = |case: &std::path::PathBuf| {
        let text = fs::read_to_string(case.join("in.yaml")).expect("every case has in.yaml");
        let files = [(Path::new("class.yaml"), CLASS), (Path::new("in.yaml"), text.as_str())];
        let options = Options { gateway_addresses: pool(case), ..options(&text) };
        (
            case.strip_prefix(root()).expect("it is below").display().to_string(),
            options,
            snapshot_of(files),
        )
    };
    let cases = folders(&root()).into_iter().flat_map(|family| folders(&family));
    let files = [(Path::new("class.yaml"), CLASS), (Path::new("more.yaml"), &*more())];
    let more = ("more".to_owned(), options(""), snapshot_of(files));
    cases.map(|case| of(&case)).chain([more]).collect()
}

/// What the cases do not ask for, or have no certificates for.
fn more() -> String {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(["inner.test".to_owned()]).expect("a name");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "trust", "namespace": "shop"},
        "stringData": {"ca.crt": pem, "tls.crt": pem, "tls.key": key.serialize_pem()},
    });
    let ingress = |name: &str, host: &str, service: &str, annotations: &[(&str, &str)]| {
        let own = |(key, value): &(&str, &str)| {
            (format!("nginx.ingress.kubernetes.io/{key}"), Value::from(*value))
        };
        let annotations: serde_json::Map<_, _> = annotations.iter().map(own).collect();
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
            "spec": {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": [{
                "path": "/", "pathType": "Prefix",
                "backend": {"service": {"name": service, "port": {"number": 80}}},
            }]}}]},
        })
    };
    let plain = [
        ("proxy-connect-timeout", "7"),
        ("proxy-send-timeout", "8"),
        ("proxy-next-upstream-timeout", "3"),
        ("proxy-request-buffering", "off"),
        ("proxy-buffers-number", "8"),
        ("proxy-cookie-path", "/a /b"),
        ("ssl-redirect", "false"),
        ("temporal-redirect", "https://a.test/"),
        ("temporal-redirect-code", "307"),
        ("auth-tls-secret", "shop/trust"),
        ("auth-tls-verify-client", "optional"),
    ];
    let secure = [
        ("backend-protocol", "HTTPS"),
        ("proxy-ssl-secret", "shop/trust"),
        ("proxy-ssl-verify", "on"),
        ("proxy-ssl-verify-depth", "2"),
        ("proxy-ssl-name", "inner.test"),
        ("proxy-ssl-server-name", "on"),
        ("proxy-ssl-protocols", "TLSv1.3"),
        ("proxy-ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
    ];
    let canary =
        [("canary", "true"), ("canary-by-header", "X-Pin"), ("canary-by-header-value", "1234")];
    let all = [
        secret,
        ingress("plain", "plain.test", "web", &plain),
        ingress("canary", "plain.test", "next", &canary),
        ingress("secure", "secure.test", "web", &secure),
    ];
    all.map(|object| format!("---\n{object}\n")).concat()
}

fn without_each(snapshot: &Snapshot, options: &Options) -> Vec<((String, String), Snapshot)> {
    let mut all = Vec::new();
    for (key, ingress) in &snapshot.ingresses {
        for name in ingress.meta.annotations.keys() {
            let (mut less, mut own) = (snapshot.clone(), objects::Ingress::clone(ingress));
            own.meta.annotations.remove(name);
            less.ingresses.insert(key.clone(), Arc::new(own));
            let by = format!("Ingress {}/{}", key.namespace, key.name);
            all.push(((by, name.clone()), less));
        }
    }
    let key = options.config_map.as_ref().expect("it has a name");
    let config_map = snapshot.config_maps.get(key);
    for name in config_map.iter().flat_map(|map| map.data.keys()) {
        let (mut less, mut own) =
            (snapshot.clone(), objects::ConfigMap::clone(config_map.expect("it is there")));
        own.data.remove(name);
        less.config_maps.insert(key.clone(), Arc::new(own));
        let by = format!("ConfigMap {}/{}", key.namespace, key.name);
        all.push(((by, name.clone()), less));
    }
    all
}

/// Keys that let others count, or what others name.
const GATES: [&str; 5] = [
    "allow-cross-namespace",
    "allow-snippet-annotations",
    "annotations-risk-level",
    "global-allowed-response-headers",
    "http-snippet",
];

/// Families of which the Ingress that counts is chosen among all of a host.
const AMONG_SEVERAL: [&str; 2] = ["canary", "client_certificate"];

fn family(field: &str) -> &str {
    field.split('.').next().unwrap_or_default()
}

/// Whoever adds a key without saying what it asks for, or names the wrong one, is found out here.
#[test]
fn what_changes_when_a_key_is_taken_away_is_what_names_it() {
    let (mut wrong, mut right) = (Vec::new(), 0);
    for (case, options, snapshot) in cases() {
        let whole = told(&snapshot, &options);
        let all = without_each(&snapshot, &options);
        for ((by, key), less) in all.into_iter().filter(|((_, key), _)| !GATES.contains(&&**key)) {
            let after = told(&less, &options);
            for (place, (owner, fields)) in &whole {
                let Some((_, rest)) = after.get(place).filter(|(other, _)| other == owner) else {
                    continue;
                };
                let value =
                    |all: &BTreeMap<_, Setting>, field| all.get(field).map(|one| one.value.clone());
                let changed: Vec<&Setting> = fields
                    .values()
                    .filter(|one| value(rest, one.field).as_ref() != Some(&one.value))
                    .collect();
                let names = |one: &&Setting| {
                    one.asked.iter().any(|one| one.by.to_string() == by && one.key == key)
                };
                let families: BTreeSet<&str> =
                    fields.values().filter(names).map(|one| family(one.field)).collect();
                for one in &changed {
                    let among = AMONG_SEVERAL.contains(&family(one.field));
                    let other = || one.asked.iter().any(|one| one.by.to_string() != by);
                    // What turns others on and off stands beside them.
                    let is_off = among || !rest.contains_key(one.field);
                    let back = || one.asked.iter().any(|one| one.key.ends_with(&format!("/{key}")));
                    // A snippet declares what others name; it asks for none of them.
                    let declares = key.ends_with("-snippet") && one.value.contains("${");
                    if names(one)
                        || declares
                        || is_off && families.contains(family(one.field))
                        || is_off && back()
                        || among && other()
                    {
                        right += 1;
                    } else {
                        let after = value(rest, one.field);
                        wrong.push(format!("{case}: {place:?} {key}: {one:?}, then {after:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} right, {} wrong:\n{}", right, wrong.len(), wrong.join("\n"));
    assert!(right > 100, "only {right}");
}

/// Keys of which nothing is a setting of a path: what they ask for is another name, another path, another endpoint or
/// another TLS connection, or has no effect.
const ELSEWHERE: [&str; 7] = [
    "app-root",
    "enable-global-auth",
    "from-to-www-redirect",
    "server-alias",
    "service-upstream",
    "ssl-passthrough",
    "use-regex",
];

/// A key that a family reads has a line, or a place in the list above.
#[test]
fn every_annotation_that_counts_asks_for_a_setting() {
    let mut asked = BTreeSet::new();
    for raw in [false, true] {
        for (_, options, snapshot) in cases() {
            for (_, fields) in told(&snapshot, &Options { raw, ..options }).into_values() {
                let keys = fields.into_values().flat_map(|one| one.asked);
                asked.extend(keys.filter_map(|one| {
                    Some(one.key.strip_prefix("nginx.ingress.kubernetes.io/")?.to_owned())
                }));
            }
        }
    }
    let works = annotation_rows().into_iter().filter(|row| row.fate == Fate::Works);
    let silent = |row: &Row| {
        let mut names = std::iter::once(row.name).chain(row.aliases.iter().copied());
        !names.any(|name| asked.contains(name))
    };
    let silent: Vec<&str> = works.filter(silent).map(|row| row.name).collect();
    assert_eq!(silent, ELSEWHERE, "without a line, or needlessly in the list");
}

/// The fields in which a policy differs from another one.
fn differing(own: &Value, usual: &Value, path: &str, found: &mut Vec<String>) {
    match (own, usual) {
        _ if own == usual => {}
        (Value::Object(own), Value::Object(usual)) if !own.contains_key("nanos") => {
            let names: BTreeSet<_> = own.keys().chain(usual.keys()).collect();
            let of = |all: &serde_json::Map<String, Value>, name| {
                all.get(name).cloned().unwrap_or_default()
            };
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                differing(&of(own, name), &of(usual, name), &path, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn everything_in_which_a_policy_differs_from_the_default_is_told() {
    let usual = serde_json::to_value(Policy::default()).expect("plain data");
    // The pattern of a rewrite is the path, error pages have a name already, and nothing is what a route may ask for.
    let untold = [
        "rewrite.pattern",
        "errors.backend",
        "route",
        "tls_redirect.with_certificate",
        "body.max_size",
    ];
    let (mut wrong, mut number) = (BTreeSet::new(), 0);
    for raw in [false, true] {
        for (case, options, snapshot) in cases() {
            let options = Options { raw, ..options };
            let made = translate(&snapshot, &options);
            each(&made.configuration, |place, location, server| {
                let told = settings(&snapshot, &options, &made, location, server);
                let own = serde_json::to_value(&*location.policy).expect("plain data");
                let mut found = Vec::new();
                differing(&own, &usual, "", &mut found);
                for field in found {
                    number += 1;
                    let has = |one: &Setting| {
                        one.field.starts_with(&field) || field.starts_with(one.field)
                    };
                    // What the host says counts instead.
                    let of_host = field.starts_with("ciphers")
                        && server.is_some_and(|one| one.ciphers.is_none());
                    let of_route = server.is_none() && untold.contains(&field.as_str());
                    if !told.iter().any(has) && !of_host && !of_route {
                        wrong.insert(format!("{case} {place:?}: {field}"));
                    }
                }
            });
        }
    }
    assert!(wrong.is_empty(), "{} of {number}:\n{wrong:#?}", wrong.len());
    assert!(number > 300, "only {number}");
}

fn shop(annotations: &str, config_map: &str) -> String {
    format!(
        "{CLASS}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{namespace: ingress-nginx, name: ingress-nginx-controller}}\n\
         data: {{{config_map}}}\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\n\
         metadata: {{namespace: shop, name: web, uid: one, annotations: {{{annotations}}}}}\n\
         spec: {{ingressClassName: nginx, rules: [{{host: shop.test, http: {{paths: [{{path: /, pathType: Prefix, \
         backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}}}]}}\n"
    )
}

fn snapshot(annotations: &str, config_map: &str) -> Snapshot {
    snapshot_of([(Path::new("in.yaml"), shop(annotations, config_map).as_str())])
}

/// Each setting as `name: value < object key: written, …`.
fn lines(snapshot: &Snapshot, made: &Translation) -> Vec<String> {
    let server = made.configuration.servers.values().find(|one| one.name.as_str() == "shop.test");
    let server = server.expect("it is served");
    let all = settings(snapshot, &options(""), made, &server.locations[0], Some(server));
    let asked = |one: &Asked| {
        let key = one.key.replace("nginx.ingress.kubernetes.io/", "…/");
        format!("{} {key}: {}", one.by, one.written.as_deref().unwrap_or_default())
    };
    let line = |one: &Setting| {
        let asked: Vec<String> = one.asked.iter().map(asked).collect();
        format!("{}: {} < {}", one.name, one.value, asked.join(", "))
    };
    all.iter().map(line).collect()
}

const ANNOTATIONS: &str = "nginx.ingress.kubernetes.io/limit-rps: '5', nginx.ingress.kubernetes.io/proxy-body-size: 8m, \
    nginx.ingress.kubernetes.io/proxy-read-timeout: '60', nginx.ingress.kubernetes.io/proxy-send-timeout: soon, \
    nginx.ingress.kubernetes.io/auth-url: 'http://10.0.0.9/check?token=hunter2'";

#[test]
fn each_setting_has_a_value_as_it_is_written_and_the_keys_that_ask_for_it() {
    let snapshot = snapshot(
        ANNOTATIONS,
        "proxy-read-timeout: '90', proxy-send-timeout: '30', proxy-connect-timeout: '5', limit-req-status-code: '429'",
    );
    let made = translate(&snapshot, &options(""));
    let config_map = "ConfigMap ingress-nginx/ingress-nginx-controller";
    assert_eq!(
        lines(&snapshot, &made),
        [
            // A value that cannot be read asks for nothing.
            &format!("proxy-send-timeout: 30s < {config_map} proxy-send-timeout: 30"),
            // The default, which takes back what the ConfigMap says.
            "proxy-read-timeout: 60s < Ingress shop/web …/proxy-read-timeout: 60",
            "proxy-body-size: 8m < Ingress shop/web …/proxy-body-size: 8m",
            "limit-rps: 5 requests/s, burst 25 < Ingress shop/web …/limit-rps: 5",
            &format!("limit-req-status-code: 429 < {config_map} limit-req-status-code: 429"),
            "auth-url: http://10.0.0.9/check?token=… < Ingress shop/web …/auth-url: http://10.0.0.9/check?token=…",
        ]
    );
}

#[test]
fn a_version_that_is_kept_is_the_one_that_asks() {
    let mut translator = Translator::new(options(""));
    let good = snapshot("nginx.ingress.kubernetes.io/limit-rps: '7'", "");
    translator.update(&good);
    let bad = snapshot("nginx.ingress.kubernetes.io/limit-rps: many", "");
    let made = translator.update(&bad);
    assert!(made.kept.contains_key(&ObjectKey::new("shop", "web")));
    let expected = ["limit-rps: 7 requests/s, burst 35 < Ingress shop/web …/limit-rps: 7"];
    assert_eq!(lines(&bad, &made), expected);
    let mended = snapshot("nginx.ingress.kubernetes.io/limit-rps: '8'", "");
    let made = translator.update(&mended);
    assert!(made.kept.is_empty());
    assert!(lines(&mended, &made)[0].ends_with("limit-rps: 8"));
}
