//! The cases of `tests/translate/<family>/<case>/`: what `in.yaml` means, against `model.yaml` and `problems.txt`.
//! `UPDATE=1` writes both anew; the difference is for review.

use model::policy::Policy;
use model::{Configuration, Global};
use objects::{ObjectKey, snapshot_of};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use translate::gateway::{Condition, Statuses};
use translate::{Options, Translator, translate};

/// Stands beside the objects of every case.
pub(crate) const CLASS: &str = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
    spec: {controller: k8s.io/ingress-nginx}\n";

#[test]
fn every_case_means_what_its_goldens_say() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in folders(&root()).iter().flat_map(|family| folders(family)) {
        count += 1;
        let text = fs::read_to_string(case.join("in.yaml")).expect("every case has in.yaml");
        let snapshot =
            snapshot_of([(Path::new("class.yaml"), CLASS), (Path::new("in.yaml"), text.as_str())]);
        let options = Options { gateway_addresses: pool(&case), ..options(&text) };
        let translation = translate(&snapshot, &options);
        let model = yaml(&translation.configuration);
        let told = statuses(&translation.statuses);
        let told = (!told.is_empty()).then_some(("statuses.txt", told));
        for (name, content) in
            [("model.yaml", model), ("problems.txt", translation.problems.to_string())]
                .into_iter()
                .chain(told)
        {
            if !is_golden(&case.join(name), &content) {
                wrong.push(format!("{}:\n{content}", case.join(name).display()));
            }
        }
    }
    assert!(count >= 12, "only {count} cases were found");
    assert!(
        wrong.is_empty(),
        "not as the goldens say (UPDATE=1 writes them anew):\n{}",
        wrong.join("\n")
    );
}

/// What becomes of the objects of a case one after another is what becomes of them at once, whichever comes last or
/// goes.
#[test]
fn an_object_of_the_gateway_api_that_comes_or_goes_changes_what_it_should() {
    let mut steps = 0;
    for case in folders(&root().join("gateway")) {
        let text = fs::read_to_string(case.join("in.yaml")).expect("every case has in.yaml");
        let documents: Vec<&str> = text.split("\n---\n").collect();
        let read = |left_out: Option<usize>| {
            let kept = documents.iter().enumerate().filter(|(place, _)| Some(*place) != left_out);
            let text = kept.map(|(_, text)| *text).collect::<Vec<_>>().join("\n---\n");
            snapshot_of([(Path::new("class.yaml"), CLASS), (Path::new("in.yaml"), text.as_str())])
        };
        let options = Options { gateway_addresses: pool(&case), ..options(&text) };
        let whole = translate(&read(None), &options);
        for (place, document) in documents.iter().enumerate() {
            // A Gateway may keep the address that it had, and files are remembered by their places.
            let is_of = |kind: &&str| document.contains(&format!("kind: {kind}\n"));
            if ["Gateway", "GatewayClass"].iter().any(is_of) {
                continue;
            }
            let mut translator = Translator::new(options.clone());
            let less = translator.update(&read(Some(place)));
            let whole_again = translator.update(&read(None));
            let at = || format!("{}: document {place}", case.display());
            assert_eq!(statuses(&whole_again.statuses), statuses(&whole.statuses), "{}", at());
            assert_eq!(whole_again.configuration, whole.configuration, "{}", at());
            let less_again = translator.update(&read(Some(place)));
            assert_eq!(statuses(&less_again.statuses), statuses(&less.statuses), "{}", at());
            steps += 1;
        }
    }
    assert!(steps > 100, "only {steps} objects");
}

/// Whatever a Gateway or a route asks for, nothing of it is served by the nginx engine, and each of them is told so:
/// in its status, and by a problem of its own.
#[test]
fn the_nginx_engine_serves_nothing_of_gateways_and_says_so_of_each_object() {
    let mut told = BTreeSet::new();
    for case in folders(&root().join("gateway")) {
        let text = fs::read_to_string(case.join("in.yaml")).expect("every case has in.yaml");
        let snapshot =
            snapshot_of([(Path::new("class.yaml"), CLASS), (Path::new("in.yaml"), text.as_str())]);
        let native = Options { gateway_addresses: pool(&case), ..options(&text) };
        let nginx = Options { raw: true, ..native.clone() };
        let (served, made) = (translate(&snapshot, &native).statuses, translate(&snapshot, &nginx));
        let (at, configuration) = (case.display(), &made.configuration);
        assert!(configuration.routes.is_empty() && configuration.tls_routes.is_empty(), "{at}");
        assert!(configuration.listeners.is_empty() && configuration.streams.is_empty(), "{at}");
        let problems: BTreeSet<_> =
            made.problems.iter().map(|one| one.origin.to_string()).collect();
        let all = &made.statuses;
        let routes = |all: &Statuses| {
            let both = all.routes.iter().chain(&all.stream_routes);
            both.map(|(id, one)| (id.clone(), one.parents.len())).collect::<Vec<_>>()
        };
        assert_eq!(routes(all), routes(&served), "{at}: every route of ours is told");
        assert!(all.gateways.keys().eq(served.gateways.keys()), "{at}: so is every Gateway");
        assert!(all.sets.keys().eq(served.sets.keys()), "{at}: so is every ListenerSet");
        let ours = all.gateways.iter().map(|(key, one)| ("Gateway", key, &one.conditions));
        let ours =
            ours.chain(all.sets.iter().map(|(key, one)| ("ListenerSet", key, &one.conditions)));
        let parents = |(kind, key), parents| (kind, key, parents);
        let of_routes =
            all.routes.iter().chain(&all.stream_routes).flat_map(|((kind, key), one)| {
                one.parents.iter().map(move |(_, all)| parents((kind.name(), key), all))
            });
        for (kind, key, conditions) in ours.chain(of_routes) {
            let accepted = conditions.iter().find(|one| one.kind == "Accepted");
            assert!(accepted.is_some_and(|one| !one.holds), "{at}: {kind} {}", key.name);
            let origin = format!("{kind} {}/{}", key.namespace, key.name);
            assert!(problems.contains(&origin), "{at}: no problem of {origin}: {problems:?}");
            told.insert(kind);
        }
        let of_sets = all.sets.values().flat_map(|one| &one.listeners);
        for one in all.gateways.values().flat_map(|one| &one.listeners).chain(of_sets) {
            assert_eq!(one.attached, 0, "{at}: nothing is attached to {}", one.name);
        }
        let reached = all.policies.values().any(|one| !one.ancestors.is_empty());
        assert!(!reached, "{at}: no policy has a Gateway");
    }
    let routes = ["GRPCRoute", "HTTPRoute", "TCPRoute", "TLSRoute", "UDPRoute"];
    let kinds = ["Gateway", "ListenerSet"].into_iter().chain(routes).collect();
    assert_eq!(told, kinds);
}

/// A route with this rule at a Gateway with so many listeners.
fn with_rule(listeners: usize, rule: &str) -> String {
    let head = "apiVersion: gateway.networking.k8s.io/v1\nkind";
    let listeners: String = (1..=listeners)
        .map(|port| format!("  - {{name: l{port}, protocol: HTTP, port: {port}}}\n"))
        .collect();
    format!(
        "{head}: GatewayClass\nmetadata: {{name: fairway}}\nspec: {{controllerName: fairway/gateway-controller}}\n\
         ---\n{head}: Gateway\nmetadata: {{namespace: shop, name: web}}\nspec:\n  gatewayClassName: fairway\n  listeners:\n\
         {listeners}---\n{head}: HTTPRoute\nmetadata: {{namespace: shop, name: all}}\nspec:\n  \
         parentRefs: [{{name: web}}]\n  rules:\n  - {rule}"
    )
}

/// What is made of it where Gateways have addresses of their own, and namespaces room: whether it is accepted.
fn is_accepted(listeners: usize, rule: &str) -> (bool, Configuration) {
    let text = with_rule(listeners, rule);
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let pool = vec!["192.0.2.8/32".parse().expect("a network")];
    let namespace_budget = "route-places=100000".parse().expect("a budget");
    let options = Options { gateway_addresses: pool, namespace_budget, ..options(&text) };
    let made = translate(&snapshot, &options);
    let status = made.statuses.routes.values().next().expect("a status");
    let accepted = &status.parents[0].1[0];
    assert_eq!(accepted.kind, "Accepted");
    (accepted.holds, made.configuration)
}

/// So many matches, with more of each.
fn matches(number: usize, more: &str) -> String {
    let all = (0..number).map(|index| format!("    - {{path: {{value: /{index}}}{more}}}\n"));
    format!("matches:\n{}", all.collect::<String>())
}

#[test]
fn a_route_that_answers_at_too_many_places_is_refused() {
    for (number, holds) in [(1024, true), (1025, false)] {
        let (accepted, made) = is_accepted(64, &matches(number, ""));
        assert_eq!(accepted, holds, "{number}");
        assert_eq!(made.routes.is_empty(), !holds);
        assert_eq!(made.listeners.len(), 64, "the Gateway is served all the same");
    }
}

/// What a place of a route does that asks for nothing.
fn usual_route() -> Option<Box<model::policy::RouteFilters>> {
    Some(Box::default())
}

#[test]
fn long_texts_count_for_each_place_that_has_them() {
    let header = format!(", headers: [{{name: x, value: {}}}]", "v".repeat(1024));
    for (number, holds) in [(2048, true), (2049, false)] {
        let (accepted, _) = is_accepted(1, &matches(number, &header));
        assert_eq!(accepted, holds, "{number} matches with long values");
    }
    for (fields, holds) in [(15, true), (16, false)] {
        let value = "v".repeat(4096);
        let set = (0..fields).map(|field| format!("{{name: x-{field}, value: {value}}}"));
        let set = set.collect::<Vec<_>>().join(", ");
        let filter = format!(
            "    filters: [{{type: RequestHeaderModifier, requestHeaderModifier: {{set: [{set}]}}}}]\n"
        );
        let (accepted, made) = is_accepted(1, &(matches(64, "") + &filter));
        assert_eq!(accepted, holds, "{fields} long fields");
        let places = || made.routes.values().flat_map(|host| &host.locations);
        let policies: BTreeSet<_> = places().map(|place| Arc::as_ptr(&place.policy)).collect();
        assert_eq!(policies.len(), 1, "all matches of a rule share one policy");
        let has_texts = |place: &Arc<model::Location>| place.policy.route != usual_route();
        assert_eq!(places().any(has_texts), holds, "what is closed has none of them");
    }
}

#[test]
fn all_places_of_a_redirect_by_prefix_share_a_policy_for_each_port() {
    let redirect = "    filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, \
                    replacePrefixMatch: /new}}}]\n";
    let (accepted, made) = is_accepted(3, &(matches(64, "") + redirect));
    assert!(accepted);
    let places: Vec<_> = made.routes.values().flat_map(|host| &host.locations).collect();
    let policies: BTreeSet<_> = places.iter().map(|place| Arc::as_ptr(&place.policy)).collect();
    assert_eq!((places.len(), policies.len()), (3 * 64, 3));
}

#[test]
fn every_family_has_a_case() {
    let folders: BTreeSet<String> = folders(&root())
        .iter()
        .filter_map(|family| Some(family.file_name()?.to_str()?.to_owned()))
        .collect();
    for row in translate::annotation_rows() {
        if let Some(family) = row.family {
            assert!(folders.contains(&family.replace('_', "-")), "no case of {family}");
        }
    }
}

/// The networks in `gateway-addresses.txt` of a case, if it has any.
pub(crate) fn pool(case: &Path) -> Vec<ipnet::IpNet> {
    let text = fs::read_to_string(case.join("gateway-addresses.txt")).unwrap_or_default();
    text.lines().map(|line| line.parse().expect("a network")).collect()
}

/// The flags for a case, by its text: ConfigMaps of ports are named where there are any.
pub(crate) fn options(text: &str) -> Options {
    let config_map = Some(ObjectKey::new("ingress-nginx", "ingress-nginx-controller"));
    let services = |name: &str| text.contains(name).then(|| ObjectKey::new("ingress-nginx", name));
    Options {
        config_map,
        tcp_services: services("tcp-services"),
        udp_services: services("udp-services"),
        passthrough: true,
        ..Options::default()
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/translate")
}

pub(crate) fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("a folder that can be read");
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn is_golden(path: &Path, content: &str) -> bool {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, content).expect("goldens can be written");
    }
    fs::read_to_string(path).is_ok_and(|golden| golden == content)
}

/// The Configuration without what is as it always is, so that a reader sees what the case is about.
#[expect(clippy::disallowed_methods, reason = "a case says what values become")]
fn yaml(configuration: &Configuration) -> String {
    let mut value = model::revealed(|| serde_json::to_value(configuration))
        .expect("a Configuration is plain data");
    let global = serde_json::to_value(Global::default()).expect("plain data");
    let policy = serde_json::to_value(Policy::default()).expect("plain data");
    value["global"] = differing(&value["global"], &global).unwrap_or_else(|| json!({}));
    for server in value["servers"].as_object_mut().expect("a map").values_mut() {
        let fields = server.as_object_mut().expect("a map");
        for name in ["aliases", "www", "app_root"] {
            if fields.get(name).is_some_and(|value| value.is_null() || *value == json!([])) {
                fields.remove(name);
            }
        }
        for location in server["locations"].as_array_mut().expect("a list") {
            location["policy"] =
                differing(&location["policy"], &policy).unwrap_or_else(|| json!({}));
            without_nothing(location);
        }
        without_nothing(server);
    }
    let routes = value.get_mut("routes").and_then(Value::as_object_mut);
    for host in routes.into_iter().flat_map(Map::values_mut) {
        for location in host["locations"].as_array_mut().expect("a list") {
            location["policy"] =
                differing(&location["policy"], &policy).unwrap_or_else(|| json!({}));
            without_nothing(location);
        }
    }
    short_snippets(&mut value);
    serde_saphyr::to_string(&value).expect("JSON is YAML")
}

/// What objects of the Gateway API are told, a line for each condition.
fn statuses(all: &Statuses) -> String {
    let mut text = String::new();
    let mut tell = |who: String, conditions: &[Condition]| {
        for condition in conditions {
            let Condition { kind, holds, reason, message } = condition;
            let status = if *holds { "True" } else { "False" };
            let line = format!("{who}: {kind}={status} {reason} {message}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
    };
    for (key, status) in &all.classes {
        tell(format!("GatewayClass {}", key.name), &status.conditions);
    }
    for (key, status) in &all.gateways {
        let who =
            format!("Gateway {}/{} of generation {}", key.namespace, key.name, status.generation);
        tell(who.clone(), &status.conditions);
        for listener in &status.listeners {
            let kinds = match listener.kinds.join(" and ") {
                none if none.is_empty() => "nothing".to_owned(),
                kinds => kinds,
            };
            let who = format!("{who}, {} with {} of {kinds}", listener.name, listener.attached);
            tell(who, &listener.conditions);
        }
    }
    for (key, status) in &all.sets {
        let who = format!(
            "ListenerSet {}/{} of generation {}",
            key.namespace, key.name, status.generation
        );
        tell(who.clone(), &status.conditions);
        for listener in &status.listeners {
            let kinds = match listener.kinds.join(" and ") {
                none if none.is_empty() => "nothing".to_owned(),
                kinds => kinds,
            };
            let who = format!("{who}, {} with {} of {kinds}", listener.name, listener.attached);
            tell(who, &listener.conditions);
        }
    }
    for (key, status) in &all.policies {
        let ancestors = status.ancestors.iter();
        let ancestors: Vec<_> =
            ancestors.map(|one| format!("{}/{}", one.namespace, one.name)).collect();
        let of = format!("of generation {}", status.generation);
        let who = format!("BackendTLSPolicy {}/{} {of}", key.namespace, key.name);
        tell(format!("{who} at {}", ancestors.join(" and ")), &status.conditions);
    }
    let routes = all.routes.iter().chain(&all.stream_routes);
    for ((kind, key), status) in routes {
        for (parent, conditions) in &status.parents {
            let section = parent.section.as_deref().unwrap_or("any listener");
            let who = format!(
                "{kind} {}/{} at {}, {section}",
                key.namespace, key.name, parent.object.name
            );
            tell(who, conditions);
        }
    }
    text
}

/// Takes out of what snippets mean everything that they do not say.
fn short_snippets(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match name.as_str() {
                    "snippet" | "http_snippet" => shorten(field),
                    _ => short_snippets(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(short_snippets),
        _ => {}
    }
}

fn shorten(value: &mut Value) {
    const SWITCHES: [&str; 3] = ["stub_status", "empty_gif", "internal"];
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(shorten);
            fields.retain(|name, value| {
                let is_off = SWITCHES.contains(&name.as_str()) && *value == json!(false);
                !is_off && ![json!(null), json!([]), json!({})].contains(value)
            });
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// Drops the fields of an object that say nothing.
fn without_nothing(value: &mut Value) {
    let says = |field: &Value| match field {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    value.as_object_mut().expect("an object").retain(|_, field| says(field));
}

/// What differs from `default`, if anything.
fn differing(value: &Value, default: &Value) -> Option<Value> {
    let (Value::Object(fields), Value::Object(defaults)) = (value, default) else {
        return (value != default).then(|| value.clone());
    };
    let different = fields.iter().filter_map(|(name, field)| {
        let default = defaults.get(name).unwrap_or(&Value::Null);
        Some((name.clone(), differing(field, default)?))
    });
    let different: Map<String, Value> = different.collect();
    (!different.is_empty()).then_some(Value::Object(different))
}
