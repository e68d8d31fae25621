//! `proxy-body-size`, `client-body-buffer-size`, `proxy-request-buffering`, `proxy-buffering` and its sizes.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Risk, Settings, normalise, on_off, parse, size};
use model::Severity;
use model::policy::{Body, Policy};

pub(super) const FAMILY: Family = Family {
    name: "body",
    keys: &[&MAX_SIZE, &REQUEST_BUFFER, &REQUEST_BUFFERING, &BUFFERING, &BUFFER_SIZE, &BUFFERS],
    apply,
};

static MAX_SIZE: Key<u64> = Key::both("proxy-body-size", max_size)
    .says(
        "size",
        "1m",
        "Bytes that a request body may have; more is answered with 413, 0 is unlimited.",
    )
    .risk(Risk::Medium);

/// The ConfigMap's key of this name is the buffer of the process, not of the location.
static REQUEST_BUFFER: Key<Option<usize>> = Key::annotation("client-body-buffer-size", buffer)
    .says(
        "size",
        "ConfigMap client-body-buffer-size",
        "Bytes of a request body in memory before a file takes the rest.",
    )
    .on_bad(OnBad::Reject);

static REQUEST_BUFFERING: Key<bool> = Key::both("proxy-request-buffering", parse::on_off).says(
    "on or off",
    "on",
    "Request bodies are read whole before the upstream is chosen.",
);

static BUFFERING: Key<bool> = Key::both("proxy-buffering", parse::on_off).says(
    "on or off",
    "off",
    "Accepted without effect: answers are passed on as they come, never read ahead.",
);

static BUFFER_SIZE: Key<usize> = Key::both("proxy-buffer-size", parse::buffer).says(
    "size",
    "4k",
    "Bytes of the largest header that an upstream may send; more is answered with 502. Over HTTP/2 it is 64k.",
);

static BUFFERS: Key<u32> = Key::both("proxy-buffers-number", parse::count).number(
    "number",
    "4",
    "Accepted without effect: answers are never read ahead.",
);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    const MOST: usize = 1 << 30;
    let name = MAX_SIZE.about.name;
    let of_all = settings.scope().config_map.and_then(|(_, data)| data.get(name));
    let of_all = of_all.filter(|_| settings.is_of_config_map()).map(|text| normalise(text));
    if settings.raw(name).or(of_all).is_some_and(|text| is_untold(&text)) {
        let message = "has a unit that nginx does not have, or space within: nginx's default of 1m counts; write digits, and \
                       perhaps k, m or g right behind them";
        settings.note(name, Severity::Warning, message.to_owned());
    }
    let body = &mut policy.body;
    if let Some(size) = settings.get(&MAX_SIZE) {
        body.max_size = Some(size).filter(|size| *size > 0);
    }
    body.request_buffer = settings.get(&REQUEST_BUFFER).and_then(|size| {
        if size.is_none() {
            let message = "is the size of no buffer, the ConfigMap's value or the default is used instead; write one \
                           between 1 and 1g with k or m, such as 16k";
            settings.note(REQUEST_BUFFER.about.name, Severity::Warning, message.to_owned());
        }
        size
    });
    body.request_buffering = settings.get_or(&REQUEST_BUFFERING, body.request_buffering);
    body.response_buffering = settings.get_or(&BUFFERING, body.response_buffering);
    response_header(settings, body);
    let buffers = settings.get_or(&BUFFERS, 4).max(1);
    let buffers = usize::try_from(buffers).unwrap_or(MOST);
    body.response_buffer = buffers.saturating_mul(body.response_header).min(MOST);
}

fn response_header(settings: &mut Settings<'_>, body: &mut Body) {
    /// Most answers of programs that people write have a head that is longer, by `Date`, `Server` and a cookie.
    const FEW: usize = 512;
    body.response_header = settings.get_or(&BUFFER_SIZE, body.response_header);
    let message = match body.response_header {
        size if size > Body::LARGEST_HEADER => {
            body.response_header = Body::LARGEST_HEADER;
            "is more than a header may have: 1m counts; write 1m or less".to_owned()
        }
        size if size < FEW => format!(
            "is {size} bytes, and an answer whose head is longer is a 502, as nearly all are; write a unit, such as 8k"
        ),
        _ => return,
    };
    // The ConfigMap's own value is none of what this Ingress can mend.
    let by = settings.written_at(&BUFFER_SIZE).map(|written| written.by);
    if by.as_ref() == Some(settings.own_origin()) {
        settings.note(BUFFER_SIZE.about.name, Severity::Warning, message);
    }
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(body: &Body, lines: &mut Lines) {
    let Body {
        max_size,
        request_buffering,
        request_buffer,
        response_header,
        response_buffering,
        response_buffer,
    } = body;
    let bytes = |bytes: &usize| size(*bytes as u64);
    let most = max_size.map_or_else(|| "unlimited".to_owned(), size);
    let asked = "filters: ExternalAuth, forwardBody";
    lines.add("body.max_size", most).by(&[&MAX_SIZE]).of_route(asked);
    lines.add("body.request_buffer", request_buffer.as_ref().map(bytes)).by(&[&REQUEST_BUFFER]);
    lines.add("body.request_buffering", on_off(*request_buffering)).by(&[&REQUEST_BUFFERING]);
    lines.add("body.response_buffering", on_off(*response_buffering)).by(&[&BUFFERING]);
    lines.add("body.response_header", bytes(response_header)).by(&[&BUFFER_SIZE]);
    lines
        .add("body.response_buffer", bytes(response_buffer))
        .by(&[&BUFFERS, &BUFFER_SIZE])
        .by(&[&BUFFER_SIZE]);
}

/// The digits of what ingress-nginx takes for a size: it leaves spaces out, and a unit may be a `b`.
fn digits(text: &str) -> Option<String> {
    let mut plain = text.replace(' ', "").to_ascii_lowercase();
    if plain.ends_with(['b', 'k', 'm', 'g']) {
        plain.pop();
    }
    (!plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit())).then_some(plain)
}

/// A size that ingress-nginx takes for `proxy-body-size`, and then tells nginx nothing.
fn is_untold(text: &str) -> bool {
    digits(text).is_some() && (text.contains(' ') || text.ends_with(['b', 'B']))
}

fn max_size(text: &str) -> Result<u64, String> {
    if is_untold(text) { Ok(1 << 20) } else { parse::size(text) }
}

/// A size that ingress-nginx takes; none where it then does nothing with it, as with `1b` and `1 k`.
fn buffer(text: &str) -> Result<Option<usize>, String> {
    match digits(text) {
        Some(_) => Ok(parse::buffer(text).ok()),
        None => parse::buffer(text).map(Some),
    }
}
