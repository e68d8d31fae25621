//! The token of the admin port: nobody has one at first, and whoever names a Secret has flag, mount and volume of it.

use crate::helm::render;
use crate::read;
use serde_json::{Value, json};
use testkit::yaml;

/// Flag, mount and volume of the token in the Pods of an object.
fn of_pods(object: &Value) -> (Vec<String>, Vec<Value>, Vec<Value>) {
    let pod = &object["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let named = |value: &Value| {
        list(value).into_iter().filter(|one| one["name"] == "admin-token").collect::<Vec<_>>()
    };
    let words = list(&container["args"]);
    let words = words.iter().filter_map(Value::as_str).filter(|word| word.contains("admin-token"));
    (words.map(str::to_owned).collect(), named(&container["volumeMounts"]), named(&pod["volumes"]))
}

fn assert_given(what: &str, object: &Value, secret: &str, key: Option<&str>) {
    let (words, mounts, volumes) = of_pods(object);
    assert_eq!(words, ["--admin-token-file=/etc/fairway-admin/token"], "{what}");
    assert_eq!(mounts.len(), 1, "{what}");
    assert_eq!(
        (&mounts[0]["mountPath"], &mounts[0]["readOnly"]),
        (&json!("/etc/fairway-admin"), &json!(true))
    );
    assert_eq!(volumes.len(), 1, "{what}");
    assert_eq!(volumes[0]["secret"]["secretName"], secret, "{what}");
    if let Some(key) = key {
        assert_eq!(volumes[0]["secret"]["items"], json!([{"key": key, "path": "token"}]), "{what}");
    }
}

#[test]
fn the_chart_mounts_the_secret_that_is_named_and_none_otherwise() {
    let pods = |options: &[&str]| {
        let objects = render(options).expect("it renders");
        objects.into_iter().find(|one| one["kind"] == "Deployment").expect("a Deployment")
    };
    assert_eq!(of_pods(&pods(&[])), Default::default());
    let named = pods(&["--set", "controller.adminToken.secretName=door"]);
    assert_given("the chart", &named, "door", Some("token"));
    let keyed =
        pods(&["--set", "controller.adminToken.secretName=door,controller.adminToken.key=k"]);
    assert_given("the chart", &keyed, "door", Some("k"));
}

#[test]
fn the_plain_manifests_have_it_behind_a_mark() {
    for file in ["deploy/deployment.yaml", "deploy/daemonset.yaml"] {
        let text = read(file);
        let parsed = |text: &str| yaml::documents(text).expect("YAML").remove(0);
        assert_eq!(of_pods(&parsed(&text)), Default::default(), "{file}");
        assert_eq!(text.matches("#admin-token ").count(), 3, "{file}");
        assert_given(file, &parsed(&text.replace("#admin-token ", "")), "fairway-admin", None);
    }
}
