//! Names of ExternalName Services, followed for both engines in one way: looked up again when their time is over (RFC
//! 1035 section 3.2.1, TTL), with the search domains and `ndots` of /etc/resolv.conf, IPv4 before IPv6
//! (compat/behaviour.md section 7). Hosts that only a request names are asked for beside them.

use crate::door;
use crate::followed::{Followed, Name};
use crate::order::Whose;
use crate::questions::{Questions, whose};
use crate::system::{ADDRESSES, Current, Kinds, System};
use hickory_resolver::TokioResolver;
use model::{Endpoints, Outside};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// No name is looked up less often, if it has an answer.
const MOST: Duration = Duration::from_secs(300);
/// When a lookup that failed is tried again; that doubles with each one that fails.
const RETRY: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(120);
/// How long a question may take about a name that is followed, and about one that a request waits for (nginx:
/// resolver_timeout); the latter waits no longer than that for its turn.
const FOLLOWED: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(5);

/// What a lookup that failed means, and what to do about it.
const KEPT: &str = ": its last addresses count, until the DNS of this Pod knows it again";
const NOBODY: &str = ": requests that need it fail, until the DNS of this Pod knows it";

/// Looks names up, each beside the others as long as there are few.
#[derive(Default)]
pub struct Resolver {
    current: Current,
    questions: Arc<Questions>,
    followed: Arc<Followed>,
    outside: Outside,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

impl From<TokioResolver> for Resolver {
    /// One that asks other name servers than /etc/resolv.conf says.
    fn from(system: TokioResolver) -> Self {
        Self { current: Current::fixed(System::from(system)), ..Self::default() }
    }
}

impl From<Outside> for Resolver {
    /// One whose names may lead there.
    fn from(outside: Outside) -> Self {
        Self { outside, ..Self::default() }
    }
}

/// A name that is being followed, as long as this lives.
#[derive(Debug)]
pub struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Resolver {
    /// Where names may lead.
    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Tells the endpoints at the addresses of a name, host and port, now and whenever they were looked up again; it is
    /// this namespace's. A lookup that fails leaves the last good answer; where there is none yet, there are no
    /// endpoints. Must be called within a tokio runtime.
    pub fn follow(
        self: &Arc<Self>,
        namespace: &Arc<str>,
        name: (String, u16),
        tell: impl Fn(Arc<Endpoints>) + Send + 'static,
    ) -> Following {
        let whose = whose(namespace, &name.0);
        let counted = self.followed.enter(&whose.namespace);
        // A host that a URL names is of no namespace, and has the share of its zone.
        let service_of = Some(namespace.clone()).filter(|namespace| !namespace.is_empty());
        Following(tokio::spawn(self.clone().keep_up(name, whose, service_of, counted, tell)))
    }

    /// The addresses of a host for a request of this namespace, of those to which objects may lead.
    ///
    /// # Errors
    /// The host has no address, or none outside; of the kind `WouldBlock`, if so many questions were under way that it
    /// was not asked for.
    pub async fn addresses(
        &self,
        namespace: &Arc<str>,
        host: &str,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        let host = door::bare(host);
        let found = self.ask(&whose(namespace, host), host, Kinds::Both).await?;
        door::permitted(found.0, port, &self.outside)
    }

    async fn keep_up(
        self: Arc<Self>,
        (host, port): (String, u16),
        whose: Whose,
        service_of: Option<Arc<str>>,
        counted: Name,
        tell: impl Fn(Arc<Endpoints>) + Send + 'static,
    ) {
        let namespace = service_of.as_deref();
        let what = if namespace.is_some() { "of an ExternalName Service" } else { "in a URL" };
        let (mut has_answer, mut failures, mut is_told) = (false, 0_u32, false);
        loop {
            let pause = match self.ask(&whose, &host, Kinds::One).await {
                Ok((addresses, until)) => {
                    (has_answer, failures) = (true, 0);
                    let is_full = addresses.len() == ADDRESSES;
                    if is_full && !std::mem::replace(&mut is_told, true) && counted.line().is_some()
                    {
                        tracing::warn!(
                            host,
                            namespace,
                            "the name {what} has {ADDRESSES} addresses or more, and no more than that count"
                        );
                    }
                    tell(Arc::new(Endpoints::of_name(addresses, port, &self.outside)));
                    until.saturating_duration_since(Instant::now()).min(MOST)
                }
                Err(error) => {
                    // Said once until it succeeds again, not every few seconds.
                    let as_before = if has_answer { KEPT } else { NOBODY };
                    if failures == 0
                        && let Some(left_out) = counted.line()
                    {
                        tracing::warn!(
                            host, namespace, left_out, %error,
                            "the name {what} cannot be resolved{as_before}"
                        );
                    }
                    if !has_answer {
                        tell(Arc::default());
                    }
                    failures = failures.saturating_add(1);
                    pause_after(failures)
                }
            };
            #[expect(clippy::disallowed_methods, reason = "names are asked again by the clock")]
            tokio::time::sleep(pause.max(counted.least())).await;
        }
    }

    /// The addresses of a name and until when they hold, when it is its turn.
    async fn ask(
        &self,
        whose: &Whose,
        host: &str,
        kinds: Kinds,
    ) -> io::Result<(Vec<IpAddr>, Instant)> {
        let system = self.current.get()?;
        if let Some(found) = system.known(host) {
            return Ok(found);
        }
        let turn = self.questions.turn(whose);
        let (turn, patience) = match kinds {
            Kinds::One => (turn.await, FOLLOWED),
            Kinds::Both => {
                let full = |_| io::Error::new(io::ErrorKind::WouldBlock, "too many questions wait");
                (timeout(PATIENCE, turn).await.map_err(full)?, PATIENCE)
            }
        };
        let found = timeout(patience, system.ask(host, kinds)).await;
        let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        turn.end(found.is_ok());
        found
    }
}

/// How long a name is left alone that could not be looked up so many times.
fn pause_after(failures: u32) -> Duration {
    RETRY.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST)
}

/// A name that is followed, for whoever asks for its endpoints.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: (String, u16),
    /// None until it was looked up for the first time.
    known: watch::Receiver<Option<Arc<Endpoints>>>,
    _following: Following,
}

impl Named {
    pub(crate) fn new(resolver: &Arc<Resolver>, namespace: &Arc<str>, name: (String, u16)) -> Self {
        let (sender, known) = watch::channel(None);
        let tell = move |endpoints| drop(sender.send_replace(Some(endpoints)));
        let following = resolver.follow(namespace, name.clone(), tell);
        Self { name, known, _following: following }
    }

    /// The endpoints; waits until it was looked up for the first time.
    pub(crate) async fn endpoints(&self) -> Arc<Endpoints> {
        let mut known = self.known.clone();
        let found = known.wait_for(Option::is_some).await;
        found.ok().and_then(|found| found.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::pause_after;

    #[test]
    fn a_name_that_fails_is_asked_more_and_more_rarely() {
        let pauses = [1, 2, 3, 6, 7, u32::MAX].map(|failures| pause_after(failures).as_secs());
        assert_eq!(pauses, [2, 4, 8, 64, 120, 120]);
    }
}
