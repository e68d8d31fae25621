//! The chart and the variants grant what deploy/rbac.yaml grants, with which the cluster tests run, and no more.

use crate::helm::{render, render_file};
use crate::read;
use serde_json::Value;
use std::collections::BTreeSet;
use testkit::yaml;

/// Group, resource and verb; and the names, if only objects with these names are meant.
type Right = (String, String, String, Vec<String>);

fn rights<'a>(roles: impl IntoIterator<Item = &'a Value>) -> BTreeSet<Right> {
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in roles.into_iter().filter_map(|role| role["rules"].as_array()).flatten() {
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                for verb in words(&rule["verbs"]) {
                    let names = words(&rule["resourceNames"]);
                    rights.insert((group.clone(), resource.clone(), verb, names));
                }
            }
        }
    }
    rights
}

fn of(objects: &[Value], kind: &str) -> BTreeSet<Right> {
    rights(objects.iter().filter(|object| object["kind"] == kind && !is_webhook(object)))
}

/// The rights of the Jobs that make a certificate are their own matter.
fn is_webhook(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/component"] == "admission-webhook"
}

/// Which Lease it is depends on flags.
fn unnamed(rights: BTreeSet<Right>) -> BTreeSet<Right> {
    let blur = |(group, resource, verb, names): Right| {
        let names =
            if resource == "leases" && !names.is_empty() { vec!["…".to_owned()] } else { names };
        (group, resource, verb, names)
    };
    rights.into_iter().map(blur).collect()
}

fn plain(file: &str) -> Vec<Value> {
    yaml::documents(&read(&format!("deploy/{file}"))).expect("YAML")
}

#[test]
fn the_chart_grants_what_the_plain_manifest_grants() {
    let (chart, plain) = (render(&[]).expect("defaults are good"), plain("rbac.yaml"));
    for kind in ["ClusterRole", "Role"] {
        let granted = of(&plain, kind);
        assert!(!granted.is_empty(), "deploy/rbac.yaml has no {kind}");
        assert_eq!(
            unnamed(of(&chart, kind)),
            unnamed(granted),
            "{kind}: chart/fairway/templates/_rules.tpl and rbac.yaml differ"
        );
    }
}

#[test]
fn services_of_gateways_take_rights_that_nobody_has_who_does_not_ask() {
    let mut granted = of(&plain("rbac.yaml"), "ClusterRole");
    granted.extend(of(&plain("gateway-services.yaml"), "ClusterRole"));
    for mode in ["true", "headless", "load-balancer"] {
        let asked = format!("controller.extraArgs.gateway-services={mode}");
        let chart = render(&["--set", &asked]).expect("good values");
        assert_eq!(of(&chart, "ClusterRole"), granted, "{mode}");
    }
    let writes = |(_, resource, verb, _): &Right| resource == "services" && verb == "create";
    assert!(granted.iter().any(writes));
    assert!(!of(&render(&[]).expect("defaults are good"), "ClusterRole").iter().any(writes));
}

#[test]
fn nothing_is_granted_by_wildcard_and_secrets_are_only_read() {
    let chart = render(&[]).expect("defaults are good");
    let more = plain("gateway-services.yaml");
    for objects in [&chart, &plain("rbac.yaml"), &plain("rbac-namespaced.yaml"), &more] {
        for kind in ["ClusterRole", "Role"] {
            for (group, resource, verb, names) in of(objects, kind) {
                assert!(![&group, &resource, &verb].into_iter().any(|word| word == "*"));
                let reads = ["get", "list", "watch"].contains(&verb.as_str());
                assert!(resource != "secrets" || reads, "{kind}: {verb} {resource} {names:?}");
            }
        }
    }
}

#[test]
fn a_controller_of_one_namespace_reads_secrets_there_and_nowhere_else() {
    let chart = render_file("tests/deploy/values/one-namespace.yaml");
    assert!(of(&chart, "ClusterRole").is_empty(), "rbac.scope leaves nothing in the cluster");
    for objects in [&chart, &plain("rbac-namespaced.yaml")] {
        let secrets = |(_, resource, ..): &Right| resource == "secrets";
        assert!(!of(objects, "ClusterRole").iter().any(secrets));
        for role in objects.iter().filter(|object| object["kind"] == "Role") {
            let watched =
                ["shop", "apps"].iter().any(|name| role["metadata"]["namespace"] == *name);
            for (_, _, verb, names) in rights([role]).into_iter().filter(secrets) {
                assert!(watched || names.len() == 1, "{verb} all Secrets in {}", role["metadata"]);
            }
        }
    }
}

#[test]
fn with_one_namespace_all_is_granted_but_what_selectors_of_namespaces_need() {
    let all = |objects: &[Value]| -> BTreeSet<(String, String, String)> {
        let both = of(objects, "ClusterRole").into_iter().chain(of(objects, "Role"));
        both.map(|(group, resource, verb, _)| (group, resource, verb)).collect()
    };
    let mut everything = all(&plain("rbac.yaml"));
    everything.retain(|(_, resource, _)| resource != "namespaces");
    assert_eq!(all(&plain("rbac-namespaced.yaml")), everything);
}

/// Without them no Pod would become ready, or none of the ports would be served.
#[test]
fn config_maps_that_flags_name_in_other_namespaces_may_be_read_there() {
    let elsewhere = "controller.configMapNamespace=settings,controller.tcp.configMapNamespace=settings,tcp.9000=a/b:1,\
                     controller.udp.configMapNamespace=shop,udp.53=a/b:53";
    let scoped =
        format!("{elsewhere},controller.scope.enabled=true,controller.scope.namespace=shop");
    for more in ["", ",rbac.scope=true"] {
        let objects = render(&["--set", &format!("{scoped}{more}")]).expect("good values");
        let there = |object: &&Value| object["metadata"]["namespace"] == "settings";
        let kinds = objects.iter().filter(there).map(|object| object["kind"].as_str());
        assert_eq!(kinds.collect::<Vec<_>>(), [Some("Role"), Some("RoleBinding")]);
        let names = ["controller", "tcp"].map(|name| format!("ingress-nginx-{name}"));
        let right =
            |verb: &str| (String::new(), "configmaps".to_owned(), verb.to_owned(), names.to_vec());
        let granted =
            of(&objects.into_iter().filter(|one| there(&one)).collect::<Vec<_>>(), "Role");
        assert_eq!(granted, ["get", "list", "watch"].map(right).into());
    }
    // Who reads all namespaces has the right to all of them.
    let objects = render(&["--set", elsewhere]).expect("good values");
    assert!(!objects.iter().any(|object| object["metadata"]["namespace"] == "settings"));
}
