//! `map`, `geo` and `split_clients`: variables that are computed of others.

use super::{Compiler, inner};
use crate::Mistake;
use crate::read::guards::network;
use crate::read::{invalid, is_digits};
use crate::syntax::{Directive, Word};
use crate::typed::{Geo, Map, MapKey, Name, Piece, Share, SplitClients, Template};
use crate::variables::SET_BY_LOCATIONS;
use model::Variable;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Whether a table makes its variable anywhere: what each location sets is the location's.
pub(super) fn counts(name: &Name) -> bool {
    !SET_BY_LOCATIONS.contains(&&*name.0)
}

impl Compiler<'_> {
    /// The variable of a table.
    fn made(&mut self, directive: &Directive, word: &Word) -> Result<Name, Mistake> {
        let name = self.reader.names.made(word)?;
        if !counts(&name) {
            self.reader.note(directive, "each location of an Ingress sets this variable itself");
        }
        Ok(name)
    }

    pub(super) fn map(&mut self, directive: &Directive) -> Result<Map, Mistake> {
        let words = directive.arguments();
        let mut map = Map {
            name: self.made(directive, &words[1])?,
            source: self.reader.template(&words[0])?,
            hostnames: false,
            volatile: false,
            keys: BTreeMap::new(),
            patterns: Vec::new(),
            default: Template::default(),
        };
        let mut has_default = false;
        for line in inner(directive) {
            match (line.name(), line.arguments()) {
                ("hostnames", []) => map.hostnames = true,
                ("volatile", []) => map.volatile = true,
                ("include", _) => {
                    return Err(Mistake::needs_nginx(line.at(), "there are no files to include"));
                }
                ("default", [_]) if has_default => {
                    return Err(Mistake::refused(line.at(), "\"default\" is said twice"));
                }
                ("default", [value]) => {
                    has_default = true;
                    map.default = self.reader.template(value)?;
                }
                (_, [value]) if line.block.is_none() => {
                    self.map_line(&mut map, &line.words[0], value)?
                }
                _ => {
                    return Err(Mistake::refused(
                        line.at(),
                        "a line of a map is a key and a value",
                    ));
                }
            }
        }
        Ok(map)
    }

    fn map_line(&mut self, map: &mut Map, key: &Word, value: &Word) -> Result<(), Mistake> {
        let value = self.reader.template(value)?;
        if let Some(source) = key.text.strip_prefix('~') {
            let (source, ignore_case) = match source.strip_prefix('*') {
                Some(source) => (source, true),
                None => (source, false),
            };
            map.patterns.push((self.reader.regex(source, ignore_case, key.at)?.into(), value));
            return Ok(());
        }
        // A backslash keeps a key from being a word of its own.
        let text = key.text.strip_prefix('\\').unwrap_or(&key.text).to_ascii_lowercase();
        for new in map_keys(&text, map.hostnames) {
            if map.keys.insert(new, value.clone()).is_some() {
                return Err(Mistake::refused(
                    key.at,
                    format!("the key \"{text}\" is there already"),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn geo(&mut self, directive: &Directive) -> Result<Geo, Mistake> {
        let words = directive.arguments();
        let (name, address) = match words {
            [address, name] => (name, self.reader.template(address)?),
            words => (&words[0], Template { pieces: [Piece::Known(Variable::RemoteAddr)].into() }),
        };
        let mut geo = Geo {
            name: self.made(directive, name)?,
            address,
            proxies: Vec::new(),
            proxy_recursive: false,
            networks: BTreeMap::new(),
            ranges: Vec::new(),
            default: String::new(),
        };
        let mut by_ranges = false;
        for line in inner(directive) {
            match (line.name(), line.arguments()) {
                ("ranges", []) => by_ranges = true,
                ("proxy_recursive", []) => geo.proxy_recursive = true,
                ("default", [value]) => geo.default.clone_from(&value.text),
                ("include", _) => {
                    return Err(Mistake::needs_nginx(line.at(), "there are no files to include"));
                }
                ("proxy", [proxy]) => {
                    geo.proxies
                        .push(network(&proxy.text).ok_or_else(|| invalid(proxy, "network"))?);
                }
                ("delete", [gone]) if by_ranges => {
                    let (first, last) = range_of(gone)?;
                    geo.ranges.retain(|(from, to, _)| (*from, *to) != (first, last));
                }
                ("delete", [gone]) => {
                    let gone = network(&gone.text).ok_or_else(|| invalid(gone, "network"))?;
                    geo.networks.remove(&gone);
                }
                (_, [value]) if by_ranges => {
                    add_range(&mut geo.ranges, &line.words[0], value)?;
                }
                (key, [value]) => {
                    let network = network(key).ok_or_else(|| invalid(&line.words[0], "network"))?;
                    geo.networks.insert(network, value.text.clone());
                }
                _ => {
                    return Err(Mistake::refused(
                        line.at(),
                        "a line of geo is a network and a value",
                    ));
                }
            }
        }
        Ok(geo)
    }

    pub(super) fn split_clients(&mut self, directive: &Directive) -> Result<SplitClients, Mistake> {
        let words = directive.arguments();
        let source = self.reader.template(&words[0])?;
        let name = self.made(directive, &words[1])?;
        let mut shares = Vec::new();
        let mut sum = 0;
        for line in inner(directive) {
            let [value] = line.arguments() else {
                return Err(Mistake::refused(
                    line.at(),
                    "a line of split_clients is a share and a value",
                ));
            };
            let below = match line.name() {
                "*" => None,
                text => {
                    sum += hundredths(text)
                        .ok_or_else(|| invalid(&line.words[0], "share such as 0.5%"))?;
                    if sum > 10_000 {
                        return Err(Mistake::refused(line.at(), "the shares are more than 100%"));
                    }
                    Some(limit(sum))
                }
            };
            // Variables in it count for nothing.
            shares.push(Share { below, value: value.text.clone() });
        }
        Ok(SplitClients { name, source, shares })
    }
}

/// Where the hashes of the first `sum` hundredths of a percent end.
fn limit(sum: u64) -> u32 {
    u32::try_from(sum * u64::from(u32::MAX) / 10_000).unwrap_or(u32::MAX)
}

/// `12.34%` in hundredths of a percent, of which there is at least one.
fn hundredths(text: &str) -> Option<u64> {
    let number = text.strip_suffix('%')?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let fits = is_digits(whole) && is_digits(part) && whole.len() <= 3 && part.len() <= 2;
    let part = match part.len() {
        1 => part.parse::<u64>().ok()? * 10,
        _ => part.parse::<u64>().ok()?,
    };
    let sum = whole.parse::<u64>().ok()? * 100 + part;
    (fits && sum > 0).then_some(sum)
}

/// `.example.com` is both the name and what ends in it.
fn map_keys(text: &str, hostnames: bool) -> Vec<MapKey> {
    let exact = |text: &str| MapKey::Exact(text.to_owned().into());
    if !hostnames {
        return vec![exact(text)];
    }
    if let Some(end) = text.strip_prefix('*').filter(|end| end.starts_with('.')) {
        return vec![MapKey::Ending(end.to_owned())];
    }
    if let Some(name) = text.strip_prefix('.') {
        return vec![exact(name), MapKey::Ending(text.to_owned())];
    }
    match text.strip_suffix(".*") {
        Some(start) => vec![MapKey::Beginning(format!("{start}."))],
        None => vec![exact(text)],
    }
}

/// Adds a range, which lies within each that it has addresses in common with: there it counts in their place.
fn add_range(
    ranges: &mut Vec<(IpAddr, IpAddr, String)>,
    key: &Word,
    value: &Word,
) -> Result<(), Mistake> {
    let (first, last) = range_of(key)?;
    let fits = |from: &IpAddr, to: &IpAddr| {
        let apart = last < *from || *to < first;
        apart || (*from <= first && last <= *to)
    };
    if let Some((from, to, _)) = ranges.iter().find(|(from, to, _)| !fits(from, to)) {
        let message = format!("range \"{}\" overlaps \"{from}-{to}\"", key.text);
        return Err(Mistake::refused(key.at, message));
    }
    ranges.push((first, last, value.text.clone()));
    Ok(())
}

fn range_of(word: &Word) -> Result<(IpAddr, IpAddr), Mistake> {
    range(&word.text).ok_or_else(|| invalid(word, "range of addresses"))
}

fn range(text: &str) -> Option<(IpAddr, IpAddr)> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (IpAddr, IpAddr) = (first.parse().ok()?, last.parse().ok()?);
    (first.is_ipv4() == last.is_ipv4() && first <= last).then_some((first, last))
}
