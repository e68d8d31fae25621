//! Listeners and the threads behind them.

use super::Area;
use crate::settings::{Key, Settings, parse};
use model::{Global, Severity};
use std::net::IpAddr;
use std::num::NonZeroU16;

pub(super) const AREA: Area =
    Area { name: "listeners", keys: &[&ADDRESSES, &ONLY_IPV4, &THREADS, &CONNECTIONS], apply };

static ADDRESSES: Key<Vec<String>> = Key::config_map("bind-address", parse::list).says(
    "addresses, comma separated",
    "all",
    "Addresses for HTTP and HTTPS; a family (IPv4, IPv6) without one listens on all of its addresses. Counts when the \
     process starts; --bind-address goes before it.",
);
static ONLY_IPV4: Key<bool> = Key::config_map("disable-ipv6", parse::boolean).switch(
    false,
    "HTTP and HTTPS listen on IPv4 only. Counts when the process starts; --bind-address goes before it.",
);
static THREADS: Key<Option<NonZeroU16>> = Key::config_map("worker-processes", threads).says(
    "number, or auto",
    "auto: the processors that the cgroup grants",
    "Threads that serve traffic. Counts when the process starts; --worker-threads goes before it.",
);
static CONNECTIONS: Key<u32> = Key::config_map("max-worker-connections", parse::count).number(
    "number",
    "0: as many as the limit of open files leaves room for",
    "Connections of clients that each thread takes at most.",
);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    for item in settings.get_or(&ADDRESSES, Vec::new()) {
        let bare = item.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&item);
        match bare.parse::<IpAddr>() {
            Ok(address) => global.listeners.addresses.push(address),
            Err(_) => {
                let message = format!(
                    "{item:?} is no address and left out: write such as 192.0.2.1, comma separated"
                );
                settings.note(ADDRESSES.about.name, Severity::Warning, message);
            }
        }
    }
    let listeners = &mut global.listeners;
    listeners.only_ipv4 = settings.get_or(&ONLY_IPV4, listeners.only_ipv4);
    listeners.threads = settings.get_or(&THREADS, listeners.threads);
    let connections = settings.get(&CONNECTIONS).filter(|number| *number > 0);
    listeners.connections = connections.and_then(|number| usize::try_from(number).ok());
}

fn threads(text: &str) -> Result<Option<NonZeroU16>, String> {
    match (text, text.parse::<NonZeroU16>()) {
        ("auto", _) => Ok(None),
        (_, Ok(number)) if number.get() <= 1024 => Ok(Some(number)),
        _ => Err("is no number of threads: write auto, or a number from 1 to 1024".to_owned()),
    }
}
