//! Where names and URLs of objects may lead: outside, and neither to this machine nor to what a cloud tells its nodes.

use crate::Networks;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds answer whoever asks from a node with that node's credentials, beside link-local addresses: Alibaba
/// (100.100.100.200), Azure (168.63.129.16), Oracle (192.0.0.192), AWS over IPv6 (fd00:ec2::254) and GCP over IPv6
/// (fd20:ce::254).
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254)),
];

/// Which addresses a name or a URL that an object names may lead to. What is checked is the address that was resolved,
/// not the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Networks that an operator allows all the same.
    allowed: Networks,
}

impl Outside {
    /// What is outside, and these networks besides.
    pub fn and(allowed: impl IntoIterator<Item = IpNet>) -> Self {
        Self { allowed: allowed.into_iter().collect() }
    }

    /// Everywhere: what only an operator can name, such as a collector of spans beside this process.
    pub fn anywhere() -> Self {
        Self::and([Ipv4Net::default().into(), Ipv6Net::default().into()])
    }

    /// Whether an object may lead there.
    pub fn permits(&self, address: IpAddr) -> bool {
        let meant = meant(address);
        is_outside(meant) || self.allowed.contains(meant)
    }
}

fn is_outside(address: IpAddr) -> bool {
    let local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let nobody = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    !local && !nobody && !METADATA.contains(&address)
}

/// The IPv4 address that an IPv6 address stands for: mapped, or behind the well-known prefix of NAT64 (RFC 6052
/// section 2.1).
fn meant(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        canonical => canonical,
    }
}

#[cfg(test)]
mod tests {
    use super::Outside;
    use std::net::IpAddr;

    fn permits(outside: &Outside, address: &str) -> bool {
        outside.permits(address.parse::<IpAddr>().expect("an address"))
    }

    #[test]
    fn this_machine_its_links_and_metadata_are_not_outside() {
        let outside = Outside::default();
        for inside in [
            "127.0.0.1",
            "127.1.2.3",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert!(!permits(&outside, inside), "{inside}");
        }
        for other in ["192.0.2.1", "10.0.0.1", "100.100.100.201", "2001:db8::1", "fd00::1"] {
            assert!(permits(&outside, other), "{other}");
        }
    }

    #[test]
    fn what_an_operator_allows_is_permitted_however_it_is_written() {
        let outside = Outside::and(["169.254.20.0/24".parse().expect("a network")]);
        assert!(permits(&outside, "169.254.20.10") && permits(&outside, "::ffff:169.254.20.10"));
        assert!(!permits(&outside, "169.254.169.254") && !permits(&outside, "127.0.0.1"));
    }
}
