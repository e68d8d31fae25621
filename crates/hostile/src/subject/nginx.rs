//! A configuration for a plain nginx, close to what ingress-nginx writes, to compare and to check the judge with.

use super::Setup;
use anyhow::Result;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(super) fn write(
    folder: &Path,
    setup: &Setup,
    upstream: SocketAddr,
    (http, https): (u16, u16),
) -> Result<PathBuf> {
    let pair = rcgen::generate_simple_self_signed(vec!["a".to_owned()])?;
    std::fs::write(folder.join("cert.pem"), pair.cert.pem())?;
    std::fs::write(folder.join("key.pem"), pair.signing_key.serialize_pem())?;
    let folder_name = folder.display();
    let buffering = if setup.streaming { "off" } else { "on" };
    let timeouts: String = setup
        .configuration
        .iter()
        .filter(|(key, _)| key.starts_with("client-") && key.ends_with("-timeout"))
        .map(|(key, value)| format!("  {} {value}s;\n", key.replace('-', "_")))
        .collect();
    let text = format!(
        "daemon off; master_process off; worker_processes 1; pid {folder_name}/pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{
  access_log off;
{timeouts}
  upstream strict {{ server {upstream}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{http};
    listen 127.0.0.1:{https} ssl http2;
    ssl_certificate {folder_name}/cert.pem;
    ssl_certificate_key {folder_name}/key.pem;
    server_name _;
    location / {{
      proxy_pass http://strict;
      proxy_http_version 1.1;
      proxy_request_buffering {buffering};
      proxy_set_header Connection \"\";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
}}
"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, text)?;
    Ok(file)
}
