//! Redirects: to an address, to HTTPS.

use crate::gateway;
use model::policy::{Policy, TlsRedirect};
use model::{Configuration, Part, Server, Template, Variable};
use serde_json::{Value, json};

/// A redirect to what a template says, or why it cannot be said.
pub(crate) fn to(target: &Template, status: u16) -> Result<Value, &'static str> {
    const VARIABLES: &str = "a RequestRedirect has no variables";
    let (text, keeps) = match target.parts() {
        [Part::Text(text)] => (text.as_str(), false),
        [Part::Text(text), Part::Variable(Variable::RequestUri)] => (text.as_str(), true),
        [
            Part::Variable(Variable::Scheme),
            Part::Text(text),
            Part::Variable(Variable::RequestUri),
        ] => {
            let (host, port) = authority(text.strip_prefix("://").ok_or(VARIABLES)?)?;
            let mut redirect = json!({"hostname": host, "statusCode": status});
            if let Some(port) = port {
                redirect["port"] = json!(port);
            }
            return Ok(filter(redirect));
        }
        _ => return Err(VARIABLES),
    };
    let mut redirect = json!({"statusCode": status});
    let path = match text.split_once("://") {
        None if text.starts_with('/') => text,
        None => return Err("its target is no address"),
        Some((scheme @ ("http" | "https"), rest)) => {
            let (named, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let (host, port) = authority(named)?;
            redirect["scheme"] = json!(scheme);
            redirect["hostname"] = json!(host);
            if let Some(port) = port {
                redirect["port"] = json!(port);
            }
            path
        }
        Some(_) => return Err("a RequestRedirect knows the schemes http and https"),
    };
    if path.contains(['?', '#']) {
        return Err("a RequestRedirect changes no query");
    }
    if path.len() > 1024 {
        return Err("a RequestRedirect has a path of 1024 bytes at most");
    }
    if !keeps {
        let path = if path.is_empty() { "/" } else { path };
        redirect["path"] = json!({"type": "ReplaceFullPath", "replaceFullPath": path});
    } else if !path.is_empty() {
        return Err("a RequestRedirect puts no path in front of another one");
    }
    Ok(filter(redirect))
}

/// Host and port of an address, as the API server takes them.
fn authority(text: &str) -> Result<(String, Option<u16>), &'static str> {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let host = host.to_ascii_lowercase();
    if !is_host(&host) {
        return Err("its target names no host that a RequestRedirect could name");
    }
    let port = port.map(|port| port.parse::<u16>().ok().filter(|port| *port > 0));
    match port {
        Some(None) => Err("its target has no port that is one"),
        port => Ok((host, port.flatten())),
    }
}

/// Whether the API server takes a host name, in small letters, where it takes no wildcard.
pub(crate) fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_sign = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(is_sign)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

/// Whether requests over HTTP are sent to HTTPS.
pub(crate) fn is_to_tls(configuration: &Configuration, server: &Server, policy: &Policy) -> bool {
    let TlsRedirect { with_certificate, always, .. } = policy.tls_redirect;
    always || with_certificate && gateway::certificate_of(configuration, server).is_some()
}

/// The redirect to HTTPS.
pub(crate) fn to_tls(status: u16) -> Value {
    filter(json!({"scheme": "https", "statusCode": status}))
}

/// The redirect to another path of the same.
pub(crate) fn to_path(path: &str, status: u16) -> Value {
    let path = json!({"type": "ReplaceFullPath", "replaceFullPath": path});
    filter(json!({"path": path, "statusCode": status}))
}

/// The redirect to another name of the same.
pub(crate) fn to_host(host: &str, status: u16) -> Value {
    filter(json!({"hostname": host, "statusCode": status}))
}

fn filter(redirect: Value) -> Value {
    json!({"type": "RequestRedirect", "requestRedirect": redirect})
}

#[cfg(test)]
mod tests {
    use super::to;
    use model::Template;

    #[test]
    fn addresses_are_taken_apart() {
        let parse = |text: &str| to(&Template::parse(text).expect("a template"), 301);
        let redirect = parse("https://Shop.example:8443/new").expect("it can be said");
        let redirect = &redirect["requestRedirect"];
        assert_eq!(redirect["hostname"], "shop.example");
        assert_eq!(redirect["port"], 8443);
        assert_eq!(redirect["path"]["replaceFullPath"], "/new");
        let kept = parse("http://a.example$request_uri").expect("it can be said");
        assert!(kept["requestRedirect"].get("path").is_none());
        for odd in
            ["/a?b", "https://$host/a", "ftp://a/", "a", "https://u@a/", "http://a/b$request_uri"]
                .into_iter()
                .chain(["https://new-.test/a", "https://n.test:0/a", "$scheme://-a$request_uri"])
        {
            assert!(parse(odd).is_err(), "{odd}");
        }
    }
}
