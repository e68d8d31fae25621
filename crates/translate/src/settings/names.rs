//! The names that ingress-nginx knows and no [`super::Key`] reads: not yet built, without effect, or removed.

use super::Risk;
use std::sync::LazyLock;

/// Why a known name is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFate {
    /// It will be.
    Later,
    /// It sets something that only nginx has.
    Nginx,
    /// A text that is understood where it counts.
    Snippet,
    /// It sets something that does not exist here.
    NoEffect,
    /// The same, but in the nginx engine it has its effect.
    Tuning,
    /// ingress-nginx does not read it either.
    Removed,
}

/// A known name that is not read.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) name: &'static str,
    pub(crate) aliases: Vec<&'static str>,
    pub(crate) kind: &'static str,
    pub(crate) default: &'static str,
    pub(crate) risk: Risk,
    pub(crate) fate: NameFate,
    /// What ingress-nginx does with it.
    pub(crate) doc: &'static str,
    /// Why it has no effect here; where it has none.
    pub(crate) reason: &'static str,
}

/// Known names in order.
#[derive(Debug)]
pub(crate) struct Names(Vec<Name>);

/// Annotations that are not read, without prefix.
pub(crate) static ANNOTATIONS: LazyLock<Names> =
    LazyLock::new(|| Names::read(include_str!("../../data/annotations.tsv")));

/// Keys of the ConfigMap that are not read.
pub(crate) static CONFIG_MAP: LazyLock<Names> =
    LazyLock::new(|| Names::read(include_str!("../../data/config-map.tsv")));

impl Names {
    fn read(table: &'static str) -> Self {
        Self(table.lines().skip(1).filter_map(row).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.0.iter()
    }

    /// The row with this name or alias.
    pub(crate) fn get(&self, name: &str) -> Option<&Name> {
        self.0.iter().find(|row| row.name == name || row.aliases.contains(&name))
    }
}

fn row(line: &'static str) -> Option<Name> {
    let mut cells = line.split('\t');
    let mut cell = || cells.next();
    let name = cell()?;
    let aliases = cell()?.split(' ').filter(|alias| !alias.is_empty()).collect();
    let (kind, default) = (cell()?, cell()?);
    let risk = Risk::named(cell()?)?;
    let fate = match cell()? {
        "later" => NameFate::Later,
        "nginx" => NameFate::Nginx,
        "snippet" => NameFate::Snippet,
        "no-effect" => NameFate::NoEffect,
        "tuning" => NameFate::Tuning,
        "removed" => NameFate::Removed,
        _ => return None,
    };
    let (doc, reason) = (cell()?, cell().unwrap_or_default());
    Some(Name { name, aliases, kind, default, risk, fate, doc, reason })
}

/// The candidate that a misspelt name most probably means.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // Names that differ much in length are not alike, and long ones cost much to compare.
    let may_be = |candidate: &&str| {
        let longest = name.len().max(candidate.len());
        name.len().abs_diff(candidate.len()) <= longest / 3
    };
    let distance = |candidate: &'a str| {
        // Whoever writes another case means this one, however many letters there are.
        let far = if name.eq_ignore_ascii_case(candidate) {
            usize::from(name != candidate)
        } else {
            strsim::osa_distance(name, candidate)
        };
        (far, candidate)
    };
    let (far, candidate) = candidates.filter(may_be).map(distance).min()?;
    let is_near = far <= name.len().max(candidate.len()) / 3;
    (is_near || name.eq_ignore_ascii_case(candidate)).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::{ANNOTATIONS, CONFIG_MAP, NameFate, Names, nearest};

    #[test]
    fn every_line_of_the_tables_is_read() {
        let lines = |table: &str| table.lines().count() - 1;
        assert_eq!(ANNOTATIONS.0.len(), lines(include_str!("../../data/annotations.tsv")));
        assert_eq!(CONFIG_MAP.0.len(), lines(include_str!("../../data/config-map.tsv")));
    }

    #[test]
    fn what_has_no_effect_has_a_reason() {
        for row in ANNOTATIONS.iter().chain(CONFIG_MAP.iter()) {
            let is_idle = matches!(row.fate, NameFate::NoEffect | NameFate::Tuning);
            assert_eq!(is_idle, !row.reason.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn aliases_lead_to_their_row() {
        let table = "head\nnew-name\told-name\tbool\tfalse\tLow\tlater\tSays something.";
        let names = Names::read(table);
        let row = names.get("old-name").expect("an alias");
        assert_eq!(row.name, "new-name");
    }

    #[test]
    fn a_misspelt_name_has_a_nearest_one_and_nonsense_has_none() {
        let names = |names: &'static Names| names.iter().map(|row| row.name);
        assert_eq!(nearest("enable-influxbd", names(&ANNOTATIONS)), Some("enable-influxdb"));
        assert_eq!(nearest("something-else-entirely", names(&CONFIG_MAP)), None);
        assert_eq!(nearest("ENABLE-INFLUXDB", names(&ANNOTATIONS)), Some("enable-influxdb"));
        assert_eq!(nearest("GW", ["gw", "fw"].into_iter()), Some("gw"));
        assert_eq!(nearest("gw", ["GW", "gw"].into_iter()), Some("gw"));
    }
}
