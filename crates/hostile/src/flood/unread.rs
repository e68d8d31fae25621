//! Clients that ask for much and read nothing, beside one that only wants an answer.

use super::frames;
use super::slow::all_established;
use crate::h2::frame;
use anyhow::Result;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// What is left unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Answers of 128 streams of each of 30 connections, whose windows are as wide as can be.
    Http2,
    /// An answer on each of 400 connections.
    Http1,
    /// Answers that never end to requests with large heads, of 128 streams of each of 40 connections.
    UnderWay,
    /// The same to small requests, compressed, of 12 connections that let nothing out.
    Encoders,
}

/// How the honest client fared.
#[derive(Clone, Debug, Default)]
pub struct Honest {
    /// Requests, each on a connection of its own.
    pub asked: usize,
    /// Those that were answered 200.
    pub served: usize,
    /// The longest time without an answer.
    pub gap: Duration,
}

/// What the honest client asks for.
pub(super) const HONEST: &str = "/honest";
/// Requests of the honest client, for each second.
const PER_SECOND: u32 = 10;
/// How long a place is waited for.
const CONNECT: Duration = Duration::from_millis(500);
/// The largest answer that a window lets through.
const WIDE: u32 = 0x7fff_ffff;

impl Unread {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Http2, Self::Http1, Self::UnderWay, Self::Encoders];

    /// What is done, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http2 => "HTTP/2 answers unread, 30 x 128",
            Self::Http1 => "HTTP/1 answers unread, 400",
            Self::UnderWay => "HTTP/2 requests under way, 40 x 128",
            Self::Encoders => "HTTP/2 answers compressed, 12 x 128",
        }
    }

    /// Keys of the ConfigMap that it needs.
    pub fn configuration(self) -> Vec<(&'static str, String)> {
        let keys: &[_] = if self == Self::Encoders { &["use-gzip", "enable-brotli"] } else { &[] };
        keys.iter().map(|key| (*key, "true".to_owned())).collect()
    }

    fn connections(self) -> usize {
        match self {
            Self::Http2 => 30,
            Self::Http1 => 400,
            Self::UnderWay => 40,
            Self::Encoders => 12,
        }
    }

    fn opening(self) -> Vec<u8> {
        if self == Self::Http1 {
            return b"GET /bytes/1048576 HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        }
        // Setting 4: the initial window of each stream.
        let window = if self == Self::Encoders { 0 } else { WIDE };
        let mut opening = [frame::PREFACE, &frame::settings(&[(4, window)])].concat();
        if self == Self::UnderWay {
            opening.extend(frames::large(128, "/drip"));
            return opening;
        }
        if self == Self::Encoders {
            opening.extend((0..128).flat_map(|n| frames::compressed(2 * n + 1, "/drip")));
            return opening;
        }
        opening.extend(frames::window(0, WIDE - 65_535));
        opening.extend((0..128).flat_map(|n| frames::get(2 * n + 1, "/bytes/262144")));
        opening
    }
}

impl Honest {
    /// Whether it was served nearly always, and never had to wait for longer than a flood takes to build up on a
    /// machine that has other things to do.
    pub fn ok(&self) -> bool {
        self.served * 10 >= self.asked * 8 && self.gap < Duration::from_secs(10)
    }

    /// The same in words.
    pub fn words(&self) -> String {
        let Self { asked, served, gap } = self;
        format!("{served} of {asked} honest requests served, {:.1} s without", gap.as_secs_f32())
    }
}

/// Reads nothing for as long as `patience`, and comes back where it was thrown out.
pub async fn run(unread: Unread, address: SocketAddr, patience: Duration) -> Result<Honest> {
    let mut honest = Honest::default();
    let flood = tokio::spawn(hold(unread, address));
    let asked = timeout(patience, ask_on(address, &mut honest)).await;
    flood.abort();
    match asked {
        Ok(never) => match never {},
        Err(_) => Ok(honest),
    }
}

async fn hold(unread: Unread, address: SocketAddr) -> Result<Infallible> {
    let opening = unread.opening();
    let mut held: Vec<TcpStream> = Vec::new();
    let mut ticks = interval(Duration::from_secs(3));
    loop {
        ticks.tick().await;
        let open = all_established(address.port())?;
        held.retain(|stream| stream.local_addr().is_ok_and(|own| open.contains(&own.port())));
        for _ in held.len()..unread.connections() {
            let socket = TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(4096)?;
            // One that is turned away comes back a little later.
            if let Ok(Ok(mut stream)) = timeout(CONNECT, socket.connect(address)).await {
                let _ = timeout(CONNECT, stream.write_all(&opening)).await;
                held.push(stream);
            }
        }
    }
}

/// Asks again and again, and notes how that goes.
pub(super) async fn ask_on(address: SocketAddr, honest: &mut Honest) -> Infallible {
    let mut ticks = interval(Duration::from_secs(1) / PER_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last = Instant::now();
    loop {
        ticks.tick().await;
        let asked = timeout(Duration::from_secs(5), ask(address)).await;
        honest.asked += 1;
        honest.gap = honest.gap.max(last.elapsed());
        if matches!(asked, Ok(Ok(true))) {
            honest.served += 1;
            last = Instant::now();
        }
    }
}

async fn ask(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {HONEST} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200 "))
}
