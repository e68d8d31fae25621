//! `/metrics` of the real program after a load: the families of ingress-nginx, the queries of its dashboards, bounds.

mod bed;
mod page;

use bed::Fairway;
use page::{Labels, Page, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use testkit::exchange::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What ingress-nginx has: name, type, labels, and what has to be asked for.
const FAMILIES: &str = include_str!("families.tsv");
/// What its dashboards ask for: file, metric, labels.
const DASHBOARDS: &str = include_str!("dashboards.tsv");

/// The flags of each engine: what counts is the same.
const ENGINES: [&[&str]; 2] = [&["--engine=native"], &["--engine=nginx"]];

const REQUESTS: &str = "nginx_ingress_controller_requests";

/// The rows of a table, without its head.
fn rows<const N: usize>(table: &'static str) -> Vec<[&'static str; N]> {
    let row = |line: &'static str| {
        let cells: Vec<_> = line.split('\t').collect();
        cells.try_into().unwrap_or_else(|cells| panic!("{cells:?} is no row"))
    };
    table.lines().skip(1).map(row).collect()
}

/// Requests of all kinds: methods, statuses, hosts, a canary, TLS, a stream, reviews.
async fn load(fairway: &Fairway) {
    for path in ["/", "/api/x", "/status/404", "/status/500"] {
        assert!(fairway.get("demo.test", path).await >= 200);
    }
    let post =
        "POST / HTTP/1.1\r\nHost: demo.test\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
    assert_eq!(fairway.send(post).await, 200);
    let canary =
        "GET / HTTP/1.1\r\nHost: demo.test\r\nX-Canary: always\r\nConnection: close\r\n\r\n";
    assert_eq!(fairway.send(canary).await, 200);
    let made_up = "BREW / HTTP/1.1\r\nHost: demo.test\r\nConnection: close\r\n\r\n";
    assert_eq!(fairway.send(made_up).await, 200);
    assert_eq!(fairway.get("alias.test", "/").await, 200);
    assert_eq!(fairway.get("a.wild.test", "/").await, 200);
    assert_eq!(fairway.get("orphan.test", "/").await, 503);
    let secure = Request { url: "https://demo.test/".to_owned(), ..Request::default() };
    assert_eq!(fairway.send_tls(None, secure).await, Some(200));
    for (name, host) in [("fine", "fine.test"), ("taken", "demo.test")] {
        assert_eq!(fairway.send_tls(Some(fairway.webhook), review(name, host)).await, Some(200));
    }
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, fairway.tcp)).await.expect("open");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("written");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
}

/// A review of an Ingress; `demo.test/` is another one's.
fn review(name: &str, host: &str) -> Request {
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"1",
        "kind":{{"group":"networking.k8s.io","version":"v1","kind":"Ingress"}},
        "object":{{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",
        "metadata":{{"name":"{name}","namespace":"demo","uid":"7b2768ad-1d46-57ed-b5ee-0e90036d4727"}},
        "spec":{{"ingressClassName":"nginx","rules":[{{"host":"{host}","http":{{"paths":[{{"path":"/","pathType":
        "Prefix","backend":{{"service":{{"name":"shop","port":{{"number":80}}}}}}}}]}}}}]}}}}}}}}"#
    );
    Request {
        url: "https://demo.test/review".to_owned(),
        method: Some("POST".to_owned()),
        body: Some(body),
        ..Request::default()
    }
}

/// A page that has everything in it: gauges of connections are a second old.
async fn loaded(fairway: &Fairway) -> Page {
    load(fairway).await;
    let connections = "nginx_ingress_controller_nginx_process_connections_total";
    fairway
        .scrape_until(|page| {
            page.sum(REQUESTS, &[]) >= 10.0
                && page.sum(connections, &[]) > 0.0
                && page.sum("fairway_stream_sent_bytes_total", &[]) >= 12.0
        })
        .await
}

#[tokio::test]
async fn every_family_of_ingress_nginx_is_there_with_its_type_and_labels() {
    for engine in ENGINES {
        let fairway = Fairway::start(engine).await;
        let page = loaded(&fairway).await;
        for [name, kind, labels, when] in rows::<4>(FAMILIES) {
            if when == "election" {
                assert!(!page.0.contains_key(name), "a folder has no election");
                continue;
            }
            let family = page.0.get(name).unwrap_or_else(|| panic!("there is no {name}"));
            assert_eq!(family.kind, kind, "{name}");
            let wanted: BTreeSet<&str> =
                labels.split(',').filter(|label| !label.is_empty()).collect();
            for sample in &family.samples {
                let own: BTreeSet<&str> = sample
                    .labels
                    .keys()
                    .map(String::as_str)
                    .filter(|label| *label != "le")
                    .collect();
                assert_eq!(own, wanted, "{name}");
            }
        }
        let known: BTreeSet<&str> = rows::<4>(FAMILIES).iter().map(|row| row[0]).collect();
        let theirs = page.0.keys().filter(|name| name.starts_with("nginx_ingress_controller_"));
        let unknown: Vec<_> = theirs.filter(|name| !known.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "ingress-nginx has no {unknown:?}");
        fairway.stop().await;
    }
}

#[tokio::test]
async fn the_numbers_are_those_of_the_load() {
    for engine in ENGINES {
        let fairway = Fairway::start(engine).await;
        let page = loaded(&fairway).await;
        let of = |labels: &[(&str, &str)]| page.sum(REQUESTS, labels);
        let shop = ("ingress", "shop");
        // 4 + POST + canary + BREW + alias + TLS
        assert_eq!(of(&[shop]), 9.0);
        assert_eq!(of(&[shop, ("path", "/api")]), 1.0);
        assert_eq!(of(&[shop, ("status", "404")]) + of(&[shop, ("status", "500")]), 2.0);
        assert_eq!(of(&[shop, ("method", "POST")]), 1.0);
        assert_eq!(of(&[shop, ("method", "other")]), 1.0, "BREW is no method");
        assert_eq!(of(&[shop, ("canary", "demo-canary-80")]), 1.0);
        assert_eq!(of(&[shop, ("host", "alias.test")]), 1.0);
        assert_eq!(of(&[("ingress", "wild")]), 0.0, "nobody names this host");
        assert_eq!(of(&[("ingress", "orphan"), ("status", "503"), ("service", "nobody")]), 1.0);
        let connect = "nginx_ingress_controller_connect_duration_seconds_count";
        assert_eq!(page.sum(connect, &[shop]), 9.0);
        assert_eq!(page.sum(connect, &[("ingress", "orphan")]), 0.0, "no upstream was asked");
        let size = "nginx_ingress_controller_request_size_sum";
        assert!(page.sum(size, &[("method", "POST")]) >= 70.0);
        let orphan = |kind| {
            page.sum(
                "nginx_ingress_controller_orphan_ingress",
                &[("ingress", "orphan"), ("type", kind)],
            )
        };
        assert_eq!((orphan("no-service"), orphan("no-endpoint")), (1.0, 0.0));
        assert_eq!(page.sum("nginx_ingress_controller_check_success", &[("ingress", "fine")]), 1.0);
        assert_eq!(page.sum("nginx_ingress_controller_check_errors", &[("ingress", "taken")]), 1.0);
        assert_eq!(page.sum("nginx_ingress_controller_config_last_reload_successful", &[]), 1.0);
        assert!(page.sum("nginx_ingress_controller_config_hash", &[]) > 0.0);
        if engine == ENGINES[0] {
            let reused = [("connection", "reused")];
            assert!(page.sum("fairway_upstream_requests_total", &reused) > 0.0);
        }
        assert_eq!(page.sum("fairway_stream_sessions_total", &[("service", "demo/shop:80")]), 1.0);
        assert!(page.sum("fairway_stream_sent_bytes_total", &[]) >= 12.0);
        fairway.stop().await;
    }
}

#[tokio::test]
async fn the_queries_of_the_published_dashboards_find_series() {
    for engine in ENGINES {
        let fairway = Fairway::start(engine).await;
        let page = loaded(&fairway).await;
        for [dashboard, metric, labels] in rows::<3>(DASHBOARDS) {
            let found = page.samples(metric).into_iter().map(scraped);
            let found =
                found.filter(|series| labels.split(' ').all(|label| matches(series, label)));
            assert!(found.count() > 0, "{dashboard} finds no {metric} with {labels}");
        }
        fairway.stop().await;
    }
}

/// The labels of a sample once Prometheus has added those of a Pod that it found; a label of that name gives way.
fn scraped(sample: &Sample) -> Labels {
    let mut labels = sample.labels.clone();
    let target = [
        ("namespace", "ingress-nginx"),
        ("instance", "10.0.0.1:10254"),
        ("kubernetes_pod_name", "x"),
    ];
    for (label, value) in target {
        if let Some(own) = labels.insert(label.to_owned(), value.to_owned()) {
            labels.insert(format!("exported_{label}"), own);
        }
    }
    labels
}

/// `label` is there, `label?` may be, `label=value` is that, `label~45` begins with one of these and `label!~45` with
/// none of them. What the test has no value for (POD_NAME) may be empty.
fn matches(series: &Labels, condition: &str) -> bool {
    let first = |label: &str| series.get(label).and_then(|value| value.chars().next());
    if let Some((label, firsts)) = condition.split_once("!~") {
        return first(label).is_some_and(|first| !firsts.contains(first));
    }
    if let Some((label, firsts)) = condition.split_once('~') {
        return first(label).is_some_and(|first| firsts.contains(first));
    }
    match condition.split_once('=') {
        Some((label, value)) => series.get(label).is_some_and(|is| is == value),
        None => condition.ends_with('?') || series.contains_key(condition),
    }
}

#[tokio::test]
async fn scrapes_while_the_load_runs_are_whole_and_never_go_back() {
    for engine in ENGINES {
        let fairway = Fairway::start(engine).await;
        let requests = 300;
        let loading = async {
            for number in 0..requests {
                fairway.get("demo.test", &format!("/status/{}", 200 + number % 3)).await;
            }
        };
        let scraping = async {
            let mut before: BTreeMap<(String, Labels), f64> = BTreeMap::new();
            for _ in 0..20 {
                let page = fairway.scrape().await;
                let counters = page.0.values().filter(|family| family.kind != "gauge");
                for sample in counters.flat_map(|family| &family.samples) {
                    let key = (sample.name.clone(), sample.labels.clone());
                    let old = before.insert(key, sample.value).unwrap_or(0.0);
                    assert!(sample.value >= old, "{sample:?} was {old}");
                }
            }
        };
        tokio::join!(loading, scraping);
        let page =
            fairway.scrape_until(|page| page.sum(REQUESTS, &[]) == f64::from(requests)).await;
        assert_eq!(page.sum("promhttp_metric_handler_requests_in_flight", &[]), 1.0, "this one");
        assert!(page.sum("promhttp_metric_handler_requests_total", &[("code", "200")]) >= 20.0);
        fairway.stop().await;
    }
}

#[tokio::test]
async fn what_exceeds_the_budget_is_counted_under_overflow() {
    let fairway = Fairway::start(&["--metrics-series-limit=6"]).await;
    for number in 0..30 {
        fairway.get("demo.test", &format!("/status/{}", 400 + number)).await;
    }
    fairway.get("demo.test", "/").await;
    let page = fairway.scrape_until(|page| page.sum(REQUESTS, &[]) == 31.0).await;
    let overflow = ("ingress", "overflow");
    assert_eq!(page.sum(REQUESTS, &[overflow, ("status", "4xx"), ("host", "overflow")]), 27.0);
    assert_eq!(page.sum(REQUESTS, &[overflow, ("status", "2xx"), ("namespace", "demo")]), 1.0);
    assert_eq!(page.sum("fairway_metrics_overflowed_requests_total", &[]), 28.0);
    assert_eq!(page.sum("fairway_metrics_request_series", &[]), 3.0);
    let counts = "nginx_ingress_controller_request_duration_seconds_count";
    assert_eq!(page.sum(counts, &[]), 31.0, "times are there, too");
    fairway.stop().await;
}

#[tokio::test]
async fn hosts_that_nobody_names_count_if_asked_for_and_get_a_quarter_of_the_series() {
    let fairway =
        Fairway::start(&["--metrics-per-undefined-host", "--metrics-series-limit=16"]).await;
    for number in 0..10 {
        fairway.get(&format!("{number}.wild.test"), "/").await;
    }
    fairway.get("demo.test", "/").await;
    let page = fairway.scrape_until(|page| page.sum(REQUESTS, &[]) == 11.0).await;
    assert_eq!(page.sum(REQUESTS, &[("ingress", "wild")]), 4.0);
    assert_eq!(page.sum(REQUESTS, &[("host", "3.wild.test")]), 1.0);
    assert_eq!(page.sum(REQUESTS, &[("host", "overflow")]), 6.0);
    assert_eq!(
        page.sum(REQUESTS, &[("host", "demo.test")]),
        1.0,
        "those that are served have room"
    );
    fairway.stop().await;
}

#[tokio::test]
async fn flags_choose_what_is_told_apart_and_left_out() {
    let flags = [
        "--metrics-per-host=false",
        "--report-status-classes",
        "--exclude-socket-metrics=nginx_ingress_controller_bytes_sent,request_size",
        "--time-buckets=0.5,1000000",
    ];
    let fairway = Fairway::start(&flags).await;
    fairway.get("demo.test", "/").await;
    fairway.get("a.wild.test", "/").await;
    let page = fairway.scrape_until(|page| page.sum(REQUESTS, &[("status", "2xx")]) == 2.0).await;
    assert!(page.samples(REQUESTS).iter().all(|sample| !sample.labels.contains_key("host")));
    let absent =
        ["bytes_sent", "request_size"].map(|name| format!("nginx_ingress_controller_{name}"));
    assert!(absent.iter().all(|name| !page.0.contains_key(name)), "{absent:?}");
    let bucket = "nginx_ingress_controller_request_duration_seconds_bucket";
    let bounds: BTreeSet<_> =
        page.samples(bucket).iter().map(|one| one.labels["le"].clone()).collect();
    assert_eq!(bounds, ["0.5", "1e+06", "+Inf"].map(str::to_owned).into());
    fairway.stop().await;
}

#[tokio::test]
async fn series_go_with_their_ingress_and_changes_are_timed() {
    for engine in ENGINES {
        let fairway = Fairway::start(engine).await;
        fairway.put("more.yaml", &ingress_for("more"));
        let applied = |page: &Page| page.sum("fairway_propagation_seconds_count", &[]);
        fairway.scrape_until(|page| applied(page) == 1.0).await;
        assert_eq!(fairway.get("more.test", "/").await, 200);
        let counted = |page: &Page| page.sum(REQUESTS, &[("ingress", "more")]);
        fairway.scrape_until(|page| counted(page) == 1.0).await;
        fairway.put("more.yaml", "");
        fairway.scrape_until(|page| counted(page) == 0.0 && applied(page) == 2.0).await;
        // A page is made from the top down: that one may have begun before the change was counted.
        let page = fairway.scrape().await;
        let success = page.sum("nginx_ingress_controller_success", &[]);
        let generation = |page: &Page| page.sum("fairway_generation", &[]);
        assert_eq!(success, generation(&page));
        // Endpoints alone are no reload in ingress-nginx either.
        fairway.put("endpoints.yaml", MORE_ENDPOINTS);
        let after = fairway.scrape_until(|after| generation(after) > generation(&page)).await;
        for reloads in ["success", "config_hash", "config_last_reload_successful_timestamp_seconds"]
        {
            let reloads = format!("nginx_ingress_controller_{reloads}");
            assert_eq!(after.sum(&reloads, &[]), page.sum(&reloads, &[]), "{reloads}");
        }
        fairway.stop().await;
    }
}

/// One more endpoint of `shop`.
const MORE_ENDPOINTS: &str = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: shop-2, namespace: \
    demo, labels: {kubernetes.io/service-name: shop}}, addressType: IPv4, ports: [{port: 9, protocol: TCP}], endpoints: \
    [{addresses: [127.0.0.1]}]}";

/// The Ingress `shop` under another name, with a host of its own.
fn ingress_for(name: &str) -> String {
    let ingress = include_str!("objects.yaml").split("\n---\n").nth(1).expect("an Ingress");
    let ingress = ingress.replace("shop, namespace", &format!("{name}, namespace"));
    ingress.replace("demo.test", &format!("{name}.test")).replace("alias.test", "other.test")
}

#[tokio::test]
async fn workers_that_a_reload_leaves_behind_are_told_until_they_are_gone() {
    let fairway = Fairway::start(&["--engine=nginx"]).await;
    let of = |state| {
        move |page: &Page, name: &str| {
            page.sum(&format!("fairway_nginx_{name}"), &[("state", state)])
        }
    };
    let (serving, leaving) = (of("serving"), of("leaving"));
    let page = fairway.scrape_until(|page| serving(page, "workers") == 2.0).await;
    let reloads = page.sum("fairway_nginx_reloads_total", &[]);
    // A request that waits for its body holds its worker.
    let mut waiting = fairway.open().await;
    let head = "POST / HTTP/1.1\r\nHost: demo.test\r\nContent-Length: 4\r\n\r\nbo";
    waiting.write_all(head.as_bytes()).await.expect("written");
    fairway.put("more.yaml", &ingress_for("more"));
    let both = |page: &Page| (serving(page, "workers"), leaving(page, "workers"));
    let page = fairway.scrape_until(|page| both(page) == (2.0, 1.0)).await;
    let memory = "workers_resident_memory_bytes";
    assert!(leaving(&page, memory) > 0.0 && serving(&page, memory) > 0.0);
    assert_eq!(page.sum("fairway_nginx_reloads_total", &[]), reloads + 1.0);
    waiting.write_all(b"dy").await.expect("written");
    let mut answer = [0; 12];
    waiting.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200", "a reload cuts nobody off");
    drop(waiting);
    fairway.scrape_until(|page| leaving(page, "workers") == 0.0).await;
    // It tells of what it did last.
    let page = fairway.scrape_until(|page| page.sum(REQUESTS, &[("method", "POST")]) == 1.0).await;
    assert_eq!(page.sum("fairway_nginx_starts_total", &[]), 1.0);
    fairway.stop().await;
}

#[tokio::test]
async fn without_the_flag_the_page_is_about_the_process() {
    let fairway = Fairway::start(&["--enable-metrics=false"]).await;
    fairway.get("demo.test", "/").await;
    let page = fairway.scrape().await;
    for [name, kind, _, when] in rows::<4>(FAMILIES) {
        let found = page.0.get(name).map(|family| family.kind.as_str());
        assert_eq!(found, (when == "always").then_some(kind), "{name}");
    }
    assert!(page.0.contains_key("fairway_build_info"));
    fairway.stop().await;
}
