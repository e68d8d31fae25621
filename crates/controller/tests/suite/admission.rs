//! The admission webhook over real TLS: reviews, bad bytes, bounds, and a certificate that is replaced.

use crate::webhook::{
    self, Identity, Started, asking, connect_as, exchange, last_answer, pair, post, review, start,
    start_in,
};
use controller::admission::{Bound, WebhookOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

const OBJECTS: &str = r"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: demo}
spec: {ports: [{port: 80, name: http}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: first
  namespace: demo
  annotations: {nginx.ingress.kubernetes.io/auth-tls-secret: demo/clients}
spec:
  ingressClassName: nginx
  tls: [{hosts: [a.test], secretName: tls}]
  rules:
  - host: a.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: below, namespace: demo}
spec:
  ingressClassName: nginx
  rules:
  - host: c.test
    http: {paths: [{path: /api, pathType: Prefix, backend: {service: {name: api, port: {number: 80}}}}]}
";

/// The `response` of an answer that came with 200.
async fn response(started: &Started, body: &[u8]) -> Value {
    let (status, body) = started.post(body).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let mut answer: Value = serde_json::from_slice(&body).expect("JSON");
    answer["response"].take()
}

#[tokio::test]
async fn an_ingress_is_allowed_or_refused_with_the_reason() {
    let started = start(OBJECTS).await;
    let answer = async |name, host| response(&started, &asking(name, host)).await;
    let allowed = answer("second", "b.test").await;
    assert_eq!(allowed, json!({"uid": "id-1", "allowed": true}));
    let refused = answer("second", "a.test").await;
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["status"]["code"], 400);
    let message = refused["status"]["message"].as_str().expect("a message");
    let recorded = "host \"a.test\" and path \"/\" is already defined in ingress demo/first";
    assert!(message.starts_with(recorded), "{message}");
    assert_eq!(answer("first", "a.test").await["allowed"], true);
    // The `/` that a host has by itself is nobody's.
    assert_eq!(answer("second", "c.test").await["allowed"], true);
}

#[tokio::test]
async fn what_an_ingress_needs_and_is_not_there_is_a_warning() {
    let started = start(OBJECTS).await;
    let ingress = |class: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": "b", "namespace": "demo", "annotations": {
                "nginx.ingress.kubernetes.io/auth-type": "basic", "nginx.ingress.kubernetes.io/auth-secret": "users",
                "nginx.ingress.kubernetes.io/default-backend": "errors",
                "nginx.ingress.kubernetes.io/auth-url": "http://auth.demo.svc.cluster.local/check",
                "nginx.ingress.kubernetes.io/mirror-target": "http://shop.demo.svc.cluster.local/"}},
            "spec": {"ingressClassName": class, "tls": [{"hosts": ["b.test"], "secretName": "gone"}],
                "rules": [{"host": "b.test", "http": {"paths": [
                    {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "nowhere", "port": {"number": 80}}}},
                    {"path": "/b", "pathType": "Prefix", "backend": {"service": {"name": "shop", "port": {"number": 81}}}}]}}]},
        })
    };
    let asked = |class| review("networking.k8s.io", "Ingress", "CREATE", "b", ingress(class));
    let answer = response(&started, &asked("nginx")).await;
    assert_eq!(answer["allowed"], true);
    let wanted = json!([
        "Secret demo/gone does not exist: its hosts get the default certificate until it does",
        "Secret demo/users does not exist: what it guards answers 503 until it does",
        "Service demo/errors does not exist: until it does nothing stands in for errors (annotation default-backend)",
        "Service demo/nowhere does not exist: its paths answer 503 until it does",
        "Service demo/shop has no port 81, only 80 (http): its paths answer 503 until it has",
        "Service demo/auth does not exist: requests to it fail until it does (a URL names it)",
    ]);
    assert_eq!(answer["warnings"], wanted);
    let other = response(&started, &asked("other")).await;
    assert_eq!(other, json!({"uid": "id-1", "allowed": true}), "another class is not ours");
}

#[tokio::test]
async fn what_an_ingress_asks_for_in_vain_is_a_warning() {
    let started = start(OBJECTS).await;
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "b", "namespace": "demo", "annotations": {
            "nginx.ingress.kubernetes.io/rewrite-targt": "/x", "nginx.ingress.kubernetes.io/proxy-body-size": "50mb",
            "nginx.ingress.kubernets.io/auth-url": "http://a.test/", "nginx.ingress.kubernetes.io/ssl-redirect": "false"}},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "b.test", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "shop", "port": {"number": 80}}}}]}}]},
    });
    let answer =
        response(&started, &review("networking.k8s.io", "Ingress", "CREATE", "b", ingress)).await;
    assert_eq!(answer["allowed"], true);
    let warnings: Vec<&str> = answer["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .filter_map(|it| it.as_str())
        .collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    for said in [
        "rewrite-targt: unknown annotation, it has no effect; did you mean nginx.ingress.kubernetes.io/rewrite-target?",
        "nginx.ingress.kubernetes.io/proxy-body-size: \"50mb\"",
        "did you mean nginx.ingress.kubernetes.io/auth-url?",
    ] {
        assert!(warnings.iter().any(|warning| warning.contains(said)), "{said}: {warnings:?}");
    }
}

#[tokio::test]
async fn nobody_hears_from_the_webhook_what_secrets_hold() {
    const USERS: &str = r"
---
apiVersion: v1
kind: Secret
metadata: {name: users, namespace: demo}
stringData: {alice: secret}
";
    let started = start(&format!("{OBJECTS}{USERS}")).await;
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "b", "namespace": "demo", "annotations": {
            "nginx.ingress.kubernetes.io/auth-type": "basic", "nginx.ingress.kubernetes.io/auth-secret": "users",
            "nginx.ingress.kubernetes.io/auth-secret-type": "auth-map"}},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "b.test"}]},
    });
    let asked = review("networking.k8s.io", "Ingress", "CREATE", "b", ingress);
    assert_eq!(response(&started, &asked).await, json!({"uid": "id-1", "allowed": true}));
}

const GATEWAYS: &str = r"
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: fairway}
spec: {controllerName: fairway/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: demo}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, protocol: HTTP, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: closed, namespace: other}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, protocol: HTTP, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: open, namespace: other}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
";

#[tokio::test]
async fn a_route_that_is_of_no_use_is_allowed_with_warnings() {
    let started = start(&format!("{OBJECTS}{GATEWAYS}")).await;
    let warnings = async |parent: Value, host: &str, path: Value, backend: Value| {
        let route = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "r", "namespace": "demo"},
            "spec": {"parentRefs": [parent], "hostnames": [host],
                "rules": [{"matches": [{"path": path}], "backendRefs": [backend]}]},
        });
        let group = "gateway.networking.k8s.io";
        let answer = response(&started, &review(group, "HTTPRoute", "CREATE", "r", route)).await;
        assert_eq!(answer["allowed"], true);
        answer["warnings"].as_array().cloned().unwrap_or_default()
    };
    let good = || json!({"name": "shop", "port": 80});
    let web = || json!({"name": "web"});
    let at = |path: &str| json!({"type": "PathPrefix", "value": path});
    assert!(
        warnings(web(), "b.test", at("/"), good()).await.is_empty(),
        "nothing is wrong with it"
    );
    let cases = [
        (web(), "a.test", at("/"), good(), "a.test/ is Ingress demo/first's"),
        (json!({"name": "gone"}), "b.test", at("/"), good(), "no Gateway demo/gone is there"),
        (json!({"name": "web", "sectionName": "no"}), "b.test", at("/"), good(), "Accepted=False"),
        (web(), "b.test", at("/"), json!({"name": "nowhere", "port": 80}), "BackendNotFound"),
        (
            web(),
            "b.test",
            at("/"),
            json!({"kind": "Bucket", "group": "x", "name": "b"}),
            "InvalidKind",
        ),
        (
            web(),
            "b.test",
            json!({"type": "RegularExpression", "value": "("}),
            good(),
            "UnsupportedValue",
        ),
    ];
    for (parent, host, path, backend, wanted) in cases {
        let told = warnings(parent, host, path, backend).await;
        let is_told =
            told.iter().any(|text| text.as_str().is_some_and(|text| text.contains(wanted)));
        assert!(is_told, "{wanted}: {told:?}");
    }
    // Whoever asks does not learn what other namespaces have, but where he is let in.
    let nowhere = || json!({"name": "nowhere", "port": 80});
    for name in ["closed", "gone"] {
        let parent = json!({"name": name, "namespace": "other"});
        let told = warnings(parent, "b.test", at("/"), nowhere()).await;
        assert!(told.is_empty(), "{name}: {told:?}");
    }
    let open = json!({"name": "open", "namespace": "other"});
    let told = warnings(open, "b.test", at("/"), nowhere()).await;
    assert!(
        told.iter().any(|text| text.as_str().is_some_and(|text| text.contains("BackendNotFound"))),
        "{told:?}"
    );
    let gone = review("gateway.networking.k8s.io", "HTTPRoute", "DELETE", "r", Value::Null);
    assert_eq!(response(&started, &gone).await, json!({"uid": "id-1", "allowed": true}));
}

#[tokio::test]
async fn every_kind_of_route_is_reviewed_and_what_is_none_costs_nothing() {
    let started = start(&format!("{OBJECTS}{GATEWAYS}")).await;
    let group = "gateway.networking.k8s.io";
    let told = async |kind: &str, object: Value| {
        let answer = response(&started, &review(group, kind, "CREATE", "r", object)).await;
        assert_eq!(answer["allowed"], true, "{kind}");
        answer["warnings"].as_array().cloned().unwrap_or_default()
    };
    let meta = json!({"name": "r", "namespace": "demo"});
    for kind in ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"] {
        let spec = json!({"parentRefs": [{"name": "gone"}, {"kind": "ListenerSet", "name": "lost"}],
            "rules": [{"backendRefs": [{"name": "shop", "port": 80}]}]});
        let told = told(kind, json!({"metadata": meta, "spec": spec})).await;
        let wanted = json!([
            "no Gateway demo/gone is there: nobody serves the route until it is",
            "no ListenerSet demo/lost is there: nobody serves the route until it is",
        ]);
        assert_eq!(Value::from(told), wanted, "{kind}");
    }
    // No API server lets these through, but anybody may ask.
    let parents = vec![json!({"name": "web"}); 33];
    let many = json!({"metadata": meta, "spec": {"parentRefs": parents}});
    let wanted = json!(["spec.parentRefs: 33 entries, at most 32 are taken"]);
    assert_eq!(Value::from(told("HTTPRoute", many).await), wanted);
    let rules = vec![json!({"matches": [{"path": {"value": "/"}}]}); 17];
    let many = json!({"metadata": meta, "spec": {"rules": rules}});
    let wanted = json!(["spec.rules: 17 entries, at most 16 are taken"]);
    assert_eq!(Value::from(told("HTTPRoute", many).await), wanted);
    let hidden =
        json!({"metadata": meta, "spec": {"parentRefs": [{"name": "web", "port": 99_999}]}});
    let told_bad = told("HTTPRoute", hidden).await;
    assert!(
        told_bad[0].as_str().is_some_and(|text| text.contains("parentRefs[0].port")),
        "{told_bad:?}"
    );
    let route = json!({"metadata": meta, "spec": {"parentRefs": [{"name": "gone"}]}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [route]});
    assert_eq!(told("HTTPRoute", list).await.len(), 1, "a list is no route");
    let backends: Vec<Value> =
        (0..12).map(|n| json!({"name": format!("s{n}"), "port": 80})).collect();
    let backends: Vec<Value> =
        backends.into_iter().map(|one| json!({"backendRefs": [one]})).collect();
    let parents: Vec<Value> = (0..12).map(|n| json!({"name": format!("gone{n}")})).collect();
    let many = json!({"metadata": meta, "spec": {"parentRefs": parents, "rules": backends}});
    let told = told("HTTPRoute", many).await;
    assert_eq!(told.len(), 9);
    assert_eq!(told[8], "and 4 more");
}

#[tokio::test]
async fn services_and_secrets_that_ingresses_need_are_allowed_with_warnings() {
    let started = start(OBJECTS).await;
    let warnings = async |kind, operation, name, object| {
        let answer = response(&started, &review("", kind, operation, name, object)).await;
        assert_eq!(answer["allowed"], true);
        let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
        warnings.iter().map(|text| text.as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("Service", "DELETE", "shop", Value::Null).await,
        [
            "Service demo/shop is used by Ingress demo/first: paths that lead to it answer 503 without it"
        ]
    );
    let service = |port| json!({"metadata": {"name": "shop", "namespace": "demo"}, "spec": {"ports": [{"port": port}]}});
    assert_eq!(
        warnings("Service", "UPDATE", "shop", service(8080)).await,
        [
            "Service demo/shop has no port 80, only 8080, which Ingress demo/first leads to: it answers 503 then"
        ]
    );
    assert!(warnings("Service", "UPDATE", "shop", service(80)).await.is_empty());
    assert_eq!(
        warnings("Secret", "DELETE", "tls", Value::Null).await,
        [
            "Secret demo/tls is used by Ingress demo/first: its hosts get the default certificate without it"
        ]
    );
    let guard = warnings("Secret", "DELETE", "clients", Value::Null).await;
    assert!(guard[0].contains("what it guards answers 503"), "{guard:?}");
    let empty = |name| json!({"metadata": {"name": name, "namespace": "demo"}, "data": {"tls.crt": "bm9uZQ=="}});
    assert_eq!(
        warnings("Secret", "UPDATE", "tls", empty("tls")).await,
        ["Secret demo/tls has no tls.key: add the private key; it is used by Ingress demo/first"]
    );
    let clients = warnings("Secret", "UPDATE", "clients", empty("clients")).await;
    assert!(clients[0].contains("has no ca.crt"), "{clients:?}");
    assert!(warnings("Secret", "UPDATE", "other", empty("other")).await.is_empty());
    let broken = review("", "Secret", "UPDATE", "tls", json!({"data": 7}));
    assert_eq!(started.post(&broken).await.0, 400);
}

#[tokio::test]
async fn what_is_no_review_is_told_so_and_what_is_too_large_refused() {
    let started = start(OBJECTS).await;
    let status = async |body: &[u8]| started.post(body).await.0;
    assert_eq!(status(b"{").await, 400);
    assert_eq!(status(b"").await, 400);
    assert_eq!(status(b"{}").await, 500);
    assert_eq!(status(b"[]").await, 500);
    let other =
        String::from_utf8(asking("x", "x.test")).expect("text").replace("/v1\"", "/v1beta1\"");
    assert_eq!(status(other.as_bytes()).await, 500);
    let pod = review("", "Pod", "CREATE", "x", json!({}));
    assert_eq!(status(&pod).await, 500);
    assert_eq!(status(&vec![b' '; 9 << 20]).await, 413);
    // Within the bound of a body, but larger than an object can be.
    let object = json!({"metadata": {"name": "x", "annotations": {"a": "b".repeat(3 << 20)}}});
    assert_eq!(status(&review("networking.k8s.io", "Ingress", "CREATE", "x", object)).await, 413);
    for (number, wanted) in [(253, 200), (254, 413), (8 << 20, 413)] {
        // What an answer repeats is held until it is taken.
        let secret = review("", "Secret", "UPDATE", "x", json!({}));
        let secret = String::from_utf8(secret).expect("text").replace("id-1", &"x".repeat(number));
        assert_eq!(status(secret.as_bytes()).await, wanted, "{number}");
    }
    // What no object is called is neither judged nor kept.
    for (name, namespace, wanted) in [(254, 4, 413), (4, 64, 413), (253, 63, 200)] {
        let names = json!({"name": "n".repeat(name), "namespace": "s".repeat(namespace)});
        let body = json!({"metadata": names, "spec": {}});
        let asked = review("networking.k8s.io", "Ingress", "CREATE", "x", body);
        assert_eq!(status(&asked).await, wanted, "{name} {namespace}");
    }
    let large = json!({"metadata": {"name": "x", "namespace": "demo", "annotations": {"a": "b".repeat(1 << 20)}}});
    assert_eq!(status(&review("networking.k8s.io", "Ingress", "CREATE", "x", large)).await, 200);
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_before_it_comes() {
    let started = start(OBJECTS).await;
    let mut tls = started.connect_from(1).await.expect("the certificate is trusted");
    tls.write_all(webhook::head(100 << 20, "").as_bytes()).await.expect("the webhook reads");
    assert_eq!(last_answer(&mut tls).await.expect("an answer").0, 413);
}

#[tokio::test]
async fn a_replaced_certificate_is_used_without_a_restart() {
    let started = start(OBJECTS).await;
    let next = pair(started.folder.path());
    is_served(&started, &next).await;
}

/// Mounted Secrets are a link to a folder, which is replaced as a whole.
#[tokio::test]
async fn a_certificate_behind_kubernetes_links_is_followed_and_a_broken_pair_keeps_the_last_one() {
    let folder = TempDir::new().expect("a folder");
    let version = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a folder");
        path
    };
    let first = pair(&version("..first"));
    symlink("..first", folder.path().join("..data")).expect("a link");
    for name in ["cert.pem", "key.pem"] {
        symlink(format!("..data/{name}"), folder.path().join(name)).expect("a link");
    }
    let swap = |to: &str, path: &std::path::Path| {
        symlink(to, path.join("..next")).expect("a link");
        fs::rename(path.join("..next"), path.join("..data")).expect("a rename");
    };
    let second = pair(&version("..second"));
    let broken = version("..broken");
    pair(&broken);
    fs::write(broken.join("key.pem"), "nothing").expect("a file");
    let path = folder.path().to_owned();
    let started = start_in(folder, first.clone(), OBJECTS).await;
    swap("..broken", &path);
    assert_eq!(
        started.post(&asking("second", "b.test")).await.0,
        200,
        "the first one still counts"
    );
    swap("..second", &path);
    is_served(&started, &second).await;
}

async fn is_served(started: &Started, next: &rustls::pki_types::CertificateDer<'static>) {
    let body = asking("second", "b.test");
    let replaced = async {
        while post(started.address, next, &body).await.is_none() {
            #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let within = Duration::from_secs(20);
    tokio::time::timeout(within, replaced).await.expect("the new certificate is served");
}

#[tokio::test]
async fn files_that_are_no_pair_are_refused_with_their_name() {
    let folder = TempDir::new().expect("a folder");
    pair(folder.path());
    fs::write(folder.path().join("key.pem"), "nothing").expect("a file");
    let webhook = WebhookOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        client_authorities: None,
    };
    let error = Bound::new(&webhook).await.expect_err("no key").to_string();
    assert!(error.contains("key.pem") && error.contains("--validating-webhook-key"), "{error}");
    pair(folder.path());
    let client_authorities = Some(folder.path().join("key.pem"));
    let webhook = WebhookOptions { client_authorities, ..webhook };
    let error = Bound::new(&webhook).await.expect_err("no authority").to_string();
    assert!(error.ends_with("name PEM files with --validating-webhook-client-ca"), "{error}");
}

/// A certificate for clients, signed by an authority.
fn identity(issuer: &Issuer<'_, KeyPair>) -> Identity {
    identity_of(["api-server".to_owned()].to_vec(), issuer)
}

fn identity_of(names: Vec<String>, issuer: &Issuer<'_, KeyPair>) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(names).expect("names");
    let own = params.signed_by(&key, issuer).expect("signed");
    (own.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// An authority in PEM, and what it signs with.
fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    (params.self_signed(&key).expect("signed").pem(), Issuer::new(params, key))
}

#[tokio::test]
async fn with_an_authority_for_clients_strangers_are_not_reviewed() {
    let ((pem, issuer), (_, stranger)) = (authority(), authority());
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("clients.pem"), pem).expect("a file");
    let certificate = pair(folder.path());
    let started = start_in(folder, certificate, OBJECTS).await;
    let body = asking("second", "b.test");
    let asked = async |own| {
        let mut tls = connect_as(started.address, &started.certificate, 1, own).await?;
        exchange(&mut tls, &body).await
    };
    assert_eq!(asked(Some(identity(&issuer))).await, Some(200));
    assert_eq!(asked(Some(identity(&stranger))).await, None);
    assert_eq!(asked(None).await, None);
}

#[tokio::test]
async fn whoever_sends_more_than_a_chain_has_is_not_reviewed() {
    let (pem, issuer) = authority();
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("clients.pem"), pem).expect("a file");
    let certificate = pair(folder.path());
    let started = start_in(folder, certificate, OBJECTS).await;
    let body = asking("second", "b.test");
    for (names, wanted) in [(100, Some(200)), (1000, None)] {
        // Twenty bytes each.
        let names = (0..names).map(|number| format!("n{number:09}.a.test")).collect();
        let own = identity_of(names, &issuer);
        let mut tls = connect_as(started.address, &started.certificate, 1, Some(own)).await;
        let answer = match &mut tls {
            Some(tls) => exchange(tls, &body).await,
            None => None,
        };
        assert_eq!(answer, wanted);
    }
}
