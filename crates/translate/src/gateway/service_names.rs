//! The names of what is made for Gateways.

use objects::{EndpointSlice, ObjectKey, Snapshot};
use std::sync::Arc;

/// Names of Services and values of labels are no longer.
const LONGEST: usize = 63;
const AFFIX: &str = "gateway-";

/// A name of a Gateway in at most so many characters: a long one, or one that a Service cannot have, ends in a number
/// that is made of it.
fn short(name: &str, most: usize, is_good: impl Fn(&str) -> bool) -> String {
    if name.len() <= most && is_good(name) {
        return name.to_owned();
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let plain: String = name.chars().map(|char| if char == '.' { '-' } else { char }).collect();
    let plain = plain.get(..most - 17).unwrap_or(&plain).trim_end_matches('-');
    format!("{plain}-{hash:016x}")
}

/// The name of the Service of a Gateway.
pub fn service_name(gateway: &str) -> String {
    let is_good = |name: &str| !name.contains('.');
    format!("{AFFIX}{}", short(gateway, LONGEST - AFFIX.len(), is_good))
}

/// What the names of the EndpointSlices of a Service end in: one for the endpoints of each family.
pub const FAMILIES: [&str; 2] = ["v4", "v6"];

/// The name of an EndpointSlice of the Service of a Gateway.
pub fn slice_name(service: &str, family: &str) -> String {
    format!("{service}-{family}")
}

/// The EndpointSlices of a Service with the name of a Gateway's that Fairway has written, whosever the Service is now.
pub fn own_slices<'a>(
    service: &'a ObjectKey,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = &'a Arc<EndpointSlice>> {
    let found = is_of_gateway(service).then(|| snapshot.slices.get(service)).flatten();
    let all = found.into_iter().flat_map(|slices| slices.values());
    all.filter(|slice| {
        let called = &*slice.meta.key.name;
        slice.is_ours && FAMILIES.iter().any(|family| slice_name(&service.name, family) == called)
    })
}

/// Whether the name of a Service is one of a Gateway's.
pub(super) fn is_of_gateway(service: &ObjectKey) -> bool {
    service.name.starts_with(AFFIX)
}

/// The name of a Gateway whose Service would have this name, be there one or not.
pub fn stand_in(service: &ObjectKey) -> Option<ObjectKey> {
    let name = service.name.strip_prefix(AFFIX)?;
    Some(ObjectKey::new(service.namespace.clone(), name))
}

/// The name of a Gateway as the value of a label.
pub fn label_of(gateway: &str) -> String {
    short(gateway, LONGEST, |name| name.len() <= LONGEST)
}

/// The Gateways whose Service has this name.
pub fn named_by<'a>(
    service: &'a ObjectKey,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = ObjectKey> + use<'a> {
    let from = is_of_gateway(service).then(|| ObjectKey::new(service.namespace.clone(), ""));
    let all = from.into_iter().flat_map(|from| snapshot.gateways.range(from..));
    let within = all.map(|(key, _)| key).take_while(|key| key.namespace == service.namespace);
    within.filter(|key| service_name(&key.name) == *service.name).cloned()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, label_of, service_name, stand_in};
    use objects::ObjectKey;

    #[test]
    fn names_are_short_and_those_that_were_cut_differ() {
        assert_eq!(service_name("web"), "gateway-web");
        let long = |end: &str| format!("{}{end}", "a".repeat(252));
        let names = [
            service_name("a.b"),
            service_name("a-b"),
            service_name(&long("b")),
            service_name(&long("c")),
        ];
        let known: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(known.len(), 4, "{names:?}");
        for name in &names {
            assert!(name.len() <= LONGEST && !name.contains('.'), "{name}");
            let gateway = stand_in(&ObjectKey::new("n", name.as_str())).expect("a name");
            assert_eq!(service_name(&gateway.name), *name);
        }
        assert!(label_of(&long("b")).len() <= LONGEST);
    }
}
