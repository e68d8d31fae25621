//! Servers by host.

use model::ServerName;
use proptest::prelude::{Strategy, prop, prop_assert_eq, prop_oneof, proptest};
use route::Routes;
use std::sync::Arc;

fn label() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]", "_", "-", "a_", "[~*]", ""].prop_map(|text: String| text)
}

fn host() -> impl Strategy<Value = String> {
    prop::collection::vec(label(), 1..4).prop_map(|labels| labels.join("."))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => host(),
        3 => host().prop_map(|host| format!("*.{host}")),
        1 => prop::strategy::Just("_".to_owned()),
    ]
}

/// The same by looking at every name.
fn reference(servers: &[(String, usize)], host: &str) -> Option<usize> {
    let latest = |wanted: &dyn Fn(&str) -> bool| {
        servers.iter().rev().find(|(name, _)| wanted(name)).map(|(_, server)| *server)
    };
    let covers = |name: &str| {
        name.strip_prefix('*').and_then(|rest| host.strip_suffix(rest)).is_some_and(|label| {
            name.starts_with("*.")
                && !label.is_empty()
                && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        })
    };
    latest(&|name| name == host && !name.starts_with("*."))
        .or_else(|| latest(&|name| covers(name)))
        .or_else(|| latest(&|name| name == "_"))
}

proptest! {
    #[test]
    fn the_server_is_the_one_a_scan_finds(names in prop::collection::vec(name(), 0..12), hosts in prop::collection::vec(host(), 8)) {
        let mut routes = Routes::default();
        let mut servers: Vec<(String, usize)> = Vec::new();
        for (server, name) in names.into_iter().enumerate() {
            routes = routes.with(&ServerName::new(name.as_str()), Some(Arc::new(server)));
            servers.push((name, server));
        }
        for host in hosts {
            prop_assert_eq!(routes.find(&host).map(|server| **server), reference(&servers, &host), "{}", host);
        }
    }

    #[test]
    fn what_is_taken_away_is_gone_and_older_versions_stay(names in prop::collection::btree_set(name(), 1..8), host in host()) {
        let full = names.iter().fold(Routes::default(), |routes, name| {
            routes.with(&ServerName::new(name.as_str()), Some(Arc::new(name.clone())))
        });
        prop_assert_eq!(full.len(), names.len());
        let before = full.find(&host).cloned();
        let empty = names.iter().fold(full.clone(), |routes, name| routes.with(&ServerName::new(name.as_str()), None));
        prop_assert_eq!((empty.len(), empty.is_empty(), empty.find(&host)), (0, true, None));
        prop_assert_eq!(full.find(&host).cloned(), before);
    }
}
