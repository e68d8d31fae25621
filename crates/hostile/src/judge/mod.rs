//! What happened against what was wanted: as expected, stricter, or worse.

mod http2;
mod request;
mod response;
#[cfg(test)]
mod tests;

use crate::backend::{Event, Seen};
use crate::case::{Case, Input};
use crate::lane::{Client, Observation};
use crate::message::{Request, show, values};
use serde::Serialize;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As the table says.
    AsExpected,
    /// Refused where it could have been accepted.
    Stricter,
    /// Anything else.
    Worse,
}

/// A verdict and what happened, in words.
pub type Judgement = (Verdict, String);

fn expected(words: impl Into<String>) -> Judgement {
    (Verdict::AsExpected, words.into())
}

fn stricter(words: impl Into<String>) -> Judgement {
    (Verdict::Stricter, words.into())
}

fn worse(words: impl Into<String>) -> Judgement {
    (Verdict::Worse, words.into())
}

/// Judges one case.
pub fn judge(case: &Case, seen: &Observation) -> Judgement {
    if let Input::NotUnderstood(why) = &case.input {
        return worse(format!("not sent: {why}"));
    }
    let upstream = Upstream::new(&seen.upstream, &seen.added);
    if let Some(dirt) = upstream.dirt.first() {
        return worse(format!("reached the upstream: {dirt}"));
    }
    let judgement = match (&case.input, &seen.client) {
        (Input::Request { pieces, early: false }, Client::Http1(got)) => {
            request::judge(case, pieces, got, &upstream)
        }
        (Input::Request { .. }, Client::Http1(got)) => request::judge_early(got, &upstream, seen),
        (Input::Response(pieces), Client::Http1(got)) => {
            response::judge(case, pieces, got, seen.reused)
        }
        (Input::Http2(script), Client::Http2(state)) => {
            http2::judge(case, script, state, &upstream)
        }
        (_, Client::Floods(outcomes)) => http2::judge_floods(outcomes),
        _ => worse("sent over another protocol than the case's"),
    };
    match &seen.probe {
        Err(why) if judgement.0 != Verdict::Worse => {
            worse(format!("{}; the next plain request: {why}", judgement.1))
        }
        _ => judgement,
    }
}

/// What reached the upstream.
#[derive(Debug, Default)]
struct Upstream<'a> {
    /// Complete messages.
    whole: Vec<&'a Request>,
    /// What two readers could understand differently, or what a proxy must not pass on.
    dirt: Vec<String>,
    /// Messages that were begun, neither completed nor aborted.
    hanging: usize,
}

impl<'a> Upstream<'a> {
    fn new(seen: &'a [Seen], added: &[String]) -> Self {
        let mut upstream = Self::default();
        for Seen { event, .. } in seen {
            match event {
                Event::Began => upstream.hanging += 1,
                Event::Cut(_) => upstream.hanging = upstream.hanging.saturating_sub(1),
                Event::Ambiguous(why) => {
                    upstream.hanging = upstream.hanging.saturating_sub(1);
                    upstream.dirt.push(why.clone());
                }
                Event::Whole(request) => {
                    upstream.hanging = upstream.hanging.saturating_sub(1);
                    upstream.dirt.extend(dirt(request, added));
                    upstream.whole.push(request);
                }
            }
        }
        upstream
    }
}

/// What a proxy must not pass on, although it is legal between two others.
fn dirt(request: &Request, added: &[String]) -> Vec<String> {
    let mut dirt = request.blemishes.clone();
    if let Some(missing) = added.iter().find(|name| !request.has(name)) {
        let line = format!("{} {}", request.method, show(&request.target));
        dirt.push(format!("{line} without the field {missing} that the proxy adds"));
    }
    for (name, value) in &request.fields {
        let wrong = match name.as_str() {
            "keep-alive" | "proxy-connection" | "http2-settings" => true,
            "te" => !value.eq_ignore_ascii_case(b"trailers"),
            "upgrade" => value.eq_ignore_ascii_case(b"h2c"),
            "expect" => !value.eq_ignore_ascii_case(b"100-continue"),
            _ => false,
        };
        if wrong {
            dirt.push(format!("{name}: {}", show(value)));
        }
    }
    for forged in values(&request.fields, "connection") {
        let forged = forged.to_ascii_lowercase();
        let nominated =
            [b"transfer-encoding".as_slice(), b"content-length", b"host", b"x-forwarded-for"];
        if forged.split(|byte| b", ".contains(byte)).any(|token| nominated.contains(&token)) {
            dirt.push(format!("connection: {}", show(&forged)));
        }
    }
    dirt
}
