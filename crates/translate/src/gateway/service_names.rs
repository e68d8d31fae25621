//! The names of what is made for Gateways.

use objects::{ObjectKey, Snapshot};

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

/// The name of a Gateway as the value of a label.
pub fn label_of(gateway: &str) -> String {
    short(gateway, LONGEST, |name| name.len() <= LONGEST)
}

/// The Gateways whose Service has this name.
pub fn named_by<'a>(
    service: &'a ObjectKey,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = ObjectKey> + use<'a> {
    let may_be = service.name.starts_with(AFFIX);
    let from = may_be.then(|| ObjectKey::new(service.namespace.clone(), ""));
    let all = from.into_iter().flat_map(|from| snapshot.gateways.range(from..));
    let within = all.map(|(key, _)| key).take_while(|key| key.namespace == service.namespace);
    within.filter(|key| service_name(&key.name) == *service.name).cloned()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, label_of, service_name};

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
        }
        assert!(label_of(&long("b")).len() <= LONGEST);
    }
}
