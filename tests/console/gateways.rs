//! Routes of the Gateway API in the list, in a search, in `top`, and on the page; and ports of TCP.

use crate::console::bed::{BINARY, Browser, CLASS, Fairway, ask, services, until};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::process::Command;
use testkit::ports;

/// What would be read as markup somewhere.
const HOSTILE: &str = "<img src=x onerror=harm()>";

/// A Gateway with these listeners, of a class that is ours.
fn gateway(listeners: &Value) -> String {
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
        "metadata": {"name": "fairway", "generation": 1},
        "spec": {"controllerName": "fairway/gateway-controller"},
    });
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"namespace": "infra", "name": "web", "generation": 1},
        "spec": {"gatewayClassName": "fairway", "listeners": listeners},
    });
    format!("---\n{class}\n---\n{gateway}\n")
}

fn listener(name: &str, protocol: &str, port: u16) -> Value {
    json!({
        "name": name, "protocol": protocol, "port": port,
        "allowedRoutes": {"namespaces": {"from": "All"}},
    })
}

fn route(kind: &str, namespace: &str, name: &str, hosts: &[String], rules: &Value) -> String {
    let mut spec = json!({"parentRefs": [{"name": "web", "namespace": "infra"}], "rules": rules});
    if !hosts.is_empty() {
        spec["hostnames"] = json!(hosts);
    }
    let object = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
        "metadata": {"namespace": namespace, "name": name, "generation": 1},
        "spec": spec,
    });
    format!("---\n{object}\n")
}

fn shop(name: &str) -> String {
    let listeners = json!([listener("http", "HTTP", 80)]);
    let hosts = ["shop.test".to_owned()];
    let routes = route("HTTPRoute", "shop", name, &hosts, &rules());
    let calls = json!([{
        "matches": [{"method": {"service": "shop.Cart", "method": "Add"}}],
        "backendRefs": [{"name": "web", "port": 80}],
    }]);
    let calls = route("GRPCRoute", "shop", "calls", &["grpc.test".to_owned()], &calls);
    format!("{CLASS}{}{}{routes}{calls}", services(&["shop"]), gateway(&listeners))
}

fn rules() -> Value {
    json!([
        {
            "matches": [{"path": {"value": "/cart"}}],
            "backendRefs": [{"name": "web", "port": 80, "weight": 9}, {"name": "gone", "port": 80}],
        },
        {
            "matches": [{
                "path": {"value": "/cart"},
                "headers": [{"name": "X-Key", "value": "hunter2"}],
            }],
            "filters": [{
                "type": "RequestHeaderModifier",
                "requestHeaderModifier": {"set": [{"name": "X-Token", "value": "hunter2"}]},
            }],
            "backendRefs": [{"name": "web", "port": 80}],
        },
        {
            "matches": [{"path": {"value": "/old"}}],
            "filters": [{"type": "RequestRedirect", "requestRedirect": {"statusCode": 301}}],
        },
    ])
}

#[test]
fn routes_of_gateways_are_listed_and_found_with_their_traffic() {
    let fairway = Fairway::start(&shop("front"), &[]);
    let all = fairway.api("/api/v1/routes?search=shop.test");
    let rows = all["routes"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "two shares, and two rules: {all:#}");
    assert!(!all.to_string().contains("hunter2"), "{all:#}");
    let of = |asks: &str, backend: &str| {
        rows.iter()
            .find(|row| {
                row["asks"].as_str() == Some(asks)
                    && row["backend"].as_str().is_some_and(|text| text.starts_with(backend))
            })
            .unwrap_or_else(|| panic!("{asks} {backend}: {all:#}"))
    };
    let main = of("HTTP", "gateway:shop/web:80");
    assert_eq!(main["route"], "HTTPRoute shop/front");
    assert_eq!((&main["weight"], &main["ready"]), (&json!("9 of 10"), &json!(1)));
    assert_eq!(of("HTTP", "500:")["weight"], "1 of 10");
    let by_header = of("HTTP, header x-key", "gateway:shop/web:80");
    assert_eq!(of("HTTP", "redirect")["path"], "/old");
    for (search, found) in [
        ("httproute", 4),
        ("shop/front%2010.0.0.1:8080", 2),
        ("grpcroute%20grpc.test", 1),
        ("x-key", 1),
        ("shop/web", 3),
    ] {
        let all = fairway.api(&format!("/api/v1/routes?search={search}"));
        assert_eq!(all["found"], found, "{search}: {all:#}");
    }
    let encoded = |text: &Value| -> String {
        form_urlencoded::byte_serialize(text.as_str().expect("a text").as_bytes()).collect()
    };
    let id = encoded(&by_header["id"]);
    let path = format!("/api/v1/route?host=shop.test&path=/cart&id={id}");
    let details = fairway.api(&path);
    assert_eq!(details["route"]["asks"], "HTTP, header x-key");
    assert_eq!(details["endpoints"][0]["address"], "10.0.0.1:8080");
    assert!(!details.to_string().contains("hunter2"), "{details:#}");
    let settings = details["settings"].as_array().expect("a list");
    let edits = settings.iter().find(|one| one["field"] == "route.request");
    let edits = edits.unwrap_or_else(|| panic!("{details:#}"));
    assert!(edits["value"].to_string().contains("x-token: …"), "{edits:#}");
    assert_eq!(edits["asked"][0]["object"], "HTTPRoute shop/front");
    assert_eq!(edits["asked"][0]["key"], "filters: RequestHeaderModifier");
    // It is counted where it is answered, and so is why it failed.
    until("requests a second are seen", || {
        let status = ask(fairway.http, "/old", "Host: shop.test\r\n").expect("an answer").0;
        assert_eq!(status, 301);
        let all = fairway.api("/api/v1/routes?search=/old&sort=rate");
        all["routes"][0]["traffic"]["rate"].as_f64() > Some(0.0)
    });
    let port = fairway.admin.port().to_string();
    let top = Command::new(BINARY)
        .args(["top", "--healthz-port", &port, "--search", "httproute", "--once"])
        .output()
        .expect("the program runs");
    let page = String::from_utf8_lossy(&top.stdout);
    assert!(page.contains("shop.test/cart  HTTPRoute shop/front  gateway:shop/web:80"), "{page}");
}

#[test]
fn ports_and_hosts_that_are_carried_on_are_in_the_list() {
    let [tcp, tls] = [ports::free(), ports::free()];
    let mut passed = listener("passed", "TLS", tls);
    passed["tls"] = json!({"mode": "Passthrough"});
    let listeners = json!([listener("db", "TCP", tcp), passed]);
    let backends = json!([{"backendRefs": [{"name": "web", "port": 80}]}]);
    let objects = format!(
        "{CLASS}{}{}{}{}",
        services(&["shop"]),
        gateway(&listeners),
        route("TCPRoute", "shop", "db", &[], &backends),
        route("TLSRoute", "shop", "passed", &["passed.test".to_owned()], &backends),
    );
    let fairway = Fairway::start(&objects, &["--gateway-addresses=127.0.0.1/32"]);
    let row = |search: &str| {
        let all = fairway.api(&format!("/api/v1/routes?search={search}"));
        assert_eq!(all["found"], 1, "{all:#}");
        all["routes"][0].clone()
    };
    let passed = row("passed.test");
    assert_eq!(
        (&passed["protocol"], &passed["route"], &passed["kind"]),
        (&json!("TLS"), &json!("TLSRoute shop/passed"), &json!("Host"))
    );
    assert_eq!(passed["ready"], 1);
    let db = row("TCPRoute");
    assert_eq!((&db["protocol"], &db["route"]), (&json!("TCP"), &json!("TCPRoute shop/db")));
    assert_eq!(db["host"], format!("127.0.0.1:{tcp}/tcp"));
    let path = format!("/api/v1/route?host=127.0.0.1:{tcp}/tcp&kind=Port");
    assert_eq!(fairway.api(&path)["endpoints"][0]["address"], "10.0.0.1:8080");
    until("connections a second are seen", || {
        drop(TcpStream::connect(("127.0.0.1", tcp)));
        row("TCPRoute")["traffic"]["rate"].as_f64() > Some(0.0)
    });
}

#[tokio::test]
async fn ten_thousand_routes_of_gateways_stay_a_few_elements() {
    let backends = json!([{"backendRefs": [{"name": "web", "port": 80}]}]);
    let mut objects = format!(
        "{CLASS}{}{}",
        services(&["shop"]),
        gateway(&json!([listener("http", "HTTP", 80)]))
    );
    for number in 0..625 {
        let hosts: Vec<String> =
            (0..16).map(|host| format!("h{:05}.test", number * 16 + host)).collect();
        objects += &route("HTTPRoute", "shop", &format!("r{number}"), &hosts, &backends);
    }
    let fairway = Fairway::start(&objects, &[]);
    let browser = Browser::open(&fairway).await;
    browser.view("routes").await;
    browser.until_text("10,001 routes").await;
    let rows = "return document.querySelectorAll('.list .space .row').length";
    let few = browser.run(rows).await.as_u64().expect("a number");
    assert!((10..120).contains(&few), "{few} rows are elements");
    browser.run("document.querySelector('.list').scrollTop = 1e9").await;
    browser.until_text("h09999.test").await;
    browser.until_text("HTTPRoute shop/r624").await;
    browser.view("routes?search=h04242").await;
    browser.until_text("1 of 10,001 routes").await;
}

#[tokio::test]
async fn a_route_of_a_gateway_opens_and_no_name_becomes_markup() {
    // Folders are read without the API server's rules.
    let fairway = Fairway::start(&shop(HOSTILE), &[]);
    let browser = Browser::open(&fairway).await;
    browser.view("routes?search=httproute").await;
    browser.until_text("HTTPRoute shop/<img").await;
    browser.run("document.querySelector('.list [data-key^=\"shop.test\"]').click()").await;
    browser
        .until("return document.querySelector('dialog[open]')?.innerText.includes('HTTPRoute shop/<img') === true")
        .await;
    assert_eq!(browser.inaccessible().await, [""; 0], "the details");
    let harm = "return document.querySelector('main img, main script, main b') !== null";
    assert_eq!(browser.run(harm).await, Value::Bool(false));
}
