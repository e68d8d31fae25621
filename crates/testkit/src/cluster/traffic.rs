//! Steady requests against one address, so that a test can say that traffic never stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::http::{Answer, Connection};

/// Patience of one request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Clients of one traffic.
const CLIENTS: u32 = 4;

/// From a request of one client to that of the next one. Each costs debug builds of Fairway and of the client
/// something, for as long as a test waits for something else.
const APART: Duration = Duration::from_millis(5);

/// A few clients that ask without a break until they are told to stop.
#[derive(Debug)]
pub struct Traffic {
    clients: JoinSet<Vec<String>>,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

/// How the requests went.
#[derive(Debug)]
pub struct Outcome {
    /// Requests answered as wanted.
    pub answered: usize,
    /// What was wrong with the others.
    pub wrong: Vec<String>,
}

impl Outcome {
    /// An error that shows some of what went wrong, if anything did, or if there was no traffic at all.
    pub fn all_good(&self) -> Result<()> {
        if self.answered == 0 {
            bail!("there was no traffic: {:?}", self.wrong.first());
        }
        if !self.wrong.is_empty() {
            let some = self.wrong[..self.wrong.len().min(5)].join("\n");
            bail!("{} of {} requests went wrong:\n{some}", self.wrong.len(), self.total());
        }
        Ok(())
    }

    fn total(&self) -> usize {
        self.answered + self.wrong.len()
    }
}

impl Traffic {
    /// Starts `GET path` for `host` at `address`; each answer has to be 200.
    ///
    /// Half of the clients keep their connection, the others open a new one for each request.
    pub fn start(address: SocketAddr, host: &str, path: &str) -> Self {
        let (stop, answered) = (Arc::default(), Arc::default());
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let client = Client {
                address,
                host: host.to_owned(),
                path: path.to_owned(),
                keeps: number % 2 == 0,
                kept: None,
            };
            // They take turns, so that somebody asks all the time.
            let pace = interval_at(Instant::now() + APART * number, APART * CLIENTS);
            clients.spawn(client.run(pace, Arc::clone(&stop), Arc::clone(&answered)));
        }
        Self { clients, stop, answered }
    }

    /// Requests answered as wanted up to now.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Lets every client end its request, and tells how it went.
    pub async fn stop(self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        let wrong = self.clients.join_all().await.concat();
        Outcome { answered: self.answered.load(Ordering::Relaxed), wrong }
    }
}

struct Client {
    address: SocketAddr,
    host: String,
    path: String,
    keeps: bool,
    kept: Option<Connection>,
}

impl Client {
    async fn run(
        mut self,
        mut pace: Interval,
        stop: Arc<AtomicBool>,
        answered: Arc<AtomicUsize>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        // A pause between requests: the machine has other things to do in these tests.
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.load(Ordering::Relaxed) {
            pace.tick().await;
            let asked = Instant::now();
            match tokio::time::timeout(PATIENCE, self.ask()).await {
                Ok(Ok(answer)) if answer.status == 200 => {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Ok(answer)) => {
                    wrong.push(format!("status {}: {}", answer.status, answer.text()))
                }
                Ok(Err(error)) => wrong.push(format!("{error:#} after {:?}", asked.elapsed())),
                Err(_) => {
                    self.kept = None;
                    wrong.push(format!("no answer within {PATIENCE:?}"));
                }
            }
        }
        wrong
    }

    async fn ask(&mut self) -> Result<Answer> {
        let mut connection = match self.kept.take() {
            Some(kept) => kept,
            None => Connection::open(self.address).await?,
        };
        let answer = connection.get(&self.host, &self.path).await?;
        if self.keeps && !answer.closes() {
            self.kept = Some(connection);
        }
        Ok(answer)
    }
}
