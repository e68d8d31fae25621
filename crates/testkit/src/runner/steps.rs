//! The steps of one case, one after another.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result};
use futures_util::{StreamExt, stream};

use super::bed::Bed;
use crate::{
    case::Case,
    duration, eventually,
    exchange::{Outcome, Request, Seen},
};

/// How long what must not reach a fixture has to show itself. Fixtures note a request before they answer it, so this
/// counts only where nothing is to come, where requests are copied, and where they are sent many times.
const LATE: Duration = Duration::from_millis(30);

/// How long what should reach the fixtures may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(3);

/// Fixtures that are not counted as pods: they only stand beside the way of a request.
const ASIDE: [&str; 2] = ["auth", "errors"];

/// Runs the steps and gives what happened at each.
pub(super) async fn run(bed: &mut Bed, case: &Case) -> Result<Vec<Outcome>> {
    bed.client.forget();
    let mut out = Vec::new();
    for step in &case.steps {
        let objects = |file: &Option<String>| {
            file.as_ref().map(|file| bed.references.read(&case.folder.join(file))).transpose()
        };
        let (apply, delete) = (objects(&step.apply)?, objects(&step.delete)?);
        bed.change(apply.as_deref(), delete.as_deref()).await?;
        if let Some(wait) = &step.wait {
            #[expect(
                clippy::disallowed_methods,
                reason = "a step of a recording that says `wait`"
            )]
            tokio::time::sleep(
                duration::parse(wait).with_context(|| format!("wait: {wait} is no duration"))?,
            )
            .await;
        }
        out.push(match &step.request {
            None => Outcome::default(),
            Some(request) if request.repeat.is_some_and(|times| times > 1) => {
                repeated(bed, request).await
            }
            Some(request) => once(bed, request, recorded(&step.outcome), case.mirrors()).await,
        });
    }
    Ok(out)
}

/// Sends a request many times and counts.
async fn repeated(bed: &Bed, request: &Request) -> Outcome {
    let _earlier = bed.upstreams.journal.drain();
    let (times, parallel) = (request.repeat.unwrap_or(1), request.parallel.unwrap_or(1).max(1));
    let answers =
        stream::iter(0..times).map(|_| bed.client.send(request)).buffer_unordered(parallel);
    let mut results: Vec<String> = answers
        .map(|answer| match (answer.status, answer.error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.unwrap_or_else(|| "None".to_owned()),
        })
        .collect()
        .await;
    #[expect(clippy::disallowed_methods, reason = "more than was counted is shown by time")]
    tokio::time::sleep(LATE).await;
    let seen = bed.upstreams.journal.drain();
    results.extend(
        seen.into_iter()
            .filter(|seen| !ASIDE.contains(&seen.service.as_str()))
            .map(|seen| seen.pod),
    );
    let mut counts = BTreeMap::new();
    for result in results {
        *counts.entry(result).or_insert(0) += 1;
    }
    Outcome { counts: Some(counts), ..Outcome::default() }
}

/// How many requests reached the fixtures when the step was recorded.
fn recorded(outcome: &Outcome) -> usize {
    usize::from(outcome.seen.is_some())
        + usize::from(outcome.seen_auth.is_some())
        + outcome.also_seen.len()
}

/// Sends a request once and notes what reached whom: at least as much as was `recorded`, if that comes.
async fn once(bed: &Bed, request: &Request, recorded: usize, mirrors: bool) -> Outcome {
    let _earlier = bed.upstreams.journal.drain();
    let answer = bed.client.send(request).await;
    let journal = &bed.upstreams.journal;
    let all = || std::future::ready((journal.count() >= recorded).then_some(()));
    let _less = eventually(PATIENCE, all).await;
    if mirrors || recorded == 0 {
        #[expect(clippy::disallowed_methods, reason = "absence is shown by time")]
        tokio::time::sleep(LATE).await;
    }
    let noted = bed.upstreams.journal.drain();
    let normal = |seen: Seen| bed.normaliser.seen(seen, request);
    let (auth, main): (Vec<Seen>, Vec<Seen>) =
        noted.into_iter().partition(|seen| seen.service == "auth");
    let mut main = ordered(main, mirrors).into_iter().map(normal);
    let mut auth = auth.into_iter().map(normal);
    Outcome {
        answer: Some(bed.normaliser.answer(answer, request)),
        seen: main.next(),
        seen_auth: auth.next(),
        also_seen: main.chain(auth).collect(),
        counts: None,
    }
}

/// The request itself first: copies are sent with HTTP/1.0, and the error page that was answered counts before what
/// failed.
fn ordered(mut main: Vec<Seen>, mirrors: bool) -> Vec<Seen> {
    if mirrors {
        main.sort_by_key(|seen| seen.protocol == "HTTP/1.0");
    }
    if main.last().is_some_and(|last| last.service == "errors") {
        main.rotate_right(1);
    }
    main
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seen: &[(&str, &str)], mirrors: bool) -> Vec<String> {
        let seen = seen.iter().map(|(service, protocol)| Seen {
            service: (*service).to_owned(),
            protocol: (*protocol).to_owned(),
            ..Seen::default()
        });
        ordered(seen.collect(), mirrors).into_iter().map(|seen| seen.service).collect()
    }

    #[test]
    fn copies_come_after_the_request_and_an_error_page_before_it() {
        assert_eq!(order(&[("copy", "HTTP/1.0"), ("echo", "HTTP/1.1")], true), ["echo", "copy"]);
        assert_eq!(order(&[("copy", "HTTP/1.0"), ("echo", "HTTP/1.1")], false), ["copy", "echo"]);
        assert_eq!(order(&[("a", ""), ("b", ""), ("errors", "")], false), ["errors", "a", "b"]);
    }
}
