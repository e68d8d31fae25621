//! Ingresses that answer 503: `fairway check` says so of each of them, and who else refuses it.

use crate::cases::{CLASS, folders, options, pool, root};
use crate::check::{ALLOWED, NOW, checked, checked_with, ingress, of};
use model::{Backend, Configuration};
use objects::snapshot_of;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use translate::{Check, Options, RefusedBy, Standing, check, translate};

/// What keys of the ConfigMap of these checks are called by.
const CONFIG_MAP: &str = "ConfigMap ingress-nginx/ingress-nginx-controller";

/// The Ingresses with a location that is denied.
fn denied(configuration: &Configuration) -> BTreeSet<String> {
    let all = configuration.servers.values().flat_map(|server| &server.locations);
    let denied = all.filter(|location| matches!(location.backend, Backend::Denied(_)));
    let origins = denied.filter_map(|location| location.origin.as_deref());
    origins.map(|origin| format!("{}/{}", origin.namespace, origin.name)).collect()
}

/// Whatever `explain` calls denied is refused, or asks for the engine that serves it.
#[test]
fn who_is_denied_is_never_called_identical_nor_different() {
    let mut count = 0;
    for case in folders(&root()).iter().flat_map(|family| folders(family)) {
        let text = fs::read_to_string(case.join("in.yaml")).expect("every case has in.yaml");
        let snapshot =
            snapshot_of([(Path::new("class.yaml"), CLASS), (Path::new("in.yaml"), text.as_str())]);
        let native = Options { gateway_addresses: pool(&case), ..options(&text) };
        let nginx = Options { raw: true, ..native.clone() };
        let found = check(&snapshot, &native, NOW);
        let here = denied(&translate(&snapshot, &native).configuration);
        let there = denied(&translate(&snapshot, &nginx).configuration);
        for finding in &found.ingresses {
            let (is_here, is_there) =
                (here.contains(&finding.ingress), there.contains(&finding.ingress));
            let is_true = match finding.standing {
                Standing::Identical | Standing::Differs => !is_here,
                Standing::NeedsNginx => !is_there,
                Standing::Refused => finding.refused_by.is_some() && !finding.reasons.is_empty(),
            };
            assert!(is_true, "{}: {finding:?}", case.display());
            count += usize::from(is_here);
        }
    }
    assert!(count > 50, "only {count} Ingresses are denied");
}

/// A path, a canary beside it, and a path that asks no authenticator.
fn of_all(data: &str) -> Check {
    let canary = "nginx.ingress.kubernetes.io/canary: 'true'";
    let exempt = "nginx.ingress.kubernetes.io/enable-global-auth: 'false'";
    let ingresses = [
        ingress("plain", "", "a.test", "/"),
        ingress("canary", canary, "a.test", "/"),
        ingress("exempt", exempt, "b.test", "/"),
    ];
    checked_with(data, &ingresses)
}

#[test]
fn a_mistake_in_the_config_map_refuses_everybody_whom_it_closes() {
    use RefusedBy::{Fairway, Unknown};
    let headers = vec!["x-a"; 65].join(",");
    let headers = format!("http://auth.demo.svc/', global-auth-response-headers: '{headers}");
    for (name, text, by) in [
        ("whitelist-source-range", "10.0.0.0/8;11.0.0.0/8", Unknown),
        ("denylist-source-range", "10.0.0.0/8;11.0.0.0/8", Unknown),
        ("block-cidrs", "1.2.3", Unknown),
        ("block-user-agents", "~*([", Unknown),
        ("block-referers", "~*([", Unknown),
        ("server-snippet", "deny everybody;", Unknown),
        ("global-auth-url", "ftp://x", Unknown),
        ("global-auth-url", "http://auth.demo.svc/$nope", Unknown),
        ("global-auth-url", "nowhere at all", Fairway),
        ("global-auth-url", "http://127.0.0.1:4180/oauth2/auth", Fairway),
        ("global-auth-url", "http://localhost/", Fairway),
        ("global-auth-url", &headers, Fairway),
    ] {
        let found = of_all(&format!("{name}: '{text}'"));
        let is_open = name == "global-auth-url";
        for who in ["plain", "canary", "exempt"] {
            let finding = of(&found, who);
            if who == "exempt" && is_open {
                // The canary of the same Service reached it.
                assert_eq!(finding.standing, Standing::Differs, "{text}: {finding:?}");
                continue;
            }
            let refused = (finding.standing, finding.refused_by);
            assert_eq!(refused, (Standing::Refused, Some(by)), "{text}: {finding:?}");
            let reason = &finding.reasons[0];
            assert_eq!(reason.key, Some(format!("{CONFIG_MAP} {name}")), "{finding:?}");
            assert!(reason.message.contains("503") && found.refused.contains(reason), "{reason:?}");
        }
    }
    for data in ["whitelist-source-range: 10.0.0.0/8", "global-auth-url: 'http://auth.demo.svc/'"] {
        let found = of_all(data);
        assert!(found.ingresses.iter().all(|it| it.refused_by.is_none()), "{found:?}");
    }
}

#[test]
fn several_mistakes_of_the_config_map_are_all_told_and_go_before_what_needs_nginx() {
    let data = "block-cidrs: oops, whitelist-source-range: oops, enable-modsecurity: 'true'";
    let found = of_all(data);
    let plain = of(&found, "plain");
    assert_eq!(plain.standing, Standing::Refused, "{plain:?}");
    let has = |name: &str| {
        let key = Some(format!("{CONFIG_MAP} {name}"));
        plain.reasons.iter().filter(|reason| reason.key == key).count()
    };
    let names = ["block-cidrs", "whitelist-source-range", "enable-modsecurity"];
    assert_eq!(names.map(has), [1, 1, 1], "{plain:?}");
    let needs = of_all("enable-modsecurity: 'true', http-snippet: 'include a;'");
    assert_eq!(of(&needs, "plain").standing, Standing::NeedsNginx);
}

#[test]
fn a_snippet_that_is_not_allowed_is_refused_whatever_else_it_is() {
    let own = |name: &str, text: &str| {
        let annotation = format!("nginx.ingress.kubernetes.io/{text}");
        ingress(name, &annotation, &format!("{name}.test"), "/")
    };
    let rules = "enable-modsecurity: 'true', nginx.ingress.kubernetes.io/modsecurity-snippet: 'SecRuleEngine On'";
    let ingresses = [
        own("stream", "stream-snippet: 'server { listen 9000; proxy_pass x; }'"),
        own("rules", rules),
        own("location", "configuration-snippet: 'return 418;'"),
    ];
    let refused = |found: &Check, by: RefusedBy| {
        for name in ["stream", "rules", "location"] {
            let finding = of(found, name);
            let refused = (finding.standing, finding.refused_by);
            assert_eq!(refused, (Standing::Refused, Some(by)), "{finding:?}");
        }
    };
    refused(&checked(&ingresses), RefusedBy::Unknown);
    refused(&checked_with("proxy-read-timeout: '5'", &ingresses), RefusedBy::Both);
    let found = checked_with("annotations-risk-level: Critical", &ingresses);
    let rules = of(&found, "rules");
    assert_eq!(rules.standing, Standing::NeedsNginx);
    let ignored = rules.reasons.iter().filter(|reason| reason.message.contains("ignored: "));
    assert_eq!(ignored.count(), 1, "it is said once: {rules:?}");
    assert_eq!(of(&checked_with(ALLOWED, &ingresses), "stream").standing, Standing::Differs);
}

#[test]
fn a_path_that_the_snippet_of_another_ingress_closes_is_refused() {
    let snippet = "nginx.ingress.kubernetes.io/server-snippet: 'location = /b { return 418; }'";
    let found = checked_with(
        ALLOWED,
        &[ingress("z-first", snippet, "a.test", "/a"), ingress("a-second", "", "a.test", "/b")],
    );
    let second = of(&found, "a-second");
    let refused = (second.standing, second.refused_by);
    assert_eq!(refused, (Standing::Refused, Some(RefusedBy::Unknown)), "{second:?}");
    assert!(second.reasons[0].message.contains("server-snippet has a location"), "{second:?}");
}

#[test]
fn a_location_that_nginx_does_not_take_beside_the_paths_is_refused_by_both() {
    const PREFIX: &str = "nginx.ingress.kubernetes.io";
    let beside = format!("{PREFIX}/server-snippet: 'location / {{ return 200 x; }}'");
    let within = format!(
        "{PREFIX}/use-regex: 'true', {PREFIX}/configuration-snippet: 'location = / {{ return 200 x; }}'"
    );
    for (annotations, path) in [(beside, "/"), (within, "/a.*")] {
        let found = checked_with(ALLOWED, &[ingress("one", &annotations, "a.test", path)]);
        let found = of(&found, "one");
        let verdict = (found.standing, found.refused_by);
        assert_eq!(verdict, (Standing::Refused, Some(RefusedBy::Both)), "{found:?}");
        let told = found.reasons.iter().chain(&found.notes);
        let fine = told.filter(|remark| remark.message.contains("is understood"));
        assert_eq!(fine.count(), 0, "{found:?}");
    }
}

#[test]
fn a_variable_that_takes_nginx_is_not_unknown_besides() {
    const PREFIX: &str = "nginx.ingress.kubernetes.io";
    let server = format!("{PREFIX}/server-snippet: \"set_by_lua $tok 'return 1';\"");
    let own = format!("{PREFIX}/configuration-snippet: 'proxy_set_header X-Tok $tok;'");
    let found =
        checked_with(ALLOWED, &[ingress("one", &format!("{server}, {own}"), "a.test", "/")]);
    let found = of(&found, "one");
    assert_eq!((found.standing, found.refused_by), (Standing::NeedsNginx, None), "{found:?}");
    assert_eq!(found.reasons.len(), 1, "{found:?}");
}
