//! The access log: one line for each request, when its last byte is gone (ngx_http_log_module).

use crate::exchange::Exchange;
use crate::variables;
use model::{Backend, Global, Part};

/// Writes the line of a request that is over.
pub(crate) fn write(exchange: &Exchange) {
    let global = exchange.generation.global();
    if !global.access_log || is_skipped(exchange, global) {
        return;
    }
    let format = &global.log_format;
    exchange.worker.log.line(|line| {
        let mut value = String::new();
        for part in format.template.parts() {
            match part {
                Part::Text(text) => line.push_str(text),
                Part::Capture(_) => {}
                Part::Variable(variable) => {
                    value.clear();
                    variables::push(variable, exchange, &mut value);
                    match (format.raw, format.json) {
                        (true, _) => line.push_str(&value),
                        (_, true) => escape_json(&value, line),
                        _ => escape(&value, line),
                    }
                }
            }
        }
    });
}

fn is_skipped(exchange: &Exchange, global: &Global) -> bool {
    let unclaimed = match &exchange.place {
        Some(place) => {
            place.site.server.name.as_str() == "_"
                && matches!(place.spot().location.backend, Backend::NotFound)
        }
        None => exchange
            .request
            .line
            .as_ref()
            .is_some_and(|_| exchange.host.is_empty() && exchange.log.status == 200),
    };
    if unclaimed && !global.default_backend_access_log {
        return true;
    }
    if global.skip_access_log.is_empty() && global.skip_access_log_patterns.is_empty() {
        return false;
    }
    let uri = String::from_utf8_lossy(&exchange.request.target);
    global.skip_access_log.contains(uri.as_ref())
        || global.skip_access_log_patterns.iter().any(|pattern| pattern.is_match(&uri))
}

/// nginx's default: `-` for nothing, `\xXX` for quotes, backslashes and what cannot be printed.
fn escape(value: &str, line: &mut String) {
    if value.is_empty() {
        line.push('-');
    }
    if value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        line.push_str(value);
        return;
    }
    for byte in value.bytes() {
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
