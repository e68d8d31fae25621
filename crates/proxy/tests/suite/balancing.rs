//! Which endpoint a request gets: sessions, hashes and scores over real sockets.

use crate::bed::{self, named as upstream};
use balance::{Cookie, upstream_key};
use engine::Engine;
use model::policy::{
    Affinity, AffinityMode, Algorithm, Balance, Canary, CanaryHeader, CanaryRules, CanaryTest,
    Condition, Policy, Retries,
};
use model::{
    Configuration, Global, Kind, LogFormat, LogTarget, Logs, Origin, ServerName, Template,
    UpstreamId,
};
use proxy::Native;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const CANARY: &str = "demo-new-80";

fn by(algorithm: Algorithm, affinity: Option<Affinity>) -> Policy {
    Policy {
        balance: Balance { algorithm, affinity: affinity.map(Into::into) },
        ..Policy::default()
    }
}

fn affinity(mode: AffinityMode) -> Affinity {
    Affinity {
        mode,
        name: "s".to_owned(),
        secure: false,
        expires: None,
        max_age: Some(60),
        path: None,
        domain: None,
        same_site: None,
        conditional_same_site_none: false,
        change_on_failure: false,
        of_rule: None,
    }
}

async fn get(native: &Native, target: &str, cookie: &str) -> String {
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
    );
    bed::talk(native, request.as_bytes()).await
}

/// A canary beside the location of the host.
pub(crate) fn put_beside(configuration: &mut Configuration, rules: CanaryRules, balance: Balance) {
    let name = ServerName::new("a.test");
    let mut server = configuration.servers[&name].clone();
    let location = Arc::make_mut(&mut Arc::make_mut(&mut server).locations[0]);
    let origin = Origin::new(Kind::Ingress, "demo", "new");
    let rules = rules.into();
    let canary = Canary { upstream: UpstreamId::new(CANARY), origin, rules, balance };
    location.canary = Some(canary.into());
    configuration.servers.insert(name, server);
}

/// Whose answer it is.
fn who(answer: &str) -> &str {
    answer.rsplit("\r\n\r\n").next().unwrap_or_default()
}

fn cookies(answer: &str) -> Vec<&str> {
    answer.lines().filter_map(|line| line.strip_prefix("Set-Cookie: s=")).collect()
}

#[tokio::test]
async fn slow_endpoints_get_fewer_requests() {
    let slow = upstream("slow", 200, Duration::from_millis(150)).await;
    let fast = upstream("fast", 200, Duration::ZERO).await;
    let policy = by(Algorithm::Ewma, None);
    let native = bed::start(&bed::configuration(&[(bed::MAIN, vec![slow, fast])], policy)).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..20 {
        *counts.entry(who(&get(&native, "/", "").await).to_owned()).or_default() += 1;
    }
    assert!(counts["fast"] >= 17, "{counts:?}");
}

#[tokio::test]
async fn a_new_session_has_one_cookie_and_it_names_the_endpoint_that_answered() {
    let (gone, _kept) = bed::nobody();
    let there = upstream("there", 200, Duration::ZERO).await;
    let policy = by(Algorithm::RoundRobin, Some(affinity(AffinityMode::Persistent)));
    let native = bed::start(&bed::configuration(&[(bed::MAIN, vec![gone, there])], policy)).await;
    for _ in 0..8 {
        let answer = get(&native, "/", "").await;
        let [cookie] = cookies(&answer)[..] else { panic!("one cookie: {answer}") };
        let (value, attributes) = cookie.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Max-Age=60; Path=/; HttpOnly");
        let parts = Cookie::read(value).expect("a session");
        assert_eq!(parts.upstream, Some(upstream_key(bed::MAIN).as_str()));
        let again = get(&native, "/", &format!("x=y; s={value}")).await;
        assert_eq!((who(&again), cookies(&again)), ("there", vec![]));
    }
}

#[tokio::test]
async fn of_several_cookies_with_the_name_the_last_counts_and_names_mind_the_case() {
    let endpoints =
        vec![upstream("a", 200, Duration::ZERO).await, upstream("b", 200, Duration::ZERO).await];
    let policy = by(Algorithm::RoundRobin, Some(affinity(AffinityMode::Persistent)));
    let native = bed::start(&bed::configuration(&[(bed::MAIN, endpoints)], policy)).await;
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    while known.len() < 2 {
        let answer = get(&native, "/", "").await;
        let value = cookies(&answer)[0].split(';').next().unwrap_or_default().to_owned();
        known.insert(who(&answer).to_owned(), value);
    }
    for (first, last) in [("a", "b"), ("b", "a")] {
        let cookie = format!("s={}; s={}", known[first], known[last]);
        assert_eq!(who(&get(&native, "/", &cookie).await), last);
        let other = get(&native, "/", &format!("S={}", known[last])).await;
        assert_eq!(cookies(&other).len(), 1, "another name is another cookie");
    }
}

#[tokio::test]
async fn a_session_whose_endpoint_is_gone_starts_anew() {
    let there = upstream("there", 200, Duration::ZERO).await;
    let policy = by(Algorithm::RoundRobin, Some(affinity(AffinityMode::Persistent)));
    let native = bed::start(&bed::configuration(&[(bed::MAIN, vec![there])], policy)).await;
    let vanished = Cookie::written(&"0".repeat(32), &upstream_key(bed::MAIN));
    let answer = get(&native, "/", &format!("s={vanished}")).await;
    assert_eq!((who(&answer), cookies(&answer).len()), ("there", 1));
}

#[tokio::test]
async fn a_key_stays_with_its_endpoint() {
    let endpoints =
        vec![upstream("a", 200, Duration::ZERO).await, upstream("b", 200, Duration::ZERO).await];
    let key = Template::parse("$request_uri").expect("a known variable");
    let policy = by(Algorithm::Hash(key), None);
    let native = bed::start(&bed::configuration(&[(bed::MAIN, endpoints)], policy)).await;
    for number in 0..10 {
        let target = format!("/{number}");
        let first = who(&get(&native, &target, "").await).to_owned();
        assert_eq!(who(&get(&native, &target, "").await), first);
    }
}

#[tokio::test]
async fn a_retry_stays_on_the_side_of_the_canary_and_a_canary_without_endpoints_takes_nothing() {
    let main = upstream("main", 200, Duration::ZERO).await;
    let failing = upstream("failing", 503, Duration::ZERO).await;
    let conditions = [Condition::Error, Condition::Status(503)].into();
    let policy = Policy {
        retries: Retries { conditions, ..Retries::default() },
        ..by(Algorithm::RoundRobin, Some(affinity(AffinityMode::Balanced)))
    };
    for (endpoints, wanted) in [(vec![failing], "failing"), (vec![], "main")] {
        let upstreams = [(bed::MAIN, vec![main]), (CANARY, endpoints)];
        let mut configuration = bed::configuration(&upstreams, policy.clone());
        let rules = CanaryRules { weight: 100, ..CanaryRules::default() };
        put_beside(&mut configuration, rules, policy.balance.clone());
        let native = bed::start(&configuration).await;
        // The session of the main side is known, so nothing else decides; without one the weight does.
        let session = Cookie::written("1.2.3.4", &upstream_key(bed::MAIN));
        assert_eq!(who(&get(&native, "/", &format!("s={session}")).await), "main");
        let session = Cookie::written("1.2.3.4", &upstream_key(CANARY));
        assert_eq!(who(&get(&native, "/", &format!("s={session}")).await), wanted);
        // A new session has no second endpoint to be tried at: 502, unless the main side has it.
        let answer = get(&native, "/", "").await;
        let status = if wanted == "main" { "HTTP/1.1 200" } else { "HTTP/1.1 502" };
        assert!(answer.starts_with(status), "{answer}");
        let [cookie] = cookies(&answer)[..] else { panic!("one cookie: {answer}") };
        let side = if wanted == "main" { bed::MAIN } else { CANARY };
        assert!(cookie.contains(&upstream_key(side)), "{cookie}");
    }
}

#[tokio::test]
async fn a_canary_by_the_host_header_gets_who_asks_for_that_name() {
    let main = upstream("main", 200, Duration::ZERO).await;
    let new = upstream("new", 200, Duration::ZERO).await;
    for (wanted, answers) in [("a.test", "new"), ("b.test", "main")] {
        let upstreams = [(bed::MAIN, vec![main]), (CANARY, vec![new])];
        let mut configuration = bed::configuration(&upstreams, Policy::default());
        let test = CanaryTest::Value(wanted.to_owned().into());
        let header = Some(CanaryHeader { name: "host".to_owned(), test });
        let rules = CanaryRules { header, ..CanaryRules::default() };
        put_beside(&mut configuration, rules, Balance::default());
        let native = bed::start(&configuration).await;
        assert_eq!(who(&get(&native, "/", "").await), answers, "{wanted}");
    }
}

#[tokio::test]
async fn the_log_names_the_canary_beside_the_upstream() {
    let main = upstream("main", 200, Duration::ZERO).await;
    let new = upstream("new", 200, Duration::ZERO).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let upstreams = [(bed::MAIN, vec![main]), (CANARY, vec![new])];
    let mut configuration = bed::configuration(&upstreams, Policy::default());
    let rules = CanaryRules { cookie: Some("c".to_owned()), ..CanaryRules::default() };
    put_beside(&mut configuration, rules, Balance::default());
    let template = Template::parse("$proxy_upstream_name [$proxy_alternative_upstream_name]");
    let template = template.expect("known variables");
    configuration.global = Arc::new(Global {
        logs: Logs {
            access: LogTarget::File(path.to_str().expect("it is text").to_owned()),
            ..Logs::default()
        },
        log_format: LogFormat { template, ..LogFormat::default() },
        ..Global::default()
    });
    let native = bed::start(&configuration).await;
    assert_eq!(who(&get(&native, "/", "c=always").await), "new");
    assert_eq!(who(&get(&native, "/", "c=never").await), "main");
    native.drain(Duration::from_secs(5)).await;
    let lines = std::fs::read_to_string(&path).expect("the log is a file");
    assert_eq!(lines, "demo-echo-80 [demo-new-80]\ndemo-echo-80 []\n");
}

#[tokio::test]
async fn who_stands_in_is_chosen_as_the_upstream_would_be_beside_its_canary() {
    const SORRY: &str = "custom-default-backend-demo-sorry";
    let sorry =
        vec![upstream("a", 200, Duration::ZERO).await, upstream("b", 200, Duration::ZERO).await];
    let new = upstream("new", 200, Duration::ZERO).await;
    let key = Template::parse("$request_uri").expect("a known variable");
    let sticky = by(Algorithm::RoundRobin, Some(affinity(AffinityMode::Persistent)));
    for policy in [sticky, by(Algorithm::Hash(key), None)] {
        let has_cookie = policy.balance.affinity.is_some();
        let policy = Policy { default_backend: Some(UpstreamId::new(SORRY)), ..policy };
        let upstreams = [(bed::MAIN, vec![]), (SORRY, sorry.clone()), (CANARY, vec![new])];
        let mut configuration = bed::configuration(&upstreams, policy.clone());
        let rules = CanaryRules { cookie: Some("c".to_owned()), ..CanaryRules::default() };
        put_beside(&mut configuration, rules, policy.balance);
        let native = bed::start(&configuration).await;
        for number in 0..10 {
            let target = format!("/{number}");
            let first = get(&native, &target, "").await;
            assert!(["a", "b"].contains(&who(&first)), "{first}");
            let told = cookies(&first).first().map(|line| line.split(';').next().expect("a part"));
            assert_eq!(told.is_some(), has_cookie, "{first}");
            let told = told.unwrap_or_default();
            assert!(!has_cookie || told.contains(&upstream_key(SORRY)), "{told}");
            let cookie = format!("c=always; s={told}");
            let again = get(&native, &target, &cookie.replace("always", "never")).await;
            assert_eq!((who(&again), cookies(&again)), (who(&first), vec![]));
            // Whoever has a session stays with it.
            let asked = get(&native, &target, &cookie).await;
            assert_eq!(who(&asked), if has_cookie { who(&first) } else { "new" });
        }
        assert_eq!(who(&get(&native, "/", "c=always").await), "new");
    }
}
