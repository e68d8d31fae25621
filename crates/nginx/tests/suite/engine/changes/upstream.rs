//! Endpoints that say who they are and which path they were asked for; slowly, if the query asks for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A slow answer comes in so many parts, with a pause before each.
const PARTS: usize = 10;
const PAUSE: Duration = Duration::from_millis(60);

/// Starts one; it is known by its port.
pub(super) fn start() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drop(serve(&stream, address)));
        }
    });
    address
}

fn serve(stream: &TcpStream, address: SocketAddr) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if reader.read_until(b'\n', &mut head)? == 0 {
                return Ok(());
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let field = |name: &str| {
            let of_name = |line: &&str| {
                line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
            };
            head.lines().find(of_name).and_then(|line| Some(line.split_once(':')?.1.trim()))
        };
        let length = field("Content-Length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let target = head.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let who = format!("X-Endpoint: {}\r\nX-Path: {path}\r\n", address.port());
        let mut out = stream;
        if field("Upgrade").is_some() {
            let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
            write!(out, "HTTP/1.1 101 Switching Protocols\r\n{upgrade}{who}\r\n")?;
            return echo(&mut reader, out);
        }
        if query.contains("slow") {
            write!(out, "HTTP/1.1 200 OK\r\n{who}Transfer-Encoding: chunked\r\n\r\n")?;
            for _ in 0..PARTS {
                std::thread::park_timeout(PAUSE);
                out.write_all(b"5\r\npart \r\n")?;
            }
            out.write_all(b"0\r\n\r\n")?;
            continue;
        }
        let said = format!("{length} bytes came");
        write!(out, "HTTP/1.1 200 OK\r\n{who}Content-Length: {}\r\n\r\n{said}", said.len())?;
    }
}

fn echo(reader: &mut impl Read, mut out: &TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(()),
            length => out.write_all(&buffer[..length])?,
        }
    }
}
