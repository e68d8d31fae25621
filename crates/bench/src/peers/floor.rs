//! The floor: the least that a proxied request costs. One thread waits, reads what a side sent and writes it to the
//! other one; it understands nothing of it, and a connection to the upstream belongs to each client.

use std::io::{ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::{Ports, Site};

/// The token of the listener; those of connections are the numbers of their places.
const LISTENER: u64 = u64::MAX;
/// Events that are taken at once.
const EVENTS: usize = 64;
/// Bytes read at once; answers of the traffic that it has a part in are smaller.
const READ: usize = 16 << 10;

/// Says how it is started: it is a command of this program.
pub(super) fn command(site: &Site<'_>, ports: Ports) -> Result<Vec<String>> {
    let own = std::env::current_exe().context("find this program")?;
    let arguments = ["floor".to_owned(), ports.http.to_string(), site.http.to_string()];
    Ok([own.display().to_string()].into_iter().chain(arguments).collect())
}

/// Passes on what comes to a port of loopback until the process is ended.
pub(crate) fn run(port: u16, upstream: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).context("listen")?;
    listener.set_nonblocking(true).context("make a listener non-blocking")?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("create an epoll")?;
    watch(&epoll, &listener, LISTENER)?;
    let mut ends = Ends::default();
    let mut room = vec![0; READ];
    loop {
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS];
        let events = match epoll::wait(&epoll, &mut events, None) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error).context("wait for events"),
        };
        for event in events {
            match event.data.u64() {
                LISTENER => ends.accept(&listener, upstream, &epoll)?,
                place => ends.pass(place as usize, &mut room),
            }
        }
    }
}

/// Both ends of each client's way, side by side: where one is, the other has the number that differs in its last bit.
#[derive(Default)]
struct Ends(Vec<Option<TcpStream>>);

impl Ends {
    fn accept(
        &mut self,
        listener: &TcpListener,
        upstream: SocketAddr,
        epoll: &OwnedFd,
    ) -> Result<()> {
        loop {
            let client = match listener.accept() {
                Ok((client, _)) => client,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("accept a client"),
            };
            let onward = TcpStream::connect(upstream).context("reach the upstream")?;
            for end in [client, onward] {
                end.set_nonblocking(true).context("make a socket non-blocking")?;
                end.set_nodelay(true).context("switch off Nagle's algorithm")?;
                watch(epoll, &end, self.0.len() as u64)?;
                self.0.push(Some(end));
            }
        }
    }

    /// Reads once and writes what came to the other end; a way on which that fails is over.
    fn pass(&mut self, from: usize, room: &mut [u8]) {
        let to = from ^ 1;
        let (Some(Some(mut reader)), Some(Some(mut writer))) =
            (self.0.get(from).map(Option::as_ref), self.0.get(to).map(Option::as_ref))
        else {
            return;
        };
        let passed = match reader.read(room) {
            Ok(0) => false,
            Ok(count) => writer.write_all(&room[..count]).is_ok(),
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        if !passed {
            (self.0[from], self.0[to]) = (None, None);
        }
    }
}

fn watch(epoll: &OwnedFd, socket: impl rustix::fd::AsFd, token: u64) -> Result<()> {
    epoll::add(epoll, socket, EventData::new_u64(token), EventFlags::IN).context("watch a socket")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_says_the_other_one_hears() {
        let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = upstream.local_addr().expect("an address");
        let port = Ports::free().expect("a port").http;
        std::thread::spawn(move || run(port, address));
        let mut client = loop {
            if let Ok(client) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                break client;
            }
            std::thread::yield_now();
        };
        client.write_all(b"to you").expect("written");
        let (mut served, _) = upstream.accept().expect("a connection");
        let mut heard = [0; 6];
        served.read_exact(&mut heard).expect("read");
        assert_eq!(&heard, b"to you");
        served.write_all(b"and me").expect("written");
        client.read_exact(&mut heard).expect("read");
        assert_eq!(&heard, b"and me");
        drop(served);
        assert_eq!(client.read(&mut heard).expect("the end"), 0);
    }
}
