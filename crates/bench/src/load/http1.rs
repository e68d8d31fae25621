//! The client's side of HTTP/1.1: one request at a time, answers counted and not kept.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::talk::{After, Finished};

/// Heads longer than this are a proxy gone wrong.
const LONGEST_HEAD: usize = 16 * 1024;

/// An HTTP/1.1 connection.
#[derive(Default)]
pub(super) struct Client {
    asked: Option<Instant>,
    head: Vec<u8>,
    body_left: usize,
    closes: bool,
}

/// What the generator needs from an answer's head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// The announced length of the body.
    pub(crate) length: usize,
    /// Whether the proxy ends the connection after this answer.
    pub(crate) closes: bool,
}

impl Client {
    pub(super) fn free(&self) -> usize {
        usize::from(self.asked.is_none())
    }

    pub(super) fn start(&mut self, request: &[u8], intended: Instant, out: &mut Vec<u8>) {
        out.extend_from_slice(request);
        self.asked = Some(intended);
    }

    pub(super) fn receive(&mut self, mut bytes: &[u8], done: &mut Vec<Finished>) -> Result<After> {
        if self.body_left == 0 {
            ensure!(self.asked.is_some(), "an answer without a request: {}", text(bytes));
            let known = self.head.len();
            self.head.extend_from_slice(bytes);
            let Some(end) = end_of_head(&self.head, known.saturating_sub(3)) else {
                ensure!(self.head.len() < LONGEST_HEAD, "a head without an end");
                return Ok(After::Continue);
            };
            let head = parse(&self.head[..end])?;
            ensure!(head.status == 200, "status {} instead of 200", head.status);
            self.closes = head.closes;
            self.body_left = head.length;
            bytes = &bytes[end - known..];
            self.head.clear();
        }
        ensure!(bytes.len() <= self.body_left, "{} bytes too many", bytes.len() - self.body_left);
        self.body_left -= bytes.len();
        if self.body_left > 0 {
            return Ok(After::Continue);
        }
        let asked = self.asked.take().context("an answer without a request")?;
        done.push(Finished::Answered(asked));
        Ok(if self.closes { After::Reconnect } else { After::Continue })
    }
}

/// Where the body begins, searched from `from` on.
pub(crate) fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let found = bytes[from..].windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(from + found + 4)
}

/// Reads the few lines that matter of an answer's head.
pub(crate) fn parse(head: &[u8]) -> Result<Head> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let line = lines.next().unwrap_or_default();
    let status = line.get(9..12).map(text).and_then(|code| code.parse().ok());
    let status = status.with_context(|| format!("no status in {}", text(line)))?;
    let mut length = None;
    let mut closes = false;
    for line in lines {
        // The length of a name decides nearly always that a line is of no interest.
        match line.iter().position(|byte| *byte == b':') {
            Some(14) if line[..14].eq_ignore_ascii_case(b"content-length") => {
                length = text(line[15..].trim_ascii()).parse().ok();
            }
            Some(10) if line[..10].eq_ignore_ascii_case(b"connection") => {
                closes = line[11..].trim_ascii().eq_ignore_ascii_case(b"close");
            }
            Some(17) if line[..17].eq_ignore_ascii_case(b"transfer-encoding") => {
                bail!("a chunked answer where the upstream gave a length");
            }
            _ => {}
        }
    }
    let length = match length {
        Some(length) => length,
        None if status == 101 => 0,
        None => bail!("an answer without Content-Length: {}", text(head)),
    };
    Ok(Head { status, length, closes })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_pieces_is_counted_once_and_whole() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\nhello";
        for cut in 1..answer.len() {
            let (mut client, mut done) = (Client::default(), Vec::new());
            client.start(b"GET", Instant::now(), &mut Vec::new());
            let first = client.receive(&answer[..cut], &mut done).expect("first part");
            assert_eq!((first, done.len()), (After::Continue, 0), "cut at {cut}");
            let second = client.receive(&answer[cut..], &mut done).expect("second part");
            assert_eq!((second, done.len()), (After::Reconnect, 1), "cut at {cut}");
        }
    }

    #[test]
    fn an_answer_that_is_not_what_was_asked_for_is_an_error() {
        for answer in [
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            let mut client = Client::default();
            client.start(b"GET", Instant::now(), &mut Vec::new());
            assert!(client.receive(answer.as_bytes(), &mut Vec::new()).is_err(), "{answer}");
        }
    }
}
