//! Attacks by amount: many cheap HTTP/2 frames, and peers that are slow on purpose.

mod frames;
pub mod slow;
pub mod unread;

use self::unread::Honest;
use crate::backend::{Backend, Event, Script};
use crate::h2::frame;
use crate::h2::{Connection, Ending, State};
use anyhow::Result;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, interval};

/// An HTTP/2 flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flood {
    /// Streams that the client resets at once.
    RapidReset,
    /// Streams that the client makes the server reset.
    MadeYouReset,
    /// A header block that never ends.
    Continuation,
    /// PING.
    Ping,
    /// Acknowledgements of PING that nobody asked for.
    PingAcknowledged,
    /// Requests of a client that hears no GOAWAY and acknowledges no PING.
    Deaf,
    /// Streams that are reset a moment after they were taken up.
    PacedReset,
    /// SETTINGS.
    Settings,
    /// WINDOW_UPDATE.
    WindowUpdate,
    /// PRIORITY.
    Priority,
    /// Content without content.
    EmptyData,
    /// A small block that decodes to a large one.
    HpackBomb,
    /// Streams whose answer is let out byte by byte.
    WindowStall,
    /// A header block that stops before its end.
    HeaderStops,
    /// A body that comes byte by byte.
    DataDrips,
}

/// How a flood went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which flood.
    pub flood: Flood,
    /// Units sent when the end was noticed.
    pub sent: usize,
    /// How the connection ended.
    pub ending: Option<Ending>,
    /// When.
    pub elapsed: Duration,
    /// Requests that reached the upstream.
    pub forwarded: usize,
    /// What came back.
    pub state: State,
    /// An honest client at the same time.
    pub honest: Honest,
}

/// More requests than this at the upstream is not bounded work: those of a connection, and what may come until the
/// client knows that they were the last.
const FORWARDED: usize = 1300;
/// Streams that may be given up one after the other.
const CANCELLED: usize = 400;
/// Units sent between two looks at what came back.
const BATCH: usize = 20;
/// Streams of a window stall.
const STALLED: u32 = 100;

impl Flood {
    /// Slow on purpose; watched with short time-outs.
    pub const SLOW: [Self; 2] = [Self::HeaderStops, Self::DataDrips];

    /// Many at once.
    pub const FAST: [Self; 12] = [
        Self::RapidReset,
        Self::MadeYouReset,
        Self::Continuation,
        Self::Ping,
        Self::PingAcknowledged,
        Self::Deaf,
        Self::PacedReset,
        Self::Settings,
        Self::WindowUpdate,
        Self::Priority,
        Self::EmptyData,
        Self::HpackBomb,
    ];

    /// What is sent, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::RapidReset => "HEADERS and RST_STREAM",
            Self::MadeYouReset => "HEADERS and WINDOW_UPDATE that overflows",
            Self::Continuation => "CONTINUATION",
            Self::Ping => "PING",
            Self::PingAcknowledged => "PING acknowledged without being asked",
            Self::Deaf => "requests past GOAWAY, PING unacknowledged",
            Self::PacedReset => "HEADERS, RST_STREAM 20 ms later",
            Self::Settings => "SETTINGS",
            Self::WindowUpdate => "WINDOW_UPDATE",
            Self::Priority => "PRIORITY",
            Self::EmptyData => "empty DATA",
            Self::HpackBomb => "HPACK: one 4 KB entry, 16000 references",
            Self::WindowStall => "100 streams, windows opened 1 byte at a time",
            Self::HeaderStops => "HTTP/2 header that stops",
            Self::DataDrips => "HTTP/2 body, 1 byte every 0.2 s",
        }
    }
}

impl Outcome {
    /// Whether it ended in time, with bounded work.
    pub fn ok(&self) -> bool {
        self.forwarded <= FORWARDED
            && self.honest.ok()
            && match self.flood {
                Flood::PacedReset => self.ending.is_some() && self.sent <= CANCELLED,
                // Streams that are refused cost nothing; the connection ends once it is silent.
                Flood::Deaf => self.ending.is_some(),
                Flood::HpackBomb => {
                    self.forwarded == 0 && (self.ending.is_some() || self.refused())
                }
                Flood::WindowStall => {
                    self.ending.is_some() || self.state.resets.len() == STALLED as usize
                }
                Flood::DataDrips | Flood::HeaderStops => self.ending.is_some() || self.refused(),
                _ => self.ending.is_some(),
            }
    }

    fn refused(&self) -> bool {
        self.state.resets.contains_key(&1) || matches!(self.state.statuses.get(&1), Some(400..=499))
    }

    /// What ended it, in words.
    pub fn words(&self) -> String {
        let resets = self.state.resets.len();
        let status = self.state.statuses.values().next();
        let end = match (&self.ending, status) {
            (Some(Ending::GoAway(code)), _) => format!("GOAWAY {}", frame::error_name(*code)),
            (Some(Ending::Closed), _) => "closed".to_owned(),
            (Some(Ending::Reset(_)) | None, _) if resets > 0 => format!("{resets} streams reset"),
            (_, Some(status)) if matches!(self.flood, Flood::HpackBomb | Flood::DataDrips) => {
                format!("answered {status}")
            }
            _ => "survived".to_owned(),
        };
        let seconds = self.elapsed.as_secs_f32();
        let Honest { asked, served, .. } = self.honest;
        format!(
            "{end} after {} sent, {seconds:.1} s, {} forwarded, honest {served}/{asked}",
            self.sent, self.forwarded
        )
    }
}

/// Runs a flood of `count` units; slow ones are watched for `patience`.
pub async fn run(
    flood: Flood,
    count: usize,
    (https, http): (SocketAddr, SocketAddr),
    backend: &Backend,
    patience: Duration,
) -> Result<Outcome> {
    backend.begin(Script::Answer);
    let start = Instant::now();
    let attack = async {
        match flood {
            Flood::WindowStall => stall(https, patience).await,
            Flood::HeaderStops | Flood::DataDrips => drip(flood, https, patience).await,
            Flood::PacedReset => paced(count, https).await,
            _ => flow(flood, count, https).await,
        }
    };
    let mut honest = Honest::default();
    let beside = unread::ask_on(http, &mut honest);
    let (sent, state) = tokio::select! {
        attacked = attack => attacked?,
        never = beside => match never {},
    };
    let elapsed = start.elapsed();
    let whole = |seen: &&crate::backend::Seen| matches!(&seen.event, Event::Whole(request) if request.target != unread::HONEST.as_bytes());
    let forwarded = backend.seen().iter().filter(whole).count();
    Ok(Outcome { flood, sent, ending: state.ending(), elapsed, forwarded, state, honest })
}

/// A connection whose SETTINGS are acknowledged on both sides: an acknowledgement in the middle of a header block would
/// be an error of its own.
async fn settled(address: SocketAddr, settings: &[(u16, u32)]) -> Result<Connection> {
    let connection = Connection::open(address, settings, true).await?;
    connection.wait(Duration::from_secs(1), |state| state.acknowledged).await;
    connection.wait(Duration::from_millis(50), |_| false).await;
    Ok(connection)
}

async fn flow(flood: Flood, count: usize, address: SocketAddr) -> Result<(usize, State)> {
    let mut connection = settled(address, &[]).await?;
    if flood == Flood::Deaf {
        connection.acknowledge_no_ping();
    }
    let (opening, count) = match flood {
        Flood::HpackBomb => (frames::bomb(), 0),
        _ => (frames::opening(flood), count),
    };
    let mut sent = 0;
    let mut open = connection.send(&opening).await.is_ok();
    // The first GOAWAY is not the end for one that does not hear.
    let ended = |state: &State| match flood {
        Flood::Deaf => state.closed,
        _ => state.ending().is_some(),
    };
    while open && sent < count && !ended(&connection.state()) {
        let batch: Vec<u8> =
            (sent..count.min(sent + BATCH)).flat_map(|n| frames::unit(flood, n)).collect();
        open = connection.send(&batch).await.is_ok();
        sent = count.min(sent + BATCH);
        // Lets what came back be noticed, so that the number of units until the end is near the truth.
        match flood {
            // Answered one batch after the other, as if nothing had been said.
            Flood::Deaf => {
                let done = |state: &State| state.statuses.len() + state.resets.len() >= sent;
                connection.wait(Duration::from_secs(2), |state| done(state) || ended(state)).await
            }
            _ => connection.wait(Duration::from_millis(1), ended).await,
        };
    }
    let bomb = flood == Flood::HpackBomb;
    let over = |state: &State| {
        ended(state) || bomb && !(state.statuses.is_empty() && state.resets.is_empty())
    };
    let longest = if flood == Flood::Deaf { 10 } else { 3 };
    Ok((sent, connection.wait(Duration::from_secs(longest), over).await))
}

/// Gives up streams that cannot end, since their windows are closed.
async fn paced(count: usize, address: SocketAddr) -> Result<(usize, State)> {
    let connection = settled(address, &[(4, 0)]).await?;
    let over = |state: &State| state.ending().is_some();
    let mut sent = 0;
    while sent < count && !over(&connection.state()) {
        if connection.send(&frames::unit(Flood::PacedReset, sent)).await.is_err() {
            break;
        }
        connection.wait(Duration::from_millis(20), over).await;
        if connection.send(&frames::cancel(sent)).await.is_err() {
            break;
        }
        sent += 1;
    }
    Ok((sent, connection.wait(Duration::from_secs(3), over).await))
}

async fn stall(address: SocketAddr, patience: Duration) -> Result<(usize, State)> {
    // Setting 4: the initial window of each stream.
    let connection = Connection::open(address, &[(4, 0)], false).await?;
    let mut requests = Vec::new();
    for n in 0..STALLED {
        requests.extend(frames::get(2 * n + 1, "/bytes/65536"));
    }
    let mut open = connection.send(&requests).await.is_ok();
    let over = |state: &State| state.ending().is_some() || state.resets.len() == STALLED as usize;
    let (start, mut sent) = (Instant::now(), 0);
    let mut drips = interval(Duration::from_secs(1));
    while open && start.elapsed() < patience && !over(&connection.state()) {
        drips.tick().await;
        let gone = connection.state().resets;
        let streams = (0..STALLED).map(|n| 2 * n + 1).filter(|stream| !gone.contains_key(stream));
        let drip: Vec<u8> = streams.flat_map(|stream| frames::window(stream, 1)).collect();
        sent += drip.len() / frames::window(1, 1).len();
        open = connection.send(&drip).await.is_ok();
    }
    Ok((sent, connection.wait(Duration::from_millis(200), over).await))
}

/// Sends the opening, then a unit every 0.2 s if there are any.
async fn drip(flood: Flood, address: SocketAddr, patience: Duration) -> Result<(usize, State)> {
    let connection = settled(address, &[]).await?;
    let mut open = connection.send(&frames::opening(flood)).await.is_ok();
    let over = |state: &State| {
        state.ending().is_some() || !state.resets.is_empty() || !state.statuses.is_empty()
    };
    let (start, mut sent) = (Instant::now(), 0);
    let mut drips = interval(Duration::from_millis(200));
    while open && start.elapsed() < patience && !over(&connection.state()) {
        drips.tick().await;
        open = connection.send(&frames::unit(flood, sent)).await.is_ok();
        sent += 1;
    }
    Ok((sent, connection.wait(Duration::from_millis(200), over).await))
}
