//! How an upstream is spoken to: the same settings for HTTP, gRPC and FastCGI.

use super::inherit::settings;
use crate::Pattern;
use std::time::Duration;

settings! {
    /// Time-outs, sizes and retries of one protocol.
    pub struct Transfer {
        /// `*_connect_timeout`
        pub connect_timeout: Option<Duration>,
        /// `*_read_timeout`
        pub read_timeout: Option<Duration>,
        /// `*_send_timeout`
        pub send_timeout: Option<Duration>,
        /// `*_next_upstream`: the words, `off` alone among them.
        pub next_upstream: Option<Vec<String>>,
        /// `*_next_upstream_tries`, 0 for no bound.
        pub next_upstream_tries: Option<u32>,
        /// `*_next_upstream_timeout`, 0 for no bound.
        pub next_upstream_timeout: Option<Duration>,
        /// `*_buffering`
        pub buffering: Option<bool>,
        /// `*_request_buffering`
        pub request_buffering: Option<bool>,
        /// `*_buffer_size`
        pub buffer_size: Option<u64>,
        /// `*_buffers`: how many of which size.
        pub buffers: Option<(u32, u64)>,
        /// `*_limit_rate`: bytes in a second that are read, 0 for no bound.
        pub limit_rate: Option<u64>,
        /// `*_http_version`: whether 1.1.
        pub http_1_1: Option<bool>,
        /// `*_method`
        pub method: Option<super::Template>,
        /// `*_pass_request_body`
        pub pass_request_body: Option<bool>,
        /// `*_pass_request_headers`
        pub pass_request_headers: Option<bool>,
        /// `*_set_body`
        pub set_body: Option<super::Template>,
        /// `*_intercept_errors`
        pub intercept_errors: Option<bool>,
        /// `*_ignore_client_abort`
        pub ignore_client_abort: Option<bool>,
        /// `*_force_ranges`
        pub force_ranges: Option<bool>,
        /// `*_socket_keepalive`
        pub socket_keepalive: Option<bool>,
        /// `*_hide_header`, in lower case.
        pub hide_headers: Vec<String>,
        /// `*_pass_header`, in lower case: shown although it is hidden by default.
        pub pass_headers: Vec<String>,
        /// `*_ignore_headers`, in lower case.
        pub ignore_headers: Option<Vec<String>>,
        /// How TLS is spoken with it.
        pub tls: UpstreamTls,
        /// `fastcgi_index`
        pub index: Option<String>,
        /// `fastcgi_split_path_info`
        pub split_path_info: Option<Pattern>,
    }

    /// TLS towards upstreams.
    pub struct UpstreamTls {
        /// `*_ssl_server_name`
        pub server_name: Option<bool>,
        /// `*_ssl_name`
        pub name: Option<super::Template>,
        /// `*_ssl_verify`
        pub verify: Option<bool>,
        /// `*_ssl_verify_depth`
        pub verify_depth: Option<u32>,
        /// `*_ssl_protocols`
        pub protocols: Option<Vec<String>>,
        /// `*_ssl_ciphers`
        pub ciphers: Option<String>,
        /// `*_ssl_session_reuse`
        pub session_reuse: Option<bool>,
    }
}
