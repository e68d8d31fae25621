//! Tries every guard with every feature, on both listeners and in every version of HTTP.

use crate::guards::features::{CONFIG_MAP, FEATURES, Feature, GUARDS, Guard};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use testkit::builders::{config_map, ingress};
use testkit::certificates::Certificates;
use testkit::client::Client;
use testkit::exchange::{Answer, Request};
use testkit::fairway::Started;
use testkit::fixtures::{self, Places};
use testkit::manifests::Manifests;
use testkit::namespace::{CLIENT, CONTROLLER};
use testkit::upstreams::Upstreams;

/// How a request comes in: the listener and the version of HTTP.
const WAYS: [(&str, &str); 4] =
    [("http", "http/1.0"), ("http", "http/1.1"), ("https", "http/1.1"), ("https", "h2")];

/// The Services behind locations. A request that reaches one of them was let in.
const APPLICATIONS: [&str; 3] = ["echo-b", "echo-c", "echo-d"];

/// A host that every request reaches.
const SENTINEL: &str = "sentinel.test";

/// Everything that a try needs.
struct Bed {
    client: Client,
    upstreams: Upstreams,
    /// Kept for as long as the table is tried.
    _fairway: Started,
    _manifests: Manifests,
}

/// What is wrong with the table, line by line.
pub(crate) async fn try_all() -> Result<Vec<String>> {
    let bed = Bed::new().await?;
    let mut wrong = Vec::new();
    for guard in GUARDS {
        for feature in FEATURES {
            bed.cell(guard, feature, &mut wrong).await;
        }
    }
    Ok(wrong)
}

impl Bed {
    async fn new() -> Result<Self> {
        let (certificates, places) = (Certificates::shared(), Places::recorded());
        let manifests = Manifests::new()?;
        for object in fixtures::objects(&certificates, &places).iter().chain(&objects()) {
            manifests.apply(object)?;
        }
        let upstreams = Upstreams::start(&certificates, places).await?;
        let log = manifests.folder().with_extension("log");
        let flags = ["--configmap=ingress-nginx/ingress-nginx-controller".to_owned()];
        let binary = Path::new(env!("CARGO_BIN_EXE_fairway"));
        let fairway = Started::on_folder(binary, manifests.folder(), &flags, &log)?;
        let client = Client::new(CONTROLLER, 80, 443).from(CLIENT);
        let bed = Self { client, upstreams, _fairway: fairway, _manifests: manifests };
        let served = || async {
            let request = Request { url: format!("http://{SENTINEL}/"), ..Request::default() };
            (bed.client.send(&request).await.status == Some(200)).then_some(())
        };
        let ready = testkit::eventually(Duration::from_secs(30), served).await;
        ensure!(ready.is_some(), "the table is not served: see {}", log.display());
        Ok(bed)
    }

    /// One cell: every way in is closed, or, where nothing is, open.
    async fn cell(&self, guard: &Guard, feature: &Feature, wrong: &mut Vec<String>) {
        let mut let_in = Vec::new();
        for _ in 0..guard.free {
            let_in.extend(self.ask(guard, feature, WAYS[1]).await.1);
        }
        if feature.copied && guard.free > 0 {
            self.wait_for_copies(let_in, guard.free).await;
        }
        for way in WAYS {
            let (answer, reached) = self.ask(guard, feature, way).await;
            let over_tls = guard.over_tls.filter(|_| way.0 == "https");
            let fits = match over_tls.or(guard.status) {
                Some(status) => answer.status == Some(status) && reached.is_empty(),
                None => !reached.is_empty(),
            };
            if !fits {
                let (scheme, version) = way;
                wrong.push(format!(
                    "{} × {} by {scheme} {version}: {:?} {:?}, reached {reached:?}",
                    guard.name, feature.name, answer.status, answer.error
                ));
            }
        }
    }

    /// Copies travel by themselves: those of requests that were let in must not count for later ones.
    async fn wait_for_copies(&self, let_in: Vec<String>, wanted: usize) {
        let is_copy = |service: &String| service == "echo-d";
        let arrived = Cell::new(let_in.iter().filter(|service| is_copy(service)).count());
        let all_there = || async {
            let seen = self.upstreams.journal.drain();
            let more = seen.iter().filter(|seen| is_copy(&seen.service)).count();
            arrived.set(arrived.get() + more);
            (arrived.get() >= wanted).then_some(())
        };
        let _too_late = testkit::eventually(Duration::from_secs(60), all_there).await;
    }

    /// Sends a request; what came back, and which applications it reached.
    async fn ask(
        &self,
        guard: &Guard,
        feature: &Feature,
        (scheme, version): (&str, &str),
    ) -> (Answer, Vec<String>) {
        let lines = guard.headers.iter().chain(feature.headers);
        let host = if feature.alias { alias(guard, feature) } else { host(guard, feature) };
        let request = Request {
            url: format!("{scheme}://{host}{}", feature.path),
            method: Some(feature.method.to_owned()),
            protocol: Some(version.to_owned()),
            headers: lines.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Request::default()
        };
        let answer = self.client.send(&request).await;
        let seen = self.upstreams.journal.drain().into_iter().map(|seen| seen.service);
        (answer, seen.filter(|service| APPLICATIONS.contains(&service.as_str())).collect())
    }
}

fn host(guard: &Guard, feature: &Feature) -> String {
    format!("{}-{}.test", guard.name, feature.name)
}

fn alias(guard: &Guard, feature: &Feature) -> String {
    format!("other-name-of-{}", host(guard, feature))
}

fn objects() -> Vec<Value> {
    let mut lists = config_map("ingress-nginx-controller", CONFIG_MAP);
    lists["metadata"]["namespace"] = json!("ingress-nginx");
    let class = testkit::builders::ingress_class("nginx", "k8s.io/ingress-nginx");
    let sentinel = ingress("sentinel").class("nginx").host(SENTINEL).path("/", "echo-b:80");
    let mut objects = vec![lists, class, sentinel.build()];
    for guard in GUARDS {
        for feature in FEATURES {
            cell_objects(guard, feature, &mut objects);
        }
    }
    objects
}

/// The Ingress of a cell, one for everything else of its host, and a canary where there is one.
fn cell_objects(guard: &Guard, feature: &Feature, objects: &mut Vec<Value>) {
    let host = host(guard, feature);
    let name = host.trim_end_matches(".test");
    let mut guarded = ingress(name)
        .class("nginx")
        .created("2026-01-01T00:00:00Z")
        .host(&host)
        .path("/guarded", "echo-b:80")
        .tls("tls-test", &[&host])
        .annotate("ssl-redirect", "false");
    for (key, value) in guard.annotations.iter().chain(feature.annotations) {
        let own = alias(guard, feature);
        guarded = guarded.annotate(key, if *key == "server-alias" { &own } else { value });
    }
    objects.push(guarded.build());
    let rest = ingress(&format!("{name}-rest"))
        .class("nginx")
        .created("2026-01-02T00:00:00Z")
        .host(&host)
        .path("/", "echo-c:80");
    objects.push(rest.build());
    if feature.canary {
        let canary = ingress(&format!("{name}-canary"))
            .class("nginx")
            .created("2026-01-03T00:00:00Z")
            .host(&host)
            .path("/guarded", "echo-d:80")
            .annotate("canary", "true")
            .annotate("canary-weight", "100");
        objects.push(canary.build());
    }
}
