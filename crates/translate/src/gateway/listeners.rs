//! What Gateways ask for: their listeners, whether each can be served, and which routes it takes.

use super::added::{self, Set};
use super::authority_files::AuthorityFiles;
use super::certificates::{self, Certified, Shown, is_secret};
use super::client_certificates::{self, Asked};
use super::conflicts::{Group, conflicts};
use super::missing::note;
use super::reach::{Reach, Taken};
use super::status::{Condition, GatewayStatus, ListenerStatus, unserved};
use super::targets::port_of;
use super::unlisted;
use crate::settings::quote;
use crate::{GatewayServices, Options};
use model::policy::Identity;
use model::{
    CertificateId, Kind, Others, Problem, Scheme, Severity, Speaks, StreamPort, Transport,
};
use objects::gateway::{GROUP, Gateway, Listener};
use objects::{ObjectKey, Snapshot};
use std::sync::Arc;

/// A Gateway of a class of ours, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// The object.
    pub(super) gateway: Arc<Gateway>,
    /// Why nothing of it is served.
    pub(super) refused: Option<(&'static str, String)>,
    /// How it is reached.
    pub(super) reach: Reach,
    /// Which Service there is for it.
    pub(super) services: GatewayServices,
    /// The certificate that backends are shown, or reason and message of what is wrong with it.
    pub(super) identity: Option<Result<Identity, (&'static str, String)>>,
    /// The ListenerSets that name it, in the order of their precedence.
    pub(super) sets: Vec<Set>,
    /// Its listeners in the order of the specification: its own ones, then those of its sets.
    pub(super) listeners: Vec<Listening>,
}

/// What is spoken with the clients of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    /// HTTP, or TLS.
    Spoken(Speaks),
    /// Bytes or datagrams.
    Raw(Transport),
}

impl Protocol {
    /// The kinds of routes that it takes.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Spoken(Speaks::Http | Speaks::Https) => &["HTTPRoute", "GRPCRoute"],
            Self::Spoken(Speaks::TlsPassed | Speaks::TlsEnded) => &["TLSRoute"],
            Self::Raw(Transport::Tcp) => &["TCPRoute"],
            Self::Raw(Transport::Udp) => &["UDPRoute"],
        }
    }

    /// Whether it shows a certificate.
    pub(super) fn is_ended(self) -> bool {
        matches!(self, Self::Spoken(Speaks::Https | Speaks::TlsEnded))
    }
}

/// A listener as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listening {
    /// The number of the ListenerSet that it comes from; none: the Gateway's own.
    pub(super) set: Option<usize>,
    /// Its place there.
    at: usize,
    /// What is spoken with clients, if it is a protocol that is known.
    pub(super) protocol: Option<Protocol>,
    /// The kinds of routes that may attach.
    pub(super) takes: Vec<&'static str>,
    /// Whether only known kinds are allowed.
    kinds_known: bool,
    /// Why it is not served: reason and message of Accepted.
    refused: Option<(&'static str, String)>,
    /// Whether the Service of the Gateway does not lead here yet.
    is_pending: bool,
    /// Whether others on its port keep it from being served.
    conflict: Option<&'static str>,
    /// Whether its hosts are its own, though it may not be served.
    pub(super) keeps: bool,
    /// Whether another listener on its port where TLS ends has some of its hosts.
    pub(super) overlaps: bool,
    /// The hosts of more special listeners that somebody else wrote, where they are not kept apart by their places.
    pub(super) others: Option<Arc<Others>>,
    /// Its certificate, or reason and message of what is wrong with it.
    pub(super) certificate: Option<Result<ObjectKey, (&'static str, String)>>,
    /// What is wrong with others that it names: reason and message.
    unshown: Option<(&'static str, String)>,
    /// What its owner is told of its certificates, though it is served.
    warning: Option<String>,
    /// What its clients are asked.
    pub(super) clients: Option<Asked>,
}

impl Listening {
    /// How requests come in, where they do.
    pub(super) fn scheme(&self) -> Option<Scheme> {
        match self.protocol? {
            Protocol::Spoken(Speaks::Http) => Some(Scheme::Http),
            Protocol::Spoken(Speaks::Https) => Some(Scheme::Https),
            _ => None,
        }
    }

    /// Whether its protocol is one for routes of this kind, allowed or not.
    pub(super) fn may_take(&self, kind: &str) -> bool {
        self.protocol.is_some_and(|protocol| protocol.kinds().contains(&kind))
    }

    /// Whether requests are served there.
    pub(super) fn is_served(&self) -> bool {
        self.is_accepted() && !matches!(self.certificate, Some(Err(_)))
    }

    /// Whether it is a listener of its Gateway: nothing about it is refused, and nobody has its place already.
    pub(super) fn is_accepted(&self) -> bool {
        self.refused.is_none() && self.conflict.is_none()
    }
}

impl State {
    /// Reads a Gateway with the ListenerSets that name it.
    pub(super) fn read(
        (gateway, sets): (&Arc<Gateway>, Vec<Set>),
        reach: Reach,
        (snapshot, options, taken): (&Snapshot, &Options, Taken<'_>),
        certified: Certified<'_>,
        files: &mut AuthorityFiles,
    ) -> Self {
        let own = (&gateway.meta.key, &gateway.listeners[..]);
        let added = sets.iter().map(|set| (&set.object.meta.key, set.added()));
        let all = [own].into_iter().chain(added).map(|(key, listeners)| Group {
            namespace: &key.namespace,
            listeners,
            usable: listeners.iter().map(|one| is_meant(one, options)).collect(),
        });
        let groups: Vec<Group<'_>> = all.collect();
        let found = conflicts(&groups, |port| socket(port, options));
        let mut listeners = Vec::with_capacity(found.len());
        for (place, group) in groups.iter().enumerate() {
            let set = place.checked_sub(1);
            let from = if set.is_some() { "ListenerSet" } else { "Gateway" };
            for (at, listener) in group.listeners.iter().enumerate() {
                let (conflict, keeps) = found.get(listeners.len()).copied().unwrap_or_default();
                let from = (from, group.namespace);
                let read = Listening::read(
                    listener,
                    (gateway, from),
                    (snapshot, options),
                    &mut *certified,
                    &mut *files,
                );
                let port = port_of(listener);
                let refused = read.refused.or_else(|| reach.refuses(port?, taken));
                let refused = refused.or_else(|| unlisted::closed(listener, gateway, snapshot));
                let port = port.filter(|_| matches!(reach, Reach::Behind(_)));
                let is_pending = port.is_some_and(|port| reach.place(port).is_none());
                listeners.push(Listening { set, at, conflict, keeps, refused, is_pending, ..read });
            }
        }
        let identity = client_certificates::identity(gateway, snapshot);
        let refused = if options.raw { Some(unserved("Gateways")) } else { refused(gateway) };
        let services = options.gateway_services;
        let gateway = gateway.clone();
        let mut made = Self { gateway, refused, reach, services, identity, sets, listeners };
        made.keep_apart(|port| socket(port, options));
        made.find_overlaps(|port| socket(port, options));
        made
    }

    /// Each listener as its object has it, and as it was read.
    pub(super) fn each(&self) -> impl Iterator<Item = (&Listener, &Listening)> {
        self.listeners.iter().map(|read| (self.written(read), read))
    }

    /// A listener as its object has it.
    pub(super) fn listener(&self, index: usize) -> &Listener {
        self.written(&self.listeners[index])
    }

    fn written(&self, read: &Listening) -> &Listener {
        match read.set {
            None => &self.gateway.listeners[read.at],
            Some(place) => &self.sets[place].object.listeners[read.at],
        }
    }

    /// The object that a listener is written in.
    pub(super) fn owner(&self, read: &Listening) -> (Kind, &ObjectKey) {
        match read.set {
            None => (Kind::Gateway, &self.gateway.meta.key),
            Some(place) => (Kind::ListenerSet, &self.sets[place].object.meta.key),
        }
    }

    /// Whether requests are served at a listener.
    pub(super) fn serves(&self, index: usize) -> bool {
        let read = &self.listeners[index];
        !self.is_closed() && read.is_served() && !read.is_pending
    }

    /// The port of a listener that takes streams, if it is served.
    pub(super) fn stream(&self, index: usize) -> Option<StreamPort> {
        let Some(Protocol::Raw(transport)) = self.listeners[index].protocol else { return None };
        let address = self.own(index).filter(|_| self.serves(index))?.address;
        let own = Some(address.ip()).filter(|ip| !ip.is_unspecified());
        Some(StreamPort { transport, number: address.port(), address: own })
    }

    /// The Secrets that its listeners name, whether or not they may.
    pub(super) fn secrets(&self) -> impl Iterator<Item = ObjectKey> {
        let added = self.sets.iter().filter(|set| set.refused.is_none());
        secrets(&self.gateway).chain(added.flat_map(|set| added::secrets(&set.object)))
    }

    /// Whether none of its listeners is served, whatever they say.
    pub(super) fn is_closed(&self) -> bool {
        self.refused.is_some() || self.reach.is_closed()
    }

    /// What the owner of listeners, the Gateway or a ListenerSet of this number, is told of their certificates though
    /// they are served.
    pub(super) fn warnings(&self, set: Option<usize>) -> impl Iterator<Item = Problem> {
        let own = self.each().filter(move |(_, read)| read.set == set && self.refused.is_none());
        own.filter_map(|(listener, read)| {
            let message = format!("listener {}: {}", listener.name, read.warning.as_ref()?);
            let (kind, key) = self.owner(read);
            let told = note(kind, key, "spec.listeners", message);
            Some(Problem { severity: Severity::Warning, ..told })
        })
    }

    /// Its own listeners, without those of its sets.
    fn own_listeners(&self) -> impl Iterator<Item = (usize, (&Listener, &Listening))> {
        self.each().enumerate().take(self.gateway.listeners.len())
    }

    /// Its status, with as many routes attached to each listener.
    pub(super) fn status(&self, attached: impl Fn(usize) -> u32) -> GatewayStatus {
        let is_closed = self.is_closed();
        let listeners = self.own_listeners().map(|(index, (listener, read))| ListenerStatus {
            name: listener.name.clone(),
            kinds: read.takes.clone(),
            attached: attached(index),
            conditions: read.conditions(is_closed),
        });
        let good = self.own_listeners().filter(|(_, (_, read))| read.is_accepted()).count();
        let bad = || {
            let bad = self.own_listeners().filter(|(_, (_, read))| !read.is_accepted());
            let names: Vec<&str> = bad.map(|(_, (listener, _))| listener.name.as_str()).collect();
            format!("listeners that are not served: {}; see their conditions", names.join(", "))
        };
        let accepted = match &self.refused {
            Some((reason, message)) => Condition::fails("Accepted", reason, message.clone()),
            None if good == self.gateway.listeners.len() => {
                Condition::holds("Accepted", "Accepted")
            }
            None => {
                let holds = good > 0;
                Condition {
                    kind: "Accepted",
                    holds,
                    reason: "ListenersNotValid",
                    message: bad().into(),
                }
            }
        };
        let lacks = self.reach.lacks().filter(|_| accepted.holds);
        let programmed = if let Some((reason, message)) = lacks {
            Condition::fails("Programmed", reason, message)
        } else if accepted.holds {
            Condition::holds("Programmed", "Programmed")
        } else {
            Condition::fails("Programmed", "Invalid", accepted.message.clone())
        };
        GatewayStatus {
            generation: self.gateway.meta.generation,
            conditions: [accepted, programmed].into_iter().chain(self.of_certificates()).collect(),
            listeners: listeners.collect(),
            wanted: self.gateway.addresses.clone(),
            // What is not served at all is not to be found at the addresses of all, either.
            own: self.reach.addresses().or_else(|| self.refused.as_ref().map(|_| Vec::new())),
            service: self.service().map(Arc::new),
            sets: self.accepted_sets(),
        }
    }
}

impl State {
    /// The names of its own listeners that refer to what cannot be had; none if there are none of them.
    fn unresolved(&self) -> Option<String> {
        let all = self.own_listeners().filter(|(_, (_, read))| !read.resolved().holds);
        let names: Vec<&str> = all.map(|(_, (listener, _))| listener.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// What the Gateway as a whole is told about certificates of clients, those that it shows and those that it asks
    /// for.
    fn of_certificates(&self) -> impl Iterator<Item = Condition> {
        let resolved = self.identity.as_ref().map(|identity| match (identity, self.unresolved()) {
            (Err((reason, message)), _) => {
                Condition::fails("ResolvedRefs", reason, message.clone())
            }
            (Ok(_), Some(names)) => {
                let message = format!("listeners that refer to what cannot be had: {names}");
                Condition::fails("ResolvedRefs", "ListenersNotResolved", message)
            }
            (Ok(_), None) => Condition::holds("ResolvedRefs", "ResolvedRefs"),
        });
        let insecure = client_certificates::falls_back(&self.gateway).then(|| Condition {
            message: "clients are let in whatever their certificates are worth".into(),
            ..Condition::holds("InsecureFrontendValidationMode", "ConfigurationChanged")
        });
        resolved.into_iter().chain(insecure)
    }
}

impl Listening {
    /// Reads a listener, but for whose it is and what others want. `from` is the kind and the namespace of the object
    /// that it is written in.
    fn read(
        listener: &Listener,
        (gateway, from): (&Gateway, (&'static str, &str)),
        (snapshot, options): (&Snapshot, &Options),
        certified: Certified<'_>,
        files: &mut AuthorityFiles,
    ) -> Self {
        let (protocol, refused) = protocol(listener, options);
        let is_https = protocol == Some(Protocol::Spoken(Speaks::Https));
        let clients =
            is_https.then(|| client_certificates::asked(gateway, listener.port, snapshot, files));
        let clients = clients.flatten();
        let refused = refused.or_else(|| clients.as_ref().and_then(|asked| closed(asked, options)));
        let kinds = protocol.map_or(&[][..], Protocol::kinds);
        let known =
            |(group, kind): &(String, String)| group == GROUP && kinds.contains(&kind.as_str());
        let is_allowed = |kind: &&&'static str| {
            let mut named = listener.kinds.iter().filter(|named| known(named));
            listener.kinds.is_empty() || named.any(|(_, named)| named == **kind)
        };
        let is_ended = protocol.is_some_and(Protocol::is_ended);
        let found = is_ended.then(|| certificates::of(listener, from, snapshot, certified));
        let (certificate, unshown, warning) = match found {
            Some(Ok(Shown { secret, unshown, warning })) => (Some(Ok(secret)), unshown, warning),
            Some(Err(why)) => (Some(Err(why)), None, None),
            None => (None, None, None),
        };
        Self {
            set: None,
            at: 0,
            is_pending: false,
            protocol,
            takes: kinds.iter().filter(is_allowed).copied().collect(),
            kinds_known: listener.kinds.iter().all(known),
            refused,
            clients,
            conflict: None,
            keeps: false,
            overlaps: false,
            others: None,
            certificate,
            unshown,
            warning,
        }
    }
}

/// What takes more than the addresses of the process.
const APART: &str = "is served where Gateways have addresses of their own: start Fairway with --gateway-addresses or \
                     --gateway-services=load-balancer";

/// Why a listener that asks clients for certificates is not served. Where Gateways share addresses a host of one is
/// reached through the listeners of others, which ask for nothing: that would be an open door.
fn closed(asked: &Asked, options: &Options) -> Option<(&'static str, String)> {
    if options.gateways_share() {
        let message = format!("spec.tls.frontend {APART}");
        return Some(("UnsupportedValue", message));
    }
    asked.verified.as_ref().err().cloned()
}

impl Listening {
    /// The condition about what it refers to.
    fn resolved(&self) -> Condition {
        let fails = |(reason, message): &(&'static str, String)| {
            Condition::fails("ResolvedRefs", reason, message.clone())
        };
        let of_clients = self.clients.as_ref().and_then(|asked| asked.unresolved.as_ref());
        let shown = self.certificate.as_ref().and_then(|found| found.as_ref().err());
        if let Some(why) = shown.or(self.unshown.as_ref()).or(of_clients) {
            return fails(why);
        }
        if !self.kinds_known {
            let kinds = self.protocol.map_or(&[][..], Protocol::kinds).join(" and ");
            let message = format!("only {kinds} of {GROUP} is taken; take the other kinds out");
            return Condition::fails("ResolvedRefs", "InvalidRouteKinds", message);
        }
        Condition::holds("ResolvedRefs", "ResolvedRefs")
    }

    pub(super) fn conditions(&self, gateway_is_refused: bool) -> Vec<Condition> {
        let accepted = match (&self.refused, self.conflict) {
            (Some((reason, message)), _) => Condition::fails("Accepted", reason, message.clone()),
            (None, Some(reason)) => Condition::fails("Accepted", reason, conflict_text(reason)),
            (None, None) => Condition::holds("Accepted", "Accepted"),
        };
        let conflicted = match self.conflict {
            Some(reason) => Condition {
                kind: "Conflicted",
                holds: true,
                reason,
                message: conflict_text(reason).into(),
            },
            None => Condition::fails("Conflicted", "NoConflicts", ""),
        };
        let is_served = self.is_served() && !gateway_is_refused;
        let programmed = if is_served && self.is_pending {
            let message = "the Service of the Gateway does not lead here yet".to_owned();
            Condition::fails("Programmed", "Pending", message)
        } else if is_served {
            Condition::holds("Programmed", "Programmed")
        } else {
            let message = "it is not served; see the other conditions".to_owned();
            // Whose listener lost what it wants is told so wherever it looks.
            let reason = self.conflict.filter(|_| self.set.is_some()).unwrap_or("Invalid");
            Condition::fails("Programmed", reason, message)
        };
        let overlapping = self.overlaps.then(|| Condition {
            message: match self.scheme() {
                Some(_) => {
                    "another HTTPS listener on this port has some of its hosts: clients may send requests for them \
                     over connections that began there"
                }
                None => {
                    "another TLS listener on this port has some of its hosts: clients may use connections that began \
                     there for them"
                }
            }
            .into(),
            ..Condition::holds("OverlappingTLSConfig", "OverlappingHostnames")
        });
        [accepted, conflicted, self.resolved(), programmed].into_iter().chain(overlapping).collect()
    }
}

/// The name of the certificate that a Secret holds.
pub(super) fn certificate_id(secret: &ObjectKey) -> CertificateId {
    CertificateId::new(format!("{}/{}", secret.namespace, secret.name))
}

/// The Secrets that the listeners of a Gateway name.
pub(super) fn secrets(gateway: &Gateway) -> impl Iterator<Item = ObjectKey> {
    let own = gateway.meta.key.namespace.clone();
    let tls = gateway.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let named = tls.flat_map(|tls| &tls.certificates).chain(&gateway.backend_certificate);
    let named = named.filter(|named| is_secret(named));
    named.map(move |named| named.key(&own))
}

/// What a Gateway asks for that nobody can give.
fn refused(gateway: &Gateway) -> Option<(&'static str, String)> {
    let known = |kind: &str| matches!(kind, "IPAddress" | "Hostname");
    let foreign = gateway.addresses.iter().find(|(kind, _)| !known(kind));
    if gateway.has_parameters {
        let message = "spec.infrastructure.parametersRef: no parameters are known; take it out";
        return Some(("InvalidParameters", message.to_owned()));
    }
    if let Some(asked) = &gateway.routability {
        let message = format!(
            "spec.addresses: routability {} is not supported: who reaches the address would be left to chance; take it out",
            quote(asked)
        );
        return Some(("UnsupportedAddress", message));
    }
    foreign.map(|(kind, _)| {
        let message =
            format!("spec.addresses: type {kind} is not known; write IPAddress or Hostname");
        ("UnsupportedAddress", message)
    })
}

/// What is spoken with clients, and why that cannot be served.
fn protocol(
    listener: &Listener,
    options: &Options,
) -> (Option<Protocol>, Option<(&'static str, String)>) {
    let passed = listener.tls.as_ref().is_some_and(|tls| tls.passthrough);
    let (protocol, ports) = match listener.protocol.as_str() {
        "HTTP" => (Protocol::Spoken(Speaks::Http), Some([80, options.http_ports[0]])),
        "HTTPS" => (Protocol::Spoken(Speaks::Https), Some([443, options.http_ports[1]])),
        "TLS" if passed => (Protocol::Spoken(Speaks::TlsPassed), None),
        "TLS" => (Protocol::Spoken(Speaks::TlsEnded), None),
        "TCP" => (Protocol::Raw(Transport::Tcp), None),
        "UDP" => (Protocol::Raw(Transport::Udp), None),
        other => {
            let message =
                format!("protocol {other} is not supported; write HTTP, HTTPS, TLS, TCP or UDP");
            return (None, Some(("UnsupportedProtocol", message)));
        }
    };
    if protocol == Protocol::Spoken(Speaks::Https) && passed {
        let message = "tls.mode Passthrough is not supported for HTTPS; write Terminate";
        return (Some(protocol), Some(("UnsupportedValue", message.to_owned())));
    }
    if listener.tls.as_ref().is_some_and(|tls| tls.asks_clients) {
        let message = "tls.frontendValidation is not supported: certificates of clients would not be asked for; take it out";
        return (Some(protocol), Some(("UnsupportedValue", message.to_owned())));
    }
    if listener.asks_filters {
        let message =
            "filters is not supported: what it asks of requests would not be asked; take it out";
        return (Some(protocol), Some(("UnsupportedValue", message.to_owned())));
    }
    let refused = match ports {
        _ if !options.gateways_share() => None,
        Some(ports) if ports.contains(&listener.port) => None,
        Some(ports) => Some(format!(
            "port {} is not listened on: {} is served on port {}",
            listener.port, listener.protocol, ports[0]
        )),
        None => Some(format!("{} {APART}", listener.protocol)),
    };
    (Some(protocol), refused.map(|message| ("PortUnavailable", message)))
}

/// Whether a listener asks for what could be had at its port, and has its name there though something else of it is
/// wrong.
fn is_meant(listener: &Listener, options: &Options) -> bool {
    matches!(protocol(listener, options).1, None | Some(("UnsupportedValue", _)))
}

/// Which socket a port means: where Gateways share addresses, a port of the process has two numbers.
fn socket(port: u16, options: &Options) -> u16 {
    let shared = [80, 443].into_iter().zip(options.http_ports);
    let shared = shared.filter(|(_, own)| *own == port && options.gateways_share());
    shared.map(|(known, _)| known).next().unwrap_or(port)
}

fn conflict_text(reason: &str) -> String {
    match reason {
        "ProtocolConflict" => "another listener has this port with another protocol",
        _ => "another listener has this port and host name",
    }
    .to_owned()
}
