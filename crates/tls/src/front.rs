//! TLS towards clients.

use super::Certificates;
use super::by_name::{ByListener, ByName};
use super::config::{Own, config};
use super::ocsp::Staples;
use super::sessions::Sessions;
use crate::{TlsSession, Verifier};
use arc_swap::ArcSwap;
use imbl::OrdMap;
use model::{CertificateId, Global, Outside, ServerName, Steps, TlsSettings};
use rustls::ServerConfig;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use wire::{Hello, ServerTls};

/// The alert for a name that nobody has (RFC 6066 section 3), as a record.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// The hosts that handshakes may name.
pub trait Hosts {
    /// The server for a host, in lower case and without a trailing dot; none if patterns take too many steps.
    fn server_of(&self, host: &str, steps: &Steps) -> Option<&ServerName>;

    /// Whether a server other than the catch-all answers for a host.
    fn has(&self, host: &str, steps: &Steps) -> bool;
}

/// How TLS is spoken with clients. Sessions survive every change of it but those of who may resume them.
#[derive(Clone, Debug)]
pub struct TlsFront {
    config: Arc<ServerConfig>,
    /// For hosts that ask clients for certificates, or have cipher suites of their own.
    own: OrdMap<ServerName, (Own, Arc<ServerConfig>)>,
    settings: TlsSettings,
    http2: bool,
    sessions: Sessions,
    by_name: ByName,
    /// Where responders of OCSP may be.
    outside: Outside,
}

impl TlsFront {
    /// TLS with these settings and certificates.
    pub fn new(
        global: &Global,
        certificates: Certificates,
        outside: Outside,
    ) -> Result<Self, rustls::Error> {
        let settings = global.tls.clone();
        let sessions = Sessions::new(settings.session_cache_size, settings.session_timeout);
        let certificates = Arc::new(ArcSwap::from_pointee(certificates));
        let by_name = ByName { certificates, staples: None };
        Ok(Self {
            config: config(global, &Own::default(), sessions.clone(), Arc::new(by_name.clone()))?,
            own: OrdMap::new(),
            settings,
            http2: global.http2,
            sessions,
            by_name,
            outside,
        })
    }

    /// The same after a change of settings, certificates and sites.
    pub fn follow(
        &self,
        global: &Global,
        certificates: &Certificates,
        changed: impl Iterator<Item = (ServerName, Own)>,
    ) -> Result<Self, rustls::Error> {
        let mut next = self.clone();
        if next.settings != global.tls || next.http2 != global.http2 {
            next.change(global)?;
        }
        for (name, own) in changed {
            next.server(global, &name, own)?;
        }
        next.by_name.certificates.store(Arc::new(certificates.clone()));
        Ok(next)
    }

    /// Certificates that wait for their turn to be asked about, how many may, and how often there was no room; none may
    /// where nothing is stapled.
    pub fn waiting_for_ocsp(&self) -> (u64, u64, u64) {
        self.by_name.staples.as_ref().map(|staples| staples.waiting()).unwrap_or_default()
    }

    fn change(&mut self, global: &Global) -> Result<(), rustls::Error> {
        let settings = global.tls.clone();
        let same_size = self.settings.session_cache_size == settings.session_cache_size;
        self.sessions = if same_size {
            self.sessions.living(settings.session_timeout)
        } else {
            Sessions::new(settings.session_cache_size, settings.session_timeout)
        };
        self.settings = settings;
        self.http2 = global.http2;
        self.by_name.staples = match (self.settings.ocsp, self.by_name.staples.take()) {
            (false, _) => None,
            (true, Some(staples)) => Some(staples),
            (true, None) => Staples::start(self.by_name.certificates.clone(), self.outside.clone()),
        };
        let by_name = self.by_name.clone();
        self.config = config(global, &Own::default(), self.sessions.clone(), Arc::new(by_name))?;
        for (name, (own, _)) in self.own.clone() {
            self.insert(global, name, own)?;
        }
        Ok(())
    }

    /// Looks at what a host has of its own.
    fn server(
        &mut self,
        global: &Global,
        name: &ServerName,
        own: Own,
    ) -> Result<(), rustls::Error> {
        if own == Own::default() {
            self.own.remove(name);
            return Ok(());
        }
        match self.own.get(name) {
            Some((before, _)) if *before == own => Ok(()),
            _ => self.insert(global, name.clone(), own),
        }
    }

    /// Who came in before the change does not resume a session after it.
    fn insert(&mut self, global: &Global, name: ServerName, own: Own) -> Result<(), rustls::Error> {
        let by_name = Arc::new(self.by_name.clone());
        let config = config(global, &own, self.sessions.apart(), by_name)?;
        self.own.insert(name, (own, config));
        Ok(())
    }

    /// How TLS is spoken with clients that ask for this name.
    fn config_for(
        &self,
        name: Option<&str>,
        hosts: &impl Hosts,
        steps: &Steps,
    ) -> &Arc<ServerConfig> {
        if self.own.is_empty() {
            return &self.config;
        }
        let name = name.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        let own = hosts.server_of(&name, steps).and_then(|server| self.own.get(server));
        own.map_or(&self.config, |(_, config)| config)
    }

    /// Does the handshake; none if the client asked for a name that is refused.
    pub async fn accept(
        &self,
        tcp: TcpStream,
        hosts: &impl Hosts,
    ) -> io::Result<Option<(ServerTls, TlsSession)>> {
        let hello = Hello::read(tcp).await?;
        let name = name_in(&hello);
        let steps = Steps::default();
        let config = self.config_for(name.as_deref(), hosts, &steps).clone();
        let is_known = |name| hosts.has(name, &steps);
        if self.settings.reject_unknown_names && !name.as_deref().is_some_and(is_known) {
            hello.refuse(&UNRECOGNIZED_NAME).await?;
            return Ok(None);
        }
        let tls = hello.answer(config).await?;
        let session = session(tls.agreed(), name);
        Ok(Some((tls, session)))
    }

    /// TLS for listeners that share an address, each with its hosts and its certificate: the most special one has a
    /// handshake, and its certificate whatever names that has. A handshake that nobody has fails, and so does one of a
    /// listener without a certificate that can be used. Where it is not HTTP, no protocol is agreed on.
    pub fn listeners<'l>(
        &self,
        global: &Global,
        certificates: &Certificates,
        listeners: impl Iterator<Item = (&'l ServerName, Option<&'l CertificateId>)>,
        is_http: bool,
        clients: Option<Arc<Verifier>>,
    ) -> Result<ListenersTls, rustls::Error> {
        let keys = listeners.map(|(hosts, id)| {
            let key = id.and_then(|id| certificates.key(id)).cloned();
            (hosts.as_str().to_owned(), key)
        });
        let by_listener =
            ByListener { keys: keys.collect(), staples: self.by_name.staples.clone() };
        let own = Own { clients, refuses: true, ..Own::default() };
        let made = config(global, &own, self.sessions.apart(), Arc::new(by_listener))?;
        if is_http {
            return Ok(ListenersTls(made));
        }
        let mut made = ServerConfig::clone(&made);
        made.alpn_protocols.clear();
        Ok(ListenersTls(Arc::new(made)))
    }
}

/// How TLS is spoken with the clients of listeners that share an address.
#[derive(Clone, Debug)]
pub struct ListenersTls(Arc<ServerConfig>);

impl ListenersTls {
    /// Does the handshake.
    ///
    /// # Errors
    /// It fails, or nobody has the name.
    pub async fn accept(&self, tcp: TcpStream) -> io::Result<(ServerTls, TlsSession)> {
        let hello = Hello::read(tcp).await?;
        let name = name_in(&hello);
        let tls = hello.answer(self.0.clone()).await?;
        let session = session(tls.agreed(), name);
        Ok((tls, session))
    }
}

/// The name that a client asks for. A second hello of the same handshake has the same one, or that fails.
fn name_in(hello: &Hello) -> Option<String> {
    hello.says().server_name().map(str::to_owned)
}

/// OpenSSL's name of a group.
fn curve(group: rustls::NamedGroup) -> &'static str {
    match group {
        rustls::NamedGroup::X25519 => "X25519",
        rustls::NamedGroup::secp256r1 => "prime256v1",
        rustls::NamedGroup::secp384r1 => "secp384r1",
        rustls::NamedGroup::secp521r1 => "secp521r1",
        group => group.as_str().unwrap_or_default(),
    }
}

/// What is known of a client's TLS session.
fn session(connection: &rustls::CommonState, server_name: Option<String>) -> TlsSession {
    use rustls::{HandshakeKind, ProtocolVersion};
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "TLSv1.3",
    };
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    TlsSession {
        version,
        cipher: suite.map(super::openssl_name).unwrap_or_default(),
        server_name,
        client: connection.peer_certificates().and_then(super::Peer::new),
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        curve: connection.negotiated_key_exchange_group().map_or("", |group| curve(group.name())),
    }
}
