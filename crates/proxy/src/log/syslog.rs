//! Datagrams for a syslog server, in the form of RFC 3164 that nginx gives them (ngx_syslog.c).

use super::sink::Lost;
use model::Syslog;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use wire::{since_epoch, syslog_time};

/// What fits into one UDP datagram over IPv4.
const LARGEST: usize = 65_507;

/// A connected socket, and what each datagram begins with.
pub(super) struct Datagrams {
    socket: Socket,
    facility: u8,
    severity: u8,
    /// Host name and tag.
    origin: String,
}

enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Datagrams {
    /// Finds the server. Sending never waits for it.
    pub(super) fn open(syslog: &Syslog) -> io::Result<Self> {
        let socket = match syslog.server.strip_prefix("unix:") {
            Some(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                socket.connect(path)?;
                Socket::Unix(socket)
            }
            None => Socket::Udp(connect(&syslog.server, syslog.port)?),
        };
        let tag = &syslog.tag;
        let origin = if syslog.nohostname {
            tag.clone()
        } else {
            format!("{} {tag}", rustix::system::uname().nodename().to_string_lossy())
        };
        Ok(Self { socket, facility: syslog.facility, severity: syslog.severity, origin })
    }

    /// Sends each line. Where one cannot be sent, the others are tried, too.
    pub(super) fn send(&self, severity: Option<u8>, lines: &str) -> Result<(), Lost> {
        let time = syslog_time(since_epoch().as_secs());
        let priority = self.facility * 8 + severity.unwrap_or(self.severity);
        let mut lost: Option<Lost> = None;
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let mut datagram = format!("<{priority}>{time} {}: {line}", self.origin);
            if datagram.len() > LARGEST {
                datagram.truncate(datagram.floor_char_boundary(LARGEST));
            }
            let sent = match self.datagram(datagram.as_bytes()) {
                // That was the answer to the datagram before this one, which was not sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.datagram(datagram.as_bytes())
                }
                sent => sent,
            };
            if let Err(error) = sent {
                lost.get_or_insert(Lost { lines: 0, error }).lines += 1;
            }
        }
        lost.map_or(Ok(()), Err)
    }

    fn datagram(&self, data: &[u8]) -> io::Result<()> {
        match &self.socket {
            Socket::Udp(socket) => socket.send(data),
            Socket::Unix(socket) => socket.send(data),
        }
        .map(drop)
    }
}

/// A socket that sends to the first address of a name.
fn connect(server: &str, port: u16) -> io::Result<UdpSocket> {
    let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    for address in (server, port).to_socket_addrs()? {
        let local: std::net::IpAddr = if address.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        outcome = UdpSocket::bind((local, 0)).and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.connect(address)?;
            Ok(socket)
        });
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
