//! Places for connections that somebody else accepts and carries on: of the same kind as those of TCP services, and
//! apart from them.

use crate::pipe::{Patience, pipe};
use crate::room::{Place, Room};
use crate::shares::Holder;
use crate::traffic::Counted;
use model::{StreamPort, Transport};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Places for connections, half of them at most for one namespace.
#[derive(Clone, Debug)]
pub struct Places(Arc<Room>);

/// One of them, until this is dropped or somebody else has it.
#[derive(Debug)]
pub struct Held(Place);

impl Places {
    /// So many.
    pub fn new(most: usize) -> Self {
        Self(Room::new(most))
    }

    /// A place for a client of a namespace that came in there: a free one, or that of the quietest one of whoever holds
    /// most. None if all who hold as much are busy for a while.
    pub async fn wait(&self, namespace: &Arc<str>, at: SocketAddr, client: IpAddr) -> Option<Held> {
        let address = Some(at.ip()).filter(|ip| !ip.is_unspecified());
        let port = StreamPort { transport: Transport::Tcp, number: at.port(), address };
        let place = self.0.wait(&Holder::new(namespace, port, client)).await?;
        // It has said hello.
        place.heard();
        Some(Held(place))
    }

    /// Places that are taken, all of them, and how often somebody got none or lost one to somebody else.
    pub fn in_use(&self) -> (usize, usize, u64) {
        self.0.in_use()
    }
}

impl Held {
    /// Returns once somebody else has it: whoever had it is to be ended.
    pub fn lost(&self) -> impl Future<Output = ()> + use<> {
        self.0.lost()
    }

    /// Carries bytes both ways, and notes that there were some: the quietest lose their places.
    pub async fn pipe(
        &self,
        mut client: impl AsyncRead + AsyncWrite + Unpin,
        upstream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        patience: Patience,
    ) -> io::Result<()> {
        let mut client = Counted::new(&mut client, None, &self.0);
        pipe(&mut client, upstream, patience).await
    }
}
