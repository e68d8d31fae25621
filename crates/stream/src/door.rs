//! The one door out for what objects name. A name is resolved here and nowhere else, so that the addresses behind it
//! are checked, whatever the name looks like and however often its answer changes.

use crate::system::{Kinds, System};
use model::Outside;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpStream;

/// The addresses of a host to which objects may lead. Whoever calls it bounds how many ask at a time.
///
/// # Errors
/// The host has no address, or none outside.
pub async fn addresses(host: &str, port: u16, outside: &Outside) -> io::Result<Vec<SocketAddr>> {
    let host = bare(host);
    let system = System::read()?;
    let found = match system.known(host) {
        Some(found) => found,
        None => system.ask(host, Kinds::Both).await?,
    };
    permitted(found.0, port, outside)
}

/// An address without the brackets of a URL; a name as it is.
pub(crate) fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Those of the addresses to which objects may lead.
pub(crate) fn permitted(
    found: Vec<IpAddr>,
    port: u16,
    outside: &Outside,
) -> io::Result<Vec<SocketAddr>> {
    let found = found.into_iter().filter(|address| outside.permits(*address));
    let found: Vec<_> = found.map(|address| SocketAddr::new(address, port)).collect();
    if found.is_empty() {
        let message = "none of its addresses may be reached by what an object names";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(found)
}

/// A connection to a host that an object names.
///
/// # Errors
/// As [`addresses`], or none of them takes the connection.
pub async fn open(host: &str, port: u16, outside: &Outside) -> io::Result<TcpStream> {
    TcpStream::connect(&*addresses(host, port, outside).await?).await
}

#[cfg(test)]
mod tests {
    use super::open;
    use model::Outside;
    use std::io::ErrorKind;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn nobody_is_led_to_this_machine_unless_an_operator_allows_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
            let refused = open(host, port, &Outside::default()).await.expect_err(host);
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{host}");
        }
        let allowed = Outside::and(["127.0.0.0/8".parse().expect("a network")]);
        open("127.0.0.1", port, &allowed).await.expect("it is allowed");
    }
}
