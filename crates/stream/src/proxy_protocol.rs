//! The PROXY protocol's header, versions 1 and 2, in front of a connection (haproxy's proxy-protocol.txt; parsed by the
//! crate ppp). Exactly the header is taken off the connection, so that what follows may be TLS.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;

/// The signature that version 2 starts with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// What version 1 starts with.
const WORD: &[u8] = b"PROXY ";
/// Bytes of the longest header of version 1.
const LONGEST_V1: usize = 107;
/// Bytes of the longest header of version 2 that is taken.
const LONGEST_V2: usize = 4096;

/// The addresses of a PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Where the client is.
    pub source: SocketAddr,
    /// Where it connected to.
    pub destination: SocketAddr,
}

/// Takes the header off; none if it announces no addresses (UNKNOWN, LOCAL).
pub async fn take(tcp: &mut TcpStream) -> io::Result<Option<Announced>> {
    let mut header = vec![0; SIGNATURE.len()];
    let mut length = 0;
    while length < header.len() {
        match tcp.read(&mut header[length..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => length += count,
        }
        // Whoever speaks first without a header is told so at once.
        if !begins(&header[..length]) {
            return Err(invalid());
        }
    }
    if header == SIGNATURE {
        let mut fixed = [0; 4];
        tcp.read_exact(&mut fixed).await?;
        let length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if length > LONGEST_V2 {
            return Err(invalid());
        }
        header.extend_from_slice(&fixed);
        header.resize(16 + length, 0);
        tcp.read_exact(&mut header[16..]).await?;
    } else {
        line(tcp, &mut header).await?;
    }
    parse(&header)
}

/// Whether a header of either version may begin so.
fn begins(bytes: &[u8]) -> bool {
    let word = bytes.get(..WORD.len()).unwrap_or(bytes);
    SIGNATURE.starts_with(bytes) || WORD.starts_with(word)
}

/// Reads the rest of a line, and nothing beyond it.
async fn line(tcp: &mut TcpStream, header: &mut Vec<u8>) -> io::Result<()> {
    while !header.ends_with(b"\n") {
        if header.len() >= LONGEST_V1 {
            return Err(invalid());
        }
        let mut seen = [0; LONGEST_V1];
        let room = LONGEST_V1 - header.len();
        tcp.ready(Interest::READABLE).await?;
        let count = tcp.peek(&mut seen[..room]).await?;
        let end = seen[..count].iter().position(|&byte| byte == b'\n').map_or(count, |at| at + 1);
        if end == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        tcp.read_exact(&mut seen[..end]).await?;
        header.extend_from_slice(&seen[..end]);
    }
    Ok(())
}

/// The addresses that a whole header announces.
pub fn parse(header: &[u8]) -> io::Result<Option<Announced>> {
    use ppp::HeaderResult;
    use ppp::v1::{BinaryParseError, ParseError};
    let announced = match HeaderResult::parse(header) {
        HeaderResult::V1(Ok(header)) => match header.addresses {
            ppp::v1::Addresses::Unknown => None,
            ppp::v1::Addresses::Tcp4(four) => Some(between(
                (four.source_address.into(), four.source_port),
                (four.destination_address.into(), four.destination_port),
            )),
            ppp::v1::Addresses::Tcp6(six) => Some(between(
                (six.source_address.into(), six.source_port),
                (six.destination_address.into(), six.destination_port),
            )),
        },
        HeaderResult::V2(Ok(header)) if header.command == ppp::v2::Command::Local => None,
        HeaderResult::V2(Ok(header)) if header.protocol != ppp::v2::Protocol::Stream => None,
        HeaderResult::V2(Ok(header)) => match header.addresses {
            ppp::v2::Addresses::IPv4(four) => Some(between(
                (four.source_address.into(), four.source_port),
                (four.destination_address.into(), four.destination_port),
            )),
            ppp::v2::Addresses::IPv6(six) => Some(between(
                (six.source_address.into(), six.source_port),
                (six.destination_address.into(), six.destination_port),
            )),
            _ => None,
        },
        // An address that is none announces nothing (recording proxy-protocol/more-broken-headers).
        HeaderResult::V1(Err(BinaryParseError::Parse(
            ParseError::InvalidSourceAddress(_) | ParseError::InvalidDestinationAddress(_),
        ))) if is_whole_but_for_addresses(header) => None,
        _ => return Err(invalid()),
    };
    Ok(announced)
}

/// Whether a header of version 1 ends as one, has ports, and addresses that look like some: of those, nginx checks no
/// more than the characters (ngx_proxy_protocol_read_addr).
fn is_whole_but_for_addresses(header: &[u8]) -> bool {
    let line = header.split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
    let Some(line) = line.strip_suffix(b"\r\n") else { return false };
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [_, _, source, destination, from, to] = fields[..] else { return false };
    let is_like_address =
        |field: &[u8]| field.iter().all(|byte| byte.is_ascii_hexdigit() || b".:".contains(byte));
    let is_port = |field: &[u8]| {
        let digits = str::from_utf8(field).ok().filter(|_| field.iter().all(u8::is_ascii_digit));
        digits.is_some_and(|digits| digits.parse::<u16>().is_ok())
    };
    [source, destination].into_iter().all(is_like_address) && is_port(from) && is_port(to)
}

fn between(source: (IpAddr, u16), destination: (IpAddr, u16)) -> Announced {
    Announced { source: source.into(), destination: SocketAddr::from(destination) }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no valid PROXY protocol header")
}

/// A header of version 1. Addresses of two families are both written as IPv6.
pub fn line_of(announced: &Announced) -> String {
    let Announced { source, destination } = announced;
    let (from, to) = (source.ip().to_canonical(), destination.ip().to_canonical());
    let (from, to, family) = match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => (from, to, "TCP4"),
        _ => (six(from).into(), six(to).into(), "TCP6"),
    };
    format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port())
}

fn six(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::{Announced, line_of, parse};

    #[test]
    fn what_is_written_is_what_is_read() {
        let all = [
            ("192.0.2.1:4000", "198.51.100.1:80"),
            ("[2001:db8::1]:4000", "[2001:db8::2]:80"),
            ("[2001:db8::1]:4000", "198.51.100.1:80"),
        ];
        for (source, destination) in all {
            let announced = Announced {
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
            };
            let read = parse(line_of(&announced).as_bytes()).unwrap().expect("addresses");
            assert_eq!(read.source, announced.source);
            assert_eq!(read.destination.port(), announced.destination.port());
        }
    }

    #[test]
    fn an_address_that_is_none_announces_nothing() {
        for header in [
            "PROXY TCP4 203.0.113.999 198.51.100.1 4000 80\r\n",
            "PROXY TCP4 203.0.113.9 198.51.100 4000 80\r\nGET / HTTP/1.1\r\n",
        ] {
            assert_eq!(parse(header.as_bytes()).ok(), Some(None), "{header}");
        }
    }

    #[test]
    fn a_broken_header_is_refused_whatever_its_addresses_are() {
        for header in [
            "PROXY TCP4 203.0.113.999 198.51.100.1 4000 80\r",
            "PROXY TCP4 203.0.113.999 198.51.100.1 4000 80\n",
            "PROXY TCP4 203.0.113.999 198.51.100.1 4000 99999\r\n",
            "PROXY TCP4 203.0.113.999 198.51.100.1 +4000 80\r\n",
            "PROXY TCP4 203.0.113.999 198.51.100.1 4000 80 x\r\n",
            "PROXY TCP4 203.0.113.x 198.51.100.1 4000 80\r\n",
            "PROXY TCP4 203.0.113.9 198.51.\0 4000 80\r\n",
        ] {
            assert!(parse(header.as_bytes()).is_err(), "{header}");
        }
    }
}
