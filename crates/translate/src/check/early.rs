//! Snippets that answer before guards are asked, as in nginx.

use super::remark::Remark;
use crate::Options;
use crate::ingress::annotation_of;
use crate::snippets::snippet_named;
use objects::Ingress;
use snippet::syntax::{Block, Directive};

/// Guards that are asked after programs have run.
const GUARDS: [&str; 5] = [
    "whitelist-source-range",
    "allowlist-source-range",
    "denylist-source-range",
    "auth-type",
    "auth-url",
];

/// What answers first in a snippet of an Ingress that has a guard.
pub(super) fn of_ingress(
    ingress: &Ingress,
    options: &Options,
    counts: impl Fn(&str) -> bool,
) -> Vec<Remark> {
    let has = |name: &&&str| annotation_of(ingress, name, options).is_some();
    let guards: Vec<&str> = GUARDS.iter().filter(has).copied().collect();
    if guards.is_empty() {
        return Vec::new();
    }
    let said = |name: &str| {
        let key = format!("{}/{name}", options.annotations_prefix);
        let text = ingress.meta.annotations.get(key.as_str()).filter(|_| counts(&key))?;
        let (_, snippet) = snippet_named(name, text)?;
        let early = first(snippet.directives())?;
        let message = format!(
            "{}: {} answers before {} is asked, as in nginx: whoever it answers is kept out by nobody",
            early.at(),
            early.name(),
            guards.join(", ")
        );
        Some(Remark { key: Some(key), message })
    };
    ["configuration-snippet", "server-snippet"].into_iter().filter_map(said).collect()
}

/// The first directive that answers, and does not turn away. Locations have guards of their own.
fn first(directives: &[Directive]) -> Option<&Directive> {
    directives.iter().find_map(|directive| match (directive.name(), &directive.block) {
        ("if", Some(Block::Directives(inner))) => first(inner),
        ("return", _) if !turns_away(directive) => Some(directive),
        ("rewrite", _) if redirects(directive) => Some(directive),
        _ => None,
    })
}

/// Whether who is answered by it is kept out by it.
fn turns_away(answer: &Directive) -> bool {
    let status = answer.arguments().first().and_then(|status| status.text.parse::<u16>().ok());
    status.is_some_and(|status| status >= 400)
}

fn redirects(rewrite: &Directive) -> bool {
    let [_, to, flags @ ..] = rewrite.arguments() else { return false };
    let is_url = ["http://", "https://", "$scheme"].iter().any(|start| to.text.starts_with(start));
    is_url || flags.iter().any(|flag| matches!(flag.text.as_str(), "redirect" | "permanent"))
}
