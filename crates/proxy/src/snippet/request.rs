//! A request as programs of snippets see it.

use super::Running;
use crate::exchange::Exchange;
use crate::phases::access_log;
use crate::variables;
use crate::variables::fastcgi;
use model::snippet::Other;
use model::{Alias, Steps, Variable};
use request_metrics::Connections;
use snippet::run::{Request, State, is_invalid_referer};
use std::borrow::Cow;
use wire::{long_date, since_epoch};

/// What the expressions of `valid_referers` may take of a request together.
const STEPS_OF_REFERERS: usize = 100_000;

impl Request for Exchange {
    fn variable(&self, variable: &Variable) -> Cow<'_, str> {
        let mut value = String::new();
        variables::push(variable, self, &mut value);
        Cow::Owned(value)
    }

    fn other(&self, variable: &Other) -> Cow<'_, str> {
        let mut value = String::new();
        other(variable, self, &mut value);
        Cow::Owned(value)
    }
}

/// Appends the value of a variable that only snippets know; nothing where it has none.
fn other(variable: &Other, exchange: &Exchange, out: &mut String) {
    let now = || since_epoch().as_secs();
    match variable.row.name {
        "binary_remote_addr" => out.push_str(&exchange.client.to_string()),
        "limit_rate" => {
            let rate =
                exchange.place.as_ref().map(|place| place.spot().location.policy.limit_rate.rate);
            out.push_str(&rate.unwrap_or_default().to_string());
        }
        "limit_req_status" => out.push_str(noted(exchange, |running| running.request_limit)),
        "limit_conn_status" => out.push_str(noted(exchange, |running| running.connection_limit)),
        "invalid_referer" if has_invalid_referer(exchange) => out.push('1'),
        "date_gmt" => out.push_str(&long_date(now(), "GMT")),
        "date_local" => out.push_str(&long_date(now(), "UTC")),
        "request_filename" => {
            out.push_str(fastcgi::DOCUMENT_ROOT);
            out.push_str(&route::path::text(&exchange.path));
        }
        "realpath_root" => out.push_str(fastcgi::DOCUMENT_ROOT),
        "connection_upgrade" if exchange.request.headers.has("upgrade") => out.push_str("upgrade"),
        "full_x_forwarded_for" => {
            variables::push(&Variable::ProxyAddXForwardedFor, exchange, out);
        }
        "auth_cookie" => {
            let cookies = exchange.visit.authenticated.cookies.as_deref().unwrap_or_default();
            out.push_str(&String::from_utf8_lossy(cookies));
        }
        "upstream_cookie_" => upstream_cookie(exchange, &variable.rest, out),
        name if name.starts_with("connections_") => {
            let Connections { active, reading, writing, waiting, .. } =
                exchange.worker.connections();
            let count = match name {
                "connections_active" => active,
                "connections_reading" => reading,
                "connections_writing" => writing,
                _ => waiting,
            };
            out.push_str(&count.to_string());
        }
        "loggable" => out.push(if access_log::is_logged(exchange) { '1' } else { '0' }),
        _ => {}
    }
}

/// The value of a cookie that the upstream sets (ngx_http_upstream_cookie_variable).
fn upstream_cookie(exchange: &Exchange, name: &str, out: &mut String) {
    for line in exchange.answer.upstream.all("set-cookie") {
        let cookie = line.split(|&byte| byte == b';').next().unwrap_or_default();
        let mut parts = cookie.splitn(2, |&byte| byte == b'=');
        let known = parts.next().unwrap_or_default().trim_ascii();
        if known.eq_ignore_ascii_case(name.as_bytes()) {
            return out.push_str(&route::path::text(parts.next().unwrap_or_default()));
        }
    }
}

fn noted(exchange: &Exchange, what: impl Fn(&Running) -> &'static str) -> &'static str {
    exchange.snippet.as_deref().map_or("", what)
}

/// Whether `valid_referers` does not take the Referer; where there is none, every Referer is valid. What cannot be
/// told is not.
fn has_invalid_referer(exchange: &Exchange) -> bool {
    let Some(level) = exchange.level() else { return false };
    let Some(referers) = &level.settings.access.valid_referers else { return false };
    let referer = exchange.request.headers.text("referer");
    let server = exchange.place.as_ref().map(|place| &place.site.server);
    let names: Vec<&str> = server.map_or_else(Vec::new, |server| {
        let aliases = server.aliases.iter().filter_map(|alias| match alias {
            Alias::Name(name) => Some(name.as_str()),
            Alias::Below(_) | Alias::Beginning(_) | Alias::Pattern(_) => None,
        });
        [server.name.as_str()].into_iter().chain(aliases).collect()
    });
    let Some(running) = &exchange.snippet else { return false };
    let taken = &running.of_request.steps_of_referers;
    let mut state = State::default();
    state.steps_of_patterns = Steps::new(STEPS_OF_REFERERS.saturating_sub(taken.get()));
    let is_invalid = is_invalid_referer(referers, referer, &names, &mut state).unwrap_or(true);
    taken.set(STEPS_OF_REFERERS.saturating_sub(state.steps_of_patterns.left()));
    is_invalid
}
