//! A proxy with its upstream, and the sending of one case after another through them.

use crate::backend::{Backend, Event, PROBE, Script, Seen};
use crate::case::{Case, Input, Piece};
use crate::client::{self, Got, Patience};
use crate::flood;
use crate::h2::script::{self, Part};
use crate::h2::{Connection, block, frame};
use crate::message::{Read, Request, read_request};
use crate::subject::{Program, Setup, Subject};
use anyhow::{Context, Result, bail};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a proxy may take until it answers.
const START: Duration = Duration::from_secs(20);
/// How long a stall is watched: longer than the sixty seconds between two writes that a client gets by default.
const STALL: Duration = Duration::from_secs(90);
/// How long an HTTP/2 stream may stay without an end.
const STREAM: Duration = Duration::from_millis(2500);

/// A proxy with its upstream.
pub struct Lane {
    subject: Subject,
    backend: Backend,
    /// Names of the fields that the proxy adds to every request: what lacks them came past it.
    added: Vec<String>,
    probes: AtomicU64,
}

/// What was seen of one case.
#[derive(Clone, Debug)]
pub struct Observation {
    /// At the upstream.
    pub upstream: Vec<Seen>,
    /// At the client.
    pub client: Client,
    /// The plain request after it: whether it was answered rightly, else what happened.
    pub probe: Result<(), String>,
    /// The upstream connection of the case carried the plain request too.
    pub reused: bool,
    /// Names of the fields that the proxy adds to every request.
    pub added: Vec<String>,
    /// Bodies are passed on as they come.
    pub streaming: bool,
}

/// What the client saw.
#[derive(Clone, Debug)]
pub enum Client {
    /// Over HTTP/1.
    Http1(Got),
    /// Over HTTP/2, on stream 1.
    Http2(crate::h2::State),
    /// Floods.
    Floods(Vec<flood::Outcome>),
}

impl Lane {
    /// Starts upstream and proxy and waits until a plain request passes both, over HTTP/1 and HTTP/2.
    pub async fn start(program: &Program, setup: &Setup, port: u16) -> Result<Self> {
        let backend = Backend::start(port).await?;
        let mut subject = Subject::start(program, setup, backend.address())?;
        let deadline = Instant::now() + START;
        let mut lane = loop {
            subject.check()?;
            let attempt = plain(&subject, &backend, "/probe/start").await;
            match attempt {
                Ok(added) => break Self { subject, backend, added, probes: AtomicU64::new(0) },
                Err(why) if Instant::now() > deadline => {
                    bail!("no plain request passes the proxy: {why:#}\n{}", subject.log())
                }
                Err(_) => pause(Duration::from_millis(50)).await,
            }
        };
        let parts = [Part::Headers(fields_of(&block_pairs()))];
        let (state, _) = lane.stream(&parts).await?;
        if state.statuses.get(&1) != Some(&200) {
            bail!("a plain HTTP/2 request is not answered 200: {:?}", state.statuses.get(&1));
        }
        lane.added.retain(|name| name != "connection" && name != "host");
        Ok(lane)
    }

    /// The proxy.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The upstream.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Sends one case and a plain request after it.
    pub async fn observe(&self, case: &Case, streaming: bool) -> Result<Observation> {
        let (client, upstream) = match &case.input {
            Input::Request { pieces, early } => {
                self.backend.begin(if *early { Script::Early } else { Script::Answer });
                self.request(pieces, case.wanted.wants_close()).await?
            }
            Input::Response(pieces) => {
                let raw = pieces.iter().filter_map(|piece| match piece {
                    Piece::Bytes(bytes) => Some(bytes.as_slice()),
                    _ => None,
                });
                let raw = raw.collect::<Vec<_>>().concat();
                self.backend.begin(Script::Raw(raw, pieces.contains(&Piece::Fin)));
                let get = Piece::Bytes(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec());
                self.request(&[get], false).await?
            }
            Input::Http2(script::Script::Stream(parts)) => {
                self.backend.begin(Script::Answer);
                let (state, seen) = self.stream(parts).await?;
                (Client::Http2(state), seen)
            }
            Input::Http2(script::Script::Floods(floods)) => {
                let mut outcomes = Vec::new();
                for (flood, count) in floods {
                    let run = flood::run(
                        *flood,
                        *count,
                        (self.subject.https, self.subject.http),
                        &self.backend,
                        STALL,
                    );
                    outcomes.push(run.await?);
                }
                (Client::Floods(outcomes), Vec::new())
            }
            Input::NotUnderstood(_) => (Client::Http1(Got::default()), Vec::new()),
        };
        let (probe, reused) = self.probe(&upstream).await;
        let added = self.added.clone();
        Ok(Observation { upstream, client, probe, reused, added, streaming })
    }

    async fn request(&self, pieces: &[Piece], close: bool) -> Result<(Client, Vec<Seen>)> {
        let methods: Vec<String> =
            legal(pieces).0.into_iter().map(|request| request.method).collect();
        let patience = Patience { backend: &self.backend, methods: &methods, close };
        let got = client::exchange(self.subject.http, pieces, patience).await?;
        Ok((Client::Http1(got), self.backend.seen()))
    }

    async fn stream(&self, parts: &[Part]) -> Result<(crate::h2::State, Vec<Seen>)> {
        let connection = Connection::open(self.subject.https, &[], true).await?;
        let last = parts.len().saturating_sub(1);
        let mut bytes = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let end = if index == last { frame::END_STREAM } else { 0 };
            bytes.extend(match part {
                Part::Headers(fields) => frame::headers(1, &block::encode(&over_tls(fields)), end),
                Part::Data(content) => frame::write(frame::DATA, end, 1, content),
            });
        }
        // A proxy that refuses may close before everything is sent: what came back says so.
        let _ = connection.send(&bytes).await;
        let state = connection
            .wait(STREAM, |state| {
                state.ending().is_some()
                    || state.complete.contains(&1)
                    || state.resets.contains_key(&1)
            })
            .await;
        pause(Duration::from_millis(60)).await;
        Ok((state, self.backend.seen()))
    }

    /// A plain request on a new connection: it has to get its own answer.
    async fn probe(&self, before: &[Seen]) -> (Result<(), String>, bool) {
        let target = format!("{PROBE}{}", self.probes.fetch_add(1, Ordering::Relaxed));
        let result = plain(&self.subject, &self.backend, &target).await;
        let used: Vec<u64> = before.iter().map(|seen| seen.connection).collect();
        let reused = self.backend.seen().iter().any(|seen| match &seen.event {
            Event::Whole(request) => {
                request.target == target.as_bytes() && used.contains(&seen.connection)
            }
            _ => false,
        });
        (result.map(|_| ()).map_err(|error| format!("{error:#}")), reused)
    }
}

/// Sends a GET for `target` and checks that its own answer comes; the names of the fields that were added to it.
async fn plain(subject: &Subject, backend: &Backend, target: &str) -> Result<Vec<String>> {
    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let patience = Patience { backend, methods: &[], close: false };
    let pieces = [Piece::Bytes(text.into_bytes())];
    let got = timeout(Duration::from_secs(5), client::exchange(subject.http, &pieces, patience))
        .await??;
    let answer = got.answers.first().context("no answer")?;
    if answer.status != 200 || answer.body != target.as_bytes() {
        bail!("answered {} {:?}", answer.status, crate::message::show(&answer.body));
    }
    let arrived = backend.seen().into_iter().rev().find_map(|seen| match seen.event {
        Event::Whole(request) if request.target == target.as_bytes() => Some(request),
        _ => None,
    });
    let fields = arrived.context("answered without the upstream")?.fields;
    Ok(fields.into_iter().map(|(name, _)| name).collect())
}

/// The legal requests at the start of what a client sends, and what is wrong after them, if anything is.
pub fn legal(pieces: &[Piece]) -> (Vec<Request>, Option<String>) {
    let bytes: Vec<u8> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        })
        .collect::<Vec<_>>()
        .concat();
    let (mut rest, mut requests) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        match read_request(rest) {
            Read::Whole(request, used) => {
                requests.push(request);
                rest = &rest[used..];
            }
            Read::More { .. } => return (requests, Some("the end is missing".to_owned())),
            Read::Illegal(why) => return (requests, Some(why)),
        }
    }
    (requests, None)
}

/// The table writes `:scheme=http`; on a TLS connection the scheme is https.
fn over_tls(fields: &[block::Raw]) -> Vec<block::Raw> {
    let plain = |(name, value): &block::Raw| name == b":scheme" && value == b"http";
    let tls = || (b":scheme".to_vec(), b"https".to_vec());
    fields.iter().map(|field| if plain(field) { tls() } else { field.clone() }).collect()
}

fn block_pairs() -> [(&'static str, &'static str); 4] {
    [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/probe/start")]
}

fn fields_of(pairs: &[(&str, &str)]) -> Vec<block::Raw> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect()
}

async fn pause(length: Duration) {
    let _ = timeout(length, std::future::pending::<()>()).await;
}
