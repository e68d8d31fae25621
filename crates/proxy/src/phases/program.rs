//! Programs of snippets: `if`, `set`, `rewrite`, `break` and `return`, in a server before a location is looked for and
//! in a location before the controller's own rewrite (ngx_http_rewrite_module).

use super::access::{self, Excepted};
use super::{Stop, client_address, pass, redirects, rewrite, way_in};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::generation::Site;
use crate::snippet::{Level, OfSite, Running, bytes_of, expressions, mime, on_machine};
use bytes::Bytes;
use http::{Method, StatusCode};
use model::snippet::Regex;
use request_metrics::Connections;
use snippet::run::{Next, Outcome, Owner, Reply, run};
use std::sync::Arc;
use wire::{Body, Response, Source};

/// nginx's status for closing the connection without an answer.
const CLOSE: u16 = 444;

/// Whether the client gets no answer, only the end of its connection.
pub(crate) fn closes(response: &Response) -> bool {
    response.source == Source::Own && response.status.as_u16() == CLOSE
}

/// What a server's program did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfServer {
    /// Whether the path is another.
    pub moved: bool,
    /// Whether what the controller has behind it in the server is not reached.
    pub ended: bool,
}

/// The server's program: the request is at the server itself, until a location is found. Where the server says nothing,
/// a request that no snippet has led here stays without any state of them.
pub(super) fn of_server(
    exchange: &mut Exchange,
    site: &Arc<Site>,
    of_site: &OfSite,
) -> Result<OfServer, Stop> {
    let is_silent = site.spots[of_site.server].extras().snippet.is_none();
    if is_silent && exchange.snippet.is_none() {
        return Ok(OfServer::default());
    }
    let begins = exchange.snippet.is_none();
    Running::begin_or_follow(exchange);
    exchange.place = Some(Place::new(site.clone(), of_site.server));
    // Whoever led the request here has set nothing that the server's program goes by.
    let owner = exchange.place.as_ref().and_then(|place| {
        let has_program = |level: &Arc<Level>| level.program().is_some();
        place
            .spot()
            .extras()
            .snippet
            .as_ref()
            .is_some_and(has_program)
            .then(|| place.owner().cloned())
    });
    if let Some(owner) = owner {
        come_to(exchange, owner.as_ref());
    }
    client_address::of_server(exchange);
    if begins && !of_site.names.is_empty() {
        match_name(exchange, of_site)?;
    }
    let outcome = run_here(exchange, Owner::Server)?;
    // The operator's text stands behind all that the controller says of the server (nginx.tmpl).
    let is_tenants = exchange.snippet.as_ref().is_some_and(|it| it.state.owner.is_some());
    let ended = is_tenants && outcome.as_ref().is_some_and(|outcome| outcome.ended);
    if let Some(Outcome { next: Next::Answer(answer), .. }) = outcome {
        return Err(self::answer(exchange, answer));
    }
    Ok(OfServer { moved: adopt_path(exchange, true)?, ended })
}

/// The location's program, and behind it the controller's own redirect and rewrite, if no `break` ends all of it
/// (nginx.tmpl: their order in a location). Whether the request stays here: else its
/// location is to be looked for again.
pub(super) fn of_location(exchange: &mut Exchange) -> Result<bool, Stop> {
    meet(exchange)?;
    let excepted = access::excepts(exchange);
    let outcome = match excepted {
        Excepted::No => run_here(exchange, Owner::Location)?,
        Excepted::Wholly => None,
        Excepted::Behind(number) => run_before(exchange, number)?,
    };
    // It is the controller's part of the location's program.
    let redirect = |exchange: &mut Exchange| match excepted {
        Excepted::No => redirects::configured(exchange),
        Excepted::Wholly | Excepted::Behind(_) => Ok(()),
    };
    if let (Some(running), Some(place)) = (&mut exchange.snippet, &exchange.place) {
        running.state.owner = place.owner().cloned();
    }
    let searches = outcome.as_ref().is_some_and(|outcome| outcome.next == Next::Search);
    let moved = adopt_path(exchange, searches)?;
    let Some(outcome) = outcome else {
        redirect(exchange)?;
        rewrite::path(exchange)?;
        pass::aim(exchange, moved)?;
        return Ok(true);
    };
    if let Some(branch) = outcome.branch
        && let Some(place) = &mut exchange.place
        && let Some(index) =
            place.spot().extras().snippet.as_ref().map(|level| level.branches[branch])
    {
        place.leads_to(index);
    }
    let stays = match outcome.next {
        Next::Answer(answer) => return Err(self::answer(exchange, answer)),
        // What comes behind is not reached.
        Next::Search if outcome.ended => false,
        // The controller's rewrite is the last of the program, and ends it.
        Next::Search => {
            redirect(exchange)?;
            rewrite::to_target(exchange)?
        }
        Next::Continue if outcome.ended => {
            rewrite::as_it_is(exchange);
            true
        }
        Next::Continue => {
            redirect(exchange)?;
            rewrite::path(exchange)?;
            true
        }
    };
    if stays {
        way_in::hear(exchange);
        pass::aim(exchange, moved)?;
    }
    Ok(stays)
}

/// `internal`: only who was led here by a rewrite, an `error_page` or an upstream may come in.
pub(super) fn may_enter(exchange: &Exchange) -> Result<(), Stop> {
    let Some(running) = &exchange.snippet else { return Ok(()) };
    let led = running.state.rewritten || exchange.onward.received.is_some();
    let may = |level: &Level| led && level.is_open_to(running.state.led_by.as_ref());
    match exchange.level() {
        Some(level) if level.internal && !may(level) => {
            Err(Response::page(StatusCode::NOT_FOUND).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Notes which location it is whose settings the controller makes, and what its expression matched.
fn meet(exchange: &mut Exchange) -> Result<(), Stop> {
    let Some(place) = exchange.place.clone() else { return Ok(()) };
    come_to(exchange, place.owner());
    let level = place.spot().extras().snippet.as_deref();
    if let Some(running) = &mut exchange.snippet
        && level.is_none_or(|level| !level.own)
    {
        running.ingress = Some(place.index());
        running.state.meet_controller();
        way_in::forget(exchange);
    }
    let Some(level) = level else { return Ok(()) };
    level.around.iter().chain(&level.captures).try_for_each(|regex| match_path(exchange, regex))
}

/// The request comes to a place of a namespace: from that of another one it goes on as its client has sent it.
fn come_to(exchange: &mut Exchange, owner: Option<&Arc<str>>) {
    let Some(running) = &mut exchange.snippet else { return };
    if running.state.come_to(owner)
        && let Some((headers, authority)) = running.of_request.heard.take()
    {
        (exchange.request.headers, exchange.request.authority) = (headers, authority);
    }
}

/// Keeps the groups of an expression that the path matches.
pub(super) fn match_path(exchange: &mut Exchange, regex: &Regex) -> Result<(), Stop> {
    on_machine(exchange, |machine| {
        let path = machine.state.path.clone();
        machine.state.matches(regex, &path)
    })?;
    Ok(())
}

/// Keeps the groups of the expression by which the server was found (ngx_http_find_virtual_server).
fn match_name(exchange: &mut Exchange, of_site: &OfSite) -> Result<(), Stop> {
    let host = exchange.host.clone();
    on_machine(exchange, |machine| {
        for regex in expressions(&of_site.names, &host) {
            if machine.state.matches(regex, &host)? {
                break;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Runs the program of where the request is.
fn run_here(exchange: &mut Exchange, owner: Owner) -> Result<Option<Outcome>, Error> {
    let level = exchange.place.as_ref().and_then(|place| place.spot().extras().snippet.clone());
    let Some(level) = level else { return Ok(None) };
    let Some(program) = level.program() else { return Ok(None) };
    on_machine(exchange, |machine| Ok(run(program, owner, machine)))
}

/// Runs the program that a `limit_except` of the text behind it excepts nobody from. No settings of an `if` count.
fn run_before(exchange: &mut Exchange, number: usize) -> Result<Option<Outcome>, Error> {
    let level = exchange.place.as_ref().and_then(|place| place.spot().extras().snippet.clone());
    let except = level.as_ref().and_then(|level| level.limit_except().get(number));
    let Some(before) = except.and_then(|except| except.before.as_ref()) else { return Ok(None) };
    if before.program.steps.is_empty() {
        return Ok(None);
    }
    let outcome =
        on_machine(exchange, |machine| Ok(run(&before.program, Owner::Location, machine)))?;
    Ok(outcome.map(|outcome| Outcome { branch: None, ..outcome }))
}

/// What a program made of the path counts from here on, in canonical form. Whether it is another. No location is for
/// one that begins with no slash.
fn adopt_path(exchange: &mut Exchange, searches: bool) -> Result<bool, Stop> {
    let Some(running) = &mut exchange.snippet else { return Ok(false) };
    let now = route::path::bytes(&running.state.path);
    if *now == *exchange.path {
        return Ok(false);
    }
    let path = match now.first() {
        Some(b'/') if searches => rewrite::resolved(&now)?,
        _ if searches => return Err(Response::page(StatusCode::NOT_FOUND).into()),
        Some(b'/') => rewrite::within(&now)?,
        _ => rewrite::within(&[b"/", &*now].concat())?,
    };
    running.state.path = route::path::text(&path).into_owned();
    exchange.path = Bytes::from(path);
    Ok(true)
}

/// The answer of a program.
fn answer(exchange: &mut Exchange, answer: Reply) -> Stop {
    let says = matches!(answer, Reply::Text(..) | Reply::Status(..400));
    if let Some(running) = &mut exchange.snippet {
        running.said = says;
    }
    let with_status = |status: u16| {
        StatusCode::from_u16(status)
            .map_or_else(|_| Response::page(StatusCode::INTERNAL_SERVER_ERROR), page)
    };
    let response = match answer {
        Reply::Status(status @ ..400) => own(exchange, status, Bytes::new()),
        // nginx takes these for a client that is gone.
        Reply::Status(408 | 499) => with_status(CLOSE),
        Reply::Status(status) => {
            let mut response = with_status(status);
            response.close = ends_connection(status);
            response
        }
        Reply::Text(status, text) => own(exchange, status, bytes_of(text)),
        Reply::Redirect(status, location) => {
            let relative = exchange
                .place
                .as_ref()
                .is_some_and(|place| place.spot().location.policy.relative_redirects);
            let location = route::path::bytes(&location).into_owned();
            let location = redirects::absolute(exchange, relative, location);
            let mut response = with_status(status);
            response.headers.add("Location", location);
            response
        }
        Reply::Close => with_status(CLOSE),
    };
    response.into()
}

/// What a client gets of a status that a limit says.
pub(super) fn refused(status: u16) -> Response {
    let status = match status {
        408 | 499 => CLOSE,
        // nginx's own, which it sends as bad requests.
        494..=497 => 400,
        status => status,
    };
    let mut response =
        page(StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE));
    response.close = ends_connection(status);
    response
}

/// Whether nginx keeps no connection after an error (ngx_http_special_response_handler).
pub(super) fn ends_connection(status: u16) -> bool {
    matches!(status, 400 | 413 | 414 | 495..=497 | 500 | 501)
}

/// nginx's page; it has none for statuses that it does not know.
pub(super) fn page(status: StatusCode) -> Response {
    match status.as_u16() {
        301..=303 | 307 | 308 | 400..=406 | 408..=416 | 421 | 429 | 498 | 500..=505 | 507 => {
            Response::page(status)
        }
        _ => Response::empty(status),
    }
}

/// An answer whose body is said; its type is that of the path (ngx_http_send_response).
fn own(exchange: &Exchange, status: u16, body: Bytes) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::empty(status);
    let settings = exchange.level().map(|level| &level.settings.answers);
    let of_all = exchange.generation.global().default_type.as_deref();
    let media = mime::of(settings, of_all, &exchange.path);
    if !media.is_empty() && status != StatusCode::NO_CONTENT {
        response.headers.add("Content-Type", media);
    }
    // HEAD is told how long it would be.
    let to_head = exchange.request.method == Method::HEAD && !matches!(status.as_u16(), 204 | 304);
    response.announced_length = to_head.then_some(body.len() as u64);
    response.body = Body::full(body);
    response
}

/// What a location answers that sends requests nowhere: nginx looks for a file there, and there is none. Where no
/// snippet has made it, it leads to the default backend.
pub(super) fn own_content(exchange: &mut Exchange) -> Result<(), Stop> {
    if exchange.level().is_none_or(|level| !level.own) {
        exchange.visit.by_default_backend = true;
        return Err(Response::page(StatusCode::NOT_FOUND).into());
    }
    let settings = exchange.level().map(|level| &level.settings);
    let stub = settings.is_some_and(|settings| settings.stub_status);
    let gif = settings.is_some_and(|settings| settings.empty_gif);
    let reads = matches!(exchange.request.method, Method::GET | Method::HEAD);
    let (media, body) = match (stub, gif) {
        (true, _) if reads => ("text/plain", stub_status(exchange)),
        (_, true) if reads => ("image/gif", Bytes::from_static(PIXEL)),
        (false, false) if reads || exchange.request.method == Method::POST => {
            return Err(Response::page(StatusCode::NOT_FOUND).into());
        }
        _ => return Err(Response::page(StatusCode::METHOD_NOT_ALLOWED).into()),
    };
    let mut response = Response::empty(StatusCode::OK);
    response.headers.add("Content-Type", media);
    if gif && !stub {
        response.headers.add("Last-Modified", "Mon, 28 Sep 1970 06:00:00 GMT");
    }
    response.body = Body::full(body);
    if let Some(running) = &mut exchange.snippet {
        running.said = true;
    }
    Err(response.into())
}

/// One transparent pixel (ngx_http_empty_gif_module).
const PIXEL: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\x01\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\x01\0,\0\0\0\0\
    \x01\0\x01\0\0\x02\x02L\x01\0;";

/// What `stub_status` says (ngx_http_stub_status_module).
fn stub_status(exchange: &Exchange) -> Bytes {
    let Connections { accepted, requests, active, reading, writing, waiting, .. } =
        exchange.worker.connections();
    Bytes::from(format!(
        "Active connections: {active} \nserver accepts handled requests\n {accepted} {accepted} {requests} \n\
         Reading: {reading} Writing: {writing} Waiting: {waiting} \n"
    ))
}

#[cfg(test)]
mod tests {
    use super::{closes, refused};

    #[test]
    fn statuses_that_nginx_has_for_itself_are_not_shown_by_limits() {
        assert!([408, 444, 499].into_iter().all(|status| closes(&refused(status))));
        for (status, shown, ends) in [(494, 400, true), (497, 400, true), (429, 429, false)] {
            let answer = refused(status);
            assert_eq!((answer.status.as_u16(), answer.close), (shown, ends), "{status}");
        }
    }
}
