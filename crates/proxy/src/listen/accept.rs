//! Accepts connections and finds out what they speak.

use super::{Sockets, carried, passthrough};
use crate::connection::Connection;
use crate::generation::{Generation, Onward};
use crate::load::Refusal;
use crate::worker::{Admission, Entry, Expected, Worker};
use crate::{http1, http2};
use bytes::BytesMut;
use futures_util::future::{Either, FutureExt, OptionFuture};
use socket2::Socket;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use stream::proxy_protocol::{self, Announced};
use system::sockets;
use tls::TlsSession;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::http1::Client;
use wire::http2::starts_http2;
use wire::lane::{self, Lane, Owner};
use wire::{Io, ServerTls, Timer};

/// Connections accepted at once: where a turn of the event loop is long, who knocks behind others waits for few turns.
const AT_ONCE: usize = 8;

/// What connections to a socket find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// HTTP of the process itself, or of a snippet.
    Http,
    /// HTTPS of the process itself.
    Https,
    /// Listeners of a Gateway, and nobody else: where these are, and by which port clients know them.
    Gateway { tls: bool, door: SocketAddr, port: u16 },
}

impl Entrance {
    fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::Gateway { tls: true, .. })
    }

    /// Where the listeners of a Gateway are, and by which port clients know them.
    fn gateway(self) -> Option<(SocketAddr, u16)> {
        match self {
            Self::Gateway { door, port, .. } => Some((door, port)),
            Self::Http | Self::Https => None,
        }
    }

    fn door(self) -> Option<SocketAddr> {
        self.gateway().map(|(door, _)| door)
    }
}

/// The listeners of a thread at work.
#[derive(Debug)]
pub(crate) struct Accepting {
    stop: watch::Sender<bool>,
    loops: JoinSet<()>,
}

impl Accepting {
    /// Takes what already waits, then closes the listeners.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.loops.join_next().await.is_some() {}
    }
}

/// Starts accepting on all sockets of a thread.
pub(crate) fn accept(worker: &Rc<Worker>, sockets: Sockets) -> Accepting {
    accept_all(worker, vec![(sockets.http, Entrance::Http), (sockets.https, Entrance::Https)])
}

/// The same for any sockets.
pub(super) fn accept_all(worker: &Rc<Worker>, kinds: Vec<(Vec<Socket>, Entrance)>) -> Accepting {
    let (stop, stopped) = watch::channel(false);
    let mut loops = JoinSet::new();
    for (sockets, entrance) in kinds {
        for listener in Sockets::listeners(sockets) {
            loops.spawn_local(accept_on(listener, entrance, worker.clone(), stopped.clone()));
        }
    }
    Accepting { stop, loops }
}

async fn accept_on(
    listener: TcpListener,
    entrance: Entrance,
    worker: Rc<Worker>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut taken = 0;
    loop {
        let (tcp, peer) = tokio::select! {
            accepted = sockets::accept(&listener, |error| worker.accept_failed(error)) => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        begin(tcp, peer, entrance, &worker);
        taken += 1;
        if taken == AT_ONCE {
            taken = 0;
            // Whoever is connected already goes first, and what came for them meanwhile is heard: however many knock at
            // once, others wait for few of them.
            tokio::task::yield_now().await;
        }
    }
    // The event loop may not have heard yet of connections that stand already: the system is asked itself.
    let Ok(listener) = listener.into_std() else { return };
    loop {
        match listener.accept() {
            Ok((tcp, peer)) => {
                let tcp = tcp.set_nonblocking(true).and_then(|()| TcpStream::from_std(tcp));
                tcp.into_iter().for_each(|tcp| begin(tcp, peer, entrance, &worker));
            }
            // About one connection, not about the others.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => return,
        }
    }
}

fn begin(tcp: TcpStream, peer: SocketAddr, entrance: Entrance, worker: &Rc<Worker>) {
    let serial = worker.next_serial();
    // Who speaks HTTP at once is in the books at once.
    let waits = entrance.is_tls() || worker.generation().may_announce();
    let from = waits.then(|| peer.ip());
    let admitted = worker.admits(&tcp, peer.ip());
    let admitted = admitted.and_then(|how| Some((how, worker.expect(serial, peer, from)?)));
    if let Some(tally) = worker.tally(&worker.generation()) {
        tally.accepted(admitted.is_some());
    }
    let Some((admission, young)) = admitted else { return };
    let opening = open(tcp, entrance, worker.clone(), admission, young);
    let opening = Box::pin(async move {
        opening.await.unwrap_or_else(|error| {
            tracing::debug!(%peer, %error, "a connection ended before its first request");
            None
        })
    });
    let lane = Lane::of_newcomer(peer.ip());
    let task = tokio::task::spawn_local(lane::in_turn_of(lane, converse(opening)));
    worker.served_by(serial, task.abort_handle());
}

/// What a connection speaks, once its client has said so.
enum Spoken {
    Http1(Rc<Client>),
    Http2(Io),
}

/// It has begun, and has its place in the books.
struct Open {
    spoken: Spoken,
    entry: Entry,
}

impl Open {
    fn serve(self) -> Either<impl Future<Output = ()>, impl Future<Output = ()>> {
        match self.spoken {
            Spoken::Http1(client) => Either::Left(http1::serve(client, self.entry)),
            Spoken::Http2(io) => Either::Right(Box::pin(http2::serve(io, self.entry))),
        }
    }
}

/// A connection from its first byte to its last. How it begins is boxed: while it waits for requests it holds no room
/// for that. No async function, which would hold on to what it has used up.
fn converse(
    opening: Pin<Box<impl Future<Output = Option<Open>>>>,
) -> impl Future<Output = Option<()>> {
    opening.then(|open| OptionFuture::from(open.map(Open::serve)))
}

/// Finds out what a connection speaks; none if it has ended, or was carried on to its end.
async fn open(
    mut tcp: TcpStream,
    entrance: Entrance,
    worker: Rc<Worker>,
    admission: Admission,
    young: Expected,
) -> io::Result<Option<Open>> {
    tcp.set_nodelay(true)?;
    let Expected { peer, serial, .. } = young;
    let local = tcp.local_addr()?;
    let generation = worker.generation();
    let announced = announced(&mut tcp, local.port(), &generation, &worker).await?;
    let is_believed = generation.global().real_ip.trusts(peer.ip());
    let believed = announced.filter(|_| is_believed);
    if believed.is_some_and(|believed| !young.comes_from(believed.source.ip())) {
        return Ok(None);
    }
    let make = |session| {
        let mut connection = Connection::new(serial, peer, local, announced, session);
        if let Admission::Guest(guest) = admission {
            connection.let_in(guest);
        }
        connection.is_believed = is_believed;
        connection.enter(entrance.gateway());
        Rc::new(connection)
    };
    if !entrance.is_tls() {
        let connection = make(None);
        let entry = worker.enter(&connection);
        drop(young);
        return Ok(plain(Io::Plain(tcp), entry).await);
    }
    let limit = generation.global().limits.header_timeout;
    let door = entrance.door().and_then(|door| generation.doors.get(&door));
    if let Some(door) = door.filter(|door| door.speaks.is_carried()) {
        let carrying = carried::accept(tcp, door, limit, |total| worker.numbers.below(total));
        // Whoever is not wanted sees a connection that ends, and no alert.
        let Some((client, onward)) = Box::pin(carrying).await? else { return Ok(None) };
        drop(generation);
        return Box::pin(carry_on(client, &onward, make(None), &worker, young)).await;
    }
    if !tokio::time::timeout(limit, begins_tls(&tcp)).await?? {
        drop(generation);
        let connection = make(None);
        let _entry = worker.enter(&connection);
        drop(young);
        Box::pin(http1::refuse_plain(Io::Plain(tcp), connection, &worker)).await;
        return Ok(None);
    }
    if entrance.door().is_none()
        && !generation.passthrough.is_empty()
        && let Some(onward) = Box::pin(passthrough::wished(&tcp, &generation)).await?
    {
        drop(generation);
        return Box::pin(carry_on(Io::Plain(tcp), &onward, make(None), &worker, young)).await;
    }
    let handshake = Box::pin(shake_hands(tcp, entrance, &generation));
    let accepted = tokio::time::timeout(limit, handshake).await??;
    let Some((stream, session)) = accepted else { return Ok(None) };
    let connection = make(Some(session));
    let entry = worker.enter(&connection);
    let is_http2 = stream.agreed().alpn_protocol() == Some(b"h2");
    let io = Io::Accepted(Box::new(stream));
    let spoken = if is_http2 {
        Spoken::Http2(io)
    } else {
        Spoken::Http1(http1(io, BytesMut::new(), &connection))
    };
    Ok(Some(Open { spoken, entry }))
}

/// A connection that goes on to an upstream, whatever is in it.
async fn carry_on(
    client: Io,
    onward: &Onward,
    connection: Rc<Connection>,
    worker: &Rc<Worker>,
    young: Expected,
) -> io::Result<Option<Open>> {
    let _entry = worker.enter(&connection);
    drop(young);
    if let Some(shadow) = worker.listen.shadow() {
        // A copy goes to nobody; its connection just ends.
        shadow.carried(onward.group.id.as_str());
        return Ok(None);
    }
    let _working = worker.tally(&worker.generation()).map(|_| connection.work());
    let group = Arc::as_ptr(&onward.group).addr();
    lane::take(Lane::of(Owner::CARRIED, group));
    // Where memory is short it is asked whose they are.
    connection.lane.set(Lane::of(Owner::named(&onward.namespace), group));
    passthrough::pass(client, &connection, worker, onward).await.map(|()| None)
}

/// What the PROXY protocol header of a connection says, if it begins with one.
async fn announced(
    tcp: &mut TcpStream,
    port: u16,
    generation: &Generation,
    worker: &Worker,
) -> io::Result<Option<Announced>> {
    let main = [worker.listen.http_port, worker.listen.https_port];
    if !generation.is_announced(port, main) {
        return Ok(None);
    }
    let limit = generation.global().limits.proxy_protocol_timeout;
    let taken = tokio::time::timeout(limit, proxy_protocol::take(tcp)).await?;
    // Whoever says nothing asks whether somebody listens, as load balancers do.
    if taken.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData)
        && let Ok(peer) = tcp.peer_addr()
    {
        worker.refused(Refusal::Announcement, peer.ip());
    }
    taken
}

/// The handshake of the process's own listeners, or of a Gateway's; none if nobody has the name, or the listener is
/// gone.
async fn shake_hands(
    tcp: TcpStream,
    entrance: Entrance,
    generation: &Generation,
) -> io::Result<Option<(ServerTls, TlsSession)>> {
    let Some(door) = entrance.door() else {
        return generation.front.accept(tcp, generation).await;
    };
    match generation.doors.get(&door).and_then(|door| door.tls.as_ref()) {
        Some(tls) => tls.accept(tcp).await.map(Some),
        None => Ok(None),
    }
}

/// Whether a connection begins with a handshake (nginx: ngx_http_ssl_handshake); the end of one is for who reads it.
async fn begins_tls(tcp: &TcpStream) -> io::Result<bool> {
    const HANDSHAKE: u8 = 22;
    let mut first = [HANDSHAKE];
    tcp.peek(&mut first).await?;
    // The upper half is how SSL 2 begins: its clients know what an alert is.
    Ok(first[0] == HANDSHAKE || first[0] >= 0x80)
}

/// HTTP in clear: its first bytes tell the version (prior knowledge, RFC 9113 section 3.3).
async fn plain(mut io: Io, entry: Entry) -> Option<Open> {
    let mut buffer = BytesMut::new();
    let Entry { worker, connection } = &entry;
    let limit = worker.generation().global().limits.header_timeout;
    let may_be_http2 = worker.generation().global().http2;
    let (timer, mut begun) = (Timer::new(limit), None);
    let verdict = timer.within(
        limit,
        poll_fn(|cx| {
            loop {
                if let Some(verdict) = starts_http2(&buffer).filter(|_| !buffer.is_empty()) {
                    return Poll::Ready(Some(verdict));
                }
                match io.poll_read_head(cx, &mut buffer) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(None),
                    Poll::Ready(Ok(_)) => drop(begun.get_or_insert_with(wire::now)),
                    Poll::Pending => {
                        let control = &connection.control;
                        // What has begun is looked at as any other head.
                        control
                            .unfinished
                            .set(control.unfinished.get().max(u8::from(!buffer.is_empty())));
                        let ends =
                            control.poll_cut(cx) || (buffer.is_empty() && control.poll_closing(cx));
                        return if ends { Poll::Ready(None) } else { Poll::Pending };
                    }
                }
            }
        }),
    );
    // A preface that never came to its end is no request either, and has had the time of a head.
    let Ok(Some(is_http2)) = verdict.await else { return None };
    let spoken = if is_http2 && may_be_http2 {
        Spoken::Http2(Io::Rewound(buffer, Box::new(io)))
    } else {
        let client = http1(io, buffer, connection);
        // Its first bytes have taken some of the time of the head.
        begun
            .into_iter()
            .for_each(|begun| client.has_left(limit.saturating_sub(wire::since(begun))));
        Spoken::Http1(client)
    };
    Some(Open { spoken, entry })
}

fn http1(io: Io, buffer: BytesMut, connection: &Connection) -> Rc<Client> {
    Rc::new(Client::new(io, buffer, connection.control.clone()))
}
