//! Guards that snippets have: what texts that nobody understands may guard, and what of a host's server annotations
//! hide.

use crate::builders::*;
use model::Configuration;
use model::policy::Policy;
use model::snippet::{InputAction, MoreAction, Satisfy, Settings};
use objects::Ingress;
use translate::{Options, translate};

fn translated(data: &[(&str, &str)], ingresses: &[Ingress]) -> (Configuration, String) {
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("x", "settings", &[&allowed[..], data].concat()));
    for namespace in ["a", "b"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    ingresses.iter().for_each(|ingress| put_ingress(&mut snapshot, ingress.clone()));
    let config_map = Some(key("x", "settings"));
    let found = translate(&snapshot, &Options { config_map, raw: false, ..Options::default() });
    (found.configuration, found.problems.to_string())
}

/// An Ingress of shop.test, those of `b` younger.
fn of(namespace: &str, name: &str, at: &str, annotations: &[(&str, &str)]) -> Ingress {
    let mut made = simple(namespace, name, "shop.test", at, "s");
    made.meta.created = i64::from(namespace == "b");
    annotations.iter().for_each(|(name, value)| annotate(&mut made, name, value));
    made
}

fn policy<'c>(configuration: &'c Configuration, at: &str) -> &'c Policy {
    let server = configuration.servers.iter().find(|(name, _)| name.as_str() == "shop.test");
    let (_, server) = server.expect("the host");
    let location = server.locations.iter().find(|location| location.path == at);
    &location.expect("its path").policy
}

fn settings(configuration: &Configuration, at: &str) -> Settings {
    policy(configuration, at).snippet.as_ref().map(|own| own.settings.clone()).unwrap_or_default()
}

#[test]
fn of_header_sections_the_operator_has_the_last_word_but_for_what_is_further_in() {
    let all =
        "more_set_headers 'X-Who: op'; more_clear_headers X-Clr; more_clear_input_headers X-User;";
    let own = "more_set_headers 'X-Who: tenant' 'X-Clr: tenant'; more_clear_headers 'X-*';
        more_set_input_headers 'X-User: root'; if ($arg_x) { more_set_headers 'X-Who: if'; }";
    let shop = of("a", "shop", "/", &[("configuration-snippet", own)]);
    let (found, problems) = translated(&[("location-snippet", all)], &[shop]);
    let headers = settings(&found, "/").headers;
    let said = headers.more.0.iter().map(|more| match &more.action {
        MoreAction::Set(name, value) | MoreAction::Append(name, value) => {
            format!("{name}: {}", value.literal().unwrap_or_default())
        }
        MoreAction::Clear(pattern) => format!("no {}", pattern.name),
    });
    let expected = ["X-Who: tenant", "X-Clr: tenant", "no x-", "X-Who: op", "no x-clr"];
    assert_eq!(said.collect::<Vec<_>>(), expected, "{problems}");
    let last = headers.input.0.last().map(|input| &input.action);
    assert!(matches!(last, Some(InputAction::Clear(pattern)) if pattern.name == "x-user"));
    assert_eq!(headers.input.0.len(), 2);
    let branches = policy(&found, "/").snippet.as_ref().map(|own| own.branches.len());
    assert_eq!(branches, Some(1));
}

#[test]
fn a_text_that_may_say_who_a_client_is_or_what_upstreams_believe_closes_everything_at_a_start() {
    let shop = of("a", "shop", "/", &[]);
    for (name, text, closes) in [
        ("http-snippet", "set_real_ip_from 10.0.0.0/8; real_ip_recusive on;", true),
        ("http-snippet", "real_ip_header X-Forwarded-For; real_ip_recusive on;", true),
        ("location-snippet", "more_clear_input_headers X-User; sett $a 1;", true),
        ("location-snippet", "more_set_input_headers 'X-User: '; sett $a 1;", true),
        ("location-snippet", "proxy_set_header X-User ''; sett $a 1;", true),
        ("location-snippet", "grpc_set_header X-User ''; sett $a 1;", true),
        ("http-snippet", "server { listen 8085; return 403; sett $a 1; }", true),
        ("http-snippet", "server { listen 8085; sett $a 1; if ($a) { } }", true),
        ("http-snippet", "access_log off if=$a; sett $a 1;", false),
        ("location-snippet", "sett $a 1;", false),
    ] {
        let (found, problems) = translated(&[(name, text)], std::slice::from_ref(&shop));
        assert_eq!(is_denied(&found, "shop.test", "/"), closes, "{name}: {text}: {problems}");
    }
}

#[test]
fn satisfy_of_an_annotation_hides_that_of_a_server_others_are_in_too() {
    let server = [("server-snippet", "satisfy any;")];
    let said = [&server[..], &[("satisfy", "all")]].concat();
    let silent = [&server[..], &[("satisfy", "either")]].concat();
    let other = of("b", "other", "/b", &[]);
    for (annotations, expected) in
        [(said, None), (silent, Some(Satisfy::Any)), (server.to_vec(), Some(Satisfy::Any))]
    {
        let (found, problems) =
            translated(&[], &[of("a", "own", "/app", &annotations), other.clone()]);
        assert_eq!(settings(&found, "/app").access.satisfy, expected, "{annotations:?} {problems}");
        assert_eq!(settings(&found, "/b").access.satisfy, None);
    }
}

#[test]
fn lists_of_an_annotation_stand_in_place_of_a_servers_rules_that_others_have_too() {
    let rules = [("server-snippet", "deny all; limit_req_dry_run on;")];
    let own = of("a", "own", "/app", &rules);
    let lists = of("a", "lists", "/lists", &[("denylist-source-range", "192.0.2.0/24")]);
    let (found, problems) = translated(&[], &[own, lists, of("b", "other", "/b", &[])]);
    let rules = |at| settings(&found, at).access.rules.len();
    assert_eq!((rules("/app"), rules("/lists")), (1, 0), "{problems}");
    assert_eq!(settings(&found, "/lists").limits.request_dry_run, Some(true));
}

#[test]
fn who_excepts_methods_does_so_besides_the_operator() {
    let data = [("location-snippet", "limit_except GET { deny all; }")];
    let own = [("configuration-snippet", "limit_except GET POST { deny all; }")];
    let (found, problems) = translated(&data, &[of("a", "own", "/app", &own)]);
    let snippet = policy(&found, "/app").snippet.as_ref().expect(&problems);
    let free: Vec<_> = snippet.limit_except.iter().map(|except| except.methods.len()).collect();
    assert_eq!(free, [2, 3], "GET and HEAD, of the operator, and then POST");
}

#[test]
fn a_location_of_a_tenant_stands_behind_what_the_operator_says_of_all() {
    let guard = "if ($http_x_bad) { return 402; } deny 192.0.2.1;";
    let own = [("configuration-snippet", "location /app/in { allow all; return 204; }")];
    let data = [("location-snippet", guard)];
    let (found, problems) = translated(&data, &[of("a", "own", "/app", &own)]);
    let snippet = policy(&found, "/app").snippet.as_ref().expect(&problems);
    let within = &snippet.locations[0].scope;
    let access = &within.settings.access;
    assert_eq!((access.before.len(), access.rules.len()), (1, 1), "{problems}");
    assert_eq!((within.program.steps.len(), snippet.program.steps.len()), (2, 1));
}

#[test]
fn what_an_ingress_sets_and_the_operator_asks_for_before_is_told() {
    let said = |location: &str, own: &str| {
        let data =
            [("http-snippet", "map '' $closed { default 0; }"), ("location-snippet", location)];
        let own = [("configuration-snippet", own)];
        translated(&data, &[of("a", "own", "/", &own)]).1
    };
    let told = "sets $closed, which a condition of the ConfigMap's location-snippet asks for";
    for (location, own, is_told) in [
        ("if ($closed) { return 403; }", "set $closed 1;", true),
        ("if ($closed = 1) { return 403; }", "if ($arg_a) { set $closed 1; }", true),
        ("if ($arg_a = $closed) { return 403; }", "set $closed 1;", true),
        ("if ($closed) { return 403; }", "set $other 1;", false),
        ("if ($arg_a) { return 403; }", "set $closed 1;", false),
    ] {
        let problems = said(location, own);
        assert_eq!(problems.contains(told), is_told, "{location} {own}: {problems}");
    }
}
