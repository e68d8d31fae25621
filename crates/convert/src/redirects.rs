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
            let host = text.strip_prefix("://").ok_or(VARIABLES)?;
            return Ok(filter(json!({"hostname": host, "statusCode": status})));
        }
        _ => return Err(VARIABLES),
    };
    let mut redirect = json!({"statusCode": status});
    let path = match text.split_once("://") {
        None if text.starts_with('/') => text,
        None => return Err("its target is no address"),
        Some((scheme @ ("http" | "https"), rest)) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
            if host.is_empty() || !host.chars().all(is_name) {
                return Err("its target names no host that a RequestRedirect could name");
            }
            redirect["scheme"] = json!(scheme);
            redirect["hostname"] = json!(host.to_ascii_lowercase());
            if let Some(port) = port {
                let port: u16 = port.parse().map_err(|_| "its target has no port that is one")?;
                redirect["port"] = json!(port);
            }
            path
        }
        Some(_) => return Err("a RequestRedirect knows the schemes http and https"),
    };
    if path.contains(['?', '#']) {
        return Err("a RequestRedirect changes no query");
    }
    if !keeps {
        let path = if path.is_empty() { "/" } else { path };
        redirect["path"] = json!({"type": "ReplaceFullPath", "replaceFullPath": path});
    } else if !path.is_empty() {
        return Err("a RequestRedirect puts no path in front of another one");
    }
    Ok(filter(redirect))
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
        {
            assert!(parse(odd).is_err(), "{odd}");
        }
    }
}
