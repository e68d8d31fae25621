//! HTTP/2 in clear: several streams of a connection at a time; GOAWAY is obeyed.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use testkit::cluster::{Stream, secure};
use tokio::net::TcpStream;

use super::{Client, End, Target, pace};

/// Asks until it is stopped.
pub(super) async fn run(client: Client) {
    let (mut pace, mut kept) = (pace(), None);
    while client.goes_on() {
        pace.tick().await;
        let Some(sender) = usable(&client, &mut kept).await else { continue };
        let asks = [(); 3].map(|()| client.timed(ask(&client.target, sender.clone())));
        let [first, second, third] = asks;
        let ends = tokio::join!(first, second, third);
        if !matches!(ends, (Some(End::Answered), Some(End::Answered), Some(End::Answered))) {
            kept = None;
        }
    }
}

/// The connection, or a new one where the server wants no more of it; a failure to connect counts as a request.
pub(super) async fn usable(
    client: &Client,
    kept: &mut Option<SendRequest<Bytes>>,
) -> Option<SendRequest<Bytes>> {
    if let Some(sender) = kept.take()
        && let Ok(sender) = sender.ready().await
    {
        return Some(kept.insert(sender).clone());
    }
    match open(&client.target).await {
        Ok(sender) => Some(kept.insert(sender).clone()),
        Err(error) => {
            client.timed(async { Err(error) }).await;
            None
        }
    }
}

async fn open(target: &Target) -> Result<SendRequest<Bytes>> {
    let stream: Box<dyn Stream> = if let Some((address, authority)) = &target.tls {
        secure(*address, "web.test", authority, &["h2"]).await?
    } else {
        let tcp = TcpStream::connect(target.http).await.context("connect")?;
        tcp.set_nodelay(true)?;
        Box::new(tcp)
    };
    let (sender, connection) = h2::client::handshake(stream).await.context("start HTTP/2")?;
    tokio::spawn(connection);
    sender.ready().await.context("a new connection is of no use")
}

/// The address of a page of a host.
pub(super) fn page(target: &Target, host: &str, path: &str) -> String {
    format!("{}://{host}{path}", if target.tls.is_some() { "https" } else { "http" })
}

async fn ask(target: &Target, mut sender: SendRequest<Bytes>) -> Result<End> {
    let request = Request::get(page(target, "web.test", "/stream")).body(())?;
    let answer = async { sender.send_request(request, true)?.0.await };
    let answer = match answer.await {
        Err(error) => return elsewhere(error),
        Ok(answer) => answer,
    };
    ensure!(answer.status() == 200, "status {}", answer.status());
    read(answer).await?;
    Ok(End::Answered)
}

/// Whether an error says that the request was not begun with.
pub(super) fn elsewhere(error: h2::Error) -> Result<End> {
    let reason = error.reason();
    let gone = error.is_go_away() && reason == Some(Reason::NO_ERROR);
    let refused = error.is_reset() && reason == Some(Reason::REFUSED_STREAM);
    if gone || refused { Ok(End::Elsewhere) } else { Err(error).context("waiting for the answer") }
}

async fn read(answer: Response<RecvStream>) -> Result<()> {
    let mut body = answer.into_body();
    let mut read = 0;
    while let Some(data) = body.data().await {
        let data = data.context("in the middle of the answer")?;
        read += data.len();
        body.flow_control().release_capacity(data.len())?;
    }
    if read == 0 {
        bail!("an empty answer");
    }
    Ok(())
}
