//! `/configuration`: what is served, as JSON, with nothing in it that opens a door.

use crate::http_engine::HttpEngine;
use bytes::Bytes;
use model::{Certificate, Configuration};
use pem::{EncodeConfig, LineEnding, Pem};
use runtime::admin::Page;
use serde::Serialize;

/// Pieces of the page.
type Pieces = Box<dyn Iterator<Item = String> + Send>;

/// The page. Keys, passwords, values of header fields and parameters, texts of snippets and what opens a door in URLs
/// hide themselves (`model::Secret`, `model::UrlText`). It comes in pieces, an object each, so that whoever does not
/// read it holds no more of it than one.
pub(crate) fn page(configuration: Configuration) -> Page {
    Page::json_in_pieces(pieces(configuration).map(Bytes::from))
}

fn pieces(configuration: Configuration) -> impl Iterator<Item = String> + Send + 'static {
    let Configuration {
        global,
        servers,
        routes,
        listeners,
        tls_routes,
        upstreams,
        certificates,
        default_certificate,
        streams,
    } = configuration;
    let all = [
        ("\"global\":", Some(Box::new(std::iter::once(json(&global))) as Pieces)),
        (",\"default_certificate\":", Some(Box::new(std::iter::once(json(&default_certificate))))),
        (",\"servers\":", Some(map(servers))),
        (",\"upstreams\":", Some(map(upstreams))),
        (",\"certificates\":", Some(map(certificates))),
        (",\"routes\":", (!routes.is_empty()).then(|| map(routes))),
        (",\"listeners\":", (!listeners.is_empty()).then(|| map(listeners))),
        (",\"tls_routes\":", (!tls_routes.is_empty()).then(|| map(tls_routes))),
        (",\"streams\":", (!streams.is_empty()).then(|| map(streams))),
    ];
    let fields = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let fields = fields.flat_map(|(name, value)| std::iter::once(name.to_owned()).chain(value));
    std::iter::once("{".to_owned()).chain(fields).chain(std::iter::once("}".to_owned()))
}

/// An object of JSON, an entry at a time.
fn map<K, V>(entries: impl IntoIterator<Item = (K, V), IntoIter: Send + 'static>) -> Pieces
where
    K: Serialize,
    V: Serialize,
{
    let entries = entries.into_iter().enumerate().map(|(number, (key, value))| {
        let comma = if number == 0 { "" } else { "," };
        format!("{comma}{}:{}", json(&key), json(&value))
    });
    let (open, close) = (std::iter::once("{".to_owned()), std::iter::once("}".to_owned()));
    Box::new(open.chain(entries).chain(close))
}

/// What a part of a Configuration is written as; a test writes each of them.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// The chain for clients that name this host, as PEM; never its key. What answers handshakes says which one that is.
pub(crate) fn certificate(engine: &HttpEngine, host: &str) -> Result<String, String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match engine.certificate(&host) {
        Some(certificate) => Ok(pem(&certificate)),
        None if !engine.has_host(&host) => {
            Err(format!("there is no host {host}; `dbg conf` names all"))
        }
        None => Err(format!(
            "{host} has no certificate: clients get the self-signed one of the process"
        )),
    }
}

fn pem(certificate: &Certificate) -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let block = |der| pem::encode_config(&Pem::new("CERTIFICATE", der), lines);
    certificate.chain.iter().map(|der| block(&**der)).collect()
}

#[cfg(test)]
mod tests {
    use super::pieces;
    use model::Configuration;
    use std::path::Path;
    use translate::Options;

    const OBJECTS: &[&str] = &[
        include_str!("../tests/gateway/ground.yaml"),
        include_str!("../tests/gateway/matches.yaml"),
        include_str!("../tests/gateway/own-addresses.yaml"),
        include_str!("../tests/gateway/streams.yaml"),
        include_str!("../tests/tools/shop.yaml"),
    ];

    #[test]
    fn the_pieces_are_the_whole() {
        let text = OBJECTS.join("\n---\n");
        // Ports are filled in where the objects are served; here any will do.
        let text = text.split("PORT-").enumerate().map(|(number, part)| match number {
            0 => part.to_owned(),
            _ => format!(
                "{}{}",
                9000 + number,
                part.trim_start_matches(|c: char| c.is_alphanumeric() || c == '-')
            ),
        });
        let text: String = text.collect();
        let snapshot = objects::snapshot_of([(Path::new("objects.yaml"), text.as_str())]);
        let addresses = vec!["127.91.0.0/24".parse().expect("a network")];
        let options = Options { gateway_addresses: addresses, ..Options::default() };
        let configuration = translate::translate(&snapshot, &options).configuration;
        let lengths = [
            configuration.servers.len(),
            configuration.upstreams.len(),
            configuration.routes.len(),
            configuration.listeners.len(),
            configuration.streams.len(),
        ];
        assert!(!lengths.contains(&0), "something of each: {lengths:?}");
        for configuration in [Configuration::default(), configuration] {
            let whole = serde_json::to_value(&configuration).expect("JSON");
            let text: String = pieces(configuration).collect();
            let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(read, whole);
        }
    }
}
