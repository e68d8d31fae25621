//! A row of the table of hostile inputs: what is sent, by whom, and how it has to end.

pub mod escape;
mod outcome;
#[cfg(test)]
mod tests;

pub use escape::Piece;
pub use outcome::{Alternative, Wanted};

use crate::h2::script::{self, Script};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::Path;

/// One hostile input.
#[derive(Clone, Debug)]
pub struct Case {
    /// The row's name, e.g. `A01`.
    pub id: String,
    /// What is sent.
    pub input: Input,
    /// How it has to end.
    pub wanted: Wanted,
    /// The row's `expected_outcome`, for the reader of the report.
    pub expected: String,
}

/// What is sent, and by which side.
#[derive(Clone, Debug)]
pub enum Input {
    /// The client sends these bytes over HTTP/1; `early` upstreams answer before they have read the body.
    Request {
        /// In order.
        pieces: Vec<Piece>,
        /// The upstream answers as soon as it has the head.
        early: bool,
    },
    /// The client's request is plain and the upstream answers with these bytes.
    Response(Vec<Piece>),
    /// The client sends this over HTTP/2.
    Http2(Script),
    /// The row says something that this program cannot send or judge: why.
    NotUnderstood(String),
}

#[derive(Deserialize)]
struct Row {
    id: String,
    raw_request_escaped: String,
    expected_outcome: String,
    proto: String,
    #[serde(default)]
    outcome_code: String,
}

/// Reads the table.
pub fn load(path: &Path) -> Result<Vec<Case>> {
    let mut reader =
        csv::Reader::from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut cases = Vec::new();
    for (index, row) in reader.deserialize::<Row>().enumerate() {
        let row = row.with_context(|| format!("{}: row {}", path.display(), index + 2))?;
        cases.push(Case::new(row));
    }
    if cases.is_empty() {
        bail!("{} has no rows", path.display());
    }
    Ok(cases)
}

impl Case {
    /// One row that is not understood is a result of its own and stops no other.
    fn new(row: Row) -> Self {
        let code = match row.outcome_code.as_str() {
            "" => row.expected_outcome.split(':').next().unwrap_or_default(),
            code => code,
        };
        let both = Wanted::parse(code, &row.expected_outcome)
            .and_then(|wanted| Ok((wanted, input(&row.proto, &row.raw_request_escaped)?)));
        let (wanted, input) = both.unwrap_or_else(|error| {
            (Wanted { any: Vec::new() }, Input::NotUnderstood(format!("{error:#}")))
        });
        Self { id: row.id, input, wanted, expected: row.expected_outcome }
    }
}

fn input(proto: &str, raw: &str) -> Result<Input> {
    Ok(match proto {
        "h1-req" | "h1-backend" => {
            let mut pieces = escape::decode(raw)?;
            let before = pieces.len();
            pieces.retain(|piece| *piece != Piece::EarlyAnswer);
            Input::Request { early: pieces.len() != before, pieces }
        }
        "h1-resp" => Input::Response(escape::decode(raw)?),
        "h2-req" => Input::Http2(script::parse(raw)?),
        other => bail!("proto {other:?} is none of h1-req, h1-backend, h1-resp, h2-req"),
    })
}
