//! Names as the system is set up to look them up: /etc/hosts, then the name servers, search domains and `ndots` of
//! /etc/resolv.conf. Both files are read again when they have changed, as the C library does.

use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use parking_lot::Mutex;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// What says how names are looked up.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// How often it is looked whether they have changed.
const LOOK: Duration = Duration::from_secs(5);
/// Addresses of a name at most; an answer of DNS has room for 4,000, and each is kept in every balancer.
pub(crate) const ADDRESSES: usize = 256;
/// Answers of name servers that are kept: of 64 kB each, if somebody likes. Names that are followed are asked again
/// once their time is over, whatever is kept.
const KEPT: u64 = 64;
/// How long an address is its own.
const FOR_EVER: Duration = Duration::from_secs(86_400);

/// What the files said when they were read.
#[derive(Debug)]
pub(crate) struct System {
    hosts: Hosts,
    /// Asks for IPv6 where there is no address of IPv4.
    one_kind: TokioResolver,
    /// Asks for addresses of both kinds, and keeps no answers.
    both_kinds: TokioResolver,
}

/// The addresses of a name, and until when they hold.
pub(crate) type Found = (Vec<IpAddr>, Instant);

/// Which addresses are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// Those of IPv4; where there are none, those of IPv6.
    One,
    /// Those of IPv4, then those of IPv6.
    Both,
}

impl System {
    /// Reads the files.
    pub(crate) fn read() -> io::Result<Self> {
        let resolver = |strategy, keeps: bool| {
            // Without name servers there is /etc/hosts, and perhaps one on this machine (resolv.conf(5)).
            let mut builder = TokioResolver::builder_tokio().unwrap_or_else(|error| {
                tracing::warn!(%error, "names are asked of this machine: /etc/resolv.conf cannot be used");
                let here = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
                let config = ResolverConfig::from_parts(None, Vec::new(), vec![here]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            });
            builder.options_mut().ip_strategy = strategy;
            builder.options_mut().cache_size = if keeps { KEPT } else { 0 };
            builder.build().map_err(io::Error::other)
        };
        Ok(Self {
            hosts: Hosts::from_system().unwrap_or_default(),
            one_kind: resolver(LookupIpStrategy::Ipv4thenIpv6, true)?,
            both_kinds: resolver(LookupIpStrategy::Ipv4AndIpv6, false)?,
        })
    }

    /// What is known of a host without a question: it is an address, or stands in /etc/hosts.
    pub(crate) fn known(&self, host: &str) -> Option<Found> {
        // With many `ndots` an address would be asked for, too.
        let written = || self.written(host).map(|found| (found, Instant::now() + LOOK));
        let address = host.parse().ok().map(|address| (vec![address], Instant::now() + FOR_EVER));
        address.or_else(written)
    }

    /// Asks for the addresses of a host.
    pub(crate) async fn ask(&self, host: &str, kinds: Kinds) -> io::Result<Found> {
        let resolver = match kinds {
            Kinds::One => &self.one_kind,
            Kinds::Both => &self.both_kinds,
        };
        let found = resolver.lookup_ip(host).await.map_err(|error| match error {
            NetError::NoConnections => io::Error::new(
                io::ErrorKind::HostUnreachable,
                "no name server can be reached; check /etc/resolv.conf, and the Pods of DNS",
            ),
            // Its own words are those of whoever reads packets, and name the last question alone.
            none if none.is_no_records_found() => {
                io::Error::new(io::ErrorKind::NotFound, "no name server knows an address of it")
            }
            other => io::Error::other(other),
        })?;
        Ok((bounded(found.iter().collect()), found.valid_until()))
    }

    /// What /etc/hosts says of a name: it goes before name servers, also before their answers for search domains.
    fn written(&self, host: &str) -> Option<Vec<IpAddr>> {
        let name = Name::from_utf8(host).ok()?;
        let mut found = Vec::new();
        for kind in [RecordType::A, RecordType::AAAA] {
            let lines = self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
            let records = lines.iter().flat_map(|lines| lines.answers());
            found.extend(records.filter_map(|record| record.data.ip_addr()));
        }
        (!found.is_empty()).then_some(found)
    }
}

/// No more addresses than a name may have: always the same ones, though name servers turn them round.
fn bounded(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    if addresses.len() > ADDRESSES {
        addresses.sort_unstable();
        addresses.truncate(ADDRESSES);
        addresses.shrink_to_fit();
    }
    addresses
}

impl From<TokioResolver> for System {
    fn from(resolver: TokioResolver) -> Self {
        Self { hosts: Hosts::default(), one_kind: resolver.clone(), both_kinds: resolver }
    }
}

/// What the files say now.
#[derive(Debug, Default)]
pub(crate) struct Current(Mutex<Option<Read>>);

#[derive(Debug)]
struct Read {
    system: Arc<System>,
    /// When the files were changed before they were read; none are looked at for a fixed one.
    stamps: Option<[Option<SystemTime>; 2]>,
    looked: Instant,
}

impl Current {
    /// One that does not change.
    pub(crate) fn fixed(system: System) -> Self {
        let read = Read { system: Arc::new(system), stamps: None, looked: Instant::now() };
        Self(Mutex::new(Some(read)))
    }

    /// What they say, read again if they have changed.
    pub(crate) fn get(&self) -> io::Result<Arc<System>> {
        let mut current = self.0.lock();
        if let Some(read) = current.as_mut() {
            let is_fresh = read.looked.elapsed() < LOOK || read.stamps.is_none();
            if is_fresh || read.stamps == Some(stamps()) {
                if !is_fresh {
                    read.looked = Instant::now();
                }
                return Ok(read.system.clone());
            }
        }
        let (stamps, looked) = (Some(stamps()), Instant::now());
        let system = Arc::new(System::read()?);
        *current = Some(Read { system: system.clone(), stamps, looked });
        Ok(system)
    }
}

fn stamps() -> [Option<SystemTime>; 2] {
    FILES.map(|file| std::fs::metadata(file).and_then(|file| file.modified()).ok())
}

#[cfg(test)]
mod tests {
    use super::{ADDRESSES, System, bounded};
    use hickory_resolver::Hosts;
    use hickory_resolver::lookup::Lookup;
    use hickory_resolver::proto::op::Query;
    use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
    use std::net::IpAddr;
    use std::time::Duration;
    use testkit::name_server::NameServer;

    #[test]
    fn of_very_many_addresses_always_the_same_ones_count() {
        let mut all: Vec<IpAddr> = (0..4000_u16)
            .map(|number| IpAddr::from([192, 0, (number >> 8) as u8, number as u8]))
            .collect();
        let some = bounded(all.clone());
        all.rotate_left(1234);
        assert_eq!((some.len(), bounded(all)), (ADDRESSES, some));
        let few = vec![IpAddr::from([192, 0, 2, 2]), IpAddr::from([192, 0, 2, 1])];
        assert_eq!(bounded(few.clone()), few);
    }

    #[tokio::test]
    async fn addresses_and_what_stands_in_the_file_of_hosts_need_no_question() {
        let ip: IpAddr = "192.0.2.7".parse().expect("an address");
        let name = Name::from_ascii("db.here").expect("a name");
        let query = Query::query(name.clone(), RecordType::A);
        let lookup =
            Lookup::new_with_max_ttl(query, [Record::from_rdata(name.clone(), 1, RData::from(ip))]);
        let mut hosts = Hosts::default();
        hosts.insert(name, RecordType::A, lookup);
        let resolver = NameServer::start().await.resolver(Duration::from_secs(1));
        let system = System { hosts, ..System::from(resolver) };
        let known = |host| system.known(host).map(|(found, _)| found);
        assert_eq!(known("DB.here"), Some(vec![ip]));
        assert_eq!(known("192.0.2.7"), Some(vec![ip]));
        assert_eq!(known("::1"), Some(vec!["::1".parse().expect("an address")]));
        assert_eq!((known("db"), known("db.example")), (None, None));
    }
}
