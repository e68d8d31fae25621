//! How long reviews of Ingresses and routes take: 50 at a time, 5,000 Ingresses, Services, Gateways and routes
//! present, over TLS. `make bench-admission`.

#[path = "../tests/suite/webhook/mod.rs"]
mod webhook;

use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use webhook::{Started, asking, exchange, review, start};

/// Ingresses that are there.
const PRESENT: usize = 5_000;
/// Reviews that are under way at once, each connection asking again as soon as it is answered.
const AT_ONCE: usize = 50;
/// Reviews of each connection that count, after as many that do not.
const EACH: usize = 400;
/// What 99 of 100 reviews shall take at most.
const TARGET: Duration = Duration::from_millis(5);

fn objects() -> String {
    let mut objects = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
        spec: {controller: k8s.io/ingress-nginx}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: demo}\n\
        spec: {ports: [{port: 80}]}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: \
        fairway}\nspec: {controllerName: fairway/gateway-controller}\n"
        .to_owned();
    for number in 0..PRESENT {
        write!(
            objects,
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: app-{number}, namespace: demo}}\n\
             spec:\n  ingressClassName: nginx\n  rules: [{{host: app-{number}.test, http: {{paths: [{{path: /, pathType: \
             Prefix, backend: {{service: {{name: shop, port: {{number: 80}}}}}}}}]}}}}]\n"
        )
        .expect("a String takes all");
    }
    objects
}

/// A route of its Gateway to its Service, one of which may not be there.
fn asking_route(number: usize, backend: usize) -> Vec<u8> {
    let route = json!({
        "metadata": {"name": format!("app-{number}"), "namespace": "demo"},
        "spec": {"parentRefs": [{"name": format!("app-{number}")}], "hostnames": [format!("route-{number}.test")],
            "rules": [{"backendRefs": [{"name": format!("app-{backend}"), "port": 80}]}]},
    });
    review("gateway.networking.k8s.io", "HTTPRoute", "UPDATE", &format!("app-{number}"), route)
}

/// What is reviewed.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Ingresses,
    Routes,
}

/// The reviews of one connection: every other one changes an Ingress that is there, some are refused.
async fn ask(started: Arc<Started>, number: usize, asked: Asked) -> Vec<Duration> {
    let mut tls = started.connect_from(1).await.expect("the webhook listens");
    let mut times = Vec::with_capacity(EACH);
    for turn in 0..2 * EACH {
        let app = (number * 7_919 + turn * 31) % PRESENT;
        let body = match turn % 4 {
            part if matches!(asked, Asked::Routes) => asking_route(app, app + part / 3 * PRESENT),
            0 => asking("fresh", &format!("fresh-{number}-{turn}.test")),
            1 => asking("rival", &format!("app-{app}.test")),
            _ => asking(&format!("app-{app}"), &format!("app-{app}.test")),
        };
        let begun = Instant::now();
        assert_eq!(exchange(&mut tls, &body).await, Some(200));
        times.extend((turn >= EACH).then(|| begun.elapsed()));
    }
    times
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let started = Arc::new(start(&objects()).await);
    let all =
        [1, AT_ONCE].map(|at_once| [Asked::Ingresses, Asked::Routes].map(|asked| (at_once, asked)));
    for (at_once, asked) in all.into_iter().flatten() {
        let begun = Instant::now();
        let mut all = JoinSet::new();
        (0..at_once).for_each(|number| drop(all.spawn(ask(Arc::clone(&started), number, asked))));
        let mut times: Vec<Duration> = all.join_all().await.into_iter().flatten().collect();
        let rate = (2 * times.len()) as f64 / begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let part = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        println!(
            "{at_once} at a time, {PRESENT} {asked:?}: p50 {:.2?}, p99 {:.2?}, longest {:.2?}; {rate:.0} reviews/s",
            part(0.5),
            part(0.99),
            part(1.0)
        );
        if part(0.99) > TARGET {
            println!("99 of 100 should take {TARGET:?} at most");
        }
    }
}
