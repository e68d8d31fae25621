//! The life of a request, one file per phase, in the order nginx runs its own phases.

mod access;
pub mod access_log;
mod answer_rewrites;
mod auth_basic;
mod auth_external;
pub(crate) mod choose_backend;
mod client_address;
pub(crate) mod client_certificate;
mod compression;
pub(crate) mod cors;
pub(crate) mod fastcgi;
mod find_location;
mod forward;
mod headers;
mod read_body;
mod redirects;
mod request_headers;
mod rewrite;

use crate::error::Error;
use crate::exchange::Exchange;
use crate::http::Response;

/// Why a phase ends the request: it has an answer, or it failed.
#[derive(Debug)]
pub enum Stop {
    /// This is the answer.
    Answer(Box<Response>),
    /// There is none; [`Error::status`] says what the client is told.
    Fail(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

impl From<Response> for Stop {
    fn from(response: Response) -> Self {
        Self::Answer(Box::new(response))
    }
}

/// The life of a request, top to bottom.
pub async fn serve(exchange: &mut Exchange) -> Response {
    let response = match request(exchange).await {
        Ok(response) => response,
        Err(Stop::Answer(response)) => *response,
        Err(Stop::Fail(error)) => answer_error(exchange, &error),
    };
    let mut response = headers::filter(exchange, response);
    choose_backend::tell(exchange, &mut response);
    compression::filter(exchange, response)
}

async fn request(exchange: &mut Exchange) -> Result<Response, Stop> {
    client_address::find(exchange); // post-read
    find_location::choose(exchange)?; // find-config
    cors::preflight(exchange)?; // rewrite
    rewrite::path(exchange)?;
    redirects::to_https(exchange)?;
    client_certificate::over_tls(exchange)?;
    forward::has_endpoints(exchange)?;
    access::control(exchange).await?; // access
    forward::has_backend(exchange)?;
    read_body::whole(exchange).await?; // content
    choose_backend::decide(exchange);
    forward::send(exchange).await
}

/// The only place where an error becomes an answer.
fn answer_error(exchange: &Exchange, error: &Error) -> Response {
    let mut response = Response::page(error.status());
    response.close = error.closes();
    log_error(exchange, error);
    response
}

/// The error log's line: what went wrong for which request of whom.
fn log_error(exchange: &Exchange, error: &Error) {
    let client = exchange.client;
    let host = exchange.host.as_str();
    let request = String::from_utf8_lossy(&exchange.request.target);
    let upstream =
        exchange.log.tries.last().map(|last| last.address.to_string()).unwrap_or_default();
    match error.level() {
        tracing::Level::ERROR => tracing::error!(%client, host, %request, upstream, "{error}"),
        tracing::Level::WARN => tracing::warn!(%client, host, %request, upstream, "{error}"),
        _ => tracing::debug!(%client, host, %request, upstream, "{error}"),
    }
}
