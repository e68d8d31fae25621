//! The variables of the usual log line, written as bytes and at once: every request has one.

use super::of_place::settled;
use super::read_with_the_head;
use crate::exchange::Exchange;
use crate::request_id::RequestId;
use model::{Backend, Variable};
use std::net::SocketAddr;
use std::time::Duration;
use upstream::Try;
use wire::{Field, Headers};

/// Appends a variable as nginx logs it; false if that takes the long way.
///
/// `field` is the usual name of the header field that it stands for, if it is one of those.
pub(crate) fn append(
    variable: &Variable,
    field: Option<&str>,
    exchange: &Exchange,
    line: &mut Vec<u8>,
) -> bool {
    use Variable as V;
    let (log, headers) = (&exchange.log, &exchange.request.headers);
    match variable {
        V::Request => match &exchange.request.line {
            // What is no text, such as TLS on the plain port, is logged byte by byte.
            Some(request) => escaped_or_dash(request, line),
            None => {
                let request = &exchange.request;
                line.extend_from_slice(request.method.as_str().as_bytes());
                line.push(b' ');
                escaped(exchange.received(), line);
                line.push(b' ');
                line.extend_from_slice(request.version.as_str().as_bytes());
            }
        },
        V::RequestHeader(name) if name != "host" => {
            return match field {
                Some(usual) => header(name, spelled(headers, name, usual), line),
                None => header(name, headers.spelled(name), line),
            };
        }
        V::RemoteUser if !exchange.request.headers.has("authorization") => line.push(b'-'),
        V::RemoteAddr if exchange.client == exchange.connection.peer.ip() => {
            line.extend_from_slice(&exchange.connection.peer_text);
        }
        V::TimeLocal => exchange.worker.clock.put_local(line),
        V::Status if log.status >= 100 => number(u64::from(log.status), line),
        V::BodyBytesSent => number(log.body_sent, line),
        V::RequestLength => number(log.received, line),
        V::RequestTime => seconds(wire::since(exchange.since), line),
        V::ReqId => match &exchange.request_id {
            RequestId::Own(digits) => line.extend_from_slice(digits),
            RequestId::Given(given) => escaped(given, line),
        },
        V::ProxyUpstreamName => return upstream_name(exchange, line),
        V::ProxyAlternativeUpstreamName => {
            if is_said(exchange, "proxy_alternative_upstream_name")
                || exchange.visit.canary
                || exchange.place.is_none()
            {
                return false;
            }
        }
        V::UpstreamAddr
        | V::UpstreamStatus
        | V::UpstreamResponseTime
        | V::UpstreamResponseLength => match &log.tries[..] {
            [] => line.push(b'-'),
            [only] => attempted(variable, only, line),
            _ => return false,
        },
        _ => return false,
    }
    true
}

/// One value of a header field, or `-`; several are for the long way.
pub(super) fn header<'a>(
    name: &str,
    mut fields: impl Iterator<Item = Field<'a>>,
    line: &mut Vec<u8>,
) -> bool {
    let Some(only) = fields.next() else {
        if read_with_the_head(name).is_some() {
            return false;
        }
        line.push(b'-');
        return true;
    };
    if fields.next().is_some() {
        return false;
    }
    // Byte by byte: what is no text stays what it is.
    escaped(only.value, line);
    true
}

/// What [`Headers::spelled`] finds. `usual` is the name as it is mostly spelled, which is compared by words.
#[inline]
pub(super) fn spelled<'a>(
    headers: &'a Headers,
    name: &'a str,
    usual: &'a str,
) -> impl Iterator<Item = Field<'a>> {
    let same = |(a, b): (&u8, u8)| a.to_ascii_lowercase() == b || (*a == b'-' && b == b'_');
    headers.iter().filter(move |field| {
        field.name.len() == name.len()
            && (field.is(usual) || field.name.iter().zip(name.bytes()).all(same))
    })
}

/// Whether a snippet has set a variable that the controller sets.
fn is_said(exchange: &Exchange, name: &str) -> bool {
    exchange.snippet.as_ref().is_some_and(|running| running.state.own(name).is_some())
}

fn upstream_name(exchange: &Exchange, line: &mut Vec<u8>) -> bool {
    if is_said(exchange, "proxy_upstream_name") {
        return false;
    }
    let Some(name) = upstream(exchange) else { return false };
    line.extend_from_slice(name.as_bytes());
    true
}

/// The name of the upstream of the location, where its requests go there and nowhere else.
#[inline]
pub(super) fn upstream(exchange: &Exchange) -> Option<&str> {
    let spot = settled(exchange, exchange.place.as_ref()?)?;
    let visit = &exchange.visit;
    match &spot.location.backend {
        Backend::Upstream(id)
            if !(visit.stands_in | visit.paged | visit.early | spot.extras().renamed) =>
        {
            Some(id.as_str())
        }
        _ => None,
    }
}

fn attempted(variable: &Variable, attempt: &Try, line: &mut Vec<u8>) {
    match variable {
        Variable::UpstreamAddr => endpoint(attempt, line),
        Variable::UpstreamResponseLength => number(attempt.length(), line),
        Variable::UpstreamStatus => status(attempt, line),
        _ => took(attempt, line),
    }
}

/// Who was asked.
#[inline]
pub(super) fn endpoint(attempt: &Try, line: &mut Vec<u8>) {
    match attempt.text.get() {
        Some(text) => text.append(line),
        None => address(attempt.address, line),
    }
}

/// What the answer was.
#[inline]
pub(super) fn status(attempt: &Try, line: &mut Vec<u8>) {
    match attempt.status.get() {
        Some(status) => number(u64::from(status), line),
        None => line.push(b'-'),
    }
}

/// How long it took.
#[inline]
pub(super) fn took(attempt: &Try, line: &mut Vec<u8>) {
    let ended = attempt.ended.get();
    seconds(ended.unwrap_or_else(|| wire::since(attempt.since)), line);
}

pub(super) fn number(number: u64, line: &mut Vec<u8>) {
    let digit = |unit| b'0' + (number / unit % 10) as u8;
    match number {
        0..10 => line.push(digit(1)),
        10..100 => line.extend_from_slice(&[digit(10), digit(1)]),
        100..1000 => line.extend_from_slice(&[digit(100), digit(10), digit(1)]),
        _ => line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
    }
}

/// Seconds with milliseconds, as nginx prints times.
pub(super) fn seconds(duration: Duration, line: &mut Vec<u8>) {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    let digit = |number: u32| b'0' + (number % 10) as u8;
    let [a, b, c] = [digit(millis / 100), digit(millis / 10), digit(millis)];
    // Most requests take less than ten seconds: one piece.
    if seconds < 10 {
        return line.extend_from_slice(&[b'0' + seconds as u8, b'.', a, b, c]);
    }
    number(seconds, line);
    line.extend_from_slice(&[b'.', a, b, c]);
}

fn address(address: SocketAddr, line: &mut Vec<u8>) {
    let SocketAddr::V4(address) = address else {
        return line.extend_from_slice(address.to_string().as_bytes());
    };
    let mut text = [0; 16];
    let mut end = 0;
    for octet in address.ip().octets() {
        for (least, unit) in [(100, 100), (10, 10), (0, 1)] {
            if octet >= least {
                text[end] = b'0' + octet / unit % 10;
                end += 1;
            }
        }
        text[end] = b'.';
        end += 1;
    }
    text[end - 1] = b':';
    line.extend_from_slice(&text[..end]);
    number(u64::from(address.port()), line);
}

pub(super) fn escaped_or_dash(value: &[u8], line: &mut Vec<u8>) {
    if value.is_empty() { line.push(b'-') } else { escaped(value, line) }
}

/// nginx's default: `\xXX` for quotes, backslashes and what cannot be printed.
pub(crate) fn escaped(value: &[u8], line: &mut Vec<u8>) {
    if is_plain(value) {
        line.extend_from_slice(value);
    } else {
        value.iter().for_each(|&byte| escape(byte, line));
    }
}

/// Whether nothing needs an escape. Looks at eight bytes at a time, the last ones twice where they are fewer.
fn is_plain(value: &[u8]) -> bool {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\');
    match value.last_chunk::<8>() {
        Some(last) => {
            value.as_chunks::<8>().0.iter().all(|eight| are_plain(*eight)) && are_plain(*last)
        }
        None => value.iter().fold(true, |all, &byte| all & plain(byte)),
    }
}

/// The same of eight bytes. A byte that makes a neighbour look odd is odd itself.
fn are_plain(eight: [u8; 8]) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let word = u64::from_ne_bytes(eight);
    let less = |word: u64, than: u8| word.wrapping_sub(each(than)) & !word;
    let control = less(word, b' ') | word.wrapping_add(each(1)) | word;
    let quote = less(word ^ each(b'"'), 1) | less(word ^ each(b'\\'), 1);
    (control | quote) & each(0x80) == 0
}

fn escape(byte: u8, line: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if is_plain(&[byte]) {
        return line.push(byte);
    }
    let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
    line.extend_from_slice(b"\\x");
    line.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::{address, escaped, is_plain, number, seconds, spelled};
    use std::time::Duration;
    use wire::{Field, Headers};

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut line = Vec::new();
        write(&mut line);
        String::from_utf8(line).expect("the log is text")
    }

    #[test]
    fn addresses_are_written_as_everywhere_else() {
        for octet in 0..=255u8 {
            let at = std::net::SocketAddr::from(([octet, 255 - octet, 0, octet / 7], 80));
            assert_eq!(written(|line| address(at, line)), at.to_string());
        }
        let at: std::net::SocketAddr = "[2001:db8::1]:443".parse().expect("an address");
        assert_eq!(written(|line| address(at, line)), at.to_string());
    }

    #[test]
    fn fields_of_a_variable_are_found_in_every_spelling() {
        let mut headers = Headers::default();
        for name in [
            "User-Agent",
            "user_agent",
            "USER-Agent",
            "User.Agent",
            "Referer",
            "_a-",
            "-a_",
            "Accept",
        ] {
            headers.add(name, name);
        }
        let found = |fields: &mut dyn Iterator<Item = Field<'_>>| -> Vec<Vec<u8>> {
            fields.map(|field| field.value.to_vec()).collect()
        };
        for (name, count) in [("user_agent", 3), ("referer", 1), ("_a_", 2), ("cookie", 0), ("", 0)]
        {
            let usual = name.replace('_', "-");
            let quick = found(&mut spelled(&headers, name, &usual));
            assert_eq!(quick, found(&mut headers.spelled(name)), "{name}");
            assert_eq!(quick.len(), count, "{name}");
        }
        assert!(headers.spelled("Referer").next().is_none(), "variables are in lower case");
    }

    #[test]
    fn numbers_and_times_are_those_of_nginx() {
        for (millis, text) in [
            (0, "0.000"),
            (7, "0.007"),
            (1_050, "1.050"),
            (9_999, "9.999"),
            (10_000, "10.000"),
            (61_999, "61.999"),
        ] {
            let time = Duration::from_millis(millis);
            assert_eq!(written(|line| seconds(time, line)), text);
        }
        for value in [0, 9, 10, 99, 100, 404, 999, 1000, u64::MAX] {
            assert_eq!(written(|line| number(value, line)), value.to_string());
        }
    }

    #[test]
    fn every_byte_counts_wherever_it_stands() {
        let plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte);
        for (length, byte) in (1..=20).flat_map(|length| (0..=255).map(move |byte| (length, byte)))
        {
            for at in 0..length {
                let mut value = vec![b'~'; length];
                value[at] = byte;
                assert_eq!(is_plain(&value), plain(byte), "{value:?}");
            }
        }
        assert!(is_plain(b""));
    }

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        assert_eq!(written(|line| escaped(b"a\"\\\x7f\xff\n", line)), r"a\x22\x5C\x7F\xFF\x0A");
    }
}
