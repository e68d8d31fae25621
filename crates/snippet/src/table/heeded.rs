//! Directives that mean nothing here and something in nginx: with them some requests are answered otherwise there.

use super::row::{H, HSL};
use crate::level::{Level, Levels};
use crate::syntax::Directive;

/// Such a directive, where nginx heeds it, and with which values it does what is done here.
struct Heeded {
    name: &'static str,
    at: Levels,
    same: &'static [&'static str],
}

const fn heeded(name: &'static str, same: &'static [&'static str]) -> Heeded {
    Heeded { name, at: Levels(HSL), same }
}

const MINUTE: &[&str] = &["60", "60s", "1m"];

static HEEDED: &[Heeded] = &[
    heeded("server_name", &[]),
    heeded("merge_slashes", &["on"]),
    heeded("client_header_timeout", &[]),
    heeded("send_timeout", MINUTE),
    heeded("resolver", &[]),
    heeded("chunked_transfer_encoding", &["on"]),
    heeded("server_tokens", &["off"]),
    heeded("http2", &["on"]),
    heeded("ssl_ciphers", &[]),
    heeded("ssl_prefer_server_ciphers", &["on"]),
    heeded("ssl_ecdh_curve", &["auto"]),
    heeded("ssl_early_data", &["off"]),
    heeded("ssl_stapling", &["off"]),
    heeded("ssl_reject_handshake", &["off"]),
    // Those of a server count for the default one alone.
    Heeded { name: "ssl_protocols", at: Levels(H), same: &[] },
    heeded("proxy_bind", &["off"]),
    heeded("grpc_bind", &["off"]),
    heeded("fastcgi_bind", &["off"]),
    heeded("proxy_limit_rate", &["0"]),
    heeded("fastcgi_limit_rate", &["0"]),
    heeded("proxy_ignore_client_abort", &["off"]),
    heeded("fastcgi_ignore_client_abort", &["off"]),
    heeded("proxy_force_ranges", &["off"]),
    heeded("fastcgi_force_ranges", &["off"]),
    heeded("fastcgi_catch_stderr", &[]),
];

/// Whether nginx does something with this directive that is not done here.
pub(crate) fn is_heeded(level: Level, directive: &Directive) -> bool {
    let value = directive.arguments().first().map_or("", |word| word.text.as_str());
    let is_it = |one: &&Heeded| one.name == directive.name() && one.at.has(level);
    let found = HEEDED.iter().find(is_it);
    found.is_some_and(|one| !one.same.iter().any(|same| same.eq_ignore_ascii_case(value)))
}

#[cfg(test)]
mod tests {
    use super::HEEDED;
    use crate::table::{Build, Fate, find};

    #[test]
    fn what_nginx_alone_heeds_means_nothing_here() {
        for one in HEEDED {
            let rows = find(one.name);
            let is_idle = |fate| {
                matches!(fate, Fate::NoEffect | Fate::Idle(_) | Fate::Built(Build::ServerName))
            };
            assert!(rows.iter().any(|row| is_idle(row.fate)), "{}", one.name);
        }
    }
}
