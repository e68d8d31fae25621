//! HAProxy, told to do what ingress-nginx does by default: the same headers, log line and keep-alive.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{GRPC, Ports, SECURE, Site};

const GLOBAL: &str = r"global
    nbthread 1
    log stdout format raw local0 info
    ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets
    ssl-default-bind-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384
    tune.h2.max-concurrent-streams 128
";

const DEFAULTS: &str = r#"
defaults
    mode http
    log global
    log-format '%ci - - [%T] "%HM %HU %HV" %ST %B "-" "%[capture.req.hdr(0)]" %U %Ta [%b] [] %si:%sp %B %Tr %ST %ID'
    option http-keep-alive
    option http-buffer-request
    http-reuse always
    retries 2
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout http-request 60s
    timeout http-keep-alive 75s
    timeout tunnel 1h
"#;

const FRONT: &str = r"
    unique-id-format %[uuid()]
    unique-id-header X-Request-ID
    http-request capture req.hdr(user-agent) len 64
    http-request set-header X-Original-Forwarded-For %[req.hdr(x-forwarded-for)] if { req.hdr(x-forwarded-for) -m found }
    http-request set-header X-Real-IP %[src]
    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    http-request set-header X-Forwarded-Port %[dst_port]
    http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]
    http-request set-header X-Forwarded-Scheme %[ssl_fc,iif(https,http)]
    http-request set-header X-Scheme %[ssl_fc,iif(https,http)]
    http-request del-header Proxy
    http-response del-header Server
    http-response set-header Strict-Transport-Security 'max-age=31536000; includeSubDomains' if { ssl_fc }
";

/// Writes its configuration and says how it is started.
pub(super) fn command(site: &Site<'_>, folder: &Path, ports: Ports) -> Result<Vec<String>> {
    let map = folder.join("hosts.map");
    let mut hosts = format!("{SECURE} upstream\n{GRPC} upstream_grpc\n");
    for host in &site.hosts {
        hosts += &format!("{host} upstream\n");
    }
    fs::write(&map, hosts).context("write the map of hosts")?;
    let Ports { http, https, .. } = ports;
    let text = format!(
        "{GLOBAL}{DEFAULTS}\nfrontend front\n    bind 127.0.0.1:{http} backlog 511\n    \
         bind 127.0.0.1:{https} backlog 511 ssl crt {} alpn h2,http/1.1\n{FRONT}    \
         use_backend %[req.hdr(host),field(1,:),lower,map_str({},none)]\n\n\
         backend upstream\n    server one {} pool-max-conn 320 pool-purge-delay 60s\n\n\
         backend upstream_grpc\n    server one {} proto h2 pool-max-conn 320\n\n\
         backend none\n    http-request deny deny_status 404\n",
        site.certificate.both_file.display(),
        map.display(),
        site.http,
        site.grpc
    );
    let file = folder.join("haproxy.cfg");
    fs::write(&file, text).context("write haproxy.cfg")?;
    Ok(["haproxy", "-db", "-f", &file.display().to_string()].map(str::to_owned).into())
}
