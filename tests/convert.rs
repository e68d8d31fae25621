//! Recorded exchanges of Ingresses, replayed against the objects of the Gateway API that `convert` makes of them.

use convert::{Converted, Loss, Target, Weight};
use objects::{IngressTls, ObjectKey, Snapshot};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use testkit::case::Case;
use testkit::exchange::Request;
use testkit::namespace;
use testkit::runner::{self, Options, Report, StepResult, Verdict};

/// Of a hundred steps that can be said, so many have to be as recorded.
const ENOUGH: usize = 95;
/// Steps that no object of the Gateway API can say, which note says so, and what the specification has in its place.
/// They are played all the same, and leave this list when they are as recorded.
const UNSAYABLE: &[(&str, &[usize], &str, &str)] = &[
    ("body/body-size-default-is-1m", &[2], "proxy-body-size", NO_BOUND),
    ("body/body-size-suffixes", &[2], "proxy-body-size", NO_BOUND),
    ("body/expect-continue-and-large-bodies", &[3], "proxy-body-size", NO_BOUND),
    ("host-and-path/longest-wildcard-wins", &[4], "spec.rules.host", ANY_DEPTH),
    ("host-and-path/wildcard-host", &[3], "spec.rules.host", ANY_DEPTH),
    ("response-headers/proxy-redirect-default", &[1], "proxy-redirect-from", NO_VALUES),
    ("response-headers/x-accel", &[3], "proxy-redirect-from", NO_VALUES),
    ("rewrite/rewrite-encoded-characters", &[2], "rewrite-target", AS_WRITTEN),
];
const NO_BOUND: &str = "HTTPRouteRule and Listener have no field that bounds a body";
const ANY_DEPTH: &str =
    "Hostname: a wildcard stands for any number of labels, and no name for exactly one";
const NO_VALUES: &str =
    "HTTPHeaderFilter sets, adds and removes; no filter reads what a backend says";
const AS_WRITTEN: &str =
    "HTTPPathModifier replaces a prefix; nothing decodes what a client wrote behind it";
/// Steps that are otherwise, and which note says so.
const OTHERWISE: &[(&str, &[usize], &str)] = &[
    ("canary/canary-without-endpoints", &[1], "canary"),
    ("charts/harbor", &[1], "ssl-redirect"),
    ("charts/sonarqube-and-jenkins", &[4], "app-root"),
    ("errors/upstream-too-slow", &[1], "proxy-next-upstream"),
    (
        "host-and-path/exact-host-without-the-path-does-not-fall-back-to-wildcard",
        &[2],
        "spec.rules.host",
    ),
    ("mirror/what-is-refused-is-not-mirrored", &[6], "mirror-target"),
    ("mirror/what-no-rule-has-is-mirrored-too", &[1], "mirror-target"),
    ("redirect/ssl-redirect-when-tls-is-set", &[4], "ssl-redirect"),
    ("redirect/temporal-redirect", &[2], "temporal-redirect"),
    ("rewrite/a-target-that-is-an-address-redirects", &[6], "rewrite-target"),
    ("rewrite/app-root", &[2], "app-root"),
    ("rewrite/rewrite-with-groups", &[4], "rewrite-target"),
    ("upstream-protocol/http-clients-of-a-grpc-service", &[1], "backend-protocol"),
    ("upstream-protocol/the-wrong-protocol-is-502", &[3], "backend-protocol"),
];
/// What notes say of each case.
static NOTES: Mutex<BTreeMap<String, BTreeSet<String>>> = Mutex::new(BTreeMap::new());
/// Why steps are not played, with how many.
static SKIPPED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

#[test]
fn converted_ingresses_answer_as_recorded() {
    let Some(report) = played("converted_ingresses_answer_as_recorded", alter) else { return };
    println!("{report}");
    for (reason, count) in SKIPPED.lock().expect("nobody panics with it").iter() {
        println!("{count:5} steps not played: {reason}");
    }
    judge(&report);
}

/// What became of all recorded cases; none in the process that only starts the one which plays them.
fn played(test: &str, alter: fn(&mut Case, &[Value])) -> Option<Report> {
    if !namespace::run_test(module_path!(), test).expect("the cases run in a namespace") {
        return None;
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let options = Options {
        alter: Some(alter),
        ..Options::new(&corpus, Path::new(env!("CARGO_BIN_EXE_fairway")))
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let report = runtime.block_on(runner::run(&options));
    Some(report.unwrap_or_else(|error| panic!("the cases do not run: {error:#}")))
}

/// Every step that is otherwise is in a list, whose notes say why, and the lists have no others. An address in other
/// letters is not as recorded, though it needs no note.
fn judge(report: &Report) {
    // What an Ingress answers otherwise on purpose, a route may answer as recorded.
    let passes =
        |result: &&StepResult| result.differences.iter().all(|one| one.starts_with("passes: "));
    let (stale, failed): (Vec<_>, Vec<_>) =
        report.steps.iter().filter(|result| result.verdict == Verdict::Failed).partition(passes);
    let (same, others): (Vec<_>, Vec<_>) = failed.into_iter().partition(|result: &&StepResult| {
        result.differences.iter().all(|one| is_the_same_address(one))
    });
    let unsayable = UNSAYABLE.iter().map(|(case, steps, key, _)| (*case, *steps, *key));
    let listed: Vec<_> = unsayable.chain(OTHERWISE.iter().copied()).collect();
    let told = |case: &str, number: usize| {
        listed.iter().any(|(name, steps, _)| *name == case && steps.contains(&number))
    };
    let mut wrong = Vec::new();
    for result in &others {
        if !told(&result.case, result.number) {
            wrong.push(format!("{}, step {}: {}", result.case, result.number, result.step));
            wrong.extend(result.differences.iter().map(|one| format!("    {one}")));
        }
    }
    let is_otherwise = |case: &str, number: usize| {
        others.iter().any(|one| one.case == case && one.number == number)
    };
    let notes = NOTES.lock().expect("nobody panics with it");
    for (case, steps, key) in listed {
        let is_noted = notes.get(case).is_some_and(|notes| notes.contains(key));
        wrong.extend((!is_noted).then(|| format!("{case}: nothing is noted of {key}")));
        let gone = steps.iter().filter(|number| !is_otherwise(case, **number));
        wrong.extend(gone.map(|number| {
            format!("{case}, step {number} is as recorded: take it out of the list")
        }));
    }
    let total = report.total();
    let unsaid: usize = UNSAYABLE.iter().map(|(_, steps, ..)| steps.len()).sum();
    let (said, equal) = (total.passed + total.failed - unsaid, total.passed + stale.len());
    println!(
        "{said} steps can be said, {equal} are as recorded, {} name the same address in other letters; {unsaid} cannot:",
        same.len()
    );
    for (case, steps, _, why) in UNSAYABLE {
        println!("    {case} {steps:?}: {why}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(said > 500, "only {said} steps can be said");
    assert!(
        equal * 100 >= said * ENOUGH,
        "{equal} of {said} steps that can be said are as recorded; {ENOUGH} % have to be"
    );
}

/// Whether a difference is one of letters: `https://a` and `https://a/`, `http://a:80/` and `http://a/`.
fn is_the_same_address(difference: &str) -> bool {
    let both = difference
        .strip_prefix("answer location: want ")
        .and_then(|both| both.split_once(", got "));
    let Some((wanted, got)) = both else { return false };
    let address = |text: &str| -> Option<String> {
        let text = text.strip_prefix("[\"")?.strip_suffix("\"]")?;
        let (scheme, rest) = text.split_once("://")?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let port = if scheme == "http" { ":80" } else { ":443" };
        let authority = authority.strip_suffix(port).unwrap_or(authority);
        Some(format!("{scheme}://{authority}{path}"))
    };
    address(wanted).is_some_and(|wanted| Some(wanted) == address(got))
}

/// Objects of the Gateway API in place of a case's Ingresses; the requests stay that these can say.
fn alter(case: &mut Case, fixtures: &[Value]) {
    let Some((snapshot, made)) = convert_case(case, fixtures) else { return };
    let keys =
        made.losses.iter().map(|loss| loss.key.split(' ').next().unwrap_or_default().to_owned());
    NOTES.lock().expect("nobody panics with it").insert(case.name.clone(), keys.collect());
    let mut changed = false;
    for step in &mut case.steps {
        changed |= step.apply.take().is_some() | step.delete.take().is_some();
        let Some(request) = &step.request else { continue };
        let why = if changed {
            Some("objects change".to_owned())
        } else {
            unsaid(request, &snapshot, &made)
        };
        if let Some(why) = why {
            skip(step, &why);
        }
    }
    case.objects.retain(|object| object["kind"] != "Ingress");
    case.objects.extend(made.objects.into_iter().map(|object| object.value));
}

/// The objects of a case, and what is made of its Ingresses; none where it has none that could be played.
fn convert_case(case: &mut Case, fixtures: &[Value]) -> Option<(Snapshot, Converted)> {
    let is_ingress = |object: &&Value| object["kind"] == "Ingress";
    let reason = match () {
        () if !case.settings.flags.is_empty() => Some("the case needs flags"),
        () if !case.objects.iter().any(|object| is_ingress(&object)) => {
            Some("the case has no Ingress")
        }
        () => None,
    };
    if let Some(reason) = reason {
        case.steps.iter_mut().for_each(|step| skip(step, reason));
        return None;
    }
    let snapshot = snapshot(case, fixtures);
    let options = translate::Options {
        config_map: Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller")),
        ..translate::Options::default()
    };
    let name = case.name.replace('/', "-");
    let gateway = ObjectKey::new("demo", name.as_str());
    let made =
        convert::convert(&snapshot, &options, &Target { class: "fairway".to_owned(), gateway });
    Some((snapshot, made))
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
        _ if loss.weight == Weight::Note => false,
        _ if !is_tls && matches!(loss.weight, Weight::LostOverTls | Weight::NoteOverTls) => false,
        None => true,
        Some(key) => snapshot.ingresses.get(key).is_some_and(|ingress| {
            let mut hosts =
                ingress.rules.iter().map(|rule| rule.host.as_deref().unwrap_or_default());
            let mut tls = ingress.tls.iter().flat_map(|IngressTls { hosts, .. }| hosts);
            let is_of = |name: &str| name.is_empty() || name == host || is_below(&host, name);
            ingress.rules.is_empty()
                || hosts.any(is_of)
                || tls.any(|name| is_of(name))
                || has_alias(ingress, &host)
        }),
    };
    let loss = made.losses.iter().find(applies)?;
    let key = loss.key.split(' ').next().unwrap_or_default();
    Some(format!("{key}: {}: {}", loss.weight.word(), loss.reason))
}

fn is_below(host: &str, name: &str) -> bool {
    name.strip_prefix('*').is_some_and(|parent| host.ends_with(parent))
}

/// Whether another name of the host is asked for.
fn has_alias(ingress: &objects::Ingress, host: &str) -> bool {
    let keys = ["server-alias", "from-to-www-redirect"];
    let asks = |key: &&str| ingress.meta.annotations.keys().any(|name| name.ends_with(*key));
    keys.iter().any(asks) && !host.is_empty()
}

/// What the program writes, says and ends with.
fn fairway(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_fairway")).arg("convert").args(arguments).output();
    let output = output.expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn the_program_writes_objects_says_what_is_lost_and_ends_with_a_code_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let ingress = |keys: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: shop, namespace: demo, annotations: {{{keys}}}}}\n\
             spec:\n  ingressClassName: nginx\n  rules: [{{host: shop.test, http: {{paths: [{{path: /, pathType: Prefix, backend: \
             {{service: {{name: shop, port: {{number: 80}}}}}}}}]}}}}]\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: shop, \
             namespace: demo}}\nspec: {{ports: [{{port: 80}}]}}\n---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\n\
             metadata: {{name: nginx}}\nspec: {{controller: k8s.io/ingress-nginx}}\n"
        )
    };
    // Without a Secret its host is served in clear alone, which is a loss.
    let plain = write("plain.yaml", &ingress(""));
    let default = ["--default-ssl-certificate", "demo/default", "--gateway-namespace", "infra"];
    let (objects, told, code) = fairway(&[&[plain.as_str()], &default[..]].concat());
    assert_eq!(code, Some(0), "{told}{objects}");
    assert!(told.contains("Ingresses: 1, 0 of them with losses"), "{told}");
    let read = testkit::yaml::documents(&objects).expect("YAML");
    let kinds: Vec<&str> = read.iter().filter_map(|object| object["kind"].as_str()).collect();
    // HSTS is for HTTPS alone, so that each listener has a route.
    let wanted = ["GatewayClass", "Gateway", "ReferenceGrant", "HTTPRoute", "HTTPRoute"];
    assert_eq!(kinds, wanted, "{objects}");
    assert_eq!(read[1]["metadata"]["namespace"], "infra");
    let guarded = write(
        "guarded.yaml",
        &ingress("nginx.ingress.kubernetes.io/auth-url: 'http://auth.test/'"),
    );
    let output = folder.path().join("out");
    let to = ["--output", output.to_str().expect("a path")];
    let (nothing, told, code) = fairway(&[&[guarded.as_str()], &default[..], &to[..]].concat());
    assert_eq!((nothing.as_str(), code), ("", Some(2)), "{told}");
    assert!(told.contains("closed: 1"), "{told}");
    let route = std::fs::read_to_string(output.join("httproute.demo.shop.yaml")).expect("a file");
    assert!(
        route.contains("# CLOSED: Ingress demo/shop: auth-url:") && !route.contains("backendRefs:"),
        "{route}"
    );
    let broken = write(
        "broken.yaml",
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: 1\n",
    );
    let (_, told, code) = fairway(&[&broken]);
    assert_eq!(code, Some(1), "{told}");
    let (_, told, code) = fairway(&["/nowhere/at/all"]);
    assert!(code == Some(1) && told.contains("/nowhere/at/all"), "{told}");
}

#[test]
fn ingresses_that_are_not_ours_and_files_from_before_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let ingress = |name: &str, class: &str| {
        format!(
            "---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: {name}, namespace: demo}}, spec: \
             {{ingressClassName: {class}, rules: [{{host: {name}.test, http: {{paths: [{{path: /, pathType: Prefix, backend: \
             {{service: {{name: shop, port: {{number: 80}}}}}}}}]}}}}]}}}}\n"
        )
    };
    let path = folder.path().join("in.yaml");
    let all = [ingress("ours", "nginx"), ingress("theirs", "traefik"), ingress("old", "nginx")];
    std::fs::write(&path, all.concat()).expect("a file");
    let output = folder.path().join("out");
    let arguments =
        [path.to_str(), Some("--output"), output.to_str()].map(|it| it.expect("a path"));
    let (_, told, _) = fairway(&arguments);
    let other = "not ours, not converted: demo/theirs: there is no IngressClass traefik";
    assert!(told.contains(other) && told.contains("Ingresses: 2, "), "{told}");
    assert!(!told.contains("from before"), "{told}");
    std::fs::write(&path, all[..2].concat()).expect("a file");
    std::fs::write(output.join("notes.yaml"), "").expect("a file");
    let (_, told, _) = fairway(&arguments);
    let old = "not written this time, and there from before: httproute.demo.old.yaml; ";
    assert!(told.contains(old), "{told}");
}

#[test]
fn a_name_of_a_hostile_file_leads_nowhere_and_the_rest_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let ingress = |name: &str, host: &str| {
        format!(
            "---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: {name}, namespace: demo}}, spec: \
             {{ingressClassName: nginx, rules: [{{host: {host}, http: {{paths: [{{path: /, pathType: Prefix, backend: \
             {{service: {{name: shop, port: {{number: 80}}}}}}}}]}}}}]}}}}\n"
        )
    };
    let path = folder.path().join("in.yaml");
    let all = [ingress("a/../../x", "a.test"), ingress("shop", "b.test")];
    std::fs::write(&path, all.concat()).expect("a file");
    let output = folder.path().join("out");
    // What a name would have to lead through.
    std::fs::create_dir_all(output.join("httproute.demo.a")).expect("a folder");
    let arguments =
        [path.to_str(), Some("--output"), output.to_str()].map(|it| it.expect("a path"));
    let (_, told, code) = fairway(&arguments);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("not written: HTTPRoute \"demo/a/../../x\": no API server"), "{told}");
    assert!(output.join("httproute.demo.shop.yaml").exists(), "{told}");
    let elsewhere = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let names: Vec<_> = elsewhere.map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
