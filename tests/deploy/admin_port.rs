//! Metrics and health checks have one port: whoever moves it moves the flag, the probes and what lets them in.

use crate::helm::{object, render};
use serde_json::{Value, json};

const PROBES: [&str; 3] = ["startupProbe", "livenessProbe", "readinessProbe"];

/// The objects with these keys of `controller`, and its container.
fn rendered(mut controller: Value) -> (Vec<Value>, Value) {
    controller["metrics"]["enabled"] = true.into();
    controller["networkPolicy"] = json!({"enabled": true});
    let objects = render(&["--set-json", &format!("controller={controller}")]);
    let objects = objects.expect("good values");
    let workload = object(&objects, "Deployment", "ingress-nginx-controller");
    let container = workload["spec"]["template"]["spec"]["containers"][0].clone();
    (objects, container)
}

/// The values of `--healthz-port`.
fn flags(container: &Value) -> Vec<&str> {
    let words = container["args"].as_array().expect("a list").iter().filter_map(Value::as_str);
    words.filter_map(|word| word.strip_prefix("--healthz-port=")).collect()
}

#[test]
fn flag_probes_and_network_policy_go_with_the_port_whoever_names_it() {
    for (controller, port) in [
        (json!({}), 10254),
        (json!({"metrics": {"port": 10300}}), 10300),
        (json!({"extraArgs": {"healthz-port": 10300}}), 10300),
        (json!({"metrics": {"port": "10300"}, "extraArgs": {"healthz-port": 10300}}), 10300),
    ] {
        let (objects, container) = rendered(controller.clone());
        let flag = (port != 10254).then(|| port.to_string());
        assert_eq!(flags(&container), Vec::from_iter(flag), "{controller}");
        for probe in PROBES {
            assert_eq!(container[probe]["httpGet"]["port"], port, "{controller}: {probe}");
        }
        let open = container["ports"].as_array().expect("a list").iter();
        let open: Vec<_> = open.filter(|one| one["name"] == "metrics").collect();
        assert_eq!(open.len(), 1, "{controller}");
        assert_eq!(open[0]["containerPort"], port, "{controller}");
        let policy = object(&objects, "NetworkPolicy", "ingress-nginx-controller");
        let doors = policy["spec"]["ingress"][0]["ports"].as_array().expect("a list").iter();
        let doors: Vec<_> = doors.map(|door| &door["port"]).collect();
        assert_eq!(doors, [80, 443, port, 8443], "{controller}");
    }
}

#[test]
fn a_probe_that_asks_another_port_stays_there() {
    let other = json!({"httpGet": {"port": "http"}});
    let (_, container) = rendered(json!({"metrics": {"port": 10300}, "livenessProbe": other}));
    let ports = PROBES.map(|probe| container[probe]["httpGet"]["port"].clone());
    assert_eq!(ports, [json!(10300), json!("http"), json!(10300)]);
}

#[test]
fn two_ports_are_refused_with_both_keys_and_a_way_out() {
    let two = "controller.metrics.port=10300,controller.extraArgs.healthz-port=10301";
    let said = render(&["--set", two]).expect_err("one port cannot be both");
    for words in [
        "controller.metrics.port is 10300",
        "controller.extraArgs.healthz-port is 10301",
        "leave out controller.extraArgs.healthz-port",
    ] {
        assert!(said.contains(words), "{said}");
    }
}
