//! Annotations that stand under an old name, too, and say something else there: only one of them counts.

use super::FAMILIES;
use crate::settings::{Settings, normalise, quote};
use model::Severity;

/// Notes every other name of a key that is there beside the one that counts, and differs from it. The first name
/// counts, as in ingress-nginx, unless it is empty (parser/validators.go, `checkAnnotation`).
pub(super) fn check(settings: &mut Settings<'_>) {
    let keys = FAMILIES.iter().flat_map(|family| family.keys).map(|key| key.about());
    for about in keys.filter(|about| about.in_annotations() && !about.aliases.is_empty()) {
        let names = std::iter::once(about.name).chain(about.aliases.iter().copied());
        let mut written = names.filter_map(|name| Some((name, settings.written(name)?)));
        let Some((counts, text)) = written.find(|(_, text)| !normalise(text).is_empty()) else {
            continue;
        };
        let differs = |other: &str| words(other).ne(words(text)) && !normalise(other).is_empty();
        let others: Vec<(&str, &str)> = written.filter(|(_, other)| differs(other)).collect();
        for (name, other) in others {
            let message = if about.secret {
                format!("{counts} is there, too, and counts")
            } else {
                format!(
                    "{} does not count: {counts} is there, too, and says {}",
                    quote(other),
                    quote(text)
                )
            };
            let remedy = format!("write all that is meant into {counts}, and remove {name}");
            settings.note(name, Severity::Warning, format!("{message}; {remedy}"));
        }
    }
}

/// A value without the spaces that no list minds.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}
