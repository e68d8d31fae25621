//! The parameters of a FastCGI request: those of nginx's `fastcgi_params`, those of the Ingress, then the client's
//! header as `HTTP_*` (ngx_http_fastcgi_module; recordings upstream-protocol/fcgi*).

use super::{client_fields, request_headers};
use crate::exchange::Exchange;
use crate::variables;
use crate::variables::fastcgi::{DOCUMENT_ROOT, NGINX_VERSION, script_name, target};
use bytes::Bytes;
use foldhash::fast::RandomState;
use model::Variable;
use std::borrow::Cow;
use std::collections::HashMap;
use upstream::Params;
use wire::{Field, Length};

/// The records that begin the request.
pub(super) fn head(exchange: &Exchange) -> Bytes {
    let mut params = Params::default();
    standard(exchange, &mut params);
    // A responder takes the last of several: whoever says a field's parameter is the only one who does.
    let mut said: Vec<&[u8]> = Vec::new();
    for (name, value) in exchange.spot().location.policy.fastcgi.params.iter() {
        if name.starts_with(OF_FIELDS) {
            said.push(name.as_bytes());
            // Such a one without a value only keeps the client's away.
            if value.parts().is_empty() {
                continue;
            }
        }
        params.push(name.as_bytes(), variables::of_request(value, exchange).as_bytes());
    }
    if let Some(running) = &exchange.snippet {
        for (name, value) in &running.of_request.params {
            if name.starts_with(OF_FIELDS.as_bytes()) {
                said.push(name);
            }
            params.push(name, value);
        }
    }
    if exchange.effects().is_none_or(|effects| effects.passes_headers) {
        fields(exchange, &mut params, &said);
    }
    params.into_head()
}

/// What the names of parameters begin with that stand for fields.
const OF_FIELDS: &str = "HTTP_";

/// `/etc/nginx/fastcgi_params`, in its order.
fn standard(exchange: &Exchange, params: &mut Params) {
    use Variable as V;
    let value = |variable: &Variable| {
        let mut value = String::new();
        variables::push(variable, exchange, &mut value);
        value
    };
    let mut put = |name: &str, value: &[u8]| params.push(name.as_bytes(), value);
    let (path, query) = target(exchange);
    put("QUERY_STRING", query);
    put("REQUEST_METHOD", exchange.request.method.as_str().as_bytes());
    put("CONTENT_TYPE", value(&V::ContentType).as_bytes());
    put("CONTENT_LENGTH", value(&V::ContentLength).as_bytes());
    put("SCRIPT_NAME", &script_name(exchange));
    put("REQUEST_URI", exchange.received());
    put("DOCUMENT_URI", &path);
    put("DOCUMENT_ROOT", DOCUMENT_ROOT.as_bytes());
    put("SERVER_PROTOCOL", exchange.request.version.as_str().as_bytes());
    put("REQUEST_SCHEME", value(&V::Scheme).as_bytes());
    if exchange.connection.tls.is_some() {
        put("HTTPS", b"on");
    }
    put("GATEWAY_INTERFACE", b"CGI/1.1");
    put("SERVER_SOFTWARE", format!("nginx/{NGINX_VERSION}").as_bytes());
    put("REMOTE_ADDR", value(&V::RemoteAddr).as_bytes());
    put("REMOTE_PORT", value(&V::RemotePort).as_bytes());
    put("SERVER_ADDR", value(&V::ServerAddr).as_bytes());
    put("SERVER_PORT", value(&V::ServerPort).as_bytes());
    put("SERVER_NAME", value(&V::ServerName).as_bytes());
    // PHP built with --enable-force-cgi-redirect wants it.
    put("REDIRECT_STATUS", b"200");
}

/// The header section as `HTTP_*`; several fields of one name are joined (nginx 1.23). What ends with the client's
/// connection is left out: an authenticator was not asked about it. And those whose parameters were `said` already.
fn fields(exchange: &Exchange, params: &mut Params, said: &[&[u8]]) {
    let request = &exchange.request;
    let mut put = |name: &[u8], value: &[u8]| {
        if !said.iter().any(|said| said.eq_ignore_ascii_case(name)) {
            params.push(name, value);
        }
    };
    if !request.authority.is_empty() {
        put(b"HTTP_HOST", &request.authority);
    }
    let policy = &exchange.spot().location.policy;
    let names = request_headers::said(policy);
    for (field, values) in by_name(client_fields::end_to_end(&request.headers)) {
        // Who asks for a password keeps it from the application.
        let password = policy.auth_basic.is_some() && field.is("authorization");
        let said = names.as_ref().is_some_and(|names| names.have(field.name));
        let traced = exchange.span.as_ref().is_some_and(|span| span.replaces(field.name));
        if traced || password || said {
            continue;
        }
        put(&named(field.name), &joined(&field, &values));
    }
    if let Some(span) = &exchange.span {
        span.inject(span.attempt, |name, value| put(&named(name.as_bytes()), value));
    }
    for (name, value) in &exchange.visit.authenticated.headers {
        put(&named(name), value);
    }
    if let Length::Known(length) = request.body.length()
        && length > 0
    {
        put(b"HTTP_CONTENT_LENGTH", length.to_string().as_bytes());
    }
}

/// The parameter for a field.
fn named(field: &[u8]) -> Vec<u8> {
    let upper = field.iter().map(|&byte| match byte {
        b'-' => b'_',
        other => other.to_ascii_uppercase(),
    });
    OF_FIELDS.bytes().chain(upper).collect()
}

/// The fields of each name: the first one, and the values of all.
fn by_name<'a>(fields: impl Iterator<Item = Field<'a>>) -> Vec<(Field<'a>, Vec<&'a [u8]>)> {
    let mut places: HashMap<Vec<u8>, usize, RandomState> = HashMap::default();
    let mut all: Vec<(Field<'a>, Vec<&'a [u8]>)> = Vec::new();
    for field in fields {
        let at = *places.entry(field.name.to_ascii_lowercase()).or_insert(all.len());
        match all.get_mut(at) {
            Some((_, values)) => values.push(field.value),
            None => all.push((field, vec![field.value])),
        }
    }
    all
}

fn joined<'a>(first: &Field<'a>, values: &[&'a [u8]]) -> Cow<'a, [u8]> {
    if values.len() == 1 {
        return Cow::Borrowed(first.value);
    }
    let separator: &[u8] = if first.is("cookie") { b"; " } else { b", " };
    Cow::Owned(values.join(separator))
}
