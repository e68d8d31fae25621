//! The client's side of WebSocket: one upgrade, then one masked frame at a time, echoed back.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::http1::{end_of_head, parse};
use super::talk::{After, Finished};

/// What is sent to and fro, short enough for a frame's short form.
pub(super) const PAYLOAD: &[u8; 64] =
    b"a frame of sixty-four bytes, sent there and back, over and over.";
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A connection that is or will be upgraded.
#[derive(Default)]
pub(super) struct Client {
    asked: Option<Instant>,
    upgraded: bool,
    kept: Vec<u8>,
}

impl Client {
    pub(super) fn free(&self) -> usize {
        usize::from(self.asked.is_none())
    }

    /// The first request is the upgrade; the frame follows when it is granted.
    pub(super) fn start(&mut self, upgrade: &[u8], intended: Instant, out: &mut Vec<u8>) {
        self.asked = Some(intended);
        if self.upgraded {
            write_frame(out);
        } else {
            out.extend_from_slice(upgrade);
        }
    }

    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut Vec<Finished>,
    ) -> Result<After> {
        self.kept.extend_from_slice(bytes);
        if !self.upgraded {
            let Some(end) = end_of_head(&self.kept, 0) else { return Ok(After::Continue) };
            let head = parse(&self.kept[..end])?;
            ensure!(head.status == 101, "status {} instead of 101", head.status);
            self.kept.drain(..end);
            self.upgraded = true;
            write_frame(out);
        }
        if self.kept.len() < 2 + PAYLOAD.len() {
            return Ok(After::Continue);
        }
        ensure!(self.kept[..2] == [0x82, PAYLOAD.len() as u8], "another frame than the echo");
        ensure!(self.kept[2..] == PAYLOAD[..], "the echo is not what was sent");
        self.kept.clear();
        let asked = self.asked.take().context("a frame that nobody asked for")?;
        done.push(Finished::Answered(asked));
        Ok(After::Continue)
    }
}

fn write_frame(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x82, 0x80 | PAYLOAD.len() as u8]);
    out.extend_from_slice(&MASK);
    out.extend(PAYLOAD.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}
