//! Recorded exchanges of Ingresses, replayed against the objects of the Gateway API that `convert` makes of them.

use convert::{Converted, Loss, Target, Weight};
use objects::{IngressTls, ObjectKey, Snapshot};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use testkit::case::Case;
use testkit::exchange::Request;
use testkit::namespace;
use testkit::runner::{self, Options, Report, Verdict};

/// Families for every run of the tests; `make convert` plays all.
const SHORT: [&str; 5] = ["host-and-path", "redirect", "regex", "rewrite", "canary"];
/// Of a hundred steps that can be said, so many have to be as recorded.
const ENOUGH: usize = 95;
/// Why steps are not played, with how many.
static SKIPPED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

#[test]
fn converted_ingresses_answer_as_recorded() {
    replay("converted_ingresses_answer_as_recorded", &SHORT);
}

#[test]
#[ignore = "takes minutes: make convert"]
fn all_converted_ingresses_answer_as_recorded() {
    replay("all_converted_ingresses_answer_as_recorded", &[]);
}

fn replay(test: &str, families: &[&str]) {
    if !namespace::run_test(test).expect("the cases run in a namespace") {
        return;
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let options = Options {
        alter: Some(alter),
        families: families.iter().map(ToString::to_string).collect(),
        ..Options::new(&corpus, Path::new(env!("CARGO_BIN_EXE_fairway")))
    };
    let report = tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(runner::run(&options))
        .unwrap_or_else(|error| panic!("the cases do not run: {error:#}"));
    tell(&report);
    let total = report.total();
    let said = total.passed + total.failed;
    assert!(said > 40, "only {said} steps could be said");
    assert!(
        total.passed * 100 >= said * ENOUGH,
        "{} of {said} steps that can be said are as recorded; {ENOUGH} % have to be",
        total.passed
    );
}

fn tell(report: &Report) {
    for result in report.steps.iter().filter(|result| result.verdict == Verdict::Failed) {
        println!("{}, step {}: {}", result.case, result.number, result.step);
        result.differences.iter().for_each(|difference| println!("    {difference}"));
    }
    println!("{report}");
    for (reason, count) in SKIPPED.lock().expect("nobody panics with it").iter() {
        println!("{count:5} steps not played: {reason}");
    }
}

/// Objects of the Gateway API in place of a case's Ingresses; the requests stay that these can say.
fn alter(case: &mut Case, fixtures: &[Value]) {
    let is_ingress = |object: &&Value| object["kind"] == "Ingress";
    let reason = match () {
        () if !case.settings.flags.is_empty() => Some("the case needs flags"),
        () if !case.objects.iter().any(|object| is_ingress(&object)) => Some("the case has no Ingress"),
        () => None,
    };
    if let Some(reason) = reason {
        return case.steps.iter_mut().for_each(|step| skip(step, reason));
    }
    let snapshot = snapshot(case, fixtures);
    let options = translate::Options {
        config_map: Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller")),
        ..translate::Options::default()
    };
    let name = case.name.replace('/', "-");
    let gateway = ObjectKey::new("demo", name.as_str());
    let made = convert::convert(&snapshot, &options, &Target { class: "fairway".to_owned(), gateway });
    let mut changed = false;
    for step in &mut case.steps {
        changed |= step.apply.take().is_some() | step.delete.take().is_some();
        let Some(request) = &step.request else { continue };
        let why = if changed { Some("objects change".to_owned()) } else { unsaid(request, &snapshot, &made) };
        if let Some(why) = why {
            skip(step, &why);
        }
    }
    case.objects.retain(|object| object["kind"] != "Ingress");
    case.objects.extend(made.objects.into_iter().map(|object| object.value));
}

fn skip(step: &mut testkit::exchange::Step, reason: &str) {
    if step.request.take().is_some() && !step.unstable {
        *SKIPPED.lock().expect("nobody panics with it").entry(reason.to_owned()).or_default() += 1;
    }
    step.apply = None;
    step.delete = None;
}

fn snapshot(case: &Case, fixtures: &[Value]) -> Snapshot {
    let class = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    });
    let all = [class].into_iter();
    // A case may have a fixture of its own in place of the usual one.
    let id = |object: &Value| (object["kind"].clone(), object["metadata"]["name"].clone());
    let own: Vec<_> = case.objects.iter().map(id).collect();
    let kept = fixtures.iter().filter(|object| !own.contains(&id(object))).cloned();
    let all = all.chain(kept).chain(case.objects.iter().cloned());
    let all: Vec<String> = all.map(|object| object.to_string()).collect();
    let text = all.join("\n---\n");
    objects::snapshot_of([(Path::new("case.yaml"), text.as_str())])
}

/// Why a request cannot go as recorded: what its host's Ingresses say is lost.
fn unsaid(request: &Request, snapshot: &Snapshot, made: &Converted) -> Option<String> {
    if request.url.is_empty() {
        return Some("no request of HTTP".to_owned());
    }
    let (scheme, rest) = request.url.split_once("://")?;
    let named = request.host.as_deref().unwrap_or(rest);
    let host = named.split(['/', ':', '?']).next().unwrap_or_default().to_ascii_lowercase();
    let is_tls = scheme == "https";
    let applies = |loss: &&Loss| match &loss.ingress {
        _ if loss.weight == Weight::Note || loss.weight == Weight::LostOverTls && !is_tls => false,
        None => true,
        Some(key) => snapshot.ingresses.get(key).is_some_and(|ingress| {
            let mut hosts = ingress.rules.iter().map(|rule| rule.host.as_deref().unwrap_or_default());
            let mut tls = ingress.tls.iter().flat_map(|IngressTls { hosts, .. }| hosts);
            let is_of = |name: &str| name.is_empty() || name == host || is_below(&host, name);
            ingress.rules.is_empty() || hosts.any(is_of) || tls.any(|name| is_of(name)) || has_alias(ingress, &host)
        }),
    };
    let loss = made.losses.iter().find(applies)?;
    Some(format!("{}: {}", loss.key.split(' ').next().unwrap_or_default(), loss.weight.word()))
}

fn is_below(host: &str, name: &str) -> bool {
    name.strip_prefix('*').is_some_and(|parent| host.ends_with(parent))
}

/// Whether another name of the host is asked for.
fn has_alias(ingress: &objects::Ingress, host: &str) -> bool {
    let keys = ["server-alias", "from-to-www-redirect"];
    let asks = |key: &&str| ingress.meta.annotations.keys().any(|name| name.ends_with(*key));
    keys.iter().any(|key| asks(key)) && !host.is_empty()
}
