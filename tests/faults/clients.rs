//! Clients that keep others waiting before their first request.

use crate::faults::bed::{PATIENCE, Setup, good};
use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn handshakes_that_stall_are_cut_and_others_do_not_wait_for_them() -> Result<()> {
    let settings = vec![("client-header-timeout", "2".to_owned())];
    let fairway = Setup { settings, ..Setup::of(good().await?) }.start().await?;
    let mut stalled = Vec::new();
    for number in 0..200 {
        let mut tcp = TcpStream::connect(fairway.https).await?;
        // The head of a record with a ClientHello that never comes, or nothing at all.
        let start = if number % 2 == 0 { &[22, 3, 1, 2, 0, 1][..] } else { &[] };
        tcp.write_all(start).await?;
        stalled.push(tcp);
    }
    // One after the other they would take longer than anybody waits here.
    fairway.expect(200).await?;
    for mut tcp in stalled {
        let ended = tokio::time::timeout(PATIENCE, tcp.read(&mut [0; 64])).await;
        let ended = ended.context("a handshake is never cut")?;
        ensure!(matches!(ended, Ok(0) | Err(_)), "it was answered: {ended:?}");
    }
    fairway.expect(200).await.map(drop)
}
