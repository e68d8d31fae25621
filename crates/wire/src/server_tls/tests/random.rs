//! However both ways are cut, read, written and closed, what arrives is what was sent.

use super::{Client, ServerTls, accept, configs, pattern, session};
use fastrand::Rng;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::version::{TLS12, TLS13};
use std::io::{ErrorKind, IoSlice, Read};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpSocket, TcpStream};

/// How often it is tried.
const SEEDS: u64 = 50;

/// Up to so many, mostly few; none is rare.
fn some(rng: &mut Rng, most: usize) -> usize {
    let most = 1 << rng.u32(0..=most.ilog2());
    rng.usize(0..=most)
}

/// What both sides send, and how the client does it.
struct Plan {
    rng: Rng,
    is_tls13: bool,
    /// Whether the client reads only once it has sent all.
    reads_late: bool,
    /// Bytes that go over the connection at once, at most.
    piece: usize,
    ups: Vec<u8>,
    downs: Vec<u8>,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let piece = some(&mut rng, 100_000).max(1);
        let most = (piece * 100).min(250_000);
        let [ups, downs] = [0; 2].map(|_| pattern(rng.usize(..=most)));
        Self { is_tls13: rng.bool(), reads_late: rng.bool(), piece, ups, downs, rng }
    }
}

/// A client that sends and reads as it comes.
struct Side<'p> {
    client: Client,
    plan: &'p mut Plan,
    sealed: usize,
    updates: u8,
    is_closed: bool,
    /// Records that are not sent.
    out: Vec<u8>,
    got: Vec<u8>,
}

impl Side<'_> {
    /// Makes records of more of what there is to send; a change of keys among them, or the end.
    fn seal(&mut self) {
        let rng = &mut self.plan.rng;
        if self.plan.is_tls13 && self.updates < 20 && !self.is_closed && rng.u8(..) < 50 {
            self.updates += 1;
            self.client.tls.refresh_traffic_keys().expect("it is TLS 1.3");
        } else if self.sealed < self.plan.ups.len() {
            let left = &self.plan.ups[self.sealed..];
            let part = &left[..some(rng, 40_000).min(left.len())];
            self.sealed += part.len();
            self.updates *= u8::from(part.is_empty());
            let records = self.client.sealed(part);
            self.out.extend(records);
        } else if !self.is_closed {
            self.is_closed = true;
            self.client.tls.send_close_notify();
        }
        self.out.extend(self.client.records());
    }

    /// Sends something of what there is.
    fn send(&mut self) {
        let piece = some(&mut self.plan.rng, self.plan.piece).min(self.out.len());
        let sent = self.client.tcp.try_write(&self.out[..piece]).unwrap_or(0);
        self.out.drain(..sent);
    }

    /// Reads something; whether the server has ended.
    fn take(&mut self) -> bool {
        let mut buffer = vec![0; some(&mut self.plan.rng, self.plan.piece).clamp(1, 4096)];
        let count = match self.client.tcp.try_read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            count => count.expect("it goes on"),
        };
        let (mut came, mut part) = (&buffer[..count], [0; 4096]);
        loop {
            self.client.tls.read_tls(&mut came).expect("there is room");
            self.client.tls.process_new_packets().expect("good records");
            while let Ok(more @ 1..) = self.client.tls.reader().read(&mut part) {
                self.got.extend_from_slice(&part[..more]);
            }
            if came.is_empty() {
                break;
            }
        }
        count == 0
    }

    async fn run(mut self) {
        let mut is_over = false;
        while !(is_over && self.is_closed && self.out.is_empty()) {
            if self.out.len() < 100_000 {
                self.seal();
            }
            self.send();
            if !self.plan.reads_late || (self.is_closed && self.out.is_empty()) {
                is_over = is_over || self.take();
            }
            tokio::task::yield_now().await;
        }
        assert!(self.got == self.plan.downs, "{} of {}", self.got.len(), self.plan.downs.len());
        let end = self.client.tls.reader().read(&mut [0]);
        assert_eq!(end.expect("it ended with a close_notify"), 0);
    }
}

/// Reads all in parts of any size, and some more.
async fn reads(mut tls: ReadHalf<ServerTls>, expected: Vec<u8>, mut rng: Rng) {
    let mut got = Vec::new();
    let most = some(&mut rng, 100_000).max(1 + expected.len() / 2000);
    loop {
        let mut part = vec![0; some(&mut rng, most).max(1)];
        let count = tls.read(&mut part).await.expect("it comes");
        got.extend_from_slice(&part[..count]);
        if count == 0 {
            break;
        }
        if rng.u8(..) == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert!(got == expected, "{} of {}", got.len(), expected.len());
    assert_eq!(tls.read(&mut [0]).await.expect("it has ended"), 0);
}

/// Writes all in parts of any size, and ends.
async fn writes(mut tls: WriteHalf<ServerTls>, all: Vec<u8>, mut rng: Rng) {
    let mut left = &all[..];
    while !left.is_empty() {
        let (part, _) = left.split_at(some(&mut rng, 150_000).min(left.len()));
        let (one, other) = part.split_at(some(&mut rng, part.len().max(1)).min(part.len()));
        let count = match rng.u8(..3) {
            0 => tls.write_vectored(&[one, &[], other].map(IoSlice::new)).await,
            1 => tls.write(one).await,
            _ => tls.flush().await.map(|()| 0),
        };
        left = &left[count.expect("it goes on")..];
    }
    tls.shutdown().await.expect("it ends");
}

/// Both ends of a TCP connection, the client's first; little fits between them.
async fn tight() -> (TcpStream, TcpStream) {
    let [listens, connects] = [0; 2].map(|_| TcpSocket::new_v4().expect("a socket"));
    listens.set_send_buffer_size(8 << 10).expect("a size");
    connects.set_recv_buffer_size(8 << 10).expect("a size");
    listens.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = listens.local_addr().expect("it has an address");
    let listener = listens.listen(1).expect("it listens");
    let client = connects.connect(address).await.expect("connects");
    let (server, _) = listener.accept().await.expect("is accepted");
    client.set_nodelay(true).expect("a socket");
    server.set_nodelay(true).expect("a socket");
    (client, server)
}

async fn goes_through(seed: u64) {
    let mut plan = Plan::new(seed);
    let version = if plan.is_tls13 { &TLS13 } else { &TLS12 };
    let (server, client) = configs(&[version], default_provider());
    let (near, far) = tight().await;
    let (ups, downs, rngs) =
        (plan.ups.clone(), plan.downs.clone(), [0; 2].map(|_| plan.rng.fork()));
    let serving = tokio::spawn(async move {
        let (read, write) = tokio::io::split(accept(far, server).await.expect("a handshake"));
        let [one, other] = rngs;
        tokio::join!(reads(read, ups, one), writes(write, downs, other));
    });
    let mut client = Client { tcp: near, tls: session(client), piece: plan.piece };
    let mut out = client.shake().await;
    let sealed = some(&mut plan.rng, plan.ups.len().max(1)).min(plan.ups.len()).min(50_000);
    out.extend(client.sealed(&plan.ups[..sealed]));
    let (updates, is_closed, got) = (0, false, Vec::new());
    Side { client, plan: &mut plan, sealed, updates, is_closed, out, got }.run().await;
    serving.await.expect("all of it came, and ended");
}

#[tokio::test]
async fn however_it_is_cut_what_arrives_is_what_was_sent() {
    for seed in 0..SEEDS {
        let limit = std::time::Duration::from_secs(20);
        let gone = tokio::time::timeout(limit, goes_through(seed)).await;
        assert!(gone.is_ok(), "it stands still with seed {seed}");
    }
}
