//! Time of a full translation and of following one change, at 10, 1,000 and 10,000 Ingresses with two paths each.
//! `cargo bench -p translate`.

#[path = "../tests/suite/builders.rs"]
mod builders;

use builders::{
    annotate, backend, certificate, cluster, config_map, endpoint, ingress, key, path,
    put_config_map, put_ingress, put_secret, put_service, put_slice, rule, secret, service, slice,
    tls,
};
use objects::{Ingress, PathType, PortRef, Snapshot};
use std::hint::black_box;
use std::time::{Duration, Instant};
use translate::{Options, Translator};

/// How often each change is made, there and back.
const ROUNDS: u32 = 200;

fn main() {
    println!(
        "| Ingresses | full | Ingress appears | annotation | endpoints | Service | certificate | ConfigMap | nothing |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for size in [10, 1_000, 10_000] {
        println!("{}", row(size));
    }
}

fn options() -> Options {
    Options { config_map: Some(key("demo", "settings")), ..Options::default() }
}

fn row(size: usize) -> String {
    let base = filled(size);
    let started = Instant::now();
    let mut translator = Translator::new(options());
    black_box(translator.update(&base));
    let full = started.elapsed();
    let middle = size / 2;
    let mut annotated = shop(middle);
    annotate(&mut annotated, "proxy-read-timeout", "7");
    let two = vec![endpoint("10.1.0.1"), endpoint("10.1.0.2")];
    let changes: [(&str, Snapshot); 6] = [
        ("appears", changed(&base, |snapshot| put_ingress(snapshot, shop(size)))),
        ("annotation", changed(&base, |snapshot| put_ingress(snapshot, annotated))),
        (
            "endpoints",
            changed(&base, |snapshot| {
                put_slice(
                    snapshot,
                    slice("demo", &format!("s{middle}-1"), &format!("s{middle}"), two),
                )
            }),
        ),
        (
            "service",
            changed(&base, |snapshot| {
                put_service(snapshot, service("demo", &format!("s{middle}"), 81))
            }),
        ),
        ("certificate", changed(&base, |snapshot| put_secret(snapshot, pair("cert-0")))),
        (
            "config map",
            changed(&base, |snapshot| {
                put_config_map(snapshot, config_map("demo", "settings", &[("keep-alive", "7")]))
            }),
        ),
    ];
    let mut cells = vec![size.to_string(), shown(full)];
    for (name, other) in &changes {
        let rounds = if *name == "config map" { 3 } else { ROUNDS };
        cells.push(shown(there_and_back(&mut translator, &base, other, rounds)));
    }
    cells.push(shown(there_and_back(&mut translator, &base, &base, ROUNDS)));
    format!("| {} |", cells.join(" | "))
}

/// The mean time of following a change or its opposite.
fn there_and_back(
    translator: &mut Translator,
    base: &Snapshot,
    other: &Snapshot,
    rounds: u32,
) -> Duration {
    let started = Instant::now();
    for _ in 0..rounds {
        black_box(translator.update(other));
        black_box(translator.update(base));
    }
    started.elapsed() / (2 * rounds)
}

fn changed(base: &Snapshot, change: impl FnOnce(&mut Snapshot)) -> Snapshot {
    let mut other = base.clone();
    change(&mut other);
    other
}

fn filled(size: usize) -> Snapshot {
    let mut snapshot = cluster();
    for number in 0..10 {
        put_secret(&mut snapshot, pair(&format!("cert-{number}")));
    }
    for number in 0..size {
        let name = format!("s{number}");
        put_ingress(&mut snapshot, shop(number));
        put_service(&mut snapshot, service("demo", &name, 80));
        put_slice(
            &mut snapshot,
            slice(
                "demo",
                &format!("{name}-1"),
                &name,
                vec![endpoint("10.0.0.1"), endpoint("10.0.0.2")],
            ),
        );
    }
    snapshot
}

/// A host of its own with two paths and TLS.
fn shop(number: usize) -> Ingress {
    let host = format!("h{number}.shop.test");
    let to = || backend(&format!("s{number}"), Some(PortRef::Number(80)));
    let paths = vec![path("/", PathType::Prefix, to()), path("/api", PathType::Prefix, to())];
    let mut made = ingress("demo", &format!("shop-{number}"));
    made.rules = vec![rule(Some(&host), Some(paths))];
    made.tls = vec![tls(&[host.as_str()], Some(&format!("cert-{}", number % 10)))];
    annotate(&mut made, "proxy-body-size", "8m");
    made
}

fn pair(name: &str) -> objects::Secret {
    let (certificate, key) = certificate(&["*.shop.test"]);
    secret("demo", name, &[("tls.crt", &certificate), ("tls.key", &key)])
}

fn shown(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..10_000 => format!("{micros} µs"),
        micros => format!("{} ms", micros / 1000),
    }
}
