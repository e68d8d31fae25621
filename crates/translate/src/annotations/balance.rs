//! `load-balance`, `upstream-hash-by*` and `service-upstream`: which endpoint is next.

use super::Family;
use crate::settings::{Key, Lines, OnBad, Risk, Settings, parse, words};
use crate::snippets::{Declared, Known};
use model::policy::{Algorithm, Balance, Policy};
use model::{Part, Severity, Template, Variable};
use std::num::NonZeroU32;

pub(super) const FAMILY: Family = Family {
    name: "balance",
    keys: &[&ALGORITHM, &HASH_BY, &SUBSET, &SUBSET_SIZE, &SERVICE_UPSTREAM],
    apply,
};

/// The names of `load-balance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    RoundRobin,
    Ewma,
    Hash,
    HashSubset,
    Random,
}

static ALGORITHM: Key<Name> = Key::both("load-balance", algorithm)
    .says(
        "round_robin, ewma, chash, chashsubset, sticky_balanced or sticky_persistent",
        "round_robin",
        "Which endpoint is next. Sessions (affinity) and upstream-hash-by decide before it. chash and chashsubset without \
         upstream-hash-by send everything to one endpoint (or set), the sticky ones without affinity to any.",
    )
    .on_bad(OnBad::Reject);

static HASH_BY: Key<Template> = Key::annotation("upstream-hash-by", hash_by)
    .says(
        "text with nginx variables",
        "none",
        "The same text, the same endpoint: consistent hashing with the points of ingress-nginx. A variable that neither \
         nginx nor a snippet of the Ingress or the ConfigMap has is empty.",
    )
    .risk(Risk::High)
    .on_bad(OnBad::Reject);

static SUBSET: Key<bool> = Key::annotation("upstream-hash-by-subset", parse::boolean)
    .switch(false, "The same text, the same few endpoints, any one of them.")
    .on_bad(OnBad::Reject);

static SUBSET_SIZE: Key<u32> = Key::annotation("upstream-hash-by-subset-size", parse::count)
    .number("number", "3", "How many endpoints that are; 0 is 3.")
    .on_bad(OnBad::Reject);

static SERVICE_UPSTREAM: Key<bool> = Key::both("service-upstream", parse::boolean).switch(
    false,
    "Requests go to the address of the Service (clusterIP) instead of its endpoints.",
);

fn apply(settings: &mut Settings<'_>, policy: &mut Policy) {
    if settings.is_of_config_map() {
        // Ingresses read it with their backends.
        settings.get(&SERVICE_UPSTREAM);
    }
    policy.balance = Balance { algorithm: chosen(settings), affinity: None };
}

/// What is in force, in the words of an Ingress.
pub(super) fn show(field: &'static str, algorithm: &Algorithm, lines: &mut Lines) {
    let word = match algorithm {
        Algorithm::RoundRobin => "round_robin".to_owned(),
        Algorithm::Ewma => "ewma".to_owned(),
        Algorithm::Random => "any endpoint".to_owned(),
        Algorithm::Hash(text) => format!("by hash of {}", words(text)),
        Algorithm::HashSubset(text, size) => {
            format!("any of {size} endpoints by hash of {}", words(text))
        }
    };
    lines.add(field, word).by(&[&HASH_BY, &SUBSET, &SUBSET_SIZE]).by(&[&ALGORITHM, &SUBSET_SIZE]);
}

fn chosen(settings: &mut Settings<'_>) -> Algorithm {
    let name = settings.get_or(&ALGORITHM, Name::RoundRobin);
    let hash_by = settings.get(&HASH_BY);
    let subset = settings.get_or(&SUBSET, false);
    let size = settings.get(&SUBSET_SIZE).and_then(NonZeroU32::new);
    let size = size.unwrap_or(NonZeroU32::MIN.saturating_add(2));
    match (hash_by, name) {
        (Some(text), _) => {
            let text = known(settings, &text);
            if subset { Algorithm::HashSubset(text, size) } else { Algorithm::Hash(text) }
        }
        (None, Name::RoundRobin) => Algorithm::RoundRobin,
        (None, Name::Ewma) => Algorithm::Ewma,
        (None, Name::Random) => Algorithm::Random,
        (None, Name::Hash) => Algorithm::Hash(Template::default()),
        (None, Name::HashSubset) => Algorithm::HashSubset(Template::default(), size),
    }
}

/// Whether backends are reached by the address of their Service.
pub(crate) fn by_cluster_ip(settings: &mut Settings<'_>) -> bool {
    let value = settings.get_or(&SERVICE_UPSTREAM, false);
    match settings.raw(SERVICE_UPSTREAM.about.name) {
        // What is no boolean is false, whatever the ConfigMap says (compat/annotations.csv).
        Some(text) if !text.is_empty() => parse::boolean(&text) == Ok(true),
        _ => value,
    }
}

fn algorithm(text: &str) -> Result<Name, String> {
    Ok(match text {
        "round_robin" => Name::RoundRobin,
        "ewma" => Name::Ewma,
        "chash" => Name::Hash,
        "chashsubset" => Name::HashSubset,
        "sticky_balanced" | "sticky_persistent" => Name::Random,
        _ => return Err("is no algorithm: write round_robin or ewma".to_owned()),
    })
}

/// Text with variables, those of snippets among them; a lone `$` stands for itself.
fn hash_by(text: &str) -> Result<Template, String> {
    let text = text.replace(' ', "");
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_${}".contains(&byte);
    if !text.bytes().all(allowed) {
        return Err("has other characters than letters, digits, - _ $ { }".to_owned());
    }
    let parts = pieces(&text).into_iter().map(|piece| match piece {
        Piece::Text(text) => Part::Text(text.to_owned()),
        Piece::Variable(group) if matches!(group.as_bytes(), [b'1'..=b'9']) => {
            Part::Capture(usize::from(group.as_bytes()[0] - b'0'))
        }
        Piece::Variable(name) => {
            let other = || Variable::OfSnippets(name.to_ascii_lowercase().into());
            Part::Variable(Variable::named(name).unwrap_or_else(other))
        }
    });
    Ok(Template::from_parts(parts.collect()))
}

/// A piece of a text with variables.
enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        pieces.push(Piece::Text(before));
        let braced = after[1..].strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let braced = braced.filter(|(name, _)| !name.is_empty() && name.chars().all(is_name));
        let bare = &after[1..];
        let end = bare.find(|c: char| !is_name(c)).unwrap_or(bare.len());
        rest = match braced {
            Some((name, rest)) => {
                pieces.push(Piece::Variable(name));
                rest
            }
            None if end > 0 => {
                pieces.push(Piece::Variable(&bare[..end]));
                &bare[end..]
            }
            None => {
                pieces.push(Piece::Text("$"));
                bare
            }
        };
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|piece| !matches!(piece, Piece::Text("")));
    pieces
}

/// The text without variables that nobody has: as for ingress-nginx, they are empty. That is worth a word, and so is a
/// text without any variable: everything goes to one endpoint then.
fn known(settings: &mut Settings<'_>, text: &Template) -> Template {
    let mut declared: Option<Declared> = None;
    let mut left_out = Vec::new();
    let mut parts = text.parts().to_vec();
    parts.retain(|part| {
        let Part::Variable(Variable::OfSnippets(variable)) = part else { return true };
        let declared = declared.get_or_insert_with(|| Declared::of(settings));
        let is_known = match declared.knows(variable) {
            Known::Declared | Known::Native => true,
            Known::Empty | Known::Nginx => settings.scope().raw,
            Known::Module | Known::Nowhere => false,
        };
        if !is_known && !left_out.contains(variable) {
            left_out.push(variable.clone());
        }
        is_known
    });
    let name = HASH_BY.about.name;
    for variable in left_out {
        let message = format!("there is no variable ${variable}: it is empty; write another");
        settings.note(name, Severity::Warning, message);
    }
    let is_text = |part: &Part| matches!(part, Part::Text(_));
    if !text.parts().is_empty() && parts.iter().all(is_text) {
        let message = "is the same for all requests, so that one endpoint gets them all: write a variable, such as \
                       $request_uri";
        settings.note(name, Severity::Warning, message.to_owned());
    }
    Template::from_parts(parts)
}

#[cfg(test)]
mod tests {
    use super::hash_by;

    #[test]
    fn variables_stand_beside_text_and_unknown_ones_may_be_those_of_snippets() {
        let read = |text: &str| hash_by(text).map(|template| template.to_string());
        assert_eq!(read("u-${http_x_user}"), Ok("u-${http_x_user}".to_owned()));
        assert_eq!(read("$arg_user$Nope-$"), Ok("${arg_user}${nope}-$".to_owned()));
        assert_eq!(read("${request_uri-$host"), Ok("${request_uri-${host}".to_owned()));
        assert_eq!(read("a b"), Ok("ab".to_owned()));
        let groups = hash_by("$1-${2}").expect("groups of the path");
        assert!(groups.has_groups() && groups.without_groups().literal() == Some("-"));
        assert!(read("$uri;").is_err() && read("$a.b").is_err());
    }
}
