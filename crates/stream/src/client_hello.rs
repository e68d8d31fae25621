//! The server name that a TLS client asks for, read from the first bytes of its connection (RFC 8446 section 4.1.2).

use rustix::net::RecvFlags;
use std::io;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Bytes of a ClientHello that are looked at, at most.
pub const LONGEST: usize = 16 << 10;

/// What the first bytes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// More bytes are needed.
    Unknown,
    /// A name, as written.
    Name(String),
    /// No name, or no TLS.
    Nothing,
}

/// Waits for the ClientHello of a connection and takes nothing off it.
pub async fn peek(tcp: &TcpStream) -> io::Result<Wish> {
    let mut buffer = vec![0; LONGEST];
    let mut seen = 0;
    loop {
        let ready = tcp.ready(Interest::READABLE).await?;
        // Looking and waiting are one step: what comes in between wakes up, what was there before does not.
        let looked = tcp.try_io(Interest::READABLE, || {
            let (count, _) = rustix::net::recv(tcp, &mut buffer[..], RecvFlags::PEEK)?;
            if count > seen { Ok(count) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        match looked {
            Ok(count) => seen = count,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            // It has ended in the middle.
            Err(_) if ready.is_read_closed() => return Ok(Wish::Nothing),
            Err(_) => continue,
        }
        match wish(&buffer[..seen]) {
            Wish::Unknown => {}
            known => return Ok(known),
        }
    }
}

/// Reads the first bytes. The ClientHello may lie in several records, and each record in several reads.
pub fn wish(bytes: &[u8]) -> Wish {
    let mut message = Vec::new();
    let mut rest = bytes;
    let complete = loop {
        // Of a record: type 22 (handshake), version 3.x, length.
        if rest.first().is_some_and(|kind| *kind != 22)
            || rest.get(1).is_some_and(|major| *major != 3)
        {
            return Wish::Nothing;
        }
        let Some((header, after)) = rest.split_at_checked(5) else { break false };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if length == 0 || length > LONGEST {
            return Wish::Nothing;
        }
        message.extend_from_slice(&after[..length.min(after.len())]);
        match message.first() {
            Some(1) | None => {}
            Some(_) => return Wish::Nothing,
        }
        if let Some(wanted) = message_length(&message) {
            if message.len() >= wanted {
                message.truncate(wanted);
                break true;
            }
            if wanted > LONGEST {
                return Wish::Nothing;
            }
        }
        match after.get(length..) {
            Some(next) => rest = next,
            None => break false,
        }
    };
    match complete {
        true => server_name(&message).map_or(Wish::Nothing, Wish::Name),
        false if bytes.len() >= LONGEST => Wish::Nothing,
        false => Wish::Unknown,
    }
}

/// Bytes of a handshake message with its header of four.
fn message_length(message: &[u8]) -> Option<usize> {
    let header = message.get(1..4)?;
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    usize::try_from(length).ok()?.checked_add(4)
}

/// The host name in a whole ClientHello.
fn server_name(message: &[u8]) -> Option<String> {
    let mut hello = Reader(message.get(4..)?);
    hello.take(2 + 32)?;
    for width in [1, 2, 1] {
        // The session, the suites, the compressions.
        hello.block(width)?;
    }
    let mut extensions = Reader(hello.block(2)?);
    loop {
        let kind = extensions.number(2)?;
        let extension = extensions.block(2)?;
        if kind != 0 {
            continue;
        }
        // RFC 6066 section 3: a list of names, of which type 0 is a host.
        let mut names = Reader(Reader(extension).block(2)?);
        loop {
            let kind = names.number(1)?;
            let name = names.block(2)?;
            if kind == 0 {
                return String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty());
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of so many bytes.
    fn number(&mut self, width: usize) -> Option<usize> {
        Some(self.take(width)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// Bytes with their length in front, in so many bytes.
    fn block(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.number(width)?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Wish, wish};

    fn with_length(width: usize, bytes: &[u8]) -> Vec<u8> {
        [&bytes.len().to_be_bytes()[8 - width..], bytes].concat()
    }

    /// A ClientHello with this name, and an extension of `padding` zeros before it.
    fn hello(name: &str, padding: usize) -> Vec<u8> {
        let names = with_length(2, &[&[0][..], &with_length(2, name.as_bytes())].concat());
        let padding = [&[0, 21][..], &with_length(2, &vec![0; padding])].concat();
        let name = [&[0, 0][..], &with_length(2, &names)].concat();
        let body = [
            &[3, 3][..],
            &[7; 32],
            &with_length(1, &[9; 32]),
            &with_length(2, &[0x13, 0x01]),
            &with_length(1, &[0]),
            &with_length(2, &[padding, name].concat()),
        ]
        .concat();
        [&[1][..], &with_length(3, &body)].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[22, 3, 1][..], &with_length(2, part)].concat();
        message.chunks(size).flat_map(record).collect()
    }

    #[test]
    fn a_name_is_found_whatever_the_records_and_no_sooner_than_it_is_there() {
        let message = hello("Shop.example", 5);
        for size in [1, 2, 3, 4, 7, 100, 4096] {
            let bytes = records(&message, size);
            for end in 0..bytes.len() {
                assert_eq!(wish(&bytes[..end]), Wish::Unknown, "{size} {end}");
            }
            assert_eq!(wish(&bytes), Wish::Name("Shop.example".to_owned()), "{size}");
        }
    }

    #[test]
    fn an_oversized_hello_is_given_up_and_a_large_one_is_read() {
        let large = records(&hello("shop.example", 15_000), 1 << 14);
        assert_eq!(wish(&large), Wish::Name("shop.example".to_owned()));
        let oversized = records(&hello("shop.example", 17_000), 1 << 14);
        assert_eq!(wish(&oversized[..LONGEST]), Wish::Nothing);
    }

    #[test]
    fn other_bytes_wish_for_nothing() {
        assert_eq!(wish(b"GET / HTTP/1.1\r\n"), Wish::Nothing);
        assert_eq!(wish(&[22, 2, 0]), Wish::Nothing);
        assert_eq!(wish(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), Wish::Nothing);
        let mut cut = hello("shop.example", 0);
        cut.truncate(cut.len() - 3);
        let length = cut.len() - 4;
        cut[2..4].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        assert_eq!(wish(&records(&cut, 4096)), Wish::Nothing);
    }
}
