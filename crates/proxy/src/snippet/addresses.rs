//! `allow` and `deny`, `set_real_ip_from` and its companions (ngx_http_access_module, ngx_http_realip_module).

use ipnet::IpNet;
use model::snippet::{AccessRule, ClientAddress, RealIp as Settings};
use model::{Networks, parse_address};
use std::net::{IpAddr, Ipv4Addr};
use stream::proxy_protocol::Announced;
use wire::{Headers, tokens};

/// Whether rules let a client in; none if no rule is about it.
pub(crate) fn lets_in(rules: &[AccessRule], client: IpAddr) -> Option<bool> {
    let client = client.to_canonical();
    let is_about = |rule: &&AccessRule| match &rule.whom {
        ClientAddress::All => true,
        ClientAddress::Network(network) => network.contains(&client),
        ClientAddress::Networks(networks) => networks.contains(client),
        ClientAddress::Unix => false,
    };
    rules.iter().find(is_about).map(|rule| rule.allow)
}

/// Whose word about the client's address counts, where a snippet says so.
#[derive(Debug)]
pub(crate) struct RealIp {
    trusted: Networks,
    header: String,
    recursive: bool,
    /// Where the PROXY protocol and the header both tell: whose announcements are one more proxy, which says nothing
    /// itself (nginx.tmpl: `$forwarded_for_proxy_protocol`).
    proxies: Option<Networks>,
}

impl RealIp {
    /// What a level says, with what the ConfigMap says beside; none if snippets say nothing.
    pub(crate) fn new(
        settings: &Settings,
        global: &model::RealIp,
        proxy_protocol: bool,
    ) -> Option<Self> {
        if *settings == Settings::default() {
            return None;
        }
        let enabled = global.enabled || global.forwarded_headers || proxy_protocol;
        let trusted = match settings.trusted.is_empty() {
            true if enabled => global.trusted.clone(),
            true => Networks::default(),
            false => settings.trusted.iter().flat_map(networks).collect(),
        };
        let both = proxy_protocol && global.forwarded_headers && settings.header.is_none();
        let usual = match (enabled, proxy_protocol) {
            (true, true) if !both => "proxy_protocol",
            (true, _) => &global.forwarded_for_header,
            (false, _) => "x-real-ip",
        };
        Some(Self {
            trusted,
            header: settings.header.clone().unwrap_or_else(|| usual.to_owned()),
            recursive: settings.recursive.unwrap_or(enabled),
            proxies: both.then(|| global.trusted.clone()),
        })
    }

    /// Who the client is behind `peer`; none if its word does not count, or it says nothing.
    pub(crate) fn client(
        &self,
        peer: IpAddr,
        announced: Option<Announced>,
        headers: &Headers,
    ) -> Option<IpAddr> {
        if !self.trusts(peer) {
            return None;
        }
        let announced = announced.map(|announced| announced.source.ip().to_canonical());
        // To nginx a source that is not there is an address of its own.
        let source = announced.unwrap_or(Ipv4Addr::BROADCAST.into());
        let is_client = |proxies: &Networks| !proxies.contains(source);
        if self.header == "proxy_protocol" || self.proxies.as_ref().is_some_and(is_client) {
            return announced;
        }
        let mut client = None;
        let values: Vec<_> = headers.all(&self.header).collect();
        let members = values.into_iter().flat_map(tokens).collect::<Vec<_>>();
        for member in members.into_iter().rev() {
            let Some(address) = parse_address(member) else { break };
            client = Some(address);
            if !(self.recursive && self.trusts(address)) {
                break;
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.contains(address)
    }
}

fn networks(whom: &ClientAddress) -> Vec<IpNet> {
    match whom {
        ClientAddress::Network(network) => vec![*network],
        ClientAddress::Networks(networks) => networks.iter().copied().collect(),
        ClientAddress::All | ClientAddress::Unix => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{RealIp, lets_in};
    use crate::snippet::fixture::location;
    use std::net::{IpAddr, SocketAddr};
    use stream::proxy_protocol::Announced;
    use wire::Headers;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("the test writes an address")
    }

    #[test]
    fn the_first_rule_about_a_client_decides() {
        let rules =
            location("deny 10.1.0.0/16; allow 10.0.0.0/8; deny 2001:db8::/32; allow unix:;");
        let rules = rules.settings.access.rules;
        let decided = |client| lets_in(&rules, address(client));
        assert_eq!(decided("10.1.2.3"), Some(false));
        assert_eq!(decided("10.2.2.3"), Some(true));
        assert_eq!(decided("::ffff:10.1.2.3"), Some(false));
        assert_eq!(decided("2001:db8::1"), Some(false));
        assert_eq!(decided("192.0.2.1"), None);
        let all = location("allow 192.0.2.1; deny all;").settings.access.rules;
        assert_eq!(lets_in(&all, address("192.0.2.1")), Some(true));
        assert_eq!(lets_in(&all, address("::1")), Some(false));
    }

    fn client(text: &str, peer: &str, fields: &[(&'static str, &'static str)]) -> Option<String> {
        let settings = location(text).settings.real_ip;
        let real = RealIp::new(&settings, &model::RealIp::default(), false)?;
        let mut headers = Headers::default();
        fields.iter().for_each(|(name, value)| headers.add(name, *value));
        real.client(address(peer), None, &headers).map(|client| client.to_string())
    }

    #[test]
    fn only_trusted_peers_are_believed_and_the_last_address_counts_unless_recursive() {
        let fields = [("X-Forwarded-For", "1.1.1.1, 2.2.2.2"), ("X-Forwarded-For", "10.0.0.9:80")];
        let text = "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;";
        assert_eq!(client(text, "10.0.0.1", &fields).as_deref(), Some("10.0.0.9"));
        assert_eq!(client(text, "192.0.2.1", &fields), None);
        let recursive = format!("{text} real_ip_recursive on;");
        assert_eq!(client(&recursive, "10.0.0.1", &fields).as_deref(), Some("2.2.2.2"));
        let real = [("X-Real-IP", "3.3.3.3")];
        assert_eq!(
            client("set_real_ip_from 10.0.0.1;", "10.0.0.1", &real).as_deref(),
            Some("3.3.3.3")
        );
        let cdn = "set_real_ip_from 10.0.0.0/8; real_ip_header CF-Connecting-IP;";
        let said = [("cf-connecting-ip", "2001:db8::7")];
        assert_eq!(client(cdn, "10.0.0.1", &said).as_deref(), Some("2001:db8::7"));
        assert_eq!(client(cdn, "10.0.0.1", &[("cf-connecting-ip", "nobody")]), None);
        assert_eq!(client("", "10.0.0.1", &real), None);
        assert_eq!(client("real_ip_header X-Real-IP;", "10.0.0.1", &real), None);
    }

    #[test]
    fn where_both_tell_a_trusted_source_is_one_more_proxy_here_too() {
        let trusted = ["10.0.0.0/8".parse().expect("a network")].into_iter().collect();
        let global = model::RealIp { forwarded_headers: true, trusted, ..model::RealIp::default() };
        let settings = location("set_real_ip_from 10.0.0.0/8;").settings.real_ip;
        let real = RealIp::new(&settings, &global, true).expect("it says something");
        let of = |source: &str, said: Option<&'static str>| {
            let mut headers = Headers::default();
            said.into_iter().for_each(|said| headers.add("X-Forwarded-For", said));
            let [source, destination] =
                [source, "10.0.0.1"].map(|text| SocketAddr::new(address(text), 80));
            let announced = Announced { source, destination };
            let client = real.client(address("10.0.0.1"), Some(announced), &headers);
            client.map(|client| client.to_string())
        };
        assert_eq!(of("10.9.9.9", Some("203.0.113.9")).as_deref(), Some("203.0.113.9"));
        assert_eq!(of("203.0.113.9", Some("198.51.100.1")).as_deref(), Some("203.0.113.9"));
        assert_eq!(of("10.9.9.9", None), None);
    }
}
