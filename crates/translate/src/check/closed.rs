//! Ingresses with paths that answer 503, and what of the ConfigMap closes them: what is denied is neither identical nor
//! does it differ.

use super::config_map::About;
use super::differences;
use super::finding::{Finding, Standing};
use super::refusals::{self, RefusedBy};
use super::remark::{Remark, key_of_config_map};
use crate::Options;
use crate::ingress::{annotation_of, origin, path_kind};
use crate::settings::parse;
use model::{Backend, Configuration, Origin, Problem, ServerName, Why};
use objects::{Ingress, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// What one translation closes.
pub(super) struct Closed<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
    configuration: &'a Configuration,
    /// Why locations answer 503, by the Ingress that has them.
    by_ingress: BTreeMap<&'a Origin, BTreeSet<&'a str>>,
    /// What is wrong with the ConfigMap.
    mistakes: Vec<About<'a>>,
}

impl<'a> Closed<'a> {
    /// What is closed of a Configuration, with mistakes in the ConfigMap that may be the cause.
    pub(super) fn among(
        configuration: &'a Configuration,
        mistakes: Vec<About<'a>>,
        snapshot: &'a Snapshot,
        options: &'a Options,
    ) -> Self {
        let mut by_ingress: BTreeMap<&Origin, BTreeSet<&str>> = BTreeMap::new();
        for location in configuration.servers.values().flat_map(|server| &server.locations) {
            if let (Some(origin), Backend::Denied(reason)) = (&location.origin, &location.backend) {
                by_ingress.entry(origin).or_default().insert(reason);
            }
        }
        Self { snapshot, options, configuration, by_ingress, mistakes }
    }

    /// Whoever has a path that answers 503 is refused, and told why, unless Problems of its own have said so.
    pub(super) fn refuse(&self, ingress: &Ingress, finding: &mut Finding) {
        let own = self.by_ingress.get(&origin(&ingress.meta.key));
        let reasons: BTreeSet<&str> =
            own.into_iter().flatten().copied().chain(self.beside(ingress)).collect();
        if reasons.is_empty() {
            return;
        }
        let closes = |(name, problem, _): &(&str, &Problem, &Remark)| {
            let of_it = |reason: &&str| {
                let rest = reason.strip_prefix(name);
                rest.is_some_and(|rest| rest.starts_with(" of the ConfigMap"))
            };
            problem.is(Why::AllClosed) || reasons.iter().any(of_it)
        };
        let mistakes: Vec<_> = self.mistakes().filter(closes).collect();
        let mut by = mistakes.iter().map(|(name, problem, _)| self.by(name, problem)).max();
        finding.reasons.extend(mistakes.into_iter().map(|(_, _, remark)| remark.clone()));
        let first = own.and_then(BTreeSet::first);
        if let (None, Some(reason)) = (by, first.filter(|_| finding.standing != Standing::Refused))
        {
            // Another Ingress asks for it, which is told.
            let message = format!("paths of it answer 503: {reason}");
            finding.reasons.push(Remark { key: Some("spec.rules".to_owned()), message });
            by = Some(RefusedBy::Unknown);
        }
        if by.is_some() {
            finding.standing = Standing::Refused;
            finding.refused_by = finding.refused_by.max(by);
        }
    }

    /// Mistakes of the ConfigMap by its key.
    fn mistakes(&self) -> impl Iterator<Item = (&str, &Problem, &Remark)> {
        let all = self.mistakes.iter();
        all.filter_map(|(problem, remark)| Some((key_of_config_map(remark)?, *problem, remark)))
    }

    fn by(&self, name: &str, problem: &Problem) -> RefusedBy {
        let text = differences::of_config_map(name, self.snapshot, self.options);
        refusals::of_config_map(name, problem, text.unwrap_or_default())
    }

    /// Why the locations answer 503 that a canary stands beside. It has none of its own.
    fn beside(&self, ingress: &Ingress) -> BTreeSet<&'a str> {
        let is_canary = annotation_of(ingress, "canary", self.options)
            .is_some_and(|text| parse::boolean(&text) == Ok(true));
        let rules = ingress.rules.iter().filter(|_| is_canary);
        let paths = rules.flat_map(|rule| {
            let host = rule.host.as_deref().filter(|host| !host.is_empty());
            let name = host
                .map_or(ServerName::catch_all(), |host| ServerName::new(host.to_ascii_lowercase()));
            let server = self.configuration.servers.get(&name);
            let paths = rule.paths.iter().flatten();
            paths.flat_map(move |path| {
                let text = if path.path.is_empty() { "/" } else { &path.path };
                let kind = path_kind(path);
                let all = server.into_iter().flat_map(|server| &server.locations);
                all.filter(move |location| location.path == text && location.kind == kind)
            })
        });
        let denied = paths.filter_map(|location| match &location.backend {
            Backend::Denied(reason) => Some(reason.as_str()),
            Backend::Upstream(_) | Backend::NotFound | Backend::Broken(_) => None,
        });
        denied.collect()
    }
}
