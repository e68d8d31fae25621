//! Settings of the process as a whole, from the controller's ConfigMap. Defaults are those of ingress-nginx
//! (compat/configmap.csv), and of our own where it has no key (docs/limits.md).

use crate::policy::{Errors, Policy, RawGlobal};
use crate::snippet::GlobalScope;
use crate::{
    Block, Compression, Listeners, Logs, Networks, Pattern, SetHeader, StreamSettings, Telemetry,
    Template, Tuning,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Everything that is not a matter of one host or path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Global {
    /// `use-http2`: HTTP/2 by ALPN, and by prior knowledge on the plain port.
    pub http2: bool,
    /// `http2-max-concurrent-streams`.
    pub http2_streams: u32,
    /// Keep-alive of client connections.
    pub keep_alive: KeepAlive,
    /// Keep-alive of upstream connections.
    pub upstream_keep_alive: UpstreamKeepAlive,
    /// Bounds on what a client may send, and when.
    pub limits: Limits,
    /// Who is believed about the client's address.
    pub real_ip: RealIp,
    /// `use-proxy-protocol`: every connection starts with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// `enable-underscores-in-headers`.
    pub underscores_in_headers: bool,
    /// `ignore-invalid-headers`: request headers with odd names are dropped (else passed on).
    pub ignore_invalid_headers: bool,
    /// `generate-request-id`.
    pub generate_request_id: bool,
    /// `proxy-add-original-uri-header`.
    pub original_uri_header: bool,
    /// `server-tokens`: a `Server` header on answers.
    pub server_tokens: bool,
    /// `allow-backend-server-header`: the upstream's `Server` header is passed on.
    pub upstream_server_header: bool,
    /// `hide-headers`, in lower case.
    pub hide_headers: BTreeSet<String>,
    /// `add-headers`: header fields of every answer.
    pub add_headers: Vec<SetHeader>,
    /// `proxy-set-headers`: header fields of every request to an upstream.
    pub proxy_set_headers: Vec<SetHeader>,
    /// `default-type`: the type of texts that snippets answer with, where nothing else says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_type: Option<String>,
    /// Value of Strict-Transport-Security on TLS connections; none if `hsts` is off.
    pub hsts: Option<String>,
    /// `http-redirect-code`: status of HTTPS redirects.
    pub redirect_status: u16,
    /// `no-tls-redirect-locations`: path prefixes that are never redirected to HTTPS.
    pub no_tls_redirect: Vec<String>,
    /// `disable-access-log` and `disable-http-access-log` turned around.
    pub access_log: bool,
    /// `enable-access-log-for-default-backend`.
    pub default_backend_access_log: bool,
    /// `skip-access-log-urls`, literal ones.
    pub skip_access_log: BTreeSet<String>,
    /// `skip-access-log-urls`, those that start with `~`.
    pub skip_access_log_patterns: Vec<Pattern>,
    /// The line written for each request.
    pub log_format: LogFormat,
    /// Listeners and threads, where flags leave them open.
    pub listeners: Listeners,
    /// Where logs go.
    pub logs: Logs,
    /// `otlp-*`, `otel-*`: where spans go, and how traces travel on.
    pub telemetry: Telemetry,
    /// `use-gzip`, `enable-brotli` and what belongs to them.
    pub compression: Compression,
    /// `use-geoip2`: databases about addresses are read.
    pub geoip2: bool,
    /// `ssl-*`.
    pub tls: TlsSettings,
    /// `worker-shutdown-timeout`: how long requests may take to finish once the process stops.
    pub shutdown_timeout: Duration,
    /// `relative-redirects`.
    pub relative_redirects: bool,
    /// `block-cidrs`, `block-user-agents`, `block-referers`.
    pub block: Block,
    /// `proxy-stream-*`.
    pub streams: StreamSettings,
    /// What of the defaults of annotations counts where no Ingress is.
    #[serde(skip)]
    pub nowhere: Nowhere,
    /// What `http-snippet` means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_snippet: Option<Arc<GlobalScope>>,
    /// What only the nginx engine understands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<RawGlobal>>,
}

/// What the ConfigMap says at nginx's http level of what annotations say elsewhere: it counts for servers, and for
/// locations that snippets have beside those of Ingresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nowhere {
    /// `limit-req-status-code`.
    pub request_status: u16,
    /// `limit-conn-status-code`.
    pub connection_status: u16,
    /// `custom-http-errors`.
    pub errors: Option<Errors>,
}

impl Nowhere {
    /// Of the policy that Ingresses without annotations have.
    pub fn of(policy: &Policy) -> Self {
        let (request_status, connection_status) =
            (policy.limits.request_status, policy.limits.connection_status);
        Self { request_status, connection_status, errors: policy.errors.clone() }
    }
}

impl Default for Nowhere {
    fn default() -> Self {
        Self::of(&Policy::default())
    }
}

/// Keep-alive of client connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KeepAlive {
    /// `keep-alive`: how long an idle connection stays; zero closes after each answer.
    pub idle: Duration,
    /// `keep-alive-requests`.
    pub requests: u64,
    /// The same over HTTP/2: ten times as many where nobody says. Of what such a connection carries up to 128 requests
    /// are under way at a time, and all that come next wait for the handshake of another one.
    pub http2_requests: u64,
    /// How long a connection may live at most (nginx: keepalive_time, 1 h).
    pub age: Duration,
}

/// `upstream-keepalive-*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UpstreamKeepAlive {
    /// Idle connections kept by each thread, over all upstreams; zero turns keep-alive off.
    pub connections: usize,
    /// Requests on one connection.
    pub requests: u64,
    /// How long an idle connection stays.
    pub idle: Duration,
    /// How long a connection may live at most.
    pub age: Duration,
}

/// Bounds on client connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// `client-header-buffer-size`: bytes of a head of which any line is taken.
    pub header_first: usize,
    /// `large-client-header-buffers`: bytes of the longest line.
    pub header_line: usize,
    /// `large-client-header-buffers`: bytes of all lines together.
    pub header_total: usize,
    /// Header lines of one message.
    pub header_count: usize,
    /// `client-header-timeout`: from the first byte of a request to the end of its header.
    pub header_timeout: Duration,
    /// `client-body-timeout`: between two reads of a body.
    pub body_timeout: Duration,
    /// Between two successful writes to a client (nginx: send_timeout, 60 s).
    pub send_timeout: Duration,
    /// `client-body-buffer-size`: bytes of a body kept in memory before a file takes the rest.
    pub body_buffer: usize,
    /// `proxy-protocol-header-timeout`.
    pub proxy_protocol_timeout: Duration,
}

/// Who is believed about the client's address, host, port and scheme (compat/behaviour.md section 14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RealIp {
    /// `enable-real-ip`.
    pub enabled: bool,
    /// `use-forwarded-headers`.
    pub forwarded_headers: bool,
    /// `compute-full-forwarded-for`.
    pub full_forwarded_for: bool,
    /// `forwarded-for-header`, lower case.
    pub forwarded_for_header: String,
    /// `forwarded-host-header`, lower case.
    pub forwarded_host_header: String,
    /// `proxy-real-ip-cidr`: the peers that are believed about the client's address. All of IPv4, and no other one,
    /// where nobody says whom (ingress-nginx: `0.0.0.0/0`).
    pub trusted: Networks,
    /// Whether nobody says whom: then everybody is believed about host, port and scheme.
    pub by_default: bool,
}

impl RealIp {
    /// Whether this peer is believed about the client's address. An IPv4 address in the clothes of IPv6 is the same
    /// address (ngx_cidr_match).
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted.contains(peer)
    }

    /// Whether this peer is believed about the client's host, port and scheme.
    pub fn believes(&self, peer: IpAddr) -> bool {
        self.by_default || self.trusts(peer)
    }
}

/// The access log's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogFormat {
    /// `log-format-upstream`.
    pub template: Template,
    /// `log-format-escape-json`.
    pub json: bool,
    /// `log-format-escape-none`.
    pub unescaped: bool,
}

/// TLS versions that Fairway can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// The secret of session tickets. It is never printed and never serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketKey(pub Vec<u8>);

impl std::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TicketKey(…)")
    }
}

impl Serialize for TicketKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}

/// TLS towards clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsSettings {
    /// `ssl-protocols`.
    pub versions: BTreeSet<TlsVersion>,
    /// `ssl-ciphers`, OpenSSL names of TLS 1.2 suites in order of preference.
    pub ciphers: Vec<String>,
    /// `ssl-session-tickets`.
    pub tickets: bool,
    /// `ssl-session-cache`.
    pub session_cache: bool,
    /// `ssl-session-ticket-key`; a random one of the process if absent.
    pub ticket_key: Option<TicketKey>,
    /// `ssl-session-cache-size`, in bytes.
    pub session_cache_size: u64,
    /// `ssl-session-timeout`.
    pub session_timeout: Duration,
    /// `ssl-buffer-size`: bytes of plain text in a record at most.
    pub record_size: usize,
    /// `ssl-ecdh-curve`: OpenSSL names of key exchange groups in order of preference; all if empty.
    pub curves: Vec<String>,
    /// `enable-ocsp`: answers of the authority about certificates are stapled to handshakes.
    pub ocsp: bool,
    /// `ssl-reject-handshake`: names that no server has are refused.
    pub reject_unknown_names: bool,
}

/// `log-format-upstream` of ingress-nginx.
const LOG_FORMAT: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
    \"$http_referer\" \"$http_user_agent\" $request_length $request_time [$proxy_upstream_name] \
    [$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length $upstream_response_time \
    $upstream_status $req_id";

/// `ssl-ciphers` of ingress-nginx.
const CIPHERS: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:\
    ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

impl Global {
    /// How nginx is set up, for the engine that has one.
    pub fn tuning(&self) -> &Tuning {
        static NOTHING: LazyLock<Tuning> = LazyLock::new(Tuning::default);
        self.raw.as_ref().map_or(&NOTHING, |raw| &raw.tuning)
    }
}

impl Default for Global {
    fn default() -> Self {
        Self {
            http2: true,
            http2_streams: 128,
            keep_alive: KeepAlive {
                idle: Duration::from_secs(75),
                requests: 1000,
                http2_requests: 10_000,
                age: Duration::from_secs(3600),
            },
            upstream_keep_alive: UpstreamKeepAlive {
                connections: 320,
                requests: 10_000,
                idle: Duration::from_secs(60),
                age: Duration::from_secs(3600),
            },
            limits: Limits::default(),
            real_ip: RealIp::default(),
            proxy_protocol: false,
            underscores_in_headers: false,
            ignore_invalid_headers: true,
            generate_request_id: true,
            original_uri_header: false,
            server_tokens: false,
            upstream_server_header: false,
            hide_headers: BTreeSet::new(),
            add_headers: Vec::new(),
            proxy_set_headers: Vec::new(),
            default_type: None,
            hsts: Some("max-age=31536000; includeSubDomains".to_owned()),
            redirect_status: 308,
            no_tls_redirect: vec!["/.well-known/acme-challenge".to_owned()],
            access_log: true,
            default_backend_access_log: false,
            skip_access_log: BTreeSet::new(),
            skip_access_log_patterns: Vec::new(),
            log_format: LogFormat::default(),
            listeners: Listeners::default(),
            logs: Logs::default(),
            telemetry: Telemetry::default(),
            compression: Compression::default(),
            geoip2: false,
            tls: TlsSettings::default(),
            shutdown_timeout: Duration::from_secs(240),
            relative_redirects: false,
            block: Block::default(),
            streams: StreamSettings::default(),
            nowhere: Nowhere::default(),
            http_snippet: None,
            raw: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_first: 1 << 10,
            header_line: 8 << 10,
            header_total: 32 << 10,
            header_count: 1000,
            header_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(60),
            body_buffer: 8 << 10,
            proxy_protocol_timeout: Duration::from_secs(5),
        }
    }
}

impl Default for RealIp {
    fn default() -> Self {
        Self {
            enabled: false,
            forwarded_headers: false,
            full_forwarded_for: false,
            forwarded_for_header: "x-forwarded-for".to_owned(),
            forwarded_host_header: "x-forwarded-host".to_owned(),
            trusted: ["0.0.0.0/0"].iter().filter_map(|net| net.parse().ok()).collect(),
            by_default: true,
        }
    }
}

impl Default for LogFormat {
    fn default() -> Self {
        let template =
            Template::parse(LOG_FORMAT).expect("the default format has known variables only");
        Self { template, json: false, unescaped: false }
    }
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self {
            versions: BTreeSet::from([TlsVersion::Tls12, TlsVersion::Tls13]),
            ciphers: CIPHERS.split(':').map(str::to_owned).collect(),
            tickets: false,
            session_cache: true,
            ticket_key: None,
            session_cache_size: 10 << 20,
            session_timeout: Duration::from_secs(600),
            record_size: 16 << 10,
            curves: Vec::new(),
            ocsp: false,
            reject_unknown_names: false,
        }
    }
}
