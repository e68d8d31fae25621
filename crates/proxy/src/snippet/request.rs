//! A request as programs of snippets see it.

use super::Running;
use crate::connection::host_of;
use crate::exchange::Exchange;
use crate::generation::Spot;
use crate::phases::{access_log, request_headers};
use crate::variables;
use crate::variables::fastcgi;
use http::Method;
use model::policy::{Cors, Origins, TlsRedirect};
use model::snippet::{Other, Piece};
use model::{Alias, Server, Steps, Variable};
use request_metrics::Connections;
use snippet::run::{Exceeded, Request, State, is_invalid_referer};
use std::borrow::Cow;
use wire::{Headers, long_date, since_epoch};

/// What the expressions of `valid_referers` may take of a request together.
const STEPS_OF_REFERERS: usize = 100_000;

impl Request for Exchange {
    fn variable(&self, variable: &Variable) -> Cow<'_, str> {
        // No snippet is asked once a request is complete.
        if *variable == Variable::RequestCompletion {
            return Cow::Borrowed("");
        }
        if let Some(value) = said_otherwise(variable, self) {
            return value;
        }
        let mut value = String::new();
        variables::push(variable, self, &mut value);
        Cow::Owned(value)
    }

    fn other(&self, variable: &Other) -> Cow<'_, str> {
        let mut value = String::new();
        other(variable, self, &mut value);
        Cow::Owned(value)
    }

    fn looked_through(&self, piece: &Piece) -> usize {
        match piece {
            Piece::Known(variable @ Variable::RequestHeader(name))
                if variables::read_with_the_head(name).is_some() =>
            {
                variables::looked_through(variable, self)
            }
            // Names are compared, not values.
            Piece::Known(
                Variable::RequestHeader(_)
                | Variable::ContentType
                | Variable::ProxyAddXForwardedFor,
            ) => 16 * self.request.headers.len(),
            Piece::Known(Variable::UpstreamHeader(_)) => 16 * self.answer.upstream.len(),
            Piece::Known(Variable::ResponseHeader(_)) => 16 * self.answer.sent.len(),
            Piece::Known(Variable::Cookie(_)) => in_lines(&self.request.headers, "cookie"),
            Piece::Known(variable) => variables::looked_through(variable, self),
            Piece::Other(other) if other.row.name == "upstream_cookie_" => {
                in_lines(&self.answer.upstream, "set-cookie")
            }
            Piece::Other(other) => match other.row.name {
                "invalid_referer" => 16 * names_of_referers(self),
                "ssl_client_s_dn_legacy" => {
                    variables::looked_through(&Variable::SslClientSubject, self)
                }
                "ssl_client_i_dn_legacy" => {
                    variables::looked_through(&Variable::SslClientIssuer, self)
                }
                _ => 0,
            },
            _ => 0,
        }
    }
}

/// Bytes that are looked through for something in the values of a field: all lines are visited, also empty ones.
fn in_lines(headers: &Headers, name: &str) -> usize {
    16 * headers.len() + headers.all(name).map(<[u8]>::len).sum::<usize>()
}

/// Names that a Referer is compared with.
fn names_of_referers(exchange: &Exchange) -> usize {
    let referers = exchange.level().and_then(|level| level.settings.access.valid_referers.as_ref());
    let aliases = exchange.place.as_ref().map_or(0, |place| place.site.server.aliases.len());
    referers.map_or(0, |referers| 1 + aliases + referers.hosts.len())
}

/// Appends the value of a variable that only snippets know; nothing where it has none.
fn other(variable: &Other, exchange: &Exchange, out: &mut String) {
    let give = GIVEN.iter().find(|(name, _)| *name == variable.row.name);
    if let Some((_, give)) = give {
        give(exchange, &variable.rest, out);
    }
}

/// What appends the value of a variable; the text is what follows the beginning of its name.
type Give = fn(&Exchange, &str, &mut String);

/// All that have one.
const GIVEN: [(&str, Give); 30] = [
    ("binary_remote_addr", |exchange, _, out| out.push_str(&exchange.client.to_string())),
    ("limit_rate", |exchange, _, out| {
        let place = exchange.place.as_ref();
        let rate = place.map(|place| place.spot().location.policy.limit_rate.rate);
        out.push_str(&rate.unwrap_or_default().to_string());
    }),
    ("limit_req_status", |exchange, _, out| out.push_str(noted(exchange, |it| it.request_limit))),
    ("limit_conn_status", |exchange, _, out| {
        out.push_str(noted(exchange, |it| it.connection_limit));
    }),
    ("invalid_referer", |exchange, _, out| {
        if has_invalid_referer(exchange) {
            out.push('1');
        }
    }),
    ("date_gmt", |_, _, out| out.push_str(&long_date(since_epoch().as_secs(), "GMT"))),
    ("date_local", |_, _, out| out.push_str(&long_date(since_epoch().as_secs(), "UTC"))),
    ("request_filename", |exchange, _, out| {
        out.push_str(fastcgi::DOCUMENT_ROOT);
        out.push_str(&route::path::text(&fastcgi::target(exchange).0));
    }),
    ("realpath_root", |_, _, out| out.push_str(fastcgi::DOCUMENT_ROOT)),
    ("connections_active", |exchange, _, out| count(exchange, out, |all| all.active)),
    ("connections_reading", |exchange, _, out| count(exchange, out, |all| all.reading)),
    ("connections_writing", |exchange, _, out| count(exchange, out, |all| all.writing)),
    ("connections_waiting", |exchange, _, out| count(exchange, out, |all| all.waiting)),
    ("ssl_curve", |exchange, _, out| {
        let session = exchange.connection.tls.as_ref();
        out.push_str(session.map_or("", |session| session.curve));
    }),
    ("ssl_client_s_dn_legacy", |exchange, _, out| {
        let mut name = String::new();
        variables::push(&Variable::SslClientSubject, exchange, &mut name);
        out.push_str(&legacy(&name));
    }),
    ("ssl_client_i_dn_legacy", |exchange, _, out| {
        let mut name = String::new();
        variables::push(&Variable::SslClientIssuer, exchange, &mut name);
        out.push_str(&legacy(&name));
    }),
    ("connection_upgrade", |exchange, _, out| {
        if exchange.request.headers.has("upgrade") {
            out.push_str("upgrade");
        }
    }),
    ("full_x_forwarded_for", |exchange, _, out| {
        out.push_str(&String::from_utf8_lossy(&request_headers::full_forwarded_for(exchange)));
    }),
    ("auth_cookie", |exchange, _, out| {
        let cookies = exchange.visit.authenticated.cookies.join(&b", "[..]);
        out.push_str(&String::from_utf8_lossy(&cookies));
    }),
    ("loggable", |exchange, _, out| {
        out.push(if access_log::is_loggable(exchange) { '1' } else { '0' });
    }),
    ("balancer_ewma_score", |_, _, out| out.push_str("-1")),
    ("literal_dollar", |_, _, out| out.push('$')),
    ("cors", |exchange, _, out| {
        if cors(exchange).is_some() {
            let allows = exchange.visit.allowed_origin.is_some();
            out.push_str(if allows { "true" } else { "" });
            out.push_str(if exchange.request.method == Method::OPTIONS { "options" } else { "" });
        }
    }),
    ("authheader", auth_header),
    ("force_ssl_redirect", |exchange, _, out| switch(exchange, out, |tls| tls.always)),
    ("ssl_redirect", |exchange, _, out| switch(exchange, out, |tls| tls.with_certificate)),
    ("force_no_ssl_redirect", |exchange, _, out| {
        let path = settled(exchange).map(|spot| spot.location.path.as_str());
        let all = &exchange.generation.global().no_tls_redirect;
        let is_listed = |path: &str| all.iter().any(|prefix| path.starts_with(prefix));
        out.push_str(path.map_or("", |path| said(is_listed(path))));
    }),
    ("preserve_trailing_slash", |exchange, _, out| {
        switch(exchange, out, |tls| tls.preserve_trailing_slash);
    }),
    ("use_port_in_redirects", |exchange, _, out| switch(exchange, out, |tls| tls.with_port)),
    ("upstream_cookie_", upstream_cookie),
];

/// What the controller, or a snippet, has made of a variable of the request.
fn said_otherwise<'v>(variable: &Variable, exchange: &Exchange) -> Option<Cow<'v, str>> {
    match variable {
        // nginx.tmpl sets it where any origin is allowed.
        Variable::RequestHeader(name) if name == "origin" => {
            let allows_any = |cors: &Cors| matches!(cors.origins, Origins::Any);
            cors(exchange).is_some_and(allows_any).then_some(Cow::Borrowed("*"))
        }
        // headers-more makes the Host that it sets the name of the server, too.
        Variable::Host => {
            let running = exchange.snippet.as_deref()?;
            let (_, heard) = running.of_request.heard.as_ref()?;
            let now = &exchange.request.authority;
            (now != heard).then(|| Cow::Owned(host_of(now)))
        }
        _ => None,
    }
}

/// The location whose settings the controller makes: the one where the request is, else the one that it met last.
fn settled(exchange: &Exchange) -> Option<&Spot> {
    exchange.place.as_ref().and_then(|place| variables::settled(exchange, place))
}

/// What such a location has for other origins. Its `if` blocks have nothing of their own.
fn cors<'e>(exchange: &'e Exchange) -> Option<&'e Cors> {
    let place = exchange.place.as_ref()?;
    let met = || place.site.spots.get(exchange.snippet.as_ref()?.ingress?);
    let of = |spot: &'e Spot| spot.location.policy.cors.as_deref();
    of(place.spot()).or_else(|| of(met()?))
}

/// What a location says of redirects to HTTPS.
fn switch(exchange: &Exchange, out: &mut String, which: impl Fn(&TlsRedirect) -> bool) {
    let spot = settled(exchange);
    out.push_str(spot.map_or("", |spot| said(which(&spot.location.policy.tls_redirect))));
}

fn said(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}

/// `$authHeader0`: what the authenticator says in the first of the fields that are passed on.
fn auth_header(exchange: &Exchange, number: &str, out: &mut String) {
    let asks = settled(exchange).and_then(|spot| spot.location.policy.auth_external.as_deref());
    let name = asks.and_then(|asks| asks.response_headers.get(number.parse::<usize>().ok()?));
    let Some(name) = name else { return };
    let said = exchange.visit.authenticated.headers.iter();
    let mut said = said.filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
    if let Some((_, value)) = said.next() {
        out.push_str(&route::path::text(value));
    }
}

fn count(exchange: &Exchange, out: &mut String, which: impl Fn(&Connections) -> u64) {
    out.push_str(&which(&exchange.worker.connections()).to_string());
}

/// A name of RFC 2253 as OpenSSL wrote it on one line: the parts the other way round, each behind a slash.
fn legacy(name: &str) -> String {
    let mut parts = vec![String::new()];
    let mut characters = name.chars();
    while let Some(character) = characters.next() {
        match character {
            ',' => parts.push(String::new()),
            '\\' => parts.iter_mut().next_back().into_iter().for_each(|part| {
                part.extend(characters.next());
            }),
            other => parts.iter_mut().next_back().into_iter().for_each(|part| part.push(other)),
        }
    }
    let parts = parts.iter().rev().filter(|part| !part.is_empty());
    parts.map(|part| format!("/{part}")).collect()
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
    // One with a byte that is no UTF-8 is there all the same.
    let referer = exchange.request.headers.get("referer").map(route::path::text);
    let server = exchange.place.as_ref().map(|place| &place.site.server);
    let Some(running) = &exchange.snippet else { return false };
    let taken = &running.of_request.steps_of_referers;
    let mut state = State::default();
    state.steps_of_patterns = Steps::new(STEPS_OF_REFERERS.saturating_sub(taken.get()));
    let is_own = |host: &str, state: &mut State| {
        server.map_or(Ok(false), |server| is_name_of(server, host, &state.steps_of_patterns))
    };
    let is_invalid =
        is_invalid_referer(referers, referer.as_deref(), is_own, &mut state).unwrap_or(true);
    taken.set(STEPS_OF_REFERERS.saturating_sub(state.steps_of_patterns.left()));
    is_invalid
}

/// Whether a server has this name, in lower case, as nginx looks for names of servers.
fn is_name_of(server: &Server, host: &str, steps: &Steps) -> Result<bool, Exceeded> {
    let name = server.name.as_str();
    let label = name.strip_prefix('*').and_then(|parent| host.strip_suffix(parent));
    let is_label = |c: u8| c == b'_' || c == b'-' || c.is_ascii_alphanumeric();
    if name == host || label.is_some_and(|label| !label.is_empty() && label.bytes().all(is_label)) {
        return Ok(true);
    }
    for alias in &server.aliases {
        let is_it = match alias {
            Alias::Name(name) => name.as_str() == host,
            Alias::Below(parent) => {
                host.strip_suffix(&**parent).is_some_and(|label| label.ends_with('.'))
            }
            Alias::Beginning(start) => {
                host.strip_prefix(&**start).is_some_and(|rest| rest.starts_with('.'))
            }
            Alias::Pattern(pattern) => {
                pattern.try_match(host.as_bytes(), steps).map_err(|_| Exceeded)?
            }
        };
        if is_it {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::{GIVEN, is_name_of, legacy};
    use model::snippet::{Knowledge, OTHERS};
    use model::{Alias, Server, ServerName, Steps, Variable};
    use std::collections::BTreeSet;

    #[test]
    fn every_variable_that_is_said_to_be_native_has_a_value() {
        let native = OTHERS.iter().filter(|row| row.fate == Knowledge::Native);
        let native: BTreeSet<&str> = native.map(|row| row.name).collect();
        assert_eq!(native, GIVEN.iter().map(|(name, _)| *name).collect());
        for row in OTHERS {
            assert!(Variable::named(row.name).is_none(), "{} is a request's", row.name);
        }
    }

    #[test]
    fn names_are_written_as_they_were() {
        assert_eq!(legacy("CN=alice,O=Fairway\\, Ltd,C=DE"), "/C=DE/O=Fairway, Ltd/CN=alice");
        assert_eq!(legacy(""), "");
    }

    #[test]
    fn names_of_a_server_are_those_that_it_answers_to() {
        let mut server = Server::new(ServerName::new("*.a.test"));
        for alias in ["b.test", "*.c.test", ".d.test", "e.*", r"~^f\d\.test$"] {
            server.aliases.extend(Alias::parse(alias).expect("an alias"));
        }
        let is_it = |host| is_name_of(&server, host, &Steps::default()).expect("few steps");
        for host in ["x.a.test", "b.test", "x.y.c.test", "d.test", "x.d.test", "e.org", "f1.test"] {
            assert!(is_it(host), "{host}");
        }
        for host in ["a.test", "x.y.a.test", "x.b.test", "c.test", "ad.test", "e", "f.test", ""] {
            assert!(!is_it(host), "{host}");
        }
    }
}
