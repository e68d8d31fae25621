//! `spec.tls` of a Gateway: the certificate that backends are shown, and what is asked of clients.

use super::authorities::{Referring, config_maps};
use super::authority_files::AuthorityFiles;
use super::certificates::is_secret;
use super::ungranted;
use crate::certificate;
use crate::settings::ABSENT;
use model::policy::{ClientDemand, ClientErrorPage, ClientVerification, Identity};
use objects::gateway::{FrontendTls, FrontendValidation, Gateway};
use objects::{ObjectKey, Snapshot};
use std::sync::Arc;

/// Certificates at most between a client's and its authority.
const DEPTH: u32 = 9;

/// Reason and message.
type Why = (&'static str, String);

/// The certificate that backends are shown, or reason and message of what is wrong with it.
pub(super) fn identity(gateway: &Gateway, snapshot: &Snapshot) -> Option<Result<Identity, Why>> {
    const FIELD: &str = "spec.tls.backend.clientCertificateRef";
    let named = gateway.backend_certificate.as_ref()?;
    let own = &gateway.meta.key.namespace;
    let wrong = |message: String| ("InvalidClientCertificateRef", format!("{FIELD}: {message}"));
    if !is_secret(named) {
        return Some(Err(wrong(format!("kind {} is not known; name a Secret", named.kind))));
    }
    let key = named.key(own);
    let ObjectKey { namespace, name } = &key;
    if !snapshot.grants.permit("Gateway", own, named) {
        let remedy = ungranted::remedy("Gateway", own, named, snapshot);
        let message = format!(
            "{FIELD}: Secret {namespace}/{name} may not be referred to from namespace {own}: {remedy}"
        );
        return Some(Err(("RefNotPermitted", message)));
    }
    let found = snapshot.secrets.get(&key).ok_or_else(|| ABSENT.into());
    let found = found.and_then(|secret| certificate::identity(secret));
    Some(found.map_err(|why| wrong(format!("Secret {namespace}/{name} {why}"))))
}

/// What the clients of a listener are asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// How their certificates are verified, or why nobody's can be.
    pub(super) verified: Result<Arc<ClientVerification>, Why>,
    /// The first reference that leads nowhere.
    pub(super) unresolved: Option<Why>,
}

/// What the clients of an HTTPS listener of this port are asked, if anything.
pub(super) fn asked(
    gateway: &Gateway,
    port: u16,
    snapshot: &Snapshot,
    files: &mut AuthorityFiles,
) -> Option<Asked> {
    let FrontendTls { default, ports } = gateway.frontend.as_ref()?;
    let own = ports.iter().find(|(number, _)| *number == port).map(|(_, own)| own);
    let FrontendValidation { authorities, falls_back } = own.unwrap_or(default).as_ref()?;
    let key = &gateway.meta.key;
    let referring = Referring {
        kind: Some("Gateway"),
        namespace: &key.namespace,
        field: "spec.tls.frontend",
        unknown_kind: "InvalidCACertificateKind",
    };
    let (found, unresolved) = referring.authorities(authorities, snapshot, files);
    let demand = if *falls_back { ClientDemand::OptionalUnknown } else { ClientDemand::Required };
    let verified = if found.is_empty() {
        let why = unresolved.as_ref().map(|(_, why)| why.clone());
        let why = why.unwrap_or_else(|| "spec.tls.frontend names no authority".to_owned());
        Err(("NoValidCACertificate", why))
    } else {
        Ok(Arc::new(ClientVerification {
            secret: format!("Gateway {}/{} port {port}", key.namespace, key.name),
            authorities: found,
            revocations: Arc::default(),
            demand,
            depth: DEPTH,
            subject: None,
            error_page: ClientErrorPage::Plain,
            pass_certificate: false,
        }))
    };
    Some(Asked { verified, unresolved })
}

/// Whether clients are let in whatever their certificates are worth, at some port.
pub(super) fn falls_back(gateway: &Gateway) -> bool {
    validations(gateway).any(|asked| asked.falls_back)
}

/// The ConfigMaps with authorities that a Gateway names.
pub(super) fn authorities_of(gateway: &Gateway) -> impl Iterator<Item = ObjectKey> {
    let own = &gateway.meta.key.namespace;
    validations(gateway).flat_map(move |asked| config_maps(&asked.authorities, own))
}

fn validations(gateway: &Gateway) -> impl Iterator<Item = &FrontendValidation> {
    let frontend = gateway.frontend.iter();
    frontend.flat_map(|FrontendTls { default, ports }| {
        default.iter().chain(ports.iter().filter_map(|(_, own)| own.as_ref()))
    })
}
