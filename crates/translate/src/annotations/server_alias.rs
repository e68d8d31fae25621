//! `server-alias` and `from-to-www-redirect`: names that lead to the hosts of an Ingress besides their own.

use super::{Family, upstream_vhost};
use crate::pattern_budget::{PatternBudget, Refused};
use crate::settings::{Key, OnBad, Risk, Settings, parse};
use model::{Alias, Message, Why};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const FAMILY: Family =
    Family { name: "server_alias", keys: &[&ALIASES, &WWW], apply: |_, _| {} };

static ALIASES: Key<BTreeSet<String>> = Key::annotation("server-alias", names)
    .says(
        "names, comma separated: shop.example, *.shop.example, shop.*, ~pattern",
        "none",
        "Other names of the Ingress's hosts. The first Ingress of a host that has any gives them; a name that is a host itself \
         stays that host's.",
    )
    .risk(Risk::High)
    .on_bad(OnBad::Reject);

static WWW: Key<bool> = Key::annotation("from-to-www-redirect", parse::boolean)
    .exact()
    .switch(
        false,
        "The host with www. (or without, if it begins with it) is redirected to the host of the Ingress, unless that is a host itself.",
    )
    .on_bad(OnBad::Reject);

/// Names that one Ingress may ask for, patterns among them, and bytes of their text. Every request for a host that has
/// no server of its name is compared with all patterns.
const NAMES: usize = 1000;
const PATTERNS: usize = 100;
const BYTES: usize = 64 << 10;
/// Steps that a pattern may take for the longest name of a host.
const STEPS: usize = 16 << 10;
const LONGEST_NAME: usize = 255;

/// The names that an Ingress asks for, as they are written. Nothing is compiled of them yet, since the object may be no
/// more than reviewed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenNames {
    /// In the order of the text.
    texts: Vec<String>,
    /// The counterpart with or without `www.` is redirected.
    www: bool,
}

impl WrittenNames {
    /// Those that take no expression.
    pub(super) fn without_patterns(mut self) -> Self {
        self.texts.retain(|text| !text.starts_with('~'));
        self
    }
}

/// What they mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Each once; shared by the hosts.
    pub(crate) aliases: Arc<[Alias]>,
    /// The counterpart with or without `www.` is redirected.
    pub(crate) www: bool,
}

pub(super) fn read(settings: &mut Settings<'_>) -> WrittenNames {
    let read = settings.get(&ALIASES);
    // Of an Ingress that is not taken for it: its names are nobody else's.
    let is_refused = read.is_none() && !settings.verdict.rejections.is_empty();
    let written = settings.raw(ALIASES.about.name).filter(|_| is_refused);
    let read = read.or_else(|| Some(those_that_are_names(&written?)));
    let mut texts: Vec<String> = read.unwrap_or_default().into_iter().collect();
    texts.retain(|text| match Alias::check(text) {
        Ok(()) => true,
        Err(wrong) => {
            settings.deny(ALIASES.about.name, format!("{text:?} {wrong}"));
            false
        }
    });
    WrittenNames { texts, www: settings.get_or(&WWW, false) }
}

/// The names with their patterns compiled.
pub(crate) fn with_aliases(settings: &mut Settings<'_>, written: WrittenNames) -> Names {
    let (mut aliases, mut budget) = (Vec::new(), PatternBudget::of_ingress());
    for text in written.texts.iter() {
        match compiled(text, &mut budget) {
            Ok(more) => aliases.extend(more),
            Err(wrong) => {
                settings.deny(ALIASES.about.name, wrong.within(format!("{text:?} {wrong}")));
            }
        }
    }
    let mut seen = BTreeSet::new();
    aliases.retain(|alias: &Alias| seen.insert(alias.to_string()));
    // Most Ingresses have none, and the empty list is one for all.
    let aliases = if aliases.is_empty() { Arc::default() } else { aliases.into() };
    Names { aliases, www: written.www }
}

fn compiled(text: &str, budget: &mut PatternBudget) -> Result<Vec<Alias>, Message> {
    let aliases = Alias::parse(text)?;
    for alias in &aliases {
        let Alias::Pattern(pattern) = alias else { continue };
        if pattern.most_steps(LONGEST_NAME).is_none_or(|steps| steps > STEPS) {
            let message = "takes too long for a pattern that every unknown name is compared with: repeat less, without \
                 look-around and back-references";
            return Err(Why::TookIt.says(message));
        }
        if let Err(Refused::TooLarge(reason)) = budget.take(pattern) {
            return Err(Why::TookIt.says(format!("is too much: {reason}")));
        }
    }
    Ok(aliases)
}

/// A host of any name has no counterpart: nginx takes `www.*.shop.example` for no name.
pub(crate) fn refuse_wildcard(settings: &mut Settings<'_>, names: &WrittenNames, host: &str) {
    if names.www {
        let reason = format!("{host} is a wildcard, which has no name with www.: name the hosts");
        settings.deny(WWW.about.name, &reason);
    }
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// The names in a list with mistakes; none where it is too long to be gone through.
fn those_that_are_names(text: &str) -> BTreeSet<String> {
    if is_too_long(text) {
        return BTreeSet::new();
    }
    let names = items(text).filter(|item| upstream_vhost::is_server_name(item));
    names.map(str::to_owned).collect()
}

fn is_too_long(text: &str) -> bool {
    let patterns = items(text).filter(|item| item.starts_with('~')).count();
    text.len() > BYTES || patterns > PATTERNS || items(text).count() > NAMES
}

fn names(text: &str) -> Result<BTreeSet<String>, String> {
    if is_too_long(text) {
        return Err(format!(
            "has more than {NAMES} names, {PATTERNS} patterns or {} KiB; divide it among several Ingresses",
            BYTES >> 10
        ));
    }
    let item = |item: &str| {
        if upstream_vhost::is_server_name(item) {
            Ok(item.to_owned())
        } else {
            Err(format!(
                "has the item {item:?}, which is no name of a host; write names, comma separated"
            ))
        }
    };
    items(text).map(item).collect()
}
