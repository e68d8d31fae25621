//! Which upstream and endpoint, how, and what it was sent.

use super::{Phase, Story, canaries, shown};
use crate::phases::choose_backend;
use crate::variables;
use model::policy::Algorithm;
use std::sync::Arc;

pub(super) fn tell(story: &mut Story<'_>) {
    if !story.reached(Phase::Upstream) {
        return;
    }
    side(story);
    endpoints(story);
    if let Some(copies) = &story.exchange.spot().extras().mirror {
        let authority = variables::as_asked(&copies.destination.url.authority, story.exchange);
        story.say_by(
            "mirror",
            format!("a copy goes to {}", shown::address(story.exchange, &authority)),
            "mirror-target",
        );
    }
    let (drawn, mirrors) = (story.exchange.visit.mirrored, &story.exchange.spot().extras().mirrors);
    let copied = mirrors.iter().enumerate().filter(|(index, _)| drawn >> (index & 31) & 1 == 1);
    let copied: Vec<String> = copied.map(|(_, group)| group.id.to_string()).collect();
    for id in copied {
        story.say("mirror", format!("a copy goes to {id}"));
    }
    let Some(trace) = &story.exchange.trace else { return };
    let head = trace.head.borrow();
    for line in head.iter().flat_map(|head| head.lines()).filter(|line| !line.is_empty()) {
        story.say("sent upstream", shown::line(story.exchange, line));
    }
}

fn side(story: &mut Story<'_>) {
    let spot = story.exchange.spot();
    let Some(canary) = spot.extras().canary.as_deref() else { return };
    let why = canaries::why(story.exchange, spot, canary);
    let outcome = if story.exchange.visit.canary {
        format!("the canary, {}: {why}", canary.group.id)
    } else {
        format!("the main side, not the canary {}: {why}", canary.group.id)
    };
    story.say("side", outcome);
}

fn endpoints(story: &mut Story<'_>) {
    let exchange = story.exchange;
    let spot = exchange.spot();
    let (Some(group), rule) = choose_backend::chosen(exchange, spot) else { return };
    if exchange.visit.stands_in && !exchange.visit.canary {
        let outcome = format!("{} stands in: the backend has no endpoints", group.id);
        story.say("default-backend", outcome);
    }
    if exchange.visit.named.as_ref().is_some_and(|named| Arc::ptr_eq(named, group)) {
        story.say("upstream", format!("{}, which a snippet names", group.id));
    }
    let endpoints = group.endpoints();
    let usable = endpoints.usable();
    let listed: Vec<String> = usable.iter().take(8).map(ToString::to_string).collect();
    let more =
        if usable.len() > 8 { format!(" and {} more", usable.len() - 8) } else { String::new() };
    let session = rule.and_then(|rule| rule.session.as_ref()).map(|session| &session.affinity);
    let algorithm = rule.map_or(&Algorithm::RoundRobin, |rule| &rule.algorithm);
    let rule = match (session, algorithm) {
        (Some(affinity), _) if affinity.of_rule.as_ref().is_some_and(|rule| rule.in_header) => {
            "by the session field"
        }
        (Some(_), _) => "by the session cookie",
        (None, Algorithm::RoundRobin) => "in turn",
        (None, Algorithm::Ewma) => "by response times (ewma)",
        (None, Algorithm::Random) => "by chance",
        (None, _) => "by hash (upstream-hash-by)",
    };
    let upstream = exchange.generation.configuration.upstreams.get(&group.id);
    let name = upstream.and_then(|upstream| upstream.external.as_ref());
    let outcome = match name.filter(|_| group.followed().is_none()) {
        // It was not looked up.
        Some((host, port)) => format!("{rule} one of the addresses of {host}:{port}"),
        None => format!("{rule} one of {}{more}", listed.join(", ")),
    };
    story.say("endpoints", outcome);
    for attempt in &exchange.log.tries {
        let status =
            attempt.status.get().map_or("no answer yet".to_owned(), |status| status.to_string());
        story.say("try", format!("{}: {status}", attempt.address));
    }
}
