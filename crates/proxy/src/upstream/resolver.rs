//! Names of ExternalName Services: looked up again when their time is over (RFC 1035 section 3.2.1, TTL), with the
//! search domains and `ndots` of /etc/resolv.conf, IPv4 before IPv6 (compat/behaviour.md section 7).

use super::group::Members;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::net::NetError;
use model::Endpoints;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No name is looked up more often, whatever its TTL.
const LEAST: Duration = Duration::from_secs(1);
/// Nor less often.
const MOST: Duration = Duration::from_secs(300);
/// When a lookup that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Looks names up, for all upstreams; /etc/resolv.conf is read when the first one needs it.
#[derive(Default)]
pub struct Resolver {
    system: Mutex<Option<Arc<TokioResolver>>>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

impl Resolver {
    /// Keeps the endpoints of an upstream to the addresses of a name. A lookup that fails leaves the last good answer;
    /// where there is none for this name, there are no endpoints.
    pub(super) async fn follow(
        self: Arc<Self>,
        (host, port): (String, u16),
        members: Arc<Members>,
    ) {
        let mut has_answer = false;
        loop {
            let pause = match self.lookup(&host).await {
                Ok((addresses, valid)) => {
                    has_answer = true;
                    members.replace(Arc::new(Endpoints::of_name(addresses, port)));
                    valid.clamp(LEAST, MOST)
                }
                Err(error) => {
                    tracing::warn!(host, %error, "the name of an ExternalName Service cannot be resolved");
                    if !has_answer {
                        members.replace(Arc::default());
                    }
                    RETRY
                }
            };
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

#[cfg(test)]
mod tests {
    use super::Resolver;
    use crate::upstream::Group;
    use hickory_resolver::TokioResolver;
    use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig};
    use hickory_resolver::net::runtime::TokioRuntimeProvider;
    use hickory_resolver::proto::rr::Name;
    use model::{Endpoints, UpstreamId};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::net::UdpSocket;

    /// A name server for `db.example`, whose IPv4 address ends with `last`: 0 means that the name does not exist. Other
    /// names, and IPv6, it does not know.
    struct NameServer {
        address: SocketAddr,
        last: Arc<AtomicU8>,
        asked: Arc<AtomicUsize>,
    }

    async fn name_server(ttl: u8) -> NameServer {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = socket.local_addr().expect("bound");
        let (last, asked) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicUsize::new(0)));
        let server = NameServer { address, last: last.clone(), asked: asked.clone() };
        tokio::spawn(async move {
            let mut query = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut query).await {
                asked.fetch_add(1, Ordering::Relaxed);
                let answer = answer(&query[..length], last.load(Ordering::Relaxed), ttl);
                let _ = socket.send_to(&answer, client).await;
            }
        });
        server
    }

    /// RFC 1035 section 4.1: the header, the question as it was asked, and one A record or none.
    fn answer(query: &[u8], last: u8, ttl: u8) -> Vec<u8> {
        const NAME: &[u8] = b"\x02db\x07example\x00";
        let end = 12 + query[12..].iter().position(|&byte| byte == 0).expect("a name ends") + 5;
        let question = &query[12..end];
        let known = question == [NAME, &[0, 1, 0, 1]].concat() && last > 0;
        let mut answer = query[..2].to_vec();
        answer.extend([
            0x81,
            if known { 0x80 } else { 0x83 },
            0,
            1,
            0,
            u8::from(known),
            0,
            0,
            0,
            0,
        ]);
        answer.extend(question);
        if known {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 4, 192, 0, 2, last]);
        }
        answer
    }

    fn resolver(server: &NameServer) -> Arc<Resolver> {
        let mut by_name = NameServerConfig::udp(server.address.ip());
        by_name
            .connections
            .iter_mut()
            .for_each(|connection| connection.port = server.address.port());
        let search = vec![Name::from_ascii("example.").expect("a name")];
        let config = ResolverConfig::from_parts(None, search, vec![by_name]);
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4thenIpv6;
        builder.options_mut().timeout = Duration::from_secs(2);
        let system = Mutex::new(Some(Arc::new(builder.build().expect("a resolver"))));
        Arc::new(Resolver { system })
    }

    async fn until(group: &Group, wanted: &[SocketAddr]) {
        let there = async {
            while group.endpoints().ready != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(10), there).await;
        assert!(found.is_ok(), "{:?} instead of {wanted:?}", group.endpoints().ready);
    }

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 80))
    }

    #[tokio::test]
    async fn a_name_is_looked_up_again_when_its_time_is_over_and_the_last_good_answer_stays() {
        let server = name_server(1).await;
        server.last.store(7, Ordering::Relaxed);
        let group = Group::new(UpstreamId::new("demo-db-80"), Arc::default());
        // The search domain makes it db.example.
        group.resolve(Some(("db".to_owned(), 80)), &resolver(&server));
        until(&group, &[at(7)]).await;
        server.last.store(8, Ordering::Relaxed);
        until(&group, &[at(8)]).await;
        server.last.store(0, Ordering::Relaxed);
        let asked = server.asked.load(Ordering::Relaxed);
        let asked_again = async {
            while server.asked.load(Ordering::Relaxed) < asked + 3 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), asked_again).await.expect("asked again");
        until(&group, &[at(8)]).await;
    }

    #[tokio::test]
    async fn another_name_that_does_not_exist_leaves_nobody() {
        let server = name_server(60).await;
        let before = Endpoints { ready: vec![at(1)], draining: Vec::new() };
        let group = Group::new(UpstreamId::new("demo-db-80"), Arc::new(before));
        group.resolve(Some(("nobody.example".to_owned(), 80)), &resolver(&server));
        until(&group, &[]).await;
    }
}
