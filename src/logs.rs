//! Logs follow the ConfigMap: where the engine's messages go, from which level on, and when files are opened again.

use crate::http_engine::HttpEngine;
use anyhow::{Context, Result};
use model::{ErrorLevel, LogTarget};
use nginx::Nginx;
use proxy::Native;
use runtime::{log, signal};
use std::sync::Arc;

/// What the engine says about requests goes where the ConfigMap says, at the level it says; files of logs are opened
/// again when a signal asks for it.
pub(crate) fn follow(engine: &HttpEngine, logs: log::Control) -> Result<()> {
    match engine {
        HttpEngine::Native(native) => of_native(native, logs),
        HttpEngine::Nginx(nginx) => of_nginx(nginx),
    }
}

/// nginx writes its logs itself.
fn of_nginx(nginx: &Arc<Nginx>) -> Result<()> {
    let nginx = nginx.clone();
    let control = tokio::runtime::Handle::current();
    let reopen = move || {
        let nginx = nginx.clone();
        drop(control.spawn(async move { nginx.reopen_logs().await }));
    };
    signal::on_reopen(reopen).context("cannot watch signals")?;
    Ok(())
}

fn of_native(engine: &Arc<Native>, logs: log::Control) -> Result<()> {
    let reopened = engine.clone();
    signal::on_reopen(move || reopened.reopen_logs()).context("cannot watch signals")?;
    let (engine, mut global) = (engine.clone(), engine.global());
    tokio::spawn(async move {
        while global.changed().await.is_ok() {
            let wanted = global.borrow_and_update().logs.clone();
            let engine = engine.clone();
            let line: log::Line =
                Arc::new(move |level, line| engine.log_error(severity(level), line));
            let elsewhere = wanted.error != LogTarget::Stderr;
            let level = wanted.error_level.map(filter);
            logs.follow("proxy", level, elsewhere.then_some(line));
        }
    });
    Ok(())
}

/// What nginx's levels are here: upstreams that fail are errors, what clients do wrong is for `info`.
fn filter(level: ErrorLevel) -> log::LevelFilter {
    match level {
        ErrorLevel::Critical => log::LevelFilter::OFF,
        ErrorLevel::Error => log::LevelFilter::ERROR,
        ErrorLevel::Warn => log::LevelFilter::WARN,
        ErrorLevel::Notice => log::LevelFilter::INFO,
        ErrorLevel::Info => log::LevelFilter::DEBUG,
        ErrorLevel::Debug => log::LevelFilter::TRACE,
    }
}

/// The severity of a level in syslog (RFC 3164 section 4.1.1).
fn severity(level: log::Level) -> u8 {
    match level {
        log::Level::ERROR => 3,
        log::Level::WARN => 4,
        log::Level::INFO => 5,
        log::Level::DEBUG => 6,
        log::Level::TRACE => 7,
    }
}
