//! Annotations that no family reads: not built yet, too risky, or misspelt.

use super::{Limits, families, guards, idle, raw};
use crate::config_map;
use crate::settings::{
    ANNOTATIONS, NameFate, Risk, Rule, Settings, meant_annotation, nearest, parse,
};
use crate::snippets;
use model::Severity;

/// It has no effect, but ingress-nginx does not take an Ingress where it is no boolean.
const BOOLEAN: &str = "http2-push-preload";

/// Misspelt names of an object that are compared with all that there are; nobody reads more suggestions.
pub(super) const SUGGESTIONS: usize = 8;

/// Notes every annotation with the prefix that has no effect, and refuses what the ConfigMap does not allow.
pub(super) fn check(settings: &mut Settings<'_>, limits: &Limits, suggestions: &mut usize) {
    let annotations: Vec<(&str, &str)> = settings.annotations().collect();
    for (name, value) in annotations {
        if let Some(word) = limits.blocked_words.iter().find(|word| value.contains(word.as_str())) {
            let reason = format!(
                "holds {word:?}, which annotation-value-word-blocklist of the ConfigMap forbids"
            );
            settings.reject_by(Rule::Word(word.clone()), name, &reason);
        }
        match key_risk(name) {
            Some(risk) if risk > limits.risk => too_risky(settings, name, risk, limits),
            Some(_) => {}
            None => without_key(settings, name, limits, suggestions),
        }
    }
}

fn key_risk(name: &str) -> Option<Risk> {
    let keys = families::FAMILIES.iter().flat_map(|family| family.keys).map(|key| key.about());
    let mut keys = keys.filter(|about| about.in_annotations());
    keys.find(|about| about.name == name || about.aliases.contains(&name)).map(|about| about.risk)
}

fn too_risky(settings: &mut Settings<'_>, name: &str, risk: Risk, limits: &Limits) {
    // Whoever mends the level alone has a snippet that is ignored.
    let either = if name.ends_with("-snippet") && !limits.snippets {
        " (nor is allow-snippet-annotations true there: without it the snippet is ignored)"
    } else {
        ""
    };
    let reason = format!(
        "its risk is {risk:?}, and annotations-risk-level of the ConfigMap allows {:?} at most{either}",
        limits.risk
    );
    settings.reject_by(Rule::Risk, name, &reason);
}

fn without_key(settings: &mut Settings<'_>, name: &str, limits: &Limits, suggestions: &mut usize) {
    let Some(known) = ANNOTATIONS.get(name) else { return misspelt(settings, name, suggestions) };
    if known.risk > limits.risk {
        return too_risky(settings, name, known.risk, limits);
    }
    if raw::is_annotation(settings, name) {
        return;
    }
    if name.ends_with("-snippet") {
        return snippet(settings, name, limits);
    }
    let message = match known.fate {
        // They have their own, louder word.
        NameFate::Later | NameFate::Nginx if guards::is_guard(name) => return,
        NameFate::Later => "not supported yet".to_owned(),
        NameFate::Nginx | NameFate::Snippet => {
            "has no effect: only the nginx engine can do this".to_owned()
        }
        NameFate::NoEffect if name == BOOLEAN && !is_boolean(settings, name) => {
            return settings.reject(name, "is neither true nor false: write one of the two");
        }
        NameFate::NoEffect | NameFate::Tuning => format!("has no effect here: {}", known.reason),
        NameFate::Removed => "has no effect: ingress-nginx removed it, too".to_owned(),
    };
    settings.note(name, Severity::Notice, message);
}

fn is_boolean(settings: &Settings<'_>, name: &str) -> bool {
    let checked = settings.scope().validate;
    let written = settings.raw(name).filter(|text| checked && !text.is_empty());
    written.is_none_or(|text| parse::boolean(&text).is_ok())
}

fn snippet(settings: &mut Settings<'_>, name: &str, limits: &Limits) {
    match idle::ignored(settings, name, limits) {
        Some((severity, reason)) => settings.note(name, severity, reason),
        // It is read where everything else has been.
        None if snippets::ANNOTATIONS.contains(&name) => {}
        // Nobody can tell whether the text holds a guard.
        None => settings.deny(
            name,
            "raw configuration is for the nginx engine only: remove it, or run with --engine=nginx",
        ),
    }
}

/// Whether a snippet says something that counts.
pub(super) fn snippet_counts(settings: &Settings<'_>, name: &str, limits: &Limits) -> bool {
    let is_there = settings.raw(name).is_some_and(|text| !text.is_empty());
    is_there && limits.allow_snippets() && idle::why(settings, name).is_none()
}

/// Whether an annotation is called so.
pub(crate) fn is_known(name: &str) -> bool {
    key_risk(name).is_some() || ANNOTATIONS.get(name).is_some()
}

/// The annotation that a misspelt name most probably means, as long as there are `suggestions` left.
pub(super) fn meant(name: &str, suggestions: &mut usize) -> Option<&'static str> {
    *suggestions = suggestions.checked_sub(1)?;
    let known = || families::names().chain(ANNOTATIONS.iter().map(|row| row.name));
    meant_annotation(name).or_else(|| nearest(name, known()))
}

fn misspelt(settings: &mut Settings<'_>, name: &str, suggestions: &mut usize) {
    if config_map::is_key(name) {
        let message = "is a key of the ConfigMap and has no effect here: write it there";
        return settings.note(name, Severity::Warning, message.to_owned());
    }
    let message = match meant(name, suggestions) {
        Some(meant) => format!(
            "unknown annotation, it has no effect; did you mean {}?",
            settings.full_name(meant)
        ),
        None => "unknown annotation, it has no effect; docs/annotations.md lists the known ones"
            .to_owned(),
    };
    settings.note(name, Severity::Warning, message);
}
