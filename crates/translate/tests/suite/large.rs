//! Objects that have much of two things: they cost the sum of these, never their product. Were one gone through for
//! each of the other, each of these tests would take half a minute at least.

use crate::builders::*;
use model::ServerName;
use objects::{Ingress, PathType, PortRef, ReverseIndex, ServicePort};
use translate::{Options, Translation, Translator, needs, references, review, translate};

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

/// An Ingress that names all of these Secrets for hosts that no section lists.
fn naming(name: &str, hosts: &[String], secrets: &[String]) -> Ingress {
    Ingress {
        rules: hosts.iter().map(|host| rule(Some(host), None)).collect(),
        tls: secrets.iter().map(|secret| tls(&[], Some(secret))).collect(),
        ..ingress("demo", name)
    }
}

#[test]
fn certificates_with_many_names_are_looked_into_and_not_gone_through_for_each_ingress() {
    const INGRESSES: usize = 1200;
    let mut snapshot = cluster();
    let names: Vec<String> = (0..2000).map(|number| format!("w{number}.test")).collect();
    let wide: Vec<&str> = names.iter().map(String::as_str).collect();
    let (certificate, key) = certificate(&wide);
    let secrets: Vec<String> = (0..50).map(|number| format!("s{number}")).collect();
    for name in &secrets {
        let pair = [("tls.crt", &*certificate), ("tls.key", &*key)];
        put_secret(&mut snapshot, secret("demo", name, &pair));
    }
    for number in 0..INGRESSES {
        // Of many hosts the sections are kept, of few they are not.
        let count = if number % 20 == 0 { 10 } else { 1 };
        let hosts: Vec<String> = (0..count).map(|host| format!("h{host}.i{number}.test")).collect();
        put_ingress(&mut snapshot, naming(&format!("i{number}"), &hosts, &secrets));
    }
    let hosts = ["w1999.test".to_owned()];
    put_ingress(&mut snapshot, naming("covered", &hosts, &secrets));
    let found = translate(&snapshot, &Options::default());
    let of = |host: &str| {
        let server = &found.configuration.servers[&ServerName::new(host)];
        server.certificate.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    let chosen = ["h0.i0.test", "h9.i0.test", "h0.i1.test", "w1999.test"].map(of);
    assert_eq!(chosen, ["default", "default", "default", "demo/s0"]);
}

#[test]
fn the_first_secret_that_covers_a_host_has_it_whether_or_not_its_names_were_gone_through() {
    const HOSTS: usize = 40;
    let mut snapshot = cluster();
    // The names of the first are gone through later than those of the others.
    let filling: Vec<String> = (0..300).map(|number| format!("w{number}.test")).collect();
    let first: Vec<String> = filling
        .into_iter()
        .chain((0..HOSTS).step_by(2).map(host))
        .chain(["*.a.test".to_owned()])
        .collect();
    let second: Vec<String> = (0..HOSTS).step_by(3).map(host).collect();
    let secrets = [("first", first), ("second", second), ("absent", Vec::new())];
    for (name, names) in &secrets[..2] {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (certificate, key) = certificate(&names);
        let pair = [("tls.crt", &*certificate), ("tls.key", &*key)];
        put_secret(&mut snapshot, secret("demo", name, &pair));
    }
    let mut hosts: Vec<String> = (0..HOSTS).map(host).collect();
    hosts.extend(["x.a.test".to_owned(), "*.a.test".to_owned(), "y.x.a.test".to_owned()]);
    let names = secrets.map(|(name, _)| name.to_owned());
    put_ingress(&mut snapshot, naming("many", &hosts, &names));
    let found = translate(&snapshot, &Options::default());
    for (number, host) in hosts.iter().enumerate() {
        let server = &found.configuration.servers[&ServerName::new(host.as_str())];
        let certificate = server.certificate.as_ref().map(ToString::to_string);
        let expected = match number {
            40 | 41 => "demo/first",
            42 => "default",
            _ if number % 2 == 0 => "demo/first",
            _ if number % 3 == 0 => "demo/second",
            _ => "default",
        };
        assert_eq!(certificate.as_deref(), Some(expected), "{host}");
    }
}

#[test]
fn the_paths_of_a_canary_and_of_its_main_ingress_are_each_gone_through_once() {
    const PATHS: usize = 40_000;
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
    let others = (0..2000).map(|number| (format!("a.test/{number}"), String::new()));
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

/// An Ingress with these paths of one host.
fn with_texts(namespace: &str, name: &str, texts: impl Iterator<Item = String>) -> Ingress {
    let to = || backend("s", Some(PortRef::Number(80)));
    let paths = texts.map(|text| path(&text, PathType::Prefix, to())).collect();
    Ingress { rules: vec![rule(Some("shop.test"), Some(paths))], ..ingress(namespace, name) }
}

#[test]
fn a_review_goes_once_through_its_paths_and_those_of_its_host() {
    const PATHS: usize = 20_000;
    let (options, mut snapshot) = (Options::default(), cluster());
    let own = (0..PATHS).map(|number| format!("/a{number:05}"));
    put_ingress(&mut snapshot, with_texts("demo", "there", own.chain(["/last".to_owned()])));
    let served = translate(&snapshot, &options).configuration;
    let refusal = |ingress: &Ingress| review(ingress, &snapshot, &served, &options).refusal;
    let mut asked = with_texts("demo", "new", (0..PATHS).map(|number| format!("/b{number:05}")));
    // Each in a rule of its own is no more.
    let paths: Vec<_> = asked.rules.remove(0).paths.into_iter().flatten().collect();
    let alone = paths.into_iter().map(|path| rule(Some("shop.test"), Some(vec![path])));
    asked.rules.extend(alone);
    assert_eq!(refusal(&asked), None);
    for (text, is_taken) in [("/last/", true), ("/last", true), ("/las", false)] {
        let paths = asked.rules[PATHS - 1].paths.as_mut().expect("it has one");
        paths[0].path = text.to_owned();
        let said = refusal(&asked).is_some_and(|said| {
            said.contains(&format!("path {text:?} is already defined in ingress demo/there"))
        });
        assert_eq!(said, is_taken, "{text}");
    }
}

#[test]
fn a_review_reads_another_ingress_once_for_all_paths_and_hosts() {
    let (options, mut snapshot) = (Options::default(), cluster());
    let mut translator = Translator::new(options.clone());
    let texts = || (0..2000).map(|number| format!("/a{number:04}"));
    let mut there = with_texts("demo", "there", texts());
    let root = || Some(vec![path("/", PathType::Prefix, backend("s", None))]);
    there.rules.extend((0..2000).map(|number| rule(Some(&host(number)), root())));
    put_ingress(&mut snapshot, there.clone());
    translator.update(&snapshot);
    // It is served as it was, and rejected as it is.
    let networks: Vec<String> =
        (0..4000).map(|number| format!("10.{}.{}.0/24", number / 250, number % 250)).collect();
    annotate(&mut there, "whitelist-source-range", &networks.join(","));
    annotate(&mut there, "client-body-buffer-size", "much");
    put_ingress(&mut snapshot, there.clone());
    let served = translator.update(&snapshot).configuration;
    let mut asked = there.clone();
    asked.meta = meta("demo", "new");
    assert_eq!(review(&asked, &snapshot, &served, &options).refusal, None);
    there.meta.annotations.clear();
    put_ingress(&mut snapshot, there);
    let refusal = review(&asked, &snapshot, &served, &options).refusal.expect("it is taken now");
    assert!(
        refusal.contains("path \"/a0000\" is already defined in ingress demo/there"),
        "{refusal}"
    );
}

#[test]
fn services_and_ports_that_an_ingress_lacks_are_looked_for_once() {
    const MANY: usize = 20_000;
    let (options, mut snapshot) = (Options::default(), cluster());
    let to = |service: &str, port: usize| {
        let port = Some(PortRef::Name(format!("p{port}")));
        path("/", PathType::Prefix, backend(service, port))
    };
    let led = (0..MANY).flat_map(|number| [to("s", number), to(&format!("absent{number}"), 0)]);
    let asked = Ingress {
        rules: vec![rule(Some("shop.test"), Some(led.collect()))],
        ..ingress("demo", "asked")
    };
    let mut there = service("demo", "s", 80);
    let one = there.ports[0].clone();
    let named = |number| ServicePort { name: Some(format!("p{number}")), ..one.clone() };
    there.ports = (0..MANY - 1).map(named).collect();
    put_service(&mut snapshot, there.clone());
    let said = needs::missing(&asked, &snapshot, &options);
    let absent = "Service demo/absent0 does not exist: its paths answer 503 until it does";
    assert_eq!((said[0].as_str(), said.len()), (absent, 9));
    assert_eq!(said[8], format!("and {} more of the kind", MANY + 1 - 8));
    put_ingress(&mut snapshot, asked.clone());
    let mut index = ReverseIndex::default();
    let of_it = references(&asked, &options);
    index.set(asked.meta.key.clone(), of_it);
    there.ports.pop();
    let lost = needs::lost_ports(&there, &snapshot, &index, &options);
    let expected = [format!("called p{}", MANY - 2), format!("called p{}", MANY - 1)];
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost.iter().zip(&expected).all(|(said, port)| said.contains(port)), "{lost:?}");
}
