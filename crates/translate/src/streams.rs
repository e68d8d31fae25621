//! TCP and UDP services: `stream-snippet`, and the two ConfigMaps whose keys are ports and whose values are
//! `<namespace>/<service>:<port>[:PROXY[:PROXY]]` (compat/behaviour.md section 18). A bad entry touches no other one.

use crate::Options;
use crate::ingress::{Role, Target};
use crate::snippets;
use crate::upstream::{self, Behind};
use model::{Kind, Origin, Problem, Severity, Stream, StreamPort, Transport};
use objects::{ObjectKey, PortRef, Service, ServicePort, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What both ConfigMaps mean.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Where each port leads.
    pub(crate) streams: BTreeMap<StreamPort, Stream>,
    /// Entries that lead nowhere, and why.
    pub(crate) problems: Vec<Problem>,
    /// The ports that entries ask for, open or not.
    pub(crate) ports: BTreeSet<StreamPort>,
    /// Every Service that an entry names, existing or not.
    pub(crate) services: BTreeSet<ObjectKey>,
}

/// Reads both ConfigMaps.
pub(crate) fn read(snapshot: &Snapshot, options: &Options) -> Found {
    let mut found = Found::default();
    let both = [(Transport::Tcp, &options.tcp_services), (Transport::Udp, &options.udp_services)];
    for (transport, key) in both {
        let Some(key) = key else { continue };
        let Some(map) = snapshot.config_maps.get(key) else {
            found.problems.push(absent(key, transport));
            continue;
        };
        let reader = Reader { transport, snapshot, options };
        for (name, value) in &map.data {
            let fault = reader.entry(name, value, &mut found).err();
            found.problems.extend(fault.map(|(severity, message)| Problem {
                origin: Origin::new(Kind::ConfigMap, key.namespace.clone(), key.name.clone()),
                key: Some(name.clone()),
                severity,
                message: message.into(),
            }));
        }
    }
    snippet(snapshot, options, &mut found);
    found
}

/// What there is to say of a ConfigMap that a flag names and that is not there.
fn absent(key: &ObjectKey, transport: Transport) -> Problem {
    let kind = if transport == Transport::Tcp { "tcp" } else { "udp" };
    Problem {
        origin: Origin::new(Kind::ConfigMap, key.namespace.clone(), key.name.clone()),
        key: None,
        severity: Severity::Warning,
        message: format!(
            "does not exist, and --{kind}-services-configmap names it, so that no port of it is open: create it, or \
             leave the flag out"
        )
        .into(),
    }
}

/// Whether a key and its value lead a port to a Service.
pub(crate) fn is_entry(name: &str, value: &str) -> bool {
    name.trim().parse::<u16>().is_ok_and(|number| number > 0) && Entry::parse(value).is_some()
}

/// What the ConfigMap of the controller says besides.
fn snippet(snapshot: &Snapshot, options: &Options, found: &mut Found) {
    let Some(key) = &options.config_map else { return };
    let map = snapshot.config_maps.get(key);
    let Some(text) = map.and_then(|map| map.data.get(snippets::STREAM)) else { return };
    let (entries, mut said) = snippets::ports(text);
    for entry in entries {
        let reader = Reader { transport: entry.transport, snapshot, options };
        let fault = reader.entry(&entry.port, &entry.value, found).err();
        said.extend(
            fault.map(|(severity, text)| {
                (severity, format!("listen {}: {text}", entry.port).into())
            }),
        );
    }
    found.problems.extend(said.into_iter().map(|(severity, message)| Problem {
        origin: Origin::new(Kind::ConfigMap, key.namespace.clone(), key.name.clone()),
        key: Some(snippets::STREAM.to_owned()),
        severity,
        message,
    }));
}

struct Reader<'a> {
    transport: Transport,
    snapshot: &'a Snapshot,
    options: &'a Options,
}

type Fault = (Severity, String);

impl Reader<'_> {
    fn entry(&self, name: &str, value: &str, found: &mut Found) -> Result<(), Fault> {
        let error = |message: String| Err((Severity::Error, message));
        let number = name.trim().parse::<u16>().ok().filter(|number| *number > 0);
        let Some(number) = number else {
            return error("is no port and left out: write a number from 1 to 65535".to_owned());
        };
        if self.options.reserved_ports.contains(&number) {
            return error("is a port of Fairway itself and left out: choose another".to_owned());
        }
        let port = StreamPort { transport: self.transport, number, address: None };
        if found.streams.contains_key(&port) {
            return error(format!("port {number} is there twice: remove this entry"));
        }
        let Some(entry) = Entry::parse(value) else {
            return error(format!(
                "{value:?} names no Service port and the entry is left out: write such as demo/db:5432"
            ));
        };
        found.ports.insert(port);
        found.services.insert(entry.service.clone());
        let behind = self.behind(&entry)?;
        if behind.endpoints.usable().is_empty() && behind.external.is_none() {
            // Nobody's mistake: Pods come and go. ingress-nginx does not listen meanwhile, either.
            let text = format!("{}: no endpoint is ready, so the port is closed", entry.text());
            return Err((Severity::Notice, text));
        }
        let tcp = self.transport == Transport::Tcp;
        let stream = Stream {
            service: entry.text().into(),
            namespace: entry.service.namespace.clone(),
            endpoints: Arc::new(behind.endpoints),
            external: behind.external,
            takes_proxy: tcp && entry.takes_proxy,
            gives_proxy: tcp && entry.gives_proxy,
            shares: Vec::new(),
        };
        found.streams.insert(port, stream);
        entry.odd.map_or(Ok(()), |word| {
            let text = format!(
                "{word:?} is not PROXY and counts for nothing: write {0}:PROXY where clients send the header, and \
                 {0}::PROXY where the Service gets it",
                entry.text()
            );
            Err((Severity::Warning, text))
        })
    }

    fn behind(&self, entry: &Entry<'_>) -> Result<Behind, Fault> {
        let error = |message: String| (Severity::Error, message);
        let Some(service) = self.snapshot.services.get(&entry.service) else {
            let message = format!("{}: there is no such Service, create it", entry.text());
            return Err(error(message));
        };
        if service.kind == "ExternalName" {
            let port = Some(entry.port.clone());
            let service = entry.service.clone();
            let target = Target::Service { service, port, role: Role::Backend };
            let behind = upstream::behind(&target, self.snapshot, self.options);
            return behind.fault.clone().map_or(Ok(behind), |fault| Err(error(fault)));
        }
        let Some(port) = self.port(entry, service) else {
            let known: Vec<String> = service.ports.iter().map(upstream::describe).collect();
            return Err(error(format!(
                "{}: the Service has no such {} port, it has {}",
                entry.text(),
                self.protocol(),
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        };
        let endpoints =
            upstream::endpoints(service, port, self.protocol(), self.snapshot, self.options);
        Ok(Behind { endpoints, ..Behind::default() })
    }

    /// Target ports do not count here, unlike in Ingresses.
    fn port<'a>(&self, entry: &Entry<'_>, service: &'a Service) -> Option<&'a ServicePort> {
        service.ports.iter().filter(|port| port.protocol == self.protocol()).find(|port| {
            match &entry.port {
                PortRef::Number(number) => port.port == *number,
                PortRef::Name(name) => port.name.as_ref() == Some(name),
            }
        })
    }

    fn protocol(&self) -> &'static str {
        match self.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        }
    }
}

/// A value, taken apart.
struct Entry<'a> {
    service: ObjectKey,
    port: PortRef,
    written: (&'a str, &'a str),
    takes_proxy: bool,
    gives_proxy: bool,
    /// A word in the place of PROXY.
    odd: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn parse(value: &'a str) -> Option<Self> {
        let fields: Vec<&str> = value.split(':').collect();
        let (name, port) = (fields.first()?, fields.get(1)?);
        let (namespace, service) = name.split_once('/')?;
        if namespace.is_empty() || service.is_empty() || service.contains('/') || port.is_empty() {
            return None;
        }
        let is_proxy =
            |at: usize| fields.get(at).is_some_and(|field| field.eq_ignore_ascii_case("PROXY"));
        Some(Self {
            service: ObjectKey::new(namespace, service),
            port: port.parse().map_or_else(|_| PortRef::Name((*port).to_owned()), PortRef::Number),
            written: (name, port),
            takes_proxy: is_proxy(2),
            gives_proxy: fields.len() == 4 && is_proxy(3),
            odd: fields
                .iter()
                .enumerate()
                .skip(2)
                .find(|odd| !odd.1.is_empty() && !is_proxy(odd.0))
                .map(|odd| *odd.1),
        })
    }

    fn text(&self) -> String {
        format!("{}:{}", self.written.0, self.written.1)
    }
}
