//! A name server on a loopback port, which says what a test wants it to say, or nothing (RFC 1035 section 4.1).

use hickory_resolver::{
    TokioResolver,
    config::{LookupIpStrategy, NameServerConfig, ResolverConfig},
    net::runtime::TokioRuntimeProvider,
    proto::rr::Name,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{net::UdpSocket, sync::Notify, task::JoinSet};

/// The search domain of [`NameServer::resolver`].
const SEARCH: &str = "example.";

/// Numbers of RFC 1035 section 3.2.2 and RFC 3596.
const A: u16 = 1;
const AAAA: u16 = 28;

/// What becomes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// The name has these addresses, for so many seconds.
    Addresses(Vec<IpAddr>, u8),
    /// There is no such name: what is said of names that nothing was said about.
    Unknown,
    /// No answer, as from a server that is slow or down, until something else is said.
    Nothing,
}

/// A running name server; it ends when this is dropped.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    book: Arc<Mutex<Book>>,
    spoken: Arc<Notify>,
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Book {
    says: BTreeMap<String, Says>,
    /// Questions of each name.
    asked: BTreeMap<String, usize>,
}

impl NameServer {
    /// Starts one that knows no name.
    ///
    /// # Panics
    /// When the machine has no port left.
    pub async fn start() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let address = socket.local_addr().expect("a bound socket has an address");
        let book = Arc::new(Mutex::new(Book::default()));
        let mut task = JoinSet::new();
        let spoken = Arc::new(Notify::new());
        task.spawn(serve(socket, book.clone(), spoken.clone()));
        Self { address, book, spoken, _task: task }
    }

    /// From now on this is what is said of a name, which has all its labels and no dot at the end.
    pub fn says(&self, name: &str, says: Says) {
        self.book.lock().says.insert(name.to_owned(), says);
        self.spoken.notify_one();
    }

    /// How often a name was asked for.
    #[must_use]
    pub fn asked(&self, name: &str) -> usize {
        self.book.lock().asked.get(name).copied().unwrap_or_default()
    }

    /// A resolver that asks this server only, with the search domain `example`, and waits for an answer as long as
    /// `patience`.
    ///
    /// # Panics
    /// When the resolver cannot be made, which only an invalid configuration could lead to.
    #[must_use]
    pub fn resolver(&self, patience: Duration) -> TokioResolver {
        let mut server = NameServerConfig::udp(self.address.ip());
        for connection in &mut server.connections {
            connection.port = self.address.port();
        }
        let search = vec![Name::from_ascii(SEARCH).expect("a name")];
        let config = ResolverConfig::from_parts(None, search, vec![server]);
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4thenIpv6;
        builder.options_mut().timeout = patience;
        builder.build().expect("the configuration is valid")
    }
}

async fn serve(socket: UdpSocket, book: Arc<Mutex<Book>>, spoken: Arc<Notify>) {
    // Questions without an answer yet, and who asked.
    let mut open: Vec<(Question, SocketAddr)> = Vec::new();
    let mut query = [0; 1500];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut query) => {
                let Ok((length, client)) = received else { return };
                let Some(question) = Question::of(&query[..length]) else { continue };
                let mut book = book.lock();
                *book.asked.entry(question.name.clone()).or_default() += 1;
                open.push((question, client));
            }
            () = spoken.notified() => {}
        }
        for (question, client) in std::mem::take(&mut open) {
            let says = {
                let book = book.lock();
                book.says.get(&question.name).cloned().unwrap_or(Says::Unknown)
            };
            match question.answer(says) {
                // A client that has gone needs no answer.
                Some(answer) => drop(socket.send_to(&answer, client).await),
                None => open.push((question, client)),
            }
        }
    }
}

/// What a client asks.
struct Question {
    id: [u8; 2],
    name: String,
    kind: u16,
    /// Name, kind and class as they came.
    section: Vec<u8>,
}

impl Question {
    fn of(query: &[u8]) -> Option<Self> {
        let (name, end) = name(query)?;
        let kind = u16::from_be_bytes([*query.get(end)?, *query.get(end + 1)?]);
        let section = query.get(12..end + 4)?.to_vec();
        Some(Self { id: [query[0], query[1]], name, kind, section })
    }

    /// The header, the question as it was asked, and the records.
    fn answer(&self, says: Says) -> Option<Vec<u8>> {
        let (code, records): (u8, Vec<Vec<u8>>) = match says {
            Says::Nothing => return None,
            Says::Unknown => (3, Vec::new()),
            Says::Addresses(addresses, ttl) => {
                let record = |address| record(self.kind, address, ttl);
                (0, addresses.into_iter().filter_map(record).collect())
            }
        };
        let count = u8::try_from(records.len()).expect("a test has few addresses");
        let mut answer = self.id.to_vec();
        answer.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
        answer.extend(&self.section);
        answer.extend(records.concat());
        Some(answer)
    }
}

/// The name of a question, and where it ends.
fn name(query: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*query.get(at)?);
        let label = query.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if label.is_empty() {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
    }
}

/// A record of the question's name, if the address is of the kind that was asked for.
fn record(kind: u16, address: IpAddr, ttl: u8) -> Option<Vec<u8>> {
    let (its_kind, octets) = match address {
        IpAddr::V4(address) => (A, address.octets().to_vec()),
        IpAddr::V6(address) => (AAAA, address.octets().to_vec()),
    };
    let mut record = vec![0xc0, 12];
    record.extend(its_kind.to_be_bytes());
    record.extend([0, 1, 0, 0, 0, ttl, 0, u8::try_from(octets.len()).ok()?]);
    record.extend(octets);
    (its_kind == kind).then_some(record)
}
