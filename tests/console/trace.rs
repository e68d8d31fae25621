//! One real request is followed by its id: the page tells its story, and nobody else notices.

use crate::console::bed::{Browser, CLASS, Fairway, ask, ingress, services};
use serde_json::{Value, json};

fn shop() -> String {
    let annotations = json!({
        "nginx.ingress.kubernetes.io/canary": "true",
        "nginx.ingress.kubernetes.io/canary-by-header": "X-Canary",
    });
    let hosts = ["shop.test".to_owned()];
    let main = ingress("shop", "front", &json!({}), &hosts);
    let canary = ingress("shop", "canary", &annotations, &hosts).replace("\"web\"", "\"other\"");
    let other = services(&["shop"])
        .replace("name: web", "name: other")
        .replace("service-name: web", "service-name: other")
        .replace("[10.0.0.1], conditions: {ready: true}", "[10.0.0.1], conditions: {ready: false}");
    let none = services(&["shop"])
        .replace("[10.0.0.1], conditions: {ready: true}", "[10.0.0.1], conditions: {ready: false}");
    format!("{CLASS}{none}{other}{main}{canary}")
}

#[test]
fn the_story_of_the_request_with_an_id_is_told_once_it_came() {
    let fairway = Fairway::start(&shop(), &[]);
    let story = || fairway.api("/api/v1/trace?id=look-1");
    assert_eq!(story()["awaited"], true);
    let send = |id: &str| {
        let fields = format!("Host: shop.test\r\nX-Request-ID: {id}\r\nX-Key: hunter2\r\n");
        ask(fairway.http, "/cart?token=hunter2", &fields).expect("an answer")
    };
    assert_eq!(send("look-2").0, 503);
    assert_eq!(story()["awaited"], true, "that was another one");
    let (status, body) = send("look-1");
    assert_eq!(status, 503);
    assert!(!body.contains("look-1"), "{body}");
    let told = story();
    assert_eq!(told["awaited"], false, "{told:#}");
    let text = told["decisions"].to_string();
    for word in ["shop.test", "Ingress shop/front", "503"] {
        assert!(text.contains(word), "{word}: {told:#}");
    }
    assert!(!text.contains("hunter2"), "{told:#}");
    for (id, status) in [("", 400), (&*"a".repeat(129), 400)] {
        let (found, text) = fairway.get(&format!("/api/v1/trace?id={id}")).expect("an answer");
        assert_eq!(found, status, "{text}");
    }
    let full = (0..16).any(|number| {
        fairway.get(&format!("/api/v1/trace?id=more-{number}")).expect("an answer").0 == 503
    });
    assert!(full, "so many are waited for, no more");
}

#[test]
fn a_question_may_have_header_fields_and_costs_no_limit() {
    let limited = json!({"nginx.ingress.kubernetes.io/limit-rpm": "1", "nginx.ingress.kubernetes.io/limit-burst-multiplier": "1"});
    let limited = ingress("shop", "limited", &limited, &["limited.test".to_owned()]);
    let ready = shop().replace("ready: false", "ready: true");
    let fairway = Fairway::start(&format!("{ready}{limited}"), &[]);
    let explained = |query: &str| fairway.api(&format!("/api/v1/explain?{query}")).to_string();
    let main = explained("url=http://shop.test/");
    assert!(main.contains("not the canary shop-other-http"), "{main}");
    let canary = explained("url=http://shop.test/&header=X-Canary:+always&header=X-Other:+1");
    assert!(!canary.contains("not the canary"), "{canary}");
    assert!(canary.contains("shop-other-http"), "{canary}");
    for _ in 0..5 {
        let text = explained("url=http://limited.test/");
        assert!(!text.contains("refused"), "{text}");
    }
    // What is kept for the next question follows what is in force.
    let new = ingress("shop", "new", &json!({}), &["new.test".to_owned()]);
    fairway.write("new.yaml", &new);
    crate::console::bed::until("the new host is explained", || {
        explained("url=http://new.test/").contains("Ingress shop/new")
    });
    let (status, text) =
        fairway.get("/api/v1/explain?url=http://a/&header=nothing").expect("an answer");
    assert!(status == 400 && text.contains("Name: value"), "{text}");
}

#[tokio::test]
async fn the_page_follows_a_request() {
    let fairway = Fairway::start(&shop(), &[]);
    let browser = Browser::open(&fairway).await;
    browser.view("explain").await;
    browser
        .run("document.querySelector('#follow input').value = 'look-1'; document.querySelector('#follow button').click()")
        .await;
    browser.until_text("Waiting. Send it now").await;
    assert_eq!(browser.inaccessible().await, [""; 0], "while it waits");
    let fields = "Host: shop.test\r\nX-Request-ID: look-1\r\n";
    assert_eq!(ask(fairway.http, "/", fields).expect("an answer").0, 503);
    browser.until_text("Answered ").await;
    browser.until_text("Ingress shop/front").await;
    let link = "return document.querySelector('main td a[href^=\"#routes\"]') !== null || document.querySelector('main td').innerText !== ''";
    assert_eq!(browser.run(link).await, Value::Bool(true));
}

#[tokio::test]
async fn the_form_takes_header_fields() {
    let fairway = Fairway::start(&shop().replace("ready: false", "ready: true"), &[]);
    let browser = Browser::open(&fairway).await;
    browser.view("explain").await;
    browser
        .run("document.querySelector('[name=url]').value = 'http://shop.test/'; document.querySelector('[name=header]').value = 'X-Canary: always\\nX-Other: 1'; document.querySelector('form button').click()")
        .await;
    browser.until_text("shop-other-http").await;
}

#[test]
fn the_index_links_what_is_there() {
    let fairway = Fairway::start(&shop(), &[]);
    let (_, page) = fairway.get("/").expect("an answer");
    let links: Vec<&str> =
        page.split("href=\"").skip(1).filter_map(|rest| rest.split(['"', '#']).next()).collect();
    for wanted in
        ["/ui", "/metrics", "/healthz", "/healthz/ping", "/configuration", "/api/v1/openapi.json"]
    {
        assert!(links.contains(&wanted), "{wanted}: {links:?}");
    }
    for link in links {
        assert_eq!(fairway.get(link).expect("an answer").0, 200, "{link}");
    }
}
