//! What a namespace guards of its own on the host of another one by a word about all of it, which is not heard there.

use crate::builders::*;
use crate::kept_shut::{BAD, answers, made};
use objects::{Ingress, Snapshot};
use translate::{Options, Translation, translate};

const DENIES: (&str, &str) = ("server-snippet", "deny 127.0.0.1;");
const ASKS: (&str, &str) = ("auth-tls-secret", "v/ca");

fn snapshot(data: &[(&str, &str)], ingresses: &[&Ingress]) -> Snapshot {
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &[&allowed, data].concat()));
    for namespace in ["v", "w", "x"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
        let (authority, _) = certificate(&[namespace]);
        put_secret(&mut snapshot, secret(namespace, "ca", &[("ca.crt", &authority)]));
    }
    for ingress in ingresses {
        put_ingress(&mut snapshot, (*ingress).clone());
    }
    snapshot
}

fn options() -> Options {
    Options { config_map: Some(key("system", "settings")), ..Options::default() }
}

fn with(data: &[(&str, &str)], ingresses: &[&Ingress]) -> Translation {
    translate(&snapshot(data, ingresses), &options())
}

#[test]
fn who_adds_a_path_to_a_host_opens_nothing_that_a_server_snippet_guards() {
    let beside = made("v", "beside", "/o", 450, &[]);
    let old = made("x", "old", "/x", 900, &[]);
    let bad = made("x", "old", "/x", 900, &[BAD]);
    let young = made("x", "old", "/x", 100, &[]);
    let trusting = [("allow-cross-namespace", "server-snippet")];
    let paths = ["/admin", "/o", "/x"];
    for text in [
        "deny 127.0.0.1;",
        "allow 10.0.0.0/8; deny all;",
        "if ($http_x_key != \"s3cret\") { return 403; }",
        "location /admin { return 403; }",
        // What is led away reaches no Service of the path.
        "rewrite ^/admin https://login.test/ redirect;",
        "rewrite ^/(admin|metrics) /denied last;",
        "location /admin { }",
    ] {
        let app = made("v", "app", "/", 500, &[("server-snippet", text)]);
        for (data, theirs, wanted) in [
            (&[][..], &old, ["503", "503", "old"]),
            (&[], &bad, ["503", "503", "503"]),
            (&[], &young, ["app", "beside", "old"]),
            (&trusting, &old, ["app", "beside", "old"]),
        ] {
            let found = with(data, &[&app, &beside, theirs]);
            let said = found.problems.to_string();
            let found = answers(&found, paths).map(|found| found.replace('!', ""));
            assert_eq!(found, wanted, "{text} {data:?} {said}");
            let told = |whose: &str| {
                let start = format!("Ingress {whose}: ");
                said.lines().any(|line| line.contains(&start) && line.contains("server-snippet"))
            };
            let is_closed = wanted[1] == "503";
            assert_eq!((told("v/app"), told("v/beside")), (is_closed, is_closed), "{said}");
            assert!(!told("x/old"), "{said}");
        }
        // What has a mistake hides no other one that has.
        let first = made("v", "first", "/1", 600, &[("server-snippet", "add_header A b;"), BAD]);
        let hidden = made("v", "app", "/", 500, &[("server-snippet", text), BAD]);
        let found = with(&[], &[&first, &hidden, &beside, &old]);
        assert_eq!(answers(&found, paths), ["503", "503", "old"], "{text} {}", found.problems);
        // With the nginx engine as well.
        let all = snapshot(&[], &[&app, &beside, &old]);
        let found = translate(&all, &Options { raw: true, ..options() });
        assert_eq!(answers(&found, paths), ["503", "503", "old"], "{text} {}", found.problems);
    }
}

#[test]
fn a_word_that_is_not_heard_closes_nothing_of_others_and_nothing_that_it_does_not_guard() {
    let app = made("v", "app", "/", 500, &[]);
    let evil = made("w", "evil", "/w", 100, &[DENIES, ("auth-tls-secret", "w/ca")]);
    let also = made("w", "also", "/w/also", 90, &[]);
    let found = with(&[], &[&app, &evil, &also]);
    let wanted = ["app", "503", "503"];
    assert_eq!(answers(&found, ["/", "/w", "/w/also"]), wanted, "{}", found.problems);
    // Nor anything on other hosts.
    let mut elsewhere = also.clone();
    elsewhere.rules[0].host = Some("w.test".to_owned());
    let found = with(&[], &[&app, &evil, &elsewhere]);
    assert!(!is_denied(&found.configuration, "w.test", "/w/also"), "{}", found.problems);
    let plain = made("w", "plain", "/w", 100, &[("server-snippet", "add_header A b;")]);
    let found = with(&[], &[&app, &plain, &also]);
    let wanted = ["app", "plain", "also"];
    assert_eq!(answers(&found, ["/", "/w", "/w/also"]), wanted, "{}", found.problems);
}

/// Of a namespace that counts which would if it were alone: the first one that has a word, over mistakes the next.
#[test]
fn of_the_words_of_a_namespace_that_is_not_heard_the_first_one_counts() {
    let old = made("x", "old", "/x", 900, &[]);
    let plain = ("server-snippet", "add_header A b;");
    let beside = made("v", "beside", "/o", 450, &[]);
    for (first, second, wanted) in [
        (&[plain][..], &[DENIES][..], "beside"),
        (&[plain, BAD], &[DENIES], "503"),
        (&[DENIES, BAD], &[plain], "503"),
        (&[DENIES, BAD], &[], "503"),
        (&[BAD], &[plain], "beside"),
    ] {
        let first = made("v", "first", "/first", 600, first);
        let second = made("v", "second", "/second", 500, second);
        let found = with(&[], &[&old, &first, &second, &beside]);
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/o"]), [wanted], "{first:?} {second:?} {said}");
    }
}

#[test]
fn who_adds_a_path_to_a_host_opens_nothing_that_asks_for_certificates() {
    let beside = made("v", "beside", "/o", 450, &[]);
    let same = made("v", "same", "/same", 440, &[ASKS]);
    let paths = ["/admin", "/o", "/same", "/x"];
    let trusting = [("allow-cross-namespace", "client-certificate")];
    let optional = ("auth-tls-verify-client", "optional");
    let theirs = ("auth-tls-secret", "x/ca");
    for (data, own, more, wanted) in [
        (&[][..], &[ASKS][..], &[][..], ["503", "503", "503", "old"]),
        // Who has a certificate of theirs comes in nowhere.
        (&[], &[ASKS], &[theirs], ["app!", "503", "same!", "old!"]),
        (&[], &[ASKS, BAD], &[theirs], ["503", "503", "same!", "old!"]),
        // Less than another one of the namespace asks for.
        (&[], &[ASKS, optional], &[theirs], ["503", "503", "same!", "old!"]),
        (&trusting, &[ASKS], &[], ["app!", "beside", "same!", "old"]),
    ] {
        let app = made("v", "app", "/", 500, own);
        let old = made("x", "old", "/x", 900, more);
        let found = with(data, &[&app, &beside, &same, &old]);
        let said = found.problems.to_string();
        assert_eq!(answers(&found, paths), wanted, "{data:?} {own:?} {more:?} {said}");
    }
    // While the only one that asks is not taken, nobody knows whom it would let in.
    let old = made("x", "old", "/x", 900, &[]);
    let lost = made("v", "app", "/", 500, &[ASKS, BAD]);
    let found = with(&[], &[&lost, &beside, &old]);
    let wanted = ["503", "503", "old"];
    assert_eq!(answers(&found, ["/admin", "/o", "/x"]), wanted, "{}", found.problems);
    // A weaker demand of the namespace's own is no more than the strictest.
    let weaker = made("v", "weaker", "/weaker", 430, &[ASKS, optional]);
    let old = made("x", "old", "/x", 900, &[theirs]);
    let app = made("v", "app", "/", 500, &[ASKS]);
    let found = with(&[], &[&app, &weaker, &old]);
    assert_eq!(answers(&found, ["/admin", "/weaker"]), ["app!", "503"], "{}", found.problems);
}

#[test]
fn a_demand_that_lets_everybody_in_closes_nothing() {
    let beside = made("v", "beside", "/o", 450, &[]);
    let subject = ("auth-tls-match-cn", "CN=shop");
    let theirs = ("auth-tls-secret", "x/ca");
    let how = |how| ("auth-tls-verify-client", how);
    for (own, more, wanted) in [
        (&[how("off")][..], &[][..], ["app", "beside"]),
        (&[how("optional_no_ca")], &[], ["app", "beside"]),
        // It is another's word that would vouch for their clients.
        (&[how("off")], &[theirs], ["503", "503"]),
        (&[how("optional_no_ca")], &[theirs], ["503", "503"]),
        (&[how("optional_no_ca")], &[theirs, how("optional")], ["503", "503"]),
        (&[how("optional_no_ca"), BAD], &[theirs], ["503", "503"]),
        // Nor does anybody vouch where the owner asks nobody, either.
        (&[how("off")], &[theirs, how("off")], ["app", "beside"]),
        (&[how("optional_no_ca")], &[theirs, how("off")], ["app", "beside"]),
        (&[how("optional_no_ca"), BAD], &[theirs, how("off")], ["503", "beside"]),
        (&[how("optional")], &[theirs, how("off")], ["503", "503"]),
        (&[how("on")], &[theirs, how("off")], ["503", "503"]),
        (&[how("on")], &[theirs], ["app!", "503"]),
        // Whom nobody asks has no subject.
        (&[how("off"), subject], &[], ["503", "503"]),
        (&[how("optional_no_ca"), subject], &[], ["503", "503"]),
        (&[how("optional")], &[], ["503", "503"]),
        (&[how("oftional")], &[], ["503", "503"]),
        // Nor does it while it is not taken.
        (&[how("optional_no_ca"), BAD], &[], ["503", "beside"]),
        (&[how("off"), subject, BAD], &[], ["503", "503"]),
    ] {
        let app = made("v", "app", "/", 500, &[&[ASKS], own].concat());
        let old = made("x", "old", "/x", 900, more);
        for raw in [false, true] {
            let all = snapshot(&[], &[&app, &beside, &old]);
            let found = translate(&all, &Options { raw, ..options() });
            let said = found.problems.to_string();
            assert_eq!(answers(&found, ["/admin", "/o"]), wanted, "{own:?} {more:?} {said}");
            let told = said.lines().any(|line| line.contains("Ingress v/app: auth-tls-secret"));
            assert!(told || own.contains(&BAD), "{said}");
        }
    }
}
