//! The floor: the least that a proxied request costs. One thread waits, reads what a side sent and writes it to the
//! other one; it understands nothing of it, and a connection to the upstream belongs to each client. Long answers go
//! through a pipe of the kernel, without a copy (splice).

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::{Ports, Site};

/// The token of the listener; those of connections are the numbers of their places.
const LISTENER: u64 = u64::MAX;
/// Events that are taken at once.
const EVENTS: usize = 64;
/// Bytes read at once; an answer that fills them is long.
const READ: usize = 16 << 10;
/// Bytes that a pipe holds.
const PIPE: usize = 256 << 10;

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
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error).context("wait for events"),
        };
        for event in events {
            match event.data.u64() {
                LISTENER => ends.accept(&listener, upstream, &epoll)?,
                place => ends.pass(place as usize, &mut room, &epoll)?,
            }
        }
    }
}

/// Both ends of each client's way, side by side: where one is, the other has the number that differs in its last bit.
#[derive(Default)]
struct Ends {
    all: Vec<Option<TcpStream>>,
    /// The way of long answers, by half that number.
    pipes: HashMap<usize, Pipe>,
}

/// A pipe, and what is in it.
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    held: usize,
}

impl Pipe {
    fn new() -> Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC).context("make a pipe")?;
        fcntl_setpipe_size(&into, PIPE).context("widen a pipe")?;
        Ok(Self { out, into, held: 0 })
    }

    /// Passes on what there is, as far as it is taken; whether there may be more one day.
    fn pass(&mut self, from: &TcpStream, to: &TcpStream) -> bool {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        loop {
            let moved = match self.held {
                0 => splice(from, None, &self.into, None, PIPE, flags)
                    .inspect(|count| self.held = *count),
                held => splice(&self.out, None, to, None, held, flags)
                    .inspect(|count| self.held -= count),
            };
            match moved {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
    }
}

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
                watch(epoll, &end, self.all.len() as u64)?;
                self.all.push(Some(end));
            }
        }
    }

    /// Reads once and writes what came to the other end; a way on which that fails is over.
    fn pass(&mut self, from: usize, room: &mut [u8], epoll: &OwnedFd) -> Result<()> {
        let (to, is_answer) = (from ^ 1, from % 2 == 1);
        let (Some(Some(mut reader)), Some(Some(mut writer))) =
            (self.all.get(from).map(Option::as_ref), self.all.get(to).map(Option::as_ref))
        else {
            return Ok(());
        };
        let mut passed = true;
        if !is_answer || !self.pipes.contains_key(&(from / 2)) {
            let read = reader.read(room);
            passed = match &read {
                Ok(0) => false,
                Ok(count) => writer.write_all(&room[..*count]).is_ok(),
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            if is_answer && read.is_ok_and(|count| count == room.len()) {
                // From now on it is told once of what came, and of room on the other side.
                let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                for (end, socket) in [(from, reader), (to, writer)] {
                    let token = EventData::new_u64(end as u64);
                    epoll::modify(epoll, socket, token, flags).context("watch a socket")?;
                }
                self.pipes.insert(from / 2, Pipe::new()?);
            }
        }
        if let Some(pipe) = self.pipes.get_mut(&(from / 2)) {
            let (upstream, client) = if is_answer { (reader, writer) } else { (writer, reader) };
            passed &= pipe.pass(upstream, client);
        }
        if !passed {
            (self.all[from], self.all[to]) = (None, None);
            self.pipes.remove(&(from / 2));
        }
        Ok(())
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
        let long: Vec<u8> = (0..4 << 20).map(|at: u32| (at / 7) as u8).collect();
        for _ in 0..2 {
            client.write_all(b"more..").expect("written");
            served.read_exact(&mut heard).expect("read");
            let mut came = vec![0; long.len()];
            std::thread::scope(|scope| {
                scope.spawn(|| served.write_all(&long).expect("written"));
                client.read_exact(&mut came).expect("read");
            });
            assert!(came == long, "what came is not what was sent");
        }
        drop(served);
        assert_eq!(client.read(&mut heard).expect("the end"), 0);
    }
}
