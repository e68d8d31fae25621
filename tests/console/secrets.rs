//! Secrets in every place where one can stand, and none of them in anything that Fairway says.

use crate::console::bed::{BINARY, CLASS, Fairway, ingress, services};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// The beginning of each secret; a letter before it would end a variable's name too early.
const MARK: &str = "mark7q";

/// Objects with a secret of its own in each place, and how many there are.
struct Planted(usize);

impl Planted {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("{MARK}{}z", self.0)
    }
}

fn object(kind: &str, name: &str, part: &str, data: &Value) -> String {
    let object = json!({
        "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, part: data,
    });
    format!("---\n{object}\n")
}

/// What is understood: nothing of it is a mistake.
fn understood(plant: &mut Planted) -> Value {
    let bare = |host: &str, plant: &mut Planted| {
        json!(format!("http://{host}/check?token={}", plant.next()))
    };
    let url = |host: &str, plant: &mut Planted| {
        json!(format!("http://{host}/check?token={}&rd=$escaped_request_uri", plant.next()))
    };
    json!({
        "nginx.ingress.kubernetes.io/auth-url": url("10.0.0.9", plant),
        "nginx.ingress.kubernetes.io/auth-signin": url("sign.test", plant),
        "nginx.ingress.kubernetes.io/auth-proxy-set-headers": "shop/asked",
        "nginx.ingress.kubernetes.io/auth-request-redirect": bare("back.test", plant),
        "nginx.ingress.kubernetes.io/auth-cache-key": "$remote_user",
        "nginx.ingress.kubernetes.io/custom-headers": "shop/told",
        "nginx.ingress.kubernetes.io/mirror-target": url("10.0.0.8", plant),
        "nginx.ingress.kubernetes.io/proxy-redirect-from": "http://in.test/",
        "nginx.ingress.kubernetes.io/proxy-redirect-to": bare("out.test", plant),
        "nginx.ingress.kubernetes.io/configuration-snippet": snippet(plant),
    })
}

fn snippet(plant: &mut Planted) -> String {
    format!(
        "proxy_set_header Authorization \"Bearer {}\"; proxy_set_header X-Pin \"{}\";\nadd_header X-Seal {};\n\
         more_set_headers \"X-More: {}\";\nset $pin \"{}\";\nif ($http_x_pin = \"{}\") {{ return 200 \"{}\"; }}\n\
         if ($http_x_pin ~ \"^{}$\") {{ return 302 https://me:{}@a.test/; }}\n",
        plant.next(),
        plant.next(),
        plant.next(),
        plant.next(),
        plant.next(),
        plant.next(),
        plant.next(),
        plant.next(),
        plant.next(),
    )
}

/// What is wrong, and told with what was written.
fn refused(plant: &mut Planted) -> Vec<(&'static str, String)> {
    let login = |plant: &mut Planted| format!("http://me:{}@10.0.0.9/check", plant.next());
    vec![
        ("auth-url", login(plant)),
        ("auth-url", format!("me:{}@10.0.0.9", plant.next())),
        ("auth-url", format!("http://10.0.0.9:port/?token={}", plant.next())),
        ("mirror-target", login(plant)),
        ("permanent-redirect", format!("https://me:{}@a.test/$nope", plant.next())),
        ("temporal-redirect", format!("ftp://me:{}@a.test/?key={}", plant.next(), plant.next())),
        ("proxy-redirect-to", format!("http://me:{}@a.test/$nope", plant.next())),
    ]
}

fn objects(plant: &mut Planted) -> String {
    let secret = |name: &str, data: Value| object("Secret", name, "stringData", &data);
    let map = |name: &str, data: Value| object("ConfigMap", name, "data", &data);
    let mut all = format!("{CLASS}{}", services(&["shop"]));
    all += &secret("users", json!({"auth": format!("ann:{{PLAIN}}{}", plant.next())}));
    all += &secret("tls", json!({"tls.crt": plant.next(), "tls.key": plant.next()}));
    all += &secret("ca", json!({"ca.crt": plant.next(), "ca.crl": plant.next()}));
    all += &secret("unused", json!({"password": plant.next()}));
    all += &map(
        "asked",
        json!({"Authorization": format!("Basic {}", plant.next()), "X-Pin": plant.next()}),
    );
    all += &map("told", json!({"X-Seal": plant.next()}));
    all += &map(
        "sent",
        json!({"Authorization": format!("Bearer {}", plant.next()), "X-Monkey": plant.next()}),
    );
    all += &map("added", json!({"X-Stamp": plant.next()}));
    all += &map("params", json!({"DB_PASS": plant.next()}));
    all += &map(
        "settings",
        json!({
            "proxy-set-headers": "shop/sent", "add-headers": "shop/added",
            "allow-snippet-annotations": "true", "annotations-risk-level": "Critical",
            "global-allowed-response-headers": "X-Seal",
            "global-auth-url": format!("http://10.0.0.7/all?key={}", plant.next()),
            "ssl-session-ticket-key": plant.next(),
            "http-snippet": format!(
                "map $http_x_pin $known {{ \"{}\" \"{}\"; ~{} 1; }}", plant.next(), plant.next(), plant.next()
            ),
            "location-snippet": format!("proxy_set_header X-All \"{}\";", plant.next()),
        }),
    );
    let hosts = |name: &str| [format!("{name}.test")];
    all += &ingress("shop", "good", &understood(plant), &hosts("good"));
    let prefix = |key: &str| format!("nginx.ingress.kubernetes.io/{key}");
    let more = json!({
        prefix("auth-type"): "basic", prefix("auth-secret"): "users",
        prefix("backend-protocol"): "FCGI", prefix("fastcgi-params-configmap"): "shop/params",
        prefix("permanent-redirect"): format!("https://go.test/?pin={}", plant.next()),
    });
    all += &ingress("shop", "more", &more, &hosts("more"));
    let closed =
        json!({ prefix("auth-tls-secret"): "shop/ca", prefix("proxy-ssl-secret"): "shop/ca" });
    all += &ingress("shop", "closed", &closed, &hosts("closed"));
    let canary = json!({
        prefix("canary"): "true", prefix("canary-by-header"): "X-Pin",
        prefix("canary-by-header-value"): plant.next(),
    });
    all += &ingress("shop", "canary", &canary, &hosts("good"));
    for (number, (key, value)) in refused(plant).into_iter().enumerate() {
        let name = format!("wrong-{number}");
        all += &ingress("shop", &name, &json!({ prefix(key): value }), &hosts(&name));
    }
    all
}

const PAGES: [&str; 16] = [
    "/configuration",
    "/metrics",
    "/healthz",
    "/api/v1/overview",
    "/api/v1/routes?limit=200",
    "/api/v1/route?host=good.test&path=/",
    "/api/v1/route?host=more.test&path=/",
    "/api/v1/route?host=closed.test&path=/",
    "/api/v1/route?host=wrong-0.test&path=/",
    "/api/v1/route?host=wrong-6.test&path=/",
    "/api/v1/explain?url=http://good.test/",
    "/api/v1/explain?url=http://more.test/",
    "/api/v1/problems?limit=200",
    "/api/v1/certificates",
    "/api/v1/changes",
    "/api/v1/limits",
];

fn assert_clean(what: &str, text: &str) {
    let found: Vec<&str> = text
        .match_indices(MARK)
        .map(|(at, _)| &text[text.floor_char_boundary(at.saturating_sub(90))..at + 12])
        .collect();
    assert!(found.is_empty(), "{what}: {found:#?}");
}

#[test]
fn no_secret_appears_in_anything_that_fairway_says() {
    let mut plant = Planted(0);
    let all = objects(&mut plant);
    let token = tempfile::NamedTempFile::new().expect("a file");
    fs::write(token.path(), format!("{}-0123456789abcdef", plant.next())).expect("a file");
    let file = token.path().to_str().expect("a path");
    let flags = [
        "--configmap=shop/settings".to_owned(),
        format!("--admin-token-file={file}"),
        "--default-ssl-certificate=shop/tls".to_owned(),
        "-v=5".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let fairway = Fairway::start(&all, &flags);
    // Another secret in each place: every one of them is a difference that could be told.
    fairway.write("objects.yaml", &all.replace(MARK, &format!("{MARK}w")));
    crate::console::bed::until("the change is in force", || {
        fairway.api("/api/v1/changes")["total"].as_u64() >= Some(2)
    });
    for path in PAGES {
        let (status, text) = fairway.get(path).expect("an answer");
        assert_eq!(status, 200, "{path}: {text}");
        assert_clean(path, &text);
    }
    // What was planted is used, and was told: a test of nothing would be clean, too.
    let configuration = fairway.api("/configuration").to_string();
    for used in [
        "X-Pin",
        "X-Seal",
        "DB_PASS",
        "X-Monkey",
        "X-Stamp",
        "sign.test",
        "go.test",
        "X-All",
        "X-More",
    ] {
        assert!(configuration.contains(used), "{used} is nowhere: {configuration}");
    }
    let problems = fairway.api("/api/v1/problems?limit=200");
    for number in 0..refused(&mut Planted(0)).len() {
        let is_told = problems["problems"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|one| one["name"] == format!("wrong-{number}"));
        assert!(is_told, "wrong-{number} has no problem: {problems}");
    }
    let log = fs::read_to_string(fairway.folder.path().join("log")).expect("a log");
    assert!(log.contains("wrong-0"), "{log}");
    assert_clean("the log", &log);
    drop(fairway);
    of_tools(&all);
}

/// The same of `check` and `explain`.
fn of_tools(all: &str) {
    let folder = tempfile::TempDir::new().expect("a folder");
    fs::write(folder.path().join("objects.yaml"), all).expect("a file");
    let at = folder.path().to_str().expect("a path");
    let ask = |arguments: &[&str]| {
        let output = Command::new(BINARY)
            .args(arguments)
            .args(["--manifests", at])
            .output()
            .expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains("good"), "{arguments:?}: {said}");
        assert_clean(&arguments.join(" "), &said);
    };
    ask(&["check", "--configmap=shop/settings"]);
    ask(&["check", "--configmap=shop/settings", "--format=json"]);
    ask(&["explain", "http://good.test/", "--configmap=shop/settings"]);
    ask(&["explain", "http://good.test/", "--configmap=shop/settings", "--format=json"]);
}
