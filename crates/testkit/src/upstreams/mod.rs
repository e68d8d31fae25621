//! The fixture pods: servers that note every request exactly as it came over the wire.

mod auth;
mod echo;
mod errors;
mod fastcgi;
mod grpc;
mod http;
mod json;
mod lines;
mod tls;

use std::{io, net::SocketAddr, sync::Arc};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream, UdpSocket},
    task::JoinSet,
};

use crate::{
    certificates::Certificates,
    exchange::{Body, Seen, SeenTls},
    fixtures::{Kind, Places, pods},
    journal::Journal,
    wire::{Failure, Wire},
};

/// All fixtures, running until this is dropped.
pub struct Upstreams {
    /// What they saw.
    pub journal: Journal,
    /// Where they listen.
    pub places: Places,
    /// The tasks that accept connections.
    _tasks: JoinSet<()>,
    /// Ports that are held so that nobody listens there.
    _held: Vec<TcpSocket>,
}

impl Upstreams {
    /// Starts all fixtures at the given places; the system chooses where a port is 0.
    ///
    /// # Errors
    /// When an address cannot be bound.
    pub async fn start(certificates: &Certificates, mut places: Places) -> io::Result<Self> {
        let acceptor = Arc::new(tls::Acceptor::new(certificates));
        let (journal, mut tasks, mut held) = (Journal::default(), JoinSet::new(), Vec::new());
        for (service, (name, kind)) in pods() {
            let Some(place) = places.get_mut(name) else { continue };
            for port in place.ports.values_mut() {
                let tls = Arc::clone(&acceptor);
                let pod = Pod { service: service.name, name, kind, tls, journal: journal.clone() };
                let address = SocketAddr::new(place.address, *port);
                *port = pod.listen(address, &mut tasks, &mut held).await?.port();
            }
        }
        Ok(Self { journal, places, _tasks: tasks, _held: held })
    }

    /// Starts all fixtures on 127.0.0.1.
    ///
    /// # Errors
    /// When the machine has no ports left.
    pub async fn local() -> io::Result<Self> {
        Self::start(&Certificates::shared(), Places::local()).await
    }
}

/// One pod.
#[derive(Clone)]
struct Pod {
    service: &'static str,
    name: &'static str,
    kind: Kind,
    tls: Arc<tls::Acceptor>,
    journal: Journal,
}

impl Pod {
    /// Listens, and says where.
    async fn listen(
        self,
        address: SocketAddr,
        tasks: &mut JoinSet<()>,
        held: &mut Vec<TcpSocket>,
    ) -> io::Result<SocketAddr> {
        match self.kind {
            Kind::Nothing => {
                // A socket that is bound and does not listen refuses connections.
                let socket = TcpSocket::new_v4()?;
                socket.bind(address)?;
                let bound = socket.local_addr()?;
                held.push(socket);
                Ok(bound)
            }
            Kind::Udp => {
                let socket = UdpSocket::bind(address).await?;
                let bound = socket.local_addr()?;
                tasks.spawn(async move { lines::datagrams(&self, &socket).await });
                Ok(bound)
            }
            _ => {
                let listener = TcpListener::bind(address).await?;
                let bound = listener.local_addr()?;
                tasks.spawn(async move { self.accept(listener).await });
                Ok(bound)
            }
        }
    }

    async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let Ok((socket, _)) = listener.accept().await else { continue };
            let pod = self.clone();
            connections.spawn(async move {
                // Clients that break off or talk nonsense are part of the tests.
                let _ended = pod.serve(socket).await;
            });
            while connections.try_join_next().is_some() {}
        }
    }

    async fn serve(&self, socket: TcpStream) -> Result<(), Failure> {
        socket.set_nodelay(true)?;
        match self.kind {
            Kind::Https | Kind::Grpcs => {
                let protocol: &[u8] = if self.kind == Kind::Grpcs { b"h2" } else { b"http/1.1" };
                let (stream, seen) = self.tls.accept(socket, protocol).await?;
                let wire = Wire::new(stream, None);
                if self.kind == Kind::Grpcs {
                    grpc::serve(self, wire).await
                } else {
                    self.http(wire, Some(seen)).await
                }
            }
            Kind::Grpc => grpc::serve(self, Wire::new(socket, None)).await,
            Kind::FastCgi => fastcgi::serve(self, Wire::new(socket, None)).await,
            Kind::Tcp => lines::serve(self, Wire::new(socket, None)).await,
            _ => self.http(Wire::new(socket, None), None).await,
        }
    }

    async fn http(&self, mut wire: Wire, tls: Option<SeenTls>) -> Result<(), Failure> {
        loop {
            let request = http::Received::read(&mut wire).await?;
            let mut seen =
                self.saw(&request.protocol, &request.method, &request.uri, &request.body);
            seen.headers = Some(request.headers.clone());
            let more = match self.kind {
                Kind::Auth => {
                    self.journal.note(seen);
                    wire.send(&auth::answer(&request).await?.bytes(&request.method)?).await?;
                    true
                }
                Kind::Errors => {
                    self.journal.note(seen);
                    wire.send(&errors::answer(&request).bytes(&request.method)?).await?;
                    true
                }
                _ => {
                    seen.trailers.clone_from(&request.trailers);
                    seen.tls.clone_from(&tls);
                    self.journal.note(seen.clone());
                    echo::serve(self.name, &mut wire, &request, &seen).await?
                }
            };
            if !more {
                return Ok(());
            }
        }
    }

    /// The start of a note about a request.
    fn saw(&self, protocol: &str, method: &str, uri: &str, body: &[u8]) -> Seen {
        Seen {
            method: Some(method.to_owned()),
            uri: Some(uri.to_owned()),
            ..self.saw_bytes(protocol, body)
        }
    }

    /// A note about bytes that are no request.
    fn saw_bytes(&self, protocol: &str, body: &[u8]) -> Seen {
        Seen {
            service: self.service.to_owned(),
            pod: self.name.to_owned(),
            protocol: protocol.to_owned(),
            body: Some(Body::of(body)),
            ..Seen::default()
        }
    }
}
