//! Places for connections that somebody else accepts and carries on: of the same kind as those of TCP services, and
//! apart from them.

use crate::holders::Holder;
use crate::pipe::{pipe, pipe_until_over};
use crate::room::{Place, Room};
use crate::traffic::Counted;
use model::{StreamPort, Transport};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// How long nothing may move before a connection ends; none: for ever, while the endpoint has not ended it.
pub type Patience = Option<Duration>;

/// How long a client may stay that takes nothing once its endpoint has ended, where it may be silent for ever else.
const LINGER: Duration = Duration::from_secs(30);

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
        match patience {
            Some(idle) => pipe(&mut client, upstream, (idle, &self.0)).await,
            None => pipe_until_over(&mut client, upstream, LINGER).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINGER, Places};
    use std::io::ErrorKind;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, timeout};

    #[tokio::test(start_paused = true)]
    async fn who_may_be_silent_for_ever_is_ended_once_its_endpoint_has_ended() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 443));
        let held = Places::new(8).wait(&"one".into(), at, at.ip()).await.expect("a place");
        let ((mut client, near), (mut far, mut endpoint)) = (duplex(64), duplex(64));
        let (begin, hour) = (Instant::now(), Duration::from_secs(3600));
        let piping = tokio::spawn(async move {
            timeout(3 * hour, held.pipe(near, &mut far, None)).await.expect("it ends")
        });
        tokio::task::yield_now().await;
        tokio::time::advance(hour).await;
        endpoint.write_all(b"the end").await.expect("nobody has ended it");
        drop(endpoint);
        let mut seen = String::new();
        client.read_to_string(&mut seen).await.expect("it is passed on");
        assert_eq!(seen, "the end");
        let error = piping.await.expect("no panic").expect_err("the client has not ended");
        assert_eq!((error.kind(), begin.elapsed()), (ErrorKind::TimedOut, hour + LINGER));
        drop(client);
    }
}
