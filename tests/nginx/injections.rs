//! The injections that ingress-nginx had to mend (injections.tsv), one after the other: the value as an attacker would
//! write it, through translation and writer. It arrives as data or is refused and said so; it is never a directive.

use crate::nginx::bed::{ALLOWED, config_map, ingress};
use crate::nginx::reader::Read;
use crate::nginx::written::{translated, translated_by};
use anyhow::{Context, Result, ensure};
use nginx::Environment;
use serde_json::Value;
use std::path::Path;
use testkit::builders::{self, ingress_class, secret};
use translate::{Options, Translation};

/// What every value would like to become.
const INJECTED: &str = "injected_directive";

/// The objects of somebody who writes a value at a place.
fn objects(environment: &str, value: &str) -> Vec<Value> {
    let host = |name: &str| ingress("own", name);
    let mut settings = Vec::new();
    let own = match environment.split_once(' ').unwrap_or((environment, "")) {
        ("annotation", key) => {
            let own = host("a.test")
                .annotate("auth-tls-secret", "demo/authority")
                .annotate("auth-type", "basic")
                .annotate("auth-secret", "passwords")
                .annotate("enable-cors", "true");
            let own = match key {
                "auth-method" => own.annotate("auth-url", "http://auth.demo.svc.cluster.local/"),
                "mirror-host" => {
                    own.annotate("mirror-target", "http://echo.demo.svc.cluster.local/")
                }
                _ => own,
            };
            own.annotate(key, value).build()
        }
        ("annotation-of-critical", key) => {
            settings.push(("allow-snippet-annotations", "true"));
            host("a.test").annotate(key, value).build()
        }
        ("header", _) => host("a.test")
            .annotate("auth-url", "http://auth.demo.svc.cluster.local/")
            .annotate("auth-proxy-set-headers", "demo/headers")
            .build(),
        ("path", _) => {
            let own = builders::ingress("own").class("nginx").host("a.test");
            own.typed_path("ImplementationSpecific", value, "echo:80").build()
        }
        ("host", _) => host(value).build(),
        other => panic!("no such place: {other:?}"),
    };
    let pair = testkit::certificates::Certificates::shared();
    let authority = pair.get("tls-demo").expect("a fixture").certificate.clone();
    let services = ["echo", "auth"].map(|name| builders::service(name).port("", 80, 80).build());
    let mut all = vec![
        ingress_class("nginx", "k8s.io/ingress-nginx"),
        config_map(&settings),
        secret("authority", &[("ca.crt", &authority)]),
        secret("passwords", &[("auth", "me:{PLAIN}secret\n")]),
        builders::config_map("headers", &[("X-Header", value)]),
        own,
    ];
    all.extend(services);
    all
}

/// What is wrong with a row.
fn wrong(environment: &str, value: &str, outcome: &str) -> Result<Option<String>> {
    let objects = objects(environment, value);
    // Whoever looks at values could be switched off, or mistaken: the writer holds alone.
    let blind = Options { validate_annotations: false, deep_inspect: false, ..Options::default() };
    let unlooked_at = read_back(&translated_by(&objects, blind))?;
    let translation = translated(&objects);
    let (names, values) = read_back(&translation)?;
    if names.iter().chain(&unlooked_at.0).any(|name| name.contains(INJECTED)) {
        return Ok(Some("it is a directive".to_owned()));
    }
    let arrives = values.iter().any(|value| value.contains(INJECTED));
    Ok(match outcome {
        "data" if arrives => None,
        "refused" if !arrives && is_told(&translation, environment) => None,
        _ => Some(format!("arrives: {arrives}, told: {}", translation.problems)),
    })
}

/// Names of directives, and what they say.
fn read_back(translation: &Translation) -> Result<(Vec<String>, Vec<String>)> {
    let conf = nginx::conf::write(&translation.configuration, &Environment::default())?;
    let is_hash = |name: &String| {
        let (stem, end) = name.split_once('.').unwrap_or((name, ""));
        stem.len() == 24 && stem.bytes().all(|b| b.is_ascii_hexdigit()) && !end.contains(['.', '/'])
    };
    ensure!(conf.files.keys().all(is_hash), "{:?}", conf.files.keys());
    let all = crate::nginx::reader::read(&conf.text.text).map_err(anyhow::Error::msg)?;
    let (mut names, mut values) = (Vec::new(), Vec::new());
    gather(&all, &mut names, &mut values);
    Ok((names, values))
}

fn gather(all: &[Read], names: &mut Vec<String>, values: &mut Vec<String>) {
    for Read { words, block } in all {
        names.push(words[0].clone());
        values.extend(words[1..].iter().cloned());
        gather(block.as_deref().unwrap_or_default(), names, values);
    }
}

/// Whether somebody is told about a value at this place.
fn is_told(translation: &Translation, environment: &str) -> bool {
    let name = match environment.split_once(' ') {
        Some((_, key)) => key,
        None if environment == "header" => "auth-proxy-set-headers",
        None => "",
    };
    translation.problems.iter().any(|problem| {
        let key = problem.key.as_deref().unwrap_or_default();
        &*problem.origin.name == "own" && (key.ends_with(name) || problem.message.contains(name))
    })
}

fn unescaped(text: &str) -> String {
    let text = text.replace("\\\\", "\u{1}").replace("\\n", "\n").replace("\\r", "\r");
    text.replace('\u{1}', "\\")
}

#[test]
fn a_value_of_an_attacker_is_data_or_refused_and_never_a_directive() -> Result<()> {
    let mut complaints = Vec::new();
    for row in include_str!("injections.tsv").lines().skip(1) {
        let cells: Vec<&str> = row.split('\t').collect();
        let [_, environment, value, outcome] =
            cells[..].try_into().with_context(|| row.to_owned())?;
        if environment == "elsewhere" {
            let there = Path::new(env!("CARGO_MANIFEST_DIR")).join(outcome).is_file();
            complaints.extend((!there).then(|| format!("{row}: no such file")));
            continue;
        }
        let found =
            wrong(environment, &unescaped(value), outcome).with_context(|| row.to_owned())?;
        complaints.extend(found.map(|found| format!("{row}\n  {found}")));
    }
    assert!(complaints.is_empty(), "{} of the table:\n{}", complaints.len(), complaints.join("\n"));
    Ok(())
}

#[test]
fn text_that_is_allowed_to_be_configuration_is_found_by_the_same_reader() -> Result<()> {
    let own = ingress("own", "a.test").annotate("configuration-snippet", "injected_directive on;");
    let class = ingress_class("nginx", "k8s.io/ingress-nginx");
    let (names, _) = read_back(&translated(&[class, config_map(&ALLOWED), own.build()]))?;
    ensure!(names.iter().any(|name| name == INJECTED));
    Ok(())
}
