//! The API as programs ask it: who may, how often, and what never leaves.

use crate::console::bed::{CLASS, Fairway, ask, ingress, services, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::TcpListener;
use testkit::ports;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

/// Contents of a Secret, and where they are used.
const PASSWORD: &str = "hunter2-of-the-shop";

fn guarded() -> String {
    let annotations = json!({
        "nginx.ingress.kubernetes.io/auth-type": "basic",
        "nginx.ingress.kubernetes.io/auth-secret": "users",
        "nginx.ingress.kubernetes.io/affinity": "cookie",
        "nginx.ingress.kubernetes.io/auth-url": format!("http://10.0.0.9/check?token={PASSWORD}"),
    });
    // No URL may have a user: it is refused, which is told with what was written.
    let wrong = json!({
        "nginx.ingress.kubernetes.io/auth-url": format!("http://me:{PASSWORD}@10.0.0.9/check"),
    });
    let wrong = ingress("shop", "wrong", &wrong, &["wrong.test".to_owned()]);
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: users, namespace: shop}}\nstringData: {{auth: \"ann:{{PLAIN}}{PASSWORD}\"}}\n"
    );
    let shop = ingress("shop", "front", &annotations, &["shop.test".to_owned()]);
    format!("{CLASS}{}{secret}{shop}{wrong}", services(&["shop"]))
}

const ALL: [&str; 10] = [
    "/api/v1/overview",
    "/api/v1/routes",
    "/api/v1/route?host=shop.test&path=/",
    "/api/v1/route?host=wrong.test&path=/",
    "/api/v1/explain?url=http://wrong.test/",
    "/api/v1/problems",
    "/api/v1/certificates",
    "/api/v1/changes",
    "/api/v1/limits",
    "/api/v1/explain?url=http://shop.test/?token=hunter2-of-the-shop&header=Authorization:+Bearer+hunter2-of-the-shop",
];

#[test]
fn no_password_leaves_by_any_path() {
    let fairway = Fairway::start(&guarded(), &[]);
    // What is hidden is no change that could be told; the host beside it is one.
    let changed = guarded().replace("hunter2-of-the-shop@", "hunter2-of-the-shop-too@");
    let changed = changed.replace("10.0.0.9/check?", "10.0.0.8/check?");
    fairway.write("objects.yaml", &changed);
    until("the change is in force", || fairway.api("/api/v1/changes")["total"].as_u64() >= Some(2));
    for path in ALL {
        let text = fairway.api(path).to_string();
        assert!(!text.contains("hunter2"), "{path}: {text}");
    }
    let details = fairway.api("/api/v1/route?host=shop.test&path=/");
    let settings: BTreeSet<&str> = details["settings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["field"].as_str())
        .collect();
    let has = |family: &str| settings.iter().any(|name| name.split('.').next() == Some(family));
    assert!(has("auth_basic") && has("balance"), "{settings:?}");
}

#[test]
fn each_setting_in_force_has_its_value_as_it_is_written_and_who_asks_for_it() {
    let annotations = json!({
        "nginx.ingress.kubernetes.io/limit-rps": "5",
        "nginx.ingress.kubernetes.io/proxy-body-size": "8m",
        "nginx.ingress.kubernetes.io/configuration-snippet": format!("set $pin {PASSWORD};"),
        "nginx.ingress.kubernetes.io/from-to-www-redirect": "true",
        "cert-manager.io/issuer": "ours",
    });
    let shop = ingress("shop", "front", &annotations, &["shop.test".to_owned()]);
    let canary = json!({
        "nginx.ingress.kubernetes.io/canary": "true",
        "nginx.ingress.kubernetes.io/canary-by-header": "X-Pin",
        "nginx.ingress.kubernetes.io/canary-by-header-value": PASSWORD,
    });
    let canary = ingress("shop", "next", &canary, &["shop.test".to_owned()]);
    let canary = canary.replace("\"web\"", "\"other\"");
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"},
        "data": {
            "proxy-read-timeout": "90", "allow-snippet-annotations": "true",
            "annotations-risk-level": "Critical",
        },
    });
    let all = format!("{CLASS}{}{shop}{canary}---\n{config_map}\n", services(&["shop"]));
    let fairway = Fairway::start(&all, &["--configmap=shop/settings"]);
    let details = fairway.api("/api/v1/route?host=shop.test&path=/");
    assert!(!details.to_string().contains(PASSWORD), "{details:#}");
    let one = |name: &str| {
        let all = details["settings"].as_array().expect("a list");
        let found = all.iter().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {details:#}")).clone()
    };
    let asked = |object: &str, key: &str, written: &str| json!([{"object": object, "key": key, "written": written}]);
    let own = |key: &str, written: &str| {
        asked("Ingress shop/front", &format!("nginx.ingress.kubernetes.io/{key}"), written)
    };
    assert_eq!(
        one("limit-rps"),
        json!({
            "name": "limit-rps", "field": "limits.per_second",
            "value": "5 requests/s, burst 25", "asked": own("limit-rps", "5"),
        })
    );
    assert_eq!(one("proxy-body-size")["value"], "8m");
    let read = one("proxy-read-timeout");
    assert_eq!(read["value"], "90s");
    assert_eq!(read["asked"], asked("ConfigMap shop/settings", "proxy-read-timeout", "90"));
    assert_eq!(one("configuration-snippet")["asked"], own("configuration-snippet", "…"));
    let header = one("canary-by-header");
    assert_eq!(header["value"], "x-pin: …", "{header:#}");
    assert_eq!(header["asked"][0]["object"], "Ingress shop/next");
    assert_eq!(header["asked"][1]["written"], "…", "{header:#}");
    // What asks for something else, or is not ours.
    let others = ["cert-manager.io/issuer", "nginx.ingress.kubernetes.io/from-to-www-redirect"];
    assert_eq!(details["other_annotations"], json!(others));
}

#[test]
fn every_answer_has_the_fields_that_the_description_promises() {
    let fairway = Fairway::start(&guarded(), &[]);
    let description = fairway.api("/api/v1/openapi.json");
    for path in ALL {
        let (name, answer) = (path.split('?').next().unwrap_or_default(), fairway.api(path));
        let schema = &description["paths"][name]["get"]["responses"]["200"]["content"]["application/json"]
            ["schema"];
        let reference = schema["$ref"].as_str().expect("a reference").trim_start_matches('#');
        let schema = description.pointer(reference).expect("a schema");
        let fields = |value: &Value| -> BTreeSet<String> {
            value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(fields(&answer), fields(&schema["properties"]), "{path}");
    }
}

#[test]
fn strangers_other_names_other_sites_and_wrong_words_get_one_line_with_the_remedy() {
    let fairway = Fairway::start(&guarded(), &[]);
    let told = |path: &str, fields: &str| ask(fairway.admin, path, fields).expect("an answer");
    let (status, text) = told("/api/v1/overview", "Host: evil.test\r\n");
    assert_eq!(status, 403);
    assert!(text.contains("ask for it by localhost"), "{text}");
    let fields = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n";
    assert_eq!(told("/api/v1/overview", fields).0, 403);
    for (path, status, says) in [
        ("/api/v1/routes?limit=many", 400, "write one such as 100"),
        ("/api/v1/routes?sort=name", 400, "host, rate, errors, latency"),
        ("/api/v1/routes?find=a", 400, "known are search, sort, offset, limit"),
        ("/api/v1/route?host=a.test", 400, "path=/"),
        ("/api/v1/route?host=a.test&path=/", 404, "/api/v1/routes lists all"),
        ("/api/v1/explain", 400, "url=https://shop.example/cart"),
        ("/api/v1/explain?url=shop", 400, "write one such as https://shop.example/cart"),
        ("/api/v1/explain?url=http://a/&client=me", 400, "write one such as 203.0.113.7"),
        ("/api/v1/explain?url=http://a/&method=G%20T", 400, "write one such as GET"),
    ] {
        let (found, text) = told(path, "Host: localhost\r\n");
        assert_eq!(found, status, "{path}: {text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert!(
            answer["error"].as_str().is_some_and(|error| error.contains(says)),
            "{path}: {text}"
        );
    }
    let refused = (0..400).any(|_| told("/api/v1/problems", "").0 == 429);
    assert!(refused, "requests are bounded");
    assert_eq!(told("/healthz", "").0, 200, "probes are not");
}

#[test]
fn with_a_token_the_page_is_for_all_and_what_it_asks_for_the_token() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "a-token-of-the-admin-port\n").expect("it is written");
    let flag = format!("--admin-token-file={}", file.path().display());
    let fairway = Fairway::start(&guarded(), &[&flag]);
    let ask = |path: &str, fields: &str| ask(fairway.admin, path, fields).expect("an answer").0;
    // Whoever shows a token is judged by it, whatever name was asked for.
    assert_eq!(
        ask("/api/v1/overview", "Host: a.test\r\nFairway-Token: a-token-of-the-admin-port\r\n"),
        200
    );
    assert_eq!(
        ask(
            "/api/v1/overview",
            "Host: a.test\r\nAuthorization: Bearer a-token-of-the-admin-port\r\n"
        ),
        200
    );
    assert_eq!(
        ask("/api/v1/overview", "Host: localhost\r\nFairway-Token: another-token-of-the-port\r\n"),
        401
    );
    assert_eq!(ask("/ui", "Host: a.test\r\n"), 200);
    std::fs::write(file.path(), "another-token-of-the-port\n").expect("it is written");
    assert_eq!(
        ask("/api/v1/overview", "Host: a.test\r\nFairway-Token: another-token-of-the-port\r\n"),
        200
    );
}

/// Bytes of memory that a process holds.
fn memory(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let number = line.trim().strip_suffix(" kB").expect("kB");
    number.parse::<u64>().expect("a number") << 10
}

#[tokio::test]
async fn whoever_asks_for_all_that_is_served_and_never_reads_it_takes_no_memory() {
    const UNREAD: usize = 60;
    let hosts: Vec<String> = (0..3000).map(|number| format!("h{number}.test")).collect();
    let objects = ingress("shop", "front", &json!({}), &hosts);
    let fairway = Fairway::start(&format!("{CLASS}{}{objects}", services(&["shop"])), &[]);
    let whole = fairway.get("/configuration").expect("an answer").1.len() as u64;
    let before = memory(fairway.id());
    let mut all = Vec::new();
    for _ in 0..UNREAD {
        let socket = TcpSocket::new_v4().expect("a socket");
        // The system keeps little for a client that takes little.
        socket.set_recv_buffer_size(4096).expect("a size");
        let mut stream = socket.connect(fairway.admin).await.expect("it listens");
        let request = b"GET /configuration HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.expect("it reads");
        // From the first byte on, the answer is there, and waits for its reader.
        stream.peek(&mut [0]).await.expect("it answers");
        all.push(stream);
    }
    let more = memory(fairway.id()).saturating_sub(before);
    assert!(more < whole * UNREAD as u64 / 4, "{more} bytes for {UNREAD} answers of {whole}");
}

#[test]
fn what_is_full_and_what_was_turned_away_is_told() {
    let fairway = Fairway::start(&guarded(), &[]);
    let limits = fairway.api("/api/v1/limits");
    let room = |what: &str| {
        let rooms = limits["rooms"].as_array().expect("rooms");
        let found = rooms.iter().find(|room| room["what"] == what);
        found.unwrap_or_else(|| panic!("{what}: {limits:#}")).clone()
    };
    assert_eq!(room("bytes of request bodies in files")["most"], 1 << 30);
    for what in [
        "open files",
        "connections of clients",
        "bytes of request bodies in memory",
        "connections of TCP services",
        "sessions of UDP services",
        "series of request metrics",
        "pages that follow changes",
    ] {
        assert!(room(what)["most"].as_u64() > Some(0), "{what}: {limits:#}");
    }
    let refused = || {
        let limits = fairway.api("/api/v1/limits");
        let shed = limits["shed"].as_array().expect("what was shed").clone();
        let of_api = shed.iter().find(|one| one["what"] == "requests to this API refused");
        of_api.expect("it is told")["count"].as_u64().expect("a number")
    };
    assert_eq!(refused(), 0);
    assert!((0..400).any(|_| fairway.get("/api/v1/problems").expect("an answer").0 == 429));
    until("who was refused is counted", || {
        let (status, text) = fairway.get("/api/v1/limits").expect("an answer");
        let none = r#""why":"429: more than 30 a second","count":0"#;
        status == 200 && text.contains("429: more than 30 a second") && !text.contains(none)
    });
}

const COPIES: &str = "copies for mirrors in flight";

/// An application that takes a connection and never says anything.
fn silent() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let held: Vec<_> = listener.incoming().collect();
        drop(held);
    });
    port
}

#[test]
fn what_requests_come_to_has_a_row_and_a_metric_and_what_was_left_out_is_counted() {
    let mirror = format!("http://127.0.0.1:{}/", silent());
    let annotations = json!({
        "nginx.ingress.kubernetes.io/mirror-target": mirror,
        "nginx.ingress.kubernetes.io/proxy-connect-timeout": "1",
    });
    let shop = ingress("shop", "front", &annotations, &["shop.test".to_owned()]);
    // Nobody listens there: the answer is 502 at once, and a copy is sent all the same.
    let nobody = services(&["shop"]).replace("10.0.0.1", "127.0.0.1");
    let nobody = nobody.replace("8080", &ports::free().to_string());
    let objects = format!("{CLASS}{nobody}{shop}");
    let flags = ["--allow-target-networks=127.0.0.0/8", "--worker-threads=1"];
    let fairway = Fairway::start(&objects, &flags);
    let limits = || fairway.api("/api/v1/limits");
    let of = |list: &str, what: &str| {
        let all = limits()[list].clone();
        let one = all.as_array().expect("a list").iter().find(|one| one["what"] == what).cloned();
        one.unwrap_or_else(|| panic!("{what:?} is not in {all:#}"))
    };
    for what in [
        "passwords of one namespace that wait to be computed",
        "bytes of answers of authenticators",
        "hosts of URLs with variables",
    ] {
        assert_eq!(of("rooms", what)["now"], 0, "{what}");
        assert_eq!(of("shed", what)["count"], 0, "{what}");
    }
    for what in [
        "tries of routes left out",
        "handshakes with long RSA keys refused",
        "lines about failed requests left out",
        "messages of the process dropped",
        "Events dropped",
    ] {
        assert_eq!(of("shed", what)["count"], 0, "{what}");
    }
    // Half of the places are for one namespace.
    for _ in 0..70 {
        ask(fairway.http, "/", "Host: shop.test\r\n").expect("an answer");
    }
    // A sample is taken every other second.
    until("copies are counted", || of("shed", COPIES)["count"] == 6);
    let room = of("rooms", COPIES);
    assert_eq!((&room["now"], &room["most"]), (&json!(64), &json!(128)));
    let (_, metrics) = fairway.get("/metrics").expect("a page");
    for line in [
        "fairway_room_used{of=\"copies\"} 64",
        "fairway_room{of=\"copies\"} 128",
        "fairway_room_refused_total{of=\"copies\"} 6",
        "fairway_room{of=\"passwords\"} 1024",
        "fairway_room_refused_total{of=\"route_retries\"} 0",
        "fairway_events_dropped_total{reason=\"queue\"} 0",
        "fairway_log_lines_dropped_total{log=\"messages\"} 0",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} is not in {metrics}");
    }
}

#[test]
fn zones_digests_ocsp_and_the_admin_port_itself_have_a_row_and_a_metric() {
    let annotations =
        json!({"nginx.ingress.kubernetes.io/configuration-snippet": "limit_req zone=small;"});
    let shop = ingress("shop", "front", &annotations, &["shop.test".to_owned()]);
    // Room for 256 clients, 128 bytes each.
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"},
        "data": {
            "http-snippet": "limit_req_zone $http_x_who zone=small:32k rate=1r/s;",
            "allow-snippet-annotations": "true", "annotations-risk-level": "Critical",
            "enable-ocsp": "true",
        },
    });
    let nobody = services(&["shop"]).replace("10.0.0.1", "127.0.0.1");
    let nobody = nobody.replace("8080", &ports::free().to_string());
    let objects = format!("{CLASS}{nobody}{shop}---\n{config_map}\n");
    let flags = ["--configmap=shop/settings", "--allow-target-networks=127.0.0.0/8"];
    let fairway = Fairway::start(&objects, &flags);
    for who in 0..1000 {
        let fields = format!("Host: shop.test\r\nX-Who: {who}\r\n");
        assert_eq!(ask(fairway.http, "/", &fields).expect("an answer").0, 502);
    }
    let limits = || fairway.api("/api/v1/limits");
    let of = |list: &str, what: &str| {
        let all = limits()[list].clone();
        let one = all.as_array().expect("a list").iter().find(|one| one["what"] == what).cloned();
        one.unwrap_or_else(|| panic!("{what:?} is not in {all:#}"))
    };
    let zone = "clients in the fullest zone of http-snippet";
    until("clients that were forgotten are counted", || {
        of("shed", zone)["count"].as_u64() > Some(700)
    });
    let room = of("rooms", zone);
    assert_eq!(room["most"], 256);
    assert!((200..=256).contains(&room["now"].as_u64().expect("a number")), "{room:#}");
    for (what, most) in [
        ("numbers of digest authentication in use", 65_536),
        ("certificates that wait for OCSP", 256),
        ("connections of the admin port", 128),
    ] {
        assert_eq!(of("rooms", what)["most"], most, "{what}");
        assert_eq!(of("shed", what)["count"], 0, "{what}");
    }
    let own = of("rooms", "connections of the admin port");
    assert!(own["now"].as_u64() > Some(0), "the one that asks: {own:#}");
    let (_, metrics) = fairway.get("/metrics").expect("a page");
    for line in [
        "fairway_room{of=\"zone_clients\"} 256",
        "fairway_room{of=\"digest_numbers\"} 65536",
        "fairway_room{of=\"ocsp_waiting\"} 256",
        "fairway_room{of=\"admin_connections\"} 128",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} is not in {metrics}");
    }
    assert!(!metrics.contains("webhook_connections"), "there is no webhook");
}
