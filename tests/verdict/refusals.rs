//! Who refuses an Ingress, held against the recordings: what both refuse reached no upstream there, and what Fairway
//! alone refuses did.

use crate::verdict::logs::fairway;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use testkit::case::{self, Case, References};
use testkit::certificates::Certificates;
use testkit::exchange::{Seen, Step};
use testkit::fixtures::{self, NAMESPACE, Places};
use testkit::manifests::Manifests;

#[test]
fn who_refuses_an_ingress_is_said_as_it_was_recorded() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let fixtures = fixtures::objects(&Certificates::shared(), &Places::recorded());
    let references = References::new(Places::recorded(), &fixtures);
    let names = case::names(&corpus).expect("cases");
    let load = |name: &String| Case::load(&corpus, name, None, &references).expect("a case");
    let cases = names.iter().map(load).filter(|case| !case.steps.is_empty());
    // Those that share a cluster are judged together, as they were recorded.
    let mut groups: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in cases {
        let is_alone = case.alone() || !case.settings.flags.is_empty();
        let group = if is_alone { case.name.clone() } else { case.family().to_owned() };
        groups.entry(group).or_default().push(case);
    }
    let (mut counts, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for cases in groups.values() {
        let said = refused_by(cases, &fixtures);
        for case in cases {
            for (ingress, hosts) in own_hosts(case) {
                let Some((by, reasons)) = said.get(&ingress) else { continue };
                let Some(reached) = reached(case, &hosts) else { continue };
                *counts.entry(by.clone()).or_default() += 1;
                let is_false =
                    matches!((by.as_str(), reached), ("both", true) | ("fairway", false));
                if is_false {
                    wrong.push(format!("{} {ingress}: {by}, {reasons}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are false:\n{}", wrong.len(), wrong.join("\n"));
    let count = |by: &str| counts.get(by).copied().unwrap_or(0);
    assert!(count("both") >= 40 && count("fairway") >= 1, "{counts:?}");
}

#[test]
fn what_nginx_took_no_configuration_with_is_not_served_identically() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let fixtures = fixtures::objects(&Certificates::shared(), &Places::recorded());
    let references = References::new(Places::recorded(), &fixtures);
    let names = case::names(&corpus).expect("cases");
    let load = |name: &String| Case::load(&corpus, name, None, &references).expect("a case");
    let cases = names.iter().map(load).filter(|case| case.settings.not_applied.is_some());
    let (mut count, mut wrong) = (0, Vec::new());
    for case in cases {
        let own = own_hosts(&case);
        let found = findings(std::slice::from_ref(&case), &fixtures);
        let is_told = |finding: &&Value| {
            let is_own = own.iter().any(|(name, _)| finding["ingress"] == **name);
            is_own && finding["standing"] != "identical" && finding["refused_by"] != "fairway"
        };
        count += 1;
        if !found.iter().any(|finding| is_told(&finding)) {
            wrong.push(format!("{}: {found:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} are false:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 20, "{count} cases only");
}

/// What `check` says of the Ingresses of cases that share a cluster.
fn findings(cases: &[Case], fixtures: &[Value]) -> Vec<Value> {
    let manifests = Manifests::new().expect("a folder");
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"}});
    let own = cases.iter().flat_map(|case| &case.objects);
    for object in std::iter::once(&class).chain(fixtures).chain(own) {
        manifests.apply(object).expect("an object");
    }
    let flags = cases.iter().flat_map(|case| &case.settings.flags);
    let output = Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(["check", "--format", "json"])
        .arg(manifests.folder())
        .args(flags.filter(|flag| !flag.starts_with("--ssl-passthrough-proxy-port")))
        .env_clear()
        .output()
        .expect("the binary runs");
    let check: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    check["ingresses"].as_array().expect("a list").clone()
}

/// Who refuses each Ingress that is refused, and why.
fn refused_by(cases: &[Case], fixtures: &[Value]) -> BTreeMap<String, (String, String)> {
    let findings = findings(cases, fixtures);
    let refused = findings.iter().filter_map(|finding| {
        let by = finding.get("refused_by").and_then(Value::as_str);
        assert_eq!(by.is_some(), finding["standing"] == "refused", "{finding:#}");
        let name = finding["ingress"].as_str()?.to_owned();
        Some((name, (by?.to_owned(), finding["reasons"].to_string())))
    });
    refused.collect()
}

/// The hosts that one Ingress of a case alone names.
fn own_hosts(case: &Case) -> Vec<(String, BTreeSet<String>)> {
    let mut all: Vec<(String, BTreeSet<String>)> = Vec::new();
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    for object in case.objects.iter().filter(|object| object["kind"] == "Ingress") {
        let meta = &object["metadata"];
        let namespace = meta["namespace"].as_str().unwrap_or(NAMESPACE);
        let rules = object["spec"]["rules"].as_array().into_iter().flatten();
        let hosts: BTreeSet<String> =
            rules.filter_map(|rule| rule["host"].as_str()).map(str::to_lowercase).collect();
        hosts.iter().for_each(|host| *users.entry(host.clone()).or_default() += 1);
        all.push((format!("{namespace}/{}", meta["name"].as_str().expect("a name")), hosts));
    }
    all.iter_mut().for_each(|(_, hosts)| hosts.retain(|host| users[host] == 1));
    all
}

/// Whether a request for one of these hosts reached an upstream before anything changed; none if there was no request.
fn reached(case: &Case, hosts: &BTreeSet<String>) -> Option<bool> {
    let before = case.steps.iter().take_while(|step| step.apply.is_none() && step.delete.is_none());
    let asked = before.filter(|step| host_of(step).is_some_and(|host| hosts.contains(&host)));
    let asked: Vec<&Step> = asked.collect();
    let is_service = |name: &String| name.parse::<u16>().is_err();
    let reached = |step: &&Step| {
        let counts = step.outcome.counts.as_ref();
        step.outcome.seen.as_ref().is_some_and(|seen| !is_page(seen))
            || counts.is_some_and(|counts| counts.keys().any(is_service))
    };
    (!asked.is_empty()).then(|| asked.iter().any(reached))
}

/// Whether an error backend was asked to word a refusal: the ConfigMap's pages count where an Ingress is refused, too.
fn is_page(seen: &Seen) -> bool {
    let tells = |(name, value): &(String, String)| name == "X-Code" && value == "503";
    seen.protocol == "HTTP/1.0" && seen.headers.iter().flatten().any(tells)
}

fn host_of(step: &Step) -> Option<String> {
    let request = step.request.as_ref()?;
    let (_, rest) = request.url.split_once("://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let named = request.host.as_deref().unwrap_or(authority);
    Some(named.split(':').next().unwrap_or_default().to_lowercase())
}

/// One Ingress that both refuse, one that Fairway alone refuses, and one that nobody but nginx could judge.
const OBJECTS: &str = r#"
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, spec: {controller: k8s.io/ingress-nginx}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}, data: {allow-snippet-annotations: "true", annotations-risk-level: Critical}}
---
{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: demo}, spec: {ports: [{port: 80}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: value, namespace: demo, annotations: {nginx.ingress.kubernetes.io/upstream-vhost: a b}}, spec: {ingressClassName: nginx, rules: [{host: value.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: itself, namespace: demo, annotations: {nginx.ingress.kubernetes.io/auth-url: "http://127.0.0.1/check"}}, spec: {ingressClassName: nginx, rules: [{host: itself.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: text, namespace: demo, annotations: {nginx.ingress.kubernetes.io/configuration-snippet: "this is none"}}, spec: {ingressClassName: nginx, rules: [{host: text.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]}}
"#;

#[test]
fn what_the_config_map_closes_is_refused_and_the_cause_of_what_a_log_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let line = |host: &str, upstream: &str| {
        format!("{host} \"GET / HTTP/1.1\" 200 [{upstream}] 10.0.0.1:80\n")
    };
    let lines =
        line("plain.test", "demo-shop-80") + &line("nobody.test", "upstream-default-backend");
    let log = file("access.log", &lines);
    let format = "$host \"$request\" $status [$proxy_upstream_name] $upstream_addr";
    for (key, value, by) in [
        ("global-auth-url", "http://127.0.0.1:4180/oauth2/auth", "refused by Fairway only"),
        ("whitelist-source-range", "10.0.0.0/8;11.0.0.0/8", "refused, maybe by both"),
    ] {
        let data = format!(", data: {{{key}: \"{value}\", ");
        let objects = OBJECTS
            .replace(", data: {", &data)
            .replace("upstream-vhost: a b", "proxy-body-size: 1m");
        let objects = file("objects.yaml", &objects.replace("value", "plain"));
        let output = fairway(&["check", &objects], b"");
        let table = String::from_utf8(output.stdout).expect("text");
        assert_eq!(output.status.code(), Some(2), "{table}");
        let named = format!("ConfigMap ingress-nginx/ingress-nginx-controller {key}: ");
        let heading = format!("{by:<24}demo/plain\n    because  {named}as for all");
        assert!(table.contains(&heading), "{heading:?} is not in {table}");
        let output = fairway(&["check", &objects, "--log", &log, "--log-format", format], b"");
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(said.contains(&format!("its Ingress: {by}: {named}")), "{said}");
        assert!(said.contains(&format!("no Ingress has it: {key} of the ConfigMap: ")), "{said}");
        assert!(!said.contains("not explained"), "{said}");
    }
}

#[test]
fn who_refuses_stands_in_every_form_of_the_report_and_in_the_causes_of_a_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let objects = file("objects.yaml", OBJECTS);
    let check = |arguments: &[&str]| {
        let output = fairway(&[&["check", &objects], arguments].concat(), b"");
        String::from_utf8(output.stdout).expect("text")
    };
    let table = check(&[]);
    for line in [
        "refused by Fairway only demo/itself",
        "refused, maybe by both  demo/text",
        "refused by both         demo/value",
        "     1  refused by Fairway only",
        "     1  refused by both",
    ] {
        assert!(table.lines().any(|other| other == line), "{line:?} is not in {table}");
    }
    let markdown = check(&["--format", "markdown"]);
    assert!(markdown.contains("\n## Refused by Fairway only\n\n| Ingress |"), "{markdown}");
    let json: Value = serde_json::from_str(&check(&["--format", "json"])).expect("JSON");
    let by = json["ingresses"].as_array().expect("a list").iter().map(|one| &one["refused_by"]);
    assert_eq!(by.collect::<Vec<_>>(), ["fairway", "unknown", "both"]);
    let line = |host: &str| format!("{host} \"GET / HTTP/1.1\" 200 [demo-shop-80] 10.0.0.1:80\n");
    let log = file("access.log", &(line("itself.test") + &line("value.test")));
    let format = "$host \"$request\" $status [$proxy_upstream_name] $upstream_addr";
    let said = check(&["--log", &log, "--log-format", format]);
    for words in ["its Ingress: refused by Fairway only: ", "its Ingress: refused by both: "] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
}
