//! `fairway check` and `fairway explain`, as a user runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the program; it must not end by a signal.
fn fairway(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_fairway")).args(arguments).output();
    let output = output.expect("the program runs");
    assert!(output.status.code().is_some(), "{output:?}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The objects of all recorded cases in one folder, but the ConfigMaps, of which there can be one only.
fn all_cases(folder: &Path) {
    let list =
        |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    for (number, case) in list(&root().join("exchanges"))
        .flat_map(|family| list(&family).collect::<Vec<_>>())
        .enumerate()
    {
        let Ok(objects) = fs::read_to_string(case.join("in.yaml")) else { continue };
        let ours = objects.split("\n---\n").filter(|object| !object.contains("kind: ConfigMap"));
        let objects = ours.collect::<Vec<_>>().join("\n---\n");
        fs::write(folder.join(format!("{number}.yaml")), objects).expect("a file");
    }
}

/// What takes nginx, whatever the ConfigMap allows.
const GUARDED_BY_RULES: &str = r#"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: guarded-by-rules
  namespace: demo
  annotations: {nginx.ingress.kubernetes.io/enable-modsecurity: "true"}
spec: {ingressClassName: nginx, rules: [{host: rules.test}]}
"#;

#[test]
fn hundreds_of_ingresses_are_checked_and_each_verdict_has_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    all_cases(folder.path());
    fs::write(folder.path().join("rules.yaml"), GUARDED_BY_RULES).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let output = fairway(&["check", path, "--format", "json"]);
    // Some cases share a name, and one holds a value that is no text.
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let unread = check["unread"].as_array().expect("a list");
    assert!(!unread.is_empty() && unread.len() < 10, "{unread:?}");
    let findings = check["ingresses"].as_array().expect("a list");
    assert!(findings.len() >= 200, "only {} Ingresses", findings.len());
    for finding in findings {
        let is_identical = finding["standing"] == "identical";
        let reasons = finding["reasons"].as_array().expect("a list");
        assert_eq!(is_identical, reasons.is_empty(), "{finding}");
    }
    for standing in ["identical", "differs", "needs-nginx", "refused"] {
        assert!(findings.iter().any(|finding| finding["standing"] == standing), "{standing}");
    }
    let all = fairway(&["check", path, "--fail-on", "never", "--format", "markdown"]);
    assert_eq!(all.status.code(), Some(1));
    assert!(text(&all.stdout).starts_with("# From ingress-nginx to Fairway"));
}

#[test]
fn a_reader_who_has_had_enough_is_no_mistake() {
    let program = env!("CARGO_BIN_EXE_fairway");
    let shop = root().join("tools/shop.yaml");
    for command in ["translate", "check"] {
        let whole = Command::new(program).arg(command).arg(&shop).output().expect("it starts");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let cut = Command::new(program).arg(command).arg(&shop).stdout(writer).output();
        let cut = cut.expect("it starts");
        assert_eq!(cut.status.code(), whole.status.code(), "{command}: {}", text(&cut.stderr));
        assert!(!text(&cut.stderr).contains("panicked"), "{command}: {}", text(&cut.stderr));
    }
}

/// A ConfigMap of a controller, with a value that is none.
const LOW_LEVEL: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress-nginx-controller, namespace: web}, \
                         data: {annotations-risk-level: lowest}}";

#[test]
fn translate_says_by_its_exit_code_whether_all_is_served() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 80}]}\n";
    let site = format!("{}---\n{service}", ingress("nginx"));
    let wrong = site.replace(
        "name: site,",
        "name: site, annotations: {nginx.ingress.kubernetes.io/auth-type: basic},",
    );
    for (content, code) in [(&*site, 0), (&*wrong, 2), ("a: b: c", 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("objects.yaml"), content).expect("a file");
        let output = fairway(&["translate", folder.path().to_str().expect("a path")]);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with('{'), "it is printed nevertheless");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("objects.yaml"), &site).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let output = fairway(&["translate", path, "--configmap=a/nope"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no ConfigMap a/nope"));
    fs::write(folder.path().join("map.yaml"), LOW_LEVEL).expect("a file");
    let said = text(&fairway(&["translate", path]).stderr);
    assert!(said.contains("using ConfigMap web/ingress-nginx-controller"), "{said}");
    assert!(said.contains("annotations-risk-level"), "what it says counts: {said}");
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress-nginx-controller, namespace: \
               ingress-nginx}, data: {http-snippet: foo bar}}";
    let (code, page, _) = checked(&[&site, map], &[]);
    assert!(
        code == Some(2)
            && page.contains(
                "\nrefused                 ConfigMap ingress-nginx/ingress-nginx-controller http-snippet: "
            ),
        "{page}"
    );
    assert!(page.contains("     1  mistakes in the ConfigMap"), "{page}");
}

#[test]
fn a_folder_that_is_not_there_is_one_line_with_its_name() {
    let output = fairway(&["check", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/at/all"), "{}", text(&output.stderr));
}

/// An Ingress of a class, with the class `nginx` beside it.
fn ingress(class: &str) -> String {
    format!(
        "{{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {{name: nginx}}, spec: {{controller: \
         k8s.io/ingress-nginx}}}}\n---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: site, \
         namespace: default}}, spec: {{ingressClassName: {class}, rules: [{{host: a.example}}]}}}}\n"
    )
}

/// What `check` makes of files with these texts: exit code, standard output, standard error.
fn checked(files: &[&str], arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, content) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("{number}.yaml")), content).expect("a file");
    }
    let path = folder.path().to_str().expect("a path");
    let output = fairway(&[&["check", path], arguments].concat());
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn what_was_not_read_is_never_green() {
    let site = ingress("nginx");
    assert_eq!(checked(&[&site], &[]).0, Some(0));
    let (code, _, said) = checked(&[], &["--fail-on", "never"]);
    assert!(code == Some(1) && said.contains("no Ingress was found"), "{said}");
    let (code, _, said) = checked(&["a: b: c"], &[]);
    assert!(code == Some(1) && said.contains("not read: "), "{said}");
    for format in ["table", "markdown", "json"] {
        let (code, page, said) = checked(&[&site, "a: b: c"], &["--format", format]);
        assert!(code == Some(1) && said.contains("not everything was checked"), "{said}");
        assert!(page.contains("1.yaml"), "{page}");
        assert!(!page.contains("File /"), "{page}");
    }
    let secure = site.replace("rules:", "tls: [{hosts: [a.example], secretName: cert}], rules:");
    let (code, page, said) = checked(&[&secure], &["--fail-on", "never"]);
    assert!(code == Some(1) && said.contains("not everything was checked"), "{said}");
    assert!(page.contains("default/cert is named: certificates"), "{page}");
    assert_eq!(checked(&[&site, &site], &[]).0, Some(0), "the same twice loses nothing");
    let other = site.replace("a.example", "b.example");
    let (code, _, said) = checked(&[&site, &other], &[]);
    assert!(code == Some(1) && said.contains("kustomize build"), "{said}");
    let item = "{apiVersion: v1, kind: List, items: [17]}";
    let near = "{apiVersion: networking.k8s.io/v1, kind: ingress, metadata: {name: a}}";
    for unread in [item, near, &near.replace("ingress,", "Ingres,"), "just words"] {
        let (code, page, said) = checked(&[&site, unread], &["--fail-on", "never"]);
        assert!(code == Some(1) && said.contains("not everything was checked"), "{said}");
        assert!(page.contains("1.yaml"), "{page}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), &site).expect("a file");
    std::os::unix::fs::symlink("nowhere", folder.path().join("x.yaml")).expect("a link");
    let output = fairway(&["check", folder.path().to_str().expect("a path")]);
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{page}");
    assert!(page.contains("x.yaml") && !page.contains("its last content counts"), "{page}");
    assert!(page.contains("it is a link that leads nowhere: leave it out, or mend it"), "{page}");
}

#[test]
fn kustomizations_charts_and_templates_are_not_read_and_the_remedy_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |path: &str| folder.path().join(path).display().to_string();
    let put = |path: &str, content: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    };
    put("base/in.yaml", &ingress("nginx"));
    put("base/kustomization.yaml", "resources: [in.yaml]");
    put("prod/two.yaml", &ingress("nginx").replace("site", "two"));
    put("prod/kustomization.yaml", "resources: [../base, two.yaml]\nnamePrefix: prod-");
    put("same/Kustomization", "resources: [../base]\npatches: [{path: patch.yaml}]");
    put(
        "same/patch.yaml",
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: site}}",
    );
    put("chart/Chart.yaml", "apiVersion: v2\nname: it\nversion: 1.0.0");
    put("chart/values.yaml", "host: {{ a }}");
    put("chart/templates/in.yaml", "{{- if .Values.on }}\n---\n{{ end }}");
    let ask = |command: &str, path: &str| {
        let output = fairway(&[command, &at(path)]);
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(ask("check", "base").0, Some(0), "it names what is read, and changes nothing");
    for path in ["prod", "same"] {
        let remedy = format!("`kustomize build {} | fairway check -`", at(path));
        let (code, page, said) = ask("check", path);
        assert!(
            code == Some(1) && page.contains(&remedy) && said.contains(&remedy),
            "{page}{said}"
        );
        assert!(!page.contains("it has no class"), "a patch is no Ingress: {page}");
    }
    let (code, _, said) = ask("convert", "prod");
    assert!(code == Some(1) && said.contains("not everything was converted: 1 could"), "{said}");
    let (code, page, said) = ask("check", "chart");
    let remedy = format!("`helm template {} | fairway check -`", at("chart"));
    assert!(code == Some(1) && page.contains(&remedy), "{page}");
    assert!(said.contains("not everything was checked: 1 could not be read\n"), "{said}");
    for (name, words) in [
        ("'web-{{ .Release.Name }}'", "Render it first (helm template)"),
        ("Demo_X", "0.yaml:3:1: Ingress default/Demo_X: metadata.name is \"Demo_X\", which no API"),
    ] {
        let site = ingress("nginx").replace("name: site,", &format!("name: {name},"));
        let (code, page, _) = checked(&[&site], &[]);
        assert!(code == Some(1) && page.contains(words), "{page}");
    }
}

/// A Gateway of a class, and a route of a Gateway.
fn gateway(class: &str, parent: &str, path: &str) -> String {
    format!(
        "{{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {{name: fairway}}, spec: \
         {{controllerName: fairway/gateway-controller}}}}\n---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: \
         Gateway, metadata: {{name: web, namespace: shop}}, spec: {{gatewayClassName: {class}, listeners: [{{name: \
         http, protocol: HTTP, port: 80}}]}}}}\n---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, \
         metadata: {{name: all, namespace: shop}}, spec: {{parentRefs: [{{name: {parent}}}], rules: [{{matches: \
         [{{path: {{type: Exact, value: {path}}}}}], backendRefs: [{{name: web, port: 80}}]}}]}}}}\n"
    )
}

#[test]
fn gateways_and_routes_are_checked_too_and_names_of_nothing_are_told() {
    let service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}";
    let (code, page, said) = checked(&[&gateway("fairway", "web", "/"), service], &[]);
    assert_eq!(code, Some(0), "{page}{said}");
    assert!(page.contains("2  of 2 Gateways and routes are of a class of ours"), "{page}");
    for format in ["table", "markdown", "json"] {
        let flags = ["--format", format];
        let (code, page, _) = checked(&[&gateway("fairway", "web", "/")], &flags);
        assert!(code == Some(2) && page.contains("HTTPRoute shop/all"), "{page}");
        let (code, page, said) = checked(&[&gateway("fairwy", "wob", "/"), service], &flags);
        assert!(
            code == Some(1) && said.contains("none of 2 Gateways and routes is ours"),
            "{said}"
        );
        assert!(page.contains("there is no GatewayClass fairwy; did you mean fairway?"), "{page}");
        assert!(page.contains("there is no Gateway shop/wob; did you mean web?"), "{page}");
    }
    let policy = "{apiVersion: gateway.networking.k8s.io/v1, kind: XMesh, metadata: {name: a}}";
    let (code, page, _) = checked(&[&gateway("fairway", "web", "/"), service, policy], &[]);
    assert!(code == Some(1) && page.contains("XMesh"), "{page}");
}

#[test]
fn ingresses_that_are_not_ours_are_named_with_the_reason() {
    for format in ["table", "markdown", "json"] {
        let (code, page, said) = checked(&[&ingress("ngnix")], &["--format", format]);
        assert!(code == Some(1) && said.contains("the only Ingress is not ours"), "{said}");
        assert!(page.contains("default/site"), "{page}");
        assert!(page.contains("there is no IngressClass ngnix; did you mean nginx?"), "{page}");
    }
    let unfinished = ingress("nginx").replace(", spec: {controller: k8s.io/ingress-nginx}", "");
    let (_, page, _) = checked(&[&unfinished], &[]);
    assert!(page.contains("has no spec.controller: write k8s.io/ingress-nginx there"), "{page}");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), ingress("ngnix")).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let story = fairway(&["explain", "http://a.example/", "--manifests", path]);
    assert!(text(&story.stderr).contains("default/site names a.example, but is not ours"));
}

#[test]
fn what_another_namespace_asks_for_in_vain_is_a_near_miss() {
    let of = |namespace: &str, year: u32, kind: &str| {
        format!(
            "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: it, namespace: {namespace}, \
             creationTimestamp: \"{year}-01-01T00:00:00Z\"}}, spec: {{ingressClassName: nginx, rules: [{{host: \
             shop.test, http: {{paths: [{{path: /, pathType: {kind}, backend: {{service: {{name: web, port: {{number: \
             80}}}}}}}}]}}}}]}}}}\n---\n"
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    let objects = of("one", 2020, "Prefix") + &of("two", 2021, "Exact");
    fs::write(folder.path().join("in.yaml"), objects).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let story = fairway(&["explain", "http://shop.test/", "--manifests", path]);
    let said = text(&story.stderr);
    assert!(said.contains("near miss: Ingress two/it names shop.test, but spec.rules"), "{said}");
}

/// An Ingress of class `nginx` alone, for a Service that has no endpoints.
const CLASSLESS: &str = r#"
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: it, namespace: demo}, spec: {ingressClassName: nginx, rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: blue, port: {number: 80}}}}]}}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: blue, namespace: demo}, spec: {ports: [{port: 80}]}}
"#;

#[test]
fn a_class_that_is_not_among_the_objects_is_said_on_standard_output() {
    const WORDS: &str = "answers 404 for Ingresses of class nginx until it is";
    for format in ["table", "markdown", "json"] {
        let (_, page, _) = checked(&[CLASSLESS], &["--format", format]);
        assert!(page.contains(WORDS) && page.contains("IngressClass"), "{format}: {page}");
        let (_, page, _) = checked(&[&ingress("nginx"), CLASSLESS], &["--format", format]);
        assert!(!page.contains(WORDS), "{format}: {page}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), CLASSLESS).expect("a file");
    let path = folder.path().to_str().expect("a path");
    for format in ["text", "json"] {
        let output =
            fairway(&["explain", "http://a.example/", "--manifests", path, "--format", format]);
        let story = text(&output.stdout);
        assert!(story.contains(WORDS) && story.contains("IngressClass"), "{story}");
        // The Service that lacks endpoints is named with what to do about it.
        assert!(story.contains("Service demo/blue has no EndpointSlice"), "{story}");
    }
}

#[test]
fn a_snippet_is_not_refused_by_both_where_no_config_map_was_read() {
    const OLD: &str = "metadata: {name: it, namespace: demo}";
    let new = "metadata: {name: it, namespace: demo, annotations: {nginx.ingress.kubernetes.io/configuration-snippet: \
               'more_set_headers \"A: b\";'}}";
    let objects = CLASSLESS.replace(OLD, new);
    let (_, page, _) = checked(&[&ingress("nginx"), &objects], &[]);
    assert!(page.lines().any(|line| line == "refused, maybe by both  demo/it"), "{page}");
    assert!(
        page.contains("; no ConfigMap was read: give `check` that of the controller"),
        "{page}"
    );
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}}";
    let (_, page, _) = checked(&[&ingress("nginx"), &objects, map], &[]);
    assert!(page.lines().any(|line| line == "refused by both         demo/it"), "{page}");
    assert!(!page.contains("no ConfigMap was read"), "{page}");
}

#[test]
fn the_config_map_is_found_or_asked_for() {
    let site = ingress("nginx");
    let map = |name: &str, data: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: web}}, data: {{{data}}}}}"
        )
    };
    let guarded = map("settings", "enable-modsecurity: 'true'");
    let (code, page, said) = checked(&[&site, &guarded], &[]);
    assert!(code == Some(2) && said.contains("using ConfigMap web/settings"), "{said}");
    assert!(page.contains("needs the nginx engine"), "{page}");
    let other = map("other-ingress-nginx-controller", "");
    let (code, _, said) = checked(&[&site, &guarded, &other], &[]);
    assert!(code == Some(1) && said.contains("name it by --configmap"), "{said}");
    let (code, _, _) = checked(&[&site, &guarded, &other], &["--configmap", "web/settings"]);
    assert_eq!(code, Some(2));
    let (code, _, said) = checked(&[&site], &["--configmap", "web/none"]);
    assert!(code == Some(1) && said.contains("there is no ConfigMap web/none"), "{said}");
    assert!(!said.contains("may not be read"), "{said}");
    let elsewhere = ["--configmap", "web/none", "--watch-namespace", "shop"];
    let (code, _, said) = checked(&[&site], &elsewhere);
    let told = "there is no ConfigMap web/none, which --configmap names, or it may not be read";
    assert!(code == Some(1) && said.contains(told), "{said}");
    let shipped = fs::read_to_string(root().join("../deploy/config.yaml")).expect("our ConfigMap");
    let (code, _, said) = checked(&[&site, &shipped], &[]);
    assert!(code == Some(0) && said.contains("using ConfigMap fairway/fairway"), "{said}");
    let (code, _, said) = checked(&[&site, &map("app", "colour: blue")], &[]);
    assert!(code == Some(0) && said.contains("no ConfigMap of the controller"), "{said}");
    let unread = map("ingress-nginx-controller", "use-gzip: true");
    let (code, _, said) = checked(&[&site, &unread], &[]);
    let words = "ConfigMap web/ingress-nginx-controller could not be read, and no other";
    assert!(code == Some(1) && said.contains(words), "{said}");
    let flag = ["--configmap", "web/ingress-nginx-controller"];
    let (code, _, said) = checked(&[&site, &unread], &flag);
    assert!(
        code == Some(1) && said.contains("which --configmap names, could not be read"),
        "{said}"
    );
}

#[test]
fn services_of_ports_and_what_flags_name_are_checked_too() {
    let site = ingress("nginx");
    let ports = "{apiVersion: v1, kind: ConfigMap, metadata: {name: tcp-services, namespace: web}, data: {'99999': \
                 db/redis:6379, '3307': redis:6379, '3306': db/redis:3306}}";
    let flag = ["--tcp-services-configmap", "web/tcp-services"];
    let (code, page, _) = checked(&[&site, ports], &flag);
    assert_eq!(code, Some(0));
    for said in [
        "ConfigMap web/tcp-services 99999: is no port",
        "3307: \"redis:6379\" names no Service port",
        "3306: db/redis:3306: there is no such Service",
    ] {
        assert!(page.contains(said), "{page}");
    }
    let good = ports.replace("'99999': db/redis:6379, '3307': redis:6379, ", "");
    let (_, page, _) = checked(&[&site, &good], &[]);
    assert!(page.contains("give --tcp-services-configmap=web/tcp-services"), "{page}");
    let (code, _, said) = checked(&[&site], &flag);
    assert!(code == Some(1) && said.contains("there is no ConfigMap web/tcp-services"), "{said}");
    let (_, page, _) = checked(&[&site], &["--default-ssl-certificate", "web/none"]);
    assert!(page.contains("web/none"), "{page}");
    let (_, page, _) = checked(&[&site], &["--default-backend-service", "web/nobody"]);
    assert!(page.contains("web/nobody"), "{page}");
}

/// The decisions about a request to the objects of `tests/tools/shop.yaml`.
fn explained(arguments: &[&str]) -> String {
    let manifests = root().join("tools/shop.yaml");
    let manifests = manifests.to_str().expect("a path");
    let output = fairway(&[&["explain"], arguments, &["--manifests", manifests]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_wrong_port_and_a_missing_service_are_not_said_to_lack_endpoints() {
    let shop = fs::read_to_string(root().join("tools/shop.yaml")).expect("the objects");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let told = |objects: String| {
        fs::write(folder.path().join("in.yaml"), objects).expect("a file");
        text(&fairway(&["explain", "http://plain.test/foo", "--manifests", path]).stdout)
    };
    let story =
        told(shop.replace("name: shop, port: {number: 80}", "name: shop, port: {number: 8081}"));
    says(&story, "endpoints", "none is ready: 503; Service demo/shop has no port 8081: it has 80");
    let story = told(shop.replace("service: {name: shop", "service: {name: stop"));
    says(&story, "endpoints", "none is ready: 503; Service demo/stop does not exist: create it");
    assert!(!story.contains("EndpointSlice"), "{story}");
    fs::write(folder.path().join("cut.yaml"), "apiVersion: v1\nkind: [").expect("a file");
    let half = fairway(&["explain", "http://plain.test/foo", "--manifests", path]);
    let said = text(&half.stderr);
    assert!(said.contains("1 could not be read: with what they say,"), "{said}");
    assert_eq!(half.status.code(), Some(1), "{said}");
    assert!(text(&half.stdout).starts_with("listener"), "what is known is told");
    fs::remove_file(folder.path().join("cut.yaml")).expect("a file");
    let story = told(
        shop.replace("addresses: [10.1.1.", "conditions: {ready: false}, addresses: [10.1.1."),
    );
    says(&story, "endpoints", "Service demo/shop has no EndpointSlice");
}

#[test]
fn an_ingress_outside_of_the_watched_namespace_is_not_ours() {
    let site = ingress("nginx");
    let (code, page, said) = checked(&[&site], &["--watch-namespace=shop"]);
    assert!(code == Some(1) && said.contains("the only Ingress is not ours"), "{said}");
    assert!(page.contains("its namespace is not the one of --watch-namespace"), "{page}");
    assert_eq!(checked(&[&site], &["--watch-namespace=default"]).0, Some(0));
    let (code, _, said) = checked(&[&site], &["--watch-namespace=default,shop"]);
    assert!(code == Some(1) && said.contains("--watch-namespace-selector="), "{said}");
}

#[test]
fn a_secret_that_is_no_base64_is_not_said_to_be_missing() {
    let site =
        ingress("nginx").replace("rules:", "tls: [{hosts: [a.example], secretName: t}], rules:");
    let site = site.replace("{host: a.example}", "{host: a.example, http: {paths: []}}");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: t}\ntype: kubernetes.io/tls\n\
        data:\n  tls.key: YQ==\n  tls.crt: \"not base64!\"\n";
    let (code, page, said) = checked(&[&site, secret], &[]);
    assert_eq!(code, Some(1), "{said}");
    let wrong = "1.yaml:7:12: Secret default/t: data.tls.crt is no base64: encode it";
    assert!(said.contains(wrong), "{said}");
    assert!(page.contains("could not be read: mend it"), "{page}");
    assert!(
        !page.contains("does not exist") && !page.contains("none is among the objects"),
        "{page}"
    );
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}",
        secret.trim_end().replace('\n', "\n  ")
    );
    let (_, _, said) = checked(&[&site, &list], &[]);
    assert!(said.contains("Secret default/t: data.tls.crt is no base64"), "{said}");
}

/// Whether a line names a step and has these words.
fn says(story: &str, step: &str, words: &str) {
    let found = story.lines().any(|line| line.starts_with(step) && line.contains(words));
    assert!(found, "no {step:?} with {words:?} in\n{story}");
}

#[test]
fn a_request_is_explained_from_the_listener_to_what_the_upstream_gets() {
    let story = explained(&["https://shop.test/api/v1/../x?q=1", "--client", "10.1.2.3"]);
    says(&story, "location", "/api/x is at Prefix /api(/|$)(.*) of Ingress demo/shop");
    says(&story, "rewrite", "/x?q=1  [rewrite-target of Ingress demo/shop]");
    says(&story, "access", "10.1.2.3 is allowed");
    says(&story, "access", "auth.demo.svc/check is asked");
    says(&story, "endpoints", "in turn one of 10.1.1.1:8080, 10.1.1.2:8080");
    says(&story, "sent upstream", "GET /x?q=1 HTTP/1.1");
    says(&story, "sent upstream", "X-Real-IP: 10.1.2.3");
}

#[test]
fn a_path_that_nobody_has_is_rewritten_to_nothing() {
    let story = explained(&["https://shop.test/elsewhere", "--client", "10.1.2.3"]);
    says(&story, "backend", "none: 404");
    assert!(!story.lines().any(|line| line.starts_with("rewrite ")), "{story}");
}

#[test]
fn what_ends_a_request_is_named_with_its_annotation() {
    let refused = explained(&["https://shop.test/api/x", "--client", "192.0.2.9"]);
    says(
        &refused,
        "access",
        "192.0.2.9 is not allowed  [allowlist-source-range of Ingress demo/shop]",
    );
    says(&refused, "answer", "403 Forbidden made by Fairway");
    let redirected = explained(&["http://shop.test/api/x"]);
    says(&redirected, "redirect", "308 to https://shop.test/api/x  [ssl-redirect, by default]");
}

#[test]
fn a_guard_is_named_as_its_ingress_spells_it() {
    let shop = fs::read_to_string(root().join("tools/shop.yaml")).expect("the objects");
    let old = shop.replace("/allowlist-source-range:", "/whitelist-source-range:");
    let story = story_of(&old, &["https://shop.test/api/x", "--client", "10.1.2.3"]);
    says(&story, "access", "10.1.2.3 is allowed  [whitelist-source-range of Ingress demo/shop]");
}

/// What `explain` says of a request to these objects.
fn story_of(objects: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), objects).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let output = fairway(&[&["explain"], arguments, &["--manifests", path]].concat());
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_authenticator_that_nobody_is_behind_is_told_with_the_answer() {
    let shop = fs::read_to_string(root().join("tools/shop.yaml")).expect("the objects");
    let ask = ["https://shop.test/api/x", "--client", "10.1.2.3"];
    // Not the number alone: an id of the request may have it.
    assert!(!story_of(&shop, &ask).contains("the answer is 500"));
    let gone = shop.replace("{name: auth, namespace", "{name: other, namespace");
    let gone = gone.replace("service-name: auth", "service-name: other");
    let why = "the answer is 500 until one is; Service demo/auth does not exist: create it";
    says(&story_of(&gone, &ask), "access", why);
}

#[test]
fn the_upstream_that_a_snippet_names_is_told_with_its_endpoints() {
    let shop = fs::read_to_string(root().join("tools/shop.yaml")).expect("the objects");
    let own = "{name: plain, namespace: demo";
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: all, namespace: web}\n\
         data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical}\n";
    for (named, told) in [("demo-auth-80", "10.1.1.3:8080"), ("demo-shop-80", "10.1.1.1:8080")] {
        let snippet = format!(
            "annotations: {{nginx.ingress.kubernetes.io/configuration-snippet: 'set $proxy_upstream_name {named};', \
             nginx.ingress.kubernetes.io/affinity: cookie}}"
        );
        let objects = format!("{}\n{map}", shop.replace(own, &format!("{own}, {snippet}")));
        let story = story_of(&objects, &["http://plain.test/foo", "--configmap", "web/all"]);
        says(&story, "upstream", &format!("{named}, which a snippet names"));
        says(&story, "endpoints", &format!("in turn one of {told}"));
    }
}

#[test]
fn guards_of_the_config_map_are_not_laid_to_an_ingress() {
    let shop = fs::read_to_string(root().join("tools/shop.yaml")).expect("the objects");
    let guards = "whitelist-source-range: 10.0.0.0/8, denylist-source-range: 10.9.0.0/16, \
         global-auth-url: http://gone.demo.svc.cluster.local/check";
    let map = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: all, namespace: web}}\ndata: {{{guards}}}\n"
    );
    let with = ["--client", "10.1.2.3", "--configmap", "web/all"];
    let objects = format!("{shop}\n{map}");
    let story = story_of(&objects, &[&["http://plain.test/foo"][..], &with].concat());
    says(&story, "access", "10.1.2.3 is not denied  [denylist-source-range of the ConfigMap]");
    says(&story, "access", "10.1.2.3 is allowed  [whitelist-source-range of the ConfigMap]");
    says(&story, "access", "Service demo/gone does not exist");
    says(&story, "access", "[global-auth-url of the ConfigMap]");
    let own = story_of(&objects, &[&["https://shop.test/api/x"][..], &with].concat());
    says(&own, "access", "[allowlist-source-range of Ingress demo/shop]");
    says(&own, "access", "[auth-url of Ingress demo/shop]");
}

#[test]
fn a_host_that_only_a_canary_has_is_said_to_be_that() {
    let shop = fs::read_to_string(root().join("tools/shop.yaml")).expect("the objects");
    let own = "{name: plain, namespace: demo";
    let canary = "annotations: {nginx.ingress.kubernetes.io/canary: 'true'}";
    let story =
        story_of(&shop.replace(own, &format!("{own}, {canary}")), &["http://plain.test/foo"]);
    says(
        &story,
        "near miss",
        "Ingress demo/plain names plain.test, but spec.rules: the canary has no effect",
    );
}

#[test]
fn a_redirect_is_named_by_the_one_annotation_that_asks_for_it() {
    let shop = fs::read_to_string(root().join("tools/shop.yaml")).expect("the objects");
    let with = |annotations: &str, url: &str| {
        let own = "{name: plain, namespace: demo";
        story_of(&shop.replace(own, &format!("{own}, annotations: {{{annotations}}}")), &[url])
    };
    let key = |name: &str, value: &str| format!("nginx.ingress.kubernetes.io/{name}: '{value}'");
    let url = "http://plain.test/foo";
    let both =
        [key("permanent-redirect", "https://a.test"), key("temporal-redirect", "https://b.test")];
    says(&with(&both[0], url), "redirect", "[permanent-redirect of Ingress demo/plain]");
    says(
        &with(&both.join(", "), url),
        "redirect",
        "302 to https://b.test  [temporal-redirect of Ingress",
    );
    says(
        &with(&key("force-ssl-redirect", "true"), url),
        "redirect",
        "[force-ssl-redirect of Ingress",
    );
    let rewritten = with(&key("rewrite-target", "https://c.test/"), url);
    says(&rewritten, "redirect", "302 to https://c.test/  [rewrite-target of Ingress demo/plain]");
    let www = with(&key("from-to-www-redirect", "true"), "http://www.plain.test/");
    says(&www, "location", "none: every request of this name is redirected");
    assert!(!www.contains("RFC 3986"), "{www}");
}

/// A Gateway with routes of one host.
fn routes(rules: &str) -> String {
    format!(
        "{{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {{name: fairway}}, spec: \
         {{controllerName: fairway/gateway-controller}}}}\n---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: \
         Gateway, metadata: {{name: gw, namespace: demo}}, spec: {{gatewayClassName: fairway, listeners: [{{name: http, \
         port: 80, protocol: HTTP}}]}}}}\n---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: \
         {{name: r, namespace: demo}}, spec: {{parentRefs: [{{name: gw}}], hostnames: [r.test], rules: [{rules}]}}}}\n---\n\
         {{apiVersion: v1, kind: Service, metadata: {{name: s, namespace: demo}}, spec: {{ports: [{{port: 80}}]}}}}\n"
    )
}

#[test]
fn redirects_and_expressions_of_routes_are_called_what_they_are() {
    let redirect = "{matches: [{path: {value: /x}}], filters: [{type: RequestRedirect, requestRedirect: {hostname: new.test}}]}";
    let story = story_of(&routes(redirect), &["http://r.test/x"]);
    says(&story, "location", "/x is at Prefix /x of HTTPRoute demo/r");
    says(&story, "backend", "none: the rule redirects");
    says(&story, "redirect", "302 to http://new.test/x  [RequestRedirect of HTTPRoute demo/r]");
    let expression = "{matches: [{path: {type: RegularExpression, value: '/a[0-9]+'}}], filters: [{type: URLRewrite, \
                      urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /b}}}], backendRefs: [{name: s, port: 80}]}";
    let story = story_of(&routes(expression), &["http://r.test/a1"]);
    says(&story, "location", "/a1 is at RegularExpression /a[0-9]+ of HTTPRoute demo/r");
    let refused = routes("{backendRefs: [{name: gone, port: 80}]}");
    let story = story_of(&refused, &["http://r.test/"]);
    says(&story, "near miss: HTTPRoute demo/r", "Service demo/gone does not exist");
}

#[test]
fn a_pipe_is_read_and_files_beside_it_are_not_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let (path, shop) = (pipe.to_str().expect("a path"), root().join("tools/shop.yaml"));
    let writer = std::thread::spawn({
        let (pipe, shop) = (pipe.clone(), fs::read(&shop).expect("the objects"));
        move || fs::write(pipe, shop)
    });
    let output = fairway(&["check", path]);
    writer.join().expect("it ends").expect("it is read");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("2  served identically"), "{}", text(&output.stdout));
    let writer = std::thread::spawn({
        let (pipe, shop) = (pipe.clone(), fs::read(&shop).expect("the objects"));
        move || fs::write(pipe, shop)
    });
    let translated = fairway(&["translate", path]);
    writer.join().expect("it ends").expect("it is read");
    assert!(text(&translated.stdout).contains("shop.test"), "{}", text(&translated.stderr));
    let ports = ["--http-port=0", "--https-port=0", "--healthz-port=0"];
    let run = fairway(&[&["run", "--manifests", "-"][..], &ports].concat());
    assert!(text(&run.stderr).contains("a pipe (-) is read once"), "{}", text(&run.stderr));
    let both = fairway(&["check", path, shop.to_str().expect("a path")]);
    let said = text(&both.stderr);
    assert!(!both.status.success() && said.contains("shop.yaml would not be read"), "{said}");
}

#[test]
fn gateways_with_addresses_of_their_own_are_told_of_where_a_request_is_not_explained() {
    let read = |name: &str| fs::read_to_string(root().join("gateway").join(name)).expect("a file");
    let objects = [read("ground.yaml"), read("own-addresses.yaml")].join("\n---\n");
    let objects = objects.replace("# file: ", "---\n# ");
    let ports = ["PORT-https", "PORT-http", "PORT-a", "PORT-b", "PORT-c"];
    let numbered = ports.iter().zip(8080..);
    let objects =
        numbered.fold(objects, |text, (port, number)| text.replace(port, &number.to_string()));
    let told = |host: &str| {
        let story =
            story_of(&objects, &["--gateway-addresses=127.91.0.0/30", &format!("http://{host}/")]);
        let elsewhere = story.lines().filter(|line| line.contains("not explained here"));
        elsewhere.map(str::to_owned).collect::<Vec<_>>()
    };
    let [first, second] = &told("any.test")[..] else { panic!("{:?}", told("any.test")) };
    assert!(first.contains("Gateway demo/first has routes for any.test at 127.91.0.1:8081"));
    assert!(second.contains("Gateway demo/second has routes for any.test at 127.91.0.2:8081"));
    assert!(told("X.Wild.test").iter().any(|line| line.contains("127.91.0.1:8081")));
}

#[test]
fn a_request_of_a_gateway_is_explained_by_the_rules_of_its_routes() {
    let read = |name: &str| fs::read_to_string(root().join("gateway").join(name)).expect("a file");
    let objects = [read("ground.yaml"), read("matches.yaml")].join("\n---\n");
    let folder = tempfile::tempdir().expect("a folder");
    let objects = ["PORT-a", "PORT-b", "PORT-c"]
        .iter()
        .fold(objects, |text, port| text.replace(port, "8080"));
    fs::write(folder.path().join("objects.yaml"), objects).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let asked = [
        "explain",
        "http://a.test/v2/x",
        "-H",
        "version: two",
        "--manifests",
        path,
        "--format=json",
    ];
    let story: Value = serde_json::from_slice(&fairway(&asked).stdout).expect("JSON");
    let said = |step: &str| -> Vec<String> {
        let all = story.as_array().expect("a list").iter().filter(|line| line["step"] == step);
        all.map(|line| line["outcome"].as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(said("server"), ["a.test of a Gateway"]);
    assert_eq!(said("location"), ["/v2/x is at Prefix /v2/ of HTTPRoute demo/young"]);
    let near = said("near miss");
    let counts = |why: &str| near.iter().filter(|line| line.contains(why)).count();
    // The older route and the rule of one header are met; another header, the parameter and the method are not.
    assert_eq!(counts("it matches, too"), 2, "{near:#?}");
    for lacks in [
        "it asks for header color, which the request has not",
        "it asks for query parameter animal, which the request has not",
        "it asks for method DELETE, and the request has GET",
    ] {
        assert_eq!(counts(lacks), 1, "{lacks}: {near:#?}");
    }
    let story = |arguments: &[&str]| {
        text(&fairway(&[&["explain"], arguments, &["--manifests", path]].concat()).stdout)
    };
    // Where no rule has it, each says why not; and values stay what may be passwords.
    let secure = story(&["https://a.test/v2/x"]);
    says(&secure, "near miss", "it asks for HTTP, and the request came over HTTPS");
    let other = story(&["http://a.test/v2/x?animal=hunter2", "-H", "version: three"]);
    says(&other, "near miss", "for header version, which the request has with another value");
    says(
        &other,
        "near miss",
        "for query parameter animal, which the request has with another value",
    );
    assert!(!other.contains("whale"), "{other}");
    says(&story(&["http://wild.test/"]), "near miss", "host *.wild.test of a Gateway: a wildcard");
}

#[test]
fn what_a_canary_lacks_is_told() {
    let next = r#"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: next, namespace: demo, annotations: {nginx.ingress.kubernetes.io/canary: "true", nginx.ingress.kubernetes.io/canary-by-header: X-Beta, nginx.ingress.kubernetes.io/canary-by-cookie: beta}}
spec:
  ingressClassName: nginx
  rules: [{host: plain.test, http: {paths: [{path: /foo, pathType: Prefix, backend: {service: {name: next, port: {number: 80}}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {name: next, namespace: demo}
spec: {ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: next-1, namespace: demo, labels: {kubernetes.io/service-name: next}}
addressType: IPv4
ports: [{port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.1.3]}]
"#;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("next.yaml"), next).expect("a file");
    fs::copy(root().join("tools/shop.yaml"), folder.path().join("shop.yaml")).expect("a file");
    let folder = folder.path().to_str().expect("a path");
    let side = |fields: &[&str], words: &str| {
        let asked = [&["explain", "http://plain.test/foo"][..], fields, &["--manifests", folder]];
        says(&text(&fairway(&asked.concat()).stdout), "side", words);
    };
    let none = "the main side, not the canary demo-next-80: header x-beta is missing; cookie beta is missing; its weight is 0";
    side(&[], none);
    side(&["-H", "X-Beta: always"], "the canary, demo-next-80: header x-beta says always");
    let other = "header x-beta says neither always nor never; cookie beta says never";
    side(&["-H", "X-Beta: yes", "-H", "Cookie: beta=never"], other);
}

#[test]
fn a_name_of_a_service_is_told_and_not_looked_up() {
    let far = r#"
apiVersion: v1
kind: Service
metadata: {name: far, namespace: other}
spec: {type: ExternalName, externalName: nowhere.invalid, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: far, namespace: other}
spec:
  ingressClassName: nginx
  rules: [{host: far.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: far, port: {number: 80}}}}]}}]
"#;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("far.yaml"), far).expect("a file");
    fs::copy(root().join("tools/shop.yaml"), folder.path().join("shop.yaml")).expect("a file");
    let folder = folder.path().to_str().expect("a path");
    let output = fairway(&["explain", "http://far.test/foo", "--manifests", folder]);
    let story = text(&output.stdout);
    says(&story, "backend", "other-far-80");
    says(&story, "endpoints", "in turn one of the addresses of nowhere.invalid:80");
    says(&story, "answer", "the upstream's");
    assert!(!story.contains("192.0.2.1:80"), "{story}");
}

#[test]
fn a_field_with_the_name_of_the_host_alone_is_told() {
    let fields = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}
data: {add-headers: ingress-nginx/fields, proxy-set-headers: ingress-nginx/fields}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fields, namespace: ingress-nginx}
data: {X-Served-By: "$hostname"}
"#;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("fields.yaml"), fields).expect("a file");
    fs::copy(root().join("tools/shop.yaml"), folder.path().join("shop.yaml")).expect("a file");
    let folder = folder.path().to_str().expect("a path");
    let story = text(&fairway(&["explain", "http://plain.test/foo", "--manifests", folder]).stdout);
    says(&story, "sent upstream", "X-Served-By: …");
    says(&story, "answer field", "X-Served-By: …");
}

/// Two Ingresses of one namespace, the first of which has snippets.
const SNIPPETS: &str = r#"
{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}, data: {
  allow-snippet-annotations: "true", annotations-risk-level: Critical}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: cam
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/server-snippet: |
      location ~ \.png$ { return 406; }
      location = /own { return 407; }
      if ($arg_x) { return 405; }
    nginx.ingress.kubernetes.io/configuration-snippet: |
      if ($arg_y) { return 409; }
      location ~* ^/img/ { return 410; }
spec:
  ingressClassName: nginx
  rules: [{host: cam.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop}
spec:
  ingressClassName: nginx
  rules: [{host: cam.test, http: {paths: [{path: /b, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]
"#;

#[test]
fn steps_of_snippets_name_the_annotation_and_the_ingress_and_expressions_are_called_so() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), SNIPPETS).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let told = |target: &str| {
        let url = format!("http://cam.test{target}");
        text(&fairway(&["explain", &url, "--manifests", path]).stdout)
    };
    let of_server = "[server-snippet of Ingress shop/cam]";
    let of_location = "[configuration-snippet of Ingress shop/cam]";
    let story = told("/?x=1");
    says(&story, "snippet", &format!("server, line 3, column 15: return: 405  {of_server}"));
    let story = told("/?y=1");
    says(&story, "snippet", &format!("location, line 1, column 15: return: 409  {of_location}"));
    let story = told("/IMG/x");
    says(
        &story,
        "location",
        "/IMG/x is at RegularExpression (any case) ^/img/, which a snippet has",
    );
    says(&story, "snippet", &format!("location, line 2, column 22: return: 410  {of_location}"));
    let story = told("/a.png");
    says(&story, "location", r"/a.png is at RegularExpression \.png$, which a snippet has");
    says(&story, "snippet", &format!("location, line 1, column 21: return: 406  {of_server}"));
    says(&told("/own"), "location", "/own is at Exact /own, which a snippet has");
}

/// The Ingress that has the host below the wildcard is another controller's, and its server-snippet nobody's here.
#[test]
fn a_server_snippet_is_of_no_ingress_that_is_not_served_or_names_another_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let cam = SNIPPETS.split("---\n").nth(1).expect("an Ingress");
    let other = cam
        .replace("name: cam\n", "name: theirs\n")
        .replace("ClassName: nginx", "ClassName: other");
    let wide = SNIPPETS.replace("host: cam.test", "host: '*.cam.test'");
    let all = format!("{wide}---\n{}", other.replace("host: cam.test", "host: a.cam.test"));
    fs::write(folder.path().join("in.yaml"), all).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let output = fairway(&["explain", "http://a.cam.test/?x=1", "--manifests", path]);
    let story = text(&output.stdout);
    let told = "server, line 3, column 15: return: 405  [server-snippet of namespace shop]";
    says(&story, "snippet", told);
}

#[test]
fn a_host_whose_authority_cannot_be_had_is_told_to_be_closed_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = "nginx.ingress.kubernetes.io/auth-tls-secret: demo/none";
    let objects = PASSED.replace(
        "name: api, namespace: demo",
        &format!("name: api, namespace: demo, annotations: {{{key}}}"),
    );
    fs::write(folder.path().join("in.yaml"), objects).expect("a file");
    let path = folder.path().to_str().expect("a path");
    for url in ["https://api.test/x", "http://api.test/x"] {
        let story = text(&fairway(&["explain", url, "--manifests", path]).stdout);
        says(&story, "client certificate", "denied, 403: ");
        says(&story, "client certificate", "Secret demo/none");
        assert!(!story.contains("none for /"), "{story}");
    }
}

#[test]
fn near_misses_of_paths_and_hosts_are_told() {
    let story = explained(&["http://plain.test/foobar"]);
    says(&story, "near miss", "Prefix /foo of Ingress demo/plain: a Prefix ends at a slash");
    let story = explained(&["http://plain.test/bar"]);
    says(&story, "near miss", "Exact /Bar of Ingress demo/plain: only the case differs");
    says(
        &explained(&["http://plan.test/foo"]),
        "near miss",
        "host plain.test: the spelling differs",
    );
}

#[test]
fn the_root_that_no_ingress_has_is_told_as_the_hosts_own() {
    let story = explained(&["http://plain.test/foobar", "--default-backend-service=demo/shop"]);
    let own = "/foobar is at Prefix / (of the host itself: no Ingress has it; its settings are those of Ingress demo/plain)";
    says(&story, "location", own);
    says(&story, "backend", "upstream-default-backend");
    for url in ["https://shop.test/api/x", "http://plain.test/foo"] {
        let story = explained(&[url, "--client", "10.1.2.3"]);
        assert!(!story.contains("Prefix / "), "{story}");
    }
    let shop = root().join("tools/shop.yaml");
    let shop = shop.to_str().expect("a path");
    let said = text(&fairway(&["check", shop, "--default-backend-service=demo/shop"]).stdout);
    assert!(said.contains("takes a group of path /apis,"), "{said}");
    assert!(!said.contains("takes a group of path /,"), "{said}");
}

/// A host that is passed through, and one whose only path is `/x`.
const PASSED: &str = r#"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: vault, namespace: demo, annotations: {nginx.ingress.kubernetes.io/ssl-passthrough: "true"}}
spec:
  ingressClassName: nginx
  rules: [{host: vault.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: v, port: {number: 443}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: api, namespace: demo}
spec:
  ingressClassName: nginx
  rules: [{host: api.test, http: {paths: [{path: /x, pathType: Prefix, backend: {service: {name: v, port: {number: 443}}}}]}}]
---
{apiVersion: v1, kind: Service, metadata: {name: v, namespace: demo}, spec: {ports: [{port: 443}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: v, namespace: demo, labels: {kubernetes.io/service-name: v}}
addressType: IPv4
ports: [{port: 8443}]
endpoints: [{addresses: [10.1.1.9], conditions: {ready: true}}]
"#;

#[test]
fn a_host_that_is_passed_through_and_a_path_that_nobody_has_are_told_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), PASSED).expect("a file");
    let path = folder.path().to_str().expect("a path");
    let explain = |arguments: &[&str]| {
        text(&fairway(&[&["explain", "--manifests", path], arguments].concat()).stdout)
    };
    let story = explain(&["https://vault.test/", "--enable-ssl-passthrough"]);
    says(&story, "passthrough", "goes on as it is");
    says(&story, "endpoints", "10.1.1.9:8443");
    assert!(!story.contains("certificate  ") && !story.contains("sent upstream"), "{story}");
    // Without the flag, or in clear, the annotation opens nothing.
    for arguments in
        [&["https://vault.test/"][..], &["http://vault.test/", "--enable-ssl-passthrough"]]
    {
        assert!(!explain(arguments).contains("passthrough"), "{arguments:?}");
    }
    let story = explain(&["http://api.test/y"]);
    says(&story, "location", "none: no path of the host covers /y");
    assert!(!story.contains("Prefix / of"), "{story}");
}

#[test]
fn decisions_come_as_json_and_bad_urls_as_one_line() {
    let json = explained(&["http://plain.test/foo", "--format", "json", "-X", "POST"]);
    let decisions: Value = serde_json::from_str(&json).expect("JSON");
    assert!(decisions.as_array().expect("a list").iter().any(|one| one["step"] == "location"));
    let output = fairway(&["explain", "plain.test/foo", "--manifests", "."]);
    assert!(text(&output.stderr).contains("is no URL: write one such as https://"));
    let output = fairway(&["explain", "http://user:hidden@a.test/", "--manifests", "."]);
    let said = text(&output.stderr);
    assert!(said.contains("-H 'Authorization") && !said.contains("hidden"), "{said}");
    for (url, why) in [
        ("http://a.test/a b", "no client sends one there: write %20"),
        ("http://b\u{fc}cher.test/", "begins with xn--"),
        ("http://a.test:99999/", "\"99999\" is no port: write a number from 1 to 65535"),
        ("http://a.test:0/", "\"0\" is no port: write a number"),
    ] {
        let said = text(&fairway(&["explain", url, "--manifests", "."]).stderr);
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
    assert!(explained(&["HTTP://plain.test/foo"]).contains("plain.test"));
    let output = fairway(&["explain", "http://a.test/", "--sni=b.test", "--manifests", "."]);
    assert!(text(&output.stderr).contains("--sni is about the TLS handshake"));
}

/// Two Ingresses, one with TLS, under a ConfigMap that asks for what is not there.
const UNDER_A_CONFIG_MAP: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}
data: {ssl-protocols: TLSv1 TLSv1.2, SNIPPET}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: open, namespace: demo}
spec:
  ingressClassName: nginx
  rules: [{host: a.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: secure, namespace: demo}
spec:
  ingressClassName: nginx
  tls: [{hosts: [b.test], secretName: b}]
  rules: [{host: b.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]
"#;

/// What `check` prints about these objects.
fn printed(objects: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), objects).expect("a file");
    let path = folder.path().to_str().expect("a path");
    text(&fairway(&[&["check", path], flags].concat()).stdout)
}

#[test]
fn clients_that_the_config_map_lets_in_no_more_are_a_difference_of_hosts_with_tls() {
    let page = printed(&UNDER_A_CONFIG_MAP.replace(", SNIPPET", ""), &["--all"]);
    assert!(page.contains("differs on purpose      demo/secure\n"), "{page}");
    assert!(page.contains("served identically      demo/open\n"), "{page}");
}

#[test]
fn a_key_of_the_config_map_with_several_mistakes_is_named_once() {
    let objects = UNDER_A_CONFIG_MAP.replace("SNIPPET", "ssl-ciphers: 'AES128-SHA:AES256-SHA'");
    for format in ["table", "markdown"] {
        let page = printed(&objects, &["--format", format]);
        let named = "ConfigMap ingress-nginx/ingress-nginx-controller ssl-ciphers, ConfigMap ingress-nginx/ingress-nginx-controller \
             ssl-protocols: as for all Ingresses, see below";
        assert!(page.contains(named), "{page}");
    }
}

#[test]
fn what_the_config_map_asks_of_all_is_said_once() {
    let objects = UNDER_A_CONFIG_MAP.replace("SNIPPET", "server-snippet: 'include other.conf;'");
    for format in ["table", "markdown"] {
        let page = printed(&objects, &["--all", "--format", format]);
        let reasons = page.lines().filter(|line| line.contains("no files to include")).count();
        assert_eq!(reasons, 1, "{page}");
        assert_eq!(page.matches("as for all Ingresses, see below").count(), 2, "{page}");
    }
    let all: Value = serde_json::from_str(&printed(&objects, &["--format", "json"])).expect("JSON");
    assert_eq!(all["ingresses"][0]["standing"], "needs-nginx");
    assert!(
        all["ingresses"][0]["reasons"][0]["message"]
            .as_str()
            .is_some_and(|it| it.contains("include"))
    );
}

/// Objects whose names and values would write lines of their own, if they could.
const FORGING: &str = r#"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: "n\nforged 1\e[2J\u009b\u202e"
  namespace: "evil\nforged 2"
  annotations:
    "nginx.ingress.kubernetes.io/x\nforged 3": "1"
    nginx.ingress.kubernetes.io/auth-url: "![x](https://evil.test/p.png)\nforged 4"
    nginx.ingress.kubernetes.io/upstream-vhost: "a\nforged 5"
spec:
  ingressClassName: nginx
  tls: [{hosts: [evil.test], secretName: "s![x](y)\nforged 6\e[31m"}]
  rules:
  - host: evil.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: "w\nforged 7", port: {number: 80}}}}
      - {path: "/![x](y)\n|forged 8|", pathType: Prefix, backend: {service: {name: w, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: "m![x](y)\nforged 9\e[2J", namespace: other}
spec: {ingressClassName: "ngnix\nforged 10", rules: [{host: evil.test}]}
"#;

#[test]
fn no_text_of_an_object_moves_a_cursor_or_forges_a_line_or_a_cell() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.yaml"), FORGING).expect("a file");
    let path = folder.path().to_str().expect("a path");
    for (command, name) in [
        (vec!["check", path, "--all"], "u{a}forged 1"),
        (vec!["check", path, "--all", "--format", "markdown"], "u{a}forged 1"),
        (vec!["check", path, "--all", "--format", "json"], "u{a}forged 1"),
        (vec!["explain", "http://evil.test/", "--manifests", path], "u{a}forged 9"),
        (vec!["explain", "http://evil.test/", "--manifests", path, "--format", "json"], "forged 9"),
    ] {
        let Output { stdout, stderr, .. } = fairway(&command);
        let page = text(&stdout);
        assert!(!command.contains(&"markdown") || !page.contains("![x]("), "{page}");
        let said = page + &text(&stderr);
        assert!(said.contains(name), "{command:?}: {said:?}");
        let moves = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        let is_forged = |line: &str| line.trim_start_matches(['|', '-', ' ']).starts_with("forged");
        assert!(!said.contains(moves), "{command:?}: {said:?}");
        assert!(!said.lines().any(is_forged), "{command:?}: {said}");
    }
}

/// An API server that answers, and lets nobody list anything.
fn forbidding() -> std::net::SocketAddr {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().expect("a clone")).lines();
                let is_version = lines.next()?.ok()?.contains(" /version");
                lines.map_while(Result::ok).find(String::is_empty)?;
                let (status, body) = if is_version {
                    (
                        "200 OK",
                        r#"{"major":"1","minor":"33","gitVersion":"v1.33.0","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#,
                    )
                } else {
                    (
                        "403 Forbidden",
                        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"may not","reason":"Forbidden","code":403}"#,
                    )
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
                );
                write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()
            });
        }
    });
    address
}

#[test]
fn rights_that_are_missing_end_a_check_at_once_and_name_the_server() {
    let server = format!("http://{}", forbidding());
    let begun = std::time::Instant::now();
    for command in [&["check"][..], &["explain", "http://a.test/"]] {
        let output = fairway(&[command, &["--apiserver-host", &server]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot list") && said.contains("may not"), "{said}");
        assert!(said.contains("allow list of them") && !said.contains("trying again"), "{said}");
        assert!(said.contains(&format!("the API server is {server}")), "{said}");
    }
    // It used to wait a minute for each.
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it waits for rights");
}

/// The commands of docs/explain.md with the lines that are printed there.
fn samples_of_explain() -> Vec<(String, String)> {
    let page = fs::read_to_string(root().join("../docs/explain.md")).expect("the page");
    let block = page.split("```\n").find(|block| block.starts_with("$ fairway")).expect("samples");
    let samples = block.split("$ ").filter(|sample| !sample.is_empty());
    samples
        .map(|sample| {
            let (command, lines) = sample.split_once('\n').expect("a command and lines");
            (command.to_owned(), lines.trim_end().to_owned())
        })
        .collect()
}

#[test]
fn where_there_is_nothing_to_read_it_is_told_what_can_be() {
    for arguments in [&["check"][..], &["convert"], &["explain", "http://a.test/"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command.args(arguments).env("HOME", "/nonexistent").env_remove("KUBECONFIG");
        let output = command.env_remove("KUBERNETES_SERVICE_HOST").output().expect("it runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for remedy in ["`fairway check DIR`", "fairway check -`", "~/.kube/config"] {
            assert!(said.contains(remedy), "{arguments:?}: no {remedy} in {said}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let output = fairway(&["explain", "http://a.test/", "--manifests", path]);
    let said = text(&output.stderr);
    assert!(said.contains("no Ingress and no route was found"), "{said}");
    fs::write(folder.path().join("in.yaml"), ingress("nginx")).expect("a file");
    let output = fairway(&["explain", "http://a.test/", "--manifests", path]);
    assert!(!text(&output.stderr).contains("no route was found"), "{output:?}");
}

/// Request ids are drawn anew each time.
fn without_ids(text: &str) -> String {
    let line = |line: &str| match line.split_once("X-Request-ID: ") {
        Some((before, _)) => format!("{before}X-Request-ID: …"),
        None => line.trim_end().to_owned(),
    };
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_samples_of_the_page_about_explain_are_what_is_printed() {
    let samples = samples_of_explain();
    assert_eq!(samples.len(), 3);
    for (command, lines) in samples {
        let words = command.replace('"', "");
        let words: Vec<&str> = words.split_whitespace().skip(1).collect();
        let printed = text(&fairway(&words).stdout);
        if std::env::var_os("UPDATE").is_some() {
            let path = root().join("../docs/explain.md");
            let page = fs::read_to_string(&path).expect("the page");
            fs::write(path, page.replace(&lines, printed.trim_end())).expect("the page");
            continue;
        }
        let told = "UPDATE=1 cargo test --test suite samples writes docs/explain.md anew";
        assert_eq!(without_ids(&printed), without_ids(&lines), "{told}: {command}");
    }
}

#[test]
fn the_example_of_the_page_about_check_is_what_is_printed() {
    let folder = "tests/exchanges/upstream-vhost";
    let page = fs::read_to_string(root().join("../docs/check.md")).expect("the page");
    let (_, example) = page.split_once(&format!("`fairway check {folder}`")).expect("an example");
    let example = example.split("```\n").nth(1).expect("its lines");
    let path = root().join("..").join(folder);
    let printed = text(&fairway(&["check", path.to_str().expect("a path")]).stdout);
    assert_eq!(printed, example, "docs/check.md shows what it printed once");
}

#[test]
fn files_that_are_no_text_are_named_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    for (bytes, remedy) in [
        (&[0x1f, 0x8b, 8, 0][..], "gunzip"),
        (b"\xff\xfek\0i\0", "iconv -f UTF-16"),
        (b"kind: \xfc", "line 1 is no UTF-8"),
    ] {
        fs::write(folder.path().join("one.yaml"), bytes).expect("a file");
        let output = fairway(&["check", path]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(remedy), "{said}");
    }
}

#[test]
fn who_has_read_enough_ends_nothing_early() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
    let shop = root().join("tools/shop.yaml");
    let status = command.arg("check").arg(shop).stderr(writer).status().expect("the program runs");
    assert_eq!(status.code(), Some(0), "the verdict on the shop, whoever hears how it went");
}

/// The Ingress of [`ingress`] with a ConfigMap of the controller with these data.
fn with_map(data: &str) -> [String; 2] {
    let map = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: ingress-nginx-controller, namespace: ingress-nginx}}, data: \
         {{{data}}}}}"
    );
    [ingress("nginx"), map]
}

#[test]
fn what_hangs_on_databases_that_nobody_downloads_is_no_green() {
    let [site, map] =
        with_map("use-geoip2: 'true', http-snippet: 'map $geoip2_country_code $x { default 0; }'");
    let (code, page, said) = checked(&[&site, &map], &["--fail-on", "differs"]);
    assert!(code == Some(2) && page.contains("differs on purpose"), "{page}{said}");
    assert!(page.contains("http-snippet: as for all Ingresses, see below"), "{page}");
    assert!(page.contains("nothing is downloaded"), "{page}");
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["GeoLite2-City.mmdb", "GeoLite2-ASN.mmdb"] {
        fs::write(folder.path().join(name), "").expect("a file");
    }
    let there =
        ["--fail-on", "differs", "--geoip-directory", folder.path().to_str().expect("a path")];
    let (code, page, said) = checked(&[&site, &map], &there);
    assert_eq!(code, Some(0), "{page}{said}");
}

#[test]
fn an_empty_key_of_the_config_map_asks_for_nothing() {
    let [site, map] = with_map("ssl-redirect: ''");
    let site = site.replace(
        "rules: [{host: a.example}]",
        "tls: [{hosts: [a.example]}], rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: \
         {service: {name: web, port: {number: 80}}}}]}}]",
    );
    let service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default}, spec: {ports: [{port: 80}]}}";
    let story = story_of(&[&*site, &*map, service].join("\n---\n"), &["http://a.example/"]);
    assert!(story.contains("ssl-redirect, by default"), "{story}");
    let (code, page, _) = checked(&[&site, &map, service], &["--fail-on", "differs"]);
    assert!(
        code == Some(2) && page.contains("is empty, which ingress-nginx takes for false"),
        "{page}"
    );
}

#[test]
fn an_ingress_of_a_file_gets_the_default_class() {
    let default = "metadata: {name: nginx, annotations: {ingressclass.kubernetes.io/is-default-class: 'true'}}";
    let site = ingress("nginx").replace("metadata: {name: nginx}", default);
    let site = site.replace("ingressClassName: nginx, ", "");
    let (code, page, said) = checked(&[&site], &["--all"]);
    assert!(code == Some(0) && page.contains("default/site"), "{page}{said}");
    assert!(said.contains("Ingress default/site names no class: nginx counts"), "{said}");
    // What a cluster had already has what its API server gave it.
    let old = site.replace("name: site,", "name: site, uid: '1',");
    let (code, page, said) = checked(&[&old], &[]);
    assert!(
        code == Some(1) && page.contains("it has no class") && !said.contains("nginx counts"),
        "{page}{said}"
    );
}

#[test]
fn flags_of_a_controller_that_runs_are_taken_and_named() {
    let flags = ["--publish-service=a/b", "--election-id", "x", "--v=2"];
    let (code, page, said) = checked(&[&ingress("nginx")], &flags);
    assert_eq!(code, Some(0), "{page}{said}");
    let named = "--publish-service, --election-id, --v: for a controller that runs, and without effect on `check`";
    assert!(said.contains(named), "{said}");
}

#[test]
fn a_log_that_is_not_there_is_told_first_and_what_was_not_read_once() {
    let (code, page, said) = checked(&[&ingress("nginx"), "a: b: c"], &["--log", "/nowhere/log"]);
    assert!(code == Some(1) && said.contains("cannot read /nowhere/log"), "{page}{said}");
    assert!(!said.contains("not read: "), "{said}");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    fs::write(&log, "").expect("a file");
    let log = ["--log", log.to_str().expect("a path")];
    let (_, _, said) = checked(&[&ingress("nginx"), "a: b: c"], &log);
    assert_eq!(said.matches("not read: ").count(), 1, "{said}");
}

#[test]
fn a_host_that_no_api_server_takes_is_not_laid_to_fairway_alone() {
    let site = ingress("nginx").replace("a.example", "'x.io:8080'");
    let (code, page, said) = checked(&[&site], &[]);
    assert_eq!(code, Some(1), "{page}{said}");
    assert!(page.contains("host is \"x.io:8080\", which no API server takes"), "{page}");
    assert!(page.contains("refused by both         default/site"), "{page}");
}
