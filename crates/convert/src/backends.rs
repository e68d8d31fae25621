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
    if !snapshot.services.contains_key(&key) {
        let none = || {
            format!(
                "Service {own}/{name} is not there, and the number of its port {port} not known"
            )
        };
        return Ok(reference(name, number.ok_or_else(none)?));
    }
    match (port_of(service, snapshot), number) {
        (Some(found), _) => Ok(reference(name, found.port)),
        // A Service that only names another host lists no ports.
        (None, Some(number)) => Ok(reference(name, number)),
        (None, None) => Err(format!("Service {own}/{name} has no port {port}")),
    }
}

/// The port of a Service that is meant, if it is there.
fn port_of<'s>(service: &ServiceRef, snapshot: &'s Snapshot) -> Option<&'s ServicePort> {
    let ServiceRef { namespace, name, port } = service;
    let number = port.parse::<u16>().ok();
    // The first port whose number, target or name is the one that the Ingress names.
    let is_meant = |one: &&ServicePort| match number {
        Some(number) => one.port == number || one.target == Some(PortRef::Number(number)),
        None => {
            let by_target =
                matches!(&one.target, Some(PortRef::Name(target)) if **target == **port);
            one.name.as_deref() == Some(port) || by_target
        }
    };
    let found = snapshot.services.get(&ObjectKey::new(namespace.clone(), name.clone()))?;
    found.ports.iter().find(is_meant)
}

/// The port of a Service that is spoken to, as a BackendTLSPolicy names it: the Service, and the name of the port.
pub(crate) fn spoken_to(service: &ServiceRef, snapshot: &Snapshot) -> Port {
    let name = port_of(service, snapshot).and_then(|port| port.name.as_deref());
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    (ObjectKey::new(service.namespace.clone(), service.name.clone()), name)
}

/// A Service, and the name of one of its ports; none: all of them.
pub(crate) type Port = (ObjectKey, Option<String>);

fn reference(name: &str, port: u16) -> Value {
    json!({"name": name, "port": port})
}

/// The Service of a canary: that of the same host and path in its Ingress, else its only one.
pub(crate) fn of_canary(
    canary: &Canary,
    host: &str,
    location: &Location,
    snapshot: &Snapshot,
) -> Option<(ServiceRef, Value)> {
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
    let backend = of(&service, &canary.origin.namespace, snapshot).ok()?;
    Some((service, backend))
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
            part => {
                let (rest, part) = within((total - part, part));
                vec![weighed(main, rest), weighed(other, part)]
            }
        },
    ));
    all
}

/// The same weights, neither above what the API server takes: to the letter as far as they have a common factor.
fn within((one, other): (u32, u32)) -> (u32, u32) {
    const MOST: u32 = 1_000_000;
    let (mut factor, mut rest) = (one, other);
    while rest > 0 {
        (factor, rest) = (rest, factor % rest);
    }
    let most = one.max(other);
    if most <= MOST {
        return (one, other);
    }
    let (one, other, most) = (one / factor, other / factor, most / factor);
    let scaled = |weight: u32| {
        let scaled = u64::from(weight) * u64::from(MOST) / u64::from(most.max(MOST));
        u32::try_from(scaled).unwrap_or(MOST).max(1)
    };
    (scaled(one), scaled(other))
}

/// A text that matches itself.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn weights_are_within_what_the_api_server_takes() {
        assert_eq!(within((90, 10)), (90, 10));
        assert_eq!(within((1_400_000, 600_000)), (7, 3));
        assert_eq!(within((1_999_999, 1)), (1_000_000, 1));
        assert_eq!(within((4_000_000_001, 2_000_000_000)), (1_000_000, 499_999));
    }
}
