//! Servers by host.

use model::{Alias, ServerName, Steps};
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

/// A server with aliases, as nginx sees its `server_name`.
type Aliased = (String, Vec<Alias>);

fn alias() -> impl Strategy<Value = Alias> {
    let text = prop_oneof![
        3 => host(),
        2 => host().prop_map(|host| format!("*.{host}")),
        2 => host().prop_map(|host| format!("{host}.*")),
        2 => "[ab_.]{1,3}".prop_map(|text| format!("~{text}")),
        1 => "\\^[ab][.]?\\$?".prop_map(|text| format!("~{text}")),
    ];
    let parsed = text.prop_filter_map("no alias", |text| Alias::parse(&text).ok());
    parsed.prop_filter_map("two in one", |aliases| match aliases.as_slice() {
        [alias] => Some(alias.clone()),
        _ => None,
    })
}

/// Whether a host is covered by a name of one of nginx's sorts, and how well: the greater, the better.
fn covered(alias: &Alias, host: &str) -> Option<(u8, usize)> {
    match alias {
        Alias::Name(name) => (name.as_str() == host).then_some((4, 0)),
        Alias::Below(parent) => {
            let rest = host.strip_suffix(&**parent).and_then(|rest| rest.strip_suffix('.'));
            rest.filter(|rest| !rest.is_empty()).map(|_| (3, parent.len()))
        }
        Alias::Beginning(start) => {
            let rest = host.strip_prefix(&**start).is_some_and(|rest| rest.starts_with('.'));
            rest.then_some((2, start.len()))
        }
        Alias::Pattern(_) => None,
    }
}

/// What nginx chooses, by looking at every name of every server.
fn chosen<'a>(servers: &'a [Aliased], host: &str) -> Option<&'a str> {
    let own = servers.iter().map(|(name, _)| name.as_str());
    if let Some(name) =
        own.clone().find(|name| *name == host && *name != "_" && !name.starts_with("*."))
    {
        return Some(name);
    }
    let all = || {
        servers
            .iter()
            .flat_map(|(name, aliases)| aliases.iter().map(move |alias| (name.as_str(), alias)))
    };
    let best = all()
        .filter_map(|(name, alias)| Some((covered(alias, host)?, name)))
        .max_by_key(|(how, _)| *how);
    if let Some((_, name)) = best {
        return Some(name);
    }
    for (name, aliases) in servers {
        let own = [(name.clone(), 0)];
        if name.starts_with("*.") && reference(&own, host).is_some() {
            return Some(name);
        }
        // Who names no host gets the catch-all, whatever a pattern takes.
        let named = !host.is_empty();
        let matches = |alias: &Alias| matches!(alias, Alias::Pattern(pattern) if named && pattern.is_match(host));
        if aliases.iter().any(matches) {
            return Some(name);
        }
    }
    own.clone().find(|name| *name == "_")
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
            prop_assert_eq!(routes.find(&host, &Steps::default()).expect("steps").map(|server| **server), reference(&servers, &host), "{}", host);
        }
    }

    #[test]
    fn aliases_are_chosen_as_nginx_does(
        names in prop::collection::btree_set(name(), 1..5),
        aliases in prop::collection::vec((prop::sample::select(vec![0_usize, 1, 2, 3]), alias()), 0..10),
        hosts in prop::collection::vec(host(), 8),
    ) {
        let mut servers: Vec<Aliased> = names.iter().map(|name| (name.clone(), Vec::new())).collect();
        let mut seen: std::collections::BTreeSet<String> = names.clone();
        for (at, alias) in aliases {
            let at = at % servers.len();
            if seen.insert(alias.to_string()) {
                servers[at].1.push(alias);
            }
        }
        let mut routes = Routes::default();
        for (name, aliases) in &servers {
            let (owner, server) = (ServerName::new(name.as_str()), Arc::new(name.clone()));
            routes = routes.with(&owner, Some(server.clone())).with_aliases(&owner, aliases, Some(&server));
        }
        for host in &hosts {
            let found = routes.find(host, &Steps::default()).expect("steps").map(|server| server.as_str());
            prop_assert_eq!(found, chosen(&servers, host), "{} among {:?}", host, servers);
        }
        for (name, aliases) in &servers {
            routes = routes.with_aliases(&ServerName::new(name.as_str()), aliases, None);
        }
        let bare: Vec<Aliased> = names.iter().map(|name| (name.clone(), Vec::new())).collect();
        for host in &hosts {
            prop_assert_eq!(routes.find(host, &Steps::default()).expect("steps").map(|server| server.as_str()), chosen(&bare, host), "{}", host);
        }
    }

    #[test]
    fn what_is_taken_away_is_gone_and_older_versions_stay(names in prop::collection::btree_set(name(), 1..8), host in host()) {
        let full = names.iter().fold(Routes::default(), |routes, name| {
            routes.with(&ServerName::new(name.as_str()), Some(Arc::new(name.clone())))
        });
        prop_assert_eq!(full.len(), names.len());
        let before = full.find(&host, &Steps::default()).expect("steps").cloned();
        let empty = names.iter().fold(full.clone(), |routes, name| routes.with(&ServerName::new(name.as_str()), None));
        prop_assert_eq!((empty.len(), empty.is_empty(), empty.find(&host, &Steps::default()).expect("steps")), (0, true, None));
        prop_assert_eq!(full.find(&host, &Steps::default()).expect("steps").cloned(), before);
    }
}
