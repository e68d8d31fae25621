//! The pictures of docs/ui.md, of a shop with traffic: `cargo test --test suite pictures -- --ignored` takes them.

use crate::console::bed::{Browser, CLASS, Fairway, ask, ingress, services};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

/// An application that takes so long, and fails every so many times.
fn application(takes: Duration, fails: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 8192]);
                std::thread::park_timeout(takes);
                let is_bad = fails > 0 && number % fails == 0;
                let status = if is_bad { "500 Internal Server Error" } else { "200 OK" };
                let head = "Content-Length: 0\r\nConnection: close";
                let _ = stream.write_all(format!("HTTP/1.1 {status}\r\n{head}\r\n\r\n").as_bytes());
            });
        }
    });
    port
}

/// An Ingress with these annotations, and the Service behind it.
fn site(namespace: &str, name: &str, hosts: &[&str], annotations: &Value, port: u16) -> String {
    let prefixed = annotations.as_object().into_iter().flatten();
    let prefixed = prefixed
        .map(|(key, value)| (format!("nginx.ingress.kubernetes.io/{key}"), value.clone()))
        .collect();
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let object = ingress(namespace, name, &Value::Object(prefixed), &hosts);
    let behind = services(&[namespace])
        .replace("name: web,", &format!("name: {name},"))
        .replace("name: web-1", &format!("name: {name}-1"))
        .replace("service-name: web", &format!("service-name: {name}"))
        .replace("10.0.0.1", "127.0.0.1")
        .replace("8080", &port.to_string());
    behind + &object.replace("\"web\"", &format!("\"{name}\""))
}

fn cart(tries: &str, port: u16) -> String {
    let annotations = json!({"limit-rps": "200", "proxy-next-upstream-tries": tries});
    let text = site("shop", "cart", &["shop.example"], &annotations, port);
    text.replace("\"path\":\"/\"", "\"path\":\"/cart\"")
}

#[tokio::test]
#[ignore = "writes docs/pictures"]
async fn pictures() {
    let (quick, slow) =
        (application(Duration::from_millis(4), 0), application(Duration::from_millis(30), 7));
    let objects = [
        CLASS.to_owned(),
        site(
            "shop",
            "front",
            &["shop.example", "www.shop.example"],
            &json!({"enable-cors": "true"}),
            quick,
        ),
        site(
            "accounts",
            "login",
            &["accounts.example"],
            &json!({"proxy-read-timeout": "30s"}),
            quick,
        ),
        site(
            "blog",
            "posts",
            &["blog.example"],
            &json!({"auth-type": "basic", "auth-secret": "editors"}),
            quick,
        ),
    ];
    let fairway = Fairway::start(&objects.concat(), &["--allow-target-networks=127.0.0.0/8"]);
    fairway.write("cart.yaml", &cart("3", slow));
    let browser = Browser::open(&fairway).await;
    browser.look(false, 1280).await;
    let http = fairway.http;
    // It ends with the Fairway.
    std::thread::spawn(move || {
        let all = [
            ("shop.example", "/"),
            ("shop.example", "/cart"),
            ("accounts.example", "/"),
            ("www.shop.example", "/"),
        ];
        let mut forever = all.into_iter().cycle();
        forever.all(|(host, path)| ask(http, path, &format!("Host: {host}\r\n")).is_some())
    });
    take(&fairway, &browser, slow).await;
}

async fn take(fairway: &Fairway, browser: &Browser, slow: u16) {
    browser.view("overview").await;
    browser
        .until("return /[1-9][0-9.]* errors/.test(document.getElementById('view').innerText)")
        .await;
    browser.until_text("this process is in no Pod of a cluster").await;
    browser.picture("console-overview").await;
    browser.view("routes?search=shop.example").await;
    browser.until("const one = document.querySelector('.list [data-key^=\"shop.example /cart\"]'); one?.click(); return one !== null").await;
    browser.until("return document.querySelector('dialog[open]')?.innerText.includes('it answered 500') === true").await;
    browser.picture("console-route").await;
    fairway.write("cart.yaml", &cart("1", slow));
    browser.view("changes").await;
    browser.until_text("retries.tries").await;
    browser.picture("console-changes").await;
    browser.view("limits").await;
    browser.until_text("copies for mirrors in flight").await;
    browser.picture("console-limits").await;
    browser.look(true, 320).await;
    browser.view("problems").await;
    browser.until_text("proxy-read-timeout").await;
    browser.picture("console-narrow").await;
}
