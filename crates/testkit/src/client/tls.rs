//! The TLS side of the client: any version, any suite, and OpenSSL's names for what goes wrong.

use std::{io, net::IpAddr, pin::Pin, time::Duration};

use openssl::{
    error::ErrorStack,
    nid::Nid,
    pkey::PKey,
    ssl::{self, Ssl, SslContext, SslMethod, SslRef, SslVerifyMode, SslVersion},
    x509::{X509, X509NameRef, X509Ref},
};
use serde_json::{Map, Value, json};
use tokio_openssl::SslStream;

use crate::{
    certificates::Certificates,
    exchange::{Request, Tls},
    latin1,
    wire::{Failure, Stream, Wire, tls_failure},
};

/// The suites offered where a request does not name others.
const CIPHERS: &str =
    "@SECLEVEL=2:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM";

/// Shakes hands over a connection that nothing was read from yet.
pub(super) async fn connect(
    wire: Wire,
    request: &Request,
    name: &str,
    alpn: &str,
    certificates: &Certificates,
    patience: Duration,
) -> Result<SslStream<Box<dyn Stream>>, Failure> {
    let name = request.sni.as_deref().unwrap_or(name);
    if !sendable(name) {
        return Err(Failure::Unsendable);
    }
    let context = context(request, alpn, certificates).map_err(|stack| broken(&stack))?;
    let mut session = Ssl::new(&context).map_err(|stack| broken(&stack))?;
    if !name.is_empty() && !name.starts_with('[') && name.parse::<IpAddr>().is_err() {
        session.set_hostname(name).map_err(|stack| broken(&stack))?;
    }
    let mut stream = SslStream::new(session, wire.into_stream()).map_err(|stack| broken(&stack))?;
    let handshake = tokio::time::timeout(patience, Pin::new(&mut stream).connect());
    handshake.await.map_err(|_| Failure::Timeout)?.map_err(|error| failed(&error))?;
    Ok(stream)
}

/// The certificate that was shown and what was agreed on.
pub(super) fn inspect(session: &SslRef) -> Map<String, Value> {
    let certificate = session.peer_certificate();
    let subject =
        |nid| certificate.as_ref().and_then(|certificate| entry(certificate.subject_name(), nid));
    let issuer = certificate
        .as_ref()
        .and_then(|certificate| entry(certificate.issuer_name(), Nid::COMMONNAME));
    let mut out = Map::new();
    out.insert("cn".to_owned(), json!(subject(Nid::COMMONNAME)));
    out.insert("o".to_owned(), json!(subject(Nid::ORGANIZATIONNAME)));
    out.insert("issuer".to_owned(), json!(issuer));
    out.insert("sans".to_owned(), json!(certificate.as_deref().map(names).unwrap_or_default()));
    out.insert("version".to_owned(), json!(session.version_str()));
    out.insert("cipher".to_owned(), json!(session.current_cipher().map(ssl::SslCipherRef::name)));
    out.insert("alpn".to_owned(), json!(session.selected_alpn_protocol().map(latin1::text)));
    out
}

fn context(
    request: &Request,
    alpn: &str,
    certificates: &Certificates,
) -> Result<SslContext, ErrorStack> {
    let none = Tls::default();
    let wish = request.tls.as_ref().unwrap_or(&none);
    let mut builder = SslContext::builder(SslMethod::tls_client())?;
    builder.set_verify(SslVerifyMode::NONE);
    builder.set_cipher_list(CIPHERS)?;
    let min = wish.min.as_deref().unwrap_or("1.2");
    builder.set_min_proto_version(version(min))?;
    builder.set_max_proto_version(wish.max.as_deref().and_then(version))?;
    if matches!(min, "1.0" | "1.1") {
        builder.set_cipher_list("ALL:@SECLEVEL=0")?;
    }
    if let Some(ciphers) = &wish.ciphers {
        builder.set_cipher_list(ciphers)?;
    }
    let offered = wish.alpn.clone().unwrap_or_else(|| vec![alpn.to_owned()]);
    let protocols: Vec<u8> = offered
        .iter()
        .filter_map(|name| Some((u8::try_from(name.len()).ok()?, name)))
        .flat_map(|(length, name)| [&[length], name.as_bytes()].concat())
        .collect();
    if !protocols.is_empty() {
        builder.set_alpn_protos(&protocols)?;
    }
    if let Some(identity) =
        request.client_certificate.as_deref().and_then(|name| certificates.get(name))
    {
        let certificate = X509::from_pem(identity.certificate.as_bytes())?;
        builder.set_certificate(&certificate)?;
        let key = PKey::private_key_from_pem(identity.key.as_bytes())?;
        builder.set_private_key(&key)?;
    }
    Ok(builder.build())
}

fn version(text: &str) -> Option<SslVersion> {
    match text {
        "1.0" => Some(SslVersion::TLS1),
        "1.1" => Some(SslVersion::TLS1_1),
        "1.2" => Some(SslVersion::TLS1_2),
        "1.3" => Some(SslVersion::TLS1_3),
        _ => None,
    }
}

/// Whether the name can stand in a ClientHello: no label is empty or longer than 63 bytes.
fn sendable(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.is_empty() || name.split('.').all(|label| (1..64).contains(&label.len()))
}

/// A wish that OpenSSL does not grant.
fn broken(stack: &ErrorStack) -> Failure {
    let reason = stack.errors().last().and_then(|error| error.reason()).unwrap_or("configuration");
    Failure::Tls(reason.to_lowercase().replace([' ', '_'], "-"))
}

/// A handshake that did not succeed; an end is one only where the peer reset the connection.
fn failed(error: &ssl::Error) -> Failure {
    match error.io_error().map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => {
            Failure::Tls("unexpected-eof-while-reading".to_owned())
        }
        _ => tls_failure(error),
    }
}

fn entry(name: &X509NameRef, nid: Nid) -> Option<String> {
    Some(name.entries_by_nid(nid).next()?.data().to_string().ok()?.to_string())
}

fn names(certificate: &X509Ref) -> Vec<String> {
    let names = certificate.subject_alt_names();
    names.iter().flatten().filter_map(|name| name.dnsname().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_impossible_labels_cannot_be_sent() {
        assert!(
            sendable("a.test") && sendable("a.test.") && sendable("") && sendable(&"a".repeat(63))
        );
        assert!(!sendable("a..test") && !sendable(&"a".repeat(64)));
    }
}
