//! The recorded answers of ingress-nginx's admission webhook: `tests/exchanges/admission/<case>/`. The last object of
//! `in.yaml` is reviewed, the objects before it exist.

use objects::{ObjectKey, Snapshot, snapshot_of};
use serde::Deserialize;
use std::fs;
use std::path::Path;
use translate::{Options, in_vain, review, translate};

const CLASS: &str = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
    spec: {controller: k8s.io/ingress-nginx}\n";

/// Cases that we answer otherwise on purpose, with the row of compat/decisions.md; all of them are allowed here.
const ALLOWED_HERE: &[&str] = &["an-empty-blocklist-word-refuses-every-annotation"];

/// The same, refused here: the controller stopped reading snippets in the webhook, and stops applying anything after
/// one that is broken (docs/webhook.md).
const REFUSED_HERE: &[&str] = &["snippet-allowed-but-broken"];

/// Refused as recorded, but without a word on whose the other Ingress is: anybody may ask.
const WITHOUT_THE_OWNER: &[&str] = &["a-duplicate-in-another-namespace"];

#[derive(Deserialize)]
struct Recorded {
    allowed: bool,
    #[serde(default)]
    message: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    flags: Vec<String>,
}

#[test]
fn reviews_are_answered_as_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/exchanges/admission");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(root).expect("the recordings are there") {
        let folder = entry.expect("an entry").path();
        count += 1;
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let is_refused_here = REFUSED_HERE.contains(&name.as_str());
        match follows(&folder, ALLOWED_HERE.contains(&name.as_str())) {
            Err(why) if !is_refused_here => wrong.push(format!("{name}: {why}")),
            Ok(()) if is_refused_here => wrong.push(format!("{name}: it was allowed")),
            _ => {}
        }
    }
    assert!(count >= 50, "only {count} cases were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn follows(folder: &Path, allowed_here: bool) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mut recorded: Recorded = serde_saphyr::from_str(&read("review.yaml")).expect("a recording");
    if folder
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| WITHOUT_THE_OWNER.contains(&name))
    {
        let (before, owner) = recorded.message.split_once("ingress ").expect("it names an Ingress");
        assert!(owner.starts_with("ingress-nginx/"), "of another namespace");
        recorded.message = format!("{before}another namespace");
    }
    let settings: Settings = match read("case.yaml") {
        text if text.trim().is_empty() => Settings::default(),
        text => serde_saphyr::from_str(&text).expect("settings"),
    };
    let options = options(&settings.flags);
    let text = read("in.yaml");
    let (before, reviewed) = text.rsplit_once("\n---\n").unwrap_or(("", &text));
    let snapshot = snapshot(before);
    let ingress = snapshot_of([(Path::new("in.yaml"), reviewed)]);
    let ingress = ingress.ingresses.values().next().expect("an Ingress is reviewed");
    let served = translate(&snapshot, &options).configuration;
    let answer = review(ingress, &snapshot, &served, &options);
    let expected = (recorded.allowed || allowed_here, recorded.message.as_str());
    let is_said = match (&answer.refusal, expected) {
        (None, (allowed, _)) => allowed,
        (Some(refusal), (false, message)) => refusal
            .strip_prefix(message)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('\n')),
        (Some(_), (true, _)) => false,
    };
    if is_said && answer.warnings == recorded.warnings {
        return Ok(());
    }
    Err(format!("wanted {expected:?} {:?}, got {answer:?}", recorded.warnings))
}

fn snapshot(objects: &str) -> Snapshot {
    snapshot_of([(Path::new("class.yaml"), CLASS), (Path::new("in.yaml"), objects)])
}

fn options(flags: &[String]) -> Options {
    let config_map = Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller"));
    let mut options = Options { config_map, ..Options::default() };
    for flag in flags {
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("--disable-catch-all", _) => options.disable_catch_all = true,
            ("--annotations-prefix", prefix) => options.annotations_prefix = prefix.to_owned(),
            ("--watch-namespace", name) => options.watch_namespace = Some(name.to_owned()),
            other => panic!("the test does not know {other:?}"),
        }
    }
    options
}

#[test]
fn a_snippet_is_refused_by_line_and_column_and_one_for_nginx_is_warned_of() {
    let objects = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ingress-nginx-controller, namespace: ingress-nginx}\n\
        data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical, \
        http-snippet: 'limit_req_zone $uri zone=known:1m rate=1r/s;'}\n";
    let snapshot = snapshot(objects);
    let options = options(&[]);
    let served = translate(&snapshot, &options).configuration;
    let answer = |text: &str| {
        let ingress = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: a\n  namespace: demo\n  annotations:\n    \
             nginx.ingress.kubernetes.io/configuration-snippet: {text:?}\nspec:\n  ingressClassName: nginx\n  rules: \
             [{{host: a.test}}]\n"
        );
        let read = snapshot_of([(Path::new("in.yaml"), ingress.as_str())]);
        let ingress = read.ingresses.values().next().expect("an Ingress is reviewed");
        let review = review(ingress, &snapshot, &served, &options);
        (review.refusal.unwrap_or_default(), review.warnings.join("\n"))
    };
    assert_eq!(answer("limit_req zone=known;\n"), (String::new(), String::new()));
    let (refusal, warnings) = answer("deny all;\n  denny all;\nlimit_req zone=other;");
    assert!(refusal.starts_with("annotation nginx.ingress.kubernetes.io/configuration-snippet"));
    assert!(refusal.contains("line 2, column 3: unknown directive \"denny\""), "{refusal}");
    assert!(warnings.is_empty(), "{warnings}");
    let (refusal, _) = answer("limit_req zone=other;");
    assert!(refusal.contains("line 1, column 1: zone \"other\""), "{refusal}");
    let (refusal, warnings) = answer("deny all;\n\taccess_by_lua 'x';");
    assert!(refusal.is_empty(), "{refusal}");
    assert!(warnings.contains("line 2, column 2: needs nginx"), "{warnings}");
}

#[test]
fn what_was_taken_out_of_ingress_nginx_is_warned_of() {
    let (snapshot, options) = (snapshot(""), options(&[]));
    let served = translate(&snapshot, &options).configuration;
    for (name, wanted) in [
        ("global-rate-limit", "has no effect: ingress-nginx removed it, too"),
        ("global-rate-limit-window", "has no effect: ingress-nginx removed it, too"),
        ("session-cookie-hash", "has no effect: ingress-nginx removed it, too"),
        ("influxdb-host", "is deprecated"),
    ] {
        let text = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: a, namespace: demo, annotations: \
             {{nginx.ingress.kubernetes.io/{name}: \"5\"}}}}\nspec: {{ingressClassName: nginx, rules: [{{host: a.test}}]}}\n"
        );
        let read = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let ingress = read.ingresses.values().next().expect("an Ingress is reviewed");
        let answer = review(ingress, &snapshot, &served, &options);
        assert_eq!(answer.refusal, None);
        let wanted = format!("annotation nginx.ingress.kubernetes.io/{name} {wanted}");
        assert_eq!(answer.warnings, [wanted]);
    }
}

#[test]
fn a_path_that_is_no_regular_expression_is_warned_of_where_it_has_to_be_one() {
    let said = |annotation: &str, path: &str| {
        let ingress = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: a, namespace: demo, annotations: {{{annotation}}}}}\n\
             spec:\n  ingressClassName: nginx\n  rules:\n  - {{host: a.test, http: {{paths: [{{path: {path:?}, pathType: \
             ImplementationSpecific, backend: {{service: {{name: s, port: {{number: 80}}}}}}}}]}}}}\n"
        );
        let read = snapshot_of([(Path::new("in.yaml"), ingress.as_str())]);
        let ingress = read.ingresses.values().next().expect("an Ingress is reviewed");
        in_vain(ingress, &snapshot(""), &options(&[])).join("\n")
    };
    let prefix = "nginx.ingress.kubernetes.io";
    for annotation in [
        format!("{prefix}/use-regex: 'true'"),
        format!("{prefix}/rewrite-target: /"),
        format!("{prefix}/rewrite-target: /$1"),
    ] {
        let warning = said(&annotation, "/x(");
        assert!(warning.starts_with("path /x( is left out: "), "{annotation}: {warning}");
        assert!(warning.contains("and it is none (Parsing error at position"), "{warning}");
        assert_eq!(said(&annotation, "/x(.*)"), "", "{annotation}");
    }
    assert_eq!(said(&format!("{prefix}/use-regex: 'false'"), "/x("), "");
    let wanted = "ssl-passthrough: has no effect: Fairway runs without --enable-ssl-passthrough";
    assert_eq!(
        said(&format!("{prefix}/ssl-passthrough: 'true'"), "/"),
        format!("{prefix}/{wanted}")
    );
    assert_eq!(said(&format!("{prefix}/ssl-passthrough: 'false'"), "/"), "");
}
