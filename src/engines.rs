//! The engine, made of what flags say about it.

use crate::flags::{self, EngineName, GeoIp, Listeners};
use crate::http_engine::{self, HttpEngine};
use crate::room::Room;
use anyhow::{Context, Result, ensure};
use model::Outside;
use nginx::Requests;
use proxy::{GeoFiles, Listen, Native, OtlpEnvironment};
use std::path::Path;
use std::sync::Arc;

/// Client connections at most, in percent of the file descriptors: each may need one more towards its upstream.
const CONNECTION_SHARE: u64 = 45;

/// How many connections are carried on as they are, out of those: a namespace has half of them, as many files as these
/// are percent.
const CARRIED_SHARE: u64 = 20;

/// Sockets of ports that Gateways and snippets ask for, in percent of the file descriptors.
const SOCKET_SHARE: u64 = 50;

/// The engine that `--engine` names.
pub(crate) fn start(
    listeners: &Listeners,
    room: Room,
    geoip: GeoIp,
    options: &translate::Options,
    metrics: &flags::Metrics,
) -> Result<HttpEngine> {
    let GeoIp { geoip_directory: directory, maxmind_edition_ids: editions } = geoip;
    if listeners.engine == EngineName::Nginx {
        ensure!(
            !listeners.shadow,
            "--shadow is for the native engine, which can think a request through without sending it: leave out --engine=nginx"
        );
        let settings = metrics.settings()?;
        let requests = settings.map(|all| Requests::new(all, metrics.monitor_max_batch_size));
        let nginx = http_engine::nginx(listeners, room, directory, options, requests)?;
        return Ok(HttpEngine::Nginx(Arc::new(nginx)));
    }
    let (collector, wrong) = OtlpEnvironment::read(|name| std::env::var(name).ok());
    wrong.iter().for_each(|wrong| tracing::warn!("{wrong}"));
    let native = Native::start(proxy::Options {
        listen: listen(listeners, options.outside.clone())?,
        threads: room.threads,
        fixed_threads: room.fixed,
        connections: (room.share(CONNECTION_SHARE) / room.threads).max(1),
        carried: room.share(CARRIED_SHARE).max(1),
        sockets: room.share(SOCKET_SHARE),
        descriptors: room.files,
        metrics: metrics.settings()?,
        geoip: GeoFiles { directory, editions },
        collector,
        shadow: listeners.shadow,
    })?;
    Ok(HttpEngine::Native(Arc::new(native)))
}

fn listen(listeners: &Listeners, outside: Outside) -> Result<Listen> {
    Ok(Listen {
        addresses: listeners.bind_address.clone(),
        http_port: listeners.http_port,
        https_port: listeners.https_port,
        health_path: listeners.health_check_path.clone(),
        outside,
        trace_secret: listeners.trace_secret_file.as_deref().map(trace_secret).transpose()?,
    })
}

/// The secret that asks for traces. One that can be guessed is none.
fn trace_secret(file: &Path) -> Result<Vec<u8>> {
    const LEAST: usize = 16;
    let text = std::fs::read(file)
        .with_context(|| format!("cannot read --trace-secret-file {}", file.display()))?;
    let secret = text.trim_ascii().to_vec();
    anyhow::ensure!(
        secret.len() >= LEAST,
        "--trace-secret-file {} holds {} bytes: put {LEAST} or more random letters there",
        file.display(),
        secret.len()
    );
    Ok(secret)
}
