//! Which address each Gateway has, where there is a pool of them: `--gateway-addresses`.

use ipnet::IpNet;
use objects::gateway::Gateway;
use objects::{InText, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The address of a Gateway, or reason and message of why it has none.
pub(super) type Given = Result<IpAddr, (&'static str, String)>;

/// Gives each Gateway an address of its own: the one that it asks for, else the one that it has, by its status or by
/// `before`. Of two that want the same the older one gets it, so that nobody takes what an older one is found at.
/// Whoever has none yet gets one by its name, so that all replicas choose the same.
pub(super) fn assign(
    pool: &[IpNet],
    gateways: &[&Arc<Gateway>],
    before: &BTreeMap<ObjectKey, Given>,
) -> BTreeMap<ObjectKey, Given> {
    let mut order = gateways.to_vec();
    order.sort_by_key(|gateway| (gateway.meta.created, InText(gateway.meta.key.clone())));
    let mut given = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let mut give = |gateway: &Gateway, address: IpAddr, taken: &mut BTreeSet<IpAddr>| {
        if taken.insert(address) {
            given.insert(gateway.meta.key.clone(), Ok(address));
        }
    };
    for gateway in &order {
        let has = || {
            let known = gateway.published.iter().filter_map(|text| text.parse().ok()).next();
            let held = before.get(&gateway.meta.key).and_then(|given| given.as_ref().ok().copied());
            known.or(held).filter(|address| is_within(pool, *address))
        };
        let wanted = asked(pool, gateway).map_or_else(has, Result::ok);
        if let Some(address) = wanted {
            give(gateway, address, &mut taken);
        }
    }
    let free: Vec<_> = order.iter().filter(|gateway| asked(pool, gateway).is_none()).collect();
    for gateway in &free {
        if !given.contains_key(&gateway.meta.key) {
            let found = fresh(pool, &gateway.meta.key, &taken);
            taken.extend(found);
            let none = || {
                let message =
                    "every address of --gateway-addresses is taken: add some, or delete Gateways";
                ("AddressNotAssigned", message.to_owned())
            };
            given.insert(gateway.meta.key.clone(), found.ok_or_else(none));
        }
    }
    for gateway in &order {
        let refused = || match asked(pool, gateway) {
            Some(Err(message)) => message,
            _ => "spec.addresses: another Gateway has that address; ask for another one".to_owned(),
        };
        let known = given.entry(gateway.meta.key.clone());
        known.or_insert_with(|| Err(("AddressNotUsable", refused())));
    }
    given
}

/// The address that a Gateway asks for, if it asks for a certain one.
fn asked(pool: &[IpNet], gateway: &Gateway) -> Option<Result<IpAddr, String>> {
    let values = gateway.addresses.iter().map(|(_, value)| value).filter(|value| !value.is_empty());
    let values: Vec<&String> = values.collect();
    let usable = |value: &str| value.parse().ok().filter(|address| is_within(pool, *address));
    Some(match values[..] {
        [] => return None,
        [one] => usable(one).ok_or_else(|| {
            format!("spec.addresses: {one} is not one of --gateway-addresses; take it out, or ask for one of those")
        }),
        _ => Err("spec.addresses: a Gateway has one address; name one".to_owned()),
    })
}

fn is_within(pool: &[IpNet], address: IpAddr) -> bool {
    pool.iter().any(|net| net.contains(&address))
}

/// A free address: the first one from the place in the pool on that a name suggests.
fn fresh(pool: &[IpNet], key: &ObjectKey, taken: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    let sizes: Vec<u128> = pool.iter().map(size).collect();
    let all = sizes.iter().fold(0, |all: u128, size| all.saturating_add(*size));
    // One more than are taken must be free, unless there are no more.
    let tries = all.min(taken.len() as u128 + 1);
    let from = number(key) % all.max(1);
    let mut places = (0..tries).map(|step| (from + step) % all);
    let address = |place: u128| {
        let mut rest = place;
        pool.iter().zip(&sizes).find_map(|(net, size)| match rest.checked_sub(*size) {
            None => Some(nth(net, rest)),
            Some(less) => {
                rest = less;
                None
            }
        })
    };
    places.find_map(|place| address(place).filter(|found| !taken.contains(found)))
}

/// How many addresses a network has.
fn size(net: &IpNet) -> u128 {
    1_u128.checked_shl((net.max_prefix_len() - net.prefix_len()).into()).unwrap_or(u128::MAX)
}

fn nth(net: &IpNet, place: u128) -> IpAddr {
    match net {
        IpNet::V4(net) => {
            let low = u32::try_from(place).unwrap_or(u32::MAX);
            IpAddr::V4(u32::from(net.network()).saturating_add(low).into())
        }
        IpNet::V6(net) => IpAddr::V6(u128::from(net.network()).saturating_add(place).into()),
    }
}

/// FNV-1a of a name: the same in every process.
pub(super) fn number(key: &ObjectKey) -> u128 {
    let bytes = key.namespace.bytes().chain([b'/']).chain(key.name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::Meta;

    fn gateway(name: &str, age: i64, asks: &[&str], has: &[&str]) -> Arc<Gateway> {
        let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Arc::new(Gateway {
            meta: Meta { key: ObjectKey::new("demo", name), created: age, ..Meta::default() },
            class: String::new(),
            listeners: Vec::new(),
            addresses: text(asks).into_iter().map(|one| ("IPAddress".to_owned(), one)).collect(),
            published: text(has),
            has_parameters: false,
            routability: None,
            infrastructure: Arc::default(),
            backend_certificate: None,
            frontend: None,
            allowed_sets: objects::gateway::FromNamespaces::None,
        })
    }

    fn assigned(pool: &str, gateways: &[Arc<Gateway>]) -> Vec<String> {
        let pool: Vec<IpNet> = pool.split(',').map(|net| net.parse().expect("a network")).collect();
        let all: Vec<&Arc<Gateway>> = gateways.iter().collect();
        let given = assign(&pool, &all, &BTreeMap::new());
        let again = assign(&pool, &all, &given);
        assert_eq!(given, again, "what is given stays");
        let text = |gateway: &Arc<Gateway>| match &given[&gateway.meta.key] {
            Ok(address) => address.to_string(),
            Err((reason, _)) => (*reason).to_owned(),
        };
        gateways.iter().map(text).collect()
    }

    #[test]
    fn each_gateway_has_an_address_of_its_own_until_there_are_no_more() {
        let all: Vec<_> = (0..5).map(|n| gateway(&format!("g{n}"), n, &[], &[])).collect();
        let given = assigned("192.0.2.0/31,2001:db8::/127", &all);
        let known: BTreeSet<_> = given[..4].iter().collect();
        assert_eq!(known.len(), 4, "{given:?}");
        assert_eq!(given[4], "AddressNotAssigned", "the youngest has none");
    }

    #[test]
    fn of_those_who_ask_for_an_address_and_those_who_have_it_the_oldest_gets_it() {
        let all = [
            gateway("young", 3, &["192.0.2.1"], &[]),
            gateway("old", 2, &["192.0.2.1"], &[]),
            gateway("has", 4, &[], &["192.0.2.1"]),
            gateway("stays", 9, &[], &["192.0.2.7"]),
            gateway("wrong", 1, &["198.51.100.1"], &[]),
            gateway("any", 1, &[""], &["192.0.2.9"]),
            gateway("later", 2, &["192.0.2.9"], &[]),
        ];
        let given = assigned("192.0.2.0/28", &all);
        assert_eq!(given[0], "AddressNotUsable");
        assert_eq!(given[1], "192.0.2.1");
        assert!(given[2].starts_with("192.0.2.") && given[2] != "192.0.2.1");
        assert_eq!(given[3..6], ["192.0.2.7", "AddressNotUsable", "192.0.2.9"]);
        assert_eq!(given[6], "AddressNotUsable", "an older Gateway is found there");
    }

    #[test]
    fn of_two_as_old_the_one_whose_namespace_and_name_are_the_lesser_text_gets_an_address() {
        let named = |namespace: &str| {
            let mut one = Gateway::clone(&gateway("x", 1, &["192.0.2.1"], &[]));
            one.meta.key = ObjectKey::new(namespace, "x");
            Arc::new(one)
        };
        let given = assigned("192.0.2.0/28", &[named("team"), named("team-b")]);
        assert_eq!(given, ["AddressNotUsable", "192.0.2.1"]);
    }

    #[test]
    fn a_network_of_any_size_is_a_pool() {
        let one = [gateway("a", 0, &[], &[])];
        assert!(assigned("::/0", &one)[0].contains(':'));
        assert_eq!(assigned("192.0.2.9/32", &one), ["192.0.2.9"]);
    }
}
