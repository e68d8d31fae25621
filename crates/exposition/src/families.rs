//! Every family of metrics that is not about requests: name, type, labels, meaning. docs/metrics.md is made of it.

use runtime::exposition::Kind::{self, Counter, Gauge, Histogram};

/// A family of metrics.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether `controller_class`, `controller_namespace` and `controller_pod` come before the labels.
    pub(crate) identity: bool,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

macro_rules! families {
    ($($id:ident = $kind:ident $identity:literal $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(crate) const $id: Family = Family {
            name: $name, kind: $kind, identity: $identity, labels: &[$($label),*], help: $help,
        };)*
        /// All of them.
        #[cfg(test)]
        pub(crate) const ALL: &[&Family] = &[$(&$id),*];
    };
}

// As ingress-nginx names them (compat/metrics.csv), each with the labels of the controller.
families! {
    BUILD_INFO = Gauge true "nginx_ingress_controller_build_info" ["release", "build", "repository"]
        "A metric with a constant '1' labeled with information about the build.";
    CONFIG_HASH = Gauge true "nginx_ingress_controller_config_hash" []
        "Number that tells configurations apart, the same in every replica that serves the same; 0 after one was refused.";
    CONFIG_SUCCESSFUL = Gauge true "nginx_ingress_controller_config_last_reload_successful" []
        "Whether the last change of the configuration is being served, and no guard or snippet of the ConfigMap is beyond reading.";
    CONFIG_TIME = Gauge true "nginx_ingress_controller_config_last_reload_successful_timestamp_seconds" []
        "When the last change of the configuration, other than of endpoints alone, began to be served, in seconds since 1970.";
    SUCCESS = Counter true "nginx_ingress_controller_success" []
        "Changes of the configuration that are being served (ingress-nginx: reloads); those of endpoints alone do not count.";
    ERRORS = Counter true "nginx_ingress_controller_errors" []
        "Changes of the configuration that were refused; what was served before stays.";
    CHECK_SUCCESS = Counter true "nginx_ingress_controller_check_success" ["namespace", "ingress"]
        "Reviews of the admission webhook that let an Ingress in.";
    CHECK_ERRORS = Counter true "nginx_ingress_controller_check_errors" ["namespace", "ingress"]
        "Reviews of the admission webhook that refused an Ingress.";
    SSL_EXPIRE = Gauge false "nginx_ingress_controller_ssl_expire_time_seconds"
        ["namespace", "class", "host", "secret_name", "identifier"]
        "When the certificate of a host, also of a Gateway, expires, in seconds since 1970; the leader only says so.";
    SSL_INFO = Gauge false "nginx_ingress_controller_ssl_certificate_info"
        ["namespace", "class", "host", "secret_name", "identifier", "issuer_organization", "issuer_common_name",
         "serial_number", "public_key_algorithm"]
        "The certificate of a host, as labels of a constant 1.";
    LEADER = Gauge true "nginx_ingress_controller_leader_election_status" ["name"]
        "1 while this replica is the leader of the election, 0 if it was once; absent if it never was.";
    ORPHAN = Gauge true "nginx_ingress_controller_orphan_ingress" ["namespace", "ingress", "type"]
        "1 if a Service of the Ingress is missing (no-service) or has no endpoints (no-endpoint), else 0.";
    ADMISSION_TESTED = Gauge true "nginx_ingress_controller_admission_tested_ingresses" []
        "Ingresses that the last review looked at: the one that it was about.";
    ADMISSION_TESTED_TIME = Gauge true "nginx_ingress_controller_admission_tested_duration" []
        "Seconds that the last review took once its object was read.";
    ADMISSION_RENDERED = Gauge true "nginx_ingress_controller_admission_render_ingresses" []
        "Ingresses that the last review translated: the one that it was about.";
    ADMISSION_RENDER_TIME = Gauge true "nginx_ingress_controller_admission_render_duration" []
        "Seconds until the object of the last review was read.";
    ADMISSION_SIZE = Gauge true "nginx_ingress_controller_admission_config_size" []
        "Bytes of the last review.";
    ADMISSION_TIME = Gauge true "nginx_ingress_controller_admission_roundtrip_duration" []
        "Seconds that the last review took.";
    CONNECTIONS_TOTAL = Counter true "nginx_ingress_controller_nginx_process_connections_total" ["state"]
        "Connections of clients that were accepted, and those of them that were handled.";
    REQUESTS_TOTAL = Counter true "nginx_ingress_controller_nginx_process_requests_total" []
        "Requests of clients that were begun, whatever became of them.";
    CONNECTIONS = Gauge true "nginx_ingress_controller_nginx_process_connections" ["state"]
        "Connections of clients: active ones, those without a request so far (reading), requests that are being answered (writing), connections between two requests (waiting).";
    NUM_PROCS = Gauge true "nginx_ingress_controller_nginx_process_num_procs" []
        "Processes that serve traffic.";
    CPU = Counter true "nginx_ingress_controller_nginx_process_cpu_seconds_total" []
        "Processor time in seconds.";
    READ_BYTES = Counter true "nginx_ingress_controller_nginx_process_read_bytes_total" []
        "Bytes read from disks.";
    WRITE_BYTES = Counter true "nginx_ingress_controller_nginx_process_write_bytes_total" []
        "Bytes written to disks.";
    RESIDENT = Gauge true "nginx_ingress_controller_nginx_process_resident_memory_bytes" []
        "Bytes of memory in use.";
    VIRTUAL = Gauge true "nginx_ingress_controller_nginx_process_virtual_memory_bytes" []
        "Bytes of memory that may be addressed.";
    OLDEST = Gauge true "nginx_ingress_controller_nginx_process_oldest_start_time_seconds" []
        "When the process started, in seconds since 1970.";

    OWN_BUILD = Gauge false "fairway_build_info" ["version", "build"]
        "The version that runs, as labels of a constant 1.";
    GENERATION = Gauge false "fairway_generation" []
        "The number of the configuration in force, counted from 1.";
    PROPAGATION = Histogram false "fairway_propagation_seconds" []
        "From the moment that a change of an object was seen to the moment that it was served.";
    APPLYING = Histogram false "fairway_apply_seconds" []
        "How long the engine took to follow a change.";
    PROBLEMS = Gauge false "fairway_problems" ["kind", "severity"]
        "Problems of objects, by the kind of the object and by severity (error: not served; warning: a part is left out; notice: without the effect that may be expected).";
    INGRESSES = Gauge false "fairway_ingresses" ["state"]
        "Ingresses of the watched namespaces: served; not served since their IngressClass, which is or was ours, does not exist (no_class); not served for another reason, such as a class of others (other).";
    ADMISSION = Histogram false "fairway_admission_seconds" []
        "How long reviews of the admission webhook took.";
    ADMISSION_CERTIFICATE = Gauge false "fairway_admission_certificate_expire_time_seconds" []
        "When the certificate of the admission webhook expires, in seconds since 1970.";
    WATCH_SYNCED = Gauge false "fairway_watch_synced" ["kind"]
        "1 while the objects of this kind are followed at the API server, 0 while what is known of them may be old.";
    WATCH_LOST = Gauge false "fairway_watch_unsynced_seconds" ["kind"]
        "For how long the objects of this kind have not been followed; 0 while they are.";
    UPSTREAM_REQUESTS = Counter false "fairway_upstream_requests_total" ["upstream", "connection"]
        "Requests that were sent to an upstream over a new connection (opened) or over a kept one (reused); of upstreams beyond half of --metrics-series-limit together (overflow).";
    UPSTREAM_IDLE = Gauge false "fairway_upstream_idle_connections" []
        "HTTP/1 connections to upstreams that wait for a request.";
    NGINX_STARTS = Counter false "fairway_nginx_starts_total" []
        "How often the nginx of --engine=nginx was started: more than once means that it died.";
    NGINX_RELOADS = Counter false "fairway_nginx_reloads_total" []
        "How often it was reloaded.";
    NGINX_WORKERS = Gauge false "fairway_nginx_workers" ["state"]
        "Its worker processes: those that take connections (serving) and those that only finish what they have (leaving).";
    NGINX_WORKER_MEMORY = Gauge false "fairway_nginx_workers_resident_memory_bytes" ["state"]
        "Bytes of memory that they have in use; what they share counts for each of them.";
    PRESSURE = Gauge false "fairway_pressure" []
        "How hard the process is pressed for memory and file descriptors: 0 not at all, 1 high, 2 full.";
    REFUSED = Counter false "fairway_connections_refused_total" ["reason"]
        "Connections of clients that were closed at once: too many (bound), no file descriptors (descriptors), full pressure (pressure), no header of the PROXY protocol that can be read (proxy_header).";
    REFUSED_REQUESTS = Counter false "fairway_requests_refused_total" []
        "Requests that were answered 503 under full pressure.";
    UNREAD = Counter false "fairway_connections_ended_unread_total" []
        "Connections of clients that were ended under pressure, since they held much of their answers and took little, or announced bodies, or began a head, and sent no more.";
    ACCEPT_FAILURES = Counter false "fairway_accept_failures_total" []
        "Times that no connection could be accepted.";
    PANICS = Counter false "fairway_panics_total" []
        "Connections and streams that ended with a panic.";
    COPIES = Counter false "fairway_shadow_copies_total" ["decision"]
        "With --shadow: copies of requests, by what would have become of the originals: sent to an upstream, redirect, refusal (400 and more), or another answer of its own.";
    ROOM = Gauge false "fairway_room" ["of"]
        "How much there may be of something that has a bound: bytes or numbers, of the whole process.";
    ROOM_USED = Gauge false "fairway_room_used" ["of"]
        "How much of it there is; of passwords, how many wait of the namespace of which most do; of zones of snippets, the fullest.";
    ROOM_REFUSED = Counter false "fairway_room_refused_total" ["of"]
        "How often there was no room, nothing left of a namespace's share, or a disk that keeps nothing more.";
    EVENTS_DROPPED = Counter false "fairway_events_dropped_total" ["reason"]
        "Events that were not written: too many waited (queue), too many of one object (object) or of one namespace (namespace), or the API server did not take them (refused).";
    STREAM_SESSIONS = Counter false "fairway_stream_sessions_total" ["port", "protocol", "service"]
        "Connections of a TCP service or sessions of a UDP service that began.";
    STREAM_ACTIVE = Gauge false "fairway_stream_active_sessions" ["port", "protocol", "service"]
        "Those that have not ended.";
    STREAM_RECEIVED = Counter false "fairway_stream_received_bytes_total" ["port", "protocol", "service"]
        "Bytes that came from clients of the service.";
    STREAM_SENT = Counter false "fairway_stream_sent_bytes_total" ["port", "protocol", "service"]
        "Bytes that went to clients of the service.";
    LOG_DROPPED = Counter false "fairway_log_lines_dropped_total" ["log"]
        "Lines of the access log and of the error log, and messages of the process, that were dropped since what takes them is too slow, or full.";
    SPANS = Counter false "fairway_spans_total" ["outcome"]
        "Spans of traced requests: exported; dropped since too many waited; failed, since the collector refused them or was away at the end.";
    SERIES = Gauge false "fairway_metrics_request_series" []
        "Combinations of labels under which requests are counted.";
    SERIES_LIMIT = Gauge false "fairway_metrics_request_series_limit" []
        "How many there may be (--metrics-series-limit).";
    OVERFLOWED = Counter false "fairway_metrics_overflowed_requests_total" []
        "Requests that were counted under overflow since there are too many combinations of labels.";

    PROCESS_CPU = Counter false "process_cpu_seconds_total" []
        "Total user and system CPU time spent in seconds.";
    PROCESS_MAX_FDS = Gauge false "process_max_fds" []
        "Maximum number of open file descriptors.";
    PROCESS_OPEN_FDS = Gauge false "process_open_fds" []
        "Number of open file descriptors.";
    PROCESS_RESIDENT = Gauge false "process_resident_memory_bytes" []
        "Resident memory size in bytes.";
    PROCESS_VIRTUAL = Gauge false "process_virtual_memory_bytes" []
        "Virtual memory size in bytes.";
    PROCESS_STARTED = Gauge false "process_start_time_seconds" []
        "Start time of the process since unix epoch in seconds.";
    PROCESS_THREADS = Gauge false "process_threads" []
        "Threads of the process.";
    SCRAPES = Counter false "promhttp_metric_handler_requests_total" ["code"]
        "Total number of scrapes by HTTP status code.";
    SCRAPING = Gauge false "promhttp_metric_handler_requests_in_flight" []
        "Current number of scrapes being served.";
}

/// What is said of each measure of requests.
pub(crate) fn request_help(measure: request_metrics::Measure) -> &'static str {
    use request_metrics::Measure as M;
    match measure {
        M::Requests => "The total number of client requests.",
        M::RequestDuration => {
            "The time from the head of a request to the last byte of its answer, in seconds."
        }
        M::ConnectDuration => {
            "The time until the connection to the upstream stood, in seconds; 0 for a kept one."
        }
        M::HeaderDuration => {
            "The time until the head of the upstream's answer was there, in seconds."
        }
        M::ResponseDuration => "The time until the upstream's answer was over, in seconds.",
        M::RequestSize => "Bytes of a request: line, header and body.",
        M::ResponseSize => "Bytes sent to the client: head and body.",
        M::BytesSent => "DEPRECATED: the same as response_size, with other buckets.",
    }
}
