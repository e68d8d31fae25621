//! `sessionPersistence` of rules over real sockets.

use crate::gateway::bed::{Answer, Bed, header};
use std::time::{SystemTime, UNIX_EPOCH};

/// The cookie of an answer, and what is said of it.
fn cookie(answer: &Answer) -> Option<(String, String)> {
    let line = header(&answer.head, "set-cookie").first().map(ToString::to_string)?;
    let (cookie, attributes) = line.split_once("; ")?;
    Some((cookie.to_owned(), attributes.to_owned()))
}

/// Asks with a cookie several times; the upstream that has all of it.
async fn kept(bed: &Bed, path: &str, cookie: &str) -> String {
    let mut pods = Vec::new();
    for _ in 0..20 {
        let answer = bed.send("GET", "a.test", path, &[("Cookie", cookie)]).await;
        assert_eq!(header(&answer.head, "set-cookie"), [""; 0], "nobody is told twice");
        pods.push(answer.pod);
    }
    pods.dedup();
    pods.join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_stay_with_the_endpoint_that_they_were_given() {
    let bed = Bed::start(include_str!("sessions.yaml")).await;
    for (path, name, attributes) in [
        ("/one", "session-", "Path=/; HttpOnly; SameSite=Strict"),
        ("/two", "shop=", "Max-Age=300; Path=/; HttpOnly; SameSite=Strict"),
        ("/same", "shop=", "Path=/same; HttpOnly; SameSite=Strict"),
        ("/shares", "share=", "Path=/; HttpOnly; SameSite=Strict"),
    ] {
        let answer = bed.get("a.test", path).await;
        let (cookie, said) = cookie(&answer).expect("a new session is told");
        assert!(cookie.starts_with(name), "{cookie}");
        assert_eq!(said, attributes, "{path}");
        assert_eq!(kept(&bed, path, &cookie).await, answer.pod, "{path}");
    }
    for (path, said) in [("/one", "by the session cookie"), ("/field", "by the session field")] {
        let told = bed.explain(&format!("http://a.test{path}"));
        assert!(told.contains(said), "{told}");
    }
    // Without a cookie there is a session for each request, and all endpoints and shares have some.
    for (path, all) in [("/one", "abc"), ("/shares", "ab")] {
        let mut pods = std::collections::BTreeSet::new();
        for _ in 0..100 {
            pods.insert(bed.get("a.test", path).await.pod);
        }
        assert_eq!(pods.into_iter().collect::<String>(), all, "{path}");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rule_knows_the_sessions_of_another_one() {
    let bed = Bed::start(include_str!("sessions.yaml")).await;
    let (of_two, _) = cookie(&bed.get("a.test", "/two").await).expect("a session");
    let answer = bed.send("GET", "a.test", "/same", &[("Cookie", of_two.as_str())]).await;
    let (own, _) = cookie(&answer).expect("a session of its own");
    assert_ne!(own, of_two);
    // Of two cookies with a name the last one counts.
    let both = format!("{of_two}; {own}");
    assert_eq!(kept(&bed, "/same", &both).await, answer.pod);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_says_the_session_in_both_directions() {
    let bed = Bed::start(include_str!("sessions.yaml")).await;
    let answer = bed.get("a.test", "/field").await;
    let [session] = header(&answer.head, "x-session")[..] else { panic!("{}", answer.head) };
    assert!(cookie(&answer).is_none());
    for _ in 0..20 {
        let again = bed.send("GET", "a.test", "/field", &[("X-Session", session)]).await;
        assert_eq!(again.pod, answer.pod);
        assert_eq!(header(&again.head, "x-session"), [""; 0]);
        assert_eq!(header(&again.seen, "x-session"), [session], "the backend is told, too");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_its_weight_but_not_its_endpoint() {
    let bed = Bed::start(include_str!("sessions.yaml")).await;
    // What a session with `b` would be is what `b` was given while it had a weight: the same rule, read again.
    let even = include_str!("sessions.yaml").replace("weight: 0", "weight: 1");
    let (_, weights) = even.split_once("# file: weights\n").expect("it is there");
    let reach =
        async |cookie: &str| bed.send("GET", "weights.test", "/", &[("Cookie", cookie)]).await.pod;
    bed.replace("weights", weights).await;
    let mut of_b = String::new();
    bed.until(async || bed.get("weights.test", "/").await.pod == "b").await;
    while of_b.is_empty() {
        let answer = bed.get("weights.test", "/").await;
        if answer.pod == "b" {
            (of_b, _) = cookie(&answer).expect("a session");
        }
    }
    let without = weights.replace("weight: 1", "weight: 0");
    bed.replace("weights", &without).await;
    bed.until(async || {
        for _ in 0..20 {
            if bed.get("weights.test", "/").await.pod != "a" {
                return false;
            }
        }
        true
    })
    .await;
    assert_eq!(reach(&of_b).await, "b", "it goes on without a weight");
    assert_eq!(reach("s=nobody|nothing").await, "a");
    let gone = without.replace("name: b, port: 80", "name: c, port: 80");
    bed.replace("weights", &gone).await;
    bed.until(async || reach(&of_b).await == "a").await;
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_time_and_goes_on_with_its_use() {
    let bed = Bed::start(include_str!("sessions.yaml")).await;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let first = bed.get("a.test", "/timed").await;
    let (session, _) = cookie(&first).expect("a session");
    let (named, times) = session.rsplit_once('|').expect("it says when it was");
    let times = times.split_once('-').expect("two times");
    let read = |time: &str| u64::from_str_radix(time, 16).expect("a number");
    assert!(now() - read(times.0) < 600 && times.0 == times.1, "{session}");
    let at = |began: u64, used: u64| format!("{named}|{:x}-{:x}", now() - began, now() - used);
    // So many seconds ago it began and was used: it goes on, and its use is told.
    for (began, used) in [(3000, 60), (60, 60), (500, 500)] {
        let answer =
            bed.send("GET", "a.test", "/timed", &[("Cookie", at(began, used).as_str())]).await;
        assert_eq!(answer.pod, first.pod, "{began} {used}");
        let (told, _) = cookie(&answer).expect("its use is told");
        assert!(told.starts_with(named), "{told}");
        let (began_told, used_told) =
            told.rsplit_once('|').and_then(|(_, times)| times.split_once('-')).expect("times");
        assert!(now() - read(used_told) < 60 && now() - read(began_told) >= began, "{told}");
    }
    // It has ended, or says nothing of when: another one begins, at whichever endpoint.
    for (began, used) in [(3700, 60), (3000, 700)] {
        let answer =
            bed.send("GET", "a.test", "/timed", &[("Cookie", at(began, used).as_str())]).await;
        let (told, _) = cookie(&answer).expect("another session");
        let began_told =
            told.rsplit_once('|').and_then(|(_, times)| times.split_once('-')).expect("times").0;
        assert!(now() - read(began_told) < 60, "{told}");
    }
    let answer = bed.send("GET", "a.test", "/timed", &[("Cookie", named)]).await;
    assert!(cookie(&answer).is_some());
    bed.stop().await;
}
