//! Locations, against the blocks that ingress-nginx writes and the way nginx chooses among them.

use model::{Backend, Location, PathKind, Pattern, Server, ServerName, Steps};
use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use route::path::canonical;
use route::{Found, Locations};
use std::sync::Arc;

fn server(regex: bool, locations: Vec<Location>) -> Server {
    let locations = locations.into_iter().map(Arc::new).collect();
    Server { regex, locations, ..Server::new(ServerName::new("a.test")) }
}

fn location(path: impl Strategy<Value = String>) -> impl Strategy<Value = Location> {
    let kind = prop::sample::select(vec![PathKind::Exact, PathKind::Prefix]);
    let backend = prop_oneof![
        4 => prop::strategy::Just(Backend::NotFound),
        1 => prop::strategy::Just(Backend::Denied("for a test".to_owned())),
    ];
    (path, kind, backend, any::<bool>()).prop_map(|(path, kind, backend, whole)| Location {
        path,
        kind,
        whole,
        backend,
        canary: None,
        service: None,
        origin: None,
        policy: Arc::default(),
    })
}

fn plain_path() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec!["a", "b", "ab", "a.b", "ü", "A"]);
    (prop::collection::vec(segment, 0..4), any::<bool>()).prop_map(|(segments, slash)| {
        let end = if slash && !segments.is_empty() { "/" } else { "" };
        format!("/{}{end}", segments.join("/"))
    })
}

fn pattern_path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "a", "b", "ab", "A", "ü", ".", "?", "*", "+", "|", "$", "(a|b)", "(a", "[ab]",
        "\\.", "{2}", "(?!b)", "[(]", "\\(", "(b", ")", "\\|",
    ]);
    let pieces = prop::collection::vec(piece, 0..5);
    pieces.prop_map(|pieces| format!("/{}", pieces.concat()))
}

/// A block of nginx's configuration and the location it was written for.
struct Block<'a> {
    modifier: &'static str,
    name: String,
    index: usize,
    location: &'a Location,
}

fn with_slash(path: &str) -> String {
    if path.ends_with('/') { path.to_owned() } else { format!("{path}/") }
}

/// The blocks of a server, one by one as ingress-nginx writes them: sorted, then split.
fn blocks(server: &Server) -> Vec<Block<'_>> {
    let mut sorted: Vec<(usize, &Location)> =
        server.locations.iter().map(|l| &**l).enumerate().collect();
    // Every server begins with its root (createServers).
    sorted.sort_by_key(|(_, one)| one.path != "/" || one.kind != PathKind::Prefix);
    sorted.sort_by(|a, b| b.1.path.cmp(&a.1.path));
    sorted.sort_by_key(|(_, location)| std::cmp::Reverse(location.path.len()));
    let is_exact = |path: &str| {
        server
            .locations
            .iter()
            .any(|location| location.kind == PathKind::Exact && location.path == path)
    };
    let mut blocks = Vec::new();
    for (index, location) in sorted {
        let mut block = |modifier, name: &str| {
            blocks.push(Block { modifier, name: name.to_owned(), index, location })
        };
        let path = location.path.as_str();
        match (server.regex, location.kind) {
            (true, PathKind::Prefix) if path != "/" && !location.whole => {
                block("~*", &with_slash(path));
                if !is_exact(path) {
                    block("~*", path);
                }
            }
            (true, _) => block("~*", path),
            (false, PathKind::Exact) => block("=", path),
            (false, PathKind::Prefix) if path == "/" => block("", path),
            (false, PathKind::Prefix) => {
                block("", &with_slash(path));
                if !is_exact(path) {
                    block("=", path);
                }
            }
        }
    }
    blocks
}

/// Of blocks that nginx would refuse as duplicates the one of the oldest location, Exact paths first.
fn oldest<'a>(blocks: impl Iterator<Item = &'a Block<'a>>) -> Option<&'a Block<'a>> {
    blocks.min_by_key(|block| (block.location.kind, block.index))
}

fn plain_reference(server: &Server, path: &str) -> Found {
    let blocks = blocks(server);
    let named = |modifier: &'static str, name: String| {
        oldest(blocks.iter().filter(move |block| block.modifier == modifier && block.name == name))
    };
    // Where a younger `/p/` meets an older `/p`, all of `/p/` belongs to the older one.
    let owner = |block: &Block<'_>| match block.location.kind {
        PathKind::Prefix if block.name.ends_with('/') => {
            named("", block.name.clone()).expect("split").index
        }
        _ => block.index,
    };
    if let Some(block) = named("=", path.to_owned()) {
        return Found::Location { index: owner(block) };
    }
    let slash = [named("=", format!("{path}/")), named("", format!("{path}/"))];
    let owners: Vec<usize> = slash.into_iter().flatten().map(owner).collect();
    let proxied = |index: &usize| !matches!(server.locations[*index].backend, Backend::Denied(_));
    if let Some(index) = owners.first().filter(|_| owners.iter().any(proxied)) {
        return Found::AddSlash { index: *index };
    }
    let longest =
        blocks.iter().filter(|block| block.modifier.is_empty() && path.starts_with(&block.name));
    match longest.map(|block| block.name.len()).max() {
        Some(length) => Found::Location {
            index: named("", path[..length].to_owned()).expect("it is there").index,
        },
        None => Found::None,
    }
}

fn regex_reference(server: &Server, path: &str) -> Found {
    let is_valid = |path: &str| Pattern::new(&format!("^{path}"), true).ok();
    let hit = blocks(server).into_iter().find(|block| {
        is_valid(&block.location.path).is_some()
            && is_valid(&block.name).is_some_and(|regex| regex.is_match(path))
    });
    hit.map_or(Found::None, |block| Found::Location { index: block.index })
}

proptest! {
    #[test]
    fn a_plain_host_answers_as_nginx_chooses(
        locations in prop::collection::vec(location(plain_path()), 0..10),
        paths in prop::collection::vec(plain_path(), 10),
    ) {
        let server = server(false, locations);
        let compiled = Locations::compile(&server);
        for path in paths {
            let found = compiled.find(&canonical(path.as_bytes()).expect("a plain path"), &Steps::default());
            prop_assert_eq!(found, plain_reference(&server, &path), "{}", path);
        }
    }

    #[test]
    fn a_regex_host_answers_as_nginx_chooses(
        locations in prop::collection::vec(location(pattern_path()), 0..8),
        paths in prop::collection::vec(plain_path(), 10),
    ) {
        let server = server(true, locations);
        let compiled = Locations::compile(&server);
        for path in paths {
            let found = compiled.find(&canonical(path.as_bytes()).expect("a plain path"), &Steps::default());
            prop_assert_eq!(found, regex_reference(&server, &path), "{}", path);
        }
    }

    #[test]
    fn arbitrary_paths_of_ingresses_never_panic(paths: Vec<String>, regex: bool, requested: Vec<u8>) {
        let location = |path| Location {
            path,
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::NotFound,
            canary: None,
            service: None,
            origin: None,
            policy: Arc::default(),
        };
        let server = server(regex, paths.into_iter().map(location).collect());
        let path = canonical(&requested).or_else(|_| canonical(b"/a")).expect("one of them is valid");
        let found = Locations::compile(&server).find(&path, &Steps::default());
        if let Found::Location { index } | Found::AddSlash { index } = found {
            prop_assert_eq!(index < server.locations.len(), true);
        }
    }
}
