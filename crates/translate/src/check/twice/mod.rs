//! What nginx would read twice in one place, of snippets and of ingress-nginx's template. It calls that a duplicate and
//! takes no configuration with it, whereas here the snippet's counts.

mod around;
mod template;
mod together;

pub(super) use around::Hosts;

use super::config_map::About;
use super::differences::of_config_map;
use super::remark::{Remark, named_of_config_map};
use crate::Options;
use crate::snippets::{STREAM, snippet_named};
use around::{Around, OWN_TEXT};
use model::{Problem, Severity, Why};
use objects::{Ingress, Snapshot};
use snippet::syntax::Directive;
use snippet::{Context, Snippet};
use together::{added, clash, lost, words};

/// What becomes of what is said in one place by two.
const REFUSED: &str = "so that its nginx takes no configuration with it, nor any later one";

/// A text and where it stands, if it has the form of a snippet.
fn placed(name: &str, text: &str) -> Option<(Context, Snippet)> {
    match name {
        STREAM => Some((Context::Stream, Snippet::parse(Context::Stream, text).ok()?)),
        _ => snippet_named(name, text),
    }
}

/// What one text says twice, with what the ConfigMap's text `beside` it says.
fn said(
    key: &str,
    name: &str,
    text: &str,
    beside: Option<&str>,
    around: Around<'_>,
) -> Vec<Remark> {
    let Some((place, snippet)) = placed(name, text) else { return Vec::new() };
    let of_all = beside.and_then(|name| Some((name, placed(name, around.of_all(name)?)?.1)));
    let told = snippet.directives().iter().filter_map(|own| {
        let message = of_template(own, place, around).or_else(|| {
            let (name, of_all) = of_all.as_ref()?;
            of_both(own, name, of_all.directives(), place)
        });
        let message = format!("{}: {} {}", own.at(), own.name(), message?);
        Some(Remark { key: Some(key.to_owned()), message })
    });
    told.collect()
}

/// What becomes of a directive beside the template.
fn of_template(own: &Directive, place: Context, around: Around<'_>) -> Option<String> {
    if template::says(own, place, around) {
        return Some(format!(
            "is what ingress-nginx says in this place, too, {REFUSED}; here the snippet's counts"
        ));
    }
    let said = template::adds(own.name(), place, around)?;
    let more = added(&words(own).collect::<Vec<_>>(), said.split_whitespace());
    (!more.is_empty()).then(|| {
        format!(
            "stands beside the controller's in nginx, which counts {}, too; here it replaces that",
            shortened(&more)
        )
    })
}

/// What becomes of a directive beside those of the ConfigMap's text.
fn of_both(own: &Directive, name: &str, of_all: &[Directive], place: Context) -> Option<String> {
    if of_all.iter().any(|other| clash(own, other)) {
        return Some(format!(
            "is what {name} of the ConfigMap says, too, which ingress-nginx pastes into the same place, {REFUSED}; here both \
             are read"
        ));
    }
    let lost = of_all.iter().map(|other| match place {
        // There the ConfigMap's stands behind, and counts.
        Context::Server => lost(other, own),
        _ => lost(own, other),
    });
    let lost = lost.flatten().collect::<Vec<_>>();
    (!lost.is_empty()).then(|| {
        format!(
            "adds up in nginx with what {name} of the ConfigMap says; here {} does not count",
            shortened(&lost)
        )
    })
}

/// The first ones of many words.
fn shortened(words: &[&str]) -> String {
    const SHOWN: usize = 4;
    match words.len().saturating_sub(SHOWN) {
        0 => words.join(" "),
        more => format!("{} and {more} more", words[..SHOWN].join(" ")),
    }
}

/// Of what an Ingress says, and of what the ConfigMap says in its place.
pub(super) fn of_ingress(
    ingress: &Ingress,
    hosts: &Hosts<'_>,
    snapshot: &Snapshot,
    options: &Options,
    counts: impl Fn(&str) -> bool,
) -> Vec<Remark> {
    let around = Around { ingress: Some(ingress), hosts, snapshot, options };
    let own = ingress.meta.annotations.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(options.annotations_prefix.as_str())?.strip_prefix('/')?;
        // Nobody pastes the others.
        let (is_pasted, beside) = match name {
            "configuration-snippet" => (true, Some("location-snippet")),
            OWN_TEXT => (around.is_pasted(), Some(OWN_TEXT)),
            "auth-snippet" => (around.has("auth-url"), None),
            _ => (false, None),
        };
        (is_pasted && counts(key)).then(|| said(key, name, text, beside, around))
    });
    let mut found: Vec<Remark> = own.flatten().collect();
    found.extend(of_config_maps(around, &["location-snippet", OWN_TEXT]));
    found
}

/// Of those of the ConfigMap, whatever an Ingress says.
fn of_all(hosts: &Hosts<'_>, snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let around = Around { ingress: None, hosts, snapshot, options };
    let mut names = vec!["main-snippet", "http-snippet", OWN_TEXT, "location-snippet", STREAM];
    let asks = around.of_all("global-auth-url").is_some();
    names.extend(Some("global-auth-snippet").filter(|_| asks));
    of_config_maps(around, &names)
}

fn of_config_maps(around: Around<'_>, names: &[&str]) -> Vec<Remark> {
    let Some(map) = &around.options.config_map else { return Vec::new() };
    let of = |name: &&str| {
        let text = of_config_map(name, around.snapshot, around.options)?;
        Some(said(&named_of_config_map(map, name), name, text, None, around))
    };
    names.iter().filter_map(of).flatten().collect()
}

/// What the ConfigMap's snippets say that nginx heeds, or takes no configuration with, while it means something else
/// here.
pub(super) fn pasted(
    about: &[About<'_>],
    hosts: &Hosts<'_>,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Remark> {
    let twice = of_all(hosts, snapshot, options);
    let is_heeded = |(problem, remark): &&About<'_>| {
        problem.severity == Severity::Notice
            && problem.is(Why::TookIt)
            && !twice.iter().any(|other| is_about(remark, other))
    };
    let heeded: Vec<Remark> =
        about.iter().filter(is_heeded).map(|(_, remark)| remark.clone()).collect();
    heeded.into_iter().chain(twice).collect()
}

/// Whether a snippet with these problems counts, or some of it.
pub(super) fn counts(key: &str, problems: &[Problem]) -> bool {
    let is_out = |it: &Problem| it.severity == Severity::Error || it.is(Why::NotAllowed);
    !problems.iter().any(|it| it.key.as_deref() == Some(key) && is_out(it))
}

/// Whether both are about the same directive of a snippet.
pub(super) fn is_about(one: &Remark, other: &Remark) -> bool {
    let directive = |it: &Remark| {
        let (line, rest) = it.message.strip_prefix("line ")?.split_once(", column ")?;
        let name = rest.split_once(": ")?.1.split(' ').next()?;
        Some((it.key.clone(), line.to_owned(), name.to_owned()))
    };
    directive(one).is_some_and(|one| directive(other) == Some(one))
}
