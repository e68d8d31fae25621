//! `/configuration`: what is served, as JSON, with nothing in it that opens a door.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use model::{Alias, Certificate, Configuration, Server};
use runtime::admin::Page;

/// The page. Keys, passwords, values of header fields and parameters, texts of snippets and what opens a door in URLs
/// hide themselves (`model::Secret`, `model::UrlText`).
pub(crate) fn page(configuration: &Configuration) -> Page {
    match serde_json::to_value(configuration) {
        Ok(value) => Page::json(value.to_string()),
        Err(error) => Page::failed(&error),
    }
}

/// The chain for clients that name this host, as PEM; never its key.
pub(crate) fn certificate(configuration: &Configuration, host: &str) -> Result<String, String> {
    let host = host.to_ascii_lowercase();
    let is_called = |server: &&Server, name: &str| {
        let aliases = server.aliases.iter().filter_map(|alias| match alias {
            Alias::Name(name) => Some(name.to_string()),
            Alias::Below(_) | Alias::Beginning(_) | Alias::Pattern(_) => None,
        });
        server.name.to_string() == name || aliases.into_iter().any(|alias| alias == name)
    };
    let find = |name: &str| {
        configuration
            .servers
            .values()
            .map(|server| &**server)
            .find(|server| is_called(server, name))
    };
    let parent = host.split_once('.').map(|(_, rest)| format!("*.{rest}"));
    let server = find(&host).or_else(|| find(&parent?));
    let named = server.and_then(|server| server.certificate.as_ref());
    let id = named.or(configuration.default_certificate.as_ref());
    match id.and_then(|id| configuration.certificates.get(id)) {
        Some(certificate) => Ok(pem(certificate)),
        None if server.is_none() => Err(format!("there is no host {host}; `dbg conf` names all")),
        None => Err(format!(
            "{host} has no certificate: clients get the self-signed one of the process"
        )),
    }
}

fn pem(certificate: &Certificate) -> String {
    let mut text = String::new();
    for der in &certificate.chain {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in BASE64_STANDARD.encode(der).as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}
