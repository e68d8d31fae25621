//! The admin server and its pages; and the port for profiles, where one is asked for.

use crate::configuration;
use crate::flags::{Listeners, Profiling};
use crate::http_engine::HttpEngine;
use anyhow::Result;
use console::Console;
use controller::status::{SHOWN, Shown};
use exposition::Metrics;
use runtime::admin::{Admin, Bound, Page};
use runtime::{Ready, Shutdown, Token, profile};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Starts both; the address of the admin server.
pub(crate) fn start(
    listeners: &Listeners,
    profiling: &Profiling,
    (ready, shutdown): (Ready, &Shutdown),
    engine: &Arc<HttpEngine>,
    metrics: &Arc<Metrics>,
    console: &Arc<Console>,
) -> Result<SocketAddr> {
    let token = listeners.admin_token_file.clone().map(Token::new).transpose()?;
    let (served, serving, presenting) = (engine.clone(), engine.clone(), engine.clone());
    let ailment = move || serving.ailment();
    let path = &listeners.health_check_path;
    let admin = Admin::with_check(path, ready, shutdown.clone(), ailment)
        .near("/configuration", move |_| {
            std::future::ready(configuration::page(served.configuration()))
        })
        .near("/certificate", move |host| certificate(&presenting, host))
        .asked(SHOWN, shown(metrics.clone()))
        .later("/metrics", {
            let metrics = metrics.clone();
            move || metrics.clone().page()
        });
    let admin = if profiling.is_on() { profile::pages(admin) } else { admin };
    let admin = console.pages(admin, token.is_some()).with_token(token);
    let address = SocketAddr::new(listeners.healthz_host, listeners.healthz_port);
    let bound = admin.bind(address, "--healthz-port")?;
    let address = bound.address();
    serve(bound, "the admin server");
    if let Some(at) = profiling.listener() {
        let bound = profile::pages(Admin::default()).open_to_all().bind(at, "--profiler-port")?;
        tracing::info!(address = %bound.address(), "profiles can be taken");
        serve(bound, "the server for profiles");
    }
    Ok(address)
}

/// A page that takes its time.
type Told = Pin<Box<dyn Future<Output = Page> + Send>>;

/// Which statuses are of what is served here, for the replica that leads. It is asked without a token, as numbers tell
/// nothing.
fn shown(metrics: Arc<Metrics>) -> impl Fn(&str) -> Told + Send + Sync {
    let shown = Arc::<Shown>::default();
    move |question| {
        let known = metrics.known().unwrap_or_default();
        let (shown, question) = (shown.clone(), question.to_owned());
        Box::pin(async move {
            // Of very many objects the first answer takes a while, and probes are answered on this thread.
            let answer = spawn_blocking(move || shown.answer(&known, &question)).await;
            Page::of_type("text/plain; charset=utf-8", answer.unwrap_or_default())
        })
    }
}

/// The chain that clients of a host are given.
fn certificate(engine: &HttpEngine, host: &str) -> std::future::Ready<Page> {
    std::future::ready(match configuration::certificate(engine, host) {
        Ok(chain) => Page::bytes(chain),
        Err(reason) => Page::missing(&reason),
    })
}

fn serve(bound: Bound, what: &'static str) {
    tokio::spawn(async move {
        let Err(error) = bound.serve().await;
        tracing::error!(%error, "{what} has stopped");
    });
}
