//! Prometheus beside Fairway, as its operator configures it: the panels and alerts that people have all find data.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testkit::client::Client;
use testkit::cluster::{self, Answer, Cluster, Connection, Process, eventually, go_programs};
use testkit::exchange::Request;
use tokio::process::Command;

use crate::echoes::{HERE, echoes};
use crate::fairway::{Fairway, PATIENCE};
use crate::replicas::replica;

/// From whom, what it shows, how it asks, and why it finds nothing where that is as it should be; the words in capitals
/// stand for what a dashboard lets people choose.
const PANELS: &str = include_str!("../ecosystem/monitoring/panels.tsv");
/// What stands for each of them.
const CHOICES: [(&str, &str); 6] = [
    ("POD", "controller_pod=~\"fairway-0\""),
    ("CLASS", "controller_class=~\"k8s.io/ingress-nginx\""),
    ("HOME", "controller_namespace=~\"fairway\""),
    ("JOB", "job=~\"ingress-nginx-controller-metrics\""),
    ("SPACE", "exported_namespace=~\"demo\""),
    ("INGRESS", "ingress=~\"shop\""),
];

/// The Service of the metrics under the name that alerts look for: that of the chart where its release has that name.
const SERVICE: &str = r#"
apiVersion: v1
kind: Service
metadata:
  name: ingress-nginx-controller-metrics
  namespace: fairway
  labels: {app.kubernetes.io/name: fairway, app.kubernetes.io/component: controller}
spec: {ports: [{name: metrics, port: 10254, targetPort: metrics}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: ingress-nginx-controller-metrics
  namespace: fairway
  labels: {kubernetes.io/service-name: ingress-nginx-controller-metrics}
addressType: IPv4
ports: [{name: metrics, port: PORT}]
endpoints:
- addresses: [HERE]
  conditions: {ready: true}
  targetRef: {kind: Pod, name: fairway-0, namespace: fairway}
"#;

/// The chart's ServiceMonitor, asked for each second.
const MONITOR: &str = "
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: fairway, namespace: fairway}
spec:
  namespaceSelector: {matchNames: [fairway]}
  selector: {matchLabels: {app.kubernetes.io/name: fairway, app.kubernetes.io/component: controller}}
  endpoints: [{port: metrics, interval: 1s}]
";

/// An application with two paths, a certificate and a canary.
const OBJECTS: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: demo, annotations: {nginx.ingress.kubernetes.io/ssl-redirect: 'false'}}
spec:
  ingressClassName: nginx
  tls: [{hosts: [shop.test], secretName: tls-test}]
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: echo-b, port: {number: 80}}}}
      - {path: /api, pathType: Prefix, backend: {service: {name: echo-b, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop-canary
  namespace: demo
  annotations:
    nginx.ingress.kubernetes.io/canary: 'true'
    nginx.ingress.kubernetes.io/canary-by-header: X-Canary
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: echo-c, port: {number: 80}}}}]}
";

/// A running Prometheus.
struct Prometheus {
    process: Process,
    address: SocketAddr,
}

impl Prometheus {
    async fn start(cluster: &Cluster) -> Result<Self> {
        let folder = cluster.folder();
        let [monitor, rules, out] =
            ["monitor.yaml", "rules.yaml", "prometheus.out"].map(|name| folder.join(name));
        std::fs::write(&monitor, MONITOR)?;
        std::fs::write(&rules, include_str!("../ecosystem/monitoring/alerts.yaml"))?;
        let mut command =
            Command::new(go_programs("tests/ecosystem/monitoring")?.join("monitoring"));
        command
            .env("KUBECONFIG", cluster.admin_kubeconfig()?)
            .env("FOLDER", folder.join("samples"));
        command.env("MONITOR", monitor).env("RULES", rules);
        let process = Process::start_apart(&mut command, &folder.join("prometheus.log"), &out)?;
        let address = eventually("Prometheus to listen", PATIENCE, async || {
            let said = std::fs::read_to_string(&out)?;
            said.trim().parse().with_context(|| format!("it said {said:?}: {}", process.log()))
        });
        let address = address.await?;
        Ok(Self { process, address })
    }

    async fn page(&self, path: &str) -> Result<Answer> {
        let answer = Connection::open(self.address).await?.get("localhost", path).await?;
        ensure!(answer.status == 200, "{path}: {}", answer.text());
        Ok(answer)
    }

    /// The numbers that a query gives.
    async fn ask(&self, query: &str) -> Result<Vec<f64>> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = self.page(&format!("/query?query={escaped}")).await?.json()?;
        let value = |sample: &Value| sample["value"][1].as_str()?.parse().ok();
        Ok(found.as_array().into_iter().flatten().filter_map(value).collect())
    }
}

/// Requests of all kinds that panels tell apart.
async fn load(fairway: &Fairway) -> Result<()> {
    let http = fairway.http();
    let client = Client::new(http.ip(), http.port(), 0);
    let wishes = [
        ("/", "Echo-Status", "200"),
        ("/api/x", "Echo-Status", "200"),
        ("/", "X-Canary", "always"),
    ];
    let errors = [("/api/none", "Echo-Status", "404"), ("/api/broken", "Echo-Status", "500")];
    for (path, name, value) in wishes.into_iter().chain(errors) {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let (url, body) = (format!("http://shop.test{path}"), Some("order".to_owned()));
        let request =
            Request { url, headers, body, method: Some("POST".to_owned()), ..Request::default() };
        let answer = client.send(&request).await;
        ensure!(answer.status.is_some(), "{path}: {answer:?}");
    }
    // As the test itself has asked: of a series that rests there is no median.
    fairway.expect("shop.test", "/", 200).await?;
    Ok(())
}

/// A row of the table, with what people chose.
struct Panel {
    name: String,
    query: String,
    why_empty: &'static str,
}

fn panels() -> Vec<Panel> {
    let panel = |line: &'static str| {
        let [from, panel, query, why_empty] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line} is no row")
        };
        let chosen = |query: String, (word, choice): &(&str, &str)| query.replace(word, choice);
        let query = CHOICES.iter().fold(query.to_owned(), chosen);
        Panel { name: format!("{from}, {panel}"), query, why_empty }
    };
    PANELS.lines().skip(1).map(panel).collect()
}

/// Every panel, under a load that goes on until it has data. Those that find nothing are asked once all others have.
async fn have_data(prometheus: &Prometheus, fairway: &Fairway) -> Result<usize> {
    let all = panels();
    let (full, empty): (Vec<_>, Vec<_>) = all.iter().partition(|panel| panel.why_empty.is_empty());
    for Panel { name, query, .. } in full {
        eventually(format!("{name}, to show something: {query}"), PATIENCE, async || {
            load(fairway).await?;
            let numbers = prometheus.ask(query).await?;
            let good = !numbers.is_empty() && numbers.iter().all(|number| number.is_finite());
            ensure!(good, "{numbers:?}");
            anyhow::Ok(())
        })
        .await?;
    }
    for Panel { name, query, why_empty } in empty {
        let numbers = prometheus.ask(query).await?;
        ensure!(numbers.is_empty(), "{name}, shows {numbers:?}, though {why_empty}");
    }
    Ok(all.len())
}

/// The alerts about answers name the Ingress, and a configuration that is fine raises none.
async fn alerts(prometheus: &Prometheus) -> Result<()> {
    eventually("alerts about refused and failed requests", PATIENCE, async || {
        let all = prometheus.page("/alerts").await?.json()?;
        for name in ["ManyRequestsAreRefused", "ManyRequestsFail"] {
            let of_shop =
                |alert: &Value| alert["exported_namespace"] == "demo" && alert["ingress"] == "shop";
            ensure!(all[name].as_array().is_some_and(|alerts| alerts.iter().any(of_shop)), "{all}");
        }
        ensure!(all["TheConfigurationFailed"].as_array().is_some_and(Vec::is_empty), "{all}");
        anyhow::Ok(())
    })
    .await
}

/// What the operator's relabelling makes of a series.
async fn labels(prometheus: &Prometheus) -> Result<()> {
    let ours = "nginx_ingress_controller_requests{job=\"ingress-nginx-controller-metrics\",namespace=\"fairway\",\
                pod=\"fairway-0\",endpoint=\"metrics\",service=\"ingress-nginx-controller-metrics\",\
                exported_namespace=\"demo\",exported_service=\"echo-b\",ingress=\"shop\"}";
    ensure!(!prometheus.ask(ours).await?.is_empty(), "no series has the labels of the operator");
    let up = prometheus.ask("up{job=\"ingress-nginx-controller-metrics\"}").await?;
    ensure!(up == [1.0], "one target that is up was wanted: {up:?}");
    let refused =
        prometheus.ask("scrape_samples_scraped - scrape_samples_post_metric_relabeling").await?;
    ensure!(refused == [0.0], "samples were left out: {refused:?}");
    Ok(())
}

#[test]
#[ignore = "builds Prometheus from the Go module proxy: make ecosystem runs it"]
fn prometheus_finds_data_for_every_panel_and_alert() {
    cluster::test(async |cluster| {
        let _upstreams = echoes(cluster, &["echo-b", "echo-c"]).await?;
        cluster.apply(OBJECTS).await?;
        replica(cluster, "fairway-0").await?;
        let folder = format!("--nginx-directory={}", cluster.folder().join("nginx").display());
        for engine in [&[][..], &["--engine=nginx", "--sync-rate-limit=0", &folder]] {
            let flags = [&["--enable-metrics"], engine].concat();
            let fairway = Fairway::start_as(cluster, "fairway-0", &flags).await?;
            fairway.answers("shop.test", "/", 200).await?;
            let port = fairway.health().port().to_string();
            cluster.apply(&SERVICE.replace("PORT", &port).replace("HERE", HERE)).await?;
            let mut prometheus = Prometheus::start(cluster).await?;
            let count = have_data(&prometheus, &fairway).await?;
            alerts(&prometheus).await?;
            labels(&prometheus).await?;
            eprintln!("{engine:?}: {count} queries and three alerts are answered");
            prometheus.process.kill().await?;
            fairway.stop().await?;
            std::fs::remove_dir_all(cluster.folder().join("samples"))?;
            std::fs::remove_file(cluster.folder().join("prometheus.out"))?;
        }
        Ok(())
    });
}
