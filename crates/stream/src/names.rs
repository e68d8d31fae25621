//! Names of ExternalName Services, followed for both engines in one way: looked up again when their time is over (RFC
//! 1035 section 3.2.1, TTL), with the search domains and `ndots` of /etc/resolv.conf, IPv4 before IPv6
//! (compat/behaviour.md section 7).

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::net::NetError;
use model::{Endpoints, Outside};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// No name is looked up more often, whatever its TTL.
const LEAST: Duration = Duration::from_secs(1);
/// Nor less often.
const MOST: Duration = Duration::from_secs(300);
/// When a lookup that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Looks names up, each beside the others; /etc/resolv.conf is read when the first one needs it.
#[derive(Default)]
pub struct Resolver {
    system: Mutex<Option<Arc<TokioResolver>>>,
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
        Self { system: Mutex::new(Some(Arc::new(system))), ..Self::default() }
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

    /// Tells the endpoints at the addresses of a name, host and port, now and whenever they were looked up again. A
    /// lookup that fails leaves the last good answer; where there is none yet, there are no endpoints. Must be called
    /// within a tokio runtime.
    pub fn follow(
        self: &Arc<Self>,
        name: (String, u16),
        tell: impl Fn(Arc<Endpoints>) + Send + 'static,
    ) -> Following {
        Following(tokio::spawn(self.clone().keep_up(name, tell)))
    }

    async fn keep_up(
        self: Arc<Self>,
        (host, port): (String, u16),
        tell: impl Fn(Arc<Endpoints>) + Send + 'static,
    ) {
        let (mut has_answer, mut fails) = (false, false);
        loop {
            let pause = match self.lookup(&host).await {
                Ok((addresses, valid)) => {
                    (has_answer, fails) = (true, false);
                    tell(Arc::new(Endpoints::of_name(addresses, port, &self.outside)));
                    valid.clamp(LEAST, MOST)
                }
                Err(error) => {
                    // Said once until it succeeds again, not every few seconds.
                    if !std::mem::replace(&mut fails, true) {
                        tracing::warn!(host, %error, "the name of an ExternalName Service cannot be resolved");
                    }
                    if !has_answer {
                        tell(Arc::default());
                    }
                    RETRY
                }
            };
            #[expect(clippy::disallowed_methods, reason = "names are asked again by the clock")]
            tokio::time::sleep(pause).await;
        }
    }

    /// The addresses of a name, and how long they hold.
    async fn lookup(&self, host: &str) -> Result<(Vec<IpAddr>, Duration), NetError> {
        let found = self.system()?.lookup_ip(host).await?;
        let valid = found.valid_until().saturating_duration_since(Instant::now());
        Ok((found.iter().collect(), valid))
    }

    fn system(&self) -> Result<Arc<TokioResolver>, NetError> {
        let mut system = self.system.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(resolver) = &*system {
            return Ok(resolver.clone());
        }
        let mut builder = TokioResolver::builder_tokio()?;
        builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4thenIpv6;
        let resolver = Arc::new(builder.build()?);
        *system = Some(resolver.clone());
        Ok(resolver)
    }
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
    pub(crate) fn new(resolver: &Arc<Resolver>, name: (String, u16)) -> Self {
        let (sender, known) = watch::channel(None);
        let tell = move |endpoints| drop(sender.send_replace(Some(endpoints)));
        Self { name: name.clone(), known, _following: resolver.follow(name, tell) }
    }

    /// The endpoints; waits until it was looked up for the first time.
    pub(crate) async fn endpoints(&self) -> Arc<Endpoints> {
        let mut known = self.known.clone();
        let found = known.wait_for(Option::is_some).await;
        found.ok().and_then(|found| found.clone()).unwrap_or_default()
    }
}
