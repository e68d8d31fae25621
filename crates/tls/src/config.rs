//! From settings to how TLS is spoken with clients: once for the process, and once more for each host that asks for
//! certificates of clients or has cipher suites of its own.

use super::asks::{Asks, Demands};
use super::sessions::Sessions;
use super::tickets::Tickets;
use super::{Verifier, ciphers};
use model::policy::{Ciphers, ClientDemand};
use model::{Global, TlsSettings, TlsVersion};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, ProducesTickets, ResolvesServerCert};
use rustls::{Error, NamedGroup, ServerConfig, SupportedProtocolVersion, version};
use std::sync::Arc;

/// What a host has of its own.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The cipher suites that it takes.
    pub ciphers: Option<Ciphers>,
    /// What it asks of clients.
    pub clients: Option<Arc<Verifier>>,
    /// Whether the handshake itself fails for whoever must show a good certificate and does not, so that no request is
    /// read.
    pub refuses: bool,
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        let id = |own: &Self| own.clients.as_ref().map(Arc::as_ptr);
        self.ciphers == other.ciphers && id(self) == id(other) && self.refuses == other.refuses
    }
}

impl Own {
    /// What keeps the tickets of its sessions apart from others: who is trusted, and whether anybody is asked.
    fn part(&self) -> Vec<u8> {
        let Some(clients) = &self.clients else { return Vec::new() };
        // Where handshakes refuse nobody, somebody may have come in whom others refuse.
        let mut part = vec![clients.settings.demand as u8, u8::from(self.refuses)];
        clients.settings.authorities.iter().for_each(|authority| part.extend_from_slice(authority));
        part
    }
}

/// How TLS is spoken.
pub(super) fn config(
    global: &Global,
    own: &Own,
    sessions: Sessions,
    certificates: Arc<dyn ResolvesServerCert>,
) -> Result<Arc<ServerConfig>, Error> {
    let settings = &global.tls;
    let provider = Arc::new(provider(settings, own));
    let versions: Vec<&SupportedProtocolVersion> = settings
        .versions
        .iter()
        .map(|version| match version {
            TlsVersion::Tls12 => &version::TLS12,
            TlsVersion::Tls13 => &version::TLS13,
        })
        .collect();
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions)?;
    let asking =
        own.clients.as_ref().filter(|clients| clients.settings.demand != ClientDemand::Off);
    let builder = match asking {
        None => builder.with_no_client_auth(),
        Some(clients) if own.refuses && clients.settings.demand == ClientDemand::Required => {
            let (authorities, verifier) = (clients.subjects().to_vec(), clients.clone());
            builder.with_client_cert_verifier(Arc::new(Demands { authorities, verifier, provider }))
        }
        Some(clients) => {
            let authorities = clients.subjects().to_vec();
            builder.with_client_cert_verifier(Arc::new(Asks { authorities, provider }))
        }
    };
    let mut config = builder.with_cert_resolver(certificates);
    config.ignore_client_order =
        own.ciphers.as_ref().and_then(|own| own.prefer_server).unwrap_or(true);
    config.session_storage = if settings.session_cache {
        Arc::new(sessions)
    } else {
        Arc::new(NoServerSessionStorage {})
    };
    if settings.tickets {
        config.ticketer = ticketer(settings, own)?;
    }
    config.send_tls13_tickets = 1;
    config.max_fragment_size = Some(settings.record_size);
    let protocols: &[&[u8]] =
        if global.http2 { &[b"h2", b"http/1.1", b"http/1.0"] } else { &[b"http/1.1", b"http/1.0"] };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

fn ticketer(settings: &TlsSettings, own: &Own) -> Result<Arc<dyn ProducesTickets>, Error> {
    let Some(key) = &settings.ticket_key else { return aws_lc_rs::Ticketer::new() };
    let tickets = Tickets::new(key, &own.part(), settings.session_timeout);
    let tickets = tickets.ok_or_else(|| Error::General("the ticket key is unusable".to_owned()))?;
    Ok(Arc::new(tickets))
}

/// The suites and groups that are wanted.
fn provider(settings: &TlsSettings, own: &Own) -> CryptoProvider {
    let provider = aws_lc_rs::default_provider();
    let own = own.ciphers.as_ref().map(|own| &own.suites).filter(|suites| !suites.is_empty());
    let suites = own.unwrap_or(&settings.ciphers);
    CryptoProvider {
        cipher_suites: ciphers::chosen(suites, &provider.cipher_suites),
        kx_groups: groups(&settings.curves, &provider.kx_groups),
        ..provider
    }
}

/// The groups of `names` in that order; all that there are if none is known.
fn groups(
    names: &[String],
    all: &[&'static dyn SupportedKxGroup],
) -> Vec<&'static dyn SupportedKxGroup> {
    let group = |name: &String| {
        let meant = match name.as_str() {
            "X25519" => NamedGroup::X25519,
            "prime256v1" | "secp256r1" | "P-256" => NamedGroup::secp256r1,
            "secp384r1" | "P-384" => NamedGroup::secp384r1,
            "X25519MLKEM768" => NamedGroup::X25519MLKEM768,
            _ => return None,
        };
        aws_lc_rs::ALL_KX_GROUPS.iter().find(|group| group.name() == meant).copied()
    };
    let chosen: Vec<_> = names.iter().filter_map(group).collect();
    if chosen.is_empty() { all.to_vec() } else { chosen }
}
