//! What snippets did with a request: whose they are, and what their locations stand for.

use super::Story;
use crate::exchange::Exchange;
use crate::generation::Site;
use ::snippet::run::{Owner, Traced};
use model::snippet::{LocationKind, Program, Scope, Step, Task};
use model::{Origin, Pattern, Steps};
use std::collections::BTreeSet;

/// What programs of snippets did: the server's, then those of its locations.
pub(super) fn programs(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let Some(running) = &exchange.snippet else { return };
    for done in running.state.story.iter().flatten() {
        let of = match done.of {
            Owner::Server => "server",
            Owner::Location => "location",
        };
        let step = format!("{}: {}", done.at, done.text);
        match &done.namespace {
            None => story.say("snippet", format!("{of} of the ConfigMap, {step}")),
            Some(namespace) => {
                let site = exchange.place.as_ref().map(|place| &*place.site);
                let by =
                    site.map_or_else(|| of_some(namespace), |site| whose(done, namespace, site));
                story.say_of("snippet", format!("{of}, {step}"), by);
            }
        }
    }
}

/// The annotation that a step of a tenant stands in, and its Ingress, where there is one that it can be. Of a
/// `server-snippet` the server does not know whose it is.
fn whose(done: &Traced, namespace: &str, site: &Site) -> String {
    let is_its = |origin: &Origin| *origin.namespace == *namespace;
    let is_there = |scope: &Scope| has(scope, &|program| stands(&program.steps, done));
    let of_server = site.server.snippet.as_deref().is_some_and(is_there);
    let locations = site.server.locations.iter().filter(|_| done.of == Owner::Location);
    let ingresses: BTreeSet<&Origin> = locations
        .filter(|location| location.policy.snippet.as_deref().is_some_and(is_there))
        .filter_map(|location| location.origin.as_deref())
        .filter(|origin| is_its(origin))
        .collect();
    match (of_server, ingresses.len(), ingresses.first()) {
        (false, 1, Some(origin)) => format!("configuration-snippet of {origin}"),
        (true, 0, _) => format!("server-snippet of namespace {namespace}"),
        (false, 2.., _) => format!("configuration-snippet of namespace {namespace}"),
        _ => of_some(namespace),
    }
}

fn of_some(namespace: &str) -> String {
    format!("a snippet of namespace {namespace}")
}

/// Whether a program of a scope, or of a location within, is such a one.
fn has(scope: &Scope, is_it: &impl Fn(&Program) -> bool) -> bool {
    is_it(&scope.program) || scope.locations.iter().any(|inner| has(&inner.scope, is_it))
}

/// Whether a step that was done is among these.
fn stands(steps: &[Step], done: &Traced) -> bool {
    steps.iter().any(|step| {
        let is_it = step.at == done.at && step.owner == done.namespace;
        is_it || matches!(&step.task, Task::If(block) if stands(&block.steps, done))
    })
}

/// What a location that a snippet has is called, if its path is a regular expression.
pub(super) fn expression(exchange: &Exchange, site: &Site, path: &str) -> Option<&'static str> {
    let of_locations = site.server.locations.iter().map(|location| &location.policy.snippet);
    let mut found = Vec::new();
    for scope in of_locations.chain([&site.server.snippet]).flatten() {
        patterns(scope, path, &mut found);
    }
    // Of two with the same text, in any case and in this one, the one that matches has the request.
    let matches = |it: &&&Pattern| it.try_match(&exchange.path, &Steps::default()) == Ok(true);
    let pattern = found.iter().find(matches).or(found.first())?;
    Some(if pattern.ignores_case() { "RegularExpression (any case)" } else { "RegularExpression" })
}

/// The regular expressions of this text for which a scope has locations.
fn patterns<'s>(scope: &'s Scope, text: &str, found: &mut Vec<&'s Pattern>) {
    for inner in &scope.locations {
        if let LocationKind::Regex(regex) = &inner.kind
            && regex.pattern.source() == text
        {
            found.push(&regex.pattern);
        }
        patterns(&inner.scope, text, found);
    }
}
