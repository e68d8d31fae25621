//! TLS at listeners of Gateways that carry connections on: as they are, or what is in them.

use crate::generation::{Carried, Door, Onward};
use std::io;
use std::time::Duration;
use stream::client_hello::{self, Wish};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::Io;

/// The bytes to carry on and to whom; none if no route has the name, or its backend cannot be had. `below` draws a
/// number.
pub(super) async fn accept(
    tcp: TcpStream,
    door: &Door,
    limit: Duration,
    below: impl Fn(usize) -> usize,
) -> io::Result<Option<(Io, Onward)>> {
    let name = match timeout(limit, client_hello::peek(&tcp)).await?? {
        Wish::Name(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Wish::Nothing => String::new(),
        Wish::Unknown => return Ok(None),
    };
    let Some(listener) = door.listener(&name) else { return Ok(None) };
    let host = listener.carried.find(&name).next();
    let Some(onward) = host.and_then(|host| drawn(host, below)) else { return Ok(None) };
    if !listener.is_ended {
        return Ok(Some((Io::Plain(tcp), onward)));
    }
    let Some(tls) = &door.tls else { return Ok(None) };
    let (stream, _) = timeout(limit, tls.accept(tcp)).await??;
    Ok(Some((Io::Accepted(Box::new(stream)), onward)))
}

/// One of the shares, as often as their weights say.
fn drawn(Carried(shares): &Carried, below: impl Fn(usize) -> usize) -> Option<Onward> {
    let total: usize = shares.iter().map(|(weight, _)| *weight as usize).sum();
    let mut at = if total == 0 { return None } else { below(total) };
    for (weight, onward) in shares {
        match at.checked_sub(*weight as usize) {
            None => return onward.clone(),
            Some(rest) => at = rest,
        }
    }
    None
}
