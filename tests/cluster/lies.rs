//! A watch that lies: events are left out of it, and what they would have told shows all the same.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use testkit::cluster::{self, Cluster, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::fairway::{Fairway, PATIENCE};
use crate::objects::{ingress, one_host};

/// How the names of objects begin that no watch tells of.
const UNSEEN: &str = "unseen-";

/// The API server without credentials, and without some of the events.
struct Liar {
    port: u16,
    /// Whether it turns everybody away, and ends what goes on.
    refuses: watch::Sender<bool>,
    left_out: Arc<LeftOut>,
    _serving: JoinSet<()>,
}

/// Events that nobody was told.
#[derive(Default)]
struct LeftOut {
    added: AtomicUsize,
    deleted: AtomicUsize,
}

impl Liar {
    async fn start(api: Client) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let left_out = Arc::new(LeftOut::default());
        let (mut serving, seen) = (JoinSet::new(), left_out.clone());
        let refuses = watch::Sender::new(false);
        let refused = refuses.subscribe();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                let (api, left_out, mut refused) = (api.clone(), seen.clone(), refused.clone());
                // A client that goes away in the middle of an answer is no fault.
                connections.spawn(async move {
                    if *refused.borrow() {
                        return drop(refuse(tcp).await);
                    }
                    tokio::select! {
                        answered = answer(tcp, api, &left_out) => drop(answered),
                        refused = refused.wait_for(|refuses| *refuses) => drop(refused),
                    }
                });
            }
        });
        Ok(Self { port, refuses, left_out, _serving: serving })
    }

    /// A kubeconfig that leads here.
    fn kubeconfig(&self, cluster: &Cluster) -> Result<PathBuf> {
        let path = cluster.folder().join("liar.kubeconfig");
        let text = format!(
            "apiVersion: v1
kind: Config
clusters: [{{name: liar, cluster: {{server: \"http://127.0.0.1:{}\"}}}}]
users: [{{name: nobody, user: {{}}}}]
contexts: [{{name: liar, context: {{cluster: liar, user: nobody}}}}]
current-context: liar
",
            self.port
        );
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

/// Answers as a balancer does whose servers are away, with a time that nobody means.
async fn refuse(mut tcp: TcpStream) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await?);
    }
    let answer =
        "HTTP/1.1 503 \r\nRetry-After: 600\r\nContent-Length: 4\r\nConnection: close\r\n\r\naway";
    tcp.write_all(answer.as_bytes()).await?;
    Ok(tcp.shutdown().await?)
}

/// Answers one request as the API server does, and ends the connection.
async fn answer(mut tcp: TcpStream, api: Client, left_out: &LeftOut) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    let target = head.split(' ').nth(1).context("a request line")?;
    let response = api.send(http::Request::get(target).body(Body::empty())?).await?;
    let status = response.status().as_u16();
    let begin = format!(
        "HTTP/1.1 {status} \r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    );
    tcp.write_all(begin.as_bytes()).await?;
    let watches = target.contains("watch=true");
    let mut in_list = target.contains("sendInitialEvents=true");
    let (mut body, mut rest) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if !watches {
            tcp.write_all(&data).await?;
            continue;
        }
        rest.extend(data);
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if in_list || !is_left_out(&line, left_out)? {
                tcp.write_all(&line).await?;
            }
            in_list &= !String::from_utf8_lossy(&line).contains("k8s.io/initial-events-end");
        }
    }
    Ok(tcp.shutdown().await?)
}

fn is_left_out(line: &[u8], left_out: &LeftOut) -> Result<bool> {
    let event: Value = serde_json::from_slice(line)?;
    let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
    if !name.starts_with(UNSEEN) {
        return Ok(false);
    }
    match event["type"].as_str() {
        Some("ADDED") => left_out.added.fetch_add(1, Ordering::Relaxed),
        Some("DELETED") => left_out.deleted.fetch_add(1, Ordering::Relaxed),
        _ => 0,
    };
    Ok(true)
}

#[test]
fn what_a_watch_leaves_out_shows_after_the_next_list() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let liar = Liar::start(cluster.client()).await?;
        let kubeconfig = liar.kubeconfig(cluster)?;
        let mut fairway = Fairway::begin_as(cluster, &kubeconfig, &["--sync-period=3s"])?;
        fairway.ready().await?;
        let traffic = fairway.traffic("a.test");
        let left_out = |events: &AtomicUsize| events.load(Ordering::Relaxed) > 0;
        // A change that falls between a watch and the list after it is told by that list, and proves nothing.
        while !left_out(&liar.left_out.added) || !left_out(&liar.left_out.deleted) {
            let unseen = ingress(&format!("{UNSEEN}a"), "unseen.test", "/", "a");
            cluster.apply(&unseen).await?;
            fairway.answers("unseen.test", "/", 200).await?;
            cluster.delete(&unseen).await?;
            fairway.answers("unseen.test", "/", 404).await?;
        }
        traffic.stop().await.all_good()?;
        fairway.stop().await
    });
}

#[test]
fn who_is_turned_away_says_so_and_follows_again_soon_whatever_it_was_told_to_wait() {
    cluster::test(async |cluster| {
        one_host(cluster).await?;
        let liar = Liar::start(cluster.client()).await?;
        let kubeconfig = liar.kubeconfig(cluster)?;
        let mut fairway = Fairway::begin_as(cluster, &kubeconfig, &["--enable-metrics"])?;
        fairway.ready().await?;
        liar.refuses.send_replace(true);
        eventually("the metric of watches", PATIENCE, async || {
            let page = fairway.page("/metrics").await?.text();
            let lost = page.lines().any(|line| line == "fairway_watch_synced{kind=\"Ingress\"} 0");
            ensure!(lost && fairway.said().contains("503"), "{lost}\n{}", fairway.said());
            anyhow::Ok(())
        })
        .await?;
        liar.refuses.send_replace(false);
        cluster.apply(&ingress("late", "late.test", "/", "a")).await?;
        fairway.answers("late.test", "/", 200).await?;
        fairway.stop().await
    });
}
