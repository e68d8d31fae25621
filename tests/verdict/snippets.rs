//! Logs of hosts whose snippets look at header fields and cookies, which a log has or has not.

use crate::verdict::logs::fairway;
use serde_json::Value;

const OBJECTS: &str = r#"
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, spec: {controller: k8s.io/ingress-nginx}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress-nginx-controller, namespace: ingress-nginx}, data: {allow-snippet-annotations: "true", annotations-risk-level: Critical, http-snippet: "map $http_user_agent $is_bot { default 0; ~*bot 1; }"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: shop, annotations: {nginx.ingress.kubernetes.io/configuration-snippet: 'SNIPPET'}}, spec: {ingressClassName: nginx, rules: [{host: shop.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}
"#;
/// The one of docs/prove.md.
const FORMAT: &str = r#"$remote_addr $scheme $host "$request" $status [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr "$sent_http_location""#;

const AGENT: &str = r#"if ($http_user_agent ~* "(ahrefs|semrush)bot") { return 403; }"#;
const LANGUAGE: &str =
    "if ($http_accept_language ~* ^de) { return 302 https://de.test$request_uri; }";
const COOKIE: &str = r#"if ($cookie_beta = "1") { return 404; }"#;
const MAP: &str = "if ($is_bot) { return 403; }";
const SET: &str = r#"set $key $http_x_key; if ($key = "") { return 403; }"#;
const METHOD: &str = "if ($request_method = DELETE) { return 403; }";
const FIELD: &str = "proxy_set_header X-Agent $http_user_agent; if ($host = a) { return 403; }";

/// Standing, cause and exit code of one request.
fn judged(snippet: &str, more: &str, line: &str) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let objects = folder.path().join("objects.yaml");
    std::fs::write(&objects, OBJECTS.replace("SNIPPET", snippet)).expect("a file");
    let objects = objects.to_str().expect("a path");
    let format = format!("{FORMAT}{more}");
    let line = format!("10.1.2.3 http shop.test {line}\n");
    let arguments = ["check", objects, "--output", "lines", "--log-format", &format, "--log", "-"];
    let output = fairway(&arguments, line.as_bytes());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let said: Value =
        said.lines().next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| {
            panic!("{snippet}: {said}{}", String::from_utf8_lossy(&output.stderr))
        });
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    (text("standing"), text("cause"), output.status.code())
}

const REFUSED: &str = r#""GET /x HTTP/1.1" 403 [shop-web-80] [] - "-""#;
const NOT_FOUND: &str = r#""GET /x HTTP/1.1" 404 [shop-web-80] [] - "-""#;
const REDIRECTED: &str = r#""GET /x HTTP/1.1" 302 [shop-web-80] [] - "https://de.test/x""#;
const SENT: &str = r#""GET /x HTTP/1.1" 200 [shop-web-80] [] 10.0.0.1:80 "-""#;

#[test]
fn what_a_snippet_decides_by_a_field_that_the_log_lacks_cannot_be_told() {
    for (snippet, line) in
        [(AGENT, REFUSED), (LANGUAGE, REDIRECTED), (COOKIE, NOT_FOUND), (MAP, REFUSED), (SET, SENT)]
    {
        let (standing, cause, code) = judged(snippet, "", line);
        assert_eq!(standing, "unknown", "{snippet}: {cause}");
        assert!(cause.contains("$http_… or $cookie_…"), "{snippet}: {cause}");
        // Of this one request nothing is known.
        assert_eq!(code, Some(1), "{snippet}");
    }
}

#[test]
fn what_no_field_explains_is_a_difference_still() {
    for (snippet, line) in [
        // Another status than that of the snippet, another place.
        (AGENT, NOT_FOUND),
        (METHOD, REFUSED),
        (FIELD, REFUSED),
        (AGENT, r#""GET /x HTTP/1.1" 200 [shop-other-80] [] 10.0.0.1:80 "-""#),
    ] {
        let (standing, cause, code) = judged(snippet, "", line);
        assert_eq!((standing.as_str(), code), ("differs", Some(2)), "{snippet} {line}: {cause}");
    }
    // What the log shows: a refusal of somebody whom the snippet lets in, and of one without the field at all.
    for field in ["curl", "-"] {
        let line = format!("{REFUSED} \"{field}\"");
        let (standing, cause, _) = judged(AGENT, " \"$http_user_agent\"", &line);
        assert_eq!(standing, "differs", "{field}: {cause}");
    }
    let line = format!("{REFUSED} \"AhrefsBot\"");
    assert_eq!(judged(AGENT, " \"$http_user_agent\"", &line).0, "alike-if");
    let line = format!("{NOT_FOUND} \"-\"");
    assert_eq!(judged(COOKIE, " \"$cookie_beta\"", &line).0, "differs");
}
