//! Raw configuration and ModSecurity: text for the engine that understands it, a refusal for every other one.

use model::policy::{ModSecurity, Raw};
use model::{Backend, ServerName};
use objects::{ObjectKey, snapshot_of};
use std::path::Path;
use translate::{Options, Translation, Translator, translate};

const OBJECTS: &str = r##"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ingress-nginx}
data:
  allow-snippet-annotations: "SNIPPETS"
  annotations-risk-level: Critical
  http-snippet: "# of all"
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: a
  namespace: demo
  annotations:
    nginx.ingress.kubernetes.io/configuration-snippet: "more_set_headers 'X-A: 1';"
    nginx.ingress.kubernetes.io/enable-modsecurity: "MODSECURITY"
spec:
  ingressClassName: nginx
  rules:
  - host: a.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: echo, port: {number: 80}}}}]}
"##;

fn translated(raw: bool, snippets: &str, modsecurity: &str) -> Translation {
    let text = OBJECTS.replace("SNIPPETS", snippets).replace("MODSECURITY", modsecurity);
    let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
    let config_map = Some(ObjectKey::new("ingress-nginx", "settings"));
    translate(&snapshot, &Options { raw, config_map, ..Options::default() })
}

/// What the path of the Ingress says in nginx's words, and whether it is denied.
fn location(translation: &Translation) -> (Option<Raw>, bool) {
    let server = &translation.configuration.servers[&ServerName::new("a.test")];
    let location = &server.locations[0];
    let raw = location.policy.raw.as_deref().cloned();
    (raw, matches!(location.backend, Backend::Denied(_)))
}

#[test]
fn the_nginx_engine_gets_the_text_as_it_was_written() {
    let translation = translated(true, "true", "true");
    let expected = Raw {
        configuration: Some("more_set_headers 'X-A: 1';".to_owned().into()),
        modsecurity: ModSecurity { enabled: Some(true), ..ModSecurity::default() },
        ..Raw::default()
    };
    assert_eq!(location(&translation), (Some(expected), false));
    let global = translation.configuration.global.raw.clone().expect("of the ConfigMap");
    assert_eq!(global.http.as_deref().map(String::as_str), Some("# of all"));
}

#[test]
fn snippets_count_only_where_the_config_map_allows_them() {
    let translation = translated(true, "false", "false");
    let (raw, denied) = location(&translation);
    assert_eq!(raw.and_then(|raw| raw.configuration), None);
    assert!(!denied && translation.problems.iter().any(|it| it.message.contains("ignored")));
}

#[test]
fn a_guard_that_nobody_can_read_is_not_left_away() {
    let translation = translated(true, "true", "maybe");
    assert!(translation.problems.iter().any(|problem| problem.message.contains("neither true")));
    let server = translation.configuration.servers.get(&ServerName::new("a.test"));
    let open = server.is_some_and(|server| {
        server.locations.iter().any(|it| matches!(it.backend, Backend::Upstream(_)))
    });
    assert!(!open);
}

#[test]
fn any_other_engine_gets_values_and_denies_what_it_lacks() {
    let translation = translated(false, "true", "true");
    assert_eq!(location(&translation), (None, true));
    assert_eq!(translation.configuration.global.raw, None);
    let translation = translated(false, "true", "false");
    assert_eq!(location(&translation), (None, false));
    let server = &translation.configuration.servers[&ServerName::new("a.test")];
    let snippet = server.locations[0].policy.snippet.as_ref().expect("it is understood");
    assert_eq!(snippet.settings.headers.more.0.len(), 1);
}

/// What the ConfigMap's snippets make of the host, and what is wrong with them.
fn with_config_map(translator: &mut Translator, data: &str) -> (String, String, bool) {
    let text = OBJECTS.replace("SNIPPETS", "true").replace("MODSECURITY", "false");
    let text = text.replace(r##"http-snippet: "# of all""##, data);
    let translation = translator.update(&snapshot_of([(Path::new("in.yaml"), text.as_str())]));
    let server = &translation.configuration.servers[&ServerName::new("a.test")];
    let said = serde_json::to_string(&(&server.snippet, &server.locations[0].policy.snippet));
    let is_denied = matches!(server.locations[0].backend, Backend::Denied(_));
    (said.expect("plain data"), translation.problems.to_string(), is_denied)
}

#[test]
fn a_mistake_in_the_config_map_leaves_the_text_before_in_force() {
    let config_map = Some(ObjectKey::new("ingress-nginx", "settings"));
    let options = || Options { config_map: config_map.clone(), ..Options::default() };
    let mut translator = Translator::new(options());
    let good = "http-snippet: 'limit_req_zone $uri zone=all:1m rate=1r/s;'\n  \
                location-snippet: 'limit_req zone=all;'\n  server-snippet: 'deny 10.1.2.3;'";
    let (before, problems, denied) = with_config_map(&mut translator, good);
    assert!(before.contains("10.1.2.3") && !problems.contains("stays") && !denied, "{problems}");
    let bad = good.replace("deny 10.1.2.3;", "allow all;\n\n    denny 10.1.2.3;");
    let (after, problems, denied) = with_config_map(&mut translator, &bad);
    assert_eq!(after, before);
    let said = "server-snippet: line 2, column 1: unknown directive \"denny\"";
    assert!(
        problems.contains(said) && problems.contains("stays in force") && !denied,
        "{problems}"
    );
    // A zone that others need is not taken from them.
    let gone = good.replace("zone=all:1m", "zone=all:x");
    let (after, problems, denied) = with_config_map(&mut translator, &gone);
    assert_eq!((after, denied), (before.clone(), false), "{problems}");
    let (after, problems, _) = with_config_map(&mut translator, good);
    assert!(after == before && !problems.contains("ConfigMap"), "{problems}");
    // Who starts with it knows no text before: what may be a guard is closed, anything else is missing.
    let (_, problems, denied) = with_config_map(&mut Translator::new(options()), &bad);
    assert!(!denied, "no word of it is one of a guard: {problems}");
    let guard = bad.replace("denny", "deny all;\n\n    denny");
    let (_, problems, denied) = with_config_map(&mut Translator::new(options()), &guard);
    assert!(denied && problems.contains("every location answers 503"), "{problems}");
}

/// The list that AKS sets for its add-on.
#[test]
fn with_the_block_list_of_aks_snippets_without_its_words_count() {
    const WORDS: &str =
        "load_module,lua_package,_by_lua,location,root,proxy_pass,serviceaccount,{,},'";
    let is_served = |snippet: &str| {
        let snippet = serde_json::to_string(snippet).expect("a text");
        let text = OBJECTS
            .replace("SNIPPETS", "true")
            .replace("MODSECURITY", "false")
            .replace(
                r##"http-snippet: "# of all""##,
                &format!("annotation-value-word-blocklist: \"{WORDS}\""),
            )
            .replace(r#""more_set_headers 'X-A: 1';""#, &snippet);
        let config_map = Some(ObjectKey::new("ingress-nginx", "settings"));
        let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let translation = translate(&snapshot, &Options { config_map, ..Options::default() });
        let server = translation.configuration.servers.get(&ServerName::new("a.test"));
        server.is_some_and(|server| {
            let counts = |it: &model::Location| {
                it.policy.snippet.is_some() && matches!(it.backend, Backend::Upstream(_))
            };
            server.locations.iter().any(|it| counts(it))
        })
    };
    for taken in [
        "more_set_headers \"X-Frame-Options: DENY\";\nadd_header X-A $host always;",
        "proxy_set_header X-Real $remote_addr; rewrite ^/a/(.*)$ /b/$1 break;",
        "return 301 https://b.test$request_uri;",
        "deny 192.0.2.0/24; limit_rate 50k; expires 1h;",
    ] {
        assert!(is_served(taken), "{taken}");
    }
    for refused in [
        "if ($host) { return 403; }",
        "more_set_headers 'X-A: 1';",
        "proxy_pass http://upstream_balancer;",
        "root /etc;",
    ] {
        assert!(!is_served(refused), "{refused}");
    }
}

#[test]
fn a_variable_that_nginx_may_lack_is_written_as_nothing_where_the_line_is_json() {
    for (json, nothing) in [("true", ""), ("false", "-")] {
        let format = format!(
            "http-snippet: \"# of all\"\n  log-format-escape-json: \"{json}\"\n  \
             log-format-upstream: '{{\"http3\":\"$http3\",\"status\":$status}}'"
        );
        let text = OBJECTS.replace("http-snippet: \"# of all\"", &format);
        let snapshot = snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let config_map = Some(ObjectKey::new("ingress-nginx", "settings"));
        let made = translate(&snapshot, &Options { raw: true, config_map, ..Options::default() });
        let line = made.configuration.global.log_format.template.to_string();
        assert_eq!(line, format!("{{\"http3\":\"{nothing}\",\"status\":${{status}}}}"));
    }
}
