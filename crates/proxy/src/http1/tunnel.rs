//! After a 101 the connection carries something else: bytes both ways until one side ends or both are silent.

use super::transport::Client;
use crate::io::Io;
use crate::timer::Timer;
use crate::upstream::Upgraded;
use bytes::{Buf, BytesMut};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes that passed through a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnel {
    /// From the client.
    pub received: u64,
    /// To the client.
    pub sent: u64,
}

/// Bytes one direction holds before its receiver must take them.
const HELD: usize = 64 << 10;

/// Moves bytes until both sides are done, one of them fails, or both are silent for the upstream's read time-out.
pub async fn tunnel(client: Client, upgraded: Upgraded) -> Tunnel {
    let (client, read_ahead) = client.into_parts();
    let timer = Timer::new(upgraded.idle);
    let mut down = Direction::new(upgraded.buffer);
    let mut up = Direction::new(read_ahead);
    let (mut client, mut upstream) = (client, upgraded.io);
    poll_fn(|cx| {
        let moved =
            [up.step(cx, &mut client, &mut upstream), down.step(cx, &mut upstream, &mut client)];
        if moved.contains(&Step::Failed) || (up.ended && down.ended) {
            return Poll::Ready(());
        }
        if moved.contains(&Step::Moved) {
            timer.reset(upgraded.idle.max(Duration::from_millis(1)));
        }
        timer.poll(cx).map(|_| ())
    })
    .await;
    Tunnel { received: up.moved, sent: down.moved }
}

struct Direction {
    held: BytesMut,
    moved: u64,
    eof: bool,
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    Moved,
    Failed,
}

impl Direction {
    fn new(held: BytesMut) -> Self {
        Self { held, moved: 0, eof: false, ended: false }
    }

    /// Moves what can be moved without waiting.
    fn step(&mut self, cx: &mut Context<'_>, from: &mut Io, to: &mut Io) -> Step {
        let mut step = Step::Idle;
        while !self.ended {
            let before = self.held.len();
            let written = to.poll_write_all(cx, &mut self.held);
            self.moved += (before - self.held.remaining()) as u64;
            if self.held.len() < before {
                step = Step::Moved;
            }
            match written {
                Poll::Ready(Err(_)) => return Step::Failed,
                Poll::Pending if self.held.len() >= HELD || self.eof => return step,
                Poll::Pending | Poll::Ready(Ok(())) => {}
            }
            if self.eof {
                match to.poll_close(cx) {
                    Poll::Ready(_) => self.ended = true,
                    Poll::Pending => return step,
                }
                continue;
            }
            match from.poll_read_head(cx, &mut self.held) {
                Poll::Ready(Ok(0)) => self.eof = true,
                Poll::Ready(Ok(_)) => step = Step::Moved,
                Poll::Ready(Err(_)) => return Step::Failed,
                Poll::Pending => {
                    return match to.poll_flush_all(cx) {
                        Poll::Ready(Err(_)) => Step::Failed,
                        _ => step,
                    };
                }
            }
        }
        step
    }
}
