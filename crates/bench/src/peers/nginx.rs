//! nginx, with the settings that ingress-nginx writes by default for a host with one path.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{GRPC, Ports, SECURE, SNIPPETS, Site};

/// Its parts that do not depend on the site.
const HTTP: &str = r#"
    aio threads;
    tcp_nopush on;
    tcp_nodelay on;
    log_subrequest on;
    reset_timedout_connection on;
    keepalive_timeout 75s;
    keepalive_requests 1000;
    client_header_buffer_size 1k;
    client_header_timeout 60s;
    large_client_header_buffers 4 8k;
    client_body_buffer_size 8k;
    client_body_timeout 60s;
    client_max_body_size 1m;
    http2_max_concurrent_streams 128;
    types_hash_max_size 2048;
    server_names_hash_max_size 65536;
    server_names_hash_bucket_size 64;
    variables_hash_bucket_size 256;
    variables_hash_max_size 2048;
    underscores_in_headers off;
    ignore_invalid_headers on;
    server_tokens off;
    port_in_redirect off;

    map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
    map $http_x_request_id $req_id { default $http_x_request_id; '' $request_id; }
    map $https $strict_transport_security { default ''; on 'max-age=31536000; includeSubDomains'; }
    add_header Strict-Transport-Security $strict_transport_security always;

    log_format upstreaminfo '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
        '"$http_referer" "$http_user_agent" $request_length $request_time [$proxy_upstream_name] '
        '[$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length '
        '$upstream_response_time $upstream_status $req_id';
    access_log /dev/stdout upstreaminfo;

    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_early_data off;
    ssl_session_cache shared:SSL:10m;
    ssl_session_timeout 10m;
    ssl_session_tickets off;
    ssl_buffer_size 4k;
    ssl_ecdh_curve auto;
    ssl_prefer_server_ciphers on;
    ssl_ciphers 'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305';
"#;

/// What ingress-nginx tells the upstream; `grpc` has the same by another name.
const FORWARD: &str = r#"
        set $proxy_upstream_name "bench-upstream-80";
        set $proxy_alternative_upstream_name "";
        KIND_set_header Host $http_host;
        KIND_set_header Upgrade $http_upgrade;
        KIND_set_header Connection $connection_upgrade;
        KIND_set_header X-Request-ID $req_id;
        KIND_set_header X-Real-IP $remote_addr;
        KIND_set_header X-Forwarded-For $remote_addr;
        KIND_set_header X-Forwarded-Host $http_host;
        KIND_set_header X-Forwarded-Port $server_port;
        KIND_set_header X-Forwarded-Proto $scheme;
        KIND_set_header X-Forwarded-Scheme $scheme;
        KIND_set_header X-Scheme $scheme;
        KIND_set_header X-Original-Forwarded-For $http_x_forwarded_for;
        KIND_set_header Proxy "";
        KIND_connect_timeout 5s;
        KIND_send_timeout 60s;
        KIND_read_timeout 60s;
        KIND_next_upstream error timeout;
        KIND_next_upstream_timeout 0;
        KIND_next_upstream_tries 3;
        KIND_hide_header Server;
"#;

const FORWARD_HTTP: &str = r"
        proxy_buffering off;
        proxy_buffer_size 4k;
        proxy_buffers 4 4k;
        proxy_max_temp_file_size 1024m;
        proxy_request_buffering on;
        proxy_http_version 1.1;
        proxy_cookie_domain off;
        proxy_cookie_path off;
        proxy_redirect off;
        proxy_pass http://upstream;
";

/// Where Debian has its modules.
const MODULES: &str = "/usr/lib/nginx/modules";

/// Writes its configuration and says how it is started.
pub(super) fn command(site: &Site<'_>, folder: &Path, ports: Ports) -> Result<Vec<String>> {
    let file = folder.join("nginx.conf");
    fs::write(&file, configuration(site, folder, ports)).context("write nginx.conf")?;
    let text = |path: &Path| path.display().to_string();
    Ok(["nginx", "-e", "stderr", "-p", &text(folder), "-c", &text(&file)].map(str::to_owned).into())
}

fn configuration(site: &Site<'_>, folder: &Path, ports: Ports) -> String {
    let folder = folder.display();
    let mut text = format!(
        "load_module {MODULES}/ngx_http_headers_more_filter_module.so;\ndaemon off;\nuser root;\nworker_processes 1;\nworker_rlimit_nofile 20000;\n\
         pid {folder}/nginx.pid;\nerror_log stderr notice;\n\
         events {{ multi_accept on; worker_connections 16384; use epoll; }}\n\
         http {{{HTTP}"
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        text += &format!("    {kind}_temp_path {folder}/{kind};\n");
    }
    for (name, address) in [("upstream", site.http), ("upstream_grpc", site.grpc)] {
        text += &format!(
            "    upstream {name} {{\n        server {address};\n        keepalive 320;\n        \
             keepalive_time 1h;\n        keepalive_timeout 60s;\n        \
             keepalive_requests 10000;\n    }}\n"
        );
    }
    let Ports { http, https, .. } = ports;
    let plain = format!("listen 127.0.0.1:{http} backlog=511;");
    let secure = format!(
        "{}\n    listen 127.0.0.1:{https} ssl http2 backlog=511;\n    ssl_certificate {};\n    \
         ssl_certificate_key {};",
        plain.replace(" backlog=511", ""),
        site.certificate.chain_file.display(),
        site.certificate.key_file.display()
    );
    text += &server("_", &plain.replace(" backlog", " default_server backlog"), "return 404;");
    let to_http = FORWARD.replace("KIND", "proxy") + FORWARD_HTTP;
    let to_grpc = FORWARD.replace("KIND", "grpc") + "        grpc_pass grpc://upstream_grpc;\n";
    text += &server(SECURE, &secure, &to_http);
    text += &server(GRPC, &secure.replace(" backlog=511", ""), &to_grpc);
    for snippet in SNIPPETS {
        let location = format!("{}{to_http}", snippet.text);
        text += &server(snippet.host, &plain.replace(" backlog=511", ""), &location);
    }
    for host in &site.hosts {
        text += &server(host, &plain.replace(" backlog=511", ""), &to_http);
    }
    text + "}\n"
}

fn server(name: &str, listen: &str, location: &str) -> String {
    format!(
        "server {{\n    server_name {name};\n    {listen}\n    location / {{ {location} }}\n}}\n"
    )
}
