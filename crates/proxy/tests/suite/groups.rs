//! `$1` to `$9` in texts of annotations: what the request has matched last, where it fills them in itself.

use crate::balancing::{CANARY, put_beside};
use crate::bed::{self, MAIN, answer, is_whole, start, upstream};
use crate::snippets::{Host, get, upstream as echo};
use model::policy::{Algorithm, AuthExternal, Balance, CanaryRules, Policy, Rewrite};
use model::{Pattern, Template, UpstreamId};
use std::collections::BTreeSet;

fn template(text: &str) -> Template {
    Template::parse(text).expect("a template")
}

/// Its upstream is told this host.
fn told(host: &str) -> Policy {
    Policy { upstream_host: Some(template(host)), ..Policy::default() }
}

#[tokio::test]
async fn they_are_those_of_the_path_or_of_what_a_snippet_has_looked_at_since() {
    let pattern = Pattern::new("/r/([a-z]+)/(.*)", true).expect("a pattern");
    let rewrite = Rewrite { pattern, target: template("/$2"), prefix: None };
    let rewritten = Policy { rewrite: Some(rewrite), ..told("$1.test") };
    let looks = "if ($arg_t ~ \"^x-([a-z]+)$\") { set $x 1; }";
    let host = Host::of_patterns()
        .path("/p/([a-z]+)/(.*)", "", told("$2.$1.test"))
        .path("/r/([a-z]+)/(.*)", "", rewritten.clone())
        .path("/s/([a-z]+)", "set $x 1;", told("$1.test"))
        .path("/m/([a-z]+)", looks, told("$1.test"))
        .path("/n", "", told("$1.test"))
        .path("/o/r/([a-z]+)/(.*)", looks, rewritten);
    let native = host.serve().await;
    for (target, told) in [
        ("/p/abc/d", "d.abc.test"),
        ("/P/ABC/D", "D.ABC.test"),
        ("/r/abc/d", "abc.test"),
        ("/s/abc", "abc.test"),
        ("/m/abc?t=x-other", "other.test"),
        // What does not match forgets what did (ngx_http_script_regex_start_code).
        ("/m/abc?t=other", ".test"),
        ("/n", ".test"),
        ("/o/r/abc/d?t=x-other", "abc.test"),
    ] {
        let answer = get(&native, target, "").await;
        assert!(answer.contains(&format!("\nHost: {told}\r\n")), "{target}: {answer}");
    }
    // A host whose paths are none has only what snippets look at.
    let host = Host::default().path("/m", looks, told("$1.test")).path("/n", "", told("$1.test"));
    let native = host.serve().await;
    for (target, told) in [("/m?t=x-other", "other.test"), ("/n", ".test")] {
        let answer = get(&native, target, "").await;
        assert!(answer.contains(&format!("\nHost: {told}\r\n")), "{target}: {answer}");
    }
}

#[tokio::test]
async fn keys_of_endpoints_have_them() {
    let policy = Policy {
        balance: Balance { algorithm: Algorithm::Hash(template("$1")), affinity: None },
        ..Policy::default()
    };
    let host = Host::of_patterns().path("/k/([a-z]+)", "", policy);
    let endpoints = [echo("one").await, echo("two").await, echo("three").await];
    let mut configuration = host.configuration(endpoints[0]);
    bed::put_upstream(&mut configuration, MAIN, endpoints.to_vec());
    let native = start(&configuration).await;
    let mut seen = BTreeSet::new();
    for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let answer = get(&native, &format!("/k/{key}"), "").await;
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        seen.insert(body.split(':').next().unwrap_or_default().to_owned());
    }
    assert!(seen.len() > 1, "all keys are one: {seen:?}");
}

#[tokio::test]
async fn keys_of_a_canarys_endpoints_have_them_too() {
    for snippet in ["", "set $x 1;"] {
        let host = Host::of_patterns().path("/k/([a-z]+)", snippet, Policy::default());
        let mut configuration = host.configuration(echo("main").await);
        let endpoints = [echo("one").await, echo("two").await, echo("three").await];
        bed::put_upstream(&mut configuration, CANARY, endpoints.to_vec());
        let rules = CanaryRules { weight: 100, ..CanaryRules::default() };
        let balance = Balance { algorithm: Algorithm::Hash(template("$1")), affinity: None };
        put_beside(&mut configuration, rules, balance);
        let native = start(&configuration).await;
        let mut seen = BTreeSet::new();
        for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let answer = get(&native, &format!("/k/{key}"), "").await;
            let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
            seen.insert(body.split(':').next().unwrap_or_default().to_owned());
        }
        assert!(seen.len() > 1 && !seen.contains("main"), "all keys are one: {seen:?} {snippet}");
    }
}

#[tokio::test]
async fn a_sign_in_page_has_them_and_the_question_has_none() {
    let (auth, mut asked) = upstream(answer("401 Unauthorized", "", ""), is_whole).await;
    let authenticator = bed::authenticator("auth", template("/ask/$1"), UpstreamId::new("auth"));
    let sign_in = Some(template("https://login.test/$1").into());
    let authenticator = AuthExternal { sign_in, ..authenticator };
    let policy = Policy { auth_external: Some(authenticator.into()), ..Policy::default() };
    let host = Host::of_patterns().path("/i/([a-z]+)", "", policy);
    let mut configuration = host.configuration(echo("main").await);
    bed::put_upstream(&mut configuration, "auth", vec![auth]);
    let native = start(&configuration).await;
    let answer = get(&native, "/i/abc", "").await;
    assert!(answer.contains("\r\nLocation: https://login.test/abc\r\n"), "{answer}");
    let question = String::from_utf8(asked.recv().await.expect("it was asked")).expect("text");
    assert!(question.starts_with("GET /ask/ HTTP/1.1\r\n"), "{question}");
}
