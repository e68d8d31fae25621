//! What is said at http level.

use super::{LocationKind, Name, Position, Regex, Scope, Settings, Template};
use crate::{Origin, Secret, parse_address};
use ipnet::IpNet;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// What an `http-snippet` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GlobalScope {
    /// Settings that every server inherits.
    pub settings: Settings,
    /// `map`
    pub maps: Vec<Map>,
    /// `geo`
    pub geos: Vec<Geo>,
    /// `split_clients`
    pub splits: Vec<SplitClients>,
    /// `limit_req_zone`
    pub request_zones: Vec<ReqZone>,
    /// `limit_conn_zone`
    pub connection_zones: Vec<ConnZone>,
    /// `server`
    pub servers: Vec<OwnServer>,
    /// The object that says it.
    #[serde(skip)]
    pub origin: Option<Origin>,
}

/// `map source $name { … }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Map {
    /// The variable.
    pub name: Name,
    /// What is looked up.
    pub source: Template,
    /// `hostnames`: keys may begin with `*.` or `.`, or end with `.*`.
    pub hostnames: bool,
    /// `volatile`: the value is not remembered for the request.
    pub volatile: bool,
    /// Keys without expressions, in lower case.
    #[serde(serialize_with = "pairs")]
    pub keys: BTreeMap<MapKey, Template>,
    /// Expressions, tried in order.
    pub patterns: Vec<(Secret<Regex>, Template)>,
    /// `default`, else empty.
    pub default: Template,
}

/// Keys that are no text: as pairs.
fn pairs<S: Serializer>(
    keys: &BTreeMap<MapKey, Template>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(keys)
}

/// A key of a `map`, in the order in which kinds are tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum MapKey {
    /// Text, without regard to case; it may be a secret that is compared with.
    Exact(Secret<String>),
    /// `*.example.com`: what the host ends with, its dot included.
    Ending(String),
    /// `example.*`: what the host begins with, its dot included.
    Beginning(String),
}

/// `geo [$address] $name { … }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Geo {
    /// The variable.
    pub name: Name,
    /// The address that is looked up; `$remote_addr` if not said.
    pub address: Template,
    /// `proxy`: peers whose X-Forwarded-For is looked up instead.
    pub proxies: Vec<IpNet>,
    /// `proxy_recursive`
    pub proxy_recursive: bool,
    /// Networks; the narrowest counts.
    pub networks: BTreeMap<IpNet, String>,
    /// `ranges`: first and last address of each.
    pub ranges: Vec<(IpAddr, IpAddr, String)>,
    /// `default`, else empty.
    pub default: String,
}

/// `split_clients source $name { … }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SplitClients {
    /// The variable.
    pub name: Name,
    /// What is hashed.
    pub source: Template,
    /// In order.
    pub shares: Vec<Share>,
}

/// One line of `split_clients`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Hashes up to this one, the last line without it.
    pub below: Option<u32>,
    /// Its value.
    pub value: String,
}

/// `limit_req_zone key zone=name:size rate=…`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReqZone {
    /// Whose requests are counted; an empty key is not counted.
    pub key: Template,
    /// The name.
    pub name: String,
    /// Bytes, which bound how many keys are known.
    pub size: u64,
    /// How many in which time.
    pub rate: Rate,
}

/// `rate=10r/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Requests.
    pub requests: u32,
    /// Whether in a minute, not in a second.
    pub per_minute: bool,
}

/// `limit_conn_zone key zone=name:size`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnZone {
    /// Whose requests are counted; an empty key is not counted.
    pub key: Template,
    /// The name.
    pub name: String,
    /// Bytes, which bound how many keys are known.
    pub size: u64,
}

/// `server { listen …; … }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OwnServer {
    /// Its ports.
    pub listens: Vec<Listen>,
    /// Its names.
    pub names: Vec<VirtualName>,
    /// What it says.
    pub scope: Scope,
    /// Where it is written.
    #[serde(skip)]
    pub at: Position,
}

impl OwnServer {
    /// Ports that snippets may open; each thread has a socket for each address of one.
    pub const MOST_PORTS: usize = 32;
}

/// `listen 8080`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listen {
    /// The address; all of IPv4 if none.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// `default_server`
    pub default_server: bool,
    /// `proxy_protocol`
    pub proxy_protocol: bool,
}

/// A name of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum VirtualName {
    /// A name, perhaps with `*.` or `.*` at an end, in lower case.
    Name(String),
    /// `~expression`
    Regex(Regex),
}

impl LocationKind {
    /// What nginx calls the location by: its path, its expression, its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Exact(path) | Self::Prefix { path, .. } => path,
            Self::Regex(regex) => regex.pattern.source(),
            Self::Named(name) => name,
        }
    }
}

impl Map {
    /// What is looked for of a text: a host without the dot at its end.
    pub fn looked_for<'t>(&self, text: &'t str) -> &'t str {
        let host = text.strip_suffix('.').filter(|_| self.hostnames);
        host.unwrap_or(text)
    }

    /// Exact text, then the longest `*.` key, then the longest `.*` key.
    pub fn of_key(&self, text: &str) -> Option<&Template> {
        let lower = self.looked_for(text).to_ascii_lowercase();
        let host = lower.as_str();
        let find = |key: MapKey| self.keys.get(&key);
        if let Some(value) = find(MapKey::Exact(host.to_owned().into())) {
            return Some(value);
        }
        if !self.hostnames {
            return None;
        }
        let dots = || host.match_indices('.').map(|(at, _)| at);
        let ending = dots().find_map(|at| find(MapKey::Ending(host[at..].to_owned())));
        ending.or_else(|| {
            let longest_first = dots().collect::<Vec<_>>().into_iter().rev();
            longest_first.into_iter().find_map(|at| find(MapKey::Beginning(host[..=at].to_owned())))
        })
    }
}

impl Geo {
    /// Who is looked up: `address`, or where `proxy` says so whom X-Forwarded-For names, perhaps with a port. Commas
    /// and spaces part addresses, and those at the end are none (ngx_http_get_forwarded_addr_internal). None if nobody
    /// is.
    pub fn client(&self, address: &str, forwarded: &str) -> Option<IpAddr> {
        let is_proxy = |address: IpAddr| self.proxies.iter().any(|proxy| proxy.contains(&address));
        let mut client = address.parse::<IpAddr>().ok()?.to_canonical();
        let members = forwarded.rsplit([',', ' ']).filter(|member| !member.is_empty());
        for (index, hop) in members.enumerate() {
            if !is_proxy(client) || (index > 0 && !self.proxy_recursive) {
                break;
            }
            let Some(hop) = parse_address(hop.as_bytes()) else { break };
            client = hop.to_canonical();
        }
        Some(client)
    }

    /// What it says of a client.
    pub fn value(&self, client: Option<IpAddr>) -> &str {
        // What is no address is looked up as this one, as in nginx.
        let address = client.unwrap_or(IpAddr::V4(Ipv4Addr::BROADCAST));
        let range =
            self.ranges.iter().rev().find(|(first, last, _)| *first <= address && address <= *last);
        if let Some((_, _, value)) = range {
            return value;
        }
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let narrowest_first =
            (0..=longest).rev().filter_map(|length| IpNet::new(address, length).ok());
        let mut found = narrowest_first.filter_map(|network| self.networks.get(&network.trunc()));
        found.next().unwrap_or(&self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::{Geo, Name, Template};

    #[test]
    fn whom_a_proxy_names_is_looked_up_as_nginx_reads_it() {
        let network = |text: &str| text.parse().expect("a network");
        let mut geo = Geo {
            name: Name("bad".into()),
            address: Template::default(),
            proxies: vec![network("10.0.0.0/8")],
            proxy_recursive: false,
            networks: [(network("198.51.100.0/24"), "1".to_owned())].into(),
            ranges: Vec::new(),
            default: "0".to_owned(),
        };
        let value =
            |geo: &Geo, address, forwarded| geo.value(geo.client(address, forwarded)).to_owned();
        for forwarded in [
            "198.51.100.7",
            "198.51.100.7:51234",
            "203.0.113.1, 198.51.100.7, ",
            "203.0.113.1 198.51.100.7",
            "[::ffff:198.51.100.7]:1",
        ] {
            assert_eq!(value(&geo, "10.0.0.1", forwarded), "1", "{forwarded}");
            assert_eq!(value(&geo, "192.0.2.1", forwarded), "0", "{forwarded}");
        }
        for forwarded in ["198.51.100.7, unknown", "198.51.100.7, 10.0.0.2", "", "198.51.100.7:x"] {
            assert_eq!(value(&geo, "::ffff:10.0.0.1", forwarded), "0", "{forwarded}");
        }
        geo.proxy_recursive = true;
        assert_eq!(value(&geo, "10.0.0.1", "198.51.100.7:1, 10.0.0.2:2"), "1");
        assert_eq!(value(&geo, "10.0.0.1", "198.51.100.7, 203.0.113.1, 10.0.0.2"), "0");
        assert_eq!(value(&geo, "198.51.100.7:1", ""), "0", "such a variable is no address");
    }
}
