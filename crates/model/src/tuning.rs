//! How nginx itself is set up: sizes and switches that nothing but the nginx engine has a use for.

use ipnet::IpNet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the ConfigMap says about nginx itself; where it says nothing, the engine computes it or has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tuning {
    /// `max-worker-open-files`: file descriptors of a worker.
    pub open_files: Option<u64>,
    /// `max-worker-connections: 0`: three quarters of the open files.
    pub connections_by_files: bool,
    /// `worker-cpu-affinity`: `auto`, or a mask for each worker.
    pub affinity: Vec<String>,
    /// `enable-multi-accept`.
    pub multi_accept: Option<bool>,
    /// `debug-connections`.
    pub debug: Vec<IpNet>,
    /// `reuse-port`: each worker has sockets of its own; they do not unless it is said.
    pub reuse_port: Option<bool>,
    /// `enable-aio-write`.
    pub aio_write: Option<bool>,
    /// `disable-ipv6-dns`.
    pub only_ipv4_names: Option<bool>,
    /// `grpc-buffer-size-kb`, in bytes.
    pub grpc_buffer: Option<usize>,
    /// `access-log-params`: more parameters of `access_log`.
    pub access_log: Vec<String>,
    /// `geoip2-autoreload-in-minutes`.
    pub geoip_reload: Option<Duration>,
    /// `lua-shared-dicts`: those of raw configuration, in bytes.
    pub shared_dicts: BTreeMap<String, u64>,
    /// Sizes of hashes.
    pub hashes: Hashes,
}

/// Sizes of nginx's hashes. What is too small for what has to fit in is raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hashes {
    /// `server-name-hash-bucket-size`.
    pub names_bucket: Option<u32>,
    /// `server-name-hash-max-size`.
    pub names: Option<u32>,
    /// `map-hash-bucket-size`.
    pub map_bucket: Option<u32>,
    /// `variables-hash-bucket-size`.
    pub variables_bucket: Option<u32>,
    /// `variables-hash-max-size`.
    pub variables: Option<u32>,
    /// `proxy-headers-hash-bucket-size`.
    pub headers_bucket: Option<u32>,
    /// `proxy-headers-hash-max-size`.
    pub headers: Option<u32>,
}
