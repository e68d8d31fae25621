//! The plain manifests as kustomize reads them.

use crate::{read, yaml_files};
use serde_json::Value;
use testkit::yaml;

fn kustomization() -> Value {
    yaml::documents(&read("deploy/kustomization.yaml")).expect("YAML").remove(0)
}

fn resources() -> Vec<String> {
    let kustomization = kustomization();
    let names = kustomization["resources"].as_array().expect("a list").iter();
    names.map(|name| name.as_str().expect("a name").to_owned()).collect()
}

#[test]
fn every_file_is_installed_or_named_as_a_choice() {
    let text = read("deploy/kustomization.yaml");
    let files = yaml_files("deploy");
    for resource in resources() {
        assert!(files.contains(&resource), "there is no deploy/{resource}");
    }
    // Another file says of these two when to take them.
    let elsewhere = ["kustomization.yaml", "rbac-namespaced.yaml"];
    for file in files.iter().filter(|file| !elsewhere.contains(&file.as_str())) {
        assert!(text.contains(file.as_str()), "deploy/kustomization.yaml does not mention {file}");
    }
}

#[test]
fn no_object_is_installed_twice() {
    let mut seen = std::collections::BTreeSet::new();
    for file in resources() {
        for object in yaml::documents(&read(&format!("deploy/{file}"))).expect("YAML") {
            let name = (object["kind"].to_string(), object["metadata"]["name"].to_string());
            assert!(seen.insert(name.clone()), "{file}: {name:?} comes twice");
        }
    }
}

#[test]
fn image_and_chart_have_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(kustomization()["images"][0]["newTag"], version);
    let chart = yaml::documents(&read("deploy/chart/fairway/Chart.yaml")).expect("YAML").remove(0);
    assert_eq!(chart["appVersion"], version);
    for file in yaml_files("deploy") {
        let text = read(&format!("deploy/{file}"));
        for line in text.lines().filter(|line| line.contains("image: fairway")) {
            assert!(line.ends_with(&format!("image: fairway:{version}")), "deploy/{file}: {line}");
        }
    }
}

/// Whoever has fewer labels is told from others by all that he has, and an upgrade that takes one away makes strangers
/// of the Pods before it.
#[test]
fn pods_have_the_labels_by_which_replicas_of_any_version_know_each_other() {
    for file in ["deployment.yaml", "daemonset.yaml"] {
        let object = yaml::documents(&read(&format!("deploy/{file}"))).expect("YAML").remove(0);
        let labels = &object["spec"]["template"]["metadata"]["labels"];
        for name in ["name", "instance", "component"] {
            let label = &labels[format!("app.kubernetes.io/{name}")];
            assert!(label.is_string(), "deploy/{file}: the Pods have no {name}: {labels}");
        }
        // It cannot be changed: an upgrade from any version has to find this one.
        let selector = &object["spec"]["selector"]["matchLabels"];
        assert_eq!(selector.as_object().map(|labels| labels.len()), Some(2), "deploy/{file}");
    }
}

#[test]
fn a_root_that_stays_signs_the_certificates_that_cert_manager_renews() {
    let objects = yaml::documents(&read("deploy/webhook-cert-manager.yaml")).expect("YAML");
    let named = |kind: &str, name: &Value| {
        let found =
            objects.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == *name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))["spec"].clone()
    };
    let leaf = named("Certificate", &"fairway-admission".into());
    let signs = named("Issuer", &leaf["issuerRef"]["name"]);
    let root = objects.iter().find(|one| {
        one["kind"] == "Certificate" && one["spec"]["secretName"] == signs["ca"]["secretName"]
    });
    let root = &root.expect("a root")["spec"];
    assert_eq!(root["isCA"], true);
    assert_ne!(root["secretName"], leaf["secretName"]);
    assert!(named("Issuer", &root["issuerRef"]["name"])["selfSigned"].is_object());
}
