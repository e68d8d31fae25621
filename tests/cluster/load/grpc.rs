//! Streams of gRPC: twenty messages that come back one by one, then the next stream.

use anyhow::{Context, Result, ensure};
use bytes::{Buf, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Request;

use super::http2::{elsewhere, page, usable};
use super::{Client, End, Target, pace};

/// Messages of one stream.
const MESSAGES: usize = 20;

/// Talks until it is stopped.
pub(super) async fn run(client: Client) {
    let mut kept = None;
    while client.goes_on() {
        let Some(sender) = usable(&client, &mut kept).await else { continue };
        if talk(&client, sender).await.is_none() {
            kept = None;
        }
    }
}

/// One stream; none if it broke, or was not begun with.
async fn talk(client: &Client, sender: SendRequest<Bytes>) -> Option<()> {
    let mut stream = None;
    let first = async {
        match begin(&client.target, sender).await {
            // The first message goes at once, as clients of gRPC have it: nginx answers nothing before it.
            Ok((mut up, answer)) => {
                let message = framed(b"first")?;
                // Who is leaving may say so now as well as before: what it has not begun with goes elsewhere.
                let answer = match up.send_data(message.clone(), false) {
                    Ok(()) => answer.await,
                    Err(error) => Err(error),
                };
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) => return elsewhere(error),
                };
                let mut begun = Stream::new(up, answer);
                begun.hear(&message).await?;
                stream = Some(begun);
                Ok(End::Answered)
            }
            Err(error) => elsewhere(error),
        }
    };
    client.timed(first).await?;
    let mut stream = stream?;
    let mut pace = pace();
    for number in 1..MESSAGES {
        pace.tick().await;
        let text = format!("message {number}");
        client.timed(async { stream.echo(text.as_bytes()).await.map(|()| End::Answered) }).await?;
    }
    client.timed(async { stream.end().await.map(|()| End::Answered) }).await.map(drop)
}

async fn begin(
    target: &Target,
    mut sender: SendRequest<Bytes>,
) -> Result<(SendStream<Bytes>, ResponseFuture), h2::Error> {
    let request = Request::post(page(target, "grpc.test", "/echo.Echo/Talk"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("all parts are valid");
    let (answer, stream) = sender.send_request(request, false)?;
    Ok((stream, answer))
}

/// A message with its length before it.
fn framed(text: &[u8]) -> Result<Bytes> {
    let length = u32::try_from(text.len()).context("a short text")?.to_be_bytes();
    Ok([&[0], &length[..], text].concat().into())
}

struct Stream {
    up: SendStream<Bytes>,
    down: RecvStream,
    pending: BytesMut,
}

impl Stream {
    fn new(up: SendStream<Bytes>, answer: http::Response<RecvStream>) -> Self {
        Self { up, down: answer.into_body(), pending: BytesMut::new() }
    }

    /// Sends a message and waits until it is back.
    async fn echo(&mut self, text: &[u8]) -> Result<()> {
        let message = framed(text)?;
        self.up.send_data(message.clone(), false).context("send a message")?;
        self.hear(&message).await
    }

    /// Waits until a message is back.
    async fn hear(&mut self, message: &[u8]) -> Result<()> {
        while self.pending.len() < message.len() {
            let data = self.down.data().await.context("the stream ended early")?;
            let data = data.context("waiting for a message")?;
            self.down.flow_control().release_capacity(data.len())?;
            self.pending.extend_from_slice(&data);
        }
        ensure!(&self.pending[..message.len()] == message, "another message came back");
        self.pending.advance(message.len());
        Ok(())
    }

    /// Ends the stream and reads its status.
    async fn end(&mut self) -> Result<()> {
        self.up.send_data(Bytes::new(), true).context("end the stream")?;
        ensure!(self.down.data().await.is_none(), "something came after the last message");
        let trailers = self.down.trailers().await.context("waiting for trailers")?;
        let trailers = trailers.context("a stream without trailers")?;
        ensure!(trailers.get("grpc-status").is_some_and(|code| code == "0"), "{trailers:?}");
        Ok(())
    }
}
