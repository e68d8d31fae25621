//! Variables that are computed: `map`, `geo`, `split_clients`.

use super::asks::{self, Asks};
use super::{Exceeded, Machine, Request};
use crate::typed::{Geo, GlobalScope, Map, Name, Piece, Pieces, SplitClients};
use model::Variable;
use std::collections::HashMap;

/// The tables of the http level, by the variables they make.
#[derive(Debug, Default)]
pub struct Tables {
    by_name: HashMap<Name, Table>,
    /// What variables ask for that are made here.
    asks: HashMap<Name, Asks>,
    /// The one of `$req_id`: the request asks it once, before anybody else does.
    request_id: Option<Table>,
    /// Which variables of the controller they make.
    makes: Makes,
}

/// Variables that the controller looks at by itself, and whether a table makes them in its place: in nginx the last
/// table of a variable counts, and those of an `http-snippet` stand behind the template's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Makes {
    /// `$loggable`
    pub loggable: bool,
    /// `$full_x_forwarded_for`
    pub forwarded_for: bool,
    /// `$connection_upgrade`
    pub connection: bool,
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
        let request_id = by_name.remove(&named("req_id"));
        let makes = |name| by_name.contains_key(&named(name));
        let makes = Makes {
            loggable: makes("loggable"),
            forwarded_for: makes("full_x_forwarded_for"),
            connection: makes("connection_upgrade"),
        };
        Self { asks: asks::of_tables(&by_name), by_name, request_id, makes }
    }

    /// Which variables of the controller they make.
    pub fn makes(&self) -> Makes {
        self.makes
    }

    /// What makes `$req_id` in place of the controller.
    pub fn request_id(&self) -> Option<&Table> {
        self.request_id.as_ref()
    }

    /// What texts ask of a request, the tables that they lead to included.
    pub fn asks(&self, values: &[&dyn Pieces]) -> Asks {
        asks::of_values(values, &self.asks)
    }

    /// Whether one of them looks at numbers of connections.
    pub fn count(&self) -> bool {
        self.asks.values().any(|asks| asks.counts)
    }

    pub(super) fn named(&self, name: &Name) -> Option<&Table> {
        self.by_name.get(name)
    }
}

fn named(name: &str) -> Name {
    Name(name.into())
}

impl Pieces for Table {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        match self {
            Self::Map(map) => map.pieces(see),
            Self::Geo(geo) => geo.pieces(see),
            Self::Split(split) => split.pieces(see),
        }
    }
}

impl Table {
    pub(super) fn is_volatile(&self) -> bool {
        matches!(self, Self::Map(map) if map.volatile)
    }

    /// What it says for a request.
    pub fn value(&self, machine: &mut Machine<'_, impl Request>) -> Result<String, Exceeded> {
        match self {
            Self::Map(table) => mapped(table, machine),
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
                Ok(share.map_or_else(String::new, |share| share.value.clone()))
            }
        }
    }
}

/// What a `map` says.
fn mapped(map: &Map, machine: &mut Machine<'_, impl Request>) -> Result<String, Exceeded> {
    let text = machine.expand(&map.source)?;
    if let Some(value) = map.of_key(&text) {
        return machine.expand(value);
    }
    let text = map.looked_for(&text);
    for (regex, value) in &map.patterns {
        // An empty value is none for expressions (ngx_http_map_find).
        if !text.is_empty() && machine.state.matches(regex, text)? {
            return machine.expand(value);
        }
    }
    machine.expand(&map.default)
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
