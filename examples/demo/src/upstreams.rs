//! The programs behind the demo's Services: two HTTP echoes, a WebSocket echo and a gRPC echo.

use anyhow::Result;
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use std::future::Future;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// The longest request head that the HTTP echo takes.
const HEAD: usize = 64 << 10;

/// An upstream that listens: the Service it stands for, the name of the Service's port, and where it is.
pub(crate) struct Upstream {
    pub(crate) service: &'static str,
    pub(crate) port_name: &'static str,
    pub(crate) port: u16,
}

/// Starts all of them on ports that the system chooses.
pub(crate) async fn start() -> Result<Vec<Upstream>> {
    Ok(vec![
        listen("blue", "http", |stream| http(stream, "blue")).await?,
        listen("green", "http", |stream| http(stream, "green")).await?,
        listen("chat", "http", chat).await?,
        listen("grpc", "grpc", grpc).await?,
    ])
}

async fn listen<S>(
    service: &'static str,
    port_name: &'static str,
    serve: impl Fn(TcpStream) -> S + Send + 'static,
) -> Result<Upstream>
where
    S: Future<Output = Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let conversation = serve(stream);
            tokio::spawn(async move {
                if let Err(error) = conversation.await {
                    eprintln!("upstream {service}: {error:#}");
                }
            });
        }
    });
    Ok(Upstream { service, port_name, port })
}

/// Answers one request with its own head, then closes.
async fn http(mut stream: TcpStream, name: &str) -> Result<()> {
    let mut head = BytesMut::new();
    let end = loop {
        if let Some(at) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at;
        }
        anyhow::ensure!(head.len() < HEAD, "the request's head is longer than {HEAD} bytes");
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    };
    let seen = String::from_utf8_lossy(&head[..end]).replace('\r', "");
    let body = format!("hello from {name}, which was sent:\n\n{seen}\n");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(format!("{answer}{body}").as_bytes()).await?;
    stream.shutdown().await?;
    // What is left of a request body must be read: closing a socket with unread bytes would reset the connection.
    let mut sink = tokio::io::sink();
    let rest = tokio::io::copy(&mut stream, &mut sink);
    tokio::time::timeout(Duration::from_secs(10), rest).await.ok();
    Ok(())
}

/// Greets, then sends every message back.
async fn chat(stream: TcpStream) -> Result<()> {
    let mut socket = tokio_tungstenite::accept_async(stream).await?;
    socket.send(Message::text("hello from chat")).await?;
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(())
}

async fn grpc(stream: TcpStream) -> Result<()> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(async move {
            if let Err(error) = grpc_call(request, respond).await {
                eprintln!("upstream grpc: {error:#}");
            }
        });
    }
    Ok(())
}

/// Sends the messages of a call back, and the status that says it went well.
async fn grpc_call(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) -> Result<()> {
    let mut body = request.into_body();
    let head = Response::builder().header("content-type", "application/grpc").body(())?;
    let mut answer = respond.send_response(head, false)?;
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        answer.send_data(piece, false)?;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse()?);
    trailers.insert("grpc-message", "hello from grpc".parse()?);
    answer.send_trailers(trailers)?;
    Ok(())
}
