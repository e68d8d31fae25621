//! How long it takes to find a server among 1, 1,000 and 10,000 hosts, and a location among 1, 5, 100 and 5,000 paths.
//!
//! `cargo bench -p route` prints the least time of many rounds per look-up, which is steadier than a mean where other
//! programs share the machine. Hosts and paths are asked for in a scattered order, so that caches do not flatter.

use model::{Backend, Location, PathKind, Server, ServerName, Steps};
use route::path::{Canonical, canonical, encode};
use route::{Locations, Routes};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 30;
const LOOKUPS: usize = 20_000;

fn main() {
    for text in ["/", "/api/v1/items/12345/details", "/api/v1//items/%41", "/a/b/../c/./d"] {
        report(&format!("canonical {text}"), &[text], |text| {
            black_box(canonical(text.as_bytes()).is_ok());
        });
    }
    report("encode a plain path", &["/api/v1/items/12345"], |text| {
        black_box(encode(text.as_bytes()).len());
    });
    [1, 1_000, 10_000].into_iter().for_each(hosts);
    [1, 5, 100, 5_000].into_iter().for_each(plain_paths);
    [1, 5, 100].into_iter().for_each(regex_paths);
}

fn hosts(count: usize) {
    let names: Vec<String> =
        (0..count).map(|number| format!("shop-{number}.apps.example.com")).collect();
    let routes = names.iter().fold(Routes::default(), |routes, name| {
        routes.with(&ServerName::new(name.as_str()), Some(Arc::new(name.clone())))
    });
    let scattered = scatter(&names);
    report(&format!("find among {count} hosts"), &scattered, |name| {
        let _ = black_box(routes.find(name, &Steps::default()));
    });
    let routes = routes.with(&ServerName::new("*.apps.example.com"), Some(Arc::new(String::new())));
    report(&format!("find a wildcard beside {count} hosts"), &["other.apps.example.com"], |name| {
        let _ = black_box(routes.find(name, &Steps::default()));
    });
    let server = Arc::new(String::new());
    let names: Vec<ServerName> =
        scattered.iter().map(|name| ServerName::new(name.as_str())).collect();
    report(&format!("replace one of {count} hosts"), &names, |name| {
        black_box(routes.with(name, Some(Arc::clone(&server))));
    });
}

fn plain_paths(count: usize) {
    let mut paths = vec!["/".to_owned()];
    paths.extend((1..count).map(|number| format!("/service-{}/part-{number}", number % 37)));
    let locations = compile(false, &paths);
    let requests: Vec<String> = paths.iter().map(|path| format!("{path}/items/7")).collect();
    report_locations(&format!("find among {count} paths"), &locations, &requests);
}

fn regex_paths(count: usize) {
    let mut paths = vec!["/".to_owned()];
    paths.extend((1..count).map(|number| format!("/service-{number}(/|$)(.*)")));
    let locations = compile(true, &paths);
    let requests: Vec<String> =
        (0..count).map(|number| format!("/service-{number}/items/7")).collect();
    report_locations(&format!("find among {count} patterns"), &locations, &requests);
}

fn compile(regex: bool, paths: &[String]) -> Locations {
    let location = |path: &String| Location {
        path: path.clone(),
        kind: PathKind::Prefix,
        whole: regex,
        backend: Backend::NotFound,
        canary: None,
        service: None,
        origin: None,
        policy: Arc::default(),
    };
    let locations = paths.iter().map(location).map(Arc::new).collect();
    Locations::compile(&Server { regex, locations, ..Server::new(ServerName::new("a.test")) })
}

fn report_locations(what: &str, locations: &Locations, requests: &[String]) {
    let requests = scatter(requests);
    let requests: Vec<Canonical<'_>> =
        requests.iter().filter_map(|path| canonical(path.as_bytes()).ok()).collect();
    report(what, &requests, |path| {
        black_box(locations.find(path, &Steps::default()));
    });
}

/// The same in an order that jumps about.
fn scatter(items: &[String]) -> Vec<String> {
    (0..items.len()).map(|at| items[at * 7_919 % items.len()].clone()).collect()
}

fn report<T>(what: &str, inputs: &[T], run: impl Fn(&T)) {
    let round = || {
        let start = Instant::now();
        inputs.iter().cycle().take(LOOKUPS).for_each(|input| run(black_box(input)));
        start.elapsed()
    };
    let least = (0..ROUNDS).map(|_| round()).min().unwrap_or(Duration::ZERO);
    println!("{what:<45} {:>8.1} ns", least.as_nanos() as f64 / LOOKUPS as f64);
}
