//! Names that upstreams stand for (ExternalName Services and the like): looked up here, so that nginx only ever has
//! addresses; again when their time is over (RFC 1035 section 3.2.1, TTL).

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::net::NetError;
use model::{Configuration, Endpoints, UpstreamId};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No name is looked up more often, whatever its TTL.
const LEAST: Duration = Duration::from_secs(1);
/// Nor less often.
const MOST: Duration = Duration::from_secs(300);
/// When a lookup that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Endpoints of upstreams that stand for names.
pub type Resolved = BTreeMap<UpstreamId, Arc<Endpoints>>;

/// What is known of names.
#[derive(Default)]
pub struct Names {
    system: Option<TokioResolver>,
    known: BTreeMap<UpstreamId, Known>,
}

struct Known {
    name: (String, u16),
    endpoints: Arc<Endpoints>,
    until: Instant,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

impl Names {
    /// The endpoints of all names of a Configuration. A lookup that fails leaves the last good answer; where there is
    /// none for this name, there are no endpoints.
    pub async fn resolve(&mut self, configuration: &Configuration) -> Resolved {
        let named: BTreeMap<_, _> = configuration
            .upstreams
            .iter()
            .filter_map(|(id, upstream)| Some((id.clone(), upstream.external.clone()?)))
            .collect();
        self.known.retain(|id, known| named.get(id) == Some(&known.name));
        for (id, name) in named {
            let is_fresh = |known: &Known| known.until > Instant::now();
            if self.known.get(&id).is_some_and(is_fresh) {
                continue;
            }
            let found = self.lookup(&name.0).await;
            let before = self.known.get(&id).map(|known| known.endpoints.clone());
            let (endpoints, valid) = match found {
                Ok((addresses, valid)) => {
                    (Arc::new(Endpoints::of_name(addresses, name.1)), valid.clamp(LEAST, MOST))
                }
                Err(error) => {
                    // Said once; it is tried again every few seconds.
                    if before.is_none() {
                        tracing::warn!(host = name.0, %error, "the name of an ExternalName Service cannot be resolved");
                    }
                    (before.unwrap_or_default(), RETRY)
                }
            };
            let until = Instant::now() + valid;
            self.known.insert(id, Known { name, endpoints, until });
        }
        self.known.iter().map(|(id, known)| (id.clone(), known.endpoints.clone())).collect()
    }

    /// How long until a name has to be looked up again; none if there is no name.
    pub fn next(&self) -> Option<Duration> {
        let first = self.known.values().map(|known| known.until).min()?;
        Some(first.saturating_duration_since(Instant::now()).max(Duration::from_millis(100)))
    }

    async fn lookup(&mut self, host: &str) -> Result<(Vec<IpAddr>, Duration), NetError> {
        if self.system.is_none() {
            let mut builder = TokioResolver::builder_tokio()?;
            builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4thenIpv6;
            self.system = Some(builder.build()?);
        }
        let Some(system) = &self.system else { return Ok(Default::default()) };
        let found = system.lookup_ip(host).await?;
        let valid = found.valid_until().saturating_duration_since(Instant::now());
        Ok((found.iter().collect(), valid))
    }
}
