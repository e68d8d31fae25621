//! Ingresses that wait for room in the budget of their namespace, and those that are not taken: what they guard is open
//! to nobody meanwhile, and what is theirs is no stranger's.

use crate::builders::*;
use crate::kept_shut::{ANY, BAD, GUARD, HOST, REGEX, answers, made, with};
use model::{CertificateId, Server, ServerName};
use objects::{Ingress, PortRef, Snapshot};
use translate::{Options, Translation, Translator, translate};

/// An Ingress with these paths.
fn of(
    namespace: &str,
    name: &str,
    paths: &[&str],
    age: i64,
    annotations: &[(&str, &str)],
) -> Ingress {
    let mut made = made(namespace, name, "/", age, annotations);
    let to = || backend("s", Some(PortRef::Number(80)));
    let paths = paths.iter().map(|at| path(at, ANY, to())).collect();
    made.rules = vec![rule(Some(HOST), Some(paths))];
    made
}

fn elsewhere(mut made: Ingress, host: &str) -> Ingress {
    made.rules.iter_mut().for_each(|rule| rule.host = Some(host.to_owned()));
    made
}

/// An older one of v that takes so many paths of what that may have.
fn fill(paths: usize) -> Ingress {
    let paths: Vec<String> = (0..paths).map(|number| format!("/{number}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    elsewhere(of("v", "fill", &paths, 950, &[]), "fill.test")
}

fn server<'t>(found: &'t Translation, host: &str) -> &'t Server {
    &found.configuration.servers[&ServerName::new(host)]
}

fn names(found: &Translation, host: &str) -> String {
    let names: Vec<String> = server(found, host).aliases.iter().map(ToString::to_string).collect();
    names.join(" ")
}

#[test]
fn guards_of_the_config_map_are_those_of_who_waits_for_room() {
    let room = ("namespace-budget", "paths=2");
    let list = ("whitelist-source-range", "10.0.0.0/8");
    let auth = ("global-auth-url", "http://auth.example/");
    let (all, exempt) = (("whitelist-source-range", "0.0.0.0/0"), ("enable-global-auth", "false"));
    let less = ("whitelist-source-range", "10.1.0.0/16");
    let wrong = ("global-auth-url", "nowhere at all");
    let answers_itself = ("configuration-snippet", "if ($http_x_key != \"k\") { return 403; }");
    for (data, open, own, wanted) in [
        (&[list][..], &[all][..], &[][..], "503"),
        (&[auth], &[exempt], &[], "503"),
        // Nobody is kept out of one that others let in.
        (&[], &[], &[], "open"),
        (&[auth], &[exempt], &[exempt], "open"),
        (&[list], &[], &[], "open!"),
        // It has more guards than all have.
        (&[list], &[], &[less], "503"),
        // Whom an authenticator would let in that nobody can ask is not known, whatever the list says.
        (&[list, wrong], &[exempt], &[], "503"),
        (&[list, wrong], &[exempt], &[exempt], "open!"),
        (&[], &[], &[answers_itself], "503"),
    ] {
        let open = of("v", "open", &["/", "/more"], 900, &[&[REGEX], open].concat());
        let waits = made("v", "guarded", "/(admin|root)(.*)", 500, &[&[REGEX], own].concat());
        let found = with(&[&[room], data].concat(), &[&open, &waits]);
        let said = found.problems.to_string();
        assert!(said.contains("v/guarded: the Ingress is not served"), "{said}");
        assert_eq!(answers(&found, ["/admin/x"]), [wanted], "{data:?} {own:?} {said}");
    }
}

#[test]
fn a_path_of_who_waits_for_room_is_no_younger_one_s() {
    let open = of("v", "open", &["/", "/1"], 900, &[]);
    let guarded = of("v", "guarded", &["/a2", "/admin"], 500, &[GUARD]);
    let young = made("v", "young", "/admin", 100, &[]);
    let paths = ["/admin", "/a2", "/other"];
    let found = with(&[], &[&open, &guarded, &young]);
    assert_eq!(answers(&found, paths), ["guarded!", "guarded!", "open"]);
    let found = with(&[("namespace-budget", "paths=3")], &[&open, &guarded, &young]);
    assert_eq!(answers(&found, paths), ["503", "503", "open"], "{}", found.problems);
    // Beside a mistake the next one has the path, as with ingress-nginx.
    let guarded = of("v", "guarded", &["/a2", "/admin"], 500, &[GUARD, BAD]);
    let found = with(&[], &[&open, &guarded, &young]);
    assert_eq!(answers(&found, paths), ["young", "503", "open"], "{}", found.problems);
}

#[test]
fn a_default_backend_of_who_waits_for_room_is_no_younger_one_s() {
    let to = || Some(Box::new(backend("s", Some(PortRef::Number(80)))));
    let mut guarded = of("v", "guarded", &["/a2", "/a3"], 500, &[GUARD]);
    let mut young = made("v", "young", "/y", 100, &[]);
    (guarded.default_backend, young.default_backend) = (to(), to());
    for (paths, wanted) in [(1, ["guarded!", "young"]), (3, ["503", "young"])] {
        let found = with(&[("namespace-budget", "paths=4")], &[&fill(paths), &guarded, &young]);
        assert_eq!(answers(&found, ["/other", "/y"]), wanted, "{}", found.problems);
    }
    // And what answers for all other hosts.
    let aliases = ("server-alias", "a.test, b.test");
    (guarded.rules, young.rules) = (Vec::new(), Vec::new());
    annotate(&mut guarded, aliases.0, aliases.1);
    for (budget, wanted) in [("hosts=3", "guarded"), ("hosts=2", "503")] {
        let found = with(&[("namespace-budget", budget)], &[&fill(1), &guarded, &young]);
        let root = server(&found, "_").locations.iter().find(|location| location.path == "/");
        let root = root.expect("the host of all others has a root");
        let name = match &root.backend {
            model::Backend::Denied(_) => "503",
            _ => root.origin.as_deref().map_or("nobody", |origin| &*origin.name),
        };
        assert_eq!(name, wanted, "{}", found.problems);
    }
}

#[test]
fn aliases_of_who_is_not_served_are_kept_beside_those_of_who_is() {
    let y = made("v", "y", "/y", 100, &[("server-alias", "b.test")]);
    let evil = elsewhere(made("x", "evil", "/", 10, &[("server-alias", "a.test")]), "evil.test");
    let kept = |data: &[(&str, &str)], own: &Ingress| {
        let found = with(data, &[&fill(2), own, &y, &evil]);
        assert_eq!(names(&found, "evil.test"), "", "{}", found.problems);
        assert!(answers(&found, ["/"])[0].contains("503"), "{}", found.problems);
        names(&found, HOST)
    };
    let alias = ("server-alias", "a.test");
    let waits = of("v", "g", &["/", "/1"], 500, &[alias, GUARD]);
    assert_eq!(kept(&[("namespace-budget", "paths=3")], &waits), "a.test b.test");
    let bad = of("v", "g", &["/", "/1"], 500, &[alias, GUARD, BAD]);
    assert_eq!(kept(&[], &bad), "a.test b.test");
    // Nor are they anybody's where the mistake is among them.
    for list in ["a.test,bad name", "bad name, a.test"] {
        let bad = of("v", "g", &["/", "/1"], 500, &[("server-alias", list), GUARD]);
        assert!(kept(&[], &bad).starts_with("a.test"), "{list}");
    }
}

#[test]
fn a_name_that_is_redirected_is_kept_by_who_is_not_served() {
    let www = ("from-to-www-redirect", "true");
    let alias = ("server-alias", "www.shop.test");
    let evil = elsewhere(made("x", "evil", "/", 10, &[alias]), "evil.test");
    let name = Some("www.shop.test");
    for (data, more, wanted) in [
        (&[("namespace-budget", "paths=3")][..], &[www][..], None),
        (&[], &[www, BAD], None),
        (&[], &[www], name),
    ] {
        let own = of("v", "own", &["/", "/1"], 500, more);
        let found = with(data, &[&fill(2), &own, &evil]);
        assert_eq!(names(&found, "evil.test"), "", "{}", found.problems);
        let www = server(&found, HOST).www.as_ref().map(ToString::to_string);
        assert_eq!(www.as_deref(), wanted, "{more:?} {}", found.problems);
    }
    // An alias of the same namespace has it meanwhile.
    let two = made("v", "two", "/t", 100, &[alias]);
    for (more, names_of_host, told) in
        [(&[www, BAD][..], "www.shop.test", "v/own"), (&[www], "", "v/two")]
    {
        let own = of("v", "own", &["/", "/1"], 500, more);
        let found = with(&[], &[&own, &two, &evil]);
        let said = found.problems.to_string();
        assert_eq!(names(&found, HOST), names_of_host, "{said}");
        assert_eq!(names(&found, "evil.test"), "", "{said}");
        let is_told = |line: &str| {
            line.contains(&format!("Ingress {told}: ")) && line.contains("www.shop.test is")
        };
        assert!(said.lines().any(is_told), "{said}");
    }
    // Nor is it a stranger's where all are heard.
    let own = of("v", "own", &["/", "/1"], 500, &[www, BAD]);
    for (all, names_of_host) in [(&[&own, &evil][..], ""), (&[&own, &two, &evil], "www.shop.test")]
    {
        let found = with(&[("allow-cross-namespace", "all")], all);
        assert_eq!(names(&found, "evil.test"), "", "{}", found.problems);
        assert_eq!(names(&found, HOST), names_of_host, "{}", found.problems);
    }
    // Nor does a stranger's mistake take it from the owner of the host.
    let own = made("v", "own", "/", 500, &[]);
    let two = elsewhere(made("v", "two", "/", 100, &[alias]), "two.test");
    let thief = made("x", "thief", "/t", 10, &[www, BAD]);
    let found = with(&[("allow-cross-namespace", "all")], &[&own, &two, &thief]);
    assert_eq!(names(&found, "two.test"), "www.shop.test", "{}", found.problems);
    // Whose alias another namespace's is, nobody is told.
    let older = elsewhere(made("x", "older", "/", 900, &[alias]), "older.test");
    let own = of("v", "own", &["/", "/1"], 500, &[www]);
    let said = with(&[], &[&own, &older]).problems.to_string();
    let wanted = "www.shop.test is what an older alias of another namespace has and not redirected";
    assert!(said.contains(wanted) && !said.contains("older.test"), "{said}");
}

#[test]
fn a_host_keeps_its_certificate_while_its_owner_is_not_served() {
    let part = made("w", "part", "/x", 100, &[]);
    let own = Some("v/t");
    for (budget, more, wanted) in [
        ("paths=4", &[][..], own),
        ("paths=3", &[], own),
        ("paths=4", &[BAD], own),
        // Without room for it nobody is served in clear, either.
        ("certificate-bytes=10", &[], Some(CertificateId::of_default().as_str())),
    ] {
        let mut site = of("v", "site", &["/", "/1"], 500, more);
        site.tls = vec![tls(&[HOST], Some("t"))];
        let mut snapshot = cluster();
        let settings = config_map("system", "settings", &[("namespace-budget", budget)]);
        put_config_map(&mut snapshot, settings);
        let (chain, private) = certificate(&[HOST]);
        put_secret(&mut snapshot, secret("v", "t", &[("tls.crt", &chain), ("tls.key", &private)]));
        for namespace in ["v", "w"] {
            put_service(&mut snapshot, service(namespace, "s", 80));
        }
        for one in [&fill(2), &site, &part] {
            put_ingress(&mut snapshot, one.clone());
        }
        let config_map = Some(key("system", "settings"));
        let found = translate(&snapshot, &Options { config_map, ..Options::default() });
        let certificate = server(&found, HOST).certificate.as_ref().map(CertificateId::as_str);
        assert_eq!(certificate, wanted, "{budget} {more:?} {}", found.problems);
        assert_eq!(answers(&found, ["/x"]), ["part"]);
        let loaded = found.configuration.certificates.len();
        assert_eq!(loaded, usize::from(wanted == own), "{budget} {more:?}");
    }
}

#[test]
fn a_host_that_is_passed_through_is_no_stranger_s_while_its_ingress_is_not_served() {
    let passes = ("ssl-passthrough", "true");
    for (passthrough, budget, more, age, wanted) in [
        (true, "paths=3", &[passes][..], 100, "503"),
        (true, "paths=4", &[passes, BAD], 100, "503"),
        // What does not count for a host closes nothing of it.
        (true, "paths=3", &[], 100, "stranger"),
        (true, "paths=3", &[passes], 800, "stranger"),
        (false, "paths=3", &[passes], 100, "stranger"),
    ] {
        let mut snapshot = cluster();
        let settings = config_map("system", "settings", &[("namespace-budget", budget)]);
        put_config_map(&mut snapshot, settings);
        for namespace in ["v", "w"] {
            put_service(&mut snapshot, service(namespace, "s", 80));
        }
        let own = of("v", "own", &["/", "/1"], 500, more);
        for one in [&fill(2), &own, &made("w", "stranger", "/x", age, &[])] {
            put_ingress(&mut snapshot, one.clone());
        }
        let config_map = Some(key("system", "settings"));
        let options = Options { config_map, passthrough, ..Options::default() };
        let found = translate(&snapshot, &options);
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/x"]), [wanted], "{budget} {more:?} {age} {said}");
        assert_eq!(server(&found, HOST).passthrough, None);
    }
}

/// A cluster with a host that an Ingress of v guards, a younger part of w, and something older of v that grows.
fn guarded(own: &Ingress, paths: usize) -> Snapshot {
    let mut snapshot = cluster();
    let data = [
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Critical"),
        ("namespace-budget", "paths=4"),
    ];
    put_config_map(&mut snapshot, config_map("system", "settings", &data));
    for namespace in ["v", "w"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    for one in [own, &fill(paths), &made("w", "part", "/w", 100, &[])] {
        put_ingress(&mut snapshot, one.clone());
    }
    snapshot
}

const DENIES: (&str, &str) = ("server-snippet", "deny 192.0.2.7;");

fn pod() -> impl FnMut(&Snapshot) -> [String; 2] {
    let config_map = Some(key("system", "settings"));
    let mut translator = Translator::new(Options { config_map, ..Options::default() });
    move |snapshot| {
        let mut found = translator.update(snapshot);
        while found.more {
            found = translator.update(snapshot);
        }
        served(&found)
    }
}

fn served(found: &Translation) -> [String; 2] {
    answers(found, ["/admin", "/w"]).map(|found| found.replace('!', ""))
}

#[test]
fn a_pod_that_runs_knows_the_last_valid_version_after_a_wait() {
    let good = of("v", "g", &["/admin", "/2"], 500, &[DENIES]);
    let bad = of("v", "g", &["/admin"], 500, &[DENIES, BAD]);
    let mut answers = pod();
    assert_eq!(answers(&guarded(&good, 1)), ["g", "part"]);
    assert_eq!(answers(&guarded(&bad, 1)), ["g", "part"], "the valid one stays");
    // There is room for the one with a mistake, and none for that which would be served.
    assert_eq!(answers(&guarded(&bad, 3)), ["503", "503"]);
    assert_eq!(answers(&guarded(&bad, 4)), ["503", "503"]);
    assert_eq!(answers(&guarded(&bad, 1)), ["g", "part"]);
    // The mistake may come meanwhile.
    let mut answers = pod();
    assert_eq!(answers(&guarded(&good, 1)), ["g", "part"]);
    assert_eq!(answers(&guarded(&good, 3)), ["503", "503"]);
    assert_eq!(answers(&guarded(&bad, 3)), ["503", "503"]);
    assert_eq!(answers(&guarded(&bad, 2)), ["g", "part"]);
    // What is good comes in by what it takes itself.
    assert_eq!(answers(&guarded(&bad, 3)), ["503", "503"]);
    let less = of("v", "g", &["/admin"], 500, &[DENIES]);
    assert_eq!(answers(&guarded(&less, 3)), ["g", "part"]);
    // One that was made anew has no such version.
    assert_eq!(answers(&guarded(&less, 4)), ["503", "503"]);
    let mut anew = bad.clone();
    anew.meta.uid = "another".into();
    assert_eq!(answers(&guarded(&anew, 1)), ["503", "503"]);
}

#[test]
fn a_pod_that_runs_knows_the_last_valid_version_after_its_class_was_gone() {
    let good = of("v", "g", &["/admin"], 500, &[DENIES]);
    let bad = of("v", "g", &["/admin"], 500, &[DENIES, BAD]);
    let config_map = Some(key("system", "settings"));
    for gone in [&good, &bad] {
        let options = Options { config_map: config_map.clone(), ..Options::default() };
        let mut translator = Translator::new(options);
        let mut update = |snapshot: &Snapshot| {
            let found = translator.update(snapshot);
            let is_there = found.configuration.servers.contains_key(&ServerName::new(HOST));
            is_there.then(|| served(&found))
        };
        let both = Some(["g", "part"].map(str::to_owned));
        assert_eq!(update(&guarded(&good, 1)), both);
        assert_eq!(update(&guarded(gone, 1)), both);
        let mut without = guarded(gone, 1);
        without.classes = Some(Default::default());
        assert_eq!(update(&without), None);
        assert_eq!(update(&guarded(&bad, 1)), both);
        // Of an object that was gone itself nothing is known.
        let mut without = guarded(gone, 1);
        without.ingresses.remove(&key("v", "g"));
        update(&without);
        let closed = Some(["503", "503"].map(str::to_owned));
        assert_eq!(update(&guarded(&bad, 1)), closed);
    }
}

/// What was valid and waited is the last valid version, not the one before it, which had no guard yet.
#[test]
fn no_version_from_before_the_guard_comes_back_after_a_wait() {
    let open = of("v", "g", &["/admin"], 500, &[]);
    let paths = |count: usize| ["/admin", "/2", "/3", "/4", "/5"].into_iter().take(count);
    let valid = |count: usize| of("v", "g", &paths(count).collect::<Vec<_>>(), 500, &[GUARD]);
    let bad = of("v", "g", &["/admin"], 500, &[GUARD, BAD]);
    let config_map = Some(key("system", "settings"));
    for (count, then) in [(4, "g!"), (5, "503")] {
        let options = Options { config_map: config_map.clone(), ..Options::default() };
        let mut translator = Translator::new(options);
        let mut admin = |snapshot: &Snapshot| {
            let mut found = translator.update(snapshot);
            while found.more {
                found = translator.update(snapshot);
            }
            let is_there = found.configuration.servers[&ServerName::new(HOST)]
                .locations
                .iter()
                .any(|location| location.path == "/admin");
            if is_there { answers(&found, ["/admin"])[0].clone() } else { "nobody".to_owned() }
        };
        assert_eq!(admin(&guarded(&open, 1)), "g");
        let kept = if count == 4 { "503" } else { "nobody" };
        assert_eq!(admin(&guarded(&valid(count), 1)), kept, "it waits");
        assert_eq!(admin(&guarded(&bad, 1)), "503", "the valid one has no room");
        // Of what was too large to be looked at nothing is known.
        assert_eq!(admin(&guarded(&bad, 0)), then);
        assert_eq!(admin(&guarded(&valid(3), 1)), "g!");
    }
}

#[test]
fn no_version_from_before_the_guard_comes_back_after_its_class_was_gone_or_another() {
    let open = of("v", "g", &["/admin"], 500, &[]);
    let valid = of("v", "g", &["/admin"], 500, &[GUARD]);
    let bad = of("v", "g", &["/admin"], 500, &[GUARD, BAD]);
    let mut others = valid.clone();
    others.class = Some("other".to_owned());
    let mut refused = valid.clone();
    refused.default_backend = Some(Box::new(backend("s", Some(PortRef::Number(80)))));
    for (middle, gone, wanted) in [
        (&valid, true, "g!"),
        // The owner's mistake is the one that it was.
        (&bad, true, "g"),
        // What another controller was to serve, or nobody, is no version of ours.
        (&others, false, "503"),
        (&refused, false, "503"),
    ] {
        let config_map = Some(key("system", "settings"));
        let options = Options { config_map, disable_catch_all: true, ..Options::default() };
        let mut translator = Translator::new(options);
        assert_eq!(answers(&translator.update(&guarded(&open, 1)), ["/admin"]), ["g"]);
        let mut without = guarded(middle, 1);
        if gone {
            without.classes = Some(Default::default());
        }
        translator.update(&without);
        let found = translator.update(&guarded(&bad, 1));
        assert_eq!(answers(&found, ["/admin"]), [wanted], "{middle:?} {}", found.problems);
    }
}
