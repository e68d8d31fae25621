//! The fixtures of layer 4: they send back what they get, with their name before it.

use tokio::net::UdpSocket;

use super::Pod;
use crate::wire::{Failure, Wire};

/// Lines over a TCP connection.
pub(super) async fn serve(pod: &Pod, mut wire: Wire) -> Result<(), Failure> {
    loop {
        let mut line = wire.until(b"\n").await?;
        line.push(b'\n');
        pod.journal.note(pod.saw_bytes("TCP", &line));
        wire.send(&[pod.name.as_bytes(), b":", &line].concat()).await?;
    }
}

/// Datagrams.
pub(super) async fn datagrams(pod: &Pod, socket: &UdpSocket) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let Ok((length, peer)) = socket.recv_from(&mut buffer).await else { continue };
        pod.journal.note(pod.saw_bytes("UDP", &buffer[..length]));
        let answer = [pod.name.as_bytes(), b":", &buffer[..length]].concat();
        // A client that is gone misses its answer, as with any datagram.
        let _sent = socket.send_to(&answer, peer).await;
    }
}
