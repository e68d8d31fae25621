//! How a case has to end: the codes of the table as alternatives that can be checked.

use anyhow::{Result, bail};

/// How a case has to end: one of the alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Any of these will do.
    pub any: Vec<Alternative>,
}

/// One acceptable ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// An error answer with one of these statuses, then the connection closes; nothing complete is forwarded.
    Refuse(Vec<u16>),
    /// The upstream's answer is replaced by a 502.
    BadGateway,
    /// Forwarded as one unambiguous message.
    Normalise,
    /// Forwarded as it is.
    Accept,
    /// What was begun upstream is aborted, never completed.
    Abort,
    /// The HTTP/2 stream is reset.
    Reset,
    /// The HTTP/2 connection is ended.
    GoAway,
    /// The HTTP/2 stream is given up after a while.
    StreamTimeout,
}

impl Wanted {
    /// Reads a code like `REJECT_400_CLOSE` or `RST_OR_400`, with what its explanation allows besides.
    pub fn parse(code: &str, explanation: &str) -> Result<Self> {
        let mut any = Vec::new();
        for part in code.trim().split("_OR_") {
            any.push(alternative(part, explanation)?);
        }
        let text = explanation.split_once(':').map_or("", |(_, text)| text);
        let replaceable = any.contains(&Alternative::BadGateway);
        if replaceable && text.contains(" SP") || text.contains("or ignore it") {
            any.push(Alternative::Normalise);
        }
        Ok(Self { any })
    }

    /// Whether a message may reach the upstream at all.
    pub fn allows_forwarding(&self) -> bool {
        self.any.iter().any(|one| {
            matches!(one, Alternative::Normalise | Alternative::Accept | Alternative::StreamTimeout)
        })
    }

    /// Whether the client's connection has to close whatever happens.
    pub fn wants_close(&self) -> bool {
        self.any.iter().any(|one| matches!(one, Alternative::Refuse(_) | Alternative::Abort))
    }
}

fn alternative(part: &str, explanation: &str) -> Result<Alternative> {
    Ok(match part {
        "NORMALISE" | "NORMALIZE" | "RELAY" => Alternative::Normalise,
        "ACCEPT" => Alternative::Accept,
        "ABORT" => Alternative::Abort,
        "REJECT_502" | "REJECT_502_CLOSE" | "502" => Alternative::BadGateway,
        "RST" | "RST_STREAM" | "RST_STREAM_PROTOCOL_ERROR" => Alternative::Reset,
        "GOAWAY" | "GOAWAY_PROTOCOL_ERROR" => Alternative::GoAway,
        "STREAM_TIMEOUT" => Alternative::StreamTimeout,
        // Without a number: any refusal.
        "REJECT" | "REJECT_CLOSE" | "CLOSE" => {
            Alternative::Refuse(vec![400, 405, 411, 413, 414, 417, 431, 501, 505])
        }
        _ => {
            let digits = part.trim_start_matches("REJECT_").trim_end_matches("_CLOSE");
            let Ok(status) = digits.parse::<u16>() else { bail!("unknown outcome code {part:?}") };
            Alternative::Refuse(statuses(status, explanation))
        }
    })
}

/// The status of the code, those that its explanation names too (`414 (or 400/431)`), and 400 for 501 and 431,
/// which say the same less precisely.
fn statuses(status: u16, explanation: &str) -> Vec<u16> {
    let mut all = vec![status];
    if matches!(status, 501 | 414 | 417 | 431) {
        all.push(400);
    }
    for word in explanation.split(|c: char| !c.is_ascii_alphanumeric() && c != '.') {
        if let Ok(other @ 400..=599) = word.parse::<u16>() {
            all.push(other);
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}
