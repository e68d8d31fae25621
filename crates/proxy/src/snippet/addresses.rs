//! `allow` and `deny`, `set_real_ip_from` and its companions (ngx_http_access_module, ngx_http_realip_module).

use crate::address::parse_address;
use ipnet::IpNet;
use model::Networks;
use model::snippet::{AccessRule, ClientAddress, RealIp as Settings, Settings as OfLevel};
use std::borrow::Cow;
use std::net::IpAddr;
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

/// What servers inherit of the http level: `block-cidrs` stands there, too, behind its rules (nginx.tmpl). Where it has
/// no rules, locations without a list of their own ask for `block-cidrs` by themselves.
pub(crate) fn of_http_level<'s>(said: &'s OfLevel, blocked: &Networks) -> Cow<'s, OfLevel> {
    if said.access.rules.is_empty() || blocked.is_empty() {
        return Cow::Borrowed(said);
    }
    let mut said = said.clone();
    said.access
        .rules
        .push(AccessRule { allow: false, whom: ClientAddress::Networks(blocked.clone()) });
    Cow::Owned(said)
}

/// Whose word about the client's address counts, where a snippet says so.
#[derive(Debug)]
pub(crate) struct RealIp {
    trusted: Networks,
    header: String,
    recursive: bool,
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
            false => settings.trusted.iter().filter_map(network).collect(),
        };
        let usual = match (enabled, proxy_protocol) {
            (true, true) => "proxy_protocol",
            (true, false) => &global.forwarded_for_header,
            (false, _) => "x-real-ip",
        };
        Some(Self {
            trusted,
            header: settings.header.clone().unwrap_or_else(|| usual.to_owned()),
            recursive: settings.recursive.unwrap_or(enabled),
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
        if self.header == "proxy_protocol" {
            return announced.map(|announced| announced.source.ip().to_canonical());
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

fn network(whom: &ClientAddress) -> Option<IpNet> {
    match whom {
        ClientAddress::Network(network) => Some(*network),
        ClientAddress::All | ClientAddress::Networks(_) | ClientAddress::Unix => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{RealIp, lets_in};
    use crate::snippet::fixture::location;
    use std::net::IpAddr;
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
}
