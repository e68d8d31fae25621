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
