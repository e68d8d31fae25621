//! What there is to say of the controller's ConfigMap: what of it is refused, what takes another engine, what is only
//! to be known.

use super::remark::{FLAG, Remark, key_of_config_map as name_of, named_of_config_map};
use crate::settings::{CONFIG_MAP, NameFate, Names};
use crate::{Options, Translation, snippets};
use model::{Kind, Origin, Problem, Severity, Why};
use objects::{ObjectKey, Snapshot};
use std::collections::BTreeMap;

/// The ConfigMap and its values, if it is there.
pub(super) fn data<'a>(
    snapshot: &'a Snapshot,
    options: &'a Options,
) -> Option<(&'a ObjectKey, &'a BTreeMap<String, String>)> {
    let key = options.config_map.as_ref()?;
    Some((key, &snapshot.config_maps.get(key)?.data))
}

/// What is wrong with the ConfigMap, but for what takes another engine.
pub(super) fn mistakes<'a>(about: &[About<'a>], needed: &[Remark]) -> Vec<About<'a>> {
    let errors = about.iter().filter(|(problem, _)| problem.severity == Severity::Error);
    errors.filter(|(_, remark)| !needed.contains(remark)).cloned().collect()
}

/// A problem of the ConfigMap, and how it is told.
pub(super) type About<'a> = (&'a Problem, Remark);

/// What there is to say about the ConfigMap.
pub(super) fn about<'a>(translation: &'a Translation, options: &Options) -> Vec<About<'a>> {
    let Some(key) = &options.config_map else { return Vec::new() };
    let origin =
        Origin { kind: Kind::ConfigMap, namespace: key.namespace.clone(), name: key.name.clone() };
    let remark = |problem: &Problem| {
        let more = if problem.is(Why::NobodyAnswers) { FLAG } else { "" };
        Remark {
            key: problem.key.as_ref().map(|name| named_of_config_map(key, name)),
            message: format!("{}{more}", problem.message),
        }
    };
    let problems = translation.problems.of(&origin).iter();
    problems.map(|problem| (problem, remark(problem))).collect()
}

/// Keys of the ConfigMap that do nothing for HTTP by themselves.
const ELSEWHERE: [&str; 2] = ["stream-snippet", "modsecurity-snippet"];

/// What the ConfigMap asks for every Ingress that only nginx has.
pub(super) fn needed_everywhere(about: &[About<'_>]) -> Vec<Remark> {
    let is_needed = |(problem, remark): &&About<'_>| {
        problem.severity == Severity::Error
            && name_of(remark).is_some_and(|name| {
                if snippets::is_key(name) {
                    problem.is(Why::NeedsNginx)
                } else {
                    needs_nginx(&CONFIG_MAP, name) && !ELSEWHERE.contains(&name)
                }
            })
    };
    about.iter().filter(is_needed).map(|(_, remark)| remark.clone()).collect()
}

/// Cipher suites of TLS 1.2, as annotation and in the ConfigMap.
pub(super) const CIPHERS: &str = "ssl-ciphers";

/// Versions and cipher suites that the ConfigMap names and that are gone.
pub(super) fn lost_by_tls(about: &[About<'_>]) -> Vec<Remark> {
    const NAMES: [&str; 2] = ["ssl-protocols", CIPHERS];
    let is_lost =
        |(_, remark): &&About<'_>| name_of(remark).is_some_and(|name| NAMES.contains(&name));
    about.iter().filter(is_lost).map(|(_, remark)| remark.clone()).collect()
}

/// Whether a name is that of raw configuration, or tunes a module that only nginx has.
pub(super) fn needs_nginx(names: &Names, name: &str) -> bool {
    names.get(name).is_some_and(|known| known.fate == NameFate::Nginx)
}

/// What is refused, and what is to be known: a mistake is as loud here as it is in an annotation, unless only nginx
/// could tell whether it is one.
pub(super) fn apart(about: Vec<About<'_>>, needed: &[Remark]) -> (Vec<Remark>, Vec<Remark>) {
    let is_of_nginx = |(problem, remark): &About<'_>| match name_of(remark) {
        Some(snippets::STREAM) => problem.is(Why::NeedsNginx),
        Some(name) => needs_nginx(&CONFIG_MAP, name),
        None => false,
    };
    let is_refused = |about: &About<'_>| {
        about.0.severity == Severity::Error && !needed.contains(&about.1) && !is_of_nginx(about)
    };
    let (refused, others): (Vec<_>, Vec<_>) = about.into_iter().partition(is_refused);
    let remarks = |all: Vec<About<'_>>| all.into_iter().map(|(_, remark)| remark).collect();
    (remarks(refused), remarks(others))
}
