//! The TLS side of the fixtures: asks for a client certificate and says what it saw.

use std::{io, sync::Arc};

use rustls::{
    ProtocolVersion, RootCertStore, ServerConfig, ServerConnection,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::net::TcpStream;
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{
    certificates::{Certificates, Identity},
    exchange::SeenTls,
};

/// What every TLS connection starts with.
const HANDSHAKE: u8 = 22;

/// Accepts connections as `echo-tls.demo.svc`; clients of `ca` may show their certificates.
pub(super) struct Acceptor {
    config: ServerConfig,
}

impl Acceptor {
    pub(super) fn new(certificates: &Certificates) -> Self {
        let get =
            |name: &str| certificates.get(name).expect("the fixtures name existing certificates");
        let config =
            config(get("echo-tls"), get("ca")).expect("the fixture certificates are valid");
        Self { config }
    }

    /// Shakes hands; the protocol is agreed on where the client offers it, and nothing is where it offers others.
    pub(super) async fn accept(
        &self,
        socket: TcpStream,
        protocol: &[u8],
    ) -> io::Result<(TlsStream<TcpStream>, SeenTls)> {
        let mut first = [0];
        socket.peek(&mut first).await?;
        if first != [HANDSHAKE] {
            // Who does not speak TLS at all gets no alert, just the end.
            return Err(io::ErrorKind::InvalidData.into());
        }
        let start = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), socket).await?;
        let mut config = self.config.clone();
        if start.client_hello().alpn().is_some_and(|mut offered| offered.any(|one| one == protocol))
        {
            config.alpn_protocols = vec![protocol.to_vec()];
        }
        let stream = start.into_stream(Arc::new(config)).await?;
        let seen = seen(stream.get_ref().1);
        Ok((stream, seen))
    }
}

fn config(own: &Identity, clients: &Identity) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let certificate = |identity: &Identity| {
        CertificateDer::from_pem_slice(identity.certificate.as_bytes())
            .map_err(|error| rustls::Error::General(error.to_string()))
    };
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes())
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate(clients)?)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate(own)?], key)
}

fn seen(connection: &ServerConnection) -> SeenTls {
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => Some("TLSv1.2"),
        Some(ProtocolVersion::TLSv1_3) => Some("TLSv1.3"),
        _ => None,
    };
    let client = connection.peer_certificates().and_then(|chain| common_name(chain.first()?));
    SeenTls {
        sni: connection.server_name().map(str::to_owned),
        client,
        version: version.map(str::to_owned),
    }
}

fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let name = certificate.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}
