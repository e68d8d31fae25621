//! What a guarded Ingress has stays shut where it is not served: by a mistake, beside others, or for want of room.

use crate::builders::*;
use model::{Backend, ServerName};
use objects::{Ingress, PathType, PortRef};
use translate::{Options, Translation, translate};

pub(crate) const HOST: &str = "shop.test";
pub(crate) const ANY: PathType = PathType::ImplementationSpecific;
pub(crate) const BAD: (&str, &str) = ("client-body-buffer-size", "much");
pub(crate) const GUARD: (&str, &str) = ("whitelist-source-range", "10.0.0.0/8");
pub(crate) const REGEX: (&str, &str) = ("use-regex", "true");
const REWRITE: (&str, &str) = ("rewrite-target", "/$2");

/// An Ingress with one path, so many seconds old.
pub(crate) fn made(
    namespace: &str,
    name: &str,
    at: &str,
    age: i64,
    annotations: &[(&str, &str)],
) -> Ingress {
    let mut made = ingress(namespace, name);
    let to = backend("s", Some(PortRef::Number(80)));
    made.rules = vec![rule(Some(HOST), Some(vec![path(at, ANY, to)]))];
    made.meta.created = 1000 - age;
    annotations.iter().for_each(|(name, value)| annotate(&mut made, name, value));
    made
}

pub(crate) fn with(data: &[(&str, &str)], ingresses: &[&Ingress]) -> Translation {
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &[&allowed, data].concat()));
    for namespace in ["v", "w", "x"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    for ingress in ingresses {
        put_ingress(&mut snapshot, (*ingress).clone());
    }
    let config_map = Some(key("system", "settings"));
    translate(&snapshot, &Options { config_map, ..Options::default() })
}

/// What answers requests to the host: 503, or the Ingress of a location, with an exclamation mark where it is guarded.
pub(crate) fn answers<const N: usize>(found: &Translation, paths: [&str; N]) -> [String; N] {
    let server = &found.configuration.servers[&ServerName::new(HOST)];
    let locations = route::Locations::compile(server);
    paths.map(|path| {
        let path = route::path::canonical(path.as_bytes()).expect("a valid path");
        let index = match locations.find(&path, &model::Steps::default()) {
            route::Found::Location { index } => index,
            other => return format!("{other:?}"),
        };
        let location = &server.locations[index];
        match &location.backend {
            Backend::Denied(_) => "503".to_owned(),
            Backend::Upstream(_) => {
                let name = location.origin.as_deref().map_or("nobody", |origin| &*origin.name);
                format!("{name}{}", if location.policy.is_guarded() { "!" } else { "" })
            }
            other => format!("{other:?}"),
        }
    })
}

#[test]
fn a_path_that_was_left_to_an_older_one_which_is_not_served_is_closed() {
    let open = made("v", "open", "/", 900, &[]);
    let text = "/admin(/|$)(.*)";
    let theirs = made("w", "theirs", text, 500, &[REWRITE]);
    let guarded = made("v", "guarded", text, 100, &[REWRITE, GUARD]);
    let paths = ["/admin", "/admin/x", "/ADMIN/x", "/other"];
    let found = with(&[], &[&open, &guarded]);
    assert_eq!(answers(&found, paths), ["guarded!", "guarded!", "guarded!", "open"]);
    // The owner's word makes expressions of the host's paths, whoever has the path: theirs is served.
    let found = with(&[], &[&open, &theirs, &guarded]);
    assert_eq!(answers(&found, paths), ["theirs", "theirs", "theirs", "open"]);
    let open = made("v", "open", "/", 900, &[REGEX]);
    // One that Fairway does not know, and one that has to give way to a third namespace's.
    let (odd, wide) = ("/admin/(?|x|y)", "/admin/(.*)");
    let third = made("x", "third", "/admin/v1", 800, &[]);
    for (text, third) in [(odd, None), (wide, Some(&third))] {
        let theirs = made("w", "theirs", text, 500, &[REGEX]);
        let guarded = made("v", "guarded", text, 100, &[REGEX, GUARD]);
        let all: Vec<&Ingress> = third.into_iter().chain([&open, &theirs, &guarded]).collect();
        let found = with(&[], &all);
        assert_eq!(answers(&found, ["/admin/x", "/other"]), ["503", "open"], "{}", found.problems);
        let said = found.problems.to_string();
        assert!(said.contains("v/guarded: spec.rules: path") && said.contains("in vain"), "{said}");
        if third.is_some() {
            assert_eq!(answers(&found, ["/admin/v1"]), ["third"]);
        }
        // Who guards nothing has nothing closed.
        let plain = made("v", "guarded", text, 100, &[REGEX]);
        let all: Vec<&Ingress> = third.into_iter().chain([&open, &theirs, &plain]).collect();
        assert_eq!(answers(&with(&[], &all), ["/admin/x"]), ["open"]);
    }
}

#[test]
fn on_a_plain_host_what_was_left_to_a_path_that_is_not_served_is_closed() {
    // `/p` of w gives way to the Exact `/p/` of x, and that of v has come behind it.
    let open = made("v", "open", "/", 900, &[]);
    let mut exact = made("x", "exact", "/p/", 800, &[]);
    exact.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = PathType::Exact);
    let theirs = made("w", "theirs", "/p", 500, &[]);
    let guarded = made("v", "guarded", "/p", 100, &[GUARD]);
    let found = with(&[], &[&open, &exact, &theirs, &guarded]);
    let said = found.problems.to_string();
    assert_eq!(answers(&found, ["/p/", "/p/x", "/other"]), ["exact", "503", "open"], "{said}");
}

#[test]
fn an_expression_that_is_closed_is_one() {
    let open = made("v", "open", "/", 900, &[]);
    let text = "/admin(/|$)(.*)";
    let paths = ["/admin", "/admin/x", "/ADMIN/x", "/administrator", "/other"];
    for (name, annotations) in [
        ("not taken", &[GUARD, REWRITE, BAD][..]),
        ("not taken", &[GUARD, REGEX, BAD]),
        ("an unknown variable", &[GUARD, ("rewrite-target", "/$2/$foo")]),
        ("no group", &[GUARD, ("rewrite-target", "/$0")]),
    ] {
        let guarded = made("v", "guarded", text, 100, annotations);
        let found = with(&[], &[&open, &guarded]);
        let wanted = ["503", "503", "503", "open", "open"];
        assert_eq!(answers(&found, paths), wanted, "{name}: {}", found.problems);
    }
}

#[test]
fn how_paths_match_hangs_neither_on_mistakes_nor_on_paths_of_others() {
    let open = made("v", "open", "/", 900, &[]);
    let guarded = made("v", "guarded", "/adm(in|ins)", 100, &[GUARD]);
    let theirs = made("x", "x", "/r", 500, &[]);
    let asks = |more: &[(&str, &str)]| made("v", "asks", "/r", 400, &[&[REGEX], more].concat());
    for (all, r) in [
        (vec![&open, &guarded, &asks(&[])], "asks"),
        (vec![&open, &guarded, &asks(&[]), &theirs], "x"),
        (vec![&open, &guarded, &asks(&[BAD])], "503"),
        (vec![&open, &guarded, &asks(&[BAD]), &theirs], "x"),
    ] {
        let found = with(&[], &all);
        assert_eq!(answers(&found, ["/admin", "/r"]), ["guarded!", r], "{}", found.problems);
    }
    // Nobody else than the owner has a word in it.
    let stranger = made("w", "stranger", "/s", 300, &[REGEX, BAD]);
    let found = with(&[], &[&open, &guarded, &stranger]);
    assert!(!found.configuration.servers[&ServerName::new(HOST)].regex);
}

#[test]
fn what_an_ingress_that_is_not_taken_guards_its_host_by_closes_the_host() {
    let denies = ("server-snippet", "deny all;");
    let odd = ("server-snippet", "deny all; sett $a 1;");
    let asks = ("auth-tls-secret", "v/missing");
    let beside = made("v", "beside", "/admin", 100, &[]);
    let theirs = made("w", "theirs", "/w", 50, &[]);
    let risk = [("annotations-risk-level", "High")];
    for (word, data, told) in [
        (&[denies, BAD][..], &[][..], "server-snippet"),
        (&[odd, BAD], &[], "server-snippet"),
        (&[denies], &risk, "server-snippet"),
        (&[asks, BAD], &[], "auth-tls-secret"),
        (&[("auth-tls-secret", "no name;"), BAD], &[], "auth-tls-secret"),
    ] {
        let word = made("v", "word", "/app", 900, word);
        let found = with(data, &[&word, &beside, &theirs]);
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/app", "/admin", "/w"]), ["503"; 3], "{said}");
        for whose in ["v/beside", "w/theirs"] {
            let message = format!(
                "Ingress {whose}: nginx.ingress.kubernetes.io/{told}: {told} of Ingress v/word may guard all of host \
                 {HOST}, and is not taken"
            );
            assert!(said.contains(&message), "{said}");
        }
    }
    // Who leads requests away hides what is his own.
    for word in [
        &[("server-snippet", "rewrite ^/admin /denied last;"), BAD][..],
        &[("server-snippet", "location /admin { }"), BAD],
        &[("server-snippet", "location /admin { sett $a 1; }")],
    ] {
        let word = made("v", "word", "/app", 900, word);
        let found = with(&[], &[&word, &beside, &theirs]);
        let wanted = ["503", "503", "theirs"];
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/app", "/admin", "/w"]), wanted, "{word:?} {said}");
        let told = "v/beside: nginx.ingress.kubernetes.io/server-snippet: server-snippet of Ingress v/word may guard what \
                    its namespace has of host shop.test, and is not ";
        assert!(said.contains(told) && !said.contains("Ingress w/theirs: "), "{said}");
    }
    // What has a mistake, too, hides no guard that is behind it.
    for text in ["add_header A b;", "rewrite ^/old /new last;", "location /ping { }"] {
        let first = made("v", "first", "/app", 900, &[("server-snippet", text), BAD]);
        let second = made("v", "second", "/b", 500, &[denies, BAD]);
        let found = with(&[], &[&first, &second, &beside, &theirs]);
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/app", "/b", "/admin", "/w"]), ["503"; 4], "{text} {said}");
    }
    // What is no guard, or does not count, closes nothing; what is another's to say nothing but what is his.
    let off = ("auth-tls-verify-client", "off");
    let any = ("auth-tls-verify-client", "optional_no_ca");
    for (namespace, age, word, data, w) in [
        ("v", 900, &[("server-snippet", "add_header A b;"), BAD][..], &[][..], "theirs"),
        ("v", 900, &[denies, BAD], &[("allow-snippet-annotations", "false")], "theirs"),
        ("v", 900, &[asks, off, BAD], &[], "theirs"),
        ("v", 900, &[asks, any, BAD], &[], "theirs"),
        ("w", 60, &[denies, asks, BAD], &[], "503"),
    ] {
        let word = made(namespace, "word", "/app", age, word);
        let found = with(data, &[&word, &beside, &theirs]);
        let wanted = ["503", "beside", w];
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/app", "/admin", "/w"]), wanted, "{word:?} {said}");
    }
}

#[test]
fn what_another_ingress_says_of_the_host_as_well_is_not_lost() {
    let beside = made("v", "beside", "/admin", 100, &[]);
    let word = |name: &str, age: i64, more: &[(&str, &str)]| {
        made(
            "v",
            name,
            &format!("/{name}"),
            age,
            &[&[("server-snippet", "deny all;")], more].concat(),
        )
    };
    // The older one's counts, and would if both were taken.
    let (older, younger) = (word("older", 900, &[]), word("younger", 500, &[BAD]));
    assert_eq!(answers(&with(&[], &[&older, &younger, &beside]), ["/admin"]), ["beside"]);
    let (older, younger) = (word("older", 900, &[BAD]), word("younger", 500, &[]));
    assert_eq!(answers(&with(&[], &[&older, &younger, &beside]), ["/admin"]), ["503"]);
    // Of certificates the strictest counts, and the first of these.
    let mut snapshot = cluster();
    for name in ["one", "two"] {
        let (authority, _) = certificate(&[name]);
        put_secret(&mut snapshot, secret("v", name, &[("ca.crt", &authority)]));
    }
    put_service(&mut snapshot, service("v", "s", 80));
    let asks = |name: &str, age: i64, secret: &str, how: &str, more: &[(&str, &str)]| {
        let secret = format!("v/{secret}");
        let asks = [("auth-tls-secret", secret.as_str()), ("auth-tls-verify-client", how)];
        made("v", name, &format!("/{name}"), age, &[&asks, more].concat())
    };
    for (secret, age, how, wanted) in [
        ("one", 900, "on", "beside"),
        ("one", 900, "optional", "beside"),
        ("two", 900, "optional", "beside"),
        ("two", 500, "on", "beside"),
        ("two", 900, "on", "503"),
    ] {
        let mut snapshot = snapshot.clone();
        let lost = asks("lost", age, secret, how, &[BAD]);
        for ingress in [&asks("word", 700, "one", "on", &[]), &lost, &beside] {
            put_ingress(&mut snapshot, ingress.clone());
        }
        let found = translate(&snapshot, &Options::default());
        assert_eq!(answers(&found, ["/lost", "/admin"]), ["503", wanted], "{secret} {age} {how}");
    }
}

#[test]
fn with_the_nginx_engine_a_lost_word_about_the_host_closes_it_too() {
    let word = made("v", "word", "/app", 900, &[("server-snippet", "deny all;"), BAD]);
    let beside = made("v", "beside", "/admin", 100, &[]);
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &allowed));
    put_service(&mut snapshot, service("v", "s", 80));
    for ingress in [word, beside] {
        put_ingress(&mut snapshot, ingress);
    }
    let config_map = Some(key("system", "settings"));
    let found = translate(&snapshot, &Options { config_map, raw: true, ..Options::default() });
    assert_eq!(answers(&found, ["/app", "/admin"]), ["503", "503"], "{}", found.problems);
}

/// A Pod that runs keeps the last good version, and with it the guard and what is beside it.
#[test]
fn a_pod_that_runs_keeps_the_word_about_a_host_over_a_mistake() {
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &allowed));
    put_service(&mut snapshot, service("v", "s", 80));
    put_ingress(&mut snapshot, made("v", "word", "/app", 900, &[("server-snippet", "deny all;")]));
    put_ingress(&mut snapshot, made("v", "beside", "/admin", 100, &[]));
    let config_map = Some(key("system", "settings"));
    let mut translator = translate::Translator::new(Options { config_map, ..Options::default() });
    let before = translator.update(&snapshot).configuration;
    let bad = made("v", "word", "/app", 900, &[("server-snippet", "deny all;"), BAD]);
    put_ingress(&mut snapshot, bad);
    assert_eq!(translator.update(&snapshot).configuration, before);
}

/// With two Ingresses that the namespace may have.
const ROOM: [(&str, &str); 1] = [("namespace-budget", "paths=2")];

/// An Ingress that takes all that its namespace may have.
fn large(namespace: &str) -> Ingress {
    let to = || backend("s", Some(PortRef::Number(80)));
    let mut large = made(namespace, "open", "/", 900, &[]);
    let two = vec![path("/", ANY, to()), path("/more", ANY, to())];
    large.rules = vec![rule(Some(HOST), Some(two))];
    large
}

#[test]
fn who_waits_for_room_keeps_its_guard_and_its_paths() {
    let guarded = made("v", "guarded", "/admin", 100, &[GUARD]);
    let theirs = made("w", "theirs", "/admin", 50, &[]);
    let mut snapshot = cluster();
    put_config_map(&mut snapshot, config_map("system", "settings", &ROOM));
    for namespace in ["v", "w"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    for one in [&made("v", "open", "/", 900, &[]), &guarded, &theirs] {
        put_ingress(&mut snapshot, one.clone());
    }
    let options = Options { config_map: Some(key("system", "settings")), ..Options::default() };
    let mut translator = translate::Translator::new(options.clone());
    let paths = ["/admin", "/admin/x", "/other"];
    assert_eq!(answers(&translator.update(&snapshot), paths), ["guarded!", "guarded!", "open"]);
    // In a Pod that runs, and in one that starts.
    put_ingress(&mut snapshot, large("v"));
    let found = translator.update(&snapshot);
    assert_eq!(answers(&found, paths), ["503", "503", "open"], "{}", found.problems);
    let anew = translate(&snapshot, &options);
    assert_eq!((&found.configuration, &found.problems), (&anew.configuration, &anew.problems));
    let said = found.problems.to_string();
    assert!(said.contains("until then its paths answer 503"), "{said}");
    assert!(!found.served.contains(&key("v", "guarded")), "no status names an address");
    // Nothing is made for it: what it leads to is no more than what the others do.
    assert_eq!(found.configuration.upstreams.len(), 2);
    // Once there is room it is as it was.
    put_ingress(&mut snapshot, made("v", "open", "/", 900, &[]));
    while translator.update(&snapshot).more {}
    let found = translator.update(&snapshot);
    assert_eq!(answers(&found, paths), ["guarded!", "guarded!", "open"]);
}

#[test]
fn who_waits_for_room_owns_its_host_and_its_names() {
    let mut elsewhere = large("v");
    elsewhere.rules[0].host = Some("v.test".to_owned());
    let waits = made("v", "guarded", "/admin", 100, &[("server-alias", "other.test"), GUARD]);
    let theirs = made("w", "theirs", "/admin", 50, &[]);
    let mut root = made("w", "root", "/", 40, &[("server-alias", "other.test")]);
    root.rules[0].host = Some("w.test".to_owned());
    let found = with(&ROOM, &[&elsewhere, &waits, &theirs, &root]);
    assert_eq!(answers(&found, ["/admin"]), ["503"], "{}", found.problems);
    let server = |host: &str| &found.configuration.servers[&ServerName::new(host)];
    let names = |host: &str| server(host).aliases.iter().map(ToString::to_string).collect();
    let (own, others): (Vec<String>, Vec<String>) = (names(HOST), names("w.test"));
    assert_eq!((own.join(" "), others.join(" ")), ("other.test".to_owned(), String::new()));
    assert_eq!(server(HOST).owner.as_deref(), Some("v"));
}

#[test]
fn an_expression_of_who_waits_for_room_closes_what_begins_like_it() {
    let paths = ["/admin", "/admin/x", "/ADMIN/x", "/other"];
    let text = "/admin(/|$)(.*)";
    for annotations in [&[REWRITE, GUARD][..], &[REGEX], &[("rewrite-target", "/$2/$foo")]] {
        let waits = made("v", "guarded", text, 100, annotations);
        let found = with(&ROOM, &[&large("v"), &waits]);
        let wanted = ["503", "503", "503", "open"];
        assert_eq!(answers(&found, paths), wanted, "{annotations:?} {}", found.problems);
        let server = &found.configuration.servers[&ServerName::new(HOST)];
        assert!(server.patterns.is_empty(), "nothing is compiled");
    }
    // What begins with nothing of its own closes what is shorter if it may guard something.
    for (annotations, wanted) in [(&[REGEX, GUARD][..], "503"), (&[REGEX], "open")] {
        let waits = made("v", "guarded", "/(a|b)/.*", 100, annotations);
        let found = with(&ROOM, &[&large("v"), &waits]);
        assert_eq!(answers(&found, ["/a/x"]), [wanted], "{}", found.problems);
    }
    // An older path of another namespace stays what it is.
    let theirs = made("w", "theirs", "/admin", 800, &[]);
    let waits = made("v", "guarded", text, 100, &[REWRITE, GUARD]);
    let found = with(&ROOM, &[&large("v"), &theirs, &waits]);
    let wanted = ["theirs", "theirs", "theirs", "open"];
    assert_eq!(answers(&found, paths), wanted, "{}", found.problems);
}

#[test]
fn a_guard_of_the_host_of_who_waits_for_room_closes_the_host() {
    let room = [("namespace-budget", "paths=2")];
    let denies = ("server-snippet", "deny all;");
    let (asks, how) = (("auth-tls-secret", "v/ca"), ("auth-tls-verify-client", "on"));
    let word = made("v", "word", "/word", 950, &[asks, how]);
    let beside = made("v", "beside", "/admin", 900, &[]);
    for (annotations, with_word, wanted) in [
        (&[denies][..], false, "503"),
        (&[GUARD], false, "beside"),
        (&[asks, how], false, "503"),
        // Another one asks alike.
        (&[asks, how], true, "beside"),
    ] {
        let waits = made("v", "waits", "/app", 100, annotations);
        let mut more = made("v", "more", "/more", 940, &[]);
        more.rules[0].host = Some("v.test".to_owned());
        let first = if with_word { &word } else { &more };
        let found = with(&room, &[first, &beside, &waits]);
        let said = found.problems.to_string();
        // Of the one that asks nothing is known but that its Secret is not there: the host answers 403.
        assert_eq!(answers(&found, ["/app", "/admin"]), ["503", wanted], "{annotations:?} {said}");
    }
}

#[test]
fn what_waits_keeps_no_more_than_fits_a_budget_once_more() {
    let mut all = vec![large("v")];
    for (number, host) in ["one.test", "two.test", "three.test"].into_iter().enumerate() {
        let age = 100 - i64::try_from(number).expect("a small number");
        let mut one = made("v", &format!("i{number}"), "/", age, &[]);
        one.rules[0].host = Some(host.to_owned());
        all.push(one);
    }
    let mut canary = made("v", "canary", "/", 10, &[("canary", "true")]);
    canary.rules[0].host = Some("canary.test".to_owned());
    all.push(canary);
    for (budget, kept) in [
        ("paths=2", "one.test two.test"),
        ("paths=2, hosts=1", "one.test"),
        ("ingresses=1", "one.test"),
        ("hosts=1", "one.test"),
    ] {
        let found = with(&[("namespace-budget", budget)], &all.iter().collect::<Vec<_>>());
        let hosts = found.configuration.servers.keys().map(ToString::to_string);
        let hosts: Vec<String> = hosts.filter(|host| host != "_" && host != HOST).collect();
        assert_eq!(hosts.join(" "), kept, "{budget}: {}", found.problems);
        let said = found.problems.to_string();
        assert!(said.contains("not kept for it, either"), "{budget}: {said}");
    }
}

#[test]
fn an_alias_of_an_ingress_that_is_not_taken_is_its_own() {
    let bad = made("v", "bad", "/", 900, &[("server-alias", "other.test"), GUARD, BAD]);
    let mut theirs = made("w", "theirs", "/", 100, &[("server-alias", "other.test")]);
    theirs.rules[0].host = Some("w.test".to_owned());
    let found = with(&[], &[&bad, &theirs]);
    let names = |host: &str| {
        let server = &found.configuration.servers[&ServerName::new(host)];
        server.aliases.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!((names(HOST).len(), names("w.test").len()), (1, 0), "{}", found.problems);
    assert_eq!(answers(&found, ["/"]), ["503"]);
    // One that is taken has its own besides.
    let good = made("v", "good", "/x", 100, &[("server-alias", "third.test")]);
    let found = with(&[], &[&bad, &good]);
    let server = &found.configuration.servers[&ServerName::new(HOST)];
    let names: Vec<_> = server.aliases.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["other.test", "third.test"]);
}

#[test]
fn a_mistake_gives_no_requests_to_who_came_later() {
    let own = made("v", "own", "/x", 950, &[REGEX]);
    let large = r"/api/.x\w{700}\w{700}\w{700}";
    for text in [r"/api/(?|v1|v2)", large] {
        let guarded = made("v", "guarded", text, 900, &[REGEX, GUARD]);
        for at in ["/api", "/api/", "/API/"] {
            let younger = made("w", "theirs", at, 100, &[]);
            let longer = made("w", "longer", "/api/zz", 940, &[]);
            let found = with(&[], &[&own, &guarded, &younger, &longer]);
            let said = found.problems.to_string();
            let wanted = ["503", "503", "longer", "own"];
            let asked = ["/api/v1", "/api/ax", "/api/zz", "/x"];
            assert_eq!(answers(&found, asked), wanted, "{text} {at}: {said}");
            // An older one keeps what it has.
            let older = made("w", "theirs", at, 940, &[]);
            let found = with(&[], &[&own, &guarded, &older, &longer]);
            let wanted = ["theirs", "theirs", "longer", "own"];
            assert_eq!(answers(&found, asked), wanted, "{text} {at}: {}", found.problems);
        }
    }
    // Nor does what is tried first take from an older one that is as long as it, and comes behind it.
    let guarded = made("v", "guarded", "/api/(?|v1|v2)", 900, &[REGEX, GUARD]);
    let (younger, older) =
        (made("w", "theirs", "/api/", 100, &[]), made("x", "x", "/api/$", 940, &[]));
    let found = with(&[], &[&own, &guarded, &younger, &older]);
    assert_eq!(answers(&found, ["/api/"]), ["x"], "{}", found.problems);
}

#[test]
fn a_guarded_path_is_closed_without_its_slash_too_where_nobody_redirects() {
    let exactly = |mut one: Ingress| {
        one.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = PathType::Exact);
        one
    };
    let open = made("v", "open", "/", 900, &[]);
    let (prefix, bad) =
        (made("w", "theirs", "/p/", 500, &[]), made("w", "theirs", "/p/", 500, &[BAD]));
    let guarded = made("v", "guarded", "/p", 100, &[GUARD]);
    for own in [guarded.clone(), exactly(guarded)] {
        for theirs in [bad.clone(), exactly(bad.clone())] {
            let found = with(&[], &[&open, &theirs, &own]);
            assert_eq!(answers(&found, ["/p", "/p/"]), ["503", "503"], "{}", found.problems);
        }
        // Where theirs is served, it redirects, which is theirs.
        for theirs in [prefix.clone(), exactly(prefix.clone())] {
            let found = with(&[], &[&open, &theirs, &own]);
            let [bare, slash] = answers(&found, ["/p", "/p/"]);
            assert!(bare.starts_with("AddSlash") && slash == "theirs", "{bare} {slash}");
        }
    }
}

/// If each went through all paths of the host, these would be 36,000,000 steps of comparing names.
#[test]
fn locations_within_those_of_many_ingresses_cost_little() {
    const COUNT: usize = 6_000;
    let within = ("configuration-snippet", "location ~ /q$ { add_header A b; }");
    let all = (0..COUNT).map(|number| {
        let mut one = made("v", &format!("i{number}"), &format!("/p{number}"), 10, &[within]);
        // An expression may not stand within one that is exact.
        let kind = if number % 2 == 0 { PathType::Exact } else { ANY };
        one.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = kind);
        one
    });
    let all: Vec<Ingress> = all.collect();
    let found = with(&[], &all.iter().collect::<Vec<_>>());
    let server = &found.configuration.servers[&ServerName::new(HOST)];
    let closed = server.locations.iter().filter(|at| matches!(at.backend, Backend::Denied(_)));
    let told =
        found.problems.iter().filter(|it| it.message.to_string().contains("503 until it is"));
    // And the root, which the first one brings.
    assert_eq!(
        (closed.count(), told.count()),
        (COUNT + 1, COUNT),
        "{:?}",
        found.problems.iter().next()
    );
}
