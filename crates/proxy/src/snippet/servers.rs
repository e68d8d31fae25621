//! Servers that an `http-snippet` has: on ports of their own, or by their names on the controller's.

use crate::generation::{Site, Spot};
use model::snippet::{GlobalScope, OwnServer, Regex, VirtualName};
use model::{Backend, Origin, Problem, Server, ServerName, Severity, Spent, Steps};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The servers of an `http-snippet`.
#[derive(Debug)]
pub struct OwnServers {
    ports: BTreeMap<u16, Port>,
    /// What of them cannot be served.
    problems: Vec<Problem>,
}

/// Who answers on a port.
#[derive(Debug, Default)]
struct Port {
    servers: Vec<(Vec<VirtualName>, Arc<Site>)>,
    /// Who answers to hosts that none has.
    default: usize,
    addresses: BTreeSet<IpAddr>,
    proxy_protocol: bool,
}

impl OwnServers {
    /// The servers of a snippet, each compiled by `site`; none if it has none.
    pub fn new(
        http: &GlobalScope,
        mut site: impl FnMut(&Arc<Server>) -> Site,
    ) -> Option<Arc<Self>> {
        let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
        let mut problems = Vec::new();
        for own in &http.servers {
            let mut site = site(&server(own));
            if let Some(of_site) = &mut site.snippet
                && own.names.iter().any(|name| matches!(name, VirtualName::Regex(_)))
            {
                of_site.names.clone_from(&own.names);
            }
            let site = Arc::new(site);
            problems.extend(http.origin.iter().flat_map(|origin| denied(origin, own, &site)));
            for listen in &own.listens {
                let port = ports.entry(listen.port).or_default();
                if listen.default_server {
                    port.default = port.servers.len();
                }
                port.servers.push((own.names.clone(), site.clone()));
                port.addresses.insert(listen.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
                port.proxy_protocol |= listen.proxy_protocol;
            }
        }
        (!ports.is_empty()).then(|| Arc::new(Self { ports, problems }))
    }

    /// All of them.
    pub(crate) fn sites(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.ports.values().flat_map(|port| &port.servers).map(|(_, site)| site)
    }

    /// What of them cannot be served, and answers 503.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Who answers on a port to a host: on the controller's own ports only who has the name.
    pub fn find(
        &self,
        port: u16,
        host: &str,
        is_main: bool,
        steps: &Steps,
    ) -> Result<Option<&Arc<Site>>, Spent> {
        let Some(port) = self.ports.get(&port) else { return Ok(None) };
        let names = || port.servers.iter().flat_map(|(all, site)| all.iter().zip(repeat(site)));
        let named = names().find(|(name, _)| is(name, host)).map(|(_, site)| site);
        let named = named.or_else(|| longest(names(), |name| ends(name, host)));
        let named = named.or_else(|| longest(names(), |name| begins(name, host)));
        if named.is_some() {
            return Ok(named);
        }
        for (names, site) in &port.servers {
            for name in names {
                if let VirtualName::Regex(regex) = name
                    && regex.pattern.try_match(host.as_bytes(), steps)?
                {
                    return Ok(Some(site));
                }
            }
        }
        let default = port.servers.get(port.default).filter(|_| !is_main);
        Ok(default.map(|(_, site)| site))
    }

    /// Whether connections begin with a PROXY protocol header; none where that is the controller's to say.
    pub fn is_announced(&self, port: u16, main: [u16; 2]) -> Option<bool> {
        let own = self.ports.get(&port).filter(|_| !main.contains(&port));
        own.map(|port| port.proxy_protocol)
    }

    /// The addresses to listen on besides the controller's ports.
    pub fn addresses(&self, main: [u16; 2]) -> BTreeSet<SocketAddr> {
        let ports = self.ports.iter().filter(|(number, _)| !main.contains(number));
        let addresses = ports.flat_map(|(number, port)| {
            port.addresses.iter().map(|address| SocketAddr::new(*address, *number))
        });
        addresses.collect()
    }
}

/// What the engine knows of such a server: it has nothing but its snippet.
fn server(own: &OwnServer) -> Arc<Server> {
    let name = own.names.iter().find_map(|name| match name {
        VirtualName::Name(name) => Some(name.as_str()),
        VirtualName::Regex(_) => None,
    });
    // `_` is the catch-all of the controller.
    let name = name.filter(|name| *name != "_").unwrap_or_default();
    let snippet = Some(Arc::new(own.scope.clone()));
    Arc::new(Server { snippet, ..Server::new(ServerName::new(name)) })
}

/// The locations of a server that cannot be served: the object that has them is told, as there is no Ingress to tell.
fn denied(origin: &Origin, own: &OwnServer, site: &Site) -> BTreeSet<Problem> {
    let server = site.snippet.as_ref().map(|of_site| of_site.server);
    let spots = site.spots.iter().enumerate().filter(|(index, _)| Some(*index) != server);
    let problem = |spot: &Spot| {
        let Backend::Denied(reason) = &spot.location.backend else { return None };
        let (at, path) = (own.at, &spot.location.path);
        Some(Problem {
            origin: origin.clone(),
            key: Some("http-snippet".to_owned()),
            severity: Severity::Error,
            message: format!(
                "{at}: location {path} of this server: {reason}; it answers 503: mend proxy_ssl_…"
            )
            .into(),
        })
    };
    spots.filter_map(|(_, spot)| problem(spot)).collect()
}

/// Whose name covers most of the host; of two that cover the same the first.
fn longest<'p>(
    names: impl Iterator<Item = (&'p VirtualName, &'p Arc<Site>)>,
    covers: impl Fn(&VirtualName) -> Option<usize>,
) -> Option<&'p Arc<Site>> {
    let mut found: Option<(usize, &Arc<Site>)> = None;
    for (name, site) in names {
        if let Some(length) = covers(name)
            && found.is_none_or(|(most, _)| length > most)
        {
            found = Some((length, site));
        }
    }
    found.map(|(_, site)| site)
}

/// The expressions among the names of a server, one of which may have led a host to it; none if another name has.
pub(crate) fn expressions<'n>(
    names: &'n [VirtualName],
    host: &str,
) -> impl Iterator<Item = &'n Regex> {
    let others = |name: &VirtualName| {
        is(name, host) || ends(name, host).is_some() || begins(name, host).is_some()
    };
    let is_named = names.iter().any(others);
    names.iter().filter_map(move |name| match name {
        VirtualName::Regex(regex) if !is_named => Some(regex),
        VirtualName::Regex(_) | VirtualName::Name(_) => None,
    })
}

fn is(name: &VirtualName, host: &str) -> bool {
    matches!(name, VirtualName::Name(name) if name == host)
}

/// How much of the host `*.example.com` covers, and `.example.com` which is the name itself, too.
fn ends(name: &VirtualName, host: &str) -> Option<usize> {
    let VirtualName::Name(name) = name else { return None };
    let is_end = |end: &str| host.len() > end.len() && host.ends_with(end);
    match name.strip_prefix('*') {
        Some(end) => is_end(end).then_some(end.len()),
        None => {
            let bare = name.strip_prefix('.')?;
            (host == bare || is_end(name)).then_some(name.len())
        }
    }
}

/// How much of the host `example.*` covers.
fn begins(name: &VirtualName, host: &str) -> Option<usize> {
    let VirtualName::Name(name) = name else { return None };
    let start = name.strip_suffix('*')?;
    (host.len() > start.len() && host.starts_with(start)).then_some(start.len())
}

#[cfg(test)]
mod tests {
    use super::{begins, ends};
    use model::snippet::VirtualName;

    #[test]
    fn names_cover_what_they_cover_in_nginx() {
        let name = |text: &str| VirtualName::Name(text.to_owned());
        for (pattern, host, fits) in [
            ("*.a.test", "x.a.test", true),
            ("*.a.test", "y.x.a.test", true),
            ("*.a.test", "a.test", false),
            (".a.test", "a.test", true),
            (".a.test", "x.a.test", true),
            (".a.test", "xa.test", false),
            ("a.test", "a.test", false),
        ] {
            assert_eq!(ends(&name(pattern), host).is_some(), fits, "{pattern} {host}");
        }
        assert_eq!(begins(&name("www.*"), "www.a"), Some(4));
        assert_eq!(begins(&name("www.*"), "www."), None);
    }
}
