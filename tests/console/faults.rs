//! Ten faults as people make them: the page shows the cause of each. docs/ui.md has the table with the clicks.

use crate::console::bed::{Browser, CLASS, Fairway, ask, ingress, services, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::ports;

/// An Ingress with these annotations, for the host that has its name.
fn one(name: &str, annotations: &[(&str, &str)]) -> String {
    let prefixed = annotations
        .iter()
        .map(|(key, value)| (format!("nginx.ingress.kubernetes.io/{key}"), Value::from(*value)));
    ingress("shop", name, &Value::Object(prefixed.collect()), &[format!("{name}.test")])
}

/// A Service of this name with one endpoint.
fn behind(name: &str, port: u16) -> String {
    services(&["shop"])
        .replace("name: web,", &format!("name: {name},"))
        .replace("name: web-1", &format!("name: {name}-1"))
        .replace("service-name: web", &format!("service-name: {name}"))
        .replace("port: 8080", &format!("port: {port}"))
        .replace("10.0.0.1", "127.0.0.1")
}

/// An application whose answers have a header section of 64 KiB.
fn talkative() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 8192]);
            let long = "x".repeat(64 << 10);
            let _ =
                stream.write_all(format!("HTTP/1.1 200 OK\r\nX-Long: {long}\r\n\r\n").as_bytes());
        }
    });
    port
}

/// A Secret with a certificate that was good until 2020.
fn expired() -> String {
    let mut params = rcgen::CertificateParams::new(["expired.test".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "expired", "namespace": "shop"},
        "stringData": {"tls.crt": certificate.pem(), "tls.key": key.serialize_pem()},
    });
    format!("---\n{secret}\n")
}

fn objects() -> String {
    let gone = ports::free();
    let auth = format!("http://127.0.0.1:{}/check", ports::free());
    let other_class = one("class", &[]).replace("\"nginx\"", "\"nginz\"");
    let to = |text: String, service: &str| text.replace("\"web\"", &format!("\"{service}\""));
    let with_tls = |text: String| {
        text.replace(
            "\"rules\"",
            "\"tls\":[{\"hosts\":[\"expired.test\"],\"secretName\":\"expired\"}],\"rules\"",
        )
    };
    // The older one has the path; the younger one asks for it in vain.
    let aged = |name: &str, year: u32| {
        let created = format!("\"metadata\":{{\"creationTimestamp\":\"{year}-01-01T00:00:00Z\",");
        one(name, &[]).replace(&format!("{name}.test"), "shadowed.test").replacen(
            "\"metadata\":{",
            &created,
            1,
        )
    };
    let canary = to(one("zero", &[("canary", "true"), ("canary-weight", "0")]), "other");
    let canary = canary.replace("\"name\":\"zero\"", "\"name\":\"zero-canary\"");
    [
        CLASS.to_owned(),
        behind("web", talkative()),
        behind("dead", gone),
        behind("other", gone),
        other_class,
        to(one("dead", &[]), "dead"),
        aged("older", 2024),
        aged("younger", 2025),
        expired(),
        with_tls(one("expired", &[])),
        to(one("limit", &[("limit-rpm", "1"), ("limit-burst-multiplier", "1")]), "dead"),
        one("auth", &[("auth-url", auth.as_str())]),
        one("zero", &[]),
        canary,
        one("regex", &[("use-regex", "true")]).replace("\"path\":\"/\"", "\"path\":\"/(a\""),
        one("secret", &[("auth-type", "basic"), ("auth-secret", "nowhere")]),
        one("large", &[]),
    ]
    .concat()
}

/// Asks until it is answered so.
fn answered(fairway: &Fairway, host: &str, status: u16) {
    until(&format!("{host} is answered {status}"), || {
        ask(fairway.http, "/", &format!("Host: {host}\r\n")).expect("an answer").0 == status
    });
}

fn route(fairway: &Fairway, host: &str) -> Value {
    fairway.api(&format!("/api/v1/route?host={host}&path=/"))
}

fn failed(fairway: &Fairway, host: &str) -> String {
    route(fairway, host)["failed"]["why"].as_str().unwrap_or_default().to_owned()
}

fn explained(fairway: &Fairway, host: &str) -> String {
    fairway.api(&format!("/api/v1/explain?url=http://{host}/")).to_string()
}

fn problem(fairway: &Fairway, words: &str) -> String {
    fairway.api(&format!("/api/v1/problems?search={words}")).to_string()
}

#[test]
fn the_cause_of_each_of_ten_faults_is_shown() {
    let fairway = Fairway::start(&objects(), &["--allow-target-networks=127.0.0.0/8"]);
    let contains = |text: String, words: &[&str]| {
        for word in words {
            assert!(text.contains(word), "{word:?} is not in {text}");
        }
    };
    // 1: wrong class.
    contains(
        explained(&fairway, "class.test"),
        &["Ingress shop/class names class.test, but is not ours", "nginz"],
    );
    // 2: dead endpoints.
    answered(&fairway, "dead.test", 502);
    contains(failed(&fairway, "dead.test"), &["connecting: ", "refused"]);
    let endpoints = route(&fairway, "dead.test")["endpoints"].clone();
    contains(endpoints[0]["failed"]["why"].to_string(), &["connecting: "]);
    // 3: a path that another Ingress has.
    contains(problem(&fairway, "younger"), &["shop", "younger", "older"]);
    // 4: an expired certificate.
    let certificates = fairway.api("/api/v1/certificates");
    let first = &certificates["certificates"][0];
    assert!(first.to_string().contains("expired.test"), "{certificates:#}");
    let overview = fairway.api("/api/v1/overview");
    assert!(overview["next_expiry"].as_f64() < overview["now"].as_f64(), "{overview:#}");
    // 5: a limit.
    answered(&fairway, "limit.test", 503);
    contains(failed(&fairway, "limit.test"), &["limit-rpm is exceeded"]);
    // 6: an authenticator that is down.
    answered(&fairway, "auth.test", 500);
    contains(failed(&fairway, "auth.test"), &["asking the authenticator", "connecting: "]);
    // 7: a canary that nobody goes to.
    contains(problem(&fairway, "zero-canary"), &["nobody goes to this canary", "canary-weight"]);
    contains(explained(&fairway, "zero.test"), &["not the canary shop-other-http"]);
    // 8: a regular expression that is none.
    contains(problem(&fairway, "regex"), &["shop", "/(a"]);
    // 9: a Secret that cannot be read.
    contains(problem(&fairway, "auth-secret"), &["shop", "nowhere"]);
    // 10: an answer whose header section is too large.
    answered(&fairway, "large.test", 502);
    contains(failed(&fairway, "large.test"), &["larger than proxy-buffer-size"]);
}

/// A click, or words that are written.
enum Step {
    Click(&'static str),
    /// A route of the list, by its host.
    Route(&'static str),
    /// The URL of the form, which is sent.
    Write(&'static str),
}

/// Each fault as the table in docs/ui.md begins its line, the way to its cause, and what is read there.
fn ways() -> Vec<(&'static str, Vec<Step>, Vec<&'static str>)> {
    use Step::{Click, Route, Write};
    let view = |view: &'static str| vec![Click(view)];
    let problems = || view("nav a[href='#problems']");
    let errors = |host| vec![Click("#trouble a[href='#routes?sort=errors']"), Route(host)];
    let certificates = || view("#trouble a[href='#certificates']");
    let explain = vec![Click("nav a[href='#explain']"), Write("http://class.test/")];
    vec![
        (
            "an Ingress of the wrong class",
            explain,
            vec!["names class.test, but is not ours", "nginz"],
        ),
        ("endpoints that refuse connections", errors("dead.test"), vec!["connecting: "]),
        (
            "a path that an older Ingress has",
            problems(),
            vec!["Ingress shop/younger", "shop/older"],
        ),
        ("an expired certificate", certificates(), vec!["expired.test", "2020-01-01"]),
        (
            "a limit that is hit",
            errors("limit.test"),
            vec!["limit-rpm is exceeded", "limit-rpm: 1"],
        ),
        ("an authenticator that is down", errors("auth.test"), vec!["asking the authenticator"]),
        ("a canary at weight 0", problems(), vec!["nobody goes to this canary"]),
        ("a path that is no regular expression", problems(), vec!["Ingress shop/regex", "/(a"]),
        ("a Secret that is not there", problems(), vec!["Ingress shop/secret", "nowhere"]),
        (
            "an answer whose header section",
            errors("large.test"),
            vec!["larger than proxy-buffer-size"],
        ),
    ]
}

/// The clicks that the table in docs/ui.md says for a fault.
fn clicks(fault: &str) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/ui.md");
    let page = std::fs::read_to_string(file).expect("the page is there");
    let line = page.lines().find(|line| line.starts_with(&format!("| {fault}")));
    let line = line.unwrap_or_else(|| panic!("{fault} has no line"));
    line.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default().trim().to_owned()
}

#[tokio::test]
async fn each_cause_is_as_many_clicks_away_as_the_table_says() {
    let fairway = Fairway::start(&objects(), &["--allow-target-networks=127.0.0.0/8"]);
    let browser = Browser::open(&fairway).await;
    // Errors go on while somebody looks, as they do when something is broken.
    let (http, over) = (fairway.http, Arc::new(AtomicBool::new(false)));
    let until = over.clone();
    let asking = std::thread::spawn(move || {
        while !until.load(Ordering::Relaxed) {
            for host in ["dead.test", "limit.test", "auth.test", "large.test"] {
                let _ = ask(http, "/", &format!("Host: {host}\r\n"));
            }
            std::thread::park_timeout(Duration::from_millis(200));
        }
    });
    for (fault, way, read) in ways() {
        browser.view("overview").await;
        let (mut times, mut written) = (0, "");
        for step in way {
            let (target, act) = match step {
                Step::Click(selector) => (selector.to_owned(), "click()".to_owned()),
                Step::Route(host) => (format!(".list [data-key^='{host} ']"), "click()".to_owned()),
                Step::Write(url) => (
                    "#view form".to_owned(),
                    format!("elements.url.value = '{url}'; one.requestSubmit()"),
                ),
            };
            match step {
                Step::Click(_) | Step::Route(_) => times += 1,
                Step::Write(_) => written = " and the URL",
            }
            let script = format!(
                "const one = document.querySelector({target:?}); if (!one) return false; one.{act}; return true"
            );
            browser.until(&script).await;
        }
        for text in read {
            let text = Value::from(text);
            browser
                .until(&format!(
                    "return document.getElementById('view').innerText.includes({text})"
                ))
                .await;
        }
        assert_eq!(format!("{times}{written}"), clicks(fault), "{fault}");
        browser.run("document.querySelector('dialog[open]')?.close()").await;
    }
    over.store(true, Ordering::Relaxed);
    asking.join().expect("it ends");
}

#[test]
fn how_it_goes_at_each_endpoint_is_counted_while_somebody_looks() {
    let fairway = Fairway::start(&objects(), &["--allow-target-networks=127.0.0.0/8"]);
    let quiet = route(&fairway, "dead.test");
    assert_eq!(quiet["endpoints"][0]["failed"], Value::Null, "{quiet:#}");
    until("errors a second are seen", || {
        let _ = ask(fairway.http, "/", "Host: dead.test\r\n");
        let endpoint = route(&fairway, "dead.test")["endpoints"][0].clone();
        endpoint["errors"].as_f64() > Some(0.0)
            && endpoint["rate"].as_f64() >= endpoint["errors"].as_f64()
            && endpoint["p99"].is_number()
    });
    assert_eq!(route(&fairway, "zero.test")["endpoints"][0]["errors"].as_f64(), Some(0.0));
}
