//! Traces through the engine over real sockets: from a client to an upstream, and the spans to a collector.

use crate::bed;
use crate::bed::{
    MAIN, answer, apply, configuration, is_whole, options, put_upstream, start, talk, upstream,
};
use crate::collector::{Away, Collector, attribute};
use engine::Engine;
use model::policy::{Body, OpenTelemetry, Policy, Protocol};
use model::{
    Batches, Configuration, Global, LogFormat, LogTarget, Logs, OtlpProtocol, Propagator, Sampler,
    SetHeader, Telemetry, Template,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use proxy::{Native, Options, OtlpEnvironment, Spans};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// Sends what there is, soon.
const SOON: Batches = Batches { queue: 2048, size: 512, delay: Duration::from_millis(20) };
/// Sends the two spans of a request with one try together, however long the second takes.
const PAIRS: Batches = Batches { size: 2, delay: Duration::from_secs(3600), ..SOON };
/// Sends at the end only.
const LATE: Batches = Batches { delay: Duration::from_secs(3600), ..SOON };

fn traced() -> Policy {
    let opentelemetry = OpenTelemetry { trusts_client: true, operation_name: None };
    Policy { opentelemetry: Some(opentelemetry), ..Policy::default() }
}

fn telemetry(collector: SocketAddr) -> Telemetry {
    let collector = model::Collector {
        host: collector.ip().to_string(),
        port: Some(collector.port()),
        secure: false,
    };
    Telemetry { collector: Some(collector), batches: PAIRS, ..Telemetry::default() }
}

fn served(endpoints: Vec<SocketAddr>, policy: Policy, telemetry: Telemetry) -> Configuration {
    let global = Arc::new(Global { telemetry, ..Global::default() });
    Configuration { global, ..configuration(&[(MAIN, endpoints)], policy) }
}

fn request(fields: &str) -> Vec<u8> {
    let head = format!("GET /a?b=c HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    head.into_bytes()
}

/// An engine of one thread in an environment.
async fn start_in(environment: OtlpEnvironment, configuration: &Configuration) -> Arc<Native> {
    let options = options(vec![Ipv4Addr::LOCALHOST.into()]);
    let options = Options { collector: environment, ..options };
    let native = Native::start(options).expect("ports chosen by the system");
    apply(&native, &Configuration::default(), configuration).await;
    Arc::new(native)
}

async fn echo() -> (SocketAddr, Receiver<Vec<u8>>) {
    upstream(answer("200 OK", "", "hello"), is_whole).await
}

/// A field of what an upstream saw.
async fn field(seen: &mut Receiver<Vec<u8>>, name: &str) -> Option<String> {
    let seen = seen.recv().await.expect("a request");
    field_of(&String::from_utf8_lossy(&seen), name)
}

fn field_of(message: &str, name: &str) -> Option<String> {
    message.lines().find_map(|line| {
        let (field, value) = line.split_once(": ")?;
        field.eq_ignore_ascii_case(name).then(|| value.to_owned())
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The server's span and those of tries, in their order.
fn apart(spans: Vec<Span>) -> (Span, Vec<Span>) {
    let is_server = |span: &Span| span.kind == i32::from(SpanKind::Server);
    let (mut servers, clients): (Vec<_>, Vec<_>) = spans.into_iter().partition(is_server);
    assert_eq!(servers.len(), 1, "{servers:?}");
    (servers.remove(0), clients)
}

async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let waited =
        testkit::eventually(bed::PATIENCE, || std::future::ready(condition().then_some(())));
    waited.await.expect(what);
}

#[tokio::test]
async fn a_trace_goes_through_in_every_format() {
    let (low, decimal) = ("8448eb211c80319c", "9532127138774266268");
    let span_decimal = u64::from_str_radix(SPAN, 16).expect("digits").to_string();
    let formats: [(Propagator, String, &str); 5] = [
        (Propagator::TraceContext, format!("traceparent: 00-{TRACE}-{SPAN}-01\r\n"), "traceparent"),
        (Propagator::B3, format!("b3: {TRACE}-{SPAN}-1\r\n"), "b3"),
        (
            Propagator::B3Multi,
            format!("X-B3-TraceId: {TRACE}\r\nX-B3-SpanId: {SPAN}\r\nX-B3-Sampled: 1\r\n"),
            "x-b3-spanid",
        ),
        (Propagator::Jaeger, format!("uber-trace-id: {TRACE}:{SPAN}:0:1\r\n"), "uber-trace-id"),
        (
            Propagator::Datadog,
            format!(
                "x-datadog-trace-id: {decimal}\r\nx-datadog-parent-id: {span_decimal}\r\n\
                 x-datadog-sampling-priority: 1\r\nx-datadog-tags: _dd.p.tid=0af7651916cd43dd\r\n"
            ),
            "x-datadog-parent-id",
        ),
    ];
    assert!(TRACE.ends_with(low));
    let mut collector = Collector::grpc(&[]).await;
    for (propagator, fields, told) in formats {
        let (endpoint, mut seen) = echo().await;
        let settings = Telemetry { propagators: vec![propagator], ..telemetry(collector.address) };
        let native = start(&served(vec![endpoint], traced(), settings)).await;
        let got = talk(&native, &request(&format!("{fields}baggage: a=1\r\n"))).await;
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        let (server, clients) = apart(collector.spans(2).await);
        let client = &clients[0];
        assert_eq!(hex(&server.trace_id), TRACE, "{propagator:?}");
        assert_eq!(hex(&server.parent_span_id), SPAN, "{propagator:?}");
        assert_eq!(client.trace_id, server.trace_id);
        assert_eq!(client.parent_span_id, server.span_id);
        let text = String::from_utf8_lossy(&seen.recv().await.expect("a request")).into_owned();
        let said = field_of(&text, told).expect("the format's field");
        let id = match propagator {
            Propagator::Datadog => {
                let bytes = client.span_id.as_slice().try_into().expect("eight bytes");
                u64::from_be_bytes(bytes).to_string()
            }
            _ => hex(&client.span_id),
        };
        assert!(said.contains(&id), "{propagator:?}: {said} names {id}");
        let all: Vec<&str> =
            text.lines().filter(|line| line.to_lowercase().starts_with(told)).collect();
        assert_eq!(all.len(), 1, "{text}");
        assert_eq!(field_of(&text, "baggage").as_deref(), Some("a=1"));
    }
}

#[tokio::test]
async fn a_span_says_what_dashboards_of_ingress_nginx_ask_for() {
    let mut collector = Collector::grpc(&[]).await;
    let (endpoint, _seen) = echo().await;
    let mut policy = traced();
    if let Some(traced) = &mut policy.opentelemetry {
        let template = Template::parse("HTTP $request_method $uri $status");
        traced.operation_name = Some(template.expect("known variables"));
    }
    let native = start(&served(vec![endpoint], policy, telemetry(collector.address))).await;
    talk(&native, &request("User-Agent: curl/8\r\nX-Forwarded-For: 192.0.2.1\r\n")).await;
    let sent = collector.next().await;
    let resource = sent.resource.expect("a resource").attributes;
    assert_eq!(attribute(&resource, "service.name").as_deref(), Some("nginx"));
    let scope = &sent.scope_spans[0];
    assert_eq!(scope.scope.as_ref().map(|scope| scope.name.as_str()), Some("fairway"));
    let (server, clients) = apart(scope.spans.clone());
    let port = native.listening().http_port.to_string();
    for (name, value) in [
        ("http.method", "GET"),
        ("http.flavor", "1.1"),
        ("http.target", "/a?b=c"),
        ("http.host", "a.test"),
        ("http.server_name", "a.test"),
        ("http.scheme", "http"),
        ("http.user_agent", "curl/8"),
        ("http.status_code", "200"),
        ("http.route", "/"),
        ("net.host.port", &port),
        ("net.peer.ip", "127.0.0.1"),
    ] {
        assert_eq!(attribute(&server.attributes, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(server.name, "HTTP GET /a 200");
    assert!(server.parent_span_id.is_empty() && server.status.is_none());
    let client = &clients[0];
    let port = endpoint.port().to_string();
    assert_eq!(client.name, "GET");
    assert_eq!(attribute(&client.attributes, "net.peer.port"), Some(port));
    assert_eq!(attribute(&client.attributes, "http.status_code").as_deref(), Some("200"));
    let within = server.start_time_unix_nano <= client.start_time_unix_nano
        && client.start_time_unix_nano <= client.end_time_unix_nano
        && client.end_time_unix_nano <= server.end_time_unix_nano;
    // Both clocks are read at the end, one after the other.
    assert!(within || server.end_time_unix_nano.abs_diff(client.end_time_unix_nano) < 1_000_000);
}

#[tokio::test]
async fn whoever_is_not_believed_begins_no_trace() {
    let mut collector = Collector::grpc(&[]).await;
    let (endpoint, mut seen) = echo().await;
    let mut policy = traced();
    if let Some(traced) = &mut policy.opentelemetry {
        traced.trusts_client = false;
    }
    let native = start(&served(vec![endpoint], policy, telemetry(collector.address))).await;
    let parent = format!("traceparent: 00-{TRACE}-{SPAN}-00\r\ntracestate: a=1\r\n");
    talk(&native, &request(&parent)).await;
    let (server, _) = apart(collector.spans(2).await);
    assert!(hex(&server.trace_id) != TRACE && server.parent_span_id.is_empty());
    let seen = String::from_utf8(seen.recv().await.expect("a request")).expect("text");
    assert!(
        field_of(&seen, "traceparent").is_some_and(|told| told.contains(&hex(&server.trace_id)))
    );
    assert!(!seen.contains(TRACE) && !seen.contains("tracestate"), "{seen}");
}

#[tokio::test]
async fn what_is_not_recorded_travels_on_and_is_not_sent() {
    let mut collector = Collector::grpc(&[]).await;
    let (endpoint, mut seen) = echo().await;
    let settings = Telemetry { sampler: Sampler::AlwaysOff, ..telemetry(collector.address) };
    let native = start(&served(vec![endpoint], traced(), settings)).await;
    talk(&native, &request("")).await;
    let told = field(&mut seen, "traceparent").await.expect("a trace");
    assert!(told.ends_with("-00"), "{told}");
    // The parent decides about this one, and nothing was sent before it.
    talk(&native, &request(&format!("traceparent: 00-{TRACE}-{SPAN}-01\r\n"))).await;
    let (server, _) = apart(collector.spans(2).await);
    assert_eq!(hex(&server.trace_id), TRACE);
}

#[tokio::test]
async fn a_location_that_is_not_traced_changes_nothing() {
    let collector = Collector::grpc(&[]).await;
    let (endpoint, mut seen) = echo().await;
    let settings = telemetry(collector.address);
    let native = start(&served(vec![endpoint], Policy::default(), settings)).await;
    let own = format!("00-{TRACE}-{SPAN}-01");
    talk(&native, &request(&format!("traceparent: {own}\r\n"))).await;
    assert_eq!(field(&mut seen, "traceparent").await, Some(own));
    talk(&native, &request("")).await;
    assert_eq!(field(&mut seen, "traceparent").await, None);
    assert_eq!(native.spans(), Spans::default());
}

#[tokio::test]
async fn every_try_has_a_span_of_its_own() {
    tries_have_spans(Body::default()).await;
}

#[tokio::test]
async fn every_try_has_a_span_of_its_own_where_bodies_are_streamed() {
    tries_have_spans(Body { request_buffering: false, ..Body::default() }).await;
}

async fn tries_have_spans(body: Body) {
    let mut collector = Collector::grpc(&[]).await;
    let (endpoint, mut seen) = echo().await;
    let away = Away::new();
    let endpoints = vec![away.address(), endpoint];
    let policy = Policy { body, ..traced() };
    let settings = Telemetry { batches: SOON, ..telemetry(collector.address) };
    let native = start(&served(endpoints, policy, settings)).await;
    let request =
        b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody";
    // Of two requests, one at least begins at the endpoint that is away.
    for _ in 0..2 {
        let got = talk(&native, request).await;
        assert!(got.ends_with("hello"), "{got}");
    }
    let is_server = |span: &&Span| span.kind == i32::from(SpanKind::Server);
    let mut spans = Vec::new();
    while spans.iter().filter(is_server).count() < 2 {
        spans.extend(collector.spans(1).await);
    }
    let of = |id: &[u8]| spans.iter().find(|span| span.span_id == id).expect("its span");
    let clients = spans.iter().filter(|span| span.kind == i32::from(SpanKind::Client));
    let (failed, fine): (Vec<&Span>, Vec<&Span>) = clients.partition(|span| span.status.is_some());
    assert!(!failed.is_empty() && fine.len() == 2, "{spans:?}");
    assert_eq!(failed[0].status.as_ref().map(|status| status.code), Some(StatusCode::Error.into()));
    assert_eq!(attribute(&failed[0].attributes, "error.type").as_deref(), Some("connection"));
    assert_eq!(of(&failed[0].parent_span_id).kind, i32::from(SpanKind::Server));
    let mut told = vec![];
    for _ in 0..2 {
        let seen = String::from_utf8(seen.recv().await.expect("a request")).expect("text");
        assert!(
            seen.contains("\r\nContent-Length: 4\r\n") && seen.ends_with("\r\n\r\nbody"),
            "{seen}"
        );
        told.push(field_of(&seen, "traceparent").expect("a trace"));
    }
    for span in fine {
        assert!(told.iter().any(|told| told.contains(&hex(&span.span_id))), "{told:?}");
    }
    let again = spans.iter().filter_map(|span| attribute(&span.attributes, "http.resend_count"));
    assert_eq!(again.collect::<Vec<_>>(), vec!["1"; failed.len()]);
}

#[tokio::test]
async fn spans_go_over_http_with_the_fields_of_the_environment() {
    let mut collector = Collector::http(&[503], 1).await;
    let (endpoint, _seen) = echo().await;
    let settings =
        Telemetry { protocol: OtlpProtocol::Http, batches: PAIRS, ..Telemetry::default() };
    let base = format!("http://{}/base/", collector.address);
    let (environment, _) = OtlpEnvironment::read(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(base.clone()),
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("authorization=Basic%20abc".to_owned()),
        "OTEL_RESOURCE_ATTRIBUTES" => Some("k8s.cluster.name=one".to_owned()),
        _ => None,
    });
    let native = start_in(environment, &served(vec![endpoint], traced(), settings)).await;
    talk(&native, &request("")).await;
    let (first, again) = (collector.next().await, collector.next().await);
    assert_eq!(first, again, "503 means once more");
    let resource = first.resource.expect("a resource").attributes;
    assert_eq!(attribute(&resource, "k8s.cluster.name").as_deref(), Some("one"));
    let spans = || native.spans();
    eventually("counts", || spans() == Spans { exported: 1, dropped: 0, failed: 1 }).await;
}

#[tokio::test]
async fn spans_go_to_a_collector_that_proves_its_name() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, made.cert.pem()).expect("written");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a certificate");
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut collector = Collector::grpc_tls(Arc::new(config).into()).await;
    let (endpoint, _seen) = echo().await;
    let (environment, _) = OtlpEnvironment::read(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(format!("https://{}", collector.address)),
        "OTEL_EXPORTER_OTLP_CERTIFICATE" => Some(file.display().to_string()),
        _ => None,
    });
    let settings = Telemetry { batches: PAIRS, ..Telemetry::default() };
    let log = LOG.clone();
    let stranger = OtlpEnvironment { certificate: None, ..environment.clone() };
    let stranger = start_in(stranger, &served(vec![endpoint], traced(), settings.clone())).await;
    talk(&stranger, &request("")).await;
    eventually("a complaint", || !log.about(collector.address).is_empty()).await;
    let said = log.about(collector.address).concat();
    assert!(said.contains("certificate"), "{said}");
    let native = start_in(environment, &served(vec![endpoint], traced(), settings)).await;
    talk(&native, &request("")).await;
    assert_eq!(collector.spans(2).await.len(), 2);
    assert_eq!(stranger.spans().exported, 0);
}

#[tokio::test]
async fn a_collector_that_is_away_delays_nobody_and_gets_what_waits() {
    let log = LOG.clone();
    let (away, (endpoint, _seen)) = (Away::new(), echo().await);
    let address = away.address();
    let settings = Telemetry {
        batches: Batches { queue: 6, size: 4, delay: Duration::from_millis(1) },
        ..telemetry(address)
    };
    let native = start(&served(vec![endpoint], traced(), settings)).await;
    for _ in 0..40 {
        let got = talk(&native, &request("")).await;
        assert!(got.ends_with("hello"), "{got}");
    }
    eventually("drops", || native.spans().dropped > 0).await;
    eventually("a line", || log.about(address).len() == 1).await;
    let mut collector = away.come();
    assert!(!collector.spans(6).await.is_empty(), "what waited");
    eventually("another line", || log.about(address).len() == 2).await;
    let lines = log.about(address);
    assert!(lines[0].contains("WARN") && lines[0].contains("cannot be sent"), "{lines:?}");
    assert!(lines[1].contains("INFO") && lines[1].contains("are sent again"), "{lines:?}");
    let spans = native.spans();
    assert_eq!(spans.failed, 0, "{spans:?}");
}

#[tokio::test]
async fn what_the_collector_refuses_is_not_sent_again() {
    let mut collector = Collector::grpc(&[3, 14]).await;
    let (endpoint, _seen) = echo().await;
    let native = start(&served(vec![endpoint], traced(), telemetry(collector.address))).await;
    talk(&native, &request("")).await;
    let refused = collector.spans(2).await;
    talk(&native, &request("")).await;
    let later = collector.spans(2).await;
    assert_ne!(refused[0].trace_id, later[0].trace_id);
    // Unavailable, the second time: that one is repeated.
    assert_eq!(collector.spans(2).await, later);
    let spans = || native.spans();
    eventually("counts", || spans() == Spans { exported: 2, dropped: 0, failed: 2 }).await;
}

#[tokio::test]
async fn another_collector_counts_at_once_and_the_old_one_gets_what_waited() {
    let (mut old, mut new) = (Collector::grpc(&[]).await, Collector::grpc(&[]).await);
    let (endpoint, _seen) = echo().await;
    let settings = Telemetry { batches: LATE, ..telemetry(old.address) };
    let before = served(vec![endpoint], traced(), settings);
    let native = start(&before).await;
    talk(&native, &request("")).await;
    let after = served(vec![endpoint], traced(), telemetry(new.address));
    apply(&native, &before, &after).await;
    talk(&native, &request("")).await;
    let (late, early) = (old.spans(2).await, new.spans(2).await);
    assert_ne!(late[0].trace_id, early[0].trace_id);
}

#[tokio::test]
async fn the_last_spans_are_sent_before_the_process_ends() {
    let mut collector = Collector::grpc(&[]).await;
    let (endpoint, _seen) = echo().await;
    let settings = Telemetry { batches: LATE, ..telemetry(collector.address) };
    let native = start(&served(vec![endpoint], traced(), settings)).await;
    talk(&native, &request("")).await;
    native.clone().drain(Duration::from_secs(5)).await;
    assert_eq!(collector.spans(2).await.len(), 2);
    assert_eq!(native.spans().exported, 2);
}

#[tokio::test]
async fn an_authenticator_is_told_of_the_request_itself() {
    let mut collector = Collector::grpc(&[]).await;
    let ((endpoint, _seen), (asked, mut questions)) = (echo().await, echo().await);
    let mut configuration = served(vec![endpoint], traced(), telemetry(collector.address));
    let id = put_upstream(&mut configuration, "url:demo/auth:80", vec![asked]);
    let authenticator = bed::authenticator("auth", Template::default(), id);
    let policy = Policy { auth_external: Some(authenticator.into()), ..traced() };
    bed::put_host(&mut configuration, "a.test", &model::UpstreamId::new(MAIN), policy);
    let native = start(&configuration).await;
    talk(&native, &request(&format!("traceparent: 00-{TRACE}-{SPAN}-01\r\n"))).await;
    let (server, _) = apart(collector.spans(2).await);
    let told = field(&mut questions, "traceparent").await;
    assert_eq!(told, Some(format!("00-{TRACE}-{}-01", hex(&server.span_id))));
}

#[tokio::test]
async fn a_fastcgi_responder_is_told_in_a_parameter() {
    let collector = Collector::grpc(&[]).await;
    // The records end with an empty one of the request's body.
    let (endpoint, mut seen) =
        upstream(Vec::new(), |read| read.ends_with(&[1, 5, 0, 1, 0, 0, 0, 0])).await;
    let policy = Policy { protocol: Protocol::Fcgi, ..traced() };
    let native = start(&served(vec![endpoint], policy, telemetry(collector.address))).await;
    talk(&native, &request(&format!("traceparent: 00-{TRACE}-{SPAN}-01\r\n"))).await;
    let seen = seen.recv().await.expect("a request");
    let seen = String::from_utf8_lossy(&seen);
    assert_eq!(seen.matches("HTTP_TRACEPARENT").count(), 1, "{seen:?}");
    assert!(seen.contains(&format!("HTTP_TRACEPARENT00-{TRACE}-")) && !seen.contains(SPAN));
}

#[tokio::test]
async fn logs_and_fields_name_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.log");
    let template = |text| Template::parse(text).expect("known variables");
    let format = "$opentelemetry_trace_id $opentelemetry_span_id $opentelemetry_context_traceparent \
        $opentelemetry_context_b3 $opentelemetry_context_tracestate";
    let trace =
        SetHeader { name: "X-Trace".to_owned(), value: template("$opentelemetry_trace_id").into() };
    let (endpoint, mut seen) = echo().await;
    let line = |policy: Policy| {
        let global = Global {
            logs: Logs { access: LogTarget::File(file.display().to_string()), ..Logs::default() },
            log_format: LogFormat { template: template(format), ..LogFormat::default() },
            proxy_set_headers: vec![trace.clone()],
            ..Global::default()
        };
        let global = Arc::new(global);
        Configuration { global, ..configuration(&[(MAIN, vec![endpoint])], policy) }
    };
    let (on, off) = (line(traced()), line(Policy::default()));
    let native: Arc<Native> = start(&on).await;
    let parent = format!("traceparent: 00-{TRACE}-{SPAN}-01\r\ntracestate: a=1\r\n");
    talk(&native, &request(&parent)).await;
    assert_eq!(field(&mut seen, "x-trace").await.as_deref(), Some(TRACE));
    apply(&native, &on, &off).await;
    talk(&native, &request(&parent)).await;
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    eventually("two lines", || read().lines().count() == 2).await;
    let text = read();
    let lines: Vec<&str> = text.lines().collect();
    let parts: Vec<&str> = lines[0].split(' ').collect();
    assert_eq!((parts[0], parts[4]), (TRACE, "a=1"));
    assert_eq!(parts[2], format!("00-{TRACE}-{}-01", parts[1]));
    assert_eq!(parts[3], format!("{TRACE}-{}-1", parts[1]));
    assert_eq!(lines[1], "- - - - -");
}

/// What the process says, line by line.
pub(crate) static LOG: LazyLock<Log> = LazyLock::new(Log::start);

#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn start() -> Self {
        let log = Self(Arc::default());
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        tracing::subscriber::set_global_default(subscriber.finish()).expect("the first one");
        log
    }

    fn about(&self, collector: SocketAddr) -> Vec<String> {
        self.with(&format!("{}:{}", Ipv4Addr::LOCALHOST, collector.port()))
    }

    /// The lines with this text.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let lines = self.0.lock().expect("nobody panics");
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        self.0.lock().expect("nobody panics").push(text);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
