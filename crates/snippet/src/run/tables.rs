//! Variables that are computed: `map`, `geo`, `split_clients`.

use super::{Exceeded, Machine, Request};
use crate::typed::{Geo, GlobalScope, Map, MapKey, Name, SplitClients, Template};
use ipnet::IpNet;
use model::Variable;
use std::collections::HashMap;
use std::net::IpAddr;

/// The tables of the http level, by the variables they make.
#[derive(Debug, Default)]
pub struct Tables {
    by_name: HashMap<Name, Table>,
}

/// One of them.
#[derive(Debug)]
pub enum Table {
    /// `map`
    Map(Map),
    /// `geo`
    Geo(Geo),
    /// `split_clients`
    Split(SplitClients),
}

impl Tables {
    /// The tables of some `http-snippet`s.
    pub fn new(scopes: &[&GlobalScope]) -> Self {
        let mut by_name = HashMap::new();
        for scope in scopes {
            by_name
                .extend(scope.maps.iter().map(|map| (map.name.clone(), Table::Map(map.clone()))));
            by_name
                .extend(scope.geos.iter().map(|geo| (geo.name.clone(), Table::Geo(geo.clone()))));
            let splits = scope.splits.iter();
            by_name.extend(splits.map(|split| (split.name.clone(), Table::Split(split.clone()))));
        }
        Self { by_name }
    }

    pub(super) fn named(&self, name: &Name) -> Option<&Table> {
        self.by_name.get(name)
    }
}

impl Table {
    pub(super) fn is_volatile(&self) -> bool {
        matches!(self, Self::Map(map) if map.volatile)
    }

    pub(super) fn value(
        &self,
        machine: &mut Machine<'_, impl Request>,
    ) -> Result<String, Exceeded> {
        match self {
            Self::Map(table) => table.value(machine),
            Self::Geo(geo) => {
                let address = machine.expand(&geo.address)?;
                let forwarded = Variable::RequestHeader("x_forwarded_for".to_owned());
                let forwarded = machine.request.variable(&forwarded);
                Ok(geo.value(geo.client(&address, &forwarded)).to_owned())
            }
            Self::Split(split) => {
                let hash = murmur(machine.expand(&split.source)?.as_bytes());
                let share =
                    split.shares.iter().find(|share| share.below.is_none_or(|below| hash < below));
                share.map_or_else(|| Ok(String::new()), |share| machine.expand(&share.value))
            }
        }
    }
}

impl Map {
    fn value(&self, machine: &mut Machine<'_, impl Request>) -> Result<String, Exceeded> {
        let text = machine.expand(&self.source)?;
        if let Some(value) = self.of_key(&text) {
            return machine.expand(value);
        }
        for (regex, value) in &self.patterns {
            if machine.state.matches(regex, &text)? {
                return machine.expand(value);
            }
        }
        machine.expand(&self.default)
    }

    /// Exact text, then the longest `*.` key, then the longest `.*` key.
    fn of_key(&self, text: &str) -> Option<&Template> {
        let lower = text.to_ascii_lowercase();
        let host = match self.hostnames {
            true => lower.strip_suffix('.').unwrap_or(&lower),
            false => &lower,
        };
        let find = |key: MapKey| self.keys.get(&key);
        if let Some(value) = find(MapKey::Exact(host.to_owned())) {
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
    /// Who is looked up: `address`, or where `proxy` says so whom X-Forwarded-For names.
    pub fn client<'a>(&self, address: &'a str, forwarded: &'a str) -> &'a str {
        let is_proxy = |address: &str| {
            let address = address.parse::<IpAddr>().map(|address| address.to_canonical());
            address.is_ok_and(|address| self.proxies.iter().any(|proxy| proxy.contains(&address)))
        };
        if !is_proxy(address) {
            return address;
        }
        let mut client = address;
        for hop in forwarded.rsplit(',').map(str::trim) {
            if hop.parse::<IpAddr>().is_err() {
                return client;
            }
            client = hop;
            if !self.proxy_recursive || !is_proxy(hop) {
                return client;
            }
        }
        client
    }

    /// What it says of an address.
    pub fn value(&self, address: &str) -> &str {
        let Ok(address) = address.parse::<IpAddr>() else { return &self.default };
        let address = address.to_canonical();
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

/// MurmurHash2 as nginx has it.
fn murmur(bytes: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    let mut hash = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut blocks = bytes.chunks_exact(4);
    for block in blocks.by_ref() {
        let mut k = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        k = k.wrapping_mul(MULTIPLIER);
        k ^= k >> 24;
        k = k.wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ k;
    }
    let rest = blocks.remainder();
    for (index, byte) in rest.iter().enumerate().rev() {
        hash ^= u32::from(*byte) << (8 * index);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}
