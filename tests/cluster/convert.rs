//! A real API server takes what `convert` writes: for every recorded Ingress, and for odd ones.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use convert::Target;
use kube::Resource;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind, Request};
use objects::ObjectKey;
use serde_json::Value;
use testkit::cluster::{self, Cluster};
use testkit::yaml::documents;

const CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
";

/// What `convert` writes for a text of objects, read again.
fn converted(objects: &str) -> Result<Vec<Value>> {
    let text = format!("{CLASS}{objects}");
    let snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let options = translate::Options {
        config_map: Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller")),
        default_ssl_certificate: Some(ObjectKey::new("demo", "default")),
        ..translate::Options::default()
    };
    let target = Target { class: "fairway".to_owned(), gateway: ObjectKey::new("demo", "fairway") };
    let made = convert::convert(&snapshot, &options, &target);
    let written: String = made.objects.iter().map(convert::Object::yaml).collect();
    let read = documents(&written).with_context(|| written.clone())?;
    let same: Vec<&Value> = made.objects.iter().map(|object| &object.value).collect();
    ensure!(read.iter().eq(same), "what is written is not what is read: {written}");
    Ok(read)
}

/// A text for each recorded case that has Ingresses.
fn recorded() -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    for family in fs::read_dir(root)? {
        let family = family?.path();
        for case in
            family.is_dir().then(|| fs::read_dir(&family)).transpose()?.into_iter().flatten()
        {
            let case = case?.path();
            if let Ok(text) = fs::read_to_string(case.join("in.yaml")) {
                all.push((case.display().to_string(), text));
            }
        }
    }
    ensure!(all.len() > 300, "only {} cases were found", all.len());
    Ok(all)
}

/// Ingresses at the edges: long names, names that meet, more paths and hosts than one object holds, odd words.
fn odd() -> String {
    let mut text = String::new();
    let mut add = |name: &str, host: &str, keys: &str, paths: &[String]| {
        let paths: Vec<String> = paths
            .iter()
            .map(|path| {
                format!(
                    "{{path: {path:?}, pathType: ImplementationSpecific, backend: {{service: {{name: shop, port: \
                     {{number: 80}}}}}}}}"
                )
            })
            .collect();
        write!(
            text,
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}, namespace: demo, annotations: \
             {{{keys}}}}}\nspec:\n  ingressClassName: nginx\n  tls: [{{hosts: [{host:?}], secretName: tls}}]\n  rules: [{{host: \
             {host:?}, http: {{paths: [{}]}}}}]\n",
            paths.join(", ")
        )
        .expect("a String takes all");
    };
    let key = |name: &str, value: &str| format!("nginx.ingress.kubernetes.io/{name}: {value:?}");
    let root = ["/".to_owned()];
    let long = format!("{}.test", vec!["a".repeat(60); 4].join("."));
    add(&"n".repeat(253), &long, "", &root);
    add("meets-a.test", "x.test", "", &root);
    add("any", "any.meets.test", "", &root);
    add("wild", "*.meets.test", "", &root);
    let many: Vec<String> = (0..70).map(|number| format!("/p{number}")).collect();
    add("many", "many.test", "", &many);
    for number in 0..80 {
        add(&format!("host-{number}"), &format!("h{number}.test"), "", &root);
    }
    let words = ["/a b", "/a//b", "/%2f", "/ä", "/a{2}", "/(x|y)/.*", "/a#b", "/a?b=c", "/~'\""];
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    add("words", "words.test", "", &words);
    add("expressions", "expressions.test", &key("use-regex", "true"), &words);
    let lists = lists();
    for (number, (name, value)) in lists.iter().enumerate() {
        let keys = format!("{}, {}", key("enable-cors", "true"), key(name, value));
        add(&format!("cors-{number}"), &format!("cors{number}.test"), &keys, &root);
    }
    let keys = keys();
    let calls = ["/a b.C", "/a.b-c.D/", "/1.2", "/my.Svc/Call"].map(str::to_owned);
    add("calls", "calls.test", &key("backend-protocol", "GRPC"), &calls);
    let weights = [("canary", "true"), ("canary-weight", "30"), ("canary-weight-total", "2000000")];
    let weights: Vec<String> = weights.iter().map(|(name, value)| key(name, value)).collect();
    add("weights", "x.test", &weights.join(", "), &root);
    for (number, (name, value)) in keys.iter().enumerate() {
        let keys = format!("{}, {}", key(name, value), key("permanent-redirect-code", "308"));
        let keys = if *name == "permanent-redirect-code" { key(name, value) } else { keys };
        add(&format!("key-{number}"), &format!("key{number}.test"), &keys, &root);
    }
    text
}

/// Annotations of CORS with odd lists.
fn lists() -> Vec<(&'static str, String)> {
    let origins: Vec<String> = (0..70).map(|number| format!("https://o{number}.test")).collect();
    let many_origins = origins.join(",");
    let all = [
        ("cors-allow-origin", "https://*.a.test, http://b.test:8080"),
        ("cors-allow-methods", "GET, *"),
        ("cors-allow-headers", "*, X-A"),
        ("cors-max-age", "99999999999"),
        ("cors-allow-methods", "GET, GET, PUT"),
        ("cors-allow-headers", "X-A, X-A, X-B"),
        ("cors-expose-headers", "*, X-A, X-A"),
        ("cors-allow-origin", "https://a.test, https://a.test"),
        ("cors-allow-origin", many_origins.as_str()),
    ];
    all.map(|(name, value)| (name, value.to_owned())).to_vec()
}

/// Annotations with odd values.
fn keys() -> Vec<(&'static str, String)> {
    let names: Vec<String> = (0..40).map(|number| format!("a{number}.names.test")).collect();
    let many_names = names.join(",");
    let all = [
        ("permanent-redirect", "https://new.test:8443/a?b=c"),
        ("temporal-redirect", "https://xn--bcher-kva.test/ä"),
        ("upstream-vhost", "UPPER.test:80"),
        ("proxy-read-timeout", "999999"),
        ("server-alias", "*.alias.test, b.alias.test"),
        ("app-root", "/app?x=y"),
        ("permanent-redirect-code", "305"),
        ("rewrite-target", "/x y"),
        ("x-forwarded-prefix", "a: b"),
        ("from-to-www-redirect", "true"),
        ("mirror-target", "http://shop.demo.svc.cluster.local:80$request_uri"),
        ("server-alias", many_names.as_str()),
        ("upstream-vhost", "-foo"),
        ("permanent-redirect", "https://new-.test/a"),
        ("permanent-redirect", "https://n.test:0/a"),
        ("permanent-redirect", "$scheme://UPPER.test:8443$request_uri"),
        ("backend-protocol", "GRPC"),
    ];
    all.map(|(name, value)| (name, value.to_owned())).to_vec()
}

#[test]
fn an_api_server_takes_whatever_is_written_for_ingresses() {
    cluster::test_with_gateway_api(async |cluster| {
        let mut all = Vec::new();
        for (name, text) in recorded()?.into_iter().chain([("odd".to_owned(), odd())]) {
            for object in converted(&text).with_context(|| name.clone())? {
                all.push((name.clone(), object));
            }
        }
        let names = all.iter().filter_map(|(_, object)| object["metadata"]["namespace"].as_str());
        for name in names.collect::<BTreeSet<_>>() {
            let namespace =
                format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
            cluster.apply(&namespace).await?;
        }
        let routes = all.iter().filter(|(_, object)| object["kind"] == "HTTPRoute").count();
        ensure!(routes > 400, "only {routes} HTTPRoutes were written");
        let mut refused = Vec::new();
        for (name, object) in &all {
            if let Err(error) = dry(cluster, object).await {
                refused.push(format!("{name}: {error:#}: {object}"));
            }
        }
        ensure!(refused.is_empty(), "{} of {}: {}", refused.len(), all.len(), refused.join("\n"));
        Ok(())
    });
}

/// Creates an object for show: an API server is as strict about its fields as with an apply, which it computes twice as
/// long at.
async fn dry(cluster: &Cluster, object: &Value) -> Result<()> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let version = text("/apiVersion").context("an object without apiVersion")?;
    let kind = text("/kind").context("an object without kind")?;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let place = DynamicObject::url_path(&resource, text("/metadata/namespace"));
    let how = PostParams { dry_run: true, ..PostParams::default() };
    let mut asked = Request::new(place).create(&how, serde_json::to_vec(object)?)?;
    *asked.uri_mut() = format!("{}&fieldValidation=Strict", asked.uri()).parse()?;
    cluster.client().request_text(asked).await.map(drop).context(kind.to_owned())
}
