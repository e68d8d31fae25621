//! Addresses of clients as proxies write them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address as nginx's realip module takes it (ngx_parse_addr_port): bare, or with a port and then in brackets if it
/// is one of IPv6; and in brackets without a port, as Forwarded would have it. What follows otherwise makes it none.
pub fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let is_port = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse().is_ok_and(|port: u16| port > 0)
    };
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Some((address, after)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_whole = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
        return address.parse::<Ipv6Addr>().ok().filter(|_| is_whole).map(IpAddr::from);
    }
    let (address, _) = text.split_once(':').filter(|(_, port)| is_port(port))?;
    address.parse::<Ipv4Addr>().ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    fn read(text: &str) -> Option<String> {
        parse_address(text.as_bytes()).map(|address| address.to_string())
    }

    #[test]
    fn an_address_may_have_a_port_and_brackets() {
        for text in ["192.0.2.1", "192.0.2.1:1", "192.0.2.1:65535"] {
            assert_eq!(read(text).as_deref(), Some("192.0.2.1"), "{text}");
        }
        for text in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443"] {
            assert_eq!(read(text).as_deref(), Some("2001:db8::1"), "{text}");
        }
    }

    #[test]
    fn an_address_with_something_else_after_it_is_none() {
        for text in [
            "",
            "unknown",
            "192.0.2.1:",
            "192.0.2.1:0",
            "192.0.2.1:+1",
            "192.0.2.1:65536",
            "192.0.2.1:x",
            "192.0.2.1:1:1",
            "[192.0.2.1]:1",
            "2001:db8::1:65536",
            "[2001:db8::1",
            "[2001:db8::1]x",
            "[2001:db8::1]:",
            "[fe80::1%1]:80",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
