//! What one namespace may do to what another one owns (docs/tenancy.md), and what it may take of everything.

use crate::builders::*;
use model::snippet::Task;
use model::{Backend, Configuration, PathKind, Server, ServerName, Severity};
use objects::{Ingress, IngressBackend, PathType, PortRef, Snapshot};
use proptest::collection::vec;
use proptest::prelude::*;
use translate::{
    Budget, Options, Problems, Standing, Translator, check, needs, review, translate,
    translate_telling_all,
};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn what_a_tenant_has_does_not_depend_on_another_one(bytes in vec(any::<u8>(), 0..120)) {
        crate::sets::Sets::read(&bytes).check();
    }
}

#[test]
fn what_once_made_a_tenant_depend_on_another_one_does_so_no_more() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/two_tenants");
    let seeds = std::fs::read_dir(folder).expect("inputs that were found by fuzzing");
    let seeds: Vec<_> = seeds.map(|entry| entry.expect("an input").path()).collect();
    assert!(seeds.len() >= 5, "{seeds:?}");
    for seed in seeds {
        crate::sets::Sets::read(&std::fs::read(seed).expect("a readable input")).check();
    }
}

const ITEMS: &str = "allow-cross-namespace";

fn with(data: &[(&str, &str)], ingresses: &[Ingress]) -> (Configuration, String) {
    let mut snapshot = cluster();
    put_config_map(&mut snapshot, config_map("system", "settings", data));
    for namespace in ["a", "b"] {
        let (certificate, key) = certificate(&["shop.test"]);
        let data = [("ca.crt", certificate.as_str()), ("tls.crt", &certificate), ("tls.key", &key)];
        put_secret(&mut snapshot, secret(namespace, "ca", &data));
        put_service(&mut snapshot, service(namespace, "s", 80));
        put_config_map(&mut snapshot, config_map(namespace, "headers", &[("X-One", "1")]));
    }
    for ingress in ingresses {
        put_ingress(&mut snapshot, ingress.clone());
    }
    let found = translate(&snapshot, &options());
    (found.configuration, found.problems.to_string())
}

fn options() -> Options {
    let config_map = Some(key("system", "settings"));
    Options { config_map, passthrough: true, raw: true, ..Options::default() }
}

/// An Ingress of shop.test, those of `b` younger.
fn of(namespace: &str, name: &str, at: &str, annotations: &[(&str, &str)]) -> Ingress {
    let mut made = simple(namespace, name, "shop.test", at, "s");
    made.meta.created = i64::from(namespace == "b");
    for (name, value) in annotations {
        annotate(&mut made, name, value);
    }
    made
}

fn shop(configuration: &Configuration) -> &Server {
    &configuration.servers[&ServerName::new("shop.test")]
}

/// What the server of shop.test has for a, without what b added.
fn as_a_sees(configuration: &Configuration) -> Server {
    // Who owns it is noted where that matters, and seen by nobody.
    let mut server = Server { owner: None, ..shop(configuration).clone() };
    server.locations.retain(|location| {
        // The root that nobody wrote is for others to add.
        let is_written = location.backend != Backend::NotFound;
        is_written && location.origin.as_deref().is_some_and(|origin| &*origin.namespace == "a")
    });
    server
}

/// Item, Ingresses of a, Ingresses of b: what b asks for changes nothing for a, unless the item allows it.
fn table() -> Vec<(&'static str, Vec<Ingress>, Ingress)> {
    let guarded = || of("a", "guarded", "/app", &[("allowlist-source-range", "10.0.0.0/8")]);
    let root = || of("a", "root", "/", &[("backend-protocol", "HTTPS")]);
    let other = |annotations: &[(&str, &str)]| of("b", "other", "/b", annotations);
    let mut tls = other(&[]);
    tls.tls = vec![crate::builders::tls(&["shop.test"], Some("ca"))];
    let mut exact = of("b", "other", "/app", &[]);
    exact.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = PathType::Exact);
    let mut taking = of("b", "other", "/(app|zzzzzzzzzzz)", &[("use-regex", "true")]);
    taking.meta.created = 1;
    let canary = [("canary", "true"), ("canary-weight", "100")];
    let mut beside = of("b", "other", "/app", &canary);
    beside.rules[0]
        .paths
        .iter_mut()
        .flatten()
        .for_each(|path| path.backend = backend("s", Some(PortRef::Number(80))));
    let wild = of("a", "wild", "/", &[]);
    let wild =
        Ingress { rules: vec![rule(Some("*.shop.test"), wild.rules[0].paths.clone())], ..wild };
    let broad = simple("b", "broad", "broad.test", "/", "s");
    let broad = {
        let mut broad = broad;
        annotate(&mut broad, "server-alias", "*.test");
        broad
    };
    let regex = || {
        of(
            "a",
            "guarded",
            "/app",
            &[("use-regex", "true"), ("allowlist-source-range", "10.0.0.0/8")],
        )
    };
    vec![
        ("aliases", vec![guarded()], other(&[("server-alias", "alias.test")])),
        ("aliases", vec![guarded(), wild], broad),
        ("app-root", vec![guarded(), root()], other(&[("app-root", "/b")])),
        ("canary", vec![guarded()], beside),
        ("certificate", vec![guarded()], tls),
        ("ciphers", vec![guarded()], other(&[("ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256")])),
        ("client-certificate", vec![guarded()], other(&[("auth-tls-secret", "b/ca")])),
        ("passthrough", vec![guarded(), root()], other(&[("ssl-passthrough", "true")])),
        ("passthrough", vec![guarded()], of("b", "other", "/", &[("ssl-passthrough", "true")])),
        ("paths", vec![guarded()], exact),
        ("paths", vec![guarded()], of("b", "other", "/app/", &[])),
        ("paths", vec![regex()], taking),
        ("regex", vec![guarded()], other(&[("use-regex", "true")])),
        ("regex", vec![guarded()], of("b", "other", "/b(.*)", &[("rewrite-target", "/$1")])),
        ("www", vec![guarded()], other(&[("from-to-www-redirect", "true")])),
    ]
}

#[test]
fn what_concerns_a_host_is_its_owners_to_ask_for() {
    for (item, ours, theirs) in table() {
        let alone = as_a_sees(&with(&[], &ours).0);
        let all: Vec<Ingress> = ours.iter().cloned().chain([theirs.clone()]).collect();
        let (closed, problems) = with(&[], &all);
        assert_eq!(as_a_sees(&closed), alone, "{item}: {theirs:?}");
        let is_told = problems.contains("Ingress b/") && problems.contains(ITEMS);
        // A path without special characters means the same either way.
        let is_silent =
            item == "regex" && theirs.rules[0].paths.iter().flatten().all(|path| path.path == "/b");
        assert!(is_told || is_silent, "{item}: {theirs:?}\n{problems}");
        let (open, problems) = with(&[(ITEMS, item)], &all);
        assert!(!problems.contains(ITEMS), "{item}: {problems}");
        let differs = open != closed;
        assert!(differs, "{item} gives nothing back: {theirs:?}");
        let others = "aliases,app-root,canary,certificate,ciphers,client-certificate,custom-headers,passthrough,paths,regex,www";
        let others: Vec<&str> = others.split(',').filter(|other| *other != item).collect();
        let (still, _) = with(&[(ITEMS, &others.join(","))], &all);
        assert_eq!(as_a_sees(&still), alone, "{item} is given back by another item: {theirs:?}");
    }
}

#[test]
fn the_owner_of_a_host_is_noted_where_its_certificate_is_nobody_elses_to_give() {
    let ours = of("a", "guarded", "/app", &[]);
    let owner = |settings: &[(&str, &str)]| {
        shop(&with(settings, std::slice::from_ref(&ours)).0).owner.as_deref().map(str::to_owned)
    };
    assert_eq!(owner(&[]).as_deref(), Some("a"));
    assert_eq!(owner(&[(ITEMS, "aliases")]).as_deref(), Some("a"));
    assert_eq!(owner(&[(ITEMS, "certificate")]), None);
}

#[test]
fn check_names_who_is_concerned() {
    for (item, ours, theirs) in table() {
        let mut snapshot = cluster();
        for ingress in ours.iter().chain([&theirs]) {
            put_ingress(&mut snapshot, ingress.clone());
        }
        let found = check(&snapshot, &options(), 0);
        let name = format!("b/{}", theirs.meta.key.name);
        let finding = found.ingresses.iter().find(|finding| finding.ingress == name);
        let finding = finding.expect("every Ingress has a finding");
        let named = finding.reasons.iter().any(|reason| reason.message.contains(ITEMS));
        let is_plain = item == "regex"
            && theirs.meta.annotations.len() == 1
            && theirs.rules[0].paths.iter().flatten().all(|path| path.path == "/b");
        assert!(
            is_plain || (named && finding.standing >= Standing::Differs),
            "{item}: {finding:?}"
        );
    }
}

#[test]
fn an_identity_towards_upstreams_stays_in_its_namespace_whatever_is_allowed() {
    let ours =
        of("a", "own", "/app", &[("proxy-ssl-secret", "a/ca"), ("backend-protocol", "HTTPS")]);
    let beside = of("a", "beside", "/beside", &[("backend-protocol", "HTTPS")]);
    let theirs = of("b", "other", "/b", &[("backend-protocol", "HTTPS")]);
    for data in [&[][..], &[(ITEMS, "all")]] {
        let (configuration, _) = with(data, &[ours.clone(), beside.clone(), theirs.clone()]);
        let has = |path| {
            let found =
                location(&configuration, "shop.test", path, PathKind::Prefix).expect("a path");
            found.policy.upstream_tls.identity.is_some()
        };
        assert!(has("/app") && has("/beside") && !has("/b"), "{data:?}");
    }
}

#[test]
fn server_snippets_and_headers_of_others_are_not_taken() {
    let ours = of("a", "own", "/app", &[]);
    let theirs =
        of("b", "other", "/b", &[("server-snippet", "# b"), ("custom-headers", "a/headers")]);
    let all = [ours, theirs];
    let base = [
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Critical"),
        ("global-allowed-response-headers", "X-One"),
    ];
    let snippet = |configuration: &Configuration| {
        let found = location(configuration, "shop.test", "/b", PathKind::Prefix).expect("b's path");
        found.policy.raw.as_ref().is_some_and(|raw| raw.server.is_some())
    };
    let (closed, problems) = with(&base, &all);
    assert!(is_denied(&closed, "shop.test", "/b") && !snippet(&closed));
    assert!(problems.contains("custom-headers in allow-cross-namespace"), "{problems}");
    assert!(problems.contains("server-snippet in allow-cross-namespace"), "{problems}");
    let both = [&base[..], &[(ITEMS, "custom-headers, server-snippet")]].concat();
    let (open, _) = with(&both, &all);
    assert!(!is_denied(&open, "shop.test", "/b") && snippet(&open));
    let none = translate(&Snapshot::default(), &options()).problems.to_string();
    assert!(none.is_empty(), "{none}");
}

/// The same with the native engine.
fn with_native(data: &[(&str, &str)], ingresses: &[Ingress]) -> (Configuration, String) {
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    let data = [&allowed[..], data].concat();
    put_config_map(&mut snapshot, config_map("system", "settings", &data));
    for namespace in ["a", "b"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    ingresses.iter().for_each(|ingress| put_ingress(&mut snapshot, ingress.clone()));
    let found = translate(&snapshot, &Options { raw: false, ..options() });
    (found.configuration, found.problems.to_string())
}

/// What a server and its locations mean by their snippets.
fn said(configuration: &Configuration) -> (String, Vec<String>) {
    let text = |scope: &Option<std::sync::Arc<model::snippet::Scope>>| {
        scope.as_ref().map(|scope| format!("{scope:?}")).unwrap_or_default()
    };
    let server = shop(configuration);
    (
        text(&server.snippet),
        server.locations.iter().map(|found| text(&found.policy.snippet)).collect(),
    )
}

#[test]
fn who_has_no_rule_for_the_host_of_all_others_has_no_word_in_it() {
    let without_rules = |snippet: &str| {
        let mut made = of("a", "all", "/", &[("server-snippet", snippet)]);
        made.default_backend = made.rules.pop().and_then(|rule| {
            rule.paths.and_then(|mut paths| paths.pop()).map(|path| path.backend.into())
        });
        made
    };
    let mut guarded = of("a", "guarded", "/admin", &[("server-snippet", "deny all;")]);
    guarded.rules[0].host = None;
    guarded.meta.created = 1;
    let (found, _) = with_native(&[], &[without_rules("add_header X-Env prod;"), guarded]);
    let server = &found.servers[&ServerName::catch_all()];
    let snippet = server.snippet.as_deref().expect("that of who has a rule");
    assert_eq!(snippet.settings.access.rules.len(), 1);
    // Nor does it close what it has no rule for.
    let mut open = of("a", "open", "/open", &[]);
    open.rules[0].host = None;
    open.meta.created = 1;
    let (found, _) = with_native(&[], &[without_rules("deny all;"), open]);
    assert!(found.servers[&ServerName::catch_all()].snippet.is_none());
    // A rule that says nothing is one of it.
    let mut said = without_rules("deny all;");
    said.rules = vec![rule(None, None)];
    let mut open = of("a", "open", "/open", &[]);
    open.rules[0].host = None;
    open.meta.created = 1;
    let (found, _) = with_native(&[], &[said, open]);
    assert!(found.servers[&ServerName::catch_all()].snippet.is_some());
}

#[test]
fn a_server_snippet_that_may_guard_and_is_not_understood_closes_all_of_its_host() {
    let ours = |text| of("a", "own", "/app", &[("server-snippet", text)]);
    let beside = of("a", "beside", "/c", &[]);
    let theirs = of("b", "other", "/b", &[]);
    let mut elsewhere = of("a", "elsewhere", "/", &[]);
    elsewhere.rules[0].host = Some("other.test".to_owned());
    for text in ["deny all; sett $a 1;", "return 403; }", "if ($a) { retun 403; }"] {
        let all = [ours(text), beside.clone(), theirs.clone(), elsewhere.clone()];
        let (found, problems) = with_native(&[], &all);
        for path in ["/app", "/c", "/b"] {
            assert!(is_denied(&found, "shop.test", path), "{text} {path}");
        }
        assert!(!is_denied(&found, "other.test", "/"), "{text}");
        for whose in ["a/beside", "b/other"] {
            let told = format!(
                "Ingress {whose}: nginx.ingress.kubernetes.io/server-snippet: server-snippet of Ingress a/own may guard"
            );
            assert!(problems.contains(&told), "{problems}");
        }
        let (found, _) = with_native(&[], &[ours("deny all;"), beside.clone(), theirs.clone()]);
        assert!(!is_denied(&found, "shop.test", "/c") && !is_denied(&found, "shop.test", "/b"));
    }
}

#[test]
fn the_server_snippet_of_an_ingress_without_a_location_left_counts() {
    // Both of one path: the older one has it, and the younger one has the word about the host.
    let older = of("a", "older", "/app", &[]);
    let mut word = of("a", "word", "/app", &[("server-snippet", "deny all;")]);
    word.meta.created = 1;
    let data = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    let (found, _) = with(&data, &[older, word]);
    let server = shop(&found);
    let of_word = |origin: &model::Origin| origin.to_string() == "Ingress a/word";
    let mut origins = server.locations.iter().filter_map(|location| location.origin.as_deref());
    assert!(!origins.any(of_word));
    let raw = server.raw.as_deref().expect("a word about the host");
    assert!(of_word(&raw.origin) && raw.text.as_str() == "deny all;");
}

#[test]
fn a_server_snippet_is_that_of_the_owner_and_guards_of_others_stay_shut() {
    let ours = |text| of("a", "own", "/app", &[("server-snippet", text)]);
    let guarded = [("allowlist-source-range", "10.0.0.0/8")];
    let theirs =
        of("b", "other", "/b", &[&guarded[..], &[("server-snippet", "set $b 1;")]].concat());
    let (found, problems) = with_native(&[], &[ours("set $a 1;"), theirs.clone()]);
    assert!(said(&found).0.contains("a/a") && !said(&found).0.contains("b/b"));
    assert!(problems.contains("server-snippet in allow-cross-namespace"), "{problems}");
    let (found, _) = with_native(&[], std::slice::from_ref(&theirs));
    assert!(said(&found).0.contains("b/b"), "who is alone on a host owns it");
    // A broken one makes no room for that of another Ingress.
    let beside = of("a", "beside", "/c", &[("server-snippet", "set $c 1;")]);
    let (found, _) = with_native(&[], &[ours("sett $a 1;"), beside]);
    assert_eq!(said(&found).0, "");
    assert!(is_denied(&found, "shop.test", "/app") && !is_denied(&found, "shop.test", "/c"));
    let opening = "satisfy any; set_real_ip_from 0.0.0.0/0; real_ip_header X-Me; auth_basic off; \
                   auth_request off; location /x { deny all; }";
    let (found, _) = with_native(&[], &[ours(opening), theirs]);
    let server = shop(&found);
    let snippet = server.snippet.as_deref().expect("of the owner");
    let access = &snippet.settings.access;
    assert!(
        access.satisfy.is_none()
            && access.auth_basic.is_none()
            && access.auth_request_off.is_none()
    );
    assert_eq!(snippet.settings.real_ip, Default::default());
    assert!(snippet.locations[0].scope.settings.real_ip.header.is_some());
    for location in &server.locations {
        let is_own = location.origin.as_deref().is_some_and(|origin| &*origin.namespace == "a");
        let says = location
            .policy
            .snippet
            .as_ref()
            .is_some_and(|own| own.settings.real_ip.header.is_some());
        // The root that nobody wrote is that of the owner's first Ingress.
        assert_eq!(says, is_own, "{location:?}");
    }
}

#[test]
fn rules_and_limits_of_a_server_leave_those_of_others_as_they_are() {
    let all = "deny 192.0.2.1; limit_req zone=all;";
    let data =
        [("server-snippet", all), ("http-snippet", "limit_req_zone $host zone=all:1m rate=1r/s;")];
    let opening = "allow all; limit_req_dry_run on; location /x { return 204; }";
    let ours = [
        of("a", "own", "/app", &[("server-snippet", opening)]),
        of("a", "beside", "/c", &[("configuration-snippet", "deny all;")]),
    ];
    let whitelist = [("whitelist-source-range", "10.0.0.0/8")];
    let others = [of("b", "other", "/b", &[]), of("b", "guarded", "/g", &whitelist)];
    let scope = |found: &Configuration, path: &str| {
        let location = shop(found).locations.iter().find(|location| location.path == path);
        location.expect("its path").policy.snippet.as_deref().cloned().unwrap_or_default().settings
    };
    let (found, problems) = with_native(&data, &[&ours[..], &others].concat());
    let server = shop(&found).snippet.as_deref().expect("of the owner");
    assert_eq!(server.settings.access.rules.len(), 1, "the operator's: {problems}");
    assert!(server.settings.limits.request_dry_run.is_none());
    let own = scope(&found, "/app");
    assert_eq!((own.access.rules.len(), own.limits.request_dry_run), (2, Some(true)));
    assert_eq!(own.limits.requests.len(), 1);
    assert_eq!(scope(&found, "/c").access.rules.len(), 1, "its own");
    assert_eq!(server.locations[0].scope.settings.access.rules.len(), 2);
    let other = scope(&found, "/b");
    assert!(other.access.rules.is_empty() && other.limits.request_dry_run.is_none());
    assert_eq!(other.access.besides.len(), 1, "whom it keeps out stays out");
    assert!(scope(&found, "/g").access.besides.is_empty(), "its own list stands in place of it");
    // Alone, or where namespaces trust each other, it is as in nginx.
    let (alone, _) = with_native(&data, &ours);
    let trusting = [&data[..], &[(ITEMS, "server-snippet")]].concat();
    let (open, _) = with_native(&trusting, &[&ours[..], &others].concat());
    for found in [alone, open] {
        let server = shop(&found).snippet.as_deref().expect("of the owner");
        assert_eq!(server.settings.access.rules.len(), 2);
        assert_eq!(server.settings.limits.request_dry_run, Some(true));
    }
}

#[test]
fn whose_a_snippet_is_counts_unless_namespaces_trust_each_other() {
    let text = "error_page 404 = @in; if ($uri = /x) { rewrite ^ /y last; error_page 403 = @in; }";
    let ours = || {
        of(
            "a",
            "own",
            "/app",
            &[("server-snippet", "location @in { internal; }"), ("configuration-snippet", text)],
        )
    };
    for (data, owner) in [(&[][..], Some("a")), (&[(ITEMS, "server-snippet")], None)] {
        let (found, problems) = with_native(data, &[ours()]);
        let server = shop(&found).snippet.as_deref().expect(&problems);
        assert_eq!(server.locations[0].owner.as_deref(), owner);
        let location = shop(&found).locations.iter().find(|location| location.path == "/app");
        let own = location.expect("its path").policy.snippet.as_deref().expect("its own");
        assert_eq!(own.settings.answers.error_pages[0].owner.as_deref(), owner);
        assert_eq!(own.branches[0].answers.error_pages[0].owner.as_deref(), owner);
        assert!(own.program.steps.iter().all(|step| step.owner.as_deref() == owner));
    }
}

#[test]
fn what_snippets_say_at_every_path_counts_for_their_namespace() {
    let own = |number: i64, text: &str| {
        let mut made = simple("a", &format!("i{number}"), &format!("a{number}.test"), "/0", "s");
        for at in ["/1", "/2", "/3"] {
            let more = path(at, PathType::Prefix, backend("s", Some(PortRef::Number(80))));
            made.rules[0].paths.iter_mut().for_each(|paths| paths.push(more.clone()));
        }
        annotate(&mut made, "configuration-snippet", text);
        made.meta.created = number;
        made
    };
    // Two levels at four paths, and two words and four within the first.
    let text = "if ($uri) { add_header X-A 1; }";
    let weight = 2 * 4 * 50 + 2 + 5;
    let both = [own(0, text), own(1, text), of("b", "other", "/", &[])];
    for (budget, number) in [(weight * 2 - 1, 2), (weight * 2, 3)] {
        let budget = format!("snippet-settings={budget}");
        let (found, problems) = with_native(&[("namespace-budget", &budget)], &both);
        assert_eq!(served_hosts(&found).len(), number + 1, "{budget}: {problems}");
        assert_eq!(problems.contains("snippet-settings"), number == 2, "{problems}");
    }
}

#[test]
fn a_variable_of_one_tenant_is_none_of_another() {
    let ours = of("a", "own", "/app", &[("server-snippet", "set $token secret;")]);
    let theirs = |text| of("b", "other", "/b", &[("configuration-snippet", text)]);
    let (found, problems) = with_native(&[], &[ours.clone(), theirs("return 200 $token;")]);
    assert!(is_denied(&found, "shop.test", "/b"), "{problems}");
    assert!(problems.contains("unknown variable $token"), "{problems}");
    let own = theirs("if ($uri = 1) { set $token 1; }\nreturn 200 $token;");
    let (found, problems) = with_native(&[], &[ours.clone(), own.clone()]);
    assert!(!is_denied(&found, "shop.test", "/b"), "{problems}");
    let (server, locations) = said(&found);
    let names = |text: &str| (text.contains("\"a/token\""), text.contains("\"b/token\""));
    assert_eq!(names(&server), (true, false));
    assert!(locations.iter().any(|text| names(text) == (false, true)), "{locations:?}");
    // What the ConfigMap declares is everybody's.
    let (found, _) = with_native(&[("server-snippet", "set $token all;")], &[ours, own]);
    assert_eq!(names(&said(&found).0), (false, false));
}

#[test]
fn a_snippet_leads_to_nobody_elses_services() {
    for text in [
        "proxy_pass http://s.a.svc.cluster.local;",
        "set $proxy_upstream_name a-s-80;",
        "set $proxy_upstream_name $arg_to;",
        "set $proxy_alternative_upstream_name a-s-80;",
        "auth_request_set $proxy_upstream_name $upstream_http_to;",
        "if ($uri ~ (?<proxy_upstream_name>.+)) { return 204; }",
    ] {
        let theirs = of("b", "other", "/b", &[("configuration-snippet", text)]);
        let (found, problems) = with_native(&[], &[theirs]);
        assert!(is_denied(&found, "shop.test", "/b"), "{text}: {problems}");
        assert!(!found.upstreams.keys().any(|id| id.as_str().contains("a/s")), "{text}");
    }
    // Where not everybody comes to it, the others are served.
    let ours = of("a", "own", "/", &[]);
    let some = "if ($arg_to) { set $proxy_upstream_name a-s-80; }";
    let theirs = of("b", "other", "/b", &[("configuration-snippet", some)]);
    let (found, problems) = with_native(&[], &[ours, theirs]);
    assert!(!is_denied(&found, "shop.test", "/b"), "{problems}");
    assert!(problems.contains("\"a-s-80\" is no upstream of namespace b"), "{problems}");
    let found = location(&found, "shop.test", "/b", PathKind::Prefix).expect("b's path");
    let scope = found.policy.snippet.as_ref().expect("it has a snippet");
    let Task::If(block) = &scope.program.steps[0].task else { panic!("it has an if") };
    let Task::Set(_, nobody) = &block.steps[0].task else { panic!("it has a set") };
    assert_eq!(nobody.literal(), Some("b/a-s-80"), "by this name nobody is there");
}

#[test]
fn a_path_without_special_characters_is_rewritten_on_a_plain_host_of_another_namespace() {
    let ours = of("a", "own", "/", &[]);
    let theirs = of("b", "other", "/b", &[("rewrite-target", "/")]);
    let (configuration, problems) = with(&[], &[ours, theirs]);
    assert!(!shop(&configuration).regex);
    let found = location(&configuration, "shop.test", "/b", PathKind::Prefix).expect("b's path");
    assert!(found.policy.rewrite.is_some(), "{problems}");
}

#[test]
fn a_passed_through_host_stays_so_and_has_no_paths_of_others() {
    let ours = of("a", "own", "/", &[("ssl-passthrough", "true")]);
    let theirs = of("b", "other", "/b", &[]);
    let (configuration, problems) = with(&[], &[ours.clone(), theirs.clone()]);
    assert!(shop(&configuration).passthrough.is_some());
    assert_eq!(upstream(&configuration, "shop.test", "/b"), None);
    assert!(
        problems.contains("Ingress b/other") && problems.contains("passed through"),
        "{problems}"
    );
    // Nor does a path / of the other kind take it away.
    let mut exact = ours.clone();
    for path in exact.rules.iter_mut().flat_map(|rule| rule.paths.iter_mut().flatten()) {
        path.kind = PathType::Exact;
    }
    let root = of("b", "other", "/", &[]);
    let (configuration, _) = with(&[], &[exact.clone(), root]);
    assert!(shop(&configuration).passthrough.is_some());
    // The stranger's / that is left out leaves the implicit one in its place: plain HTTP has an answer everywhere.
    let implicit = location(&configuration, "shop.test", "/", PathKind::Prefix).expect("a root");
    assert_eq!(implicit.backend, Backend::NotFound);
    // Nor where the paths of the host are regular expressions, so that the stranger's / is left out.
    annotate(&mut exact, "use-regex", "true");
    let (configuration, _) = with(&[], &[exact, of("b", "other", "/", &[])]);
    assert!(shop(&configuration).passthrough.is_some());
    // A host that others were on before is not passed through.
    let mut younger = ours;
    younger.meta.created = 5;
    let (configuration, problems) = with(&[], &[younger, theirs]);
    assert_eq!(shop(&configuration).passthrough, None);
    assert!(upstream(&configuration, "shop.test", "/b").is_some());
    assert!(problems.contains("another namespace has a part in the host"), "{problems}");
}

#[test]
fn whoever_owns_a_path_keeps_it_over_a_mistake_and_a_restart() {
    const BAD: (&str, &str) = ("client-body-buffer-size", "much");
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, of("a", "own", "/app", &[]));
    put_ingress(&mut snapshot, of("b", "copy", "/app", &[]));
    let mut translator = Translator::new(options());
    translator.update(&snapshot);
    put_ingress(&mut snapshot, of("a", "own", "/app", &[BAD]));
    let kept = translator.update(&snapshot).configuration;
    assert_eq!(upstream(&kept, "shop.test", "/app").as_deref(), Some("a-s-80"));
    let restarted = translate(&snapshot, &options()).configuration;
    assert!(is_denied(&restarted, "shop.test", "/app"), "{:?}", shop(&restarted));

    let suspicious = ("/etc/nginx", &[][..]);
    let mut attack = of("a", "own", "/app", suspicious.1);
    let odd = path(suspicious.0, PathType::Prefix, backend("s", Some(PortRef::Number(80))));
    attack.rules[0].paths.iter_mut().for_each(|paths| paths.push(odd.clone()));
    put_ingress(&mut snapshot, attack);
    let restarted = translate(&snapshot, &options()).configuration;
    assert!(is_denied(&restarted, "shop.test", "/app"));
    assert!(location(&restarted, "shop.test", "/etc/nginx", PathKind::Prefix).is_none());
    // Within one namespace the next one has it.
    put_ingress(&mut snapshot, of("a", "second", "/app", &[]));
    let second = translate(&snapshot, &options()).configuration;
    assert_eq!(upstream(&second, "shop.test", "/app").as_deref(), Some("a-s-80"));
}

#[test]
fn a_default_backend_of_the_owner_is_its_path_root() {
    let mut ours = of("a", "own", "/app", &[]);
    ours.default_backend = Some(Box::new(backend("s", Some(PortRef::Number(80)))));
    let theirs = of("b", "other", "/", &[]);
    let (configuration, problems) = with(&[], &[ours.clone(), theirs.clone()]);
    assert_eq!(upstream(&configuration, "shop.test", "/").as_deref(), Some("a-s-80"), "{problems}");
    // Nor does a mistake give it away.
    annotate(&mut ours, "client-body-buffer-size", "much");
    let (configuration, problems) = with(&[], &[ours, theirs.clone()]);
    assert!(is_denied(&configuration, "shop.test", "/"), "{problems}");
    // What nobody has is free.
    let (configuration, _) = with(&[], &[of("a", "own", "/app", &[]), theirs]);
    assert_eq!(upstream(&configuration, "shop.test", "/").as_deref(), Some("b-s-80"));
}

/// The hosts that no Ingress has which waits for room.
fn served_hosts(configuration: &Configuration) -> Vec<String> {
    let waits = |backend: &Backend| matches!(backend, Backend::Denied(why) if why.contains("waits for room"));
    let servers = configuration
        .servers
        .iter()
        .filter(|(_, server)| !server.locations.iter().any(|location| waits(&location.backend)));
    servers.map(|(name, _)| name.to_string()).collect()
}

/// One that takes one of everything; the smaller the number, the younger.
fn numbered(namespace: &str, number: i64) -> Ingress {
    let host = format!("{namespace}{number}.test");
    let mut made = simple(namespace, &format!("i{number}"), &host, "/p", "s");
    made.meta.created = 10 - number;
    made.tls = vec![tls(&[], Some(&format!("s{number}")))];
    annotate(&mut made, "use-regex", "true");
    made
}

const BUDGETS: [&str; 6] =
    ["ingresses=2", "hosts=2", "paths=2", "patterns=2", "pattern-bytes=4", "certificate-bytes=20"];

#[test]
fn what_waited_for_room_comes_in_by_portions() {
    let budget = "patterns=4".parse::<Budget>().expect("a budget");
    let options = Options { namespace_budget: budget, raw: false, ..options() };
    let (mut snapshot, mut translator) = (cluster(), Translator::new(options.clone()));
    for number in 0..5 {
        let mut one = numbered("a", number);
        // The oldest has all the patterns that there may be, the others a long one each.
        let aliases = match number {
            4 => "~^a$,~^b$,~^c$,~^d$".to_owned(),
            _ => format!("~^{}{number}$", "x".repeat(10_000)),
        };
        one.meta.annotations.remove("nginx.ingress.kubernetes.io/use-regex");
        annotate(&mut one, "server-alias", &aliases);
        put_ingress(&mut snapshot, one);
    }
    let hosts = |found: &translate::Translation| served_hosts(&found.configuration).len() - 1;
    let found = translator.update(&snapshot);
    assert_eq!((hosts(&found), found.more), (1, false), "{}", found.problems);
    snapshot.ingresses.remove(&key("a", "i4"));
    let rounds = [(1, true), (2, true), (3, true), (4, false), (4, false)];
    for wanted in rounds {
        let found = translator.update(&snapshot);
        assert_eq!((hosts(&found), found.more), wanted, "{}", found.problems);
    }
    assert_eq!(
        translator.update(&snapshot).configuration,
        translate(&snapshot, &options).configuration
    );
}

#[test]
fn all_that_takes_time_to_read_of_what_waited_counts_for_its_portion() {
    let long: &str = &"x".repeat(10_000);
    let marks: &[&dyn Fn(&mut Ingress)] = &[
        &|one| annotate(one, "configuration-snippet", &format!("# {long}")),
        &|one| annotate(one, "whitelist-source-range", &"10.0.0.0/8,".repeat(900)),
        &|one| one.tls = vec![tls(&[], None); 200],
        &|one| annotate(one, "auth-secret", "long"),
    ];
    let budget = "ingresses=2".parse::<Budget>().expect("a budget");
    let options = Options { namespace_budget: budget, raw: false, ..options() };
    for (at, mark) in marks.iter().enumerate() {
        let (mut snapshot, mut translator) = (cluster(), Translator::new(options.clone()));
        put_secret(&mut snapshot, secret("a", "long", &[("auth", long)]));
        for number in 0..4 {
            let mut one = numbered("a", number);
            one.meta.annotations.remove("nginx.ingress.kubernetes.io/use-regex");
            one.tls.clear();
            mark(&mut one);
            put_ingress(&mut snapshot, one);
        }
        translator.update(&snapshot);
        for oldest in ["i3", "i2"] {
            snapshot.ingresses.remove(&key("a", oldest));
        }
        let more = [(); 2].map(|()| translator.update(&snapshot).more);
        assert_eq!(more, [true, false], "{at}");
    }
}

#[test]
fn beyond_its_budget_the_newest_of_a_namespace_wait_and_nobody_elses() {
    for budget in BUDGETS {
        let mut snapshot = cluster();
        let options =
            Options { namespace_budget: budget.parse::<Budget>().expect("a budget"), ..options() };
        let mut translator = Translator::new(options.clone());
        for namespace in ["a", "b"] {
            for number in 0..4 {
                put_secret(
                    &mut snapshot,
                    secret(namespace, &format!("s{number}"), &[("tls.crt", "0123456789")]),
                );
            }
        }
        put_ingress(&mut snapshot, numbered("b", 9));
        let served = |translator: &mut Translator, snapshot: &Snapshot| {
            let found = translator.update(snapshot);
            let anew = translate(snapshot, &options);
            assert_eq!(found.configuration, anew.configuration, "{budget}");
            assert_eq!(found.problems, anew.problems, "{budget}");
            (served_hosts(&found.configuration).join(" "), found.problems.to_string())
        };
        // The older ones come later, and push the younger ones out.
        for (number, expected) in [
            (0, "_ a0.test b9.test"),
            (1, "_ a0.test a1.test b9.test"),
            (2, "_ a1.test a2.test b9.test"),
            (3, "_ a2.test a3.test b9.test"),
        ] {
            put_ingress(&mut snapshot, numbered("a", number));
            let (hosts, problems) = served(&mut translator, &snapshot);
            assert_eq!(hosts, expected, "{budget}: {problems}");
            assert_eq!(
                problems.matches("leave too little").count(),
                usize::try_from(number - 1).unwrap_or(0),
                "{problems}"
            );
        }
        snapshot.ingresses.remove(&key("a", "i2"));
        assert_eq!(served(&mut translator, &snapshot).0, "_ a1.test a3.test b9.test", "{budget}");
        put_config_map(
            &mut snapshot,
            config_map(
                "system",
                "settings",
                &[(
                    "namespace-budget",
                    "ingresses=9, hosts=9, paths=9, patterns=9, pattern-bytes=99, certificate-bytes=99",
                )],
            ),
        );
        assert_eq!(
            served(&mut translator, &snapshot).0,
            "_ a0.test a1.test a3.test b9.test",
            "{budget}"
        );
        // A Secret that grows.
        put_secret(&mut snapshot, secret("a", "s1", &[("tls.crt", &"x".repeat(100))]));
        assert_eq!(served(&mut translator, &snapshot).0, "_ a0.test a3.test b9.test", "{budget}");
    }
}

#[test]
fn texts_and_expressions_of_snippets_count_for_their_namespace() {
    let own = |number: i64, text: &str| {
        let name = format!("i{number}");
        let mut made = simple("a", &name, &format!("a{number}.test"), "/", "s");
        annotate(&mut made, "configuration-snippet", text);
        made.meta.created = number;
        made
    };
    let text = "if ($uri ~ ^/old) { return 410; } rewrite ^/a /b;";
    let both = [own(0, text), own(1, text), of("b", "other", "/", &[])];
    for (budget, number) in [("snippet-bytes=60", 2), ("patterns=3", 2), ("patterns=4", 3)] {
        let (found, problems) = with_native(&[("namespace-budget", budget)], &both);
        assert_eq!(served_hosts(&found).len(), number + 1, "{budget}: {problems}");
        assert_eq!(problems.contains("leave too little"), number == 2, "{problems}");
    }
}

#[test]
fn a_version_that_is_kept_counts_as_long_as_it_is_served() {
    let options = Options { namespace_budget: "paths=3".parse().expect("a budget"), ..options() };
    let mut snapshot = cluster();
    let mut translator = Translator::new(options);
    let mut big = simple("a", "big", "big.test", "/1", "s");
    for at in ["/2", "/3"] {
        let more = path(at, PathType::Prefix, backend("s", Some(PortRef::Number(80))));
        big.rules[0].paths.iter_mut().for_each(|paths| paths.push(more.clone()));
    }
    put_ingress(&mut snapshot, big);
    translator.update(&snapshot);
    let mut small = simple("a", "big", "big.test", "/1", "s");
    annotate(&mut small, "client-body-buffer-size", "much");
    put_ingress(&mut snapshot, small);
    let mut young = simple("a", "young", "young.test", "/1", "s");
    young.meta.created = 1;
    put_ingress(&mut snapshot, young);
    let hosts = |translator: &mut Translator, snapshot: &Snapshot| {
        served_hosts(&translator.update(snapshot).configuration).len()
    };
    assert_eq!(hosts(&mut translator, &snapshot), 2, "the kept version has all paths");
    put_ingress(&mut snapshot, simple("a", "big", "big.test", "/1", "s"));
    assert_eq!(hosts(&mut translator, &snapshot), 3, "it is gone");
}

#[test]
fn problems_of_one_object_and_of_one_namespace_are_bounded() {
    let mut snapshot = cluster();
    let budget: Budget = "problems=150".parse().expect("a budget");
    let options = Options { namespace_budget: budget, ..options() };
    let mut translator = Translator::new(options.clone());
    let many = |namespace: &str, name: &str| {
        let mut made = simple(namespace, name, "many.test", "/", "s");
        for number in 0..500 {
            let wrong = path(
                &format!("no{}{number}", "x".repeat(4000)),
                PathType::Prefix,
                backend("s", None),
            );
            made.rules[0].paths.iter_mut().for_each(|paths| paths.push(wrong.clone()));
        }
        made
    };
    put_ingress(&mut snapshot, many("a", "one"));
    assert_eq!(translator.update(&snapshot).problems.iter().count(), 100);
    for name in ["two", "three"] {
        put_ingress(&mut snapshot, many("a", name));
    }
    put_ingress(&mut snapshot, many("b", "own"));
    let found = translator.update(&snapshot).problems;
    assert_eq!(found, translate(&snapshot, &options).problems);
    let count = |namespace: &str| {
        found.iter().filter(|problem| &*problem.origin.namespace == namespace).count()
    };
    assert_eq!((count("a"), count("b")), (150, 100));
    assert!(found.iter().all(|problem| problem.message.len() < 2100));
    snapshot.ingresses.remove(&key("a", "one"));
    snapshot.ingresses.remove(&key("a", "two"));
    let found = translator.update(&snapshot).problems;
    assert_eq!(found, translate(&snapshot, &options).problems);
}

#[test]
fn what_a_bound_leaves_out_is_never_graver_than_what_is_told() {
    let mut snapshot = cluster();
    let budget: Budget = "problems=150".parse().expect("a budget");
    let options = Options { namespace_budget: budget, ..options() };
    let unknown: Vec<String> = (0..110).map(|number| format!("a-no-such-{number}")).collect();
    let unknown: Vec<(&str, &str)> = unknown.iter().map(|name| (name.as_str(), "x")).collect();
    for name in ["one", "three", "two"] {
        let mut made = of("a", name, "/app", &unknown);
        let wrong = path("/zz", PathType::Prefix, IngressBackend::Other);
        made.rules[0].paths.iter_mut().for_each(|paths| paths.push(wrong.clone()));
        put_ingress(&mut snapshot, made);
    }
    let found = translate(&snapshot, &options).problems;
    let all = translate_telling_all(&snapshot, &options).problems;
    assert!(found.iter().count() == 150 && all.iter().count() >= 333, "{all}");
    let errors = |problems: &Problems| {
        let errors = problems.iter().filter(|it| it.severity == Severity::Error);
        errors.cloned().collect::<Vec<_>>()
    };
    assert!(errors(&all).len() >= 3, "{all}");
    assert_eq!(errors(&found), errors(&all));
}

#[test]
fn reviews_say_nothing_of_what_other_namespaces_have_or_lack() {
    let mut snapshot = cluster();
    put_secret(&mut snapshot, secret("a", "there", &[]));
    put_ingress(
        &mut snapshot,
        of("a", "own", "/app", &[("auth-tls-secret", "b/mine"), ("auth-secret", "a/there")]),
    );
    let options = options();
    let mut translator = Translator::new(options.clone());
    let served = translator.update(&snapshot).configuration;
    let ask = |secret: &str| {
        let asked = of(
            "b",
            "asks",
            "/b",
            &[("auth-tls-secret", secret), ("auth-type", "basic"), ("auth-secret", secret)],
        );
        let said = review(&asked, &snapshot, &served, &options);
        (said.refusal, said.warnings, needs::missing(&asked, &snapshot, &options))
    };
    assert_eq!(ask("a/there"), ask("a/there"));
    let same = |text: (Option<String>, Vec<String>, Vec<String>)| {
        format!("{text:?}").replace("nope", "there")
    };
    assert_eq!(same(ask("a/there")), same(ask("a/nope")));
    let twice = review(&of("b", "asks", "/app", &[]), &snapshot, &served, &options).refusal;
    assert!(
        twice
            .is_some_and(|refusal| refusal.contains("already defined") && !refusal.contains("own"))
    );
    let mine = objects::Reference::Secret(key("b", "mine"));
    assert!(needs::lost(&mine, &snapshot, translator.references(), &options).is_empty());
}

#[test]
fn a_route_of_nobody_is_nobodys() {
    let (configuration, _) = with(&[], &[of("a", "own", "/app", &[])]);
    let root = location(&configuration, "shop.test", "/", PathKind::Prefix).expect("there is one");
    assert!(matches!(root.backend, Backend::NotFound));
}

#[test]
fn who_adds_the_path_root_to_a_host_does_not_take_its_app_root_away() {
    let mut owner = of("a", "own", "/", &[("app-root", "/welcome")]);
    for rule in &mut owner.rules {
        rule.paths = Some(Vec::new());
    }
    let root = |ingresses: &[Ingress]| shop(&with(&[], ingresses).0).app_root.clone();
    let alone = root(std::slice::from_ref(&owner));
    assert!(alone.is_some());
    assert_eq!(root(&[owner, of("b", "other", "/", &[])]), alone);
}

#[test]
fn who_waits_for_room_is_let_in_once_it_asks_for_less() {
    let budget = "hosts=3".parse().expect("a budget");
    let options = || Options { namespace_budget: budget, ..Options::default() };
    let of_hosts = |name: &str, hosts: &[&str]| {
        let mut made = simple("a", name, "shop.test", "/", "s");
        let rule = made.rules[0].clone();
        let with =
            |host: &&str| objects::IngressRule { host: Some((*host).into()), ..rule.clone() };
        made.rules = hosts.iter().map(with).collect();
        made
    };
    let mut snapshot = cluster();
    let mut translator = Translator::new(options());
    let mut served = |snapshot: &Snapshot| {
        let found = translator.update(snapshot);
        served_hosts(&found.configuration).contains(&"one.test".to_owned())
    };
    put_ingress(&mut snapshot, of_hosts("young", &["one.test", "two.test"]));
    assert!(served(&snapshot));
    let mut old = of_hosts("old", &["three.test", "four.test"]);
    old.meta.created = -1;
    put_ingress(&mut snapshot, old);
    assert!(!served(&snapshot), "the older one leaves too little");
    put_ingress(&mut snapshot, of_hosts("young", &["one.test"]));
    assert!(served(&snapshot), "now there is enough");
}

/// What answers a request to shop.test: a location by path, kind and namespace, or the redirect to a folder.
fn answer(configuration: &Configuration, path: &str) -> String {
    let server = shop(configuration);
    let canonical = route::path::canonical(path.as_bytes()).expect("a valid path");
    let found = route::Locations::compile(server).find(&canonical, &model::Steps::default());
    let (index, what) = match found {
        route::Found::Location { index } => (index, ""),
        route::Found::AddSlash { index } => (index, "301 "),
        other => panic!("{path}: {other:?}"),
    };
    let location = &server.locations[index];
    let whose = location.origin.as_deref().map_or("nobody", |origin| &*origin.name);
    let what = if matches!(location.backend, Backend::Denied(_)) && what.is_empty() {
        "503 "
    } else {
        what
    };
    format!("{what}{} {:?} of {whose}", location.path, location.kind)
}

#[test]
fn who_adds_what_is_below_a_path_brings_its_redirect_and_opens_nothing() {
    let denied = [("auth-url", "ftp://nobody")];
    let root = of("a", "root", "/", &denied);
    let mut exact = of("a", "own", "/app/", &denied);
    exact.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = PathType::Exact);
    let alone = with(&[], &[root.clone(), exact.clone()]).0;
    let both = with(&[], &[root, exact, of("b", "other", "/app/", &[])]).0;
    let paths = ["/", "/app", "/app/", "/app/x", "/apple"];
    let of_all = |configuration| paths.map(|path| answer(configuration, path));
    assert_eq!(
        of_all(&alone),
        [
            "503 / Prefix of root",
            "503 / Prefix of root",
            "503 /app/ Exact of own",
            "503 / Prefix of root",
            "503 / Prefix of root"
        ]
    );
    // The one request whose 503 is gone: it is led to where it is 503 again.
    assert_eq!(
        of_all(&both),
        [
            "503 / Prefix of root",
            "301 /app/ Exact of own",
            "503 /app/ Exact of own",
            "/app/ Prefix of other",
            "503 / Prefix of root"
        ]
    );
}

#[test]
fn a_path_that_its_owner_has_already_takes_nothing_from_the_owners_other_ingresses() {
    let mut first = of("a", "first", "/", &[]);
    first.meta.created = -1;
    first.default_backend = Some(Box::new(backend("s", Some(PortRef::Number(80)))));
    first.rules[0].paths = Some(Vec::new());
    let mut own = of("a", "own", "/", &[]);
    own.meta.created = 2;
    let theirs = of("b", "other", "/", &[]);
    let alone = with(&[], &[first.clone(), own.clone()]).0;
    let (both, problems) = with(&[], &[first, theirs, own]);
    assert_eq!(answer(&alone, "/x"), "/ Prefix of own");
    assert_eq!(answer(&both, "/x"), "/ Prefix of own", "{problems}");
    assert!(
        problems.contains("Ingress b/other") && !problems.contains("Ingress a/own:"),
        "{problems}"
    );
}

#[test]
fn a_path_that_would_take_requests_from_an_older_one_takes_nothing_from_younger_ones_either() {
    let default = || Some(Box::new(backend("t", Some(PortRef::Number(80)))));
    let mut first = of("a", "first", "/", &[]);
    (first.meta.created, first.default_backend) = (-1, default());
    first.rules[0].paths = Some(Vec::new());
    let mut own = of("a", "own", "/", &[("use-regex", "true")]);
    (own.meta.created, own.default_backend) = (2, default());
    let mut theirs = of("b", "other", "/", &[]);
    theirs.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = PathType::Exact);
    let alone = with(&[], &[first.clone(), own.clone()]).0;
    let (both, problems) = with(&[], &[first, theirs, own]);
    assert_eq!(answer(&alone, "/x"), "/ Prefix of own");
    assert_eq!(answer(&both, "/x"), "/ Prefix of own", "{problems}");
    assert_eq!(as_a_sees(&both).locations, as_a_sees(&alone).locations);
    let said = "Ingress b/other: spec.rules: path / (Exact)";
    assert!(
        problems.contains(said) && !problems.contains("Ingress a/own: spec.rules"),
        "{problems}"
    );
}

/// With the path as written, and nothing below it.
fn exactly(mut made: Ingress) -> Ingress {
    made.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = PathType::Exact);
    made
}

/// On such a host an Exact `/` matches whatever begins so, which is everything; the root that each host has goes
/// before.
#[test]
fn an_exact_root_takes_no_default_backend_on_a_host_of_regular_expressions() {
    let regex = ("use-regex", "true");
    let mut app = of("a", "app", "/app", &[regex]);
    app.meta.created = 0;
    let mut theirs = exactly(of("b", "other", "/", &[]));
    theirs.meta.created = 1;
    // What is left is nobody's: the host's own root has it, as in ingress-nginx.
    let (free, problems) = with(&[], &[app.clone(), theirs.clone()]);
    assert!(shop(&free).regex);
    assert_eq!(answer(&free, "/x"), "/ Prefix of app", "{problems}");
    assert_eq!(answer(&free, "/app"), "/app Prefix of app", "{problems}");
    // The owner's first Ingress has it by its default backend, wherever the regular expressions are written.
    let mut first = of("a", "first", "/", &[]);
    (first.meta.created, first.rules[0].paths) = (-1, Some(Vec::new()));
    first.default_backend = Some(Box::new(backend("t", Some(PortRef::Number(80)))));
    let late = {
        let mut late = app.clone();
        late.meta.created = 5;
        late
    };
    let mut bad = first.clone();
    annotate(&mut bad, "client-body-buffer-size", "much");
    let mut patterns = first.clone();
    annotate(&mut patterns, "use-regex", "true");
    for (name, set) in [
        ("older", vec![first.clone(), app.clone()]),
        ("younger", vec![first.clone(), late.clone()]),
        ("of the default backend alone", vec![patterns.clone()]),
        ("and a mistake", vec![bad, late.clone()]),
    ] {
        let alone = with(&[], &set).0;
        let (both, problems) = with(&[], &[set, vec![theirs.clone()]].concat());
        assert!(shop(&both).regex, "{name}");
        for path in ["/", "/x", "/app", "/app/x"] {
            assert_eq!(answer(&both, path), answer(&alone, path), "{name}: {path}: {problems}");
        }
        assert!(
            problems.contains("Ingress b/other: spec.rules: path / (Exact)"),
            "{name}: {problems}"
        );
    }
}

#[test]
fn a_config_map_whose_values_each_request_fills_in_has_few_entries() {
    let told = |number: usize| {
        let names: Vec<String> = (0..number).map(|entry| format!("X-{entry}")).collect();
        let data: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "$host")).collect();
        let mut snapshot = cluster();
        put_config_map(&mut snapshot, config_map("a", "many", &data));
        put_service(&mut snapshot, service("a", "s", 80));
        let mut asks = simple("a", "asks", "asks.test", "/", "s");
        annotate(&mut asks, "auth-url", "http://s.a.svc/");
        annotate(&mut asks, "auth-proxy-set-headers", "a/many");
        let mut script = simple("a", "script", "script.test", "/", "s");
        annotate(&mut script, "backend-protocol", "FCGI");
        annotate(&mut script, "fastcgi-params-configmap", "a/many");
        put_ingress(&mut snapshot, asks);
        put_ingress(&mut snapshot, script);
        let found = translate(&snapshot, &options());
        let of = |host| location(&found.configuration, host, "/", PathKind::Prefix);
        let is_closed =
            |host| of(host).is_none_or(|location| matches!(location.backend, Backend::Denied(_)));
        let told = found.problems.to_string().matches("entries, more than 256").count();
        (is_closed("asks.test"), is_closed("script.test"), told)
    };
    assert_eq!((told(256), told(257)), ((false, false, 0), (true, true, 2)));
}

#[test]
fn what_annotations_name_counts_for_each_ingress_that_names_it() {
    let options =
        Options { namespace_budget: "named-bytes=250".parse().expect("a budget"), ..options() };
    let mut snapshot = cluster();
    let users = format!("u:{{PLAIN}}{}", "x".repeat(92));
    for namespace in ["a", "b"] {
        put_secret(&mut snapshot, secret(namespace, "users", &[("auth", &users)]));
        put_config_map(&mut snapshot, config_map(namespace, "told", &[("X", &"y".repeat(79))]));
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    let put = |snapshot: &mut Snapshot, name: &str, created: i64, annotations: &[(&str, &str)]| {
        let mut made = simple("a", name, &format!("{name}.test"), "/", "s");
        made.meta.created = created;
        annotations.iter().for_each(|(name, value)| annotate(&mut made, name, value));
        put_ingress(snapshot, made);
    };
    let asks = |users| [("auth-type", "basic"), ("auth-secret", users)];
    put(&mut snapshot, "one", 1, &asks("users"));
    put(&mut snapshot, "two", 2, &asks("a/users"));
    put(&mut snapshot, "three", 3, &asks("users"));
    // What it may not read is not its own, whatever it takes.
    put(&mut snapshot, "four", 4, &asks("b/users"));
    let mut translator = Translator::new(options.clone());
    let hosts = |translator: &mut Translator, snapshot: &Snapshot| {
        let found = translator.update(snapshot);
        let anew = translate(snapshot, &options);
        assert_eq!(found.configuration, anew.configuration);
        assert_eq!(found.problems, anew.problems);
        (served_hosts(&found.configuration).join(" "), found.problems.to_string())
    };
    let (served, problems) = hosts(&mut translator, &snapshot);
    assert_eq!(served, "_ four.test one.test two.test", "{problems}");
    assert!(problems.contains("leave too little of the named-bytes"), "{problems}");
    // A Secret that shrinks, and a ConfigMap.
    put_secret(&mut snapshot, secret("a", "users", &[("auth", "u:{PLAIN}x")]));
    assert_eq!(hosts(&mut translator, &snapshot).0, "_ four.test one.test three.test two.test");
    let told = [("auth-url", "http://s.a.svc/"), ("auth-proxy-set-headers", "a/told")];
    for name in ["five", "six", "seven"] {
        put(&mut snapshot, name, 5, &told);
    }
    let (served, problems) = hosts(&mut translator, &snapshot);
    assert_eq!(served.split(' ').count(), 7, "two of three fit: {served}: {problems}");
    put_config_map(&mut snapshot, config_map("a", "told", &[("X", "y")]));
    assert_eq!(hosts(&mut translator, &snapshot).0.split(' ').count(), 8);
}

#[test]
fn passwords_are_read_and_kept_once_for_all_ingresses_that_name_their_secret() {
    use std::sync::Arc;
    let mut snapshot = cluster();
    put_service(&mut snapshot, service("a", "s", 80));
    let forms = [("one", "auth-file"), ("two", "auth-file"), ("map", "auth-map")];
    for (name, form) in forms {
        let mut made = simple("a", name, &format!("{name}.test"), "/", "s");
        let asks = [("auth-type", "basic"), ("auth-secret", "users"), ("auth-secret-type", form)];
        asks.iter().for_each(|(name, value)| annotate(&mut made, name, value));
        put_ingress(&mut snapshot, made);
    }
    let mut translator = Translator::new(Options::default());
    let mut users = |snapshot: &_| {
        let translation = translator.update(snapshot);
        forms.map(|(name, _)| {
            let host = &translation.configuration.servers[&ServerName::new(format!("{name}.test"))];
            let policy = &host.locations[0].policy;
            Arc::clone(&policy.auth_basic.as_ref().expect("a password is asked for").users)
        })
    };
    put_secret(&mut snapshot, secret("a", "users", &[("auth", "u:{PLAIN}x")]));
    let [one, two, map] = users(&snapshot);
    assert!(Arc::ptr_eq(&one, &two) && one.0.contains_key(&b"u"[..]));
    assert!(!Arc::ptr_eq(&one, &map) && map.0.is_empty(), "another form has other users");
    put_secret(&mut snapshot, secret("a", "users", &[("auth", "v:{PLAIN}x")]));
    let [new, newer, _] = users(&snapshot);
    assert!(Arc::ptr_eq(&new, &newer) && new.0.contains_key(&b"v"[..]));
    // What is not served any more is not kept.
    drop(two);
    assert_eq!(Arc::strong_count(&one), 1);
}

#[test]
fn what_an_ingress_asks_for_is_shared_by_its_paths_however_many_and_long() {
    use std::sync::Arc;
    let long = "$host/x".repeat(200);
    let url = format!("http://s.a.svc/{long}");
    let mut made = of("a", "own", "/one", &[]);
    let other = path("/two", PathType::Prefix, backend("s", Some(PortRef::Number(80))));
    made.rules[0].paths.iter_mut().for_each(|paths| paths.push(other.clone()));
    for (name, value) in [
        ("rewrite-target", "/x"),
        ("auth-url", url.as_str()),
        ("mirror-target", &url),
        ("upstream-vhost", &long),
        ("enable-cors", "true"),
        ("affinity", "cookie"),
        ("auth-type", "basic"),
        ("auth-secret", "ca"),
        ("auth-secret-type", "auth-map"),
        ("backend-protocol", "HTTPS"),
        ("proxy-ssl-secret", "a/ca"),
        ("fastcgi-params-configmap", "headers"),
        ("custom-headers", "a/headers"),
        ("whitelist-source-range", "10.0.0.0/8,192.0.2.0/24"),
    ] {
        annotate(&mut made, name, value);
    }
    let (found, problems) = with(&[("global-allowed-response-headers", "X-One")], &[made]);
    let policy = |at: &str| {
        let server = &found.servers[&ServerName::new("shop.test")];
        let mut all = server.locations.iter();
        let found =
            all.find(|one| one.path.starts_with(at)).unwrap_or_else(|| panic!("{problems}"));
        found.policy.clone()
    };
    let (one, two) = (policy("/one"), policy("/two"));
    assert!(
        !Arc::ptr_eq(&one, &two) && one.rewrite != two.rewrite,
        "each has a pattern of its own"
    );
    fn same<T>(one: &Option<Arc<T>>, two: &Option<Arc<T>>) -> bool {
        one.as_ref().zip(two.as_ref()).is_some_and(|(one, two)| Arc::ptr_eq(one, two))
    }
    assert!(same(&one.auth_external, &two.auth_external), "{problems}");
    assert!(same(&one.auth_basic, &two.auth_basic), "{problems}");
    assert!(same(&one.mirror, &two.mirror), "{problems}");
    assert!(same(&one.cors, &two.cors), "{problems}");
    assert!(same(&one.balance.affinity, &two.balance.affinity), "{problems}");
    let (own, other) = (&one.upstream_tls.authorities, &two.upstream_tls.authorities);
    assert!(!own.is_empty() && Arc::ptr_eq(own, other), "{problems}");
    let (own, other) = (&one.fastcgi.params, &two.fastcgi.params);
    assert!(!own.is_empty() && Arc::ptr_eq(own, other), "{problems}");
    let (own, other) = (&one.custom_headers.0, &two.custom_headers.0);
    assert!(!own.is_empty() && Arc::ptr_eq(own, other), "{problems}");
    let texts =
        [&one, &two].map(|one| one.upstream_host.as_ref().expect("it is asked for").parts());
    assert!(std::ptr::eq(texts[0], texts[1]));
    let allowed =
        [&one, &two].map(|one| one.access.allow.as_ref().and_then(|all| all.iter().next()));
    assert!(allowed[0].zip(allowed[1]).is_some_and(|(one, two)| std::ptr::eq(one, two)));
}
