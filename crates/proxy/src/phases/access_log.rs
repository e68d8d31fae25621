//! The access log: one line for each request, when its last byte is gone (ngx_http_log_module).

use crate::exchange::Exchange;
use crate::variables;
use model::{Backend, Global, Part, Pattern, Variable};

/// Writes the line of a request that is over.
pub(crate) fn write(exchange: &Exchange) {
    if !is_logged(exchange) {
        return;
    }
    let format = &exchange.generation.global().log_format;
    exchange.worker.log.line(|line| {
        let mut value = String::new();
        for part in format.template.parts() {
            match part {
                Part::Text(text) => line.push_str(text),
                Part::Capture(_) => {}
                Part::Variable(variable) if !format.raw && !format.json => {
                    plain(variable, exchange, &mut value, line);
                }
                Part::Variable(variable) => {
                    value.clear();
                    variables::push(variable, exchange, &mut value);
                    if format.raw { line.push_str(&value) } else { escape_json(&value, line) }
                }
            }
        }
    });
}

/// Appends a variable as nginx does without `escape=`.
fn plain(variable: &Variable, exchange: &Exchange, value: &mut String, line: &mut String) {
    if let (Variable::Request, Some(request)) = (variable, &exchange.request.line) {
        // What is no text, such as TLS on the plain port, is logged byte by byte.
        return if request.is_empty() { line.push('-') } else { escape_bytes(request, line) };
    }
    let to_escape = !needs_no_escape(variable);
    let before = line.len();
    let out = if to_escape {
        value.clear();
        &mut *value
    } else {
        &mut *line
    };
    variables::push(variable, exchange, out);
    let is_empty = if to_escape { value.is_empty() } else { line.len() == before };
    if is_empty && !exists(variable, exchange) {
        line.push('-');
    } else if to_escape {
        escape(value, line);
    }
}

/// Whether values of a variable are made of numbers, addresses and names of objects only.
fn needs_no_escape(variable: &Variable) -> bool {
    use Variable as V;
    matches!(
        variable,
        V::RemoteAddr
            | V::TimeLocal
            | V::Status
            | V::BodyBytesSent
            | V::RequestLength
            | V::RequestTime
            | V::ProxyUpstreamName
            | V::ProxyAlternativeUpstreamName
            | V::UpstreamAddr
            | V::UpstreamResponseLength
            | V::UpstreamResponseTime
            | V::UpstreamStatus
    )
}

/// Whether a variable without a value has the empty one rather than none, for which `-` stands.
fn exists(variable: &Variable, exchange: &Exchange) -> bool {
    use Variable as V;
    match variable {
        V::RequestHeader(name) => variables::header_of(exchange, name).is_some(),
        // The template of ingress-nginx sets them, or starts them as empty.
        V::ProxyUpstreamName
        | V::ProxyAlternativeUpstreamName
        | V::Namespace
        | V::IngressName
        | V::ServiceName
        | V::ServicePort
        | V::LocationPath
        | V::BestHttpHost
        | V::PassAccessScheme
        | V::PassPort
        | V::ReqId => true,
        // nginx itself has the empty value for these.
        V::IsArgs | V::Https | V::Http2 | V::RequestCompletion => true,
        _ => false,
    }
}

/// `enable-rewrite-log`: says what became of a path (ngx_http_rewrite_module, rewrite_log).
pub(super) fn note_rewrite(exchange: &Exchange) {
    if !exchange.spot().location.policy.logging.rewrite {
        return;
    }
    let path = String::from_utf8_lossy(&exchange.path);
    let (client, host) = (exchange.client, exchange.host.as_str());
    match &exchange.visit.rewritten {
        Some(target) => {
            let target = String::from_utf8_lossy(target);
            tracing::info!(%client, host, "{path:?} is rewritten to {target:?}");
        }
        None => tracing::info!(%client, host, "{path:?} is not rewritten"),
    }
}

/// Whether the request gets a line: `$loggable`.
pub(crate) fn is_logged(exchange: &Exchange) -> bool {
    let global = exchange.generation.global();
    global.access_log && !is_skipped(exchange, global)
}

fn is_skipped(exchange: &Exchange, global: &Global) -> bool {
    if exchange.place.as_ref().is_some_and(|place| !place.spot().location.policy.logging.access) {
        return true;
    }
    let unclaimed = match &exchange.place {
        Some(place) => {
            place.site.server.name.as_str() == "_"
                && matches!(place.spot().location.backend, Backend::NotFound)
        }
        // The health path of the catch-all server is never logged.
        None if exchange.log.status == 200 => return true,
        None => false,
    };
    if unclaimed && !global.default_backend_access_log {
        return true;
    }
    if global.skip_access_log.is_empty() && global.skip_access_log_patterns.is_empty() {
        return false;
    }
    let uri = String::from_utf8_lossy(exchange.received());
    let is_skipped =
        |pattern: &Pattern| pattern.try_match(uri.as_bytes(), &exchange.steps) == Ok(true);
    // Literal keys of nginx's map have no case.
    global.skip_access_log.contains(uri.to_ascii_lowercase().as_str())
        || global.skip_access_log_patterns.iter().any(is_skipped)
}

/// nginx's default: `\xXX` for quotes, backslashes and what cannot be printed.
fn escape(value: &str, line: &mut String) {
    if is_plain(value.as_bytes()) {
        line.push_str(value)
    } else {
        escape_each(value.as_bytes(), line)
    }
}

fn escape_bytes(value: &[u8], line: &mut String) {
    match std::str::from_utf8(value) {
        Ok(text) => escape(text, line),
        Err(_) => escape_each(value, line),
    }
}

/// Whether nothing needs an escape. Looks at every byte, so that many are looked at in one instruction.
fn is_plain(value: &[u8]) -> bool {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\');
    value.iter().fold(true, |all, &byte| all & plain(byte))
}

fn escape_each(value: &[u8], line: &mut String) {
    for &byte in value {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f..=0xff => push_hex(byte, line),
            _ => line.push(char::from(byte)),
        }
    }
}

fn push_hex(byte: u8, line: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    line.push_str("\\x");
    line.push(char::from(HEX[usize::from(byte >> 4)]));
    line.push(char::from(HEX[usize::from(byte & 15)]));
}

/// nginx's `escape=json`: as in a JSON string; nothing stays nothing.
fn escape_json(value: &str, line: &mut String) {
    for character in value.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\u{8}' => line.push_str("\\b"),
            '\u{c}' => line.push_str("\\f"),
            control if control < ' ' => line.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => line.push(other),
        }
    }
}
