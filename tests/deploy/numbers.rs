//! Numbers of a values file keep their digits: Helm reads them as floats, and those are `1e+06` as text.

use crate::helm::{object, render_file};
use serde_json::{Value, json};

#[test]
fn large_numbers_of_a_file_are_written_as_they_stand_there() {
    let objects = render_file("tests/deploy/values/large-numbers.yaml");
    let container = "/spec/template/spec/containers/0";
    for (kind, name, place, number) in [
        ("ConfigMap", "controller", "/data/proxy-body-size", json!("104857600")),
        ("ConfigMap", "controller", "/data/keep-alive-requests", json!("1000000")),
        ("ConfigMap", "controller", "/data/limit-conn-status-code", json!("429")),
        ("ConfigMap", "custom-add-headers", "/data/X-Cluster", json!("1000001")),
        ("ConfigMap", "custom-proxy-headers", "/data/X-Cluster", json!("1000002")),
        ("Service", "controller", "/metadata/annotations/number", json!("1000004")),
        ("Deployment", "controller", "/spec/revisionHistoryLimit", json!(1_000_000)),
        (
            "Deployment",
            "controller",
            "/spec/template/metadata/annotations/number",
            json!("1000003"),
        ),
        ("Deployment", "controller", &format!("{container}/image"), json!("fairway:20260101")),
        (
            "Deployment",
            "controller",
            &format!("{container}/securityContext/runAsUser"),
            json!(1_000_650_000),
        ),
    ] {
        let object = object(&objects, kind, &format!("ingress-nginx-{name}"));
        assert_eq!(object.pointer(place), Some(&number), "{kind} {name}: {place}");
    }
    for (name, flag) in [
        ("controller", "--memory-limit=268435456"),
        ("controller", "--time-buckets=0.5"),
        ("defaultbackend", "--memory-limit=134217728"),
    ] {
        let deployment = object(&objects, "Deployment", &format!("ingress-nginx-{name}"));
        let flags = deployment.pointer(&format!("{container}/args")).expect("arguments");
        assert!(flags.as_array().expect("a list").contains(&json!(flag)), "{flag} in {flags}");
    }
    let text: String = objects.iter().map(Value::to_string).collect();
    assert!(!text.contains("e+0"), "{text}");
}
