//! Where requests go, through nginx's own phases.

use crate::lua::bed::{Answer, Nginx};
use std::collections::{BTreeMap, BTreeSet};

/// `"endpoints": [...]` of these hosts of 127.0.0.0/8; those above 100 are dead.
fn endpoints(hosts: &[u8]) -> String {
    let peers: Vec<String> = hosts
        .iter()
        .map(|host| {
            let port = if *host > 100 { "1" } else { "PORT" };
            format!(r#"{{"address":"127.0.0.{host}","port":"{port}"}}"#)
        })
        .collect();
    format!("[{}]", peers.join(","))
}

fn cart(hosts: &[u8], policy: &str) -> String {
    let endpoints = endpoints(hosts);
    format!(
        r#"{{"name":"demo-cart-80","endpoints":{endpoints},"routes":{{"prefix:shop.example/":{policy}}}}}"#
    )
}

fn session(mode: &str, more: &str) -> String {
    format!(
        r#""sessionAffinityConfig":{{"name":"cookie","mode":"{mode}","cookieSessionAffinity":{{
            "name":"S"{more}}}}}"#
    )
}

fn cookie(answer: &Answer) -> Option<String> {
    let lines = answer.all("Set-Cookie");
    let line = lines.iter().find(|line| line.starts_with("S="))?;
    Some(line.split(';').next()?.to_owned())
}

#[tokio::test]
async fn all_workers_share_the_turn() {
    let nginx = Nginx::start().await;
    nginx.push(&format!("[{}]", cart(&[2, 3, 4], "{}")));
    let mut counts = BTreeMap::new();
    for _ in 0..30 {
        *counts.entry(nginx.get("/", "").body).or_insert(0) += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [10, 10, 10]);
}

#[tokio::test]
async fn connections_to_endpoints_are_kept_and_used_again() {
    let nginx = Nginx::start().await;
    nginx.push(&format!("[{}]", cart(&[2], "{}")));
    let connections: BTreeSet<String> =
        (0..30).map(|_| nginx.get("/connection", "").body).collect();
    assert!(connections.len() <= nginx.workers().len(), "one for each worker: {connections:?}");
}

#[tokio::test]
async fn dead_endpoints_are_passed_over_and_nobody_left_is_502() {
    let nginx = Nginx::start().await;
    for policy in ["{}", r#"{"load-balance":"ewma"}"#] {
        nginx.push(&format!("[{}]", cart(&[101, 102, 2], policy)));
        for _ in 0..9 {
            assert_eq!(nginx.get("/", "").body, "127.0.0.2", "{policy}");
        }
    }
    for mode in ["persistent", "balanced"] {
        nginx.push(&format!("[{}]", cart(&[101, 102], &format!("{{{}}}", session(mode, "")))));
        assert_eq!(nginx.get("/", "").status, 502, "{mode}");
    }
    nginx.push(&format!("[{}]", cart(&[], "{}")));
    assert_eq!(nginx.get("/", "").status, 503);
}

#[tokio::test]
async fn endpoints_that_end_serve_while_nobody_else_does() {
    let nginx = Nginx::start().await;
    let (ready, draining) = (endpoints(&[2]), endpoints(&[3]));
    let push = |ready: &str| {
        nginx.push(&format!(
            r#"[{{"name":"demo-cart-80","endpoints":{ready},"draining":{draining}}}]"#
        ));
    };
    push(&ready);
    assert!((0..9).all(|_| nginx.get("/", "").body == "127.0.0.2"));
    push("[]");
    assert!((0..9).all(|_| nginx.get("/", "").body == "127.0.0.3"));
}

#[tokio::test]
async fn a_key_stays_with_its_endpoint_and_its_set() {
    let nginx = Nginx::start().await;
    let hash = r#"{"upstreamHashByConfig":{"upstream-hash-by":"${arg_user}-$http_nothing"}}"#;
    nginx.push(&format!(
        "[{}]",
        cart(&[2, 3, 4, 5], &hash.replace("$http_nothing", "${http_nothing}"))
    ));
    let of = |user: usize| nginx.get(&format!("/?user={user}"), "").body;
    let homes: BTreeSet<String> = (0..100).map(of).collect();
    assert!(homes.len() > 1, "keys are spread");
    for user in 0..5 {
        let home = of(user);
        assert!((0..5).all(|_| of(user) == home));
    }
    let subset = r#"{"upstreamHashByConfig":{"upstream-hash-by":"${arg_user}","upstream-hash-by-subset":true,
        "upstream-hash-by-subset-size":2}}"#;
    nginx.push(&format!("[{}]", cart(&[2, 3, 4, 5], subset)));
    let set: BTreeSet<String> = (0..30).map(|_| of(7)).collect();
    assert_eq!(set.len(), 2, "{set:?}");
}

#[tokio::test]
async fn sessions_are_kept_and_belong_to_one_ingress() {
    let nginx = Nginx::start().await;
    for mode in ["persistent", "balanced"] {
        let more = r#","maxage":"60","expires":"60","path":"/p","domain":"example","secure":true,"samesite":"None""#;
        nginx.push(&format!("[{}]", cart(&[2, 3, 4], &format!("{{{}}}", session(mode, more)))));
        let first = nginx.get("/set-cookie", "");
        let lines = first.all("Set-Cookie");
        assert_eq!(lines.len(), 2, "the application's cookie stays: {lines:?}");
        let attributes: Vec<&str> = lines[0].split("; ").skip(1).collect();
        assert!(attributes[0].starts_with("Expires="), "{attributes:?}");
        assert_eq!(
            attributes[1..],
            ["Max-Age=60", "Domain=example", "Path=/p", "Secure", "HttpOnly", "SameSite=None"]
        );
        let cookie = cookie(&first).expect("a new session");
        for _ in 0..9 {
            let again = nginx.get("/", &format!("Cookie: a=b; {cookie}\r\n"));
            assert_eq!(
                (again.body.as_str(), again.all("Set-Cookie").len()),
                (first.body.as_str(), 0)
            );
        }
        let other = nginx.get("/other", "");
        assert!(
            other.all("Set-Cookie").is_empty(),
            "another Ingress of the Service has no sessions"
        );
    }
}

#[tokio::test]
async fn a_new_session_has_one_cookie_and_it_names_the_endpoint_that_answered() {
    let nginx = Nginx::start().await;
    for mode in ["persistent", "balanced"] {
        let policy = format!("{{{}}}", session(mode, r#","change_on_failure":true"#));
        nginx.push(&format!("[{}]", cart(&[101, 102, 2], &policy)));
        let mut seen = 0;
        for _ in 0..9 {
            let answer = nginx.get("/", "");
            // Two dead endpoints of three: the third try reaches the one that lives, if it draws well.
            let Some(cookie) = cookie(&answer).filter(|_| answer.status == 200) else { continue };
            assert_eq!(answer.all("Set-Cookie").len(), 1);
            let again = nginx.get("/", &format!("Cookie: {cookie}\r\n"));
            assert_eq!((again.status, again.all("Set-Cookie").len()), (200, 0));
            seen += 1;
        }
        assert!(seen > 0, "{mode}");
    }
}

#[tokio::test]
async fn endpoints_that_end_keep_their_sessions() {
    let nginx = Nginx::start().await;
    let policy = format!("{{{}}}", session("persistent", ""));
    nginx.push(&format!("[{}]", cart(&[2], &policy)));
    let kept = cookie(&nginx.get("/", "")).expect("a new session");
    let (ready, draining) = (endpoints(&[3]), endpoints(&[2]));
    nginx.push(&format!(
        r#"[{{"name":"demo-cart-80","endpoints":{ready},"draining":{draining},"routes":{{"prefix:shop.example/":{policy}}}}}]"#
    ));
    assert_eq!(nginx.get("/", &format!("Cookie: {kept}\r\n")).body, "127.0.0.2");
    assert!((0..9).all(|_| nginx.get("/", "").body == "127.0.0.3"));
}

fn canary(rules: &str, more: &str) -> String {
    format!(
        r#"{{"alternative":{{"backend":"demo-new-80","trafficShapingPolicy":{rules}{more}}}{more}}}"#
    )
}

fn with_canary(hosts: &[u8], policy: &str) -> String {
    format!(r#"[{},{{"name":"demo-new-80","endpoints":{}}}]"#, cart(&[2], policy), endpoints(hosts))
}

#[tokio::test]
async fn a_canary_hangs_on_its_route_and_not_on_the_service() {
    let nginx = Nginx::start().await;
    nginx.push(&with_canary(&[9], &canary(r#"{"weight":100}"#, "")));
    let answer = nginx.get("/", "");
    assert_eq!(answer.body, "127.0.0.9");
    assert_eq!(answer.all("X-Upstream"), ["demo-cart-80 demo-new-80"]);
    let other = nginx.get("/other", "");
    assert_eq!(other.body, "127.0.0.2", "another path of the same Service");
    assert_eq!(other.all("X-Upstream"), ["demo-cart-80 "]);
    nginx.push(&with_canary(&[], &canary(r#"{"weight":100}"#, "")));
    assert_eq!(nginx.get("/", "").body, "127.0.0.2", "a canary without endpoints takes nothing");
}

#[tokio::test]
async fn headers_cookies_and_weights_choose_the_side() {
    let nginx = Nginx::start().await;
    let rules = r#"{"weight":0,"header":"x_canary","headerPattern":"^(a|b)$","cookie":"canary"}"#;
    nginx.push(&with_canary(&[9], &canary(rules, "")));
    for (fields, side) in [
        ("", "127.0.0.2"),
        ("X-Canary: a\r\n", "127.0.0.9"),
        ("x-canary: c\r\n", "127.0.0.2"),
        ("X-Canary: a\r\nX-Canary: b\r\n", "127.0.0.2"),
        ("Cookie: canary=always\r\n", "127.0.0.9"),
        ("Cookie: CANARY=always\r\n", "127.0.0.9"),
        ("Cookie: canary=maybe\r\n", "127.0.0.2"),
    ] {
        assert_eq!(nginx.get("/", fields).body, side, "{fields}");
    }
    let rules = r#"{"weight":30,"weightTotal":100}"#;
    nginx.push(&with_canary(&[9], &canary(rules, "")));
    let taken = (0..400).filter(|_| nginx.get("/", "").body == "127.0.0.9").count();
    assert!((70..170).contains(&taken), "{taken} of 400 for a weight of 30 in 100");
}

#[tokio::test]
async fn a_session_decides_before_every_rule() {
    let nginx = Nginx::start().await;
    let shared = format!(",{}", session("persistent", ""));
    nginx.push(&with_canary(&[9], &canary(r#"{"weight":0,"header":"x_canary"}"#, &shared)));
    let of = |fields: &str| nginx.get("/", fields);
    let main = cookie(&of("")).expect("a session of the main side");
    let new = cookie(&of("X-Canary: always\r\n")).expect("a session of the canary");
    assert_eq!(of(&format!("Cookie: {new}\r\nX-Canary: never\r\n")).body, "127.0.0.9");
    assert_eq!(of(&format!("Cookie: {main}\r\nX-Canary: always\r\n")).body, "127.0.0.2");
}

#[tokio::test]
async fn somebody_stands_in_while_nobody_is_there() {
    let nginx = Nginx::start().await;
    let sorry = format!(r#"{{"name":"demo-sorry-80","endpoints":{}}}"#, endpoints(&[7]));
    let push = |hosts: &[u8]| {
        nginx.push(&format!("[{},{sorry}]", cart(hosts, r#"{"stand-in":"demo-sorry-80"}"#)));
    };
    push(&[]);
    let answer = nginx.get("/", "");
    assert_eq!(answer.body, "127.0.0.7");
    assert_eq!(answer.all("X-Upstream"), ["demo-sorry-80 "]);
    assert_eq!(nginx.get("/other", "").status, 503, "it stands in for its own route only");
    push(&[2]);
    assert_eq!(nginx.get("/", "").body, "127.0.0.2");
}

#[tokio::test]
async fn who_stands_in_is_chosen_as_the_upstream_would_be_beside_its_canary() {
    let nginx = Nginx::start().await;
    let route = format!(
        r#"{{"stand-in":"demo-sorry-80",{},"alternative":{{"backend":"demo-new-80","trafficShapingPolicy":{{
            "weight":0,"header":"x_canary"}}}}}}"#,
        session("persistent", "")
    );
    let other = |name: &str, hosts: &[u8]| {
        format!(r#"{{"name":"demo-{name}-80","endpoints":{}}}"#, endpoints(hosts))
    };
    let (sorry, new) = (other("sorry", &[7, 8]), other("new", &[9]));
    nginx.push(&format!("[{},{sorry},{new}]", cart(&[], &route)));
    let first = nginx.get("/", "");
    let told = cookie(&first).expect("a session of who stands in");
    for _ in 0..4 {
        assert_eq!(nginx.get("/", &format!("Cookie: {told}\r\n")).body, first.body);
    }
    let answer = nginx.get("/", "X-Canary: always\r\n");
    assert_eq!(answer.body, "127.0.0.9");
    assert_eq!(answer.all("X-Upstream"), ["demo-sorry-80 demo-new-80"]);
}

#[tokio::test]
async fn slow_endpoints_get_fewer_requests() {
    let nginx = Nginx::start().await;
    nginx.push(&format!("[{}]", cart(&[2, 3, 50], r#"{"load-balance":"ewma"}"#)));
    let slow = (0..60).filter(|_| nginx.get("/slow", "").body == "127.0.0.50").count();
    assert!(slow < 12, "{slow} of 60 requests went to the slow one");
}
