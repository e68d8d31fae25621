//! HTTP/1.1: GET and POST in turns.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::cluster::Connection;

use super::{Client, End, pace};

/// Asks until it is stopped; keeps its connection as long as the server does, if it `keeps` any.
pub(super) async fn run(client: Client, keeps: bool) {
    let (mut pace, mut kept, mut post) = (pace(), None, false);
    while client.goes_on() {
        pace.tick().await;
        // Who keeps a connection to nginx repeats what nginx has closed it under, which only a GET allows.
        post = !(post || keeps && client.target.to_nginx);
        let taken = kept.take();
        let outcome = client.timed(ask(&client, taken, post, keeps.then_some(&mut kept))).await;
        if outcome.is_none() {
            kept = None;
        }
    }
}

async fn ask(
    client: &Client,
    kept: Option<Connection>,
    post: bool,
    keep: Option<&mut Option<Connection>>,
) -> Result<End> {
    let repeats = kept.is_some() && client.target.to_nginx;
    let mut connection = match kept {
        Some(connection) => connection,
        None => Connection::open(client.target.http).await?,
    };
    let answer = if post {
        connection.post_json("web.test", "/post", &json!({"some": "text"})).await
    } else {
        connection.get("web.test", "/get").await
    };
    let answer = match answer {
        Err(_) if repeats && !connection.has_begun() => return Ok(End::Elsewhere),
        answer => answer?,
    };
    ensure!(answer.status == 200, "status {}: {}", answer.status, answer.text());
    if let Some(keep) = keep
        && !answer.closes()
    {
        *keep = Some(connection);
    }
    Ok(End::Answered)
}
