//! How a client's connection is read, and which pages it may come from.

use super::Regex;
use super::inherit::settings;
use serde::Serialize;
use std::time::Duration;

settings! {
    /// What is taken from clients.
    pub struct Client {
        /// `client_max_body_size`, 0 for no bound.
        pub max_body_size: Option<u64>,
        /// `client_body_buffer_size`
        pub body_buffer_size: Option<u64>,
        /// `client_body_timeout`
        pub body_timeout: Option<Duration>,
        /// `client_header_timeout`
        pub header_timeout: Option<Duration>,
        /// `client_header_buffer_size`
        pub header_buffer_size: Option<u64>,
        /// `large_client_header_buffers`: how many of which size.
        pub large_header_buffers: Option<(u32, u64)>,
        /// `keepalive_timeout`
        pub keepalive_timeout: Option<Duration>,
        /// `keepalive_requests`
        pub keepalive_requests: Option<u32>,
        /// `keepalive_time`
        pub keepalive_time: Option<Duration>,
        /// `send_timeout`
        pub send_timeout: Option<Duration>,
        /// `underscores_in_headers`
        pub underscores_in_headers: Option<bool>,
        /// `ignore_invalid_headers`
        pub ignore_invalid_headers: Option<bool>,
        /// `merge_slashes`
        pub merge_slashes: Option<bool>,
        /// `http2`
        pub http2: Option<bool>,
        /// `ssl_ciphers`
        pub ssl_ciphers: Option<String>,
        /// `ssl_protocols`
        pub ssl_protocols: Option<Vec<String>>,
        /// `ssl_prefer_server_ciphers`
        pub ssl_prefer_server_ciphers: Option<bool>,
    }
}

/// `valid_referers`: what `$invalid_referer` is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Referers {
    /// `none`: no Referer is valid.
    pub none: bool,
    /// `blocked`: one without a scheme is valid.
    pub blocked: bool,
    /// `server_names`: names of the server are valid.
    pub server_names: bool,
    /// Hosts, `*.` or `.*` at an end, in lower case, with the beginning of a path.
    pub hosts: Vec<String>,
    /// Expressions for what follows the scheme.
    pub patterns: Vec<Regex>,
}
