//! A set of networks that answers at once whether an address is in it.

use ipnet::{IpNet, Ipv4Net};
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;

/// A set of networks. IPv4 addresses that are written as IPv6 (`::ffff:192.0.2.1`) are the IPv4 addresses that they
/// mean. A copy shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Networks {
    /// Disjoint and in order.
    nets: Arc<[IpNet]>,
}

impl Networks {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nets.is_empty()
    }

    /// The networks: disjoint and in order.
    pub fn iter(&self) -> impl Iterator<Item = &IpNet> {
        self.nets.iter()
    }

    /// Whether every address is in one of them.
    pub fn have_all(&self) -> bool {
        let all = |is_ipv6: bool| {
            let whole = |net: &IpNet| net.prefix_len() == 0 && net.network().is_ipv6() == is_ipv6;
            self.nets.iter().any(whole)
        };
        all(false) && all(true)
    }

    /// Whether one of them has the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        if self.nets.is_empty() {
            return false;
        }
        let address = address.to_canonical();
        let after = self.nets.partition_point(|net| net.network() <= address);
        after.checked_sub(1).is_some_and(|at| self.nets[at].contains(&address))
    }
}

impl FromIterator<IpNet> for Networks {
    fn from_iter<I: IntoIterator<Item = IpNet>>(nets: I) -> Self {
        let nets: Vec<IpNet> = nets.into_iter().map(canonical).collect();
        Self { nets: IpNet::aggregate(&nets).into() }
    }
}

/// A network of IPv4 addresses in IPv6 notation as one of IPv4.
fn canonical(net: IpNet) -> IpNet {
    const MAPPED: u8 = 96;
    match (net.network().to_canonical(), net.prefix_len().checked_sub(MAPPED)) {
        (IpAddr::V4(address), Some(length)) if net.network().is_ipv6() => {
            Ipv4Net::new(address, length).map_or(net, IpNet::V4)
        }
        _ => net.trunc(),
    }
}

#[cfg(test)]
mod tests {
    use super::Networks;
    use std::net::IpAddr;

    fn networks(texts: &[&str]) -> Networks {
        texts.iter().map(|text| text.parse::<ipnet::IpNet>().expect("a network")).collect()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_is_in_a_set_if_one_network_has_it() {
        let set = networks(&["192.0.2.0/24", "10.0.0.1/32", "2001:db8::/32", "10.0.0.0/8"]);
        for inside in ["192.0.2.255", "10.200.0.1", "10.0.0.1", "2001:db8:ffff::1"] {
            assert!(set.contains(address(inside)), "{inside}");
        }
        for outside in ["192.0.3.0", "9.255.255.255", "11.0.0.0", "2001:db9::", "::1", "0.0.0.0"] {
            assert!(!set.contains(address(outside)), "{outside}");
        }
        assert!(!Networks::default().contains(address("192.0.2.1")));
    }

    #[test]
    fn an_address_has_one_meaning_however_it_is_written() {
        let set = networks(&["192.0.2.0/24", "::ffff:198.51.100.0/120"]);
        assert!(set.contains(address("::ffff:192.0.2.7")));
        assert!(set.contains(address("198.51.100.7")));
        assert!(!networks(&["::/0"]).contains(address("192.0.2.7")));
        assert!(!networks(&["0.0.0.0/0"]).contains(address("2001:db8::7")));
    }

    #[test]
    fn bits_behind_the_prefix_do_not_matter() {
        assert!(networks(&["10.77.0.50/24"]).contains(address("10.77.0.1")));
    }
}
