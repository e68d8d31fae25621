//! TLS towards clients.

use super::{Certificates, ciphers};
use crate::connection::TlsSession;
use crate::generation::Generation;
use crate::listen::session;
use arc_swap::ArcSwap;
use model::{Global, TlsSettings, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ResolvesServerCert, ServerSessionMemoryCache,
    StoresServerSessions,
};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// Sessions kept for resumption; about 10 MiB (`ssl-session-cache-size`).
const SESSIONS: usize = 20_480;
/// Bytes of plain text in one record (`ssl-buffer-size` is 4k; larger records cost less for large bodies).
const RECORD: usize = 16 << 10;
/// The alert for a name that nobody has (RFC 6066 section 3), as a record.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// How TLS is spoken with clients. Sessions survive every change of it.
#[derive(Clone, Debug)]
pub struct TlsFront {
    config: Arc<ServerConfig>,
    settings: TlsSettings,
    http2: bool,
    sessions: Arc<dyn StoresServerSessions>,
    certificates: Arc<ArcSwap<Certificates>>,
}

/// Gives each handshake the certificate for its name, as of now.
#[derive(Debug)]
struct ByName(Arc<ArcSwap<Certificates>>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load().choose(hello.server_name()))
    }
}

impl TlsFront {
    /// TLS with these settings and certificates.
    pub fn new(global: &Global, certificates: Certificates) -> Result<Self, rustls::Error> {
        let sessions: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(SESSIONS);
        let certificates = Arc::new(ArcSwap::from_pointee(certificates));
        let config = config(global, &sessions, &certificates)?;
        Ok(Self {
            config,
            settings: global.tls.clone(),
            http2: global.http2,
            sessions,
            certificates,
        })
    }

    /// The same after a change of settings and certificates.
    pub fn follow(
        &self,
        global: &Global,
        certificates: &Certificates,
    ) -> Result<Self, rustls::Error> {
        let mut next = self.clone();
        if next.settings != global.tls || next.http2 != global.http2 {
            next.config = config(global, &next.sessions, &next.certificates)?;
            next.settings = global.tls.clone();
            next.http2 = global.http2;
        }
        next.certificates.store(Arc::new(certificates.clone()));
        Ok(next)
    }

    /// Does the handshake; none if the client asked for a name that is refused.
    pub async fn accept(
        &self,
        tcp: TcpStream,
        generation: &Generation,
    ) -> io::Result<Option<(TlsStream<TcpStream>, TlsSession)>> {
        let start = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), tcp).await?;
        let known =
            start.client_hello().server_name().is_some_and(|name| generation.has_host(name));
        if self.settings.reject_unknown_names && !known {
            refuse(start.io).await?;
            return Ok(None);
        }
        let stream = start.into_stream(self.config.clone()).await?;
        let session = session(stream.get_ref().1);
        Ok(Some((stream, session)))
    }
}

/// Ends a handshake with the alert that says why.
async fn refuse(mut tcp: TcpStream) -> io::Result<()> {
    tcp.write_all(&UNRECOGNIZED_NAME).await?;
    tcp.shutdown().await
}

fn config(
    global: &Global,
    sessions: &Arc<dyn StoresServerSessions>,
    certificates: &Arc<ArcSwap<Certificates>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let settings = &global.tls;
    let provider = aws_lc_rs::default_provider();
    let cipher_suites = ciphers::chosen(&settings.ciphers, &provider.cipher_suites);
    let provider = CryptoProvider { cipher_suites, ..provider };
    let versions: Vec<&SupportedProtocolVersion> = settings
        .versions
        .iter()
        .map(|version| match version {
            TlsVersion::Tls12 => &version::TLS12,
            TlsVersion::Tls13 => &version::TLS13,
        })
        .collect();
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ByName(certificates.clone())));
    config.ignore_client_order = true;
    config.session_storage = match settings.session_cache {
        true => sessions.clone(),
        false => Arc::new(NoServerSessionStorage {}),
    };
    if settings.tickets {
        config.ticketer = aws_lc_rs::Ticketer::new()?;
    }
    config.send_tls13_tickets = 1;
    config.max_fragment_size = Some(RECORD);
    let protocols: &[&[u8]] = match global.http2 {
        true => &[b"h2", b"http/1.1", b"http/1.0"],
        false => &[b"http/1.1", b"http/1.0"],
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}
