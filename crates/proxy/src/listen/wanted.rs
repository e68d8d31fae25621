//! The listeners and threads that flags and ConfigMap ask for together.

use super::Listen;
use model::Listeners;
use std::net::IpAddr;
use system::sockets::EVERYWHERE;

/// Listeners and threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Addresses; none means all.
    pub addresses: Vec<IpAddr>,
    /// Threads of traffic.
    pub threads: usize,
}

impl Wanted {
    /// What `flags` and, where they leave it open, `listeners` of the ConfigMap ask for; `threads` are those that the
    /// machine suggests, unless a flag fixed them.
    pub(crate) fn of(flags: &Listen, listeners: &Listeners, threads: usize, fixed: bool) -> Self {
        let own = listeners.threads.map(|own| usize::from(own.get())).filter(|_| !fixed);
        let addresses = named(&flags.addresses, listeners);
        Self { addresses, threads: own.unwrap_or(threads) }
    }
}

/// The addresses of `flags`, or where these leave it open of `listeners`; none means all.
fn named(flags: &[IpAddr], listeners: &Listeners) -> Vec<IpAddr> {
    if flags.is_empty() { listeners.everywhere() } else { flags.to_vec() }
}

/// The same, each by itself.
pub(crate) fn addresses(flags: &[IpAddr], listeners: &Listeners) -> Vec<IpAddr> {
    let named = named(flags, listeners);
    if named.is_empty() { EVERYWHERE.to_vec() } else { named }
}

#[cfg(test)]
mod tests {
    use super::{Listen, Wanted};
    use model::{Listeners, Outside};
    use std::net::IpAddr;

    fn wanted(flags: &[&str], named: &[&str], only_ipv4: bool) -> Vec<String> {
        let all = |texts: &[&str]| -> Vec<IpAddr> {
            texts.iter().map(|text| text.parse().expect("an address")).collect()
        };
        let flags = Listen {
            addresses: all(flags),
            http_port: 80,
            https_port: 443,
            health_path: String::new(),
            trace_secret: None,
            outside: Outside::default(),
        };
        let listeners = Listeners { addresses: all(named), only_ipv4, ..Listeners::default() };
        let wanted = Wanted::of(&flags, &listeners, 2, false);
        wanted.addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn flags_go_before_the_config_map_and_a_family_without_address_listens_on_all() {
        assert!(wanted(&[], &[], false).is_empty());
        assert_eq!(wanted(&[], &[], true), ["0.0.0.0"]);
        assert_eq!(wanted(&[], &["192.0.2.1"], false), ["192.0.2.1", "::"]);
        assert_eq!(wanted(&[], &["::1", "192.0.2.1"], true), ["192.0.2.1"]);
        assert_eq!(wanted(&["::1"], &["192.0.2.1"], true), ["::1"]);
    }

    #[test]
    fn a_flag_fixes_the_number_of_threads() {
        let flags = Listen {
            addresses: Vec::new(),
            http_port: 80,
            https_port: 443,
            health_path: String::new(),
            trace_secret: None,
            outside: Outside::default(),
        };
        let listeners = Listeners { threads: 3.try_into().ok(), ..Listeners::default() };
        assert_eq!(Wanted::of(&flags, &listeners, 2, false).threads, 3);
        assert_eq!(Wanted::of(&flags, &listeners, 2, true).threads, 2);
    }
}
