//! From a Service and its EndpointSlices to an upstream (compat/behaviour.md section 7).

use crate::Options;
use crate::aliases::service_named;
use crate::endpoint_budget::Weight;
use crate::ingress::{Role, Target};
use model::{Endpoints, Outside};
use objects::{EndpointSlice, ObjectKey, PortRef, Service, ServicePort, SliceEndpoint, Snapshot};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The protocol of everything that Ingresses name.
const TCP: &str = "TCP";

/// Who is behind a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Behind {
    /// Addresses.
    pub(crate) endpoints: Endpoints,
    /// A name to resolve instead.
    pub(crate) external: Option<(String, u16)>,
    /// Why there is nobody, where that is somebody's mistake.
    pub(crate) fault: Option<String>,
}

impl Behind {
    pub(crate) fn nobody(fault: String) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

/// Who is behind a target at this moment.
pub(crate) fn behind(target: &Target, snapshot: &Snapshot, options: &Options) -> Behind {
    if let Target::Name { host, port } = target {
        return named(host, *port);
    }
    let Some(key) = target.service() else {
        return Behind::nobody(
            "the backend names no port: add port.number or port.name".to_owned(),
        );
    };
    let Some(service) = snapshot.services.get(key) else {
        return Behind::nobody(format!(
            "Service {}/{} does not exist: create it, or name another",
            key.namespace, key.name
        ));
    };
    if service.kind == "ExternalName" {
        return external(target, service, snapshot, options);
    }
    let Some(port) = port_of(target, service) else {
        let known: Vec<String> = service.ports.iter().map(describe).collect();
        return Behind::nobody(format!(
            "Service {}/{} has no port {}: it has {}{}",
            key.namespace,
            key.name,
            wanted(target),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            number_for_name(target, service)
        ));
    };
    if let Some(address) = cluster_ip(target, service, port) {
        let endpoints = Endpoints { ready: vec![address], draining: Vec::new() };
        return Behind { endpoints, ..Behind::default() };
    }
    Behind { endpoints: endpoints(service, port, TCP, snapshot, options), ..Behind::default() }
}

/// What the list of endpoints behind a target would have at most; none where there is no such list.
pub(crate) fn weight(target: &Target, snapshot: &Snapshot) -> Option<Weight> {
    let Target::Service { service: key, .. } = target else { return None };
    let service = snapshot.services.get(key)?;
    let weight = |endpoints| Weight { created: service.meta.created, endpoints };
    if service.kind == "ExternalName" {
        let name = service.external_name.as_deref().unwrap_or_default().to_ascii_lowercase();
        let named = snapshot.services.get(&service_named(name.trim_end_matches('.'))?)?;
        let number = external_port(target, service)?;
        let port = named.ports.iter().find(|candidate| candidate.port == number)?;
        return Some(weight(count(named, port, TCP, snapshot)));
    }
    let port = port_of(target, service)?;
    if cluster_ip(target, service, port).is_some() {
        return Some(weight(1));
    }
    Some(weight(count(service, port, TCP, snapshot)))
}

/// How many endpoints a Service port has at most: all addresses, ready or not, for each port of theirs.
pub(crate) fn count(
    service: &Service,
    port: &ServicePort,
    protocol: &str,
    snapshot: &Snapshot,
) -> u64 {
    let slices = snapshot.slices.get(&service.meta.key).into_iter();
    let slices = slices.flat_map(|slices| slices.values()).filter(|slice| !slice.fqdn);
    let counts = slices.map(|slice| {
        let addresses: usize =
            slice.endpoints.iter().map(|endpoint| endpoint.addresses.len()).sum();
        addresses.saturating_mul(slice_ports(port, protocol, slice).len())
    });
    u64::try_from(counts.fold(0, usize::saturating_add)).unwrap_or(u64::MAX)
}

/// The address of the Service, where that is wanted and it has one (`service-upstream`).
fn cluster_ip(target: &Target, service: &Service, port: &ServicePort) -> Option<SocketAddr> {
    let Target::Service { role: Role::ClusterIp, .. } = target else { return None };
    Some(SocketAddr::new(service.cluster_ip.as_ref()?.parse().ok()?, port.port))
}

/// A host that a URL names: its address, or a name to resolve.
fn named(host: &str, port: u16) -> Behind {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => at(address, port),
        Err(_) => Behind { external: Some((host.to_owned(), port)), ..Behind::default() },
    }
}

/// An address that an object names.
fn at(address: IpAddr, port: u16) -> Behind {
    let ready = vec![SocketAddr::new(address, port)];
    Behind { endpoints: Endpoints { ready, draining: Vec::new() }, ..Behind::default() }
}

/// Whether a name is that of this machine, whatever a name server says (RFC 6761 section 6.3).
pub(crate) fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// What it stands for, if an operator allows that.
pub(crate) fn loopback(outside: &Outside) -> Option<IpAddr> {
    let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    both.into_iter().find(|address| outside.permits(*address))
}

fn wanted(target: &Target) -> String {
    target.service_ref().map_or_else(|| "at all".to_owned(), |service| service.port.to_string())
}

pub(crate) fn describe(port: &ServicePort) -> String {
    match &port.name {
        Some(name) => format!("{} ({name})", port.port),
        None => port.port.to_string(),
    }
}

/// The first port whose number, target or name is the one that the Ingress names.
fn port_of<'a>(target: &Target, service: &'a Service) -> Option<&'a ServicePort> {
    let Target::Service { port: Some(wanted), .. } = target else { return service.ports.first() };
    service.ports.iter().find(|port| match wanted {
        PortRef::Number(number) => {
            port.port == *number || port.target == Some(PortRef::Number(*number))
        }
        PortRef::Name(name) => {
            let by_target = matches!(&port.target, Some(PortRef::Name(target)) if target == name);
            port.name.as_deref() == Some(name) || by_target
        }
    })
}

/// The remedy where a number that the Service has stands in quotes as the name of a port.
fn number_for_name(target: &Target, service: &Service) -> String {
    let Target::Service { port: Some(PortRef::Name(name)), .. } = target else {
        return String::new();
    };
    let number = name.parse::<u16>().ok();
    let number = number.filter(|number| service.ports.iter().any(|port| port.port == *number));
    number
        .map_or_else(String::new, |number| format!("; write port.number: {number}, not port.name"))
}

/// The number that a Service port means where no slice says otherwise; a port without target is its own target.
fn numeric_target(port: &ServicePort) -> Option<u16> {
    match &port.target {
        Some(PortRef::Number(number)) => Some(*number).filter(|number| *number > 0),
        Some(PortRef::Name(_)) => None,
        None => Some(port.port),
    }
}

/// The endpoints of a Service port, by the protocol that its traffic has.
pub(crate) fn endpoints(
    service: &Service,
    port: &ServicePort,
    protocol: &str,
    snapshot: &Snapshot,
    options: &Options,
) -> Endpoints {
    let zones = options.zone.as_deref().and_then(|zone| Zones::of(service, zone));
    let mut found = Endpoints::default();
    let mut seen = BTreeSet::new();
    let slices = snapshot.slices.get(&service.meta.key).into_iter();
    let slices = slices.flat_map(|slices| slices.values());
    // Addresses of FQDN slices are names that nginx could not use, either.
    for slice in slices.filter(|slice| !slice.fqdn) {
        let ports = slice_ports(port, protocol, slice);
        let here = zones.as_ref().and_then(|zones| zones.filter(slice));
        for endpoint in &slice.endpoints {
            if here.is_some_and(|zone| !is_hinted(endpoint, zone)) {
                continue;
            }
            let list = match (endpoint.ready, endpoint.serving && endpoint.terminating) {
                (true, _) => &mut found.ready,
                (false, true) => &mut found.draining,
                (false, false) => continue,
            };
            let addresses =
                endpoint.addresses.iter().filter_map(|address| address.parse::<IpAddr>().ok());
            // An IPv4 address is one endpoint, however it is written.
            for address in addresses.map(|address| address.to_canonical()) {
                let sockets = ports.iter().map(|port| SocketAddr::new(address, *port));
                list.extend(sockets.filter(|socket| seen.insert((*socket, endpoint.ready))));
            }
        }
    }
    let ready: BTreeSet<SocketAddr> = found.ready.iter().copied().collect();
    found.draining.retain(|socket| !ready.contains(socket));
    found
}

/// Which endpoints of a Service are for the zone that this process is in (`--enable-topology-aware-routing`).
struct Zones<'a> {
    zone: &'a str,
    /// Only where an endpoint is meant for the zone (`trafficDistribution`).
    or_all: bool,
}

impl<'a> Zones<'a> {
    /// None where the Service does not ask for it.
    fn of(service: &Service, zone: &'a str) -> Option<Self> {
        let mode = service.meta.annotations.get("service.kubernetes.io/topology-mode");
        let close = matches!(
            service.traffic_distribution.as_deref(),
            Some("PreferClose" | "PreferSameZone")
        );
        let auto = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("auto"));
        (auto || close).then_some(Self { zone, or_all: close })
    }

    /// The zone, if the endpoints of a slice are to be told apart by it.
    fn filter(&self, slice: &EndpointSlice) -> Option<&'a str> {
        let hinted = |endpoint: &SliceEndpoint| is_hinted(endpoint, self.zone);
        let all_have_hints = slice.endpoints.iter().all(|endpoint| endpoint.zones.is_some());
        let applies = all_have_hints && (!self.or_all || slice.endpoints.iter().any(hinted));
        applies.then_some(self.zone)
    }
}

fn is_hinted(endpoint: &SliceEndpoint, zone: &str) -> bool {
    endpoint.zones.iter().flatten().any(|hint| hint == zone)
}

/// The ports of a slice that a Service port leads to.
fn slice_ports(port: &ServicePort, protocol: &str, slice: &EndpointSlice) -> Vec<u16> {
    if slice.ports.is_empty() {
        return numeric_target(port).into_iter().collect();
    }
    let carried = slice.ports.iter().filter(|candidate| candidate.protocol == protocol);
    if carried.clone().next().is_none() {
        return Vec::new();
    }
    let named = carried.filter(|candidate| port.name.is_none() || port.name == candidate.name);
    let mut ports: Vec<u16> = Vec::new();
    for number in named.filter_map(|candidate| candidate.port).filter(|number| *number > 0) {
        if !ports.contains(&number) {
            ports.push(number);
        }
    }
    if ports.is_empty() {
        ports.extend(numeric_target(port));
    }
    ports
}

/// Why an address is refused that an object names.
pub(crate) const NOT_OUTSIDE: &str = "is an address of this machine, of its links or of a cloud's metadata: name \
     another, or let an operator allow it with --allow-target-networks";

/// ExternalName: a name to resolve, or the address that it is.
fn external(target: &Target, service: &Service, snapshot: &Snapshot, options: &Options) -> Behind {
    let key = &service.meta.key;
    let written = service.external_name.as_deref().unwrap_or_default().to_ascii_lowercase();
    let name = written.trim_end_matches('.').to_owned();
    let refuse = |why: &str| {
        Behind::nobody(format!(
            "Service {}/{} has the externalName {name:?}, which {why}",
            key.namespace, key.name
        ))
    };
    if options.disable_external_names {
        return refuse("is switched off by --disable-svc-external-name");
    }
    let Some(port) = external_port(target, service) else {
        return refuse("needs a port: name one by number");
    };
    if is_localhost(&name) {
        let address = loopback(&options.outside);
        return address.map_or_else(|| refuse(NOT_OUTSIDE), |address| at(address, port));
    }
    if let Some(named) = service_named(&name) {
        return inside(&named, port, snapshot, options).unwrap_or_else(&refuse);
    }
    match name.parse::<IpAddr>() {
        Ok(address) if !options.outside.permits(address) => refuse(NOT_OUTSIDE),
        Ok(address) => at(address, port),
        Err(_) if is_dns_name(&name) => {
            // A dot at the end keeps search domains away.
            let root = if written.ends_with('.') { "." } else { "" };
            Behind { external: Some((format!("{name}{root}"), port)), ..Behind::default() }
        }
        Err(_) => refuse("is no DNS name: write one such as db.example"),
    }
}

/// The endpoints of a Service of the cluster that an ExternalName leads to, by the number of its port.
fn inside(
    named: &ObjectKey,
    port: u16,
    snapshot: &Snapshot,
    options: &Options,
) -> Result<Behind, &'static str> {
    let service = snapshot.services.get(named).ok_or("is a Service that does not exist")?;
    if service.kind == "ExternalName" {
        return Err("is an ExternalName itself: name the Service that has endpoints");
    }
    let port = service.ports.iter().find(|candidate| candidate.port == port);
    let port = port.ok_or("is a Service that has no such port")?;
    Ok(Behind { endpoints: endpoints(service, port, TCP, snapshot, options), ..Behind::default() })
}

fn external_port(target: &Target, service: &Service) -> Option<u16> {
    let port = port_of(target, service);
    match (port, target) {
        (Some(port), _) => numeric_target(port).or(Some(port.port)),
        (None, Target::Service { port: Some(PortRef::Number(number)), .. }) => Some(*number),
        (None, _) => None,
    }
}

pub(crate) fn is_dns_name(name: &str) -> bool {
    let label = |label: &str| {
        let inner = label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        !label.is_empty()
            && label.len() <= 63
            && inner
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}
