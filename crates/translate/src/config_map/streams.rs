//! TCP and UDP services.

use super::Area;
use crate::settings::{Key, Settings, parse};
use model::Global;
use std::time::Duration;

pub(super) const AREA: Area = Area {
    name: "streams",
    keys: &[&TIMEOUT, &NEXT, &NEXT_TIMEOUT, &NEXT_TRIES, &RESPONSES],
    apply,
};

static TIMEOUT: Key<Duration> = Key::config_map("proxy-stream-timeout", patience).says(
    "duration",
    "600s",
    "How long nothing may move on a connection (or UDP session) of a TCP or UDP service before it ends.",
);
static NEXT: Key<bool> = Key::config_map("proxy-stream-next-upstream", parse::boolean).switch(
    true,
    "An endpoint of a TCP service that cannot be connected to is followed by the next one.",
);
static NEXT_TIMEOUT: Key<Duration> =
    Key::config_map("proxy-stream-next-upstream-timeout", parse::duration).says(
        "duration",
        "600s",
        "Time for all tries to connect to endpoints of a TCP service; 0 is no bound.",
    );
static NEXT_TRIES: Key<u32> = Key::config_map("proxy-stream-next-upstream-tries", parse::count)
    .number("number", "3", "Endpoints of a TCP service tried for a connection; 0 is each one.");
static RESPONSES: Key<u32> = Key::config_map("proxy-stream-responses", parse::count).says(
    "number",
    "1",
    "Datagrams of a UDP service that answer one of a client, before its session ends.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    let streams = &mut global.streams;
    streams.idle = settings.get_or(&TIMEOUT, streams.idle);
    streams.next_endpoint = settings.get_or(&NEXT, streams.next_endpoint);
    streams.tries_timeout = settings.get_or(&NEXT_TIMEOUT, streams.tries_timeout);
    streams.tries = settings.get_or(&NEXT_TRIES, streams.tries);
    streams.responses = settings.get_or(&RESPONSES, streams.responses);
}

fn patience(text: &str) -> Result<Duration, String> {
    match parse::duration(text)? {
        Duration::ZERO => Err("would end everything at once: write such as 10m".to_owned()),
        time => Ok(time),
    }
}
