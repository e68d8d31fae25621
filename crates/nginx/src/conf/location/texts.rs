//! The locations that servers have of a `server-snippet`. nginx takes no second one of a name, and a text comes before
//! paths: a path of that name is not written, and the text has it.

use super::super::snippet::directives;
use super::names::{Name, names};
use model::{Configuration, Origin, Server, unescaped};
use std::collections::{BTreeMap, HashSet};

/// Paths of an Ingress that a text has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Had {
    /// The first of them, and its host.
    pub(crate) path: String,
    pub(crate) host: String,
    /// Whose the text is.
    pub(crate) by: Origin,
    /// How many more there are.
    pub(crate) more: usize,
}

/// The paths that texts have, by their Ingresses.
pub(crate) fn had_by_texts(configuration: &Configuration) -> BTreeMap<Origin, Had> {
    let raw = configuration.global.raw.as_deref();
    let (of_all, origin) = (of_all(configuration), raw.and_then(|raw| raw.origin.as_ref()));
    let mut all: BTreeMap<Origin, Had> = BTreeMap::new();
    for server in configuration.servers.values() {
        let own = of_host(server);
        if own.is_empty() && of_all.is_empty() {
            continue;
        }
        // The root that nobody asked for is no path of anybody.
        for location in server.locations.iter().filter(|location| !location.is_of_host()) {
            let Some(ingress) = location.origin.as_deref() else { continue };
            let by = names(server, location).iter().find_map(|name| {
                let of_host = server.raw.as_deref().filter(|_| own.contains(name));
                let by = of_host.map(|raw| &*raw.origin);
                by.or_else(|| origin.filter(|_| of_all.contains(name)))
            });
            let Some(by) = by else { continue };
            match all.get_mut(ingress) {
                Some(had) => had.more += 1,
                None => {
                    let (path, host) = (location.path.clone(), server.name.to_string());
                    all.insert(ingress.clone(), Had { path, host, by: by.clone(), more: 0 });
                }
            }
        }
    }
    all
}

/// The hosts whose own text has a location that the ConfigMap has in every server, too: nginx takes one of both.
pub(crate) fn with_location_of_all(configuration: &Configuration) -> Vec<&Server> {
    let of_all = of_all(configuration);
    if of_all.is_empty() {
        return Vec::new();
    }
    let servers = configuration.servers.values().map(|server| &**server);
    servers.filter(|server| !of_host(server).is_disjoint(&of_all)).collect()
}

/// Whether a host's own text has such a location.
pub(crate) fn has_location_of_all(configuration: &Configuration, server: &Server) -> bool {
    server.raw.is_some() && !of_host(server).is_disjoint(&of_all(configuration))
}

/// The locations of a host's own text.
pub(super) fn of_host(server: &Server) -> HashSet<Name> {
    server.raw.iter().flat_map(|raw| locations(&raw.text)).collect()
}

/// The locations that the ConfigMap has in every server.
pub(in crate::conf) fn of_all(configuration: &Configuration) -> HashSet<Name> {
    let raw = configuration.global.raw.as_deref();
    raw.and_then(|raw| raw.server.as_ref()).into_iter().flat_map(|text| locations(text)).collect()
}

/// The locations of a text for a server, as far as nginx takes no second one of their names: a pattern may be there
/// twice (ngx_http_core_location).
fn locations(text: &str) -> Vec<Name> {
    if !text.contains("location") {
        return Vec::new();
    }
    let all = directives(text).unwrap_or_default();
    let of_location = all.iter().filter(|words| words.first() == Some(&"location"));
    of_location.filter_map(|words| name(words.get(1..)?)).collect()
}

fn name(words: &[&str]) -> Option<Name> {
    let (modifier, path) = match words {
        [modifier, path] => (*modifier, unescaped(path)),
        [path] => {
            let path = unescaped(path);
            let modifier = ["=", "^~", "~", "@"].into_iter().find(|it| path.starts_with(it));
            let modifier = modifier.unwrap_or_default();
            (modifier, path[modifier.len()..].to_owned())
        }
        _ => return None,
    };
    match modifier {
        "=" => Some(("=", path)),
        "" | "^~" => Some(("", path)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{had_by_texts, locations};
    use model::policy::{Policy, RawGlobal};
    use model::{
        Backend, Configuration, Global, Kind, Location, Origin, PathKind, Server, ServerName,
    };
    use std::sync::Arc;

    #[test]
    fn the_root_that_nobody_asked_for_is_no_path_that_a_text_has() {
        let mut next = Configuration::default();
        let raw = RawGlobal {
            origin: Some(Origin::new(Kind::ConfigMap, "fairway", "settings")),
            server: Some(
                "location = /a { return 200; } location / { return 200; }".to_owned().into(),
            ),
            ..RawGlobal::default()
        };
        next.global = Arc::new(Global { raw: Some(raw.into()), ..Global::default() });
        for (ingress, path, kind) in
            [("asks", "/a", PathKind::Exact), ("asks-not", "/b", PathKind::Exact)]
        {
            let origin = Some(Arc::new(Origin::new(Kind::Ingress, "n", ingress)));
            let location = |path: &str, kind| Location {
                path: path.to_owned(),
                kind,
                whole: false,
                backend: Backend::NotFound,
                canary: None,
                service: None,
                origin: origin.clone(),
                policy: Arc::new(Policy::default()),
            };
            let mut server = Server::new(ServerName::new(format!("{ingress}.test")));
            let root = location("/", PathKind::Prefix);
            server.locations = vec![Arc::new(location(path, kind)), Arc::new(root)];
            next.servers.insert(server.name.clone(), Arc::new(server));
        }
        let had = had_by_texts(&next);
        let told = had.iter().map(|(origin, had)| (&*origin.name, &*had.path, had.more));
        assert_eq!(told.collect::<Vec<_>>(), [("asks", "/a", 0)]);
    }

    #[test]
    fn the_locations_of_a_text_are_those_that_nginx_has_of_it() {
        let text = "location = /a { return 200; } location =/b {} 'location' ^~ \"/c d\" { location /in { } }\n\
            location ^~/e { } location ~ /f { } location ~*/g { } location @h { } location / { }\n\
            add_header location /x; # location /y { }\n\
            location \"= /i\\\\\\\"\" { }";
        let expected =
            [("=", "/a"), ("=", "/b"), ("", "/c d"), ("", "/e"), ("", "/"), ("=", " /i\\\"")];
        let expected = expected.map(|(kind, path)| (kind, path.to_owned()));
        assert_eq!(locations(text), expected);
        assert!(locations("location / { } }").is_empty(), "it is no text of a server");
    }
}
