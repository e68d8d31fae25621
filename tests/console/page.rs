//! What a person sees: every view, ten thousand routes, a change while looking, and names that mean harm.

use crate::console::bed::{Browser, CLASS, ELSEWHERE, Fairway, PATIENCE, ask, ingress, services};
use serde_json::{Value, json};
use std::time::Instant;

/// What would be read as markup somewhere.
const HOSTILE: &str =
    "<img src=x onerror=\"window.harmed=1\"><script>window.harmed=1</script>\u{202e}";
const VIEWS: [&str; 7] = [
    "overview",
    "routes",
    "problems",
    "certificates",
    "changes",
    "explain?url=http://shop.test/",
    "limits",
];

fn shop() -> String {
    let annotations = json!({"nginx.ingress.kubernetes.io/proxy-connect-timeout": "7"});
    let hosts = ["shop.test".to_owned(), "www.shop.test".to_owned()];
    let shop = ingress("shop", "front", &annotations, &hosts);
    let wrong = json!({
        "nginx.ingress.kubernetes.io/proxy-read-timeout": HOSTILE,
        "nginx.ingress.kubernetes.io/auth-secret": HOSTILE,
    });
    let bad = ingress("other", "bad", &wrong, &["bad.test".to_owned()]);
    let paths = ingress("other", HOSTILE, &json!({}), &["paths.test".to_owned()]);
    let paths = paths.replace("\"path\":\"/\"", "\"path\":\"/<b onclick=harm()>\"");
    format!("{CLASS}{}{shop}{bad}{paths}", services(&["shop", "other"]))
}

#[tokio::test]
async fn every_view_is_shown_fits_and_is_for_everybody_and_no_name_becomes_markup() {
    let fairway = Fairway::start(&shop(), &[]);
    for _ in 0..20 {
        assert_eq!(ask(fairway.http, "/", "Host: nobody.test\r\n").expect("an answer").0, 404);
    }
    let browser = Browser::open(&fairway).await;
    for view in VIEWS {
        browser.view(view).await;
        for (dark, width) in [(false, 1280), (true, 320)] {
            browser.look(dark, width).await;
            let name = view.split('?').next().unwrap_or_default();
            let wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
            browser.until(wide).await;
            assert_eq!(browser.inaccessible().await, [""; 0], "{view}, {width} px");
            if name == "overview" {
                browser.until_text("this process is in no Pod of a cluster").await;
            }
        }
        let harm = "return window.harmed !== undefined || document.querySelector('main img, main script, main b') !== null";
        assert_eq!(browser.run(harm).await, Value::Bool(false), "{view}");
    }
    browser.view("problems").await;
    browser.until_text("proxy-read-timeout").await;
    browser.until_text("<img src=x").await;
    browser.view("explain?url=http://shop.test/").await;
    browser.until_text("shop-web-http").await;
    details(&browser).await;
    keyboard(&browser).await;
    browser.goto("/").await;
    assert_eq!(browser.inaccessible().await, [""; 0], "the index");
}

/// One route with all that is in force there.
async fn details(browser: &Browser) {
    browser.look(false, 1280).await;
    browser.view("routes?search=shop").await;
    browser.until_text("www.shop.test").await;
    browser.run("document.querySelector('.list [data-key^=\"shop.test\"]').click()").await;
    browser.until("return document.querySelector('dialog[open]')?.innerText.includes('proxy-connect-timeout') === true").await;
    let text = browser.run("return document.querySelector('dialog[open]').innerText").await;
    let text = text.as_str().expect("a text");
    for shown in [
        "10.0.0.1:8080",
        "timeouts.connect",
        "7s",
        "nginx.ingress.kubernetes.io/proxy-connect-timeout: 7",
        "Ingress shop/front",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert_eq!(browser.inaccessible().await, [""; 0], "the details");
    browser.run("document.querySelector('dialog[open] button').click()").await;
}

/// The page without a mouse.
async fn keyboard(browser: &Browser) {
    browser.view("overview").await;
    browser.page.refresh().await.expect("the page");
    browser.until("return document.getElementById('view').innerText.includes('In force')").await;
    let body = browser.page.find(fantoccini::Locator::Css("body")).await.expect("it is there");
    // The first stop skips to the view, the second one is the first link of the views, the fourth one the third.
    body.send_keys("\u{e004}\u{e004}\u{e004}\u{e004}").await.expect("keys");
    let focused = browser.page.active_element().await.expect("something has the focus");
    assert_eq!(focused.text().await.expect("a text"), "Problems");
    focused.send_keys("\u{e007}").await.expect("a key");
    browser.until("return document.querySelector('h1').textContent === 'Problems'").await;
    browser.until("return document.activeElement.id === 'view'").await;
}

#[tokio::test]
async fn ten_thousand_routes_stay_a_few_elements_and_one_request_for_each_view() {
    let namespaces: Vec<String> = (0..20).map(|number| format!("team-{number}")).collect();
    let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    let mut objects = format!("{CLASS}{}", services(&names));
    for number in 0..200 {
        let hosts: Vec<String> =
            (0..50).map(|host| format!("h{:05}.test", number * 50 + host)).collect();
        objects += &ingress(names[number % 20], &format!("i{number}"), &json!({}), &hosts);
    }
    let fairway = Fairway::start(&objects, &[]);
    let browser = Browser::open(&fairway).await;
    browser.view("routes").await;
    browser.until_text("10,001 routes").await;
    let rows = "return document.querySelectorAll('.list .space .row').length";
    let few = browser.run(rows).await.as_u64().expect("a number");
    assert!((10..120).contains(&few), "{few} rows are elements");
    browser
        .run("performance.clearResourceTimings(); document.querySelector('.list').scrollTop = 1e9")
        .await;
    let began = Instant::now();
    browser.until_text("h09999.test").await;
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    let asked = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/v1/routes')).length";
    let asked = browser.run(asked).await.as_u64().expect("a number");
    // One for the scroll; others for beats that came meanwhile.
    assert!(asked <= 3 + began.elapsed().as_secs() / 5, "{asked} requests");
    let all = fairway.api("/api/v1/routes?search=team-7%20h08");
    assert_eq!((all["total"].as_u64(), all["found"].as_u64()), (Some(10_001), Some(50)));
    assert_eq!(all["routes"][0]["service"], "team-7/web:http");
    let last = fairway.api("/api/v1/routes?offset=10000&limit=500");
    assert_eq!(last["routes"].as_array().map(Vec::len), Some(1));
    browser.view("routes?search=h04242").await;
    browser.until_text("1 of 10,001 routes").await;
    look_of_ten(&fairway, &browser).await;
}

/// What it costs when ten look: told where it is asked for, as the numbers of a loaded machine prove nothing.
async fn look_of_ten(fairway: &Fairway, browser: &Browser) {
    if std::env::var_os("FAIRWAY_SHOW").is_none() {
        return;
    }
    let ticks = || {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", fairway.id())).expect("it runs");
        let after = stat.rsplit(')').next().expect("fields");
        let fields: Vec<u64> =
            after.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Without the state, which is no number: utime and stime.
        fields[10] + fields[11]
    };
    let span = std::time::Duration::from_secs(30);
    browser.goto("/healthz").await;
    let idle = ticks();
    #[expect(clippy::disallowed_methods, reason = "processor time is measured over a span")]
    tokio::time::sleep(span).await;
    let idle = ticks() - idle;
    for _ in 0..10 {
        let window = browser.page.new_window(false).await.expect("a window");
        browser.page.switch_to_window(window.handle).await.expect("a window");
        browser.view("routes").await;
    }
    let busy = ticks();
    #[expect(clippy::disallowed_methods, reason = "processor time is measured over a span")]
    tokio::time::sleep(span).await;
    let busy = ticks() - busy;
    println!("nobody: {idle} hundredths of a second in 30 s; ten: {busy}");
}

#[tokio::test]
async fn a_change_appears_while_somebody_looks() {
    let fairway = Fairway::start(&shop(), &[]);
    let browser = Browser::open(&fairway).await;
    browser.view("changes").await;
    let new = ingress("shop", "new", &json!({}), &["new.test".to_owned()]);
    fairway.write("new.yaml", &new);
    browser.until_text("host is served: new.test").await;
    browser.until_text("Ingress shop/new").await;
    let slow = json!({"nginx.ingress.kubernetes.io/proxy-connect-timeout": "9"});
    fairway.write("new.yaml", &ingress("shop", "new", &slow, &["new.test".to_owned()]));
    browser.until_text("timeouts.connect").await;
    browser.view("routes").await;
    browser.until_text("new.test").await;
    browser.view("problems").await;
    let bad = json!({"nginx.ingress.kubernetes.io/proxy-send-timeout": "soon"});
    fairway.write("new.yaml", &ingress("shop", "new", &bad, &["new.test".to_owned()]));
    browser.until_text("proxy-send-timeout").await;
}

#[tokio::test]
async fn whoever_looks_from_elsewhere_is_asked_for_the_token_once() {
    const TOKEN: &str = "a-token-of-the-admin-port";
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), TOKEN).expect("it is written");
    let flag = format!("--admin-token-file={}", file.path().display());
    let fairway = Fairway::start(&shop(), &[&flag]);
    let browser = Browser::open(&fairway).await;
    let page = format!("http://{ELSEWHERE}:{}/ui#problems", fairway.admin.port());
    let give = async |token: &str| {
        let script = format!(
            "document.querySelector('dialog input').value = '{token}'; document.querySelector('dialog button').click()"
        );
        browser.run(&script).await;
    };
    let dialogs = "return document.querySelectorAll('dialog[open]').length";
    browser.page.goto(&page).await.expect("the page");
    browser.until(&format!("{dialogs} === 1")).await;
    assert_eq!(browser.inaccessible().await, [""; 0], "the question");
    give("another-token-of-the-port").await;
    browser
        .until("return document.querySelector('dialog')?.innerText.includes('that is not the token') === true")
        .await;
    give(TOKEN).await;
    browser.until_text("proxy-read-timeout").await;
    browser.until("return document.getElementById('state').textContent === 'live'").await;
    assert_eq!(browser.run(dialogs).await, 0, "both who asked have it");
    // Whoever has none is told, and left alone.
    browser.page.refresh().await.expect("the page");
    browser.until(&format!("{dialogs} === 1")).await;
    browser.run("document.querySelector('dialog button[type=button]').click()").await;
    browser.until_text("load the page anew").await;
    let tries = "return performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/events')).length >= 3";
    browser.until(tries).await;
    assert_eq!(browser.run(dialogs).await, 0, "nobody is asked again");
}

#[tokio::test]
async fn a_search_says_when_there_is_nobody_to_ask() {
    let fairway = Fairway::start(&shop(), &[]);
    let browser = Browser::open(&fairway).await;
    browser.view("problems").await;
    browser.until_text("proxy-read-timeout").await;
    drop(fairway);
    let search = "const field = document.querySelector('input[type=search]'); field.value = 'shop'; \
                  field.dispatchEvent(new Event('input'))";
    browser.run(search).await;
    browser.until_text("no answer: Fairway has ended").await;
}
