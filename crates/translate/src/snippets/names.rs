//! What snippets are called, and where each of them stands.

use snippet::Context;

/// Annotations that are understood here.
pub(crate) const ANNOTATIONS: [&str; 3] =
    ["configuration-snippet", "server-snippet", "auth-snippet"];

/// The keys of the ConfigMap, in the order in which they are understood: zones are declared at the top.
pub(super) const KEYS: [(&str, Context); 5] = [
    ("main-snippet", Context::Main),
    ("http-snippet", Context::Http),
    ("server-snippet", Context::Server),
    ("location-snippet", Context::Location),
    ("global-auth-snippet", Context::Auth),
];

/// Where an annotation stands.
pub(super) fn place(annotation: &str) -> Context {
    match annotation {
        "configuration-snippet" => Context::Location,
        "server-snippet" => Context::Server,
        _ => Context::Auth,
    }
}

/// Where the snippet of this name stands, be it an annotation or a key of the ConfigMap.
pub(super) fn context(name: &str) -> Option<Context> {
    let of_all = || KEYS.iter().find(|(key, _)| *key == name).map(|(_, context)| *context);
    ANNOTATIONS.contains(&name).then(|| place(name)).or_else(of_all)
}
