//! The one door out for what objects name. A name is resolved here and nowhere else, so that the addresses behind it
//! are checked, whatever the name looks like and however often its answer changes.

use model::Outside;
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpStream, lookup_host};

/// The addresses of a host to which objects may lead, in the order of the answer.
///
/// # Errors
/// The host has no address, or none outside.
pub async fn addresses(host: &str, port: u16, outside: &Outside) -> io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = lookup_host((bare, port)).await?;
    let found: Vec<_> = found.filter(|address| outside.permits(address.ip())).collect();
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
