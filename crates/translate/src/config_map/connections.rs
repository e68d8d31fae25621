//! Connections of clients and to upstreams: keep-alive, HTTP/2, time-outs, buffers, the end of the process.

use super::Area;
use crate::settings::{Key, Settings, parse};
use model::{Global, KeepAlive};
use std::time::Duration;

pub(super) const AREA: Area = Area {
    name: "connections",
    keys: &[
        &HTTP2,
        &STREAMS,
        &IDLE,
        &REQUESTS,
        &HEADER_TIMEOUT,
        &BODY_TIMEOUT,
        &BODY_BUFFER,
        &HEADER_BUFFER,
        &HEADER_BUFFERS,
        &PROXY_PROTOCOL,
        &PROXY_PROTOCOL_TIMEOUT,
        &POOL,
        &POOL_REQUESTS,
        &POOL_IDLE,
        &POOL_AGE,
        &SHUTDOWN,
    ],
    apply,
};

static HTTP2: Key<bool> = Key::config_map("use-http2", parse::boolean)
    .switch(true, "HTTP/2 over TLS, and by prior knowledge on the plain port.");
static STREAMS: Key<u32> = Key::config_map("http2-max-concurrent-streams", at_least_one).number(
    "number",
    "128",
    "Requests at a time on one HTTP/2 connection.",
);
static IDLE: Key<Duration> = Key::config_map("keep-alive", parse::seconds).number(
    "seconds",
    "75",
    "How long an idle connection of a client stays; 0 closes after each answer.",
);
static REQUESTS: Key<u32> = Key::config_map("keep-alive-requests", parse::count).number(
    "number",
    "1000",
    "Requests on one connection of a client. With the native engine over HTTP/2 10000 where nobody says, and each \
     connection ends up to a tenth earlier, at another number: those that began together do not end together.",
);
static HEADER_TIMEOUT: Key<Duration> = Key::config_map("client-header-timeout", parse::seconds)
    .number("seconds", "60", "Time for the header of a request to arrive.");
static BODY_TIMEOUT: Key<Duration> = Key::config_map("client-body-timeout", parse::seconds).number(
    "seconds",
    "60",
    "Time between two reads of a request body.",
);
static BODY_BUFFER: Key<usize> = Key::config_map("client-body-buffer-size", parse::buffer).says(
    "size",
    "8k",
    "Bytes of a request body in memory before a file takes the rest.",
);
static HEADER_BUFFER: Key<usize> = Key::config_map("client-header-buffer-size", parse::buffer).says(
    "size",
    "1k",
    "A head that is not longer is taken even if a line of it is longer than large-client-header-buffers says.",
);
static HEADER_BUFFERS: Key<(usize, usize)> =
    Key::config_map("large-client-header-buffers", header_buffers).says(
        "number and size",
        "4 8k",
        "The longest header line (the size), and all lines together (number times size).",
    );
static PROXY_PROTOCOL: Key<bool> = Key::config_map("use-proxy-protocol", parse::boolean).switch(
    false,
    "Every connection starts with a PROXY protocol header. Peers in proxy-real-ip-cidr are believed what it says, and that \
     is everybody by default: name your balancers there, or any Pod may claim to be any client, and take the places \
     of others.",
);
static PROXY_PROTOCOL_TIMEOUT: Key<Duration> = Key::config_map(
    "proxy-protocol-header-timeout",
    parse::duration,
)
.says("time", "5s", "Time for the PROXY protocol header to arrive.");
static POOL: Key<u32> = Key::config_map("upstream-keepalive-connections", parse::count).number(
    "number",
    "320",
    "Idle connections to upstreams that each thread keeps; 0 keeps none. Sessions of HTTP/2 are not counted: at most one to an \
     address is kept, and none with 0.",
);
static POOL_REQUESTS: Key<u32> = Key::config_map("upstream-keepalive-requests", parse::count)
    .number("number", "10000", "Requests on one connection to an upstream.");
static POOL_IDLE: Key<Duration> = Key::config_map("upstream-keepalive-timeout", parse::seconds)
    .number("seconds", "60", "How long an idle connection to an upstream stays.");
static POOL_AGE: Key<Duration> = Key::config_map("upstream-keepalive-time", parse::duration).says(
    "time",
    "1h",
    "How long a connection to an upstream is used at most.",
);
static SHUTDOWN: Key<Duration> = Key::config_map("worker-shutdown-timeout", parse::duration).says(
    "time",
    "240s",
    "How long requests may take to finish when the process stops.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    global.http2 = settings.get_or(&HTTP2, global.http2);
    global.http2_streams = settings.get_or(&STREAMS, global.http2_streams);
    global.keep_alive.idle = settings.get_or(&IDLE, global.keep_alive.idle);
    if let Some(requests) = settings.get(&REQUESTS).map(u64::from) {
        global.keep_alive = KeepAlive { requests, http2_requests: requests, ..global.keep_alive };
    }
    let limits = &mut global.limits;
    limits.header_timeout = settings.get_or(&HEADER_TIMEOUT, limits.header_timeout);
    limits.body_timeout = settings.get_or(&BODY_TIMEOUT, limits.body_timeout);
    limits.body_buffer = settings.get_or(&BODY_BUFFER, limits.body_buffer);
    limits.header_first = settings.get_or(&HEADER_BUFFER, limits.header_first);
    let header = (limits.header_line, limits.header_total);
    (limits.header_line, limits.header_total) = settings.get_or(&HEADER_BUFFERS, header);
    limits.proxy_protocol_timeout =
        settings.get_or(&PROXY_PROTOCOL_TIMEOUT, limits.proxy_protocol_timeout);
    global.proxy_protocol = settings.get_or(&PROXY_PROTOCOL, global.proxy_protocol);
    let pool = &mut global.upstream_keep_alive;
    if let Some(connections) = settings.get(&POOL) {
        pool.connections = usize::try_from(connections).unwrap_or(usize::MAX);
    }
    pool.requests = settings.get(&POOL_REQUESTS).map_or(pool.requests, u64::from);
    pool.idle = settings.get_or(&POOL_IDLE, pool.idle);
    pool.age = settings.get_or(&POOL_AGE, pool.age);
    global.shutdown_timeout = settings.get_or(&SHUTDOWN, global.shutdown_timeout);
}

fn at_least_one(text: &str) -> Result<u32, String> {
    match parse::count(text)? {
        0 => Err("is too small: write at least 1".to_owned()),
        number => Ok(number),
    }
}

/// The longest line, and all lines together.
fn header_buffers(text: &str) -> Result<(usize, usize), String> {
    let wrong = || "is not a number and a size: write both, such as 4 8k".to_owned();
    let (number, size) = text.split_once(char::is_whitespace).ok_or_else(wrong)?;
    let number = at_least_one(number).map_err(|_| wrong())?;
    let size = parse::buffer(size.trim()).map_err(|_| wrong())?;
    let total = usize::try_from(number).ok().and_then(|number| number.checked_mul(size));
    total.filter(|total| *total <= 1 << 30).map(|total| (size, total)).ok_or_else(wrong)
}
