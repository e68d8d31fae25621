//! The recorded cases as logs: what was recorded differently on purpose is never called alike, and what goes as
//! recorded is never called different.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::case::{self, Case, References};
use testkit::certificates::Certificates;
use testkit::exchange::{Answer, Step};
use testkit::fixtures::{self, NAMESPACE, Places};
use testkit::manifests::Manifests;

/// What is kept of requests in the log: the names of nginx's variables.
const FORMAT: &str = r#"{"request_method":"$request_method","request_uri":"$request_uri","server_protocol":"$server_protocol","http_host":"$http_host","scheme":"$scheme","remote_addr":"$remote_addr","status":"$status","upstream_addr":"$upstream_addr","proxy_upstream_name":"$proxy_upstream_name","sent_http_location":"$sent_http_location","HEADERS":""}"#;
/// Who sent the recorded requests.
const CLIENT: &str = "10.77.0.50";
/// Flags of cases that are nothing to `check`.
const ELSEWHERE: [&str; 1] = ["--ssl-passthrough-proxy-port"];

/// A recorded step as a line, and whether it differs on purpose.
struct Logged {
    name: String,
    line: Map<String, Value>,
    decision: Option<String>,
}

/// What was said about a step.
#[derive(Debug)]
struct Said {
    name: String,
    standing: String,
    text: String,
    decision: Option<String>,
}

#[test]
fn no_verdict_on_a_recorded_request_is_false() {
    let said = all_verdicts();
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for one in &said {
        *counts.entry((&one.standing, one.decision.is_some())).or_default() += 1;
    }
    println!("{counts:?}");
    let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
    for one in said.iter().filter(|one| one.standing == "unknown") {
        *unknown.entry(one.text.rsplit(" | ").next().unwrap_or_default()).or_default() += 1;
    }
    println!("{unknown:#?}");
    let unseen = unseen();
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for Said { name, standing, text, decision } in &said {
        let is_false = matches!(
            (standing.as_str(), decision),
            ("alike" | "alike-if", Some(_)) | ("differs", None)
        );
        if is_false && unseen.contains_key(name) {
            used.insert(name.clone());
        } else if is_false {
            wrong.push(format!(
                "{name}: {standing}, {}\n    {text}",
                decision.as_deref().unwrap_or("goes as recorded")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} verdicts are false:\n{}",
        wrong.len(),
        said.len(),
        wrong.join("\n")
    );
    if ["FAMILY", "EXCHANGES", "QUICK"].iter().any(|name| std::env::var_os(name).is_some()) {
        return;
    }
    let stale: Vec<_> = unseen.keys().filter(|name| !used.contains(*name)).collect();
    assert!(stale.is_empty(), "tests/verdict/unseen.tsv has steps that need no line: {stale:?}");
    assert!(said.len() > 1000, "{} steps only", said.len());
    let told = said.iter().filter(|one| one.standing != "unknown").count();
    assert!(told * 10 >= said.len() * 7, "of {} steps, only {told} could be told", said.len());
}

/// Steps whose difference no access log can show, with the reason.
fn unseen() -> BTreeMap<String, String> {
    let rows = include_str!("unseen.tsv").lines().filter(|line| !line.is_empty());
    rows.map(|line| {
        let (name, why) = line.split_once('\t').expect("name, tab, reason");
        (name.to_owned(), why.to_owned())
    })
    .collect()
}

fn corpus() -> PathBuf {
    let named = std::env::var_os("EXCHANGES").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges"))
}

fn all_verdicts() -> Vec<Said> {
    let overlay = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let objects = fixtures::objects(&Certificates::shared(), &Places::recorded());
    let references = References::new(Places::recorded(), &objects);
    let only = std::env::var("FAMILY").ok();
    let names = case::names(&corpus()).expect("cases");
    let wanted = |name: &&String| only.as_ref().is_none_or(|only| name.starts_with(only.as_str()));
    let cases: Vec<Case> = names
        .iter()
        .filter(wanted)
        .map(|name| Case::load(&corpus(), name, Some(&overlay), &references).expect("a case"))
        .filter(|case| !case.steps.is_empty())
        .collect();
    // Those that reach no other's hosts are one cluster, as when they were recorded.
    let (alone, together): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.alone() || !case.settings.flags.is_empty());
    let alone: Vec<Case> = if std::env::var_os("QUICK").is_some() { vec![] } else { alone };
    let mut families: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in &together {
        families.entry(case.family()).or_default().push(case);
    }
    let single = alone.iter().map(|case| vec![case]);
    let groups: Vec<Vec<&Case>> = families.into_values().chain(single).collect();
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let said = verdicts(group, &objects, &references);
                    all.lock().expect("no panic").extend(said);
                }
            });
        }
    });
    all.into_inner().expect("no panic")
}

/// The verdicts on the steps of cases; objects that change in between make several logs of it.
fn verdicts(cases: &[&Case], fixtures: &[Value], references: &References) -> Vec<Said> {
    let manifests = Manifests::new().expect("a folder");
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"}});
    let own = cases.iter().flat_map(|case| &case.objects);
    for object in std::iter::once(&class).chain(fixtures).chain(own) {
        manifests.apply(object).expect("an object");
    }
    let (mut said, mut batch) = (Vec::new(), Vec::new());
    for case in cases {
        let mut present = case.objects.clone();
        for (index, step) in case.steps.iter().enumerate() {
            if step.apply.is_some() || step.delete.is_some() {
                said.extend(check(case, &manifests, &mut batch));
            }
            change(case, step, &manifests, references, &mut present);
            if let Some(line) = line(step, &present) {
                let decision = case.differs.decision(index, step).map(ToOwned::to_owned);
                let name = format!("{} {}", case.name, index + 1);
                batch.push(Logged { name, line, decision });
            }
        }
    }
    if let Some(case) = cases.first() {
        said.extend(check(case, &manifests, &mut batch));
    }
    said
}

/// Applies and deletes what a step does.
fn change(
    case: &Case,
    step: &Step,
    manifests: &Manifests,
    references: &References,
    present: &mut Vec<Value>,
) {
    for (file, applied) in [(&step.apply, true), (&step.delete, false)] {
        let Some(file) = file else { continue };
        for object in references.read(&case.folder.join(file)).expect("objects") {
            if applied {
                manifests.apply(&object).expect("an object");
                present.push(object);
            } else {
                manifests.delete(&object).expect("an object");
            }
        }
    }
}

/// What the command says about each of these lines; a format has so many variables only.
fn check(case: &Case, manifests: &Manifests, batch: &mut Vec<Logged>) -> Vec<Said> {
    let (mut said, mut part) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for logged in std::mem::take(batch) {
        let own = logged.line.keys().filter(|key| key.starts_with("http_"));
        names.extend(own.cloned());
        part.push(logged);
        if names.len() > 80 {
            said.extend(check_part(case, manifests, std::mem::take(&mut part)));
            names.clear();
        }
    }
    said.extend(check_part(case, manifests, part));
    said
}

fn check_part(case: &Case, manifests: &Manifests, batch: Vec<Logged>) -> Vec<Said> {
    if batch.is_empty() {
        return Vec::new();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let headers: BTreeSet<&String> = batch
        .iter()
        .flat_map(|logged| logged.line.keys())
        .filter(|key| key.starts_with("http_"))
        .collect();
    let headers: Vec<String> =
        headers.iter().map(|name| format!("\"{name}\":\"${name}\"")).collect();
    let more = if headers.is_empty() { "\"x\":\"\"".to_owned() } else { headers.join(",") };
    let format = FORMAT.replace("\"HEADERS\":\"\"", &more);
    let lines: Vec<String> =
        batch.iter().map(|logged| Value::Object(logged.line.clone()).to_string()).collect();
    std::fs::write(&log, lines.join("\n")).expect("a log");
    let flags = case.settings.flags.iter();
    let flags = flags.filter(|flag| !ELSEWHERE.iter().any(|other| flag.starts_with(other)));
    let output = Command::new(env!("CARGO_BIN_EXE_fairway"))
        .args(["check", "--format", "lines", "--fail-on", "never", "--log-format", &format])
        .arg(manifests.folder())
        .args(flags)
        .arg("--log")
        .arg(&log)
        .env_clear()
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("no Ingress is ours") {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let values: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(values.len(), batch.len(), "{}: {said}", case.name);
    let both = batch.into_iter().zip(values);
    both.map(|(Logged { name, decision, .. }, value)| Said {
        name,
        standing: value["standing"].as_str().expect("a standing").to_owned(),
        text: format!("{} | {}", value["what"], value["cause"]),
        decision,
    })
    .collect()
}

/// The line that ingress-nginx would have written about a step, as far as the recording tells.
fn line(step: &Step, present: &[Value]) -> Option<Map<String, Value>> {
    let request = step.request.as_ref()?;
    let answer = step.outcome.answer.as_ref()?;
    let is_other = request.raw.is_some()
        || request.proxy_protocol.is_some()
        || request.grpc.is_some()
        || request.tcp.is_some()
        || request.udp.is_some()
        || step.unstable;
    if is_other {
        return None;
    }
    let status = answer.status?;
    let (scheme, rest) = request.url.split_once("://")?;
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    // What is passed through and what asks for the health of ingress-nginx, it does not log.
    let to_tls = step.outcome.seen.as_ref().is_some_and(|seen| seen.service == "echo-tls");
    let passes = present.iter().any(|object| {
        object["metadata"]["annotations"]["nginx.ingress.kubernetes.io/ssl-passthrough"] == "true"
    });
    if target == "/healthz" || scheme == "https" && to_tls && passes {
        return None;
    }
    let protocol = match request.protocol.as_deref() {
        Some("h2") => "HTTP/2.0",
        Some("http/1.0") => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let host = request.host.as_deref().unwrap_or(authority);
    let mut line = json!({
        "request_method": request.method.as_deref().unwrap_or("GET"), "request_uri": target,
        "server_protocol": protocol, "http_host": host, "scheme": scheme, "remote_addr": client(step),
        "status": status.to_string(), "sent_http_location": location(answer),
    });
    let line = line.as_object_mut()?;
    // A format has so many variables only.
    for (name, value) in request.headers.iter().take(20) {
        let name = name.to_lowercase();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let lines = request.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(&name));
        if is_plain && name != "host" && name.len() < 60 && lines.count() == 1 {
            line.insert(format!("http_{}", name.replace('-', "_")), json!(value));
        }
    }
    match &step.outcome.seen {
        Some(seen) => {
            line.insert("upstream_addr".to_owned(), json!("10.77.0.10:8000"));
            if let Some(name) = upstream(&seen.service, present) {
                line.insert("proxy_upstream_name".to_owned(), json!(name));
            }
        }
        // An upstream that does not answer was tried, which the recording does not show.
        None if (502..=504).contains(&status) => {}
        None => {
            line.insert("upstream_addr".to_owned(), json!("-"));
        }
    }
    Some(line.clone())
}

/// Who sent it, as upstreams were told: that is what was logged.
fn client(step: &Step) -> Value {
    let seen = step.outcome.seen.as_ref().and_then(|seen| seen.headers.as_ref());
    let told = seen.into_iter().flatten().find(|(name, _)| name.eq_ignore_ascii_case("x-real-ip"));
    let request = step.request.as_ref();
    let headers = request.into_iter().flat_map(|request| &request.headers);
    let is_address = |name: &str| {
        name.eq_ignore_ascii_case("x-forwarded-for") || name.to_lowercase().contains("ip")
    };
    match told {
        Some((_, told)) if !told.contains('<') => json!(told),
        Some(_) => json!(CLIENT),
        None if headers.clone().any(|(name, _)| is_address(name)) => Value::Null,
        None => json!(CLIENT),
    }
}

/// Where a redirect leads, unless the recording has a placeholder in it.
fn location(answer: &Answer) -> Value {
    let headers = answer.headers.as_deref().unwrap_or_default();
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
    found.filter(|(_, value)| !value.contains('<')).map_or(Value::Null, |(_, value)| json!(value))
}

/// The name of the upstream by which Ingresses lead to a Service, if they do so by one port only.
fn upstream(service: &str, present: &[Value]) -> Option<String> {
    let mut names = BTreeSet::new();
    for ingress in present.iter().filter(|object| object["kind"] == "Ingress") {
        let annotations = ingress["metadata"]["annotations"].as_object();
        if annotations.is_some_and(|all| all.keys().any(|key| key.ends_with("/canary"))) {
            continue;
        }
        let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
        let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
        let backends =
            paths.map(|path| &path["backend"]).chain([&ingress["spec"]["defaultBackend"]]);
        for backend in backends.filter(|backend| backend["service"]["name"] == service) {
            let port = &backend["service"]["port"];
            let port = match (&port["number"], &port["name"]) {
                (Value::Number(number), _) => number.to_string(),
                (_, name) => name.as_str()?.to_owned(),
            };
            let namespace = ingress["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
            names.insert(format!("{namespace}-{service}-{port}"));
        }
    }
    (names.len() == 1).then(|| names.pop_first()).flatten()
}
