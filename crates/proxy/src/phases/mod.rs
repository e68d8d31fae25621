//! The life of a request, one file per phase, in the order nginx runs its own phases.

pub(crate) mod access;
pub(crate) mod access_log;
mod alike;
mod answer_rewrites;
mod auth_basic;
mod auth_external;
mod block;
pub(crate) mod choose_backend;
pub(crate) mod client_address;
pub(crate) mod client_certificate;
mod client_fields;
mod compression;
pub(crate) mod cors;
mod effects;
mod error_page;
pub(crate) mod errors;
mod failed;
pub(crate) mod fastcgi;
mod find_location;
mod finish;
mod forward;
mod grpc_status;
mod headers;
mod hops;
mod limit_rate;
mod limits;
pub(crate) mod mirror;
pub(crate) mod opentelemetry;
mod pass;
pub(crate) mod program;
mod read_body;
mod redirects;
pub(crate) mod request_headers;
mod rewrite;
mod route_filters;
mod routes;
pub(crate) mod sessions;
mod stop;
mod way_in;
pub(crate) mod x_accel;

use crate::exchange::Exchange;
use crate::trace::{self, Phase};
use crate::variables;
use error_page::Begin;
use failed::response_of;
use http::StatusCode;
use wire::Response;

pub(crate) use failed::too_long;
pub(crate) use finish::{finish, refused};
pub(crate) use stop::Stop;

/// The life of a request, top to bottom.
pub(crate) async fn serve(exchange: &mut Exchange) -> Response {
    trace::begin(exchange);
    client_address::find(exchange); // post-read
    let mut response = match answer(exchange, Begin::Path).await {
        Ok(response) => response,
        Err(stop) => response_of(exchange, stop),
    };
    if let Err(error) = variables::fit(exchange) {
        exchange.texts.begin_again();
        response = response_of(exchange, error.into());
    }
    if response.status == StatusCode::UNAUTHORIZED {
        auth_external::instead_of_applications(exchange, &mut response);
    }
    if exchange.snippet.is_some() {
        if let Some(begin) = error_page::follow(exchange, &mut response) {
            // Boxed, so that other requests do not carry the room for it.
            Box::pin(led_on(exchange, &mut response, begin)).await;
        }
        error_page::show(exchange, &mut response);
    }
    if errors::has_page(exchange, &response) {
        // Boxed, too.
        Box::pin(errors::replace(exchange, &mut response)).await;
    }
    filter(exchange, &mut response);
    response
}

/// Makes the answer what the client gets.
fn filter(exchange: &mut Exchange, response: &mut Response) {
    grpc_status::tell(exchange, response);
    let watch = headers::watch(exchange);
    let rate = headers::filter(exchange, response, watch);
    if let Err(error) = variables::fit(exchange) {
        *response = failed::answer_error(exchange, &error);
    }
    route_filters::answer(exchange, response);
    if route_filters::is_of_gateway(exchange) {
        sessions::tell(exchange, response);
    }
    effects::body(exchange, response);
    effects::keep_connection(exchange, response);
    compression::filter(exchange, response);
    trace::end(exchange, response);
    headers::keep(exchange, response, watch);
    let pace = limit_rate::pace(exchange, rate.as_deref());
    limits::hold(exchange, response, pace);
}

/// Follows `error_page`s of snippets, each through every guard of where it leads.
async fn led_on(exchange: &mut Exchange, response: &mut Response, first: Begin) {
    let mut leads = Some(first);
    while let Some(begin) = leads {
        let next = answer(exchange, begin).await;
        let mut next = next.unwrap_or_else(|stop| response_of(exchange, stop));
        error_page::keep(response, &mut next);
        *response = next;
        leads = error_page::follow(exchange, response);
    }
}

/// The answer, wherever upstreams send the request on to. Most phases never wait, and are plain functions.
async fn answer(exchange: &mut Exchange, mut begin: Begin) -> Result<Response, Stop> {
    loop {
        match begin {
            Begin::Path => find(exchange)?,
            Begin::Here => error_page::enter(exchange)?,
        }
        arrive(exchange)?;
        if let Some(place) = limits::place_of_snippets(exchange) {
            Box::pin(limits::of_snippets(exchange, place)).await?;
        }
        exchange.enter(Phase::Access);
        if let Some(decision) = access::begin(exchange)? {
            Box::pin(access::go_on(exchange, decision)).await?; // access
        }
        if let Err(stop) = forward::has_backend(exchange) {
            return Err(Box::pin(mirror::before_default_backend(exchange, stop)).await);
        }
        exchange.enter(Phase::Body);
        mirror::draw(exchange);
        if !exchange.request.body.is_empty() {
            Box::pin(read_body::whole(exchange)).await?; // content
        }
        exchange.enter(Phase::Upstream);
        mirror::copy(exchange);
        choose_backend::decide(exchange)?;
        variables::fit(exchange)?;
        let mut answer = forward::send(exchange).await?;
        match x_accel::follow(exchange, &mut answer)? {
            Some(next) => begin = next,
            None => return Ok(answer),
        }
    }
}

/// The choice of the location; it may begin anew with another path.
fn find(exchange: &mut Exchange) -> Result<(), Stop> {
    exchange.enter(Phase::Blocks);
    block::headers(exchange)?; // server-rewrite
    exchange.enter(Phase::Location);
    let found = find_location::choose(exchange); // find-config
    opentelemetry::begin(exchange);
    found
}

/// The life of a request at its location, up to the first guard that may wait.
fn arrive(exchange: &mut Exchange) -> Result<(), Stop> {
    loop {
        exchange.enter(Phase::Preflight);
        cors::preflight(exchange)?; // rewrite
        exchange.enter(Phase::Redirect);
        route_filters::redirect(exchange)?;
        if exchange.snippet.is_none() {
            redirects::configured(exchange)?;
            exchange.enter(Phase::Rewrite);
            break rewrite::path(exchange)?;
        }
        exchange.enter(Phase::Rewrite);
        if program::of_location(exchange)? {
            break;
        }
        exchange.enter(Phase::Location);
        find_location::again(exchange)?;
    }
    access_log::note_rewrite(exchange);
    exchange.enter(Phase::HttpsRedirect);
    redirects::to_https(exchange)?;
    client_certificate::over_tls(exchange)?;
    exchange.enter(Phase::Endpoints);
    forward::has_endpoints(exchange)?;
    effects::request(exchange)?;
    client_address::of_location(exchange);
    exchange.enter(Phase::Limits);
    limits::check(exchange) // preaccess
}
