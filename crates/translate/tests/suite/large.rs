//! Objects that have much of two things: they cost the sum of these, never their product. Were one gone through for
//! each of the other, each of these tests would take half a minute at least.

use crate::builders::*;
use model::ServerName;
use objects::{Ingress, PathType, PortRef};
use translate::{Options, Translation, Translator, translate};

fn host(number: usize) -> String {
    format!("h{number:05}.test")
}

/// An Ingress with many hosts, which write no paths.
fn with_hosts(name: &str, count: usize) -> Ingress {
    let rules = (0..count).map(|number| rule(Some(&host(number)), None));
    Ingress { rules: rules.collect(), ..ingress("demo", name) }
}

#[test]
fn all_hosts_of_an_ingress_share_its_aliases_and_the_first_one_has_them() {
    let names: Vec<String> = (0..1000).map(|number| format!("n{number:04}.test")).collect();
    let mut translator = Translator::new(Options::default());
    let mut snapshot = cluster();
    let mut first = with_hosts("z-first", 3000);
    annotate(&mut first, "server-alias", &names.join(","));
    let mut later = with_hosts("y-later", 3000);
    annotate(&mut later, "server-alias", &[&*names[1..].join(","), "other.test"].join(","));
    put_ingress(&mut snapshot, first.clone());
    put_ingress(&mut snapshot, later);
    let found = translator.update(&snapshot);
    let aliases = |found: &Translation, number: usize| {
        found.configuration.servers[&ServerName::new(host(number))].aliases.len()
    };
    assert_eq!([0, 1, 2999].map(|number| aliases(&found, number)), [1000, 0, 0]);
    let told = found.problems.to_string();
    assert!(found.problems.iter().all(|it| &*it.origin.name == "y-later"), "{told}");
    let ignored =
        "other.test is ignored: the aliases of host h00000.test are those of Ingress demo/z-first";
    assert!(told.contains(ignored), "{told}");

    // Where the first one is not there, the later one is first, and it has what both ask for.
    first.rules.remove(0);
    annotate(&mut first, "server-alias", &[&*names[..999].join(","), &host(1)].join(","));
    put_ingress(&mut snapshot, first);
    let found = translator.update(&snapshot);
    assert_eq!([0, 1, 2].map(|number| aliases(&found, number)), [1000, 1, 0]);
    let told = found.problems.to_string();
    for said in ["h00001.test is a host itself", "n0001.test is an alias of h00000.test"] {
        assert_eq!(told.matches(said).count(), 1, "{said}: {told}");
    }
}

#[test]
fn each_section_of_an_ingress_is_read_once_for_all_of_its_hosts() {
    const HOSTS: usize = 3000;
    let mut snapshot = cluster();
    let listing = (0..HOSTS / 2).map(|number| tls(&[&host(number)], Some("wide")));
    let absent = (0..HOSTS).map(|number| tls(&[], Some(&format!("absent{number}"))));
    let sections = listing.chain(absent).chain([tls(&[], Some("last"))]);
    put_ingress(&mut snapshot, Ingress { tls: sections.collect(), ..with_hosts("many", HOSTS) });
    let mut put = |name: &str, names: &[&str]| {
        let (certificate, key) = certificate(names);
        put_secret(
            &mut snapshot,
            secret("demo", name, &[("tls.crt", &certificate), ("tls.key", &key)]),
        );
    };
    let names: Vec<String> = (0..3000).map(|number| format!("w{number}.test")).collect();
    let wide: Vec<&str> = names.iter().map(String::as_str).chain(["h00001.test"]).collect();
    put("wide", &wide);
    put("last", &["h02999.test"]);
    let found = translate(&snapshot, &Options::default());
    let of = |number: usize| {
        let server = &found.configuration.servers[&ServerName::new(host(number))];
        server.certificate.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    let chosen = [0, 1, HOSTS / 2, HOSTS - 1].map(of);
    assert_eq!(chosen, ["default", "demo/wide", "default", "demo/last"]);
    let told = found.problems.to_string();
    assert!(told.contains("Secret demo/absent0 does not exist"), "{told}");
}

#[test]
fn the_paths_of_a_canary_and_of_its_main_ingress_are_each_gone_through_once() {
    const PATHS: usize = 20_000;
    let mut snapshot = cluster();
    let with_paths = |name: &str, service: &str, start: &str| {
        let to = || backend(service, Some(PortRef::Number(80)));
        let one = |number| path(&format!("/{start}{number:05}"), PathType::Exact, to());
        let rules = vec![rule(Some("shop.test"), Some((0..PATHS).map(one).collect()))];
        Ingress { rules, ..ingress("demo", name) }
    };
    let mut canary = with_paths("canary", "next", "c");
    annotate(&mut canary, "canary", "true");
    annotate(&mut canary, "canary-weight", "10");
    annotate(&mut canary, "whitelist-source-range", "10.0.0.0/8");
    let others = (0..1000).map(|number| (format!("a.test/{number}"), String::new()));
    canary.meta.annotations.extend(others);
    for (number, path) in canary.rules[0].paths.iter_mut().flatten().enumerate() {
        if !(50..PATHS / 2).contains(&number) {
            path.path = path.path.replace("/c", "/m");
        }
    }
    put_ingress(&mut snapshot, with_paths("main", "s", "m"));
    put_ingress(&mut snapshot, canary);
    let found = translate(&snapshot, &Options::default());
    let server = &found.configuration.servers[&ServerName::new("shop.test")];
    let beside = server.locations.iter().filter(|location| location.canary.is_some());
    assert_eq!(beside.count(), PATHS / 2 + 50);
    let told = found.problems.to_string();
    assert!(told.contains("no other Ingress has path /c"), "{told}");
    assert!(told.contains("whitelist-source-range"), "{told}");
}
