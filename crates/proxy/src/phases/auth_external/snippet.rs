//! What snippets do with an authenticator: `auth-snippet` may answer in its place and says what it is told,
//! `auth_request_set` makes variables of its answer.

use super::super::Stop;
use super::super::access::Verdict;
use crate::authenticator::{Authenticator, Said};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::snippet::{self as state, Running, Told, on_machine};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::StatusCode;
use model::Variable;
use model::snippet::{Name, Other, Piece, Template};
use snippet::run::{Exceeded, Machine, Next, Owner, Reply, Request, run};
use std::borrow::Cow;
use wire::{Headers, Response};

/// What the program of an `auth-snippet` says in place of the authenticator.
pub(super) fn instead(
    exchange: &mut Exchange,
    authenticator: &Authenticator,
) -> Result<Option<Verdict>, Stop> {
    let Some(scope) = authenticator.policy.snippet.as_ref() else { return Ok(None) };
    if scope.program.steps.is_empty() {
        return Ok(None);
    }
    let outcome =
        as_question(exchange, |machine| Ok(run(&scope.program, Owner::Location, machine)))?;
    let answer = match outcome.map(|outcome| outcome.next) {
        Some(Next::Answer(answer)) => answer,
        Some(Next::Continue | Next::Search) | None => return Ok(None),
    };
    let status = match answer {
        Reply::Status(status) | Reply::Text(status, _) | Reply::Redirect(status, _) => status,
        Reply::Close => 444,
    };
    match status {
        200..=299 => Ok(Some(Verdict::Pass)),
        401 => Ok(Some(refused(StatusCode::UNAUTHORIZED))),
        403 => Ok(Some(refused(StatusCode::FORBIDDEN))),
        _ => Err(Error::Authenticator(format!("the auth-snippet answered {status}")).into()),
    }
}

fn refused(status: StatusCode) -> Verdict {
    Verdict::Refuse(Box::new(Response::page(status)))
}

/// What an `auth-snippet` tells the authenticator.
pub(super) fn told(exchange: &mut Exchange, authenticator: &Authenticator) -> Result<Told, Error> {
    if authenticator.told.is_empty() {
        return Ok(Told::default());
    }
    let told = as_question(exchange, |machine| authenticator.told.told(machine))?;
    Ok(told.unwrap_or_default())
}

/// Does something with the question to the authenticator, which has a path of its own and no query. It needs the state
/// of snippets, which a host without other ones has not.
fn as_question<T>(
    exchange: &mut Exchange,
    work: impl FnOnce(&mut Machine<'_, Exchange>) -> Result<T, Exceeded>,
) -> Result<Option<T>, Error> {
    let is_lent = exchange.snippet.is_none();
    if is_lent {
        Running::begin_or_follow(exchange);
    }
    let path = path_of_question(exchange);
    let done = on_machine(exchange, |machine| {
        let main = machine.state.ask(path);
        let done = work(machine);
        machine.state.go_on(main);
        done
    });
    if is_lent {
        exchange.snippet = None;
    }
    done
}

/// The path as ingress-nginx writes it.
fn path_of_question(exchange: &Exchange) -> String {
    let location = &exchange.spot().location;
    let path = BASE64_URL_SAFE_NO_PAD.encode(&location.path);
    format!("/_external-auth-{path}-{:?}", location.kind)
}

/// The fields of an answer that variables ask for.
pub(super) fn asked(exchange: &Exchange, headers: &Headers) -> Headers {
    let mut asked = Headers::default();
    let Some(effects) = exchange.effects().filter(|effects| !effects.asked.is_empty()) else {
        return asked;
    };
    for field in headers.iter() {
        if effects.asked.iter().any(|name| is_spelled(field.name, name)) {
            asked.push(field.name, field.value);
        }
    }
    asked
}

/// Whether a variable spells a header's name so.
fn is_spelled(header: &[u8], variable: &str) -> bool {
    let plain = |byte: &u8| if *byte == b'-' { b'_' } else { byte.to_ascii_lowercase() };
    header.iter().map(plain).eq(variable.bytes())
}

/// `auth_request_set`, whatever the authenticator said.
pub(super) fn set_variables(exchange: &mut Exchange, said: &Said) -> Result<(), Error> {
    let Some(level) =
        exchange.place.as_ref().and_then(|place| place.spot().extras().snippet.clone())
    else {
        return Ok(());
    };
    let list: &[(Name, Template)] = &level.settings.access.auth_request_set;
    if list.is_empty() {
        return Ok(());
    }
    let path = path_of_question(exchange);
    state::with_state(exchange, |exchange, state, tables| {
        let heard = Heard { exchange, said };
        let mut machine = Machine::new(&heard, state, tables);
        let main = machine.state.ask(path);
        let done = list.iter().try_for_each(|(name, value)| {
            let value = machine.expand(value)?;
            machine.state.set(name, value)
        });
        machine.state.go_on(main);
        (done, machine.state)
    })?;
    Ok(())
}

/// A request whose upstream is the authenticator.
#[derive(Debug)]
struct Heard<'e> {
    exchange: &'e Exchange,
    said: &'e Said,
}

impl Request for Heard<'_> {
    fn variable(&self, variable: &Variable) -> Cow<'_, str> {
        match variable {
            Variable::UpstreamHeader(name) => {
                let fields = self.said.asked.iter();
                let values = fields.filter(|field| is_spelled(field.name, name));
                let values: Vec<_> = values.map(|field| route::path::text(field.value)).collect();
                Cow::Owned(values.join(", "))
            }
            Variable::UpstreamStatus => Cow::Owned(self.said.status.as_str().to_owned()),
            variable => self.exchange.variable(variable),
        }
    }

    fn other(&self, variable: &Other) -> Cow<'_, str> {
        if variable.row.name != "upstream_cookie_" {
            return self.exchange.other(variable);
        }
        let cookies = self.said.asked.all("set-cookie").find_map(|cookie| {
            let pair = cookie.split(|&byte| byte == b';').next()?;
            let at = pair.iter().position(|&byte| byte == b'=')?;
            let is_it = pair[..at].trim_ascii().eq_ignore_ascii_case(variable.rest.as_bytes());
            is_it.then(|| route::path::text(&pair[at + 1..]).into_owned())
        });
        Cow::Owned(cookies.unwrap_or_default())
    }

    fn looked_through(&self, piece: &Piece) -> usize {
        match piece {
            Piece::Known(Variable::UpstreamHeader(_)) | Piece::Other(_) => {
                self.said.asked.iter().map(|field| 16 + field.value.len()).sum()
            }
            piece => self.exchange.looked_through(piece),
        }
    }
}
