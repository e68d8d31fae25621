//! `error_page` of snippets: an answer that was made here, or that is intercepted, leads on to a named location, to
//! another path through every guard, or away (ngx_http_special_response.c).

use super::failed::answer_error;
use super::{Stop, client_address, errors, find_location, headers, program, rewrite};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::generation::ErrorPages;
use crate::snippet::{bytes_of, on_machine};
use http::StatusCode;
use model::snippet::{ErrorCode, ErrorPage, ErrorTarget, Template};
use wire::{Body, Response, Source};

/// Where a request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With its path.
    Path,
    /// At a location that is named.
    Here,
}

/// Where an answer leads on to. None where it stays, or has become the final one.
pub(super) fn follow(exchange: &mut Exchange, response: &mut Response) -> Option<Begin> {
    let status = response.status.as_u16();
    let Some(page) = page_for(exchange, response)? else {
        *response = final_page(exchange, response);
        return None;
    };
    let shown = match page.code {
        // nginx's own statuses are bad requests to clients (ngx_http_core_error_page).
        ErrorCode::Same if matches!(status, 494..=497) => Some(400),
        ErrorCode::Same => Some(status),
        ErrorCode::OfTarget => None,
        ErrorCode::Code(code) => Some(code),
    };
    // `$status` from here on (nginx: err_status).
    exchange.log.status = shown.unwrap_or(0);
    let running = exchange.snippet.as_mut()?;
    running.state.led_by.clone_from(&page.owner);
    running.shown = shown;
    running.said = false;
    // nginx keeps no connection after these.
    running.close |= response.close || matches!(status, 400 | 413 | 414 | 500 | 501);
    // What came of a body that broke off, or is too large, is nobody's.
    if response.close || matches!(status, 400 | 413 | 414) {
        exchange.release_body();
    }
    let next = match &page.target {
        ErrorTarget::Named(name) => named(exchange, name).map(|()| Some(Begin::Here)),
        ErrorTarget::Path(path) => inside(exchange, path).map(|()| Some(Begin::Path)),
        ErrorTarget::Url(url) => by_value(exchange, url, shown, response),
    };
    match next {
        Ok(next) => {
            if next.is_some() {
                headers::keep_upstreams(exchange, response);
                // Its tries are others than those that led here.
                exchange.onward.tries.push(exchange.log.tries.len());
                // Its upstream is let go of before another one is asked.
                response.body = Body::empty();
                exchange.replaces_answers();
            }
            next
        }
        Err(error) => {
            *response = answer_error(exchange, &error);
            None
        }
    }
}

/// The page of a status whose `error_page` may not be followed, or is none of nginx's own: those are bad requests.
fn final_page(exchange: &mut Exchange, before: &Response) -> Response {
    let status = match before.status.as_u16() {
        494..=497 => StatusCode::BAD_REQUEST,
        _ => before.status,
    };
    let mut response = program::page(status);
    response.close = before.close;
    for challenge in errors::challenges(before) {
        response.headers.add("WWW-Authenticate", challenge);
    }
    exchange.log.status = status.as_u16();
    if let Some(running) = &mut exchange.snippet {
        running.shown = None;
    }
    response
}

/// The `error_page` for an answer that is to be replaced; none where it is replaced by its own page.
fn page_for(exchange: &mut Exchange, response: &Response) -> Option<Option<ErrorPage>> {
    let settings = &exchange.level()?.settings;
    let answers = &settings.answers;
    let status = response.status.as_u16();
    let is_own = response.source == Source::Own && !is_default(exchange, response);
    let said = exchange.snippet.as_ref().is_some_and(|running| running.said);
    // What it is by no `error_page`.
    let own = (is_own && !said && matches!(status, 494..=497)).then_some(None);
    if answers.error_pages.is_empty() || status < 300 {
        return own;
    }
    let recursive = answers.recursive_error_pages == Some(true);
    let may_be = match response.source {
        Source::Own if is_default(exchange, response) => errors::intercepts(exchange),
        Source::Own => !said,
        Source::Upstream => errors::intercepts(exchange),
    };
    // Those of the ConfigMap stand before those of an http-snippet, those of an annotation behind those of a location.
    let before = |pages: &ErrorPages| pages.errors.of_all;
    if !may_be || errors::pages(exchange, exchange.spot(), response).is_some_and(before) {
        return None;
    }
    let page = answers.error_pages.iter().find(|page| page.statuses.contains(&status)).cloned();
    let running = exchange.snippet.as_mut()?;
    let again = running.paged;
    running.paged |= !recursive;
    match page {
        Some(page) if !again => Some(Some(page)),
        Some(_) if !is_own => Some(None),
        Some(_) | None => own,
    }
}

/// Whether it is the 404 of the default backend, which ingress-nginx asks itself for over HTTP
/// (compat/behaviour.md section 6).
fn is_default(exchange: &Exchange, response: &Response) -> bool {
    exchange.visit.by_default_backend && response.status == StatusCode::NOT_FOUND
}

/// Goes to a named location (ngx_http_named_location).
pub(super) fn named(exchange: &mut Exchange, name: &str) -> Result<(), Error> {
    let running = exchange.snippet.as_mut();
    let may = running.is_some_and(|running| running.state.search_again());
    let leader = exchange.snippet.as_ref().and_then(|running| running.state.led_by.as_ref());
    let site = exchange.place.as_ref().map(|place| place.site.clone());
    let index = site.as_ref().and_then(|site| site.snippet.as_ref()?.named.get(name).copied());
    // For whom it is not there, it is as if it were not there at all.
    let index = index.filter(|index| {
        let level = site.as_ref().and_then(|site| site.spots[*index].extras().snippet.as_ref());
        level.is_some_and(|level| level.is_open_to(leader))
    });
    match (site, index) {
        (Some(site), Some(index)) if may => {
            exchange.leave_location();
            client_address::forget(exchange);
            exchange.place = Some(Place::new(site, index));
            Ok(())
        }
        _ => Err(Error::LedNowhere(name.to_owned())),
    }
}

/// Goes to another path of the host, as GET (ngx_http_internal_redirect).
fn inside(exchange: &mut Exchange, path: &Template) -> Result<(), Error> {
    let text = on_machine(exchange, |machine| machine.expand(path))?.unwrap_or_default();
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text.as_str(), None),
    };
    let running = exchange.snippet.as_mut();
    if !running.is_some_and(|running| running.state.search_again()) || !path.starts_with('/') {
        return Err(Error::LedNowhere(text));
    }
    let path = rewrite::resolved(&route::path::bytes(path))?;
    let query = query.map(|query| crate::variables::in_header(&route::path::bytes(query)));
    let target =
        rewrite::with_query(route::path::encode(&path).into_owned().into_bytes(), query.as_deref());
    exchange.lead_to(target);
    client_address::forget(exchange);
    Ok(())
}

/// Where a target leads that begins with no slash as it is written: a variable may bring a path or a name
/// (ngx_http_send_error_page).
fn by_value(
    exchange: &mut Exchange,
    target: &Template,
    shown: Option<u16>,
    response: &mut Response,
) -> Result<Option<Begin>, Error> {
    let text = on_machine(exchange, |machine| machine.expand_header(target))?.unwrap_or_default();
    match text.as_bytes().first() {
        Some(b'/') => inside(exchange, target).map(|()| Some(Begin::Path)),
        Some(b'@') => named(exchange, &text).map(|()| Some(Begin::Here)),
        Some(_) | None => {
            *response = away(text, shown);
            Ok(None)
        }
    }
}

/// Sends the client elsewhere.
fn away(location: String, shown: Option<u16>) -> Response {
    let status = shown.filter(|status| matches!(status, 301 | 302 | 303 | 307 | 308));
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    Response::redirect(status.unwrap_or(StatusCode::FOUND), bytes_of(location))
}

/// What stays of the answer that is replaced.
pub(super) fn keep(before: &Response, response: &mut Response) {
    for challenge in errors::challenges(before) {
        if !response.headers.has("www-authenticate") {
            response.headers.add("WWW-Authenticate", challenge);
        }
    }
}

/// The status that the client sees: what the target makes a page of is an error of its own.
pub(super) fn show(exchange: &mut Exchange, response: &mut Response) {
    let is_default = is_default(exchange, response);
    let Some(running) = &mut exchange.snippet else { return };
    response.close |= running.close;
    let is_page = response.source == Source::Own && !running.said && !is_default;
    // What ends no request is no answer, whoever says it.
    if let Some(status) = running.shown.filter(|status| !is_page && *status >= 200)
        && let Ok(status) = StatusCode::from_u16(status)
    {
        (response.status, response.reason) = (status, None);
    }
}

/// Enters the named location that the request is at.
pub(super) fn enter(exchange: &mut Exchange) -> Result<(), Stop> {
    find_location::may_stay(exchange)
}
