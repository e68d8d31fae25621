//! Who is believed about the client's address, host, port and scheme.

use super::Area;
use crate::settings::{Key, OnBad, Settings, parse};
use ipnet::IpNet;
use model::{Global, Networks};

pub(super) const AREA: Area = Area {
    name: "real_ip",
    keys: &[&ENABLED, &FORWARDED, &FULL, &FOR_HEADER, &HOST_HEADER, &TRUSTED],
    apply,
};

static ENABLED: Key<bool> = Key::config_map("enable-real-ip", parse::boolean)
    .switch(false, "The client's address is taken from forwarded-for-header.");
static FORWARDED: Key<bool> = Key::config_map("use-forwarded-headers", parse::boolean)
    .switch(false, "X-Forwarded-For, -Proto, -Host and -Port of trusted peers are believed.");
static FULL: Key<bool> = Key::config_map("compute-full-forwarded-for", parse::boolean)
    .switch(false, "The peer's address is appended to X-Forwarded-For rather than replacing it.");
static FOR_HEADER: Key<String> = Key::config_map("forwarded-for-header", parse::header_name).says(
    "header name",
    "X-Forwarded-For",
    "The header with the client's address.",
);
static HOST_HEADER: Key<String> = Key::config_map("forwarded-host-header", parse::header_name)
    .says(
        "header name",
        "X-Forwarded-Host",
        "The header that is passed on as X-Original-Forwarded-Host.",
    );
static TRUSTED: Key<Vec<IpNet>> = Key::config_map("proxy-real-ip-cidr", parse::networks)
    .says(
        "networks, comma separated",
        "0.0.0.0/0",
        "The peers that are believed about the client; an empty value means none. Without it, IPv6 peers are believed \
         about X-Forwarded-Proto, -Host and -Port, and not about the client's address.",
    )
    .on_bad(OnBad::Disbelieve);

fn apply(settings: &mut Settings<'_>, global: &mut Global) {
    let real_ip = &mut global.real_ip;
    real_ip.by_default = !settings.is_written(&TRUSTED);
    real_ip.enabled = settings.get_or(&ENABLED, real_ip.enabled);
    real_ip.forwarded_headers = settings.get_or(&FORWARDED, real_ip.forwarded_headers);
    real_ip.full_forwarded_for = settings.get_or(&FULL, real_ip.full_forwarded_for);
    if let Some(name) = settings.get(&FOR_HEADER) {
        real_ip.forwarded_for_header = name;
    }
    if let Some(name) = settings.get(&HOST_HEADER) {
        real_ip.forwarded_host_header = name;
    }
    if let Some(networks) = settings.list(&TRUSTED) {
        real_ip.trusted = networks.into_iter().collect();
    } else if settings.is_written(&TRUSTED) {
        real_ip.trusted = Networks::default();
        // All clients would have the address of who stands in front, which lists of addresses let in or out as one. The
        // PROXY protocol is of `connections`, which is read first.
        if real_ip.forwarded_headers || real_ip.enabled || global.proxy_protocol {
            settings.close(TRUSTED.about.name, "who the client is cannot be known without it");
        }
    }
}
