//! One request: what the log says was decided, beside what Fairway decides. What a log does not show is never guessed
//! in Fairway's favour: it is either named as a condition, or the verdict is that nothing can be told.

mod compare;
mod conditions;
mod snippets;

use crate::cause::{self, Cause};
use crate::known::Known;
use crate::log::Record;
use compare::{Found, compare};
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// A request that Fairway is asked about.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Request line and header section as HTTP/1.1 has them, the empty line included.
    pub head: Vec<u8>,
    /// Whether it comes over HTTP/2.
    pub http2: bool,
    /// The name in the TLS handshake, where there is one.
    pub tls: Option<String>,
    /// Who sends it.
    pub client: IpAddr,
}

/// What would become of it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The status, if the upstream answers 200.
    pub status: u16,
    /// Whether an upstream has it.
    pub sent: bool,
    /// Where it ended.
    pub end: End,
    /// The server and the number of its location.
    pub place: Option<(String, usize)>,
    /// Whether a rule of a Gateway has it.
    pub routed: bool,
    /// The upstream that has it, or that is behind the location.
    pub upstream: Option<String>,
    /// Whether `default-backend` stands in.
    pub stands_in: bool,
    /// The Location of the answer.
    pub leads_to: Option<String>,
    /// Whether another path than the client's is forwarded.
    pub dotted: bool,
}

/// Where a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It cannot be read.
    Unread,
    /// A block list.
    Blocks,
    /// By what is written down in objects alone.
    Decided,
    /// By a program of a snippet.
    Snippet,
    /// Nobody is there.
    Endpoints,
    /// Rates and connections.
    Limits,
    /// Guards; or nothing is behind the location.
    Access,
    /// An upstream.
    Upstream,
}

/// Who answers.
pub trait Oracle {
    /// What would become of a request.
    fn ask(&self, asked: Asked) -> Decision;
}

/// What is taken for granted, since the log does not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum If {
    /// The host.
    Host,
    /// HTTP or HTTPS.
    Scheme,
    /// The path before rewrites.
    Path,
    /// A password.
    Password,
    /// An external authenticator.
    Authenticator,
    /// A client's certificate.
    ClientCertificate,
    /// What leads to a canary.
    Canary,
    /// What a snippet looks at.
    Snippet,
    /// The Origin.
    Origin,
    /// Endpoints.
    Endpoints,
    /// Where a redirect leads.
    LeadsTo,
}

/// What is to be said about a request, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The same was decided, and nothing is known that differs.
    Alike,
    /// The same, if what the log does not show was so.
    AlikeIf,
    /// The same as far as a log shows; but something about its Ingress or about the request differs on purpose.
    AlikeBut,
    /// It cannot be told.
    Unknown,
    /// Something else was decided.
    Differs,
}

/// What is to be said about a request.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// In short.
    pub standing: Standing,
    /// Why; none where it is alike.
    pub cause: Option<Cause>,
    /// What is taken for granted.
    pub conditions: BTreeSet<If>,
    /// What each of them did.
    pub words: String,
    /// The location that Fairway asks.
    pub place: Option<(String, usize)>,
    /// The host, as it was logged or inferred.
    pub host: Option<String>,
}

/// The verdict on a request.
pub fn judge(record: &Record, known: &Known, oracle: &impl Oracle) -> Verdict {
    if record.target.trim_matches('-').is_empty() {
        return unknown(
            record,
            "the log has no request for it: the connection ended, or the time was over, before there was one",
        );
    }
    let named = record.upstream.as_deref().filter(|name| !matches!(*name, "" | "-"));
    let inferred = || named.and_then(|name| known.host_of(name));
    let (host, is_inferred) = match &record.host {
        Some(host) => (host.clone(), false),
        None => match inferred() {
            Some(host) => (host, true),
            None => return unknown(record, NO_HOST),
        },
    };
    let texts = [&record.method, &record.target, &host];
    if texts.iter().any(|text| text.contains(['\r', '\n', '\0'])) {
        return unknown(record, "the request has a line break in it: it cannot be asked as it was");
    }
    // Whom peers are believed about the scheme, the port's own says little.
    let is_told = !known.believes_some()
        && record.headers.iter().any(|(name, _)| name == "x-forwarded-proto");
    let sure = record.secure.filter(|secure| *secure || !known.believes_peers() || is_told);
    let ask = |secure: bool| {
        let answer = oracle.ask(asked(record, &host, secure));
        let found = compare(record, &answer, known);
        (answer, found)
    };
    let (answer, mut found) = match sure {
        Some(secure) => ask(secure),
        None => either(ask(false), ask(true)),
    };
    if is_inferred {
        found.conditions.insert(If::Host);
    }
    if record.after_rewrite {
        found.conditions.insert(If::Path);
    }
    conclude(record, known, host, &answer, found)
}

const NO_HOST: &str = "the log has no host, and its upstream is none or belongs to several hosts: add $host to log-format-upstream";

fn unknown(record: &Record, why: &'static str) -> Verdict {
    Verdict {
        standing: Standing::Unknown,
        cause: Some(Cause::untold(why)),
        conditions: BTreeSet::new(),
        words: format!("the log says {}", record.status),
        place: None,
        host: record.host.clone(),
    }
}

/// What both schemes lead to; where only one of them agrees with the log, that is a condition.
fn either(plain: (Decision, Compared), secure: (Decision, Compared)) -> (Decision, Compared) {
    use Found::{Alike, Differs, Unknown};
    let (mut chosen, is_sure) = match (&plain.1.found, &secure.1.found) {
        (Alike, Alike) => (secure, true),
        (Alike, _) => (plain, false),
        (_, Alike) => (secure, false),
        (Unknown(_), _) => (plain, true),
        (_, Unknown(_)) | (Differs, Differs) => (secure, true),
    };
    if !is_sure {
        chosen.1.conditions.insert(If::Scheme);
    }
    chosen
}

/// What was found, and on which conditions.
#[derive(Debug)]
struct Compared {
    found: Found,
    conditions: BTreeSet<If>,
}

fn conclude(
    record: &Record,
    known: &Known,
    host: String,
    answer: &Decision,
    compared: Compared,
) -> Verdict {
    let Compared { found, conditions } = compared;
    let (standing, cause) = match found {
        Found::Unknown(why) => (Standing::Unknown, Some(Cause::untold(why))),
        Found::Differs if conditions.contains(&If::Path) => {
            let why =
                "the log has the path after rewrites only: add $request_uri to log-format-upstream";
            (Standing::Unknown, Some(Cause::untold(why)))
        }
        Found::Differs => (Standing::Differs, Some(cause::of_difference(record, answer, known))),
        Found::Alike => match cause::besides(record, answer, known) {
            Some(cause) => (Standing::AlikeBut, Some(cause)),
            None if conditions.is_empty() => (Standing::Alike, None),
            None => (Standing::AlikeIf, None),
        },
    };
    let place = answer.place.clone().filter(|_| !answer.routed);
    let words = compare::words(record, answer);
    Verdict { standing, cause, conditions, words, place, host: Some(host) }
}

/// The request as a client would send it.
fn asked(record: &Record, host: &str, secure: bool) -> Asked {
    let client = record.client.unwrap_or(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    let http2 = record.protocol.starts_with("HTTP/2") || record.protocol.starts_with("HTTP/3");
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let tls = secure.then(|| name.to_owned());
    if record.method.is_empty() {
        // What nginx could not take apart is asked about as it is.
        let head = format!("{}\r\n\r\n", record.target).into_bytes();
        return Asked { head, http2: false, tls, client };
    }
    let version = if record.protocol == "HTTP/1.0" { "HTTP/1.0" } else { "HTTP/1.1" };
    let mut head = format!("{} {} {version}\r\nHost: {host}\r\n", record.method, record.target);
    // The bounds of a head of HTTP/1 are not those of HTTP/2.
    let fits = |value: &String| !http2 || value.len() < 1024;
    for (name, value) in record.headers.iter().filter(|(_, value)| fits(value)) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    Asked { head: head.into_bytes(), http2, tls, client }
}
