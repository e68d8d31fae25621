//! Where hosts lead that only a request names (URLs with variables in their host, responders of certificates): nginx's
//! Lua asks on a socket of ours, and hears of no address to which objects may not lead.

use crate::socket::listen;
use serde_json::json;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stream::Resolver;
use system::sockets;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Questions that are answered at once; the others wait in the queue of the socket.
const AT_ONCE: usize = 1024;
/// How long one may take: the resolver has bounds of its own, which are shorter.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes of a question at most: a host, a port and a namespace.
const LONGEST: u64 = 1024;

/// Answers questions on `socket`, for good. Call it before nginx learns of the socket.
pub fn answer(
    socket: &Path,
    resolver: Arc<Resolver>,
) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    Ok(accept(listen(socket)?, resolver))
}

async fn accept(listener: UnixListener, resolver: Arc<Resolver>) {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    while let Ok(slot) = slots.clone().acquire_owned().await {
        let stream = sockets::accept(&listener, |_| ()).await;
        let resolver = resolver.clone();
        tokio::spawn(async move {
            match timeout(PATIENCE, exchange(stream, &resolver)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "nginx went away with a question"),
                Err(_) => tracing::debug!("nginx was not told in time where a host leads"),
            }
            drop(slot);
        });
    }
}

/// A line with host, port and namespace; as a line what Lua knows as an upstream, or why there is none.
async fn exchange(stream: UnixStream, resolver: &Resolver) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(LONGEST)).read_line(&mut line).await?;
    let mut words = line.trim_end_matches('\n').split(' ');
    let host = words.next().unwrap_or_default();
    let port = words.next().and_then(|port| port.parse().ok()).unwrap_or(0);
    let namespace = Arc::from(words.next().unwrap_or_default());
    let answer = match resolver.addresses(&namespace, host, port).await {
        Ok(addresses) => {
            let endpoints = addresses.iter().map(|address| {
                json!({"address": address.ip().to_string(), "port": address.port().to_string()})
            });
            json!({"name": host, "endpoints": endpoints.collect::<Vec<_>>()}).to_string()
        }
        Err(error) => error.to_string().replace('\n', " "),
    };
    write.write_all(format!("{answer}\n").as_bytes()).await
}
