//! The stream ports of a controller: a line over TCP, or a datagram.

use std::{net::SocketAddr, time::Duration};

use tokio::net::UdpSocket;

use crate::{
    exchange::{Answer, Body, Line},
    latin1,
    wire::{Failure, Wire, patiently},
};

/// Sends the text and reads a line.
pub(super) async fn line(mut wire: Wire, line: &Line) -> Result<Answer, Failure> {
    wire.send(&latin1::bytes(&line.send).ok_or(Failure::Unsendable)?).await?;
    let mut text = wire.until(b"\n").await?;
    text.push(b'\n');
    Ok(Answer { body: Some(Body::Text(latin1::text(&text))), ..Answer::default() })
}

/// Sends the text and reads a datagram.
pub(super) async fn datagram(
    to: SocketAddr,
    line: &Line,
    patience: Duration,
) -> Result<Answer, Failure> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await?;
    socket.send_to(line.send.as_bytes(), to).await?;
    let mut buffer = vec![0; 1 << 16];
    let (length, _) = patiently(Some(patience), socket.recv_from(&mut buffer)).await?;
    Ok(Answer { body: Some(Body::Text(latin1::text(&buffer[..length]))), ..Answer::default() })
}
