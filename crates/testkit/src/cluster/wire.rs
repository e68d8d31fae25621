//! A relay in front of the API server that can be cut, made silent and opened again.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the relay does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    /// Everything passes.
    Open,
    /// Every connection is reset, and every new one too.
    Down,
    /// Nothing passes and nobody is told: connections stay, new ones are taken and hear nothing.
    Silent,
}

/// Says how the relay stands; `cuts` counts the moments at which all connections had to end, `lapses` those at which
/// all were forgotten.
#[derive(Clone, Copy, Debug)]
struct State {
    weather: Weather,
    cuts: u64,
    lapses: u64,
    /// Bytes from the server that a connection may still pass after the latest cut.
    spare: usize,
}

/// What became of the connections.
#[derive(Debug, Default)]
struct Seen {
    open: AtomicUsize,
    broken: AtomicUsize,
}

/// The relay; it ends when this is dropped.
#[derive(Debug)]
pub struct Wire {
    port: u16,
    state: watch::Sender<State>,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

impl Wire {
    /// Starts a relay on a free port of loopback to `server`.
    pub(super) async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("bind a relay")?;
        let port = listener.local_addr().context("ask for the relay's port")?.port();
        let (state, states) =
            watch::channel(State { weather: Weather::Open, cuts: 0, lapses: 0, spare: 0 });
        let seen = Arc::new(Seen::default());
        let accepting = tokio::spawn(accept(listener, server, states, Arc::clone(&seen)));
        Ok(Self { port, state, seen, accepting })
    }

    /// The port on loopback where the API server appears.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections through the relay at this moment.
    pub fn connections(&self) -> usize {
        self.seen.open.load(Ordering::Relaxed)
    }

    /// Connections that the relay itself has broken up to now.
    pub fn broken(&self) -> usize {
        self.seen.broken.load(Ordering::Relaxed)
    }

    /// Resets every connection that is open now; new ones pass.
    pub fn cut(&self) {
        self.cut_within(0);
    }

    /// As [`Wire::cut`], but each connection first passes so many more bytes from the server: it breaks in mid-message.
    pub fn cut_within(&self, bytes: usize) {
        self.state.send_modify(|state| {
            state.cuts += 1;
            state.spare = bytes;
        });
    }

    /// Makes the API server unreachable: connections are reset, also new ones.
    pub fn down(&self) {
        self.weather(Weather::Down);
        // So that no connection lives on when `up` follows at once.
        self.cut();
    }

    /// Makes the API server unreachable without anybody being told.
    pub fn silence(&self) {
        self.weather(Weather::Silent);
    }

    /// Forgets all connections, as a balancer does that fails over: nobody is told, they stay and nothing passes over
    /// them ever again. New ones pass.
    pub fn forget(&self) {
        self.state.send_modify(|state| state.lapses += 1);
    }

    /// Ends [`Wire::down`] and [`Wire::silence`]; what was held back by the silence passes now.
    pub fn up(&self) {
        self.weather(Weather::Open);
    }

    fn weather(&self, weather: Weather) {
        self.state.send_modify(|state| state.weather = weather);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
        self.down();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    state: watch::Receiver<State>,
    seen: Arc<Seen>,
) {
    // An error of accept is about one connection, or about open files, which will be fewer later.
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let (state, seen) = (state.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    seen.open.fetch_add(1, Ordering::Relaxed);
                    let broken = relay(client, server, state).await;
                    seen.broken.fetch_add(usize::from(broken), Ordering::Relaxed);
                    seen.open.fetch_sub(1, Ordering::Relaxed);
                });
            }
            #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Carries one connection until an end, a cut or bad weather; then both sides are reset. Says whether it was
/// broken here.
async fn relay(client: TcpStream, server: SocketAddr, state: watch::Receiver<State>) -> bool {
    reset_on_drop(&client);
    let (weather, born) = {
        let now = state.borrow();
        (now.weather, now.cuts)
    };
    if weather == Weather::Down {
        return true;
    }
    let Ok(upstream) = TcpStream::connect(server).await else { return false };
    reset_on_drop(&upstream);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    tokio::select! {
        () = carry(from_client, to_server, state.clone()) => false,
        broken = carry_answers(from_server, to_client, state.clone(), born) => broken,
        () = cut(state, born) => true,
    }
}

fn reset_on_drop(stream: &TcpStream) {
    // Either fails only on a connection that is already gone.
    let _ = stream.set_zero_linger();
    let _ = stream.set_nodelay(true);
}

/// Ends when the connection born after `born` cuts has to end at once.
async fn cut(mut state: watch::Receiver<State>, born: u64) {
    let over = |now: &State| now.weather == Weather::Down || (now.cuts > born && now.spare == 0);
    // An error means that the relay itself is gone: an end too.
    let _ = state.wait_for(over).await;
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) {
    let (mut buffer, lapses) = (vec![0; 16 * 1024], state.borrow().lapses);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if !passes(&mut state, lapses).await || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// As `carry`, but stops in mid-message after a cut that spares some bytes; says whether that was why it ended.
async fn carry_answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    born: u64,
) -> bool {
    let (mut buffer, lapses) = (vec![0; 16 * 1024], state.borrow().lapses);
    let mut spared = 0;
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if !passes(&mut state, lapses).await {
            return false;
        }
        let now = *state.borrow();
        let last = now.cuts > born && spared + count >= now.spare;
        let count = if last { now.spare.saturating_sub(spared) } else { count };
        if to.write_all(&buffer[..count]).await.is_err() || last {
            return last;
        }
        if now.cuts > born {
            spared += count;
        }
    }
    false
}

/// Waits for the end of a silence, which has none for a connection that was forgotten since; false when the relay is
/// gone.
async fn passes(state: &mut watch::Receiver<State>, lapses: u64) -> bool {
    let passes = |now: &State| now.weather != Weather::Silent && now.lapses == lapses;
    state.wait_for(passes).await.is_ok()
}
