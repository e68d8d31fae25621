//! Logs that nobody takes, and disks that are full.

use crate::faults::bed::{PATIENCE, Setup, good, status};
use anyhow::{Context, Result, ensure};

#[tokio::test]
async fn whoever_reads_the_logs_may_stop_and_no_request_waits() -> Result<()> {
    // Every request to a host that nobody has is a line in both logs; pipes hold 64 KiB.
    let setup = Setup { unread: true, flags: vec!["-v=5".to_owned()], ..Setup::of(good().await?) };
    let fairway = setup.start().await?;
    let long = "x".repeat(3000);
    for number in 0..300 {
        let answer =
            tokio::time::timeout(PATIENCE, fairway.get(&format!("/{number}/{long}"))).await;
        let answer = answer.context("a request waits for the log")??;
        ensure!(status(&answer) == Some(200), "request {number}: {answer}");
    }
    ensure!(fairway.health().await? == 200);
    Ok(())
}

#[tokio::test]
async fn a_log_on_a_full_disk_costs_lines_and_no_request() -> Result<()> {
    let settings = vec![
        ("access-log-path", "/dev/full".to_owned()),
        ("error-log-path", "/dev/full".to_owned()),
    ];
    let fairway = Setup { settings, ..Setup::of(good().await?) }.start().await?;
    for _ in 0..50 {
        fairway.expect(200).await?;
    }
    let told =
        || async { fairway.said().contains("lines of a log cannot be written").then_some(()) };
    testkit::eventually(PATIENCE, told).await.with_context(|| fairway.said())?;
    Ok(())
}

#[tokio::test]
async fn a_body_that_finds_no_room_on_disk_is_503_and_others_go_on() -> Result<()> {
    let flags = vec!["--body-files-limit=64Ki".to_owned()];
    let fairway = Setup { flags, ..Setup::of(good().await?) }.start().await?;
    // More than stays in memory where there is plenty.
    let body = "x".repeat(400_000);
    let large = format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = fairway.ask(&large).await?;
    ensure!(status(&answer) == Some(503), "{answer}");
    fairway.expect(200).await?;
    ensure!(status(&fairway.post().await?) == Some(200));
    Ok(())
}
