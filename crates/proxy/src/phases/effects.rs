//! What the settings of snippets do on the way of a request (`snippet::Effects`): its header section, what the upstream
//! is told and sent, the answer's header section and body. Where no snippet counts, each of these is one look at the
//! exchange.

use super::failed::answer_error;
use super::{Stop, redirects};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::snippet::{
    AllPlain, AnswerHeaders, Effects, Fill, InputField, Size, Told, bytes_of, is_authority,
    on_machine, room,
};
use crate::variables::fastcgi;
use bytes::Bytes;
use http::Method;
use snippet::run::Exceeded;
use std::time::Duration;
use wire::{Body, Response, since_epoch};

impl Exchange {
    /// What the settings in force do; none where snippets say nothing.
    pub(crate) fn effects(&self) -> Option<&Effects> {
        self.snippet.as_ref()?;
        self.place.as_ref()?.spot().extras().effects.as_deref()
    }

    /// What snippets tell the upstream, once that is known.
    pub(crate) fn told(&self) -> Option<&Told> {
        self.snippet.as_ref().map(|running| &running.of_request.told)
    }

    /// The place whose settings do something, apart from the exchange.
    pub(super) fn place_with_effects(&self) -> Option<Place> {
        self.effects()?;
        self.place.clone()
    }
}

/// The effects of a place that has some.
pub(super) fn of(place: &Place) -> &Effects {
    place.spot().extras().effects.as_deref().expect("only a place with effects is asked for them")
}

/// `more_set_input_headers`: the request as everybody sees it from here on.
pub(super) fn request(exchange: &mut Exchange) -> Result<(), Stop> {
    let Some(place) = exchange.place_with_effects() else { return Ok(()) };
    let mut judged: Option<(&InputField, bool)> = None;
    for field in &of(&place).input {
        let suits = match judged {
            Some((before, suits)) if before.stands_beside(field) => suits,
            Some(_) | None => field.suits(&exchange.request.headers),
        };
        judged = Some((field, suits));
        if !suits {
            continue;
        }
        let value = on_machine(exchange, |machine| field.value(machine))?.unwrap_or_default();
        if let Some(running) = &mut exchange.snippet {
            let heard = || (exchange.request.headers.clone(), exchange.request.authority.clone());
            running.of_request.heard.get_or_insert_with(heard);
        }
        if !field.sets_host() {
            field.apply(&mut exchange.request.headers, value);
        } else if is_authority(&value) {
            exchange.request.authority = value;
        }
    }
    Ok(())
}

/// What counts again once the upstream has answered: another one is told and sent what its own location says.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    /// The method.
    pub method: Option<Method>,
    /// The client's body.
    pub body: Option<Body>,
}

/// What the upstream is told and sent instead of what the client said and sent.
pub(super) fn towards_upstream(exchange: &mut Exchange) -> Result<Replaced, Stop> {
    let Some(place) = exchange.place_with_effects() else {
        if let Some(running) = &mut exchange.snippet {
            running.of_request.told = Told::default();
            running.of_request.params.clear();
            running.of_request.script = None;
        }
        return Ok(Replaced::default());
    };
    let effects = of(&place);
    let told = if effects.towards.is_empty() {
        None
    } else {
        on_machine(exchange, |machine| effects.towards.told(machine))?
    };
    set_params(exchange, effects)?;
    if let Some(running) = &mut exchange.snippet {
        running.of_request.told = told.unwrap_or_default();
    }
    let body = match &effects.body {
        Some(body) => on_machine(exchange, |machine| machine.expand(body))?.map(bytes_of),
        None => (!effects.passes_body).then(Bytes::new),
    };
    let method = method(exchange, effects)?;
    Ok(Replaced {
        method: method.map(|method| std::mem::replace(&mut exchange.request.method, method)),
        body: body.map(|body| std::mem::replace(&mut exchange.request.body, Body::full(body))),
    })
}

/// What a FastCGI upstream gets.
fn set_params(exchange: &mut Exchange, effects: &Effects) -> Result<(), Stop> {
    if effects.params.is_empty() {
        if let Some(running) = &mut exchange.snippet {
            running.of_request.params.clear();
            running.of_request.script = None;
        }
        return Ok(());
    }
    // A machine has the steps of the request, of which the division takes some.
    let script = fastcgi::divided(exchange);
    if let Some(running) = &mut exchange.snippet {
        running.of_request.script = Some(script);
    }
    let params = on_machine(exchange, |machine| {
        let mut params = Vec::with_capacity(effects.params.len());
        for (name, value, always) in &effects.params {
            let value = machine.expand_parameter(value)?;
            if *always || !value.is_empty() {
                params.push((Bytes::copy_from_slice(name.as_bytes()), bytes_of(value)));
            }
        }
        Ok(params)
    })?;
    if let Some(running) = &mut exchange.snippet {
        running.of_request.params = params.unwrap_or_default();
    }
    Ok(())
}

/// The method that the upstream sees in place of the client's. Of a text that is no method none is made.
fn method(exchange: &mut Exchange, effects: &Effects) -> Result<Option<Method>, Stop> {
    let Some(method) = &effects.method else { return Ok(None) };
    let text = on_machine(exchange, |machine| machine.expand(method))?.unwrap_or_default();
    let method = Method::from_bytes(text.as_bytes()).ok();
    Ok(method.filter(|method| *method != Method::CONNECT))
}

/// `more_set_headers`, `expires`, `add_header`: answers of every origin. `custom` is what the controller writes into
/// the location behind its snippets, `controller` what it has in an `if` block of its own there, or adds.
pub(super) fn answer(
    exchange: &mut Exchange,
    response: &mut Response,
    custom: impl FnOnce(&Exchange, &mut Response),
    controller: impl FnOnce(&mut Exchange, &mut Response),
) -> Result<(), Error> {
    let headers = exchange.effects().map(|effects| &effects.answer);
    let locates = headers.is_some_and(AnswerHeaders::locates);
    let before = locates.then(|| response.headers.bytes("location"));
    say(exchange, response, |headers, response, _, fill| headers.set(response, fill))?;
    custom(exchange, response);
    say(exchange, response, |headers, response, _, fill| headers.set_within(response, fill))?;
    controller(exchange, response);
    say(exchange, response, AnswerHeaders::add)?;
    if let Some(before) = before {
        make_absolute(exchange, response, before.as_deref());
    }
    Ok(())
}

/// One part of what the header section of an answer is told; all parts together are [`answer`].
type Part = fn(&AnswerHeaders, &mut Response, u64, &mut dyn Fill) -> Result<(), Exceeded>;

fn say(exchange: &mut Exchange, response: &mut Response, part: Part) -> Result<(), Error> {
    let Some(headers) = exchange.effects().map(|effects| &effects.answer) else { return Ok(()) };
    if headers.is_empty() {
        return Ok(());
    }
    let now = if headers.tells_time() { since_epoch().as_secs() } else { 0 };
    if headers.is_plain() {
        return part(headers, response, now, &mut AllPlain)
            .map_err(|Exceeded| Error::SnippetTooHard(exchange.host.to_string()));
    }
    exchange.log.status = response.status.as_u16();
    let Some(place) = exchange.place_with_effects() else { return Ok(()) };
    let headers = &of(&place).answer;
    on_machine(exchange, |machine| part(headers, response, now, machine)).map(|_| ())
}

/// Whether an `add_header` where the request is hides what the controller adds to answers of the location around.
pub(super) fn hides_added(exchange: &Exchange) -> bool {
    exchange.effects().is_some_and(|effects| effects.answer.hides_added())
}

/// The redirect to a sign-in page. nginx has a location of its own for it, with an `add_header` for cookies: what
/// snippets say at the location that sent the client there does not count, what they say of the server does.
/// `controller` is what the controller has there.
pub(super) fn to_sign_in(
    exchange: &mut Exchange,
    response: &mut Response,
    controller: impl FnOnce(&mut Exchange, &mut Response),
) -> Result<(), Error> {
    let server = exchange.place.as_ref().and_then(|place| {
        let index = place.site.snippet.as_ref()?.server;
        Some(Place::new(place.site.clone(), index))
    });
    let effects = server.and_then(|server| server.spot().extras().effects.clone());
    let Some(headers) = effects.as_ref().map(|effects| &effects.answer) else {
        controller(exchange, response);
        return Ok(());
    };
    let now = if headers.tells_time() { since_epoch().as_secs() } else { 0 };
    exchange.log.status = response.status.as_u16();
    on_machine(exchange, |machine| headers.set(response, machine))?;
    controller(exchange, response);
    on_machine(exchange, |machine| headers.expire(response, now, machine)).map(|_| ())
}

/// A `Location` that `more_set_headers` says is one of nginx's own: its path becomes a URL.
fn make_absolute(exchange: &Exchange, response: &mut Response, before: Option<&[u8]>) {
    let Some(location) = response.headers.get("location").filter(|now| Some(*now) != before) else {
        return;
    };
    if location.starts_with(b"/") {
        let relative = exchange.spot().location.policy.relative_redirects;
        let location = redirects::absolute(exchange, relative, location.to_vec());
        response.headers.set("Location", location);
    }
}

/// `keepalive_timeout`, `keepalive_requests`, `keepalive_time`: whether the connection stays, and how long.
pub(super) fn keep_connection(exchange: &Exchange, response: &mut Response) {
    let Some(client) = exchange.level().map(|level| &level.settings.client) else { return };
    let connection = &exchange.connection;
    let spent = client.keepalive_requests.is_some_and(|most| connection.requests.get() >= most);
    let old = client.keepalive_time.is_some_and(|most| connection.since.elapsed() >= most);
    response.close |= spent || old || client.keepalive_timeout == Some(Duration::ZERO);
    connection.keep_idle_for(client.keepalive_timeout);
}

/// `sub_filter`: texts of the body, before it is compressed.
pub(super) fn body(exchange: &mut Exchange, response: &mut Response) {
    let suits = |effects: &Effects| effects.filter.as_ref().is_some_and(|own| own.suits(response));
    if !exchange.effects().is_some_and(suits) {
        return;
    }
    let Some(place) = exchange.place_with_effects() else { return };
    let Some(filter) = &of(&place).filter else { return };
    let texts = on_machine(exchange, |machine| filter.texts(machine)).and_then(|texts| {
        let Some(texts) = texts.flatten() else { return Ok(None) };
        let room = room(exchange, filter.size(&texts))?;
        Ok(Some((texts, room)))
    });
    match texts {
        Ok(Some((texts, room))) => filter.apply(texts, room, response),
        Ok(None) => {}
        Err(error) => *response = answer_error(exchange, &error),
    }
}

/// `limit_rate` and `limit_rate_after`, or what `set $limit_rate` says: bytes in a second, and those before that
/// counts. None where snippets say nothing. What cannot be told or read is no bound, as in nginx.
pub(super) fn rate(exchange: &mut Exchange) -> Option<(Option<u64>, Option<u64>)> {
    let said = exchange.snippet.as_ref()?.state.own("limit_rate").and_then(snippet::size_of);
    let place = exchange.place_with_effects();
    let sizes = place.as_ref().map(of).map(|effects| (&effects.rate, &effects.rate_after));
    let (rate, after) = sizes.unwrap_or((&None, &None));
    let mut bytes = |size: &Option<Size>| match size {
        None => None,
        Some(Size::Known(bytes)) => Some(*bytes),
        Some(Size::Filled(template)) => {
            let text = on_machine(exchange, |machine| machine.expand(template));
            Some(text.ok().flatten().and_then(|text| snippet::size_of(&text)).unwrap_or_default())
        }
    };
    let after = bytes(after);
    Some((said.or_else(|| bytes(rate)), after))
}
