//! Nothing is open that was not open, nothing is passed over, and names do not meet.

use crate::keys::{Fate, fate};
use crate::{Converted, Target, Weight, convert};
use objects::{ObjectKey, snapshot_of};
use serde_json::Value;
use std::path::Path;
use translate::Options;

const GROUND: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}
data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: demo}
spec: {ports: [{name: web, port: 80, targetPort: 8080}]}
";

/// An Ingress of one host with these annotations and paths.
fn ingress(name: &str, host: &str, keys: &[(&str, &str)], paths: &[&str]) -> String {
    let keys: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("nginx.ingress.kubernetes.io/{key}: {value:?}"))
        .collect();
    let path = |path: &&str| {
        format!(
            "{{path: {path:?}, pathType: ImplementationSpecific, backend: {{service: {{name: shop, port: {{number: 80}}}}}}}}"
        )
    };
    let paths: Vec<String> = paths.iter().map(path).collect();
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}, namespace: demo, annotations: \
         {{{}}}}}\nspec:\n  ingressClassName: nginx\n  rules: [{{host: {host:?}, http: {{paths: [{}]}}}}]\n",
        keys.join(", "),
        paths.join(", ")
    )
}

fn converted(ingresses: &[String]) -> Converted {
    let text = format!("{GROUND}{}", ingresses.concat());
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let options = Options {
        config_map: Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller")),
        ..Options::default()
    };
    let target = Target { class: "fairway".to_owned(), gateway: ObjectKey::new("demo", "fairway") };
    convert(&snapshot, &options, &target)
}

/// The paths that lead to a Service.
fn open(made: &Converted) -> Vec<String> {
    let routes = made.objects.iter().map(|object| &object.value["spec"]["rules"]);
    let rules = routes.filter_map(Value::as_array).flatten();
    let open =
        rules.filter(|rule| rule["backendRefs"].as_array().is_some_and(|all| !all.is_empty()));
    open.map(|rule| rule["matches"][0]["path"]["value"].as_str().unwrap_or("any").to_owned())
        .collect()
}

/// The paths that are answered 500, in order.
fn closed(made: &Converted) -> Vec<String> {
    let routes = made.objects.iter().map(|object| &object.value["spec"]["rules"]);
    let rules = routes.filter_map(Value::as_array).flatten();
    let closed = rules.filter(|rule| rule["backendRefs"].is_null() && rule["filters"].is_null());
    let path = |rule: &Value| rule["matches"][0]["path"]["value"].as_str().map(str::to_owned);
    let all: std::collections::BTreeSet<String> = closed.filter_map(path).collect();
    all.into_iter().collect()
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn has(made: &Converted, key: &str, weight: Weight) -> bool {
    made.losses.iter().any(|loss| loss.key.contains(key) && loss.weight == weight)
}

#[test]
fn what_is_guarded_is_closed_and_said_to_be() {
    let guards: [(&str, &[(&str, &str)]); 9] = [
        ("allowlist-source-range", &[("allowlist-source-range", "10.0.0.0/8")]),
        ("denylist-source-range", &[("denylist-source-range", "10.0.0.0/8")]),
        ("auth-type", &[("auth-type", "basic"), ("auth-secret", "gone")]),
        ("auth-url", &[("auth-url", "http://auth.test/")]),
        ("auth-tls-secret", &[("auth-tls-secret", "demo/gone")]),
        ("configuration-snippet", &[("configuration-snippet", "deny all;")]),
        ("server-snippet", &[("server-snippet", "deny all;")]),
        ("enable-modsecurity", &[("enable-modsecurity", "true")]),
        ("modsecurity-snippet", &[("modsecurity-snippet", "SecRuleEngine On")]),
    ];
    for (key, keys) in guards {
        assert!(matches!(fate(key), Fate::Guard(..)), "{key} guards");
        let made = converted(&[ingress("a", "a.test", keys, &["/", "/b"])]);
        assert_eq!(open(&made), Vec::<String>::new(), "{key}");
        assert!(has(&made, key, Weight::Closed), "{key}: {:?}", made.losses);
        assert!(made.is_lossy());
        // A redirect in front of it changes nothing.
        let redirect = [keys, &[("permanent-redirect", "https://new.test/x")]].concat();
        let made = converted(&[ingress("a", "a.test", &redirect, &["/"])]);
        assert_eq!(open(&made), Vec::<String>::new(), "{key}");
        // Nor is anything told, or copied, before the guard was asked.
        let more = [
            ("app-root", "/secret"),
            ("mirror-target", "http://shop.demo.svc.cluster.local$request_uri"),
        ];
        let made = converted(&[ingress("a", "a.test", &[keys, &more[..]].concat(), &["/"])]);
        let text: String = made.objects.iter().map(|object| object.value.to_string()).collect();
        assert!(!text.contains("/secret") && !text.contains("RequestMirror"), "{key}: {text}");
    }
    let free = [
        ("app-root", "/secret"),
        ("mirror-target", "http://shop.demo.svc.cluster.local$request_uri"),
    ];
    let made = converted(&[ingress("a", "a.test", &free, &["/"])]);
    let text: String = made.objects.iter().map(|object| object.value.to_string()).collect();
    assert!(text.contains("/secret") && text.contains("RequestMirror"), "{text}");
}

/// As cert-manager writes it into the Ingresses of its challenges.
#[test]
fn a_list_that_lets_everybody_in_closes_nothing() {
    let all = "0.0.0.0/0,::/0";
    let deny = ("denylist-source-range", "192.0.2.1");
    for (keys, is_open) in [
        (&[("whitelist-source-range", all)][..], true),
        (&[("allowlist-source-range", "::/0, 0.0.0.0/0")], true),
        (&[("whitelist-source-range", "0.0.0.0/0")], false),
        (&[("whitelist-source-range", "0.0.0.0/0,::/0,oops")], false),
        (&[("whitelist-source-range", "")], false),
        (&[("denylist-source-range", all)], false),
        (&[("whitelist-source-range", all), deny], false),
        (&[("whitelist-source-range", all), ("satisfy", "any")], false),
        (
            &[
                ("whitelist-source-range", all),
                ("auth-url", "http://auth.test/"),
                ("satisfy", "any"),
            ],
            false,
        ),
    ] {
        let made = converted(&[ingress("a", "a.test", keys, &["/.well-known/acme-challenge/x"])]);
        let wanted = if is_open { vec!["/.well-known/acme-challenge/x"] } else { Vec::new() };
        assert_eq!(open(&made), wanted, "{keys:?}: {:?}", made.losses);
        let closes = made.losses.iter().any(|loss| loss.weight == Weight::Closed);
        assert_eq!((closes, made.is_lossy()), (!is_open, !is_open), "{keys:?}: {:?}", made.losses);
    }
}

#[test]
fn no_number_of_problems_hides_that_an_ingress_is_closed() {
    let unknown: Vec<String> = (0..110).map(|number| format!("a-no-such-{number}")).collect();
    let unknown: Vec<(&str, &str)> = unknown.iter().map(|name| (name.as_str(), "x")).collect();
    let service = "{service: {name: shop, port: {number: 80}}}";
    let closed = ingress("closed", "closed.test", &unknown, &["/", "/zz"]);
    let made = converted(&[closed.replacen(service, "{}", 1)]);
    assert!(
        made.is_lossy() && has(&made, "spec.rules[0].http.paths[0]", Weight::Closed),
        "{:?}",
        made.losses
    );
}

#[test]
fn requests_for_a_guarded_path_that_cannot_be_said_reach_no_other_path() {
    let guard = [("allowlist-source-range", "10.0.0.0/8")];
    for path in ["/admin//x", "/a b"] {
        let made = converted(&[
            ingress("open", "a.test", &[], &["/", "/other"]),
            ingress("guarded", "a.test", &guard, &[path]),
            ingress("elsewhere", "b.test", &[], &["/"]),
        ]);
        assert_eq!(open(&made), ["/"], "only the other host: {:?}", made.losses);
        assert!(has(&made, "path /other", Weight::Closed));
    }
    // Without a guard the rest of the host stays open.
    let made = converted(&[ingress("a", "a.test", &[], &["/", "/admin//x"])]);
    assert_eq!(open(&made), ["/"]);
    assert!(has(&made, "path /admin//x", Weight::Lost));
}

#[test]
fn a_guarded_expression_with_a_rewrite_is_asked_before_a_shorter_one() {
    let guard = [("rewrite-target", "/$2"), ("allowlist-source-range", "10.0.0.0/8")];
    let made = converted(&[
        ingress("open", "a.test", &[("use-regex", "true")], &["/ad.*"]),
        ingress("guarded", "a.test", &guard, &["/administration(/|$)(.*)"]),
    ]);
    // Both are expressions, of which routes ask the longer one first, as the host did.
    assert_eq!(open(&made), ["(?i)(?:/ad.*).*"], "{:?}", made.losses);
    assert_eq!(closed(&made), ["(?i)(?:/administration(/|$)(.*)).*"]);
}

#[test]
fn an_exact_root_that_never_has_a_request_goes_before_no_guarded_one() {
    let exact = ingress("a", "shop.test", &[("use-regex", "true")], &["/"])
        .replace("ImplementationSpecific", "Exact");
    let guard = ("auth-url", "http://auth.demo.svc.cluster.local/");
    let guarded = ingress("b", "shop.test", &[guard], &["/"]).replace("Implementation", "Prefix");
    let guarded = guarded.replace("PrefixSpecific", "Prefix");
    let made = converted(&[exact, guarded]);
    assert_eq!(open(&made), [""; 0]);
    assert!(has(&made, "path /", Weight::Note));
}

#[test]
fn an_expression_that_routes_ask_before_a_guarded_one_is_closed() {
    let (regex, guard) = (("use-regex", "true"), ("auth-url", "http://auth.test/"));
    let made = |guarded: (&str, &str), other: (&str, &str)| {
        let made = converted(&[
            ingress(guarded.0, "a.test", &[regex, guard], &[guarded.1]),
            ingress(other.0, "a.test", &[regex], &[other.1]),
        ]);
        let key = format!("path {}", other.1);
        let is_told = made.losses.iter().any(|loss| {
            loss.key == key && loss.weight == Weight::Closed && loss.reason.contains("goes before")
        });
        (open(&made).len(), is_told)
    };
    // The longer one stays the longer one, whatever stands in it.
    let written = |path: &str| crate::paths::Path::beginning(path).value()["value"].to_string();
    assert!(written("/api/admin/.*").len() > written("/api/.*|/pub").len());
    assert_eq!(made(("a", "/api/admin/.*"), ("b", "/api/.*|/pub")), (1, false));
    // As long: the greater text was first, and routes ask the older one, or that with the lesser name.
    assert_eq!(made(("b", "/s/z.*c"), ("a", "/s/.*zc")), (0, true));
    assert_eq!(made(("b", "/s/z.*c"), ("a", "/S/.*zc")), (0, true));
    // What was first stays so, and what has paths of its own is nobody else's.
    assert_eq!(made(("b", "/s/.*zc"), ("a", "/s/z.*c")), (1, false));
    assert_eq!(made(("b", "/t/z.*c"), ("a", "/s/.*zc")), (1, false));
}

#[test]
fn what_a_host_does_not_have_is_not_taken_from_a_wider_one() {
    let made = converted(&[
        ingress("wide", "*.test", &[], &["/"]),
        ingress("narrow", "a.test", &[], &["/only"]),
    ]);
    let narrow = made.objects.iter().find(|one| one.value["metadata"]["name"] == "narrow");
    let rules = &narrow.expect("a route").value["spec"]["rules"];
    let root = rules
        .as_array()
        .into_iter()
        .flatten()
        .find(|rule| rule["matches"][0]["path"]["value"] == "/");
    assert!(root.is_some_and(|rule| rule.get("backendRefs").is_none()), "{rules}");
}

#[test]
fn the_name_of_a_folder_leads_to_the_folder_unless_somebody_has_it() {
    let slashes = |made: &Converted| -> Vec<String> {
        let rules = made.objects.iter().map(|object| &object.value["spec"]["rules"]);
        let rules = rules.filter_map(Value::as_array).flatten();
        let found = rules.filter_map(|rule| {
            let to = rule["filters"][0]["requestRedirect"]["path"]["replaceFullPath"].as_str()?;
            let found = &rule["matches"][0]["path"];
            assert_eq!(found["type"], "Exact");
            Some(format!("{} {to}", found["value"].as_str()?))
        });
        found.collect()
    };
    let made = converted(&[ingress("shop", "a.test", &[], &["/", "/app/", "/b/", "/b"])]);
    assert_eq!(slashes(&made), ["/app /app/"]);
    // Where nothing gets through, nobody is told what there is.
    let guard = [("allowlist-source-range", "10.0.0.0/8")];
    assert!(slashes(&converted(&[ingress("shop", "a.test", &guard, &["/app/"])])).is_empty());
    // An exact path has such a name, too, which no match of a route has; of two that have the same one is enough.
    let exact = |keys: &[(&str, &str)], path: &str| {
        ingress("exact", "a.test", keys, &[path]).replace("ImplementationSpecific", "Exact")
    };
    let root = ingress("root", "a.test", &[], &["/"]);
    let made = converted(&[exact(&[], "/app/"), root.clone()]);
    assert_eq!(slashes(&made), ["/app /app/"]);
    assert!(!made.is_lossy(), "{:?}", made.losses);
    let both = [exact(&[], "/app/"), ingress("shop", "a.test", &[], &["/app/", "/b"])];
    assert_eq!(slashes(&converted(&both)), ["/app /app/"]);
    for other in ["/app", "/"] {
        assert!(slashes(&converted(&[exact(&[], "/app/"), exact(&[], other)])).len() < 2);
    }
    let taken = [exact(&[], "/app/"), ingress("shop", "a.test", &[], &["/app"])];
    assert!(slashes(&converted(&taken)).is_empty());
    // Of one with a guard nothing is told, and the name goes to no other path.
    let made = converted(&[exact(&guard, "/app/"), root]);
    assert!(slashes(&made).is_empty());
    assert_eq!((open(&made), closed(&made)), (vec!["/".to_owned()], texts(&["/app", "/app/"])));
}

#[test]
fn of_two_paths_that_are_one_place_the_first_has_it_as_before() {
    let guard = [("denylist-source-range", "0.0.0.0/0")];
    let aged = |text: String, day: usize| {
        text.replacen(
            "namespace: demo",
            &format!("namespace: demo, creationTimestamp: '2024-01-0{day}T00:00:00Z'"),
            1,
        )
    };
    // Whatever the younger one is called, the guard of the older one is asked, and says no.
    let older = aged(ingress("older", "a.test", &guard, &["/p"]), 1);
    let younger = aged(ingress("a-younger", "a.test", &[], &["/p/", "/q"]), 2);
    let made = converted(&[older, younger]);
    assert_eq!((open(&made), closed(&made)), (texts(&["/q"]), texts(&["/", "/p"])));
    assert!(has(&made, "path /p/", Weight::Note), "{:?}", made.losses);
    // The other way about the younger one has its path itself, and nothing below.
    let older = aged(ingress("older", "a.test", &guard, &["/p/"]), 1);
    let younger = aged(ingress("a-younger", "a.test", &[], &["/p"]), 2);
    let made = converted(&[older, younger]);
    assert_eq!((open(&made), closed(&made)), (texts(&["/p"]), texts(&["/", "/p/"])));
    let text: String = made.objects.iter().map(|object| object.value.to_string()).collect();
    assert!(text.contains(r#"{"type":"Exact","value":"/p"}"#), "{text}");
    // Unless an exact path has that, too.
    let older = aged(ingress("older", "a.test", &[], &["/p/"]), 1);
    let younger = aged(ingress("a-younger", "a.test", &[], &["/p"]), 2);
    let exact =
        ingress("exact", "a.test", &guard, &["/p"]).replace("ImplementationSpecific", "Exact");
    let made = converted(&[older, younger, aged(exact, 3)]);
    assert_eq!((open(&made), closed(&made)), (texts(&["/p/"]), texts(&["/p"])));
    // What an exact path has is its own.
    let older = aged(ingress("older", "a.test", &[], &["/p"]), 1);
    let exact =
        ingress("exact", "a.test", &[], &["/p/"]).replace("ImplementationSpecific", "Exact");
    assert_eq!(open(&converted(&[older, aged(exact, 2)])).len(), 2);
}

#[test]
fn objects_of_different_ingresses_never_have_one_name() {
    let two = "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: demo}\nspec:\n  \
               ingressClassName: nginx\n  rules:\n  - {host: x.test, http: {paths: [{path: /, pathType: Prefix, backend: \
               {service: {name: shop, port: {name: web}}}}]}}\n  - {host: y.test, http: {paths: [{path: /, pathType: Prefix, \
               backend: {service: {name: shop, port: {number: 8080}}}}]}}\n";
    let made = converted(&[two.to_owned(), ingress("a-x.test", "z.test", &[], &["/"])]);
    let names = made.objects.iter().map(|object| object.file_name().expect("a name"));
    let all: std::collections::BTreeSet<String> = names.collect();
    assert_eq!(all.len(), made.objects.len(), "{all:?}");
    // Ports by name and by number of their target are those of the Service.
    let ports =
        made.objects.iter().map(|one| &one.value["spec"]["rules"][0]["backendRefs"][0]["port"]);
    assert!(ports.filter(|port| !port.is_null()).all(|port| *port == 80), "{:?}", made.objects);
}

#[test]
fn what_the_status_of_a_route_would_say_is_said_before() {
    let text = ingress("a", "a.test", &[], &["/"]).replace("name: shop", "name: nowhere");
    let made = converted(&[text]);
    let told = made.losses.iter().find(|loss| loss.reason.contains("BackendNotFound"));
    assert_eq!(
        told.and_then(|loss| loss.ingress.clone()),
        Some(ObjectKey::new("demo", "a")),
        "{:?}",
        made.losses
    );
}

#[test]
fn a_rewrite_with_groups_closes_no_root_that_nobody_has_written() {
    let keys = [("rewrite-target", "/$2"), ("force-ssl-redirect", "false")];
    let made = converted(&[ingress("a", "a.test", &keys, &["/api(/|$)(.*)"])]);
    assert_eq!(open(&made), ["/api"]);
    assert!(!made.losses.iter().any(|loss| loss.weight == Weight::Closed), "{:?}", made.losses);
    // Without TLS nothing of it is lost.
    assert!(!made.is_lossy(), "{:?}", made.losses);
    let rules = made.objects.iter().filter_map(|one| one.value["spec"]["rules"].as_array());
    let is_root = |rule: &&Value| rule["matches"][0]["path"]["value"] == "/";
    assert_eq!(rules.flatten().filter(is_root).count(), 0, "it is 404 by itself");
    // A root that somebody has written stays closed, and so does one with a guard.
    let made = converted(&[ingress("a", "a.test", &keys, &["/api(/|$)(.*)", "/"])]);
    let told = made.losses.iter().find(|loss| loss.weight == Weight::Closed).expect("a loss");
    assert_eq!((told.key.as_str(), told.place.as_str()), ("rewrite-target", "a.test/"));
}

#[test]
fn the_closed_root_that_nobody_has_written_is_told_and_gets_no_backend() {
    let keys = [("whitelist-source-range", "10.0.0.0/8")];
    let told = |made: &Converted| {
        let of_root = made.losses.iter().filter(|loss| loss.remedy.contains("the rule for / no"));
        of_root.cloned().collect::<Vec<_>>()
    };
    let made = converted(&[ingress("a", "a.test", &keys, &["/api"])]);
    assert_eq!(closed(&made), ["/", "/api"]);
    let notes = told(&made);
    let [note] = notes.as_slice() else { panic!("{:?}", made.losses) };
    assert_eq!((note.key.as_str(), note.weight), ("spec.rules.host", Weight::Note));
    assert!(note.reason.contains("at a.test"), "{note:?}");
    // The remedy of the guard is that of the paths that are named.
    let shut = made.losses.iter().find(|loss| loss.weight == Weight::Closed).expect("a loss");
    assert_eq!(shut.place, "a.test/api");
    assert!(shut.remedy.contains("the rules of these paths"), "{shut:?}");
    let text: String = made.objects.iter().map(crate::Object::yaml).collect();
    assert!(text.contains("# NOTE: Ingress demo/a: spec.rules.host: / is no path"), "{text}");
    // Whoever wrote the root may open it, and a root that is open, or none at all, has no guard.
    for (keys, paths) in [(&keys[..], &["/", "/api"][..]), (&[], &["/api"]), (&[], &["/"])] {
        let made = converted(&[ingress("a", "a.test", keys, paths)]);
        assert!(told(&made).is_empty(), "{paths:?}: {:?}", made.losses);
    }
}

#[test]
fn a_host_without_a_certificate_is_a_loss_only_where_tls_is_asked_for() {
    let made = converted(&[ingress("a", "a.test", &[], &["/"])]);
    assert!(has(&made, "spec.tls", Weight::NoteOverTls) && !made.is_lossy(), "{:?}", made.losses);
    let made = converted(&[ingress("a", "a.test", &[("force-ssl-redirect", "true")], &["/"])]);
    let told = made.losses.iter().find(|loss| loss.key == "spec.tls").expect("a loss");
    assert_eq!(told.weight, Weight::LostOverTls);
    assert!(told.reason.ends_with("redirect to HTTPS, which nobody serves"), "{}", told.reason);
}

#[test]
fn what_is_closed_or_lost_names_host_and_path() {
    let keys = [("limit-rps", "5"), ("rewrite-target", "/$1$2"), ("auth-url", "http://x.test")];
    let made = converted(&[ingress("a", "a.test", &keys, &["/b(.*)", "/c(.*)"])]);
    let heavy = made.losses.iter().filter(|loss| loss.weight < Weight::Otherwise);
    let heavy: Vec<_> = heavy.filter(|loss| loss.ingress.is_some()).collect();
    assert!(
        heavy.len() > 2 && heavy.iter().all(|loss| loss.place.starts_with("a.test")),
        "{heavy:?}"
    );
    let text: String = made.objects.iter().map(crate::Object::yaml).collect();
    assert!(text.contains(" more);"), "{text}");
    assert!(text.contains("# NOTE: default of the controller: proxy-body-size:"), "{text}");
}

#[test]
fn every_loss_has_a_reason_and_a_remedy() {
    let keys = [
        ("limit-rps", "5"),
        ("affinity", "cookie"),
        ("proxy-body-size", "8m"),
        ("rewrite-target", "/$1$2"),
        ("enable-cors", "true"),
        ("cors-allow-origin", "tauri://x"),
        ("auth-url", "http://a.test"),
    ];
    let made = converted(&[ingress("a", "a.test", &keys, &["/(.*)"])]);
    for key in ["limit-rps", "affinity", "proxy-body-size", "rewrite-target", "auth-url"] {
        assert!(has(&made, key, Weight::Lost) || has(&made, key, Weight::Closed), "{key}");
    }
    assert!(made.losses.iter().all(|loss| !loss.reason.is_empty() && !loss.remedy.is_empty()));
}

/// What ends a line, a scalar or a document somewhere, or is no text to one reader of YAML or another.
const HOSTILE: [&str; 12] = [
    "x\n---\nkind: Secret",
    "x\n...\nkind: Secret",
    "---",
    "- a: b",
    "x: y # z",
    "'\" }] {{",
    "!!binary AA==",
    "*anchor",
    "yes",
    "0x10",
    "190:20:30",
    "x\u{2028}---\u{85}kind: Secret\r--- \u{feff}",
];

#[test]
fn no_text_of_an_ingress_makes_another_document_or_another_value() {
    let texts =
        ["custom-headers", "upstream-vhost", "permanent-redirect", "app-root", "cors-allow-origin"];
    let more = [
        "server-alias",
        "canary-by-header-value",
        "mirror-target",
        "rewrite-target",
        "nobody-knows-it",
    ];
    for hostile in HOSTILE {
        for key in texts.iter().chain(&more) {
            let keys = [("enable-cors", "true"), ("canary-by-header", "x"), (*key, hostile)];
            let made = converted(&[
                ingress("a", "a.test", &keys, &["/", hostile]),
                ingress("b", "b.test", &[], &["/"]),
            ]);
            assert!(made.objects.len() > 2, "{key}: {hostile:?}");
            for object in &made.objects {
                let yaml = object.yaml();
                let read: Value = serde_saphyr::from_str(&yaml).expect("one document");
                assert_eq!(read, object.value, "{key}: {hostile:?}: {yaml}");
                // kubectl looks for documents by lines before anything else is read.
                let lines = yaml.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
                assert_eq!(lines.filter(|line| line.starts_with("---")).count(), 1, "{yaml}");
            }
        }
    }
}

#[test]
fn ten_thousand_paths_become_routes_that_the_api_server_takes() {
    let paths: Vec<String> = (0..10_000).map(|number| format!("/p{number}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let made = converted(&[ingress("a", "a.test", &[], &paths)]);
    let open = open(&made);
    assert_eq!(open.len(), paths.len());
    for object in &made.objects {
        assert!(object.value["spec"]["rules"].as_array().is_none_or(|rules| rules.len() <= 16));
    }
}

#[test]
fn expressions_that_go_before_many_paths_are_told_once_for_each() {
    let expressions: Vec<String> = (0..200).map(|number| format!("/.{number}")).collect();
    let prefixes: Vec<String> =
        (0..200).map(|number| format!("/prefix-{number}(/|$)(.*)")).collect();
    let (first, second): (Vec<&str>, Vec<&str>) = (
        expressions.iter().map(String::as_str).collect(),
        prefixes.iter().map(String::as_str).collect(),
    );
    let made = converted(&[
        ingress("a", "a.test", &[("use-regex", "true")], &first),
        ingress("b", "a.test", &[("rewrite-target", "/$2")], &second),
    ]);
    let told = made.losses.iter().filter(|loss| loss.reason.contains("goes before")).count();
    assert_eq!(told, prefixes.len(), "{:?}", made.losses.first());
}

#[test]
fn a_redirect_is_called_by_the_annotation_that_asks_for_it() {
    for (key, other) in
        [("temporal-redirect", "permanent-redirect"), ("permanent-redirect", "temporal-redirect")]
    {
        let made = converted(&[ingress("a", "a.test", &[(key, "https://new.test/x")], &["/"])]);
        assert!(has(&made, key, Weight::Note), "{:?}", made.losses);
        assert!(!has(&made, other, Weight::Note), "{:?}", made.losses);
    }
}

/// The same for another class, with flags, and more in the ConfigMap.
fn for_class(class: &str, data: &str, options: Options) -> Converted {
    let ground = GROUND.replace("data: {", &format!("data: {{{data}, "));
    let text = format!("{ground}{}", ingress("a", "a.test", &[], &["/"]));
    let ports = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ports, namespace: demo}\ndata: {'9000': demo/shop:80}\n";
    let text = [text.as_str(), ports].concat();
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let config_map = Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller"));
    let target = Target { class: class.to_owned(), gateway: ObjectKey::new("demo", "fairway") };
    convert(&snapshot, &Options { config_map, ..options }, &target)
}

#[test]
fn a_class_of_others_is_not_written_and_what_holds_for_all_is_lost_there() {
    let data = "block-cidrs: 203.0.113.0/24, block-user-agents: bad";
    let kinds = |made: &Converted| {
        made.objects.iter().map(|one| one.value["kind"].to_string()).collect::<Vec<_>>()
    };
    let ours = for_class("fairway", data, Options::default());
    assert_eq!(kinds(&ours)[0], "\"GatewayClass\"");
    assert!(
        has(&ours, "block-cidrs", Weight::Note) && has(&ours, "block-user-agents", Weight::Note)
    );
    assert!(!ours.losses.iter().any(|loss| loss.key == "--gateway-class"));
    let theirs = for_class("istio", data, Options::default());
    assert!(!kinds(&theirs).contains(&"\"GatewayClass\"".to_owned()), "{:?}", kinds(&theirs));
    assert!(
        has(&theirs, "block-cidrs", Weight::Lost) && has(&theirs, "--gateway-class", Weight::Note)
    );
    // What the status of its routes would say is looked at all the same.
    assert!(!theirs.losses.iter().any(|loss| loss.reason.contains("its status will say")));
}

#[test]
fn services_of_ports_are_lost_and_said_to_be() {
    let tcp_services = Some(ObjectKey::new("demo", "ports"));
    let options = Options { tcp_services, ..Options::default() };
    let made = for_class("fairway", "hsts: 'true'", options);
    let told = made.losses.iter().find(|loss| loss.key == "--tcp-services-configmap");
    assert!(
        told.is_some_and(|loss| loss.reason.starts_with("1 TCP services of ConfigMap demo/ports")),
        "{told:?}"
    );
}

#[test]
fn a_port_that_no_service_has_closes_nothing() {
    let made =
        converted(&[ingress("a", "a.test", &[], &["/"]).replace("number: 80", "number: 81")]);
    assert_eq!(open(&made), ["/"]);
    assert!(!made.losses.iter().any(|loss| loss.weight == Weight::Closed), "{:?}", made.losses);
    assert!(has(&made, "spec", Weight::Lost), "{:?}", made.losses);
}

#[test]
fn refused_ingresses_are_ours_and_those_of_others_are_told() {
    let refused = ingress("b", "b.test", &[("proxy-read-timeout", "soon")], &["/"]);
    let other = ingress("c", "c.test", &[], &["/"])
        .replace("ingressClassName: nginx", "ingressClassName: other");
    let made = converted(&[ingress("a", "a.test", &[], &["/"]), refused, other]);
    assert_eq!(made.ingresses, 2);
    let others: Vec<&str> = made.others.iter().map(|other| other.ingress.as_str()).collect();
    assert_eq!(others, ["demo/c"]);
}

/// The backends' rules of a match's value: whether each leads anywhere, route by route in order.
fn rules_of(made: &Converted) -> Vec<(String, String, bool)> {
    let rules = made.objects.iter().map(|object| &object.value["spec"]["rules"]);
    let rules = rules.filter_map(Value::as_array).flatten();
    let told = rules.map(|rule| {
        let path = &rule["matches"][0]["path"];
        let text = |field: &str| path[field].as_str().unwrap_or_default().to_owned();
        (text("type"), text("value"), !rule["backendRefs"].is_null())
    });
    told.collect()
}

#[test]
fn a_guarded_expression_with_a_rewrite_stays_the_expression() {
    let guard = ("whitelist-source-range", "10.0.0.0/8");
    let rewrite = ("rewrite-target", "/$2");
    for (path, other, keys, is_open) in [
        // Letters in the other case, which a prefix would leave to the other path.
        ("/Admin(/|$)(.*)", "/", &[][..], true),
        // Prefixes of one name, of which the one with the lesser name would be asked.
        ("/abc(/|$)(.*)", "/abc/(.*)", &[("rewrite-target", "/$1")], true),
        // A longer prefix, which was the shorter expression.
        ("/a(/|$)(.*)", "/a/b/(.*)", &[("rewrite-target", "/$1")], true),
        // What was asked first stays open, and says that its requests are the closed one's now.
        ("/a(/|$)(.*)", "/a/bcdefgh/(.*)", &[("rewrite-target", "/$1")], true),
    ] {
        let made = converted(&[
            ingress("z", "a.test", &[rewrite, guard], &[path]),
            ingress("a", "a.test", keys, &[other]),
        ]);
        let closed = ("RegularExpression".to_owned(), format!("(?i)(?:{path}).*"), false);
        assert!(rules_of(&made).contains(&closed), "{path}: {:?}", rules_of(&made));
        assert_eq!(!open(&made).is_empty(), is_open, "{path} and {other}");
        let told = made.losses.iter().any(|loss| {
            loss.key == "rewrite-target"
                && loss.reason.contains("PathPrefix")
                && loss.weight == Weight::Note
        });
        assert!(told, "whoever opens it knows how: {:?}", made.losses);
    }
    // Closed for another reason it is no other path either.
    let made = converted(&[ingress(
        "z",
        "a.test",
        &[rewrite, ("backend-protocol", "HTTPS")],
        &["/Admin(/|$)(.*)"],
    )]);
    assert!(
        rules_of(&made).iter().any(|(kind, _, is_open)| kind == "RegularExpression" && !is_open)
    );
    // What nothing guards is a prefix.
    let made = converted(&[ingress("z", "a.test", &[rewrite], &["/Admin(/|$)(.*)"])]);
    assert!(open(&made).contains(&"/Admin".to_owned()));
}

#[test]
fn paths_that_routes_ask_in_another_order_are_said() {
    let told = |first: (&str, &str), second: (&str, &str), keys: &[(&str, &str)]| {
        let made = converted(&[
            ingress(first.0, "a.test", keys, &[first.1]),
            ingress(second.0, "a.test", &[("rewrite-target", "/x/$1")], &[second.1]),
        ]);
        let loss = made.losses.iter().find(|loss| loss.reason.contains("goes before"));
        loss.map(|loss| loss.weight)
    };
    let rewrite = [("rewrite-target", "/$2")];
    // As the lesser name decides, or as it happens to be right.
    assert_eq!(told(("z", "/abc(/|$)(.*)"), ("a", "/abc/(.*)"), &rewrite), Some(Weight::Lost));
    assert_eq!(told(("a", "/abc(/|$)(.*)"), ("z", "/abc/(.*)"), &rewrite), Some(Weight::Note));
    assert_eq!(told(("a", "/a(/|$)(.*)"), ("z", "/a/b/(.*)"), &rewrite), Some(Weight::Lost));
    // The longer prefix was the longer expression, and what is beside it is nobody else's.
    assert_eq!(told(("a", "/a(/|$)(.*)"), ("z", "/a/bcdefgh/(.*)"), &rewrite), None);
    assert_eq!(told(("a", "/a(/|$)(.*)"), ("z", "/ab/(.*)"), &rewrite), None);
    // Expressions that are as long.
    let regex = ("use-regex", "true");
    let alike = |first: &str, second: &str| {
        let made = converted(&[
            ingress(first, "a.test", &[regex], &["/u[1-5]"]),
            ingress(second, "a.test", &[regex], &["/u[0-9]"]),
        ]);
        let loss = made.losses.iter().find(|loss| loss.reason.contains("goes before"));
        loss.map(|loss| loss.weight)
    };
    assert_eq!(alike("a", "z"), Some(Weight::Note));
    assert_eq!(alike("z", "a"), Some(Weight::Lost));
}

#[test]
fn rules_of_a_route_stand_in_the_order_in_which_the_host_asks_them() {
    let paths = ["/[a-c]x", "/b[w-z]", "/long/.*"];
    let made = converted(&[ingress("a", "a.test", &[("use-regex", "true")], &paths)]);
    let values: Vec<String> = rules_of(&made).into_iter().map(|(_, value, _)| value).collect();
    let wanted = ["(?i)(?:/long/.*).*", "(?i)(?:/b[w-z]).*", "(?i)(?:/[a-c]x).*"];
    assert_eq!(values.iter().take(3).collect::<Vec<_>>(), wanted);
    assert!(!made.is_lossy(), "{:?}", made.losses);
}

/// The same with TLS of a Secret that is there.
fn under_tls(ingress: &str, host: &str) -> String {
    let tls = format!("spec:\n  tls: [{{hosts: [{host:?}], secretName: tls}}]");
    ingress.replacen("spec:", &tls, 1)
}

/// A Secret with a certificate under this key.
fn secret(name: &str, key: &str) -> String {
    let names = ["*.test", "*.b.test", "x.test"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).expect("it can be made");
    let (certificate, private) = (made.cert.pem(), made.signing_key.serialize_pem());
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: demo}}\nstringData: {{{key}: {certificate:?}, \
         tls.key: {private:?}}}\n"
    )
}

/// The listeners that the routes of a name are attached to.
fn sections(made: &Converted, name: &str) -> Vec<String> {
    let named = made.objects.iter().filter(|one| one.value["metadata"]["name"] == name);
    let parents = named.filter_map(|one| one.value["spec"]["parentRefs"].as_array()).flatten();
    parents.filter_map(|parent| parent["sectionName"].as_str().map(str::to_owned)).collect()
}

#[test]
fn https_of_a_host_without_a_certificate_is_its_own_routes_under_a_listener_that_covers_it() {
    let guard = ("allowlist-source-range", "10.0.0.0/8");
    let wide = |host: &str| {
        let text = under_tls(&ingress("w", host, &[], &["/"]), host);
        [text, secret("tls", "tls.crt")].concat()
    };
    let made = |host: &str, name: &str, keys: &[(&str, &str)]| {
        converted(&[wide(host), ingress("g", name, keys, &["/"])])
    };
    for keys in [&[guard][..], &[]] {
        let all = made("*.test", "a.b.test", keys);
        assert_eq!(sections(&all, "g"), ["any-https-test"], "{:?}", all.losses);
        assert_eq!(sections(&all, "g-http"), ["http"]);
        let told = all.losses.iter().find(|loss| loss.key == "spec.tls").expect("a note");
        assert!(told.reason.ends_with("its routes answer under that of *.test"), "{}", told.reason);
    }
    // What no listener covers has none: a shorter name, another one, a name that ends alike.
    for name in ["b.example", "test", "atest"] {
        assert_eq!(sections(&made("*.test", name, &[guard]), "g"), ["http"], "{name}");
    }
    // The most special one has the requests.
    let made = converted(&[
        wide("*.test"),
        under_tls(&ingress("v", "*.b.test", &[], &["/"]), "*.b.test"),
        ingress("g", "a.x.b.test", &[guard], &["/"]),
    ]);
    assert_eq!(sections(&made, "g"), ["any-https-b.test"]);
}

#[test]
fn what_a_host_does_not_have_is_not_taken_from_an_alias_of_another_one() {
    let made = converted(&[
        ingress("yes-y", "y.test", &[("server-alias", "*.x.test")], &["/"]),
        ingress("a", "a.x.test", &[], &["/foo"]),
    ]);
    assert!(closed(&made).contains(&"/".to_owned()), "{:?}", rules_of(&made));
}

fn converted_for(class: &str, all: &[String]) -> Converted {
    let text = format!("{GROUND}{}", all.concat());
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let target = Target { class: class.to_owned(), gateway: ObjectKey::new("demo", "fairway") };
    convert(&snapshot, &Options::default(), &target)
}

#[test]
fn another_class_may_ask_no_other_path_before_a_closed_expression() {
    let (regex, guard) = (("use-regex", "true"), ("whitelist-source-range", "10.0.0.0/8"));
    let all = [
        ingress("z", "a.test", &[regex, guard], &["/admin"]),
        ingress("a", "a.test", &[], &["/", "/shop", "/ad.*", "/adm(/|$)(.*)"]),
        ingress("b", "b.test", &[regex], &["/", "/x.*"]),
    ];
    let ours = converted(&all);
    assert!(open(&ours).contains(&"/".to_owned()) && !has(&ours, "use-regex", Weight::Lost));
    let theirs = converted_for("istio", &all);
    let open: Vec<String> = open(&theirs);
    assert_eq!(open, ["(?i)(?:/shop).*", "(?i)(?:/x.*).*", "/"], "{:?}", theirs.losses);
    let told = theirs.losses.iter().find(|loss| loss.key == "use-regex").expect("a loss");
    assert!(told.weight == Weight::Lost && told.reason.contains("the implementation's"));
    assert!(has(&theirs, "path /", Weight::Closed));
    // Where there is no expression, nothing is lost.
    let plain = converted_for("istio", &[ingress("a", "a.test", &[], &["/", "/b"])]);
    assert!(!has(&plain, "use-regex", Weight::Lost));
}

#[test]
fn a_backend_tls_policy_is_for_the_port_that_is_spoken_to_under_tls() {
    const TWO: &str = "---\napiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: demo}\nspec: {ports: [{name: web, \
                       port: 80}, {name: tls, port: 443}]}\n";
    let tls = [
        ("backend-protocol", "HTTPS"),
        ("proxy-ssl-verify", "on"),
        ("proxy-ssl-secret", "demo/ca"),
        ("proxy-ssl-name", "a.test"),
    ];
    let made = |port: &str, services: &str| {
        let under = ingress("g", "y.test", &tls, &["/"]).replace("number: 80", port);
        let clear = ingress("x", "x.test", &[], &["/"]);
        converted(&[services.to_owned(), secret("ca", "ca.crt"), clear, under])
    };
    let targets = |made: &Converted| -> Vec<Value> {
        let policies = made.objects.iter().filter(|one| one.value["kind"] == "BackendTLSPolicy");
        policies.map(|one| one.value["spec"]["targetRefs"][0]["sectionName"].clone()).collect()
    };
    let apart = made("number: 443", TWO);
    assert_eq!((targets(&apart), open(&apart).len()), (vec![Value::from("tls")], 2));
    assert!(!apart.losses.iter().any(|loss| loss.weight == Weight::Closed), "{:?}", apart.losses);
    // Whoever comes second to the same port is closed.
    let same = made("number: 80", "");
    assert_eq!((targets(&same), open(&same).len()), (Vec::new(), 1));
    let told = same.losses.iter().find(|loss| loss.key == "backend-protocol").expect("a loss");
    assert_eq!(told.ingress, Some(ObjectKey::new("demo", "g")));
    assert!(told.weight == Weight::Closed && told.reason.contains("demo/x"), "{}", told.reason);
    // The share of a canary is spoken to alike.
    let canary = ingress("c", "y.test", &[("canary", "true"), ("canary-weight", "10")], &["/"]);
    let under = ingress("g", "y.test", &tls, &["/"]).replace("number: 80", "number: 443");
    let all = [TWO.to_owned(), secret("ca", "ca.crt"), under, canary];
    let both = converted(&all);
    let names: Vec<Value> = ["tls", "web"].map(Value::from).to_vec();
    assert_eq!(targets(&both), names, "{:?}", both.losses);
    let refs = both.objects.iter().filter(|one| one.value["kind"] == "BackendTLSPolicy");
    for policy in refs {
        let map = &policy.value["spec"]["validation"]["caCertificateRefs"][0]["name"];
        assert_eq!(*map, policy.value["metadata"]["name"]);
    }
}

#[test]
fn what_a_grpc_route_has_not_is_said() {
    let grpc = ("backend-protocol", "GRPC");
    let mirror = ("mirror-target", "http://shop.demo.svc:80$request_uri");
    let keys = [
        grpc,
        ("proxy-read-timeout", "3600"),
        ("enable-cors", "true"),
        ("upstream-vhost", "u.test"),
        mirror,
    ];
    let made = converted(&[ingress("x", "x.test", &keys, &["/"])]);
    for key in ["proxy-read-timeout", "enable-cors", "upstream-vhost"] {
        assert!(has(&made, key, Weight::Lost), "{key}: {:?}", made.losses);
        assert!(!has(&made, key, Weight::Otherwise));
    }
    let route = made.objects.iter().find(|one| one.value["kind"] == "GRPCRoute").expect("a route");
    assert_eq!(route.value["spec"]["rules"][0]["filters"][0]["type"], "RequestMirror");
    assert!(has(&made, "mirror-target", Weight::Note) && !has(&made, "GRPCRoute", Weight::Lost));
    // A path that would have to be another one is closed, and to nobody else's.
    let rewrite = ("rewrite-target", "/$2");
    let made = converted(&[
        ingress("x", "x.test", &[grpc, rewrite], &["/s(/|$)(.*)"]),
        ingress("yes-y", "x.test", &[], &["/"]),
    ]);
    assert!(has(&made, "rewrite-target", Weight::Closed), "{:?}", made.losses);
    assert_eq!((open(&made), closed(&made)), (texts(&["/"]), texts(&["(?i)(?:/s(/|$)(.*)).*"])));
}

#[test]
fn a_host_of_calls_and_other_requests_is_said_to_be_one() {
    let all = [
        ingress("x", "x.test", &[], &["/"]),
        ingress("g", "x.test", &[("backend-protocol", "GRPC")], &["/my.Svc"]),
    ];
    let told = |made: &Converted| {
        let loss = made.losses.iter().find(|loss| loss.reason.contains("a GRPCRoute: the spec"));
        loss.map(|loss| loss.weight)
    };
    assert_eq!(told(&converted(&all)), Some(Weight::Note));
    assert_eq!(told(&converted_for("istio", &all)), Some(Weight::Lost));
    assert_eq!(told(&converted(&all[1..])), None);
}

#[test]
fn listeners_and_secrets_that_are_not_written_again_are_lost() {
    const FORMER: &str = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: fairway, namespace: \
                          demo}\nspec:\n  gatewayClassName: fairway\n  listeners:\n  - {name: http, protocol: HTTP, port: 80}\n  - \
                          {name: https-gone.test, hostname: gone.test, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: \
                          tls}]}}\n";
    let made = converted(&[FORMER.to_owned(), ingress("a", "a.test", &[], &["/"])]);
    let told = made
        .losses
        .iter()
        .find(|loss| loss.key == "Gateway demo/fairway" && loss.weight == Weight::Lost);
    let told = told.expect("a loss");
    assert!(told.reason.ends_with("need them: https-gone.test"), "{}", told.reason);
    assert!(told.remedy.contains("--gateway-name"));
    let same = FORMER.split("  - {name: https-gone").next().expect("a start").to_owned();
    let made = converted(&[same, ingress("a", "a.test", &[], &["/"])]);
    assert!(!made.is_lossy() && has(&made, "Gateway demo/fairway", Weight::Note));
}

#[test]
fn no_route_has_more_hosts_or_listeners_than_the_api_server_takes() {
    let aliases: Vec<String> = (0..40).map(|number| format!("a{number}.test")).collect();
    let aliases = aliases.join(",");
    let text = under_tls(&ingress("x", "x.test", &[("server-alias", &aliases)], &["/"]), "x.test");
    let made = converted(&[text, secret("tls", "tls.crt")]);
    let (mut hosts, mut routes) = (std::collections::BTreeSet::new(), 0);
    for object in made.objects.iter().filter(|one| one.value["kind"] == "HTTPRoute") {
        let list =
            |field: &str| object.value["spec"][field].as_array().cloned().unwrap_or_default();
        let (own, parents) = (list("hostnames"), list("parentRefs"));
        assert!(own.len() <= 16 && parents.len() <= 32 && !parents.is_empty());
        hosts.extend(own.iter().map(ToString::to_string));
        routes += 1;
    }
    assert!(hosts.len() == 41 && routes >= 3, "{} hosts, {routes} routes", hosts.len());
}

#[test]
fn lists_are_as_the_api_server_takes_them() {
    let filters = |keys: &[(&str, &str)]| {
        let made = converted(&[ingress("x", "x.test", keys, &["/"])]);
        let rules = made.objects.iter().find_map(|one| one.value["spec"]["rules"].as_array());
        (rules.expect("rules")[0]["filters"][0]["cors"].clone(), made)
    };
    let cors = ("enable-cors", "true");
    for (key, value, field, wanted) in [
        ("cors-allow-methods", "GET, GET, PUT", "allowMethods", 2),
        ("cors-allow-headers", "X-A, X-A, X-B", "allowHeaders", 2),
        ("cors-allow-origin", "https://a.test, https://a.test", "allowOrigins", 1),
    ] {
        let (filter, _) = filters(&[cors, (key, value)]);
        assert_eq!(filter[field].as_array().map(Vec::len), Some(wanted), "{key}: {filter}");
    }
    let many: Vec<String> = (0..70).map(|number| format!("https://o{number}.test")).collect();
    let (filter, made) = filters(&[cors, ("cors-allow-origin", &many.join(","))]);
    assert!(filter.is_null() && has(&made, "enable-cors", Weight::Lost));
    for (key, value) in [
        ("upstream-vhost", "-foo"),
        ("permanent-redirect", "https://new-.test/a"),
        ("permanent-redirect", "https://n.test:0/a"),
    ] {
        let (_, made) = filters(&[(key, value)]);
        let is_told = made.losses.iter().any(|loss| loss.key == key && loss.weight <= Weight::Lost);
        let written: String = made.objects.iter().map(|one| one.value.to_string()).collect();
        assert!(is_told && !written.contains("hostname\""), "{key}: {value}: {written}");
    }
    let (_, made) = filters(&[("backend-protocol", "GRPC")]);
    assert!(!made.is_lossy(), "{:?}", made.losses);
    let odd = ingress("x", "x.test", &[("backend-protocol", "GRPC")], &["/a.b-c.D"]);
    assert!(has(&converted(&[odd]), "backend-protocol", Weight::Lost));
}

#[test]
fn a_field_is_set_once_and_there_is_room_for_that_of_https() {
    let template =
        |text: &str| model::Template::from_parts(vec![model::Part::Text(text.to_owned())]);
    let field =
        |name: &str| model::SetHeader { name: name.to_owned(), value: template("v").into() };
    let fields: Vec<_> = (0..20).map(|number| field(&format!("X-{number}"))).collect();
    let (filter, unsaid) = crate::filters::answer(&fields, 15);
    let mut filter = filter.expect("a filter");
    crate::filters::also_set(&mut filter, "Strict-Transport-Security", "max-age=1");
    let set = |filter: &Value| filter["responseHeaderModifier"]["set"].as_array().map(Vec::len);
    assert_eq!((set(&filter), unsaid.len()), (Some(16), 5));
    let (filter, _) = crate::filters::answer(
        &[field("x-a"), field("X-A"), field("strict-transport-security")],
        15,
    );
    let mut filter = filter.expect("a filter");
    crate::filters::also_set(&mut filter, "Strict-Transport-Security", "max-age=1");
    assert_eq!(set(&filter), Some(2), "{filter}");
}
