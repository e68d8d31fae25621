//! What goes out to a client, byte by byte.

use super::Writer;
use bytes::{Bytes, BytesMut};
use model::Global;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use wire::http1::{Client, Framing};
use wire::{Body, BodyError, BodySource, Control, Frame, Io, Length};

/// A body of these pieces, the last one first.
#[derive(Debug)]
struct Pieces(Vec<&'static [u8]>);

impl BodySource for Pieces {
    fn poll_frame(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        Poll::Ready(Ok(self.0.pop().map(|piece| Frame::Data(Bytes::from_static(piece)))))
    }

    fn length(&self) -> Length {
        Length::Unknown
    }
}

#[tokio::test]
async fn an_answer_is_whole_if_its_body_is_as_long_as_its_head_says() {
    for (pieces, whole, came) in [
        (&[&b"lo"[..], b"hel"][..], true, "head hello"),
        (&[b"hel"], false, "head hel"),
        (&[b"hello, you"], false, ""),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let mut peer = TcpStream::connect(address).await.expect("it listens");
        let (tcp, _) = listener.accept().await.expect("a connection");
        let client = Client::new(Io::Plain(tcp), BytesMut::new(), Rc::<Control>::default());
        let global = Global::default();
        let mut writer = Writer::new(&client, &global, false);
        let mut body = Body::from_source(Pieces(pieces.to_vec()));
        let head = BytesMut::from("head ");
        let written = writer.message(head, Framing::Length(5), &mut body).await;
        assert_eq!(written.is_ok(), whole, "{pieces:?}");
        drop(client);
        let mut read = String::new();
        peer.read_to_string(&mut read).await.expect("it ends");
        assert_eq!(read, came);
    }
}
