//! `proxy-connect-timeout`, `proxy-send-timeout`, `proxy-read-timeout`.

use super::Family;
use crate::settings::{Key, Lines, Settings, parse};
use model::Severity;
use model::policy::{Policy, Timeouts};
use std::time::Duration;

pub(super) const FAMILY: Family =
    Family { name: "timeouts", keys: &[&CONNECT, &SEND, &READ], apply };

static CONNECT: Key<Duration> = Key::both("proxy-connect-timeout", parse::seconds).number(
    "seconds",
    "5",
    "Time until a connection to the upstream stands.",
);

static SEND: Key<Duration> = Key::both("proxy-send-timeout", parse::seconds).number(
    "seconds",
    "60",
    "Time between two successful writes to the upstream.",
);

static READ: Key<Duration> = Key::both("proxy-read-timeout", parse::seconds).number(
    "seconds",
    "60",
    "Time between two successful reads from the upstream; it bounds idle WebSockets, too.",
);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    let timeouts = &mut policy.timeouts;
    timeouts.connect = settings.get_or(&CONNECT, timeouts.connect);
    timeouts.send = settings.get_or(&SEND, timeouts.send);
    timeouts.read = settings.get_or(&READ, timeouts.read);
    for key in [&CONNECT, &READ] {
        if settings.raw(key.about.name).is_some_and(|text| is_nothing(&text)) {
            settings.note(key.about.name, Severity::Warning, NO_TIME);
        }
    }
}

/// `0` counts as it does for nginx, whose time-out is over before anything can come. Writes are tried first.
const NO_TIME: &str = "is no time at all: ingress-nginx answers 504 to each request; write how many seconds it may take, \
    such as 60";

fn is_nothing(text: &str) -> bool {
    parse::seconds(text).is_ok_and(|time| time.is_zero())
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(timeouts: &Timeouts, lines: &mut Lines) {
    let Timeouts { connect, send, read } = timeouts;
    lines.add("timeouts.connect", connect).by(&[&CONNECT]);
    lines.add("timeouts.send", send).by(&[&SEND]).of_route("timeouts");
    lines.add("timeouts.read", read).by(&[&READ]).of_route("timeouts");
}
