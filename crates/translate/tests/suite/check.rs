//! What `fairway check` finds.

use objects::{ObjectKey, Snapshot, snapshot_of};
use std::path::Path;
use translate::{Check, Finding, Options, Remark, Standing, check};

const REST: &str = r"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: demo}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: forgotten, namespace: demo}
type: kubernetes.io/tls
";

/// Snippets count.
pub(crate) const ALLOWED: &str =
    "allow-snippet-annotations: 'true', annotations-risk-level: Critical";

/// In the year 2026.
pub(crate) const NOW: i64 = 1_790_000_000;

pub(crate) fn ingress(name: &str, annotations: &str, host: &str, path: &str) -> String {
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  namespace: demo\n  \
         annotations: {{{annotations}}}\nspec:\n  ingressClassName: nginx\n  rules:\n  - host: {host}\n    http:\n      \
         paths:\n      - {{path: \"{path}\", pathType: Prefix, backend: {{service: {{name: shop, port: {{number: 80}}}}}}}}\n"
    )
}

pub(crate) fn checked(ingresses: &[String]) -> Check {
    checked_by(&Options::default(), ingresses)
}

pub(crate) fn checked_by(options: &Options, ingresses: &[String]) -> Check {
    let text = format!("{REST}{}", ingresses.concat());
    let snapshot: Snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    // Such an Ingress counts, and so it may be looked at.
    let is_path = |message: &str| {
        message.contains("].path is \"") && message.contains("no API server takes: ")
    };
    let wrong = snapshot.malformed.values().filter(|it| !is_path(&it.message));
    assert_eq!(wrong.count(), 0, "{:?}", snapshot.malformed);
    let config_map = Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller"));
    check(&snapshot, &Options { config_map, ..options.clone() }, NOW)
}

/// The same with a ConfigMap.
pub(crate) fn checked_with(data: &str, ingresses: &[String]) -> Check {
    checked(&[ingresses, &[config_map(data)]].concat())
}

pub(crate) fn config_map(data: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: ingress-nginx-controller, namespace: \
         ingress-nginx}}\ndata: {{{data}}}\n"
    )
}

pub(crate) fn of<'a>(check: &'a Check, name: &str) -> &'a Finding {
    let wanted = format!("demo/{name}");
    check
        .ingresses
        .iter()
        .find(|finding| finding.ingress == wanted)
        .expect("a finding of each Ingress")
}

#[test]
fn a_setting_of_the_oldest_ingress_of_a_service_reached_the_others() {
    let key = |name: &str, value: &str| format!("nginx.ingress.kubernetes.io/{name}: \"{value}\"");
    // None is older: the one with the greatest name counts first.
    let two = |of_first: &str, of_second: &str| {
        let found = checked(&[
            ingress("z-first", of_first, "a.test", "/"),
            ingress("a-second", of_second, "b.test", "/"),
        ]);
        ["z-first", "a-second"].map(|name| {
            let found = of(&found, name);
            assert_eq!(found.standing == Standing::Identical, found.reasons.is_empty());
            found.reasons.iter().map(|reason| reason.message.clone()).collect::<String>()
        })
    };
    for (name, value) in
        [("load-balance", "ewma"), ("upstream-hash-by", "$uri"), ("service-upstream", "true")]
    {
        let set = key(name, value);
        assert_eq!(two(&set, &set), ["", ""], "{name}");
        let [first, second] = two(&set, "");
        assert!(first.is_empty() && second.contains("let it reach this Ingress"), "{second}");
        let [first, second] = two("", &set);
        assert!(first.is_empty() && second.contains("took what the oldest"), "{second}");
    }
    assert_eq!(two(&key("load-balance", "round_robin"), ""), ["", ""], "it is so by itself");
    // Nobody sends the cookie of one host to another.
    assert_eq!(two(&key("affinity", "cookie"), ""), ["", ""]);
    let found = checked(&[
        ingress("sticky", &key("affinity", "cookie"), "a.test", "/"),
        ingress("plain", "", "a.test", "/b"),
    ]);
    assert!(of(&found, "plain").reasons[0].message.contains("demo/sticky"));
    assert_eq!(of(&found, "sticky").standing, Standing::Identical);
}

#[test]
fn what_is_asked_for_or_sent_otherwise_is_a_difference() {
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fields, namespace: demo}\ndata: {Host: x.y, X-A: b}\n\
        ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: harmless, namespace: demo}\ndata: {X-A: b}\n";
    let standing = |annotations: &[(&str, &str)], path: &str| {
        let annotations = annotations
            .iter()
            .map(|(name, value)| format!("nginx.ingress.kubernetes.io/{name}: \"{value}\""));
        let annotations = annotations.collect::<Vec<_>>().join(", ");
        let found = checked(&[ingress("one", &annotations, "a.test", path), map.to_owned()]);
        let found = of(&found, "one");
        let reasons = found.reasons.iter().map(|reason| reason.message.as_str());
        (found.standing, reasons.collect::<Vec<_>>().join("; "))
    };
    let guard = "http://shop.demo.svc.cluster.local";
    for (annotations, path, words) in [
        (&[("auth-url", guard)][..], "/", "lets people in now"),
        (&[("mirror-target", "https://copy.example")], "/", "copies have the path"),
        (&[("rewrite-target", "new")], "/x", "gets a slash in front"),
        (&[("rewrite-target", "$2")], "/x(/|$)(.*)", "gets a slash in front"),
        (
            &[("auth-url", "http://shop.demo.svc/x"), ("auth-proxy-set-headers", "demo/fields")],
            "/",
            "replaces Host of",
        ),
    ] {
        let (standing, reasons) = standing(annotations, path);
        assert_eq!(standing, Standing::Differs, "{annotations:?}: {reasons}");
        assert!(reasons.contains(words), "{annotations:?}: {reasons}");
    }
    for (annotations, path) in [
        (&[("auth-url", "http://shop.demo.svc.cluster.local/")][..], "/"),
        (&[("mirror-target", "https://copy.example$request_uri")], "/"),
        (&[("rewrite-target", "/new")], "/x"),
        (&[("rewrite-target", "$1")], "/x(/.*)"),
        (&[("rewrite-target", "https://b.example/")], "/x"),
        (
            &[("auth-url", "http://shop.demo.svc/x"), ("auth-proxy-set-headers", "demo/harmless")],
            "/",
        ),
    ] {
        let (standing, reasons) = standing(annotations, path);
        assert_eq!(standing, Standing::Identical, "{annotations:?}: {reasons}");
    }
}

#[test]
fn a_guard_of_all_without_a_path_is_told_of_those_that_it_guards() {
    let off = "nginx.ingress.kubernetes.io/enable-global-auth: \"false\"";
    let found = checked_with(
        "global-auth-url: 'http://shop.demo.svc.cluster.local'",
        &[ingress("guarded", "", "a.test", "/"), ingress("open", off, "b.test", "/")],
    );
    let told = |name: &str| {
        of(&found, name).reasons.iter().any(|it| it.message.contains("lets people in now"))
    };
    assert!(told("guarded") && !told("open"), "{:?}", found.ingresses);
}

#[test]
fn a_number_that_is_no_status_of_errors_kept_an_ingress_out() {
    for list in ["404,200", "404,350", "404,600"] {
        let annotation = format!("nginx.ingress.kubernetes.io/custom-http-errors: \"{list}\"");
        let found = checked(&[ingress("one", &annotation, "a.test", "/")]);
        let found = of(&found, "one");
        assert_eq!(found.standing, Standing::Differs, "{list}");
        let reasons: Vec<&str> = found.reasons.iter().map(|it| it.message.as_str()).collect();
        assert!(
            reasons.concat().contains("did not take the Ingress at all"),
            "{list}: {reasons:?}"
        );
    }
}

#[test]
fn pages_of_all_without_whoever_makes_them_may_lack_a_flag_of_the_check() {
    let found = checked_with("custom-http-errors: '404,503'", &[ingress("one", "", "a.test", "/")]);
    assert!(format!("{found:?}").contains("name one; if ingress-nginx has that flag"), "{found:?}");
}

#[test]
fn what_nobody_can_observe_is_no_difference() {
    let key = |name: &str, value: &str| format!("nginx.ingress.kubernetes.io/{name}: \"{value}\"");
    let cors = [key("enable-cors", "true"), key("cors-allow-origin", "https://a.test")].join(", ");
    let rewrite = [key("rewrite-target", "/$1"), key("use-regex", "true")].join(", ");
    let found = checked(&[
        ingress("cors", &cors, "cors.test", "/"),
        ingress("rewrite", &rewrite, "rewrite.test", "/app/?(.*)"),
    ]);
    for name in ["cors", "rewrite"] {
        let found = of(&found, name);
        let groups = found.notes.iter().any(|note| note.message.contains("group of path"));
        assert!(found.standing == Standing::Identical && !groups, "{found:?}");
    }
}

#[test]
fn a_word_that_is_no_protocol_is_ignored_by_both_in_whatever_letters() {
    let of_word = |word: &str| {
        let annotation = format!("nginx.ingress.kubernetes.io/backend-protocol: {word}");
        of(&checked(&[ingress("it", &annotation, "a.test", "/")]), "it").clone()
    };
    for word in ["gprc", "ajp", "AJP"] {
        let found = of_word(word);
        assert_eq!((found.standing, found.reasons.as_slice()), (Standing::Identical, &[][..]));
        assert!(found.notes.iter().any(|note| note.message.contains("is no protocol")), "{word}");
    }
    assert_eq!(of_word("GRPC").standing, Standing::Identical);
    let found = of_word("grpc");
    let lost = found.reasons.iter().any(|it| it.message.contains("ingress-nginx lost headers"));
    assert!(lost && found.standing == Standing::Differs, "{found:?}");
}

#[test]
fn who_would_be_locked_out_or_wait_otherwise_is_told() {
    let key = |name: &str, value: &str| format!("nginx.ingress.kubernetes.io/{name}: \"{value}\"");
    let basic = [key("auth-type", "basic"), key("auth-secret", "passwords")].join(", ");
    let fcgi = [key("backend-protocol", "FCGI"), key("proxy-read-timeout", "2")].join(", ");
    let hash = format!("alice:$2y$18${}", "a".repeat(53));
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: passwords, namespace: demo}}\n\
         stringData: {{auth: {hash:?}}}\n"
    );
    let found = checked(&[
        ingress("basic", &basic, "basic.test", "/"),
        ingress("fcgi", &fcgi, "fcgi.test", "/"),
        secret,
    ]);
    for (name, words) in [("basic", "ingress-nginx took it"), ("fcgi", "60 seconds")] {
        let found = of(&found, name);
        assert_eq!(found.standing, Standing::Differs, "{found:?}");
        assert!(found.reasons.iter().any(|reason| reason.message.contains(words)), "{found:?}");
    }
    let said = |data: &str| {
        let found = checked_with(data, &[ingress("plain", "", "a.test", "/")]);
        let told = |remark: &Remark| remark.message.contains("again and again");
        found.objects.iter().any(told)
    };
    assert!(said("use-forwarded-headers: 'true', proxy-real-ip-cidr: 10.0.0.0/8"));
    assert!(!said("use-forwarded-headers: 'true'") && !said("proxy-real-ip-cidr: 10.0.0.0/8"));
}

#[test]
fn a_canary_reaches_the_ingress_that_it_stands_beside_and_others_are_told() {
    let found = checked(&[
        ingress("main", "", "a.test", "/"),
        ingress("canary", "nginx.ingress.kubernetes.io/canary: 'true'", "a.test", "/"),
        ingress("other", "", "b.test", "/"),
    ]);
    assert!(of(&found, "main").reasons.is_empty());
    assert!(of(&found, "other").reasons[0].message.contains("demo/canary"));
}

#[test]
fn a_canary_of_another_ingress_is_the_last_reason() {
    let errors = "nginx.ingress.kubernetes.io/custom-http-errors: '200'";
    let found = checked(&[
        ingress("main", "", "a.test", "/"),
        ingress("canary", "nginx.ingress.kubernetes.io/canary: 'true'", "a.test", "/"),
        ingress("other", errors, "b.test", "/"),
    ]);
    let reasons = &of(&found, "other").reasons;
    let keys = reasons.iter().filter_map(|reason| reason.key.as_deref()?.rsplit('/').next());
    let keys: Vec<&str> = keys.collect();
    assert!(keys.len() > 1 && keys.last() == Some(&"canary") && keys[0] != "canary", "{keys:?}");
}

#[test]
fn suites_that_are_gone_are_a_difference_of_an_ingress_with_tls_as_in_the_config_map() {
    let tls = "  tls: [{hosts: [a.test]}]\n";
    for (text, with_tls) in [
        ("ECDHE-RSA-AES128-SHA256:AES128-SHA", Standing::Differs),
        ("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA", Standing::Differs),
        ("ECDHE-RSA-AES128-GCM-SHA256", Standing::Identical),
        ("HIGH;", Standing::Refused),
    ] {
        let annotation = format!("nginx.ingress.kubernetes.io/ssl-ciphers: \"{text}\"");
        let own = |tls: &str| ingress("web", &annotation, "a.test", "/") + tls;
        let standing = |own| of(&checked(&[own]), "web").standing;
        assert_eq!(standing(own(tls)), with_tls, "{text}");
        assert_eq!(standing(own("")) == Standing::Identical, with_tls != Standing::Refused);
        let data = format!("ssl-ciphers: \"{text}\"");
        let plain = checked_with(&data, &[ingress("web", "", "a.test", "/") + tls]);
        assert!(of(&plain, "web").standing == with_tls || with_tls == Standing::Refused, "{text}");
    }
}

#[test]
fn a_risk_level_that_is_none_is_told_and_counts_as_the_strictest() {
    let with = |level: &str| {
        let auth = "nginx.ingress.kubernetes.io/auth-url: https://auth.example.com/check";
        let data = format!("annotations-risk-level: {level}");
        let found = checked_with(&data, &[ingress("web", auth, "a.test", "/")]);
        let key = Some("ConfigMap ingress-nginx/ingress-nginx-controller annotations-risk-level");
        let told = found.objects.iter().find(|remark| remark.key.as_deref() == key);
        (of(&found, "web").standing, told.map(|remark| remark.message.clone()))
    };
    let (standing, told) = with("Hihg");
    assert_eq!(standing, Standing::Refused);
    let told = told.expect("a Problem");
    assert!(told.contains("\"Hihg\"") && told.contains("Low, Medium, High or Critical"), "{told}");
    for level in ["High", "critical", "HIGH"] {
        assert_eq!(with(level), (Standing::Identical, None), "{level}");
    }
    // StringRiskToRisk (parser/main.go) knows neither nothing nor space around a level.
    for level in ["'  HIGH '", "''"] {
        let (standing, told) = with(level);
        assert_eq!(standing, Standing::Refused, "{level}");
        assert!(told.is_some_and(|told| told.contains("the strictest")), "{level}");
    }
    assert_eq!(with("low"), (Standing::Refused, None));
}

#[test]
fn what_neither_engine_can_do_is_said_of_who_needs_nginx() {
    let raw = "nginx.ingress.kubernetes.io/server-snippet: 'access_by_lua x;'";
    let traced = format!("{raw}, nginx.ingress.kubernetes.io/enable-opentelemetry: 'true'");
    let both = [ingress("raw", raw, "a.test", "/"), ingress("traced", &traced, "b.test", "/")];
    let found = checked_with(ALLOWED, &both);
    let says = |name: &str| {
        let finding = of(&found, name);
        assert_eq!(finding.standing, Standing::NeedsNginx, "{finding:?}");
        finding.reasons.iter().any(|reason| reason.message.contains("--engine=native"))
    };
    assert!(says("traced") && !says("raw"));
}

#[test]
fn refusals_snippets_typos_and_surprises_are_told_apart() {
    let found = checked(&[
        ingress("bad", "nginx.ingress.kubernetes.io/client-body-buffer-size: much", "a.test", "/"),
        ingress("raw", "nginx.ingress.kubernetes.io/enable-modsecurity: 'true'", "b.test", "/"),
        ingress("typo", "nginx.ingress.kubernetes.io/proxy-body-sise: 1m", "c.test", "/"),
        ingress("regex", "nginx.ingress.kubernetes.io/use-regex: 'true'", "d.test", "/x[0-9]"),
        ingress("plain", "", "d.test", "/plain"),
        ingress("slash", "", "e.test", "/slash/"),
    ]);
    assert_eq!(of(&found, "bad").standing, Standing::Refused);
    assert_eq!(of(&found, "raw").standing, Standing::NeedsNginx);
    let typo = of(&found, "typo");
    assert_eq!(typo.standing, Standing::Identical);
    assert!(typo.notes.iter().any(|note| note.message.contains("proxy-body-size")), "{typo:?}");
    let said = |name: &str, words: &str| {
        of(&found, name).notes.iter().any(|note| note.message.contains(words))
    };
    assert!(said("plain", "regular expression") && said("slash", "(301)"));
    let secret = found.objects.iter().find_map(|remark| remark.key.as_deref());
    assert_eq!(secret, Some("Secret demo/forgotten"));
}

#[test]
fn who_asks_for_raw_configuration_or_modsecurity_needs_nginx_and_nobody_else_does() {
    let own = |name: &str, annotation: &str| {
        let annotation = format!("nginx.ingress.kubernetes.io/{annotation}");
        ingress(name, &annotation, &format!("{name}.test"), "/")
    };
    let with = |one: &str, other: &str| format!("{one}, nginx.ingress.kubernetes.io/{other}");
    let ingresses = [
        own("location", "configuration-snippet: 'content_by_lua_file a;'"),
        own("server", "server-snippet: 'include a;'"),
        own("auth", &with("auth-url: 'http://auth.demo.svc/'", "auth-snippet: 'proxy_cache a;'")),
        own("modsecurity", "enable-modsecurity: 'true'"),
        own(
            "rules",
            &with("enable-modsecurity: 'true'", "modsecurity-snippet: 'SecRuleEngine On'"),
        ),
        own("without", "enable-modsecurity: 'false'"),
        own("rewrite", "rewrite-target: /"),
        own("digest", "auth-type: digest"),
        own("understood", "configuration-snippet: 'return 418;'"),
        ingress("plain", "", "plain.test", "/"),
    ];
    let needing = |found: &Check| -> Vec<String> {
        let needs = found.ingresses.iter();
        let needs = needs.filter(|finding| finding.standing == Standing::NeedsNginx);
        needs.map(|finding| finding.ingress.replace("demo/", "")).collect()
    };
    let wanted = ["auth", "location", "modsecurity", "rules", "server"];
    for data in ["", ", stream-snippet: 'server {}', modsecurity-snippet: 'SecRuleEngine On'"] {
        let found = checked_with(&format!("{ALLOWED}{data}"), &ingresses);
        assert_eq!(needing(&found), wanted, "{data}");
    }
    for data in ["enable-modsecurity: 'true'", "http-snippet: 'include a;'"] {
        let found = checked_with(data, &ingresses);
        let plain = of(&found, "plain");
        assert_eq!(plain.standing, Standing::NeedsNginx, "{data}");
        assert_eq!(plain.reasons.len(), 1, "{plain:?}");
    }
    for data in ["http-snippet: 'map $uri $b {}'", "server-snippet: 'return 418;'"] {
        assert_ne!(of(&checked_with(data, &ingresses), "plain").standing, Standing::NeedsNginx);
    }
}

#[test]
fn each_snippet_is_native_or_has_the_line_that_is_not() {
    let own = |name: &str, text: &str| {
        let annotation = format!("nginx.ingress.kubernetes.io/configuration-snippet: {text:?}");
        ingress(name, &annotation, &format!("{name}.test"), "/")
    };
    let found = checked_with(
        ALLOWED,
        &[
            own("native", "deny 10.0.0.0/8;\n"),
            own("lua", "deny all;\n  access_by_lua 'x';"),
            own("wrong", "deny all;\ndeny everybody;"),
        ],
    );
    let has = |remarks: &[Remark], words: &str| {
        remarks.iter().any(|remark| remark.message.contains(words))
    };
    let native = of(&found, "native");
    assert_eq!(native.standing, Standing::Identical);
    assert!(has(&native.notes, "needs no nginx"), "{native:?}");
    for (name, standing, words) in [
        ("lua", Standing::NeedsNginx, "line 2, column 3: needs nginx: access_by_lua"),
        ("wrong", Standing::Refused, "line 2, column 6: \"everybody\""),
    ] {
        let finding = of(&found, name);
        assert_eq!(finding.standing, standing, "{finding:?}");
        assert!(has(&finding.reasons, words) && !has(&finding.notes, "no nginx"), "{finding:?}");
    }
}

#[test]
fn mistakes_of_a_snippet_are_told_line_by_line() {
    let text = "a 1;\n".repeat(11);
    let annotation = format!("nginx.ingress.kubernetes.io/configuration-snippet: {text:?}");
    let found = checked_with(ALLOWED, &[ingress("wrong", &annotation, "wrong.test", "/")]);
    let lines = of(&found, "wrong").reasons.iter().map(|remark| {
        let at = remark.message.strip_prefix("line ").and_then(|at| at.split(',').next());
        at.and_then(|line| line.parse::<u32>().ok()).unwrap_or_else(|| panic!("{remark:?}"))
    });
    let lines: Vec<u32> = lines.collect();
    assert!(lines.len() > 9 && lines.is_sorted(), "{lines:?}");
}

#[test]
fn what_a_flag_or_a_second_key_would_change_is_said_at_once() {
    let key = |rest: &str| format!("nginx.ingress.kubernetes.io/{rest}");
    let passed = [ingress("it", &key("ssl-passthrough: 'true'"), "a.test", "/")];
    let says = |found: &Check, words: &str| {
        let found = of(found, "it");
        found.notes.iter().chain(&found.reasons).any(|it| it.message.contains(words))
    };
    assert!(says(&checked(&passed), "give it to `check`"));
    let options = Options { passthrough: true, ..Options::default() };
    assert!(!says(&checked_by(&options, &passed), "give it to `check`"));
    let snippet = [ingress("it", &key("configuration-snippet: 'deny all;'"), "a.test", "/")];
    let either = "nor is allow-snippet-annotations true";
    assert!(says(&checked_with("", &snippet), either));
    assert!(!says(&checked_with("allow-snippet-annotations: 'true'", &snippet), either));
}

#[test]
fn classic_mistakes_are_noted() {
    let rewrite = |target: &str| format!("nginx.ingress.kubernetes.io/rewrite-target: {target}");
    let canary = |weight: &str| {
        format!(
            "nginx.ingress.kubernetes.io/canary: 'true', nginx.ingress.kubernetes.io/canary-weight: '{weight}'"
        )
    };
    let found = checked(&[
        ingress("group", &rewrite("/$1"), "a.test", "/app"),
        ingress("whole", &rewrite("/$2"), "f.test", "/"),
        ingress("root", &rewrite("/"), "b.test", "/app"),
        ingress("pattern", "", "c.test", "/api/v[0-9]+/.*"),
        ingress("good", &rewrite("/$2"), "d.test", "/app(/|$)(.*)"),
        ingress("high", &rewrite("/$1/$3"), "g.test", "/app(/|$)(.*)"),
        ingress("heavy", &canary("120"), "h.test", "/"),
        ingress("whole-canary", &canary("100"), "i.test", "/"),
        ingress("rules", "", "e.test", "/").split("  rules:").take(1).collect(),
        ingress("younger", "", "d.test", "/other"),
    ]);
    let notes = |name: &str| {
        of(&found, name).notes.iter().map(|note| note.message.clone()).collect::<Vec<_>>().join(" ")
    };
    assert!(notes("group").contains("takes a group of path /app, which has none"), "{found:?}");
    assert!(
        notes("whole").contains("write one such as /(.*) and $1, with pathType: Imp"),
        "{found:?}"
    );
    assert!(notes("high").contains("takes $3 of path /app(/|$)(.*), which has fewer groups"));
    assert!(!notes("good").contains("fewer groups"));
    assert!(notes("heavy").contains("is more than canary-weight-total, 100"), "{found:?}");
    assert!(!notes("whole-canary").contains("canary-weight-total"), "{found:?}");
    assert!(notes("root").contains("what follows /app is lost"), "{found:?}");
    assert!(notes("pattern").contains("none without use-regex"), "{found:?}");
    assert!(notes("rules").contains("it serves nothing"), "{found:?}");
    assert!(!notes("good").contains("group") && !notes("good").contains("lost"), "{found:?}");
    let undated = found.objects.iter().any(|remark| remark.message.contains("d.test"));
    assert!(undated, "{:?}", found.objects);
}

#[test]
fn paths_that_the_webhook_refuses_at_the_next_change_are_noted() {
    let odd = || [ingress("odd", "", "a.test", "/~user"), ingress("fine", "", "b.test", "/user")];
    let noted = |found: &Check, name: &str| {
        let mut notes = of(found, name).notes.iter();
        notes.any(|note| note.message.contains("the webhook refuses the next change of it"))
    };
    let found = checked(&odd());
    assert!(noted(&found, "odd") && !noted(&found, "fine"));
    let bare = checked(&[ingress("bare", "", "c.test", "user")]);
    assert!(!noted(&bare, "bare"), "no pathType lets it begin without a slash: {bare:?}");
    assert_eq!(of(&found, "odd").standing, Standing::Identical);
    let found = checked_with("strict-validate-path-type: 'false'", &odd());
    assert!(!noted(&found, "odd"));
}

#[test]
fn paths_that_no_request_has_are_noted_and_a_redirect_only_where_there_is_one() {
    let odd = ["/a//b", "/a/../b", "/a%20b", "/a?b=c"];
    let odd = odd.iter().enumerate().map(|(number, path)| {
        ingress(&format!("odd-{number}"), "", &format!("odd-{number}.test"), path)
    });
    let rest = [
        ingress("fine", "", "fine.test", "/a.b/c%zz/..d"),
        ingress("slash", "", "both.test", "/foo/"),
        ingress("bare", "", "both.test", "/foo").replace("Prefix", "Exact"),
    ];
    let found = checked(&odd.chain(rest).collect::<Vec<_>>());
    let notes = |name: &str| {
        of(&found, name).notes.iter().map(|note| note.message.clone()).collect::<Vec<_>>().join(" ")
    };
    for (number, wanted) in
        ["two slashes", "dot segment", "escape", "question mark"].iter().enumerate()
    {
        let said = notes(&format!("odd-{number}"));
        assert!(said.contains(wanted) && said.contains("any request has"), "{said}");
    }
    assert!(!notes("fine").contains("any request has"), "{}", notes("fine"));
    assert!(!notes("slash").contains("redirected"), "{}", notes("slash"));
}

#[test]
fn copies_that_go_nowhere_are_a_difference_and_requests_are_served() {
    let target = "nginx.ingress.kubernetes.io/mirror-target: 'nowhere'";
    let found = checked(&[ingress("mirror", target, "m.test", "/")]);
    let found = of(&found, "mirror");
    assert_eq!((found.standing, found.refused_by), (Standing::Differs, None), "{found:?}");
}

#[test]
fn certificates_that_end_are_named_in_time() {
    let mut params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 6, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    let indented = |text: String| text.replace('\n', "\n    ");
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: cert, namespace: demo}}\nstringData:\n  tls.crt: |\n    \
         {}\n  tls.key: |\n    {}\n",
        indented(pem),
        indented(key.serialize_pem())
    );
    let tls = "  tls: [{hosts: [a.test], secretName: cert}]\n";
    let text = format!("{REST}{}{tls}{secret}", ingress("shop", "", "a.test", "/"));
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let said = |now: i64| {
        let objects = check(&snapshot, &Options::default(), now).objects;
        let about = objects.into_iter().filter(|it| it.key.as_deref() == Some("Secret demo/cert"));
        about.map(|remark| remark.message).collect::<Vec<_>>().join(" ")
    };
    const DAY: i64 = 86_400;
    let end = params.not_after.unix_timestamp();
    assert_eq!(said(end - 20 * DAY), "");
    let early = said(params.not_before.unix_timestamp() - DAY);
    assert!(early.starts_with("its certificate does not count yet"), "{early}");
    assert_eq!(said(end - 3 * DAY - 1), "its certificate ends in 3 days; renew it");
    assert!(
        said(end + 2 * DAY).starts_with("its certificate ended 2 days ago"),
        "{}",
        said(end + 2 * DAY)
    );
}

/// What is said of a host whose clients' certificates shall descend from this one, on that day.
fn said_of_authority(params: &rcgen::CertificateParams, now: i64) -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem().replace('\n', "\n    ");
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: ca, namespace: demo}}\nstringData:\n  ca.crt: |\n    {pem}\n"
    );
    let annotation = "nginx.ingress.kubernetes.io/auth-tls-secret: demo/ca";
    let text = format!("{REST}{}{secret}", ingress("shop", annotation, "a.test", "/"));
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let found = check(&snapshot, &Options::default(), now);
    let about = found.objects.iter().filter(|it| it.key.as_deref() == Some("Secret demo/ca"));
    let objects = about.map(|remark| remark.message.clone()).collect::<Vec<_>>().join(" ");
    (objects, format!("{:?}", of(&found, "shop")))
}

#[test]
fn authorities_that_only_a_path_asks_for_are_looked_at_too() {
    let mut params = rcgen::CertificateParams::new(vec!["ca.test".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let secret = |name: &str, year: i32| {
        let mut params = params.clone();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem().replace('\n', "\n    ");
        format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: demo}}\nstringData:\n  ca.crt: |\n    {pem}\n"
        )
    };
    let asks = |name: &str| format!("nginx.ingress.kubernetes.io/auth-tls-secret: demo/{name}");
    let found = checked(&[
        secret("good", 2030),
        secret("ended", 2024),
        ingress("z-first", &asks("good"), "a.test", "/"),
        ingress("a-second", &asks("ended"), "a.test", "/b"),
    ]);
    let ended = found.objects.iter().filter(|remark| remark.message.contains("have all ended"));
    let ended: Vec<_> = ended.filter_map(|remark| remark.key.as_deref()).collect();
    assert_eq!(ended, ["Secret demo/ended"]);
}

#[test]
fn a_mistake_in_a_snippet_of_the_config_map_is_refused_as_one_of_an_ingress_is() {
    let refused = |data: &str| {
        let found = checked_with(data, &[ingress("web", "", "a.test", "/")]);
        let noted = found
            .objects
            .iter()
            .filter(|it| it.key.as_deref().is_some_and(|key| key.contains("snippet")));
        (found.refused.iter().filter_map(|it| it.key.clone()).collect::<Vec<_>>(), noted.count())
    };
    for name in ["http-snippet", "server-snippet", "location-snippet", "stream-snippet"] {
        let wrong = refused(&format!("{name}: ad_header X y;"));
        assert_eq!(
            wrong,
            (vec![format!("ConfigMap ingress-nginx/ingress-nginx-controller {name}")], 0),
            "{name}"
        );
    }
    assert_eq!(refused("http-snippet: 'limit_req_zone $uri zone=a:1m rate=1r/s;'"), (vec![], 0));
    // Whether it is a mistake is known to nginx alone.
    assert_eq!(refused("modsecurity-snippet: x"), (vec![], 1));
    let found = checked_with("whitelist-source-range: x", &[ingress("web", "", "a.test", "/")]);
    assert!(of(&found, "web").reasons.contains(&found.refused[0]), "{found:?}");
}

#[test]
fn authorities_that_let_nobody_in_are_named() {
    let mut params = rcgen::CertificateParams::new(vec!["ca.test".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 6, 1);
    let end = params.not_after.unix_timestamp();
    let (_, of_user) = said_of_authority(&params, end - 1);
    assert!(of_user.contains("Secret demo/ca has no authority in ca.crt"), "{of_user}");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
    let (_, of_idle) = said_of_authority(&params, end - 1);
    assert!(of_idle.contains("has no authority in ca.crt (CA:TRUE"), "{of_idle}");
    params.key_usages.clear();
    let (objects, of_authority) = said_of_authority(&params, end - 1);
    assert_eq!(objects, "");
    assert!(!of_authority.contains("no authority"), "{of_authority}");
    let (objects, _) = said_of_authority(&params, end + 3 * 86_400);
    assert!(objects.contains("all ended, the last one 3 days ago"), "{objects}");
}

/// An Ingress of its namespace for a path of `shop.test`, made in that year, with further fields of its `spec`.
fn of_namespace(namespace: &str, year: u32, annotations: &str, path: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: it, namespace: {namespace}, \
         creationTimestamp: \"{year}-01-01T00:00:00Z\", annotations: {{{annotations}}}}}\nspec: {{ingressClassName: \
         nginx, {spec}rules: [{{host: shop.test, http: {{paths: [{{path: {path}, pathType: Prefix, backend: {{service: \
         {{name: shop, port: {{number: 80}}}}}}}}]}}}}]}}\n"
    )
}

#[test]
fn who_owns_a_host_is_told_of_the_certificate_that_does_not_count_any_longer() {
    let tls = "tls: [{hosts: [shop.test], secretName: cert}], ";
    let owner = of_namespace("demo", 2020, "", "/", "");
    let giver = of_namespace("other", 2021, "", "/b", tls);
    let check = checked(&[owner, giver.clone()]);
    let found = of(&check, "it");
    assert_eq!(found.standing, Standing::Differs);
    let told = |finding: &Finding| {
        finding
            .reasons
            .iter()
            .any(|reason| reason.message.contains("clients get the default certificate"))
    };
    assert!(told(found), "{found:?}");
    // One of its own is what counted before, too.
    let check = checked(&[of_namespace("demo", 2020, "", "/", tls), giver]);
    assert!(!told(of(&check, "it")), "{:?}", of(&check, "it"));
}

#[test]
fn what_is_not_heard_of_another_namespace_is_said_once_and_to_the_end() {
    let owner = of_namespace("other", 2020, "", "/", "");
    let asks = "nginx.ingress.kubernetes.io/auth-tls-secret: demo/forgotten";
    let check = checked(&[owner, of_namespace("demo", 2021, asks, "/b", "")]);
    let found = of(&check, "it");
    let said: Vec<&str> = found.reasons.iter().map(|reason| reason.message.as_str()).collect();
    assert!(said.iter().any(|said| said.contains("of this Ingress there answer 503")), "{said:?}");
    assert!(said.iter().all(|said| !said.contains("403")), "{said:?}");
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_said_to_be_served() {
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: demo}\nspec: {type: \
         ExternalName, externalName: ADDRESS, ports: [{port: 80}]}\n";
    let said = |address: &str| {
        let text = [REST.replace("name: shop", "name: shut"), service.replace("ADDRESS", address)];
        let text = format!("{}{}", text.concat(), ingress("web", "", "web.test", "/"));
        let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let check = check(&snapshot, &Options::default(), NOW);
        let found = of(&check, "web");
        let all = found.reasons.iter().chain(&found.notes).map(|remark| remark.message.clone());
        all.collect::<Vec<_>>().join("\n")
    };
    assert!(said("192.0.2.1").contains("it is served"), "{}", said("192.0.2.1"));
    for local in ["127.0.0.1", "localhost"] {
        let said = said(local);
        assert!(said.contains("--allow-target-networks") && !said.contains("is served"), "{said}");
    }
}

#[test]
fn secrets_that_nobody_gave_are_unknown_and_not_missing() {
    let tls = "tls: [{hosts: [shop.test], secretName: cert}], ";
    let rest = REST.split("---\n").filter(|object| !object.contains("kind: Secret"));
    let rest = rest.collect::<Vec<_>>().join("---\n");
    let unread = |ingress: String| {
        let text = format!("{rest}{ingress}");
        let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        check(&snapshot, &Options::default(), NOW).unread
    };
    let found = unread(of_namespace("demo", 2020, "", "/", tls));
    assert!(found.len() == 1 && found[0].message.contains("demo/cert is named"), "{found:?}");
    assert_eq!(unread(of_namespace("demo", 2020, "", "/", "")), []);
}

/// What is said of the challenges of an Ingress with these annotations, beside Issuers of both kinds with this solver.
fn of_challenges(annotations: &str, solver: &str) -> Option<String> {
    let spec = format!("spec: {{acme: {{solvers: [{{http01: {{ingress: {{{solver}}}}}}}]}}}}");
    let issuers = [("ClusterIssuer", "name: le"), ("Issuer", "name: own, namespace: demo")];
    let issuers = issuers.map(|(kind, metadata)| {
        format!(
            "---\napiVersion: cert-manager.io/v1\nkind: {kind}\nmetadata: {{{metadata}}}\n{spec}\n"
        )
    });
    let tls = "  tls: [{hosts: [shop.test], secretName: cert}]\n";
    let found =
        checked(&[ingress("web", annotations, "shop.test", "/"), tls.to_owned(), issuers.concat()]);
    let mut notes = of(&found, "web").notes.iter();
    notes.find(|note| note.message.contains("challenges")).map(|note| note.message.clone())
}

#[test]
fn an_issuer_whose_challenges_others_serve_is_named() {
    let (of_cluster, own) = ("cert-manager.io/cluster-issuer: le", "cert-manager.io/issuer: own");
    for (issuer, solver, said) in [
        (
            of_cluster,
            "ingressClassName: old",
            "ClusterIssuer le answers challenges for shop.test by Ingresses of class old",
        ),
        (
            own,
            "class: old",
            "Issuer own answers challenges for shop.test by Ingresses with annotation kubernetes.io/ingress.class: old",
        ),
        (own, "", "without a class"),
        (
            "cert-manager.io/issuer: le, cert-manager.io/issuer-kind: ClusterIssuer",
            "class: old",
            "ClusterIssuer le",
        ),
    ] {
        let found = of_challenges(issuer, solver).unwrap_or_default();
        assert!(
            found.contains(said) && found.contains("http01-ingress-ingressclassname: nginx here"),
            "{found}"
        );
    }
    let name = "acme.cert-manager.io/http01-ingress-ingressclassname";
    let overridden = format!("{of_cluster}, {name}: nginx");
    let in_place = format!("{of_cluster}, acme.cert-manager.io/http01-edit-in-place: 'true'");
    for (annotations, solver) in [
        (of_cluster, "ingressClassName: nginx"),
        (own, "class: nginx"),
        (own, "name: web"),
        (&overridden, "ingressClassName: old"),
        (&in_place, "ingressClassName: old"),
        ("cert-manager.io/cluster-issuer: another", "ingressClassName: old"),
        ("", "ingressClassName: old"),
    ] {
        assert_eq!(of_challenges(annotations, solver), None, "{annotations} {solver}");
    }
    let overridden = of_challenges(&format!("{of_cluster}, {name}: other"), "class: nginx");
    assert!(overridden.is_some_and(|said| said.contains("of class other")));
}

#[test]
fn what_names_a_host_and_is_not_served_there_is_told_by_whoever_asks_about_the_host() {
    let gateway = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: alone, namespace: demo}\nspec: \
                   {hostnames: [a.test], rules: []}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\n\
                   metadata: {name: tls, namespace: demo}\nspec: {targetRefs: [{group: '', kind: Service, name: gone}], \
                   validation: {hostname: a, wellKnownCACertificates: System}}\n";
    let text = [
        REST.to_owned(),
        ingress("path", "", "a.test", "shop"),
        ingress("host", "", "'a.test:8080'", "/"),
        ingress("fine", "", "a.test", "/fine"),
        gateway.to_owned(),
    ]
    .concat();
    let snapshot: Snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let options = Options::default();
    let translation = translate::translate(&snapshot, &options);
    let found = translate::left_out_of_host("a.test", &snapshot, &translation);
    let told: Vec<String> = found.iter().map(|(who, why)| format!("{who}: {why}")).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("demo/host") && told[0].contains("is no host name"), "{told:?}");
    assert!(told[1].contains("demo/path") && told[1].contains("a path starts with /"), "{told:?}");
    assert!(
        told[2].contains("HTTPRoute demo/alone: spec.parentRefs: names no Gateway"),
        "{told:?}"
    );
    assert!(translate::left_out_of_host("b.test", &snapshot, &translation).is_empty());
    let notes = check(&snapshot, &options, NOW).gateway.notes;
    let has = |who: &str, why: &str| {
        notes.iter().any(|note| note.key.as_deref() == Some(who) && note.message.contains(why))
    };
    assert!(has("HTTPRoute demo/alone", "names no Gateway"), "{notes:?}");
    assert!(
        has("BackendTLSPolicy demo/tls spec.targetRefs", "Service demo/gone does not"),
        "{notes:?}"
    );
}

#[test]
fn an_object_with_more_problems_than_are_told_says_so() {
    let paths: Vec<String> = (0..120)
        .map(|number| format!("{{path: x{number}, pathType: Prefix, backend: {{service: {{name: shop, port: {{number: 80}}}}}}}}"))
        .collect();
    let one =
        "{path: \"/\", pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}";
    let many = ingress("many", "", "many.test", "/").replace(one, &paths.join("\n      - "));
    let found = checked(&[many, ingress("few", "", "few.test", "/")]);
    let says = |name: &str| {
        of(&found, name).notes.iter().any(|note| note.message.contains("20 more problems of this"))
    };
    assert!(says("many") && !says("few"), "{found:?}");
}

/// Adds an Ingress with many annotations that nobody knows, which change nothing.
fn harmless(name: &str, count: usize) -> String {
    let unknown = |number| format!("nginx.ingress.kubernetes.io/no-such-{number}: x");
    let unknown: Vec<String> = (0..count).map(unknown).collect();
    ingress(name, &unknown.join(", "), &format!("{name}.test"), "/")
}

#[test]
fn a_snippet_with_a_variable_that_is_empty_here_differs() {
    let of_snippet = |name: &str, text: &str| {
        let annotation = format!("nginx.ingress.kubernetes.io/configuration-snippet: '{text}'");
        ingress(name, &annotation, &format!("{name}.test"), "/")
    };
    let all = [
        of_snippet("guard", "if ($tcpinfo_rtt) { return 403; }"),
        of_snippet("header", "more_set_headers \"X: ${SSL_ciphers}\";"),
        of_snippet("trailer", "proxy_set_header X $sent_trailer_grpc_status;"),
        of_snippet("tlv", "proxy_set_header X $proxy_protocol_tlv_ssl;"),
        of_snippet("comment", "# $tcpinfo_rtt\n\n        proxy_set_header X $ssl_protocol;"),
        of_snippet("neither", "proxy_set_header X $http3;"),
    ];
    let found = checked_with(ALLOWED, &all);
    for (name, variable) in [
        ("guard", "$tcpinfo_rtt is always empty here, since the kernel's numbers"),
        ("header", "$ssl_ciphers is"),
        ("trailer", "$sent_trailer_grpc_status is"),
        ("tlv", "$proxy_protocol_tlv_ssl is"),
    ] {
        let finding = of(&found, name);
        assert_eq!(finding.standing, Standing::Differs, "{finding:?}");
        let told = |it: &Remark| it.message.starts_with(variable);
        assert!(finding.reasons.iter().any(told), "{finding:?}");
    }
    for name in ["comment", "neither"] {
        assert_eq!(of(&found, name).standing, Standing::Identical, "{found:?}");
    }
    let of_all =
        format!("{ALLOWED}, http-snippet: 'map $ssl_session_id $known {{ \"\" 0; default 1; }}'");
    let found = checked_with(&of_all, &[ingress("plain", "", "plain.test", "/")]);
    assert_eq!(of(&found, "plain").standing, Standing::Differs, "{found:?}");
    assert!(
        found.objects.iter().any(|it| it.message.starts_with("$ssl_session_id is")),
        "{found:?}"
    );
}

#[test]
fn no_number_of_problems_hides_why_an_ingress_is_refused() {
    let unserved = |text: String| text.replace("{service: {name: shop, port: {number: 80}}}", "{}");
    let annotation = unserved(harmless("annotations", 110));
    // A Service that is not among the objects changes nothing; each path has a problem for it.
    let backend =
        "{path: \"/\", pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}";
    let paths = |of: fn(usize) -> String| (0..120).map(of).collect::<Vec<_>>().join("\n      - ");
    let absent = paths(|number| {
        format!(
            "{{path: /{number}, pathType: Prefix, backend: {{service: {{name: gone{number}, port: {{number: 80}}}}}}}}"
        )
    });
    let absent = format!("{absent}\n      - {{path: /zz, pathType: Prefix, backend: {{}}}}");
    let services = ingress("services", "", "services.test", "/").replace(backend, &absent);
    let found = checked(&[annotation, services]);
    for name in ["annotations", "services"] {
        let finding = of(&found, name);
        assert_eq!(finding.standing, Standing::Refused, "{finding:?}");
        let why = |it: &Remark| it.message.contains("its backend is not a Service");
        assert!(finding.reasons.iter().any(why), "{finding:?}");
    }
}

#[test]
fn problems_of_neighbours_hide_nothing_of_a_namespace() {
    // More than are published of a namespace.
    let options = Options {
        namespace_budget: "problems=30, ingresses=5".parse().expect("a budget"),
        ..Options::default()
    };
    let mut all: Vec<String> = (0..4).map(|number| harmless(&format!("a{number}"), 20)).collect();
    let unserved = ingress("zz-unserved", "", "zz.test", "/")
        .replace("{service: {name: shop, port: {number: 80}}}", "{}");
    all.extend([
        unserved,
        ingress("a-late", "", "late.test", "/"),
        ingress("zz-late", "", "l.test", "/"),
    ]);
    let found = checked_by(&options, &all);
    let refused = |finding: &&Finding| finding.standing == Standing::Refused;
    let refused: Vec<&str> =
        found.ingresses.iter().filter(refused).map(|it| it.ingress.as_str()).collect();
    assert!(refused.contains(&"demo/zz-unserved"), "{found:?}");
    // Two more than it may have: all seven are as old, and the first by name go before.
    assert_eq!(refused.len(), 3, "{found:?}");
}
