//! What is passed on about how a client came in, and the lines that say so: most of what a request towards an upstream
//! says is what the one before said.

use bytes::Bytes;
use std::cell::RefCell;
use std::net::IpAddr;

/// What is passed on about how the client came in (compat/behaviour.md section 15).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// "best host": with its port, if it has one.
    pub host: Bytes,
    /// "effective scheme".
    pub scheme: Bytes,
    /// "pass port".
    pub port: Bytes,
}

/// Pieces that a thread keeps.
const KEPT: usize = 64;
/// Bytes of one at most.
const LONGEST: usize = 1 << 10;

/// Lines that requests have in common which come the same way; one for some connections each.
#[derive(Debug)]
pub(crate) struct Lines(RefCell<Vec<Option<Piece>>>);

#[derive(Debug)]
struct Piece {
    client: IpAddr,
    forwarded: Forwarded,
    lines: Bytes,
}

impl Default for Lines {
    fn default() -> Self {
        Self(RefCell::new(std::iter::repeat_with(|| None).take(KEPT).collect()))
    }
}

impl Lines {
    /// Those that were written for a connection last, if they say the same.
    pub(crate) fn get(&self, serial: u64, client: IpAddr, forwarded: &Forwarded) -> Option<Bytes> {
        let pieces = self.0.borrow();
        let piece = pieces[serial as usize % KEPT].as_ref()?;
        (piece.client == client && piece.forwarded == *forwarded).then(|| piece.lines.clone())
    }

    /// Keeps lines for the next request, without what they were made of.
    pub(crate) fn put(&self, serial: u64, client: IpAddr, forwarded: &Forwarded, lines: &[u8]) {
        if lines.len() > LONGEST {
            return;
        }
        let copy = |value: &Bytes| Bytes::copy_from_slice(value);
        let Forwarded { host, scheme, port } = forwarded;
        let forwarded = Forwarded { host: copy(host), scheme: copy(scheme), port: copy(port) };
        let lines = Bytes::copy_from_slice(lines);
        let piece = Piece { client, forwarded, lines };
        self.0.borrow_mut()[serial as usize % KEPT] = Some(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::{Forwarded, KEPT, LONGEST, Lines};
    use bytes::Bytes;
    use std::net::IpAddr;

    #[test]
    fn lines_are_those_of_the_same_client_host_scheme_and_port() {
        let (lines, client) = (Lines::default(), IpAddr::from([192, 0, 2, 1]));
        let text = Bytes::from_static;
        let way = Forwarded { host: text(b"a.test"), scheme: text(b"http"), port: text(b"80") };
        lines.put(1, client, &way, b"X-Real-IP: 192.0.2.1\r\n");
        assert!(lines.get(1 + KEPT as u64, client, &way).is_some());
        assert!(lines.get(2, client, &way).is_none());
        assert!(lines.get(1, IpAddr::from([192, 0, 2, 2]), &way).is_none());
        for other in [
            Forwarded { host: text(b"b.test"), ..way.clone() },
            Forwarded { scheme: text(b"https"), ..way.clone() },
            Forwarded { port: text(b"81"), ..way.clone() },
        ] {
            assert!(lines.get(1, client, &other).is_none(), "{other:?}");
        }
        lines.put(2, client, &way, &[b'x'; LONGEST + 1]);
        assert!(lines.get(2, client, &way).is_none());
    }
}
