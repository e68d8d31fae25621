//! Routes that are refused, and routes of two kinds that want one host: nobody comes past a guard by what becomes of
//! them.

use crate::builders::*;
use model::{Backend, Rule};
use objects::{Kind, Snapshot};
use translate::gateway::RouteStatus;
use translate::{Options, Translation, Translator, translate};

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: edge, name: web}
spec:
  gatewayClassName: fairway
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: a}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: wide, creationTimestamp: '2026-01-01T00:00:00Z'}
spec:
  parentRefs: [{name: web, namespace: edge}]
  hostnames: [a.test]
  rules: [{backendRefs: [{name: a, port: 80}]}]
---
";

/// A route of a host with these rules.
fn with_rules([kind, namespace, name, day]: [&str; 4], rules: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{namespace: {namespace}, name: {name}, creationTimestamp: '2026-01-0{day}T00:00:00Z'}}
spec:
  parentRefs: [{{name: web, namespace: edge}}]
  hostnames: [a.test]
  rules: [{rules}]
---
"
    )
}

const GUARD: &str =
    "{type: ExternalAuth, externalAuth: {protocol: HTTP, backendRef: {name: a, port: 80}}}";
const BACKEND: &str = "backendRefs: [{name: a, port: 80}]";

/// The rules for a path of the host, each with where its first share leads and whether somebody is asked before.
fn at(made: &Translation, path: &str) -> Vec<(Backend, bool)> {
    let mut hosts = made.configuration.routes.iter();
    let (_, host) = hosts.find(|(key, _)| key.host.as_str() == "a.test").expect("the host");
    let rules = host.rules.iter().filter(|rule| rule.matches.path == path);
    let leads = |rule: &Rule| {
        let location = &host.locations[rule.shares[0].location];
        let does = location.policy.route.as_ref().expect("a route's");
        (location.backend.clone(), does.guard.is_some())
    };
    rules.map(leads).collect()
}

fn status<'t>(made: &'t Translation, kind: Kind, namespace: &str, name: &str) -> &'t RouteStatus {
    made.statuses.routes.get(&(kind, key(namespace, name))).expect("it is told")
}

/// Whether the only parent of a route accepts it, and the reason.
fn accepted(status: &RouteStatus) -> (bool, &'static str) {
    let conditions = &status.parents[0].1;
    let accepted = conditions.iter().find(|one| one.kind == "Accepted").expect("it is told");
    (accepted.holds, accepted.reason)
}

fn attached(made: &Translation) -> u32 {
    made.statuses.gateways.values().next().expect("a Gateway").listeners[0].attached
}

#[test]
fn a_route_that_is_refused_keeps_what_it_guards_closed() {
    let path = "matches: [{path: {value: /admin}}]";
    for filters in [
        format!(
            "{GUARD}, {{type: RequestHeaderModifier, requestHeaderModifier: {{set: [{{name: Host, value: x}}]}}}}"
        ),
        format!("{GUARD}, {GUARD}"),
        "{type: ExtensionRef, extensionRef: {group: g.test, kind: Any, name: a}}".to_owned(),
    ] {
        let rule = format!("{{{path}, filters: [{filters}], {BACKEND}}}");
        let text = [GATEWAY, &with_rules(["HTTPRoute", "shop", "admin", "2"], &rule)].concat();
        let made = translate(&of_gateways(&text), &Options::default());
        let told = accepted(status(&made, Kind::HttpRoute, "shop", "admin"));
        assert!(!told.0, "{filters}: {told:?}");
        let found = at(&made, "/admin");
        assert!(matches!(found[..], [(Backend::Broken(_), false)]), "{filters}: {found:?}");
        assert!(matches!(at(&made, "/")[..], [(Backend::Upstream(_), false)]), "{filters}");
        assert_eq!(attached(&made), 1, "{filters}: what is refused is not attached");
    }
}

#[test]
fn a_rule_that_is_refused_closes_its_own_places_and_no_others() {
    let rules = format!(
        "{{matches: [{{path: {{value: /admin}}}}], filters: [{GUARD}, {GUARD}], {BACKEND}}}, \
         {{matches: [{{path: {{value: /guarded}}}}], filters: [{GUARD}], {BACKEND}}}, \
         {{matches: [{{path: {{value: /else}}}}], filters: [{{type: ExtensionRef}}], {BACKEND}}}"
    );
    let text = [GATEWAY, &with_rules(["HTTPRoute", "shop", "some", "2"], &rules)].concat();
    let made = translate(&of_gateways(&text), &Options::default());
    let status = status(&made, Kind::HttpRoute, "shop", "some");
    assert_eq!(accepted(status), (true, "Accepted"));
    for (path, guarded) in [("/admin", false), ("/guarded", true), ("/else", false)] {
        let found = at(&made, path);
        let is_so = match found[..] {
            [(Backend::Broken(_), false)] => !guarded,
            [(Backend::Upstream(_), true)] => guarded,
            _ => false,
        };
        assert!(is_so, "{path}: {found:?}");
    }
    let partial = status.parents[0].1.iter().find(|one| one.kind == "PartiallyInvalid");
    let partial = partial.expect("it is told");
    assert!(partial.holds && partial.message.starts_with("Dropped Rule: spec.rules[0]"));
    assert!(partial.message.contains("spec.rules[2].filters[0]"), "{}", partial.message);
    assert!(!partial.message.contains("spec.rules[1]"), "{}", partial.message);
    assert_eq!(attached(&made), 2);
}

#[test]
fn whose_matches_cannot_be_read_is_closed_as_a_whole() {
    let rules = format!(
        "{{matches: [{{path: {{type: Glob, value: '/adm*'}}}}], filters: [{GUARD}], {BACKEND}}}, \
         {{matches: [{{path: {{value: /open}}}}], {BACKEND}}}"
    );
    let text = [GATEWAY, &with_rules(["HTTPRoute", "shop", "some", "2"], &rules)].concat();
    let made = translate(&of_gateways(&text), &Options::default());
    let told = accepted(status(&made, Kind::HttpRoute, "shop", "some"));
    assert_eq!(told, (false, "UnsupportedValue"));
    let found = at(&made, "/open");
    assert!(matches!(found[..], [(Backend::Broken(_), false)]), "{found:?}");
}

#[test]
fn one_expression_that_is_none_leaves_the_other_matches_of_its_rule_behind_their_guard() {
    let matches = "[{path: {value: /admin}}, {path: {type: RegularExpression, value: '/adm(in'}}]";
    let rule = format!("{{matches: {matches}, filters: [{GUARD}], {BACKEND}}}");
    let text = [GATEWAY, &with_rules(["HTTPRoute", "shop", "admin", "2"], &rule)].concat();
    let made = translate(&of_gateways(&text), &Options::default());
    assert!(accepted(status(&made, Kind::HttpRoute, "shop", "admin")).0);
    let found = at(&made, "/admin");
    assert!(matches!(found[..], [(Backend::Upstream(_), true)]), "{found:?}");
}

/// The rules of a host in the order in which those of a tier are asked: text, kind, whether there is a guard.
fn leads(made: &Translation, host: &str) -> Vec<(String, &'static str, bool)> {
    let mut hosts = made.configuration.routes.iter();
    let (_, host) = hosts.find(|(key, _)| key.host.as_str() == host).expect("the host");
    let one = |rule: &Rule| {
        let location = &host.locations[rule.shares[0].location];
        let leads = match &location.backend {
            Backend::Upstream(_) => "open",
            Backend::Broken(_) => "broken",
            _ => "elsewhere",
        };
        let guard = location.policy.route.as_ref().is_some_and(|does| does.guard.is_some());
        let pattern = rule.matches.pattern.as_ref().map(|pattern| pattern.source().to_owned());
        (pattern.unwrap_or(rule.matches.path.clone()), leads, guard)
    };
    host.rules.iter().map(one).collect()
}

#[test]
fn a_guarded_expression_that_is_not_known_is_nobody_else_s() {
    let rule = |matches: &str, filters: &str| {
        let rule = format!("{{matches: [{matches}], filters: [{filters}], {BACKEND}}}");
        let text = [GATEWAY, &with_rules(["HTTPRoute", "shop", "admin", "2"], &rule)].concat();
        translate(&of_gateways(&text), &Options::default())
    };
    let told = |made: &Translation| accepted(status(made, Kind::HttpRoute, "shop", "admin"));
    let wide = ("/".to_owned(), "open", false);
    let path = r"{path: {type: RegularExpression, value: '/admin/\p{L}+'}}";
    let both = format!("{path}, {{path: {{value: /pay}}}}");
    let closed = (r"^(?s:/admin/.*)\z".to_owned(), "broken", false);
    let pay = ("/pay".to_owned(), "open", true);
    let made = rule(&both, GUARD);
    assert_eq!(leads(&made, "a.test"), [wide.clone(), closed.clone(), pay]);
    assert!(told(&made).0);
    // Whoever asks for nothing has nothing to keep, and what is none never was one.
    assert_eq!(leads(&rule(&both, ""), "a.test")[1], ("/pay".to_owned(), "open", false));
    let none = rule("{path: {type: RegularExpression, value: '/admin/(x'}}", GUARD);
    assert_eq!(leads(&none, "a.test"), std::slice::from_ref(&wide));
    // Where no match can be read, the route is refused, and so it is where all may be its guard's.
    let made = rule(path, GUARD);
    assert_eq!(leads(&made, "a.test"), [wide.clone(), closed.clone()]);
    assert_eq!(told(&made), (false, "UnsupportedValue"));
    // A filter that is not known may guard, too.
    let unread = "{type: ExtensionRef, extensionRef: {group: x.test, kind: Guard, name: it}}";
    let rules = format!(
        "{{matches: [{path}], filters: [{unread}], {BACKEND}}}, {{matches: [{{path: {{value: /}}}}], {BACKEND}}}"
    );
    let text = [GATEWAY, &with_rules(["HTTPRoute", "shop", "admin", "2"], &rules)].concat();
    let made = translate(&of_gateways(&text), &Options::default());
    assert!(leads(&made, "a.test").contains(&closed), "{:?}", leads(&made, "a.test"));
    let all = r"{path: {type: RegularExpression, value: '/(?|a|b)'}}, {path: {value: /pay}}";
    let made = rule(all, GUARD);
    let shut = |text: &str| (text.to_owned(), "broken", false);
    assert_eq!(leads(&made, "a.test"), [wide.clone(), shut("/"), shut("/pay")]);
    assert_eq!(told(&made), (false, "UnsupportedValue"));
    // A value may be any.
    let value = r"{headers: [{type: RegularExpression, name: x-role, value: '\p{L}+'}]}";
    let made = rule(&format!("{value}, {{path: {{value: /pay}}}}"), GUARD);
    assert_eq!(leads(&made, "a.test")[0], shut("/"), "it is asked before what asks for less");
    let hosts = made.configuration.routes.values();
    let mut rules = hosts.flat_map(|host| &host.rules);
    let asked = rules.find_map(|rule| rule.matches.headers.first()).expect("it is asked for");
    assert!(matches!(&asked.1, model::ValueMatch::Pattern { pattern } if pattern.is_match("a")));
}

#[test]
fn whoever_gives_way_keeps_what_is_guarded_closed() {
    let rule = format!(
        "{{filters: [{GUARD}], {BACKEND}}}, {{matches: [{{path: {{value: /x}}}}], {BACKEND}}}"
    );
    let admin = with_rules(["HTTPRoute", "shop", "admin", "2"], &rule);
    let calls =
        "{matches: [{method: {service: none, method: none}}], backendRefs: [{name: a, port: 80}]}";
    let calls = with_rules(["GRPCRoute", "bank", "old", "1"], calls);
    let all = [GATEWAY, &admin, &calls].concat();
    let all = all.replacen("[a.test]", "['*.test']", 1);
    let made = translate(&of_gateways(&all), &Options::default());
    let found = leads(&made, "a.test");
    let broken = |path: &str| (path.to_owned(), "broken", false);
    assert_eq!(found[1..], [broken("/"), broken("/x")]);
    assert_eq!(found[0].0, "/none/none");
    let host = made.configuration.routes.values().find(|host| host.name.as_str() == "a.test");
    assert_eq!(host.expect("it is there").tiers, [1], "it is behind all that the other one has");
    assert_eq!(accepted(status(&made, Kind::HttpRoute, "shop", "admin")), (false, "Conflicted"));
    let last = host.expect("it is there").locations.last().expect("one is closed");
    let reason = format!("{:?}", last.backend);
    assert!(reason.contains("gives way to GRPCRoute bank/old"), "{reason}");
}

#[test]
fn of_both_kinds_of_routes_an_older_one_of_another_namespace_has_a_host() {
    let calls = |made: &Translation| {
        let hosts = made.configuration.routes.values();
        let rules = hosts.flat_map(|host| &host.rules);
        rules.filter(|rule| rule.matches.grpc.is_some()).count()
    };
    let all_calls = |namespace: &str, day: &str| {
        with_rules(["GRPCRoute", namespace, "calls", day], &format!("{{{BACKEND}}}"))
    };
    for (namespace, day, is_taken) in [
        ("bank", "2", false),
        ("shop", "2", true),
        // Of one age: the lesser text, in which `-` stands before `/`.
        ("shop-b", "1", true),
        ("shopping", "1", false),
    ] {
        let text = [GATEWAY, &all_calls(namespace, day)].concat();
        let snapshot = of_gateways(&text);
        let made = translate(&snapshot, &Options::default());
        let told = accepted(status(&made, Kind::GrpcRoute, namespace, "calls"));
        let reason = if is_taken { "Accepted" } else { "Conflicted" };
        assert_eq!(told, (is_taken, reason), "{namespace}");
        assert_eq!(calls(&made), usize::from(is_taken), "{namespace}");
        let is_older = accepted(status(&made, Kind::HttpRoute, "shop", "wide"));
        assert_eq!(is_older.0, namespace != "shop-b", "{namespace}: the other one gives way");
        let both = u32::from(namespace == "shop");
        assert_eq!(attached(&made), 1 + both, "{namespace}");
    }
}

#[test]
fn whoever_gave_way_has_the_host_once_the_older_one_is_gone() {
    let rule = format!("{{{BACKEND}}}");
    let text = [GATEWAY, &with_rules(["GRPCRoute", "bank", "calls", "2"], &rule)].concat();
    let both = of_gateways(&text);
    let mut without: Snapshot = both.clone();
    without.http_routes.remove(&(Kind::HttpRoute, key("shop", "wide")));
    let mut translator = Translator::new(Options::default());
    for (snapshot, is_taken) in [(&both, false), (&without, true), (&both, false)] {
        let (made, anew) = (translator.update(snapshot), translate(snapshot, &Options::default()));
        assert_eq!(accepted(status(&made, Kind::GrpcRoute, "bank", "calls")).0, is_taken);
        assert_eq!(made.configuration, anew.configuration);
        assert_eq!(made.statuses, anew.statuses);
        assert_eq!(made.problems.to_string(), anew.problems.to_string());
    }
}
