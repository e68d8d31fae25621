//! Services that requests go to, and how they are shared between an Ingress and its canary.

use model::policy::{Canary, CanaryTest};
use model::{Location, ServiceRef};
use objects::{IngressBackend, ObjectKey, PortRef, ServicePort, Snapshot};
use serde_json::{Value, json};

/// A Service port as a rule of a route in this namespace names it, or why it cannot.
pub(crate) fn of(
    service: &ServiceRef,
    namespace: &str,
    snapshot: &Snapshot,
) -> Result<Value, String> {
    let ServiceRef { namespace: own, name, port } = service;
    if &**own != namespace {
        return Err(format!(
            "Service {own}/{name} is of another namespace, which a ReferenceGrant there would have to allow"
        ));
    }
    let number = port.parse::<u16>().ok();
    let key = ObjectKey::new(own.clone(), name.clone());
    let Some(found) = snapshot.services.get(&key) else {
        let none = || {
            format!(
                "Service {own}/{name} is not there, and the number of its port {port} not known"
            )
        };
        return Ok(reference(name, number.ok_or_else(none)?));
    };
    // The first port whose number, target or name is the one that the Ingress names.
    let is_meant = |one: &&ServicePort| match number {
        Some(number) => one.port == number || one.target == Some(PortRef::Number(number)),
        None => {
            let by_target =
                matches!(&one.target, Some(PortRef::Name(target)) if **target == **port);
            one.name.as_deref() == Some(port) || by_target
        }
    };
    match (found.ports.iter().find(is_meant), number) {
        (Some(found), _) => Ok(reference(name, found.port)),
        // A Service that only names another host lists no ports.
        (None, Some(number)) => Ok(reference(name, number)),
        (None, None) => Err(format!("Service {own}/{name} has no port {port}")),
    }
}

fn reference(name: &str, port: u16) -> Value {
    json!({"name": name, "port": port})
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
    let of_host =
        |named: &Option<String>| named.as_deref().unwrap_or("_").eq_ignore_ascii_case(host);
    let rules = ingress.rules.iter().filter(|rule| of_host(&rule.host));
    let paths = rules.flat_map(|rule| rule.paths.iter().flatten());
    let same = paths
        .filter(|path| path.path == location.path || path.path.is_empty() && location.path == "/");
    let backend = same.map(|path| &path.backend).next().or(ingress.default_backend.as_deref())?;
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
    of(&service, &canary.origin.namespace, snapshot).ok()
}

/// Matches of headers with the backends that they lead to; the last one has none.
pub(crate) fn shares(
    main: Value,
    canary: Option<(&Canary, Value)>,
) -> Vec<(Option<Value>, Vec<Value>)> {
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
            // Names of cookies ignore the case.
            let value = format!("(?:.*; ?)?(?i:{})={value}(?:;.*)?", quoted(cookie));
            let test = json!({"name": "Cookie", "type": "RegularExpression", "value": value});
            all.push((Some(test), vec![backend.clone()]));
        }
    }
    let (weight, total) = (rules.weight.min(rules.total()), rules.total());
    let weighed = |mut backend: Value, weight: u32| {
        backend["weight"] = json!(weight);
        backend
    };
    all.push((
        None,
        match weight {
            0 => vec![main],
            all if all == total => vec![other],
            part => vec![weighed(main, total - part), weighed(other, part)],
        },
    ));
    all
}

/// A text that matches itself.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
}
