//! The usual line of the access log, `log-format-upstream` of ingress-nginx, in one go: nearly every request has one,
//! and nearly every one has it without anything to look up or to choose.

use super::logged::{self, escaped, escaped_or_dash, header, number, seconds, spelled};
use crate::exchange::Exchange;
use crate::request_id::RequestId;

/// Appends the line of a request that one upstream has answered. False, and nothing is appended, where a value has to
/// be made out first: the way by single values does that.
pub(crate) fn append(exchange: &Exchange, line: &mut Vec<u8>) -> bool {
    let Exchange { connection, request, log, .. } = exchange;
    let is_plain = exchange.snippet.is_none()
        && exchange.client == connection.peer.ip()
        && !request.headers.has("authorization")
        && !exchange.visit.canary
        && log.status >= 100;
    let ([only], Some(request_line), Some(upstream), true) =
        (&log.tries[..], &request.line, logged::upstream(exchange), is_plain)
    else {
        return false;
    };
    let start = line.len();
    line.extend_from_slice(&connection.peer_text);
    line.extend_from_slice(b" - - [");
    exchange.worker.clock.put_local(line);
    line.extend_from_slice(b"] \"");
    escaped_or_dash(request_line, line);
    line.extend_from_slice(b"\" ");
    number(u64::from(log.status), line);
    line.push(b' ');
    number(log.body_sent, line);
    line.extend_from_slice(b" \"");
    let fields = &request.headers;
    let referer = header("referer", spelled(fields, "referer", "referer"), line);
    line.extend_from_slice(b"\" \"");
    let agent = header("user_agent", spelled(fields, "user_agent", "user-agent"), line);
    if !(referer && agent) {
        line.truncate(start);
        return false;
    }
    line.extend_from_slice(b"\" ");
    number(log.received, line);
    line.push(b' ');
    seconds(wire::since(exchange.since), line);
    line.extend_from_slice(b" [");
    line.extend_from_slice(upstream.as_bytes());
    line.extend_from_slice(b"] [] ");
    logged::endpoint(only, line);
    line.push(b' ');
    number(only.length(), line);
    line.push(b' ');
    logged::took(only, line);
    line.push(b' ');
    logged::status(only, line);
    line.push(b' ');
    match &exchange.request_id {
        RequestId::Own(digits) => line.extend_from_slice(digits),
        RequestId::Given(given) => escaped(given, line),
    }
    true
}
