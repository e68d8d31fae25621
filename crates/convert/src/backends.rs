//! Services that requests go to, and how they are shared between an Ingress and its canary.

use model::policy::{Canary, CanaryTest};
use model::{Location, ServiceRef};
use objects::{IngressBackend, ObjectKey, PortRef, Snapshot};
use serde_json::{Value, json};

/// A Service port as a rule names it; none if the Service has no port of that name.
pub(crate) fn of(service: &ServiceRef, snapshot: &Snapshot) -> Option<Value> {
    let key = ObjectKey::new(service.namespace.clone(), service.name.clone());
    let port = match service.port.parse::<u16>() {
        Ok(port) => port,
        Err(_) => {
            let ports = &snapshot.services.get(&key)?.ports;
            ports.iter().find(|port| port.name.as_deref() == Some(&service.port))?.port
        }
    };
    Some(json!({"name": &*service.name, "port": port}))
}

/// The Service of a canary: that of the same host and path in its Ingress, else its only one.
pub(crate) fn of_canary(
    canary: &Canary,
    host: &str,
    location: &Location,
    snapshot: &Snapshot,
) -> Option<Value> {
    let key = ObjectKey::new(canary.origin.namespace.clone(), canary.origin.name.clone());
    let ingress = snapshot.ingresses.get(&key)?;
    let of_host = |named: &Option<String>| named.as_deref().unwrap_or("_").eq_ignore_ascii_case(host);
    let rules = ingress.rules.iter().filter(|rule| of_host(&rule.host));
    let paths = rules.flat_map(|rule| rule.paths.iter().flatten());
    let same = paths.filter(|path| {
        path.path == location.path || path.path.is_empty() && location.path == "/"
    });
    let backend = same.map(|path| &path.backend).next().or(ingress.default_backend.as_ref())?;
    let IngressBackend::Service { name, port: Some(port) } = backend else { return None };
    let port = match port {
        PortRef::Number(port) => port.to_string(),
        PortRef::Name(name) => name.clone(),
    };
    let service = ServiceRef {
        namespace: canary.origin.namespace.clone(),
        name: name.as_str().into(),
        port: port.as_str().into(),
    };
    of(&service, snapshot)
}

/// Matches of headers with the backends that they lead to; the last one has none.
pub(crate) fn shares(main: Value, canary: Option<(&Canary, Value)>) -> Vec<(Option<Value>, Vec<Value>)> {
    let Some((canary, other)) = canary else { return vec![(None, vec![main])] };
    let rules = &canary.rules;
    let mut all = Vec::new();
    if let Some(header) = &rules.header {
        let name = header.name.replace('_', "-");
        let exact = |value: &str| json!({"name": name, "type": "Exact", "value": value});
        match &header.test {
            CanaryTest::Word => {
                all.push((Some(exact("always")), vec![other.clone()]));
                all.push((Some(exact("never")), vec![main.clone()]));
            }
            CanaryTest::Value(value) => all.push((Some(exact(value)), vec![other.clone()])),
            CanaryTest::Pattern(pattern) => {
                let case = if pattern.ignores_case() { "(?i)" } else { "" };
                let value = format!("{case}.*(?:{}).*", pattern.source());
                let test = json!({"name": name, "type": "RegularExpression", "value": value});
                all.push((Some(test), vec![other.clone()]));
            }
            CanaryTest::Never => {}
        }
    }
    if let Some(cookie) = &rules.cookie {
        for (value, backend) in [("always", &other), ("never", &main)] {
            let value = format!("(?:.*; ?)?{}={value}(?:;.*)?", quoted(cookie));
            let test = json!({"name": "Cookie", "type": "RegularExpression", "value": value});
            all.push((Some(test), vec![backend.clone()]));
        }
    }
    let (weight, total) = (rules.weight.min(rules.total()), rules.total());
    let weighed = |mut backend: Value, weight: u32| {
        backend["weight"] = json!(weight);
        backend
    };
    all.push((None, match weight {
        0 => vec![main],
        all if all == total => vec![other],
        part => vec![weighed(main, total - part), weighed(other, part)],
    }));
    all
}

/// A text that matches itself.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
}
