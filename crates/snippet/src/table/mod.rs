//! The directives: each is declared once, with where it may stand, what it takes and what becomes of it here.

mod answers;
mod client;
mod elsewhere;
mod guards;
mod headers;
mod heeded;
mod row;
mod structure;
mod upstreams;

pub(crate) use heeded::is_heeded;
pub use row::Row;
pub(crate) use row::{Build, Fate};

use std::collections::HashMap;
use std::sync::LazyLock;

/// All directives, by module.
pub static TABLE: &[&[Row]] = &[
    structure::REWRITE,
    structure::CORE,
    structure::HTTP,
    headers::HEADERS,
    headers::MORE,
    guards::ACCESS,
    guards::AUTH_BASIC,
    guards::AUTH_REQUEST,
    guards::REALIP,
    guards::LIMIT_REQ,
    guards::LIMIT_CONN,
    guards::REFERER,
    client::CORE,
    client::SSL,
    client::V2,
    upstreams::PROXY,
    upstreams::PROXY_BUFFERS,
    upstreams::PROXY_TLS,
    upstreams::GRPC,
    upstreams::GRPC_ONLY,
    upstreams::FASTCGI,
    upstreams::FASTCGI_ONLY,
    answers::CORE,
    answers::LOG,
    answers::SUB,
    answers::GZIP,
    answers::BROTLI,
    answers::CHARSET,
    answers::SMALL,
    elsewhere::FILES,
    elsewhere::CACHE,
    elsewhere::LUA,
    elsewhere::PROGRAMS,
    elsewhere::PROTOCOLS,
    elsewhere::MODULES,
    elsewhere::TELEMETRY,
    elsewhere::MAIN,
    elsewhere::STREAM_ROWS,
];

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Row>>> = LazyLock::new(|| {
    let mut rows: HashMap<&'static str, Vec<&'static Row>> = HashMap::new();
    for row in TABLE.iter().flat_map(|rows| rows.iter()) {
        rows.entry(row.name).or_default().push(row);
    }
    rows
});

/// The rows of a directive; several where it means something else at another level.
pub(crate) fn find(name: &str) -> Vec<&'static Row> {
    if let Some(rows) = BY_NAME.get(name) {
        return rows.clone();
    }
    let fits = |row: &&Row| match (row.name.strip_prefix('*'), row.name.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => false,
    };
    TABLE.iter().flat_map(|rows| rows.iter()).find(fits).into_iter().collect()
}

/// The names that a wrong one may have meant.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|rows| rows.iter()).map(|row| row.name).filter(|name| !name.contains('*'))
}
