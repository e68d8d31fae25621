//! The directives: each is declared once, with where it may stand, what it takes and what becomes of it here.

mod answers;
mod client;
mod elsewhere;
mod guards;
mod headers;
mod structure;
mod upstreams;

use crate::level::Level;
use crate::read::Reader;
use crate::syntax::Directive;
use crate::typed::Settings;
use crate::{Levels, Mistake};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Reads a directive into settings.
pub(crate) type Read = fn(&mut Reader<'_>, &Directive, &mut Settings) -> Result<(), Mistake>;

/// One directive.
pub struct Row {
    /// Its name; `*` at an end stands for anything.
    pub name: &'static str,
    /// The module of nginx that has it.
    pub module: &'static str,
    /// Where it may stand.
    pub levels: Levels,
    /// How many arguments it takes at least and at most.
    pub arguments: (usize, usize),
    /// What becomes of it.
    pub(crate) fate: Fate,
    /// What it does here; why it does not.
    pub doc: &'static str,
}

/// What becomes of a directive.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// A setting.
    Native(Read),
    /// Part of a program, or a block with a meaning of its own.
    Built(Build),
    /// Taken, said, and without effect.
    NoEffect,
    /// It takes an nginx.
    NeedsNginx,
    /// Nobody may have it.
    Refused,
}

/// Directives that [`crate::compile`] reads itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    Set,
    Return,
    Rewrite,
    Break,
    If,
    Location,
    Internal,
    LimitExcept,
    Types,
    Server,
    Listen,
    ServerName,
    Map,
    Geo,
    SplitClients,
    RequestZone,
    ConnectionZone,
    StreamPass,
    StreamProxy,
}

impl Build {
    pub(crate) fn has_block(self) -> bool {
        use Build::{Geo, If, LimitExcept, Location, Map, Server, SplitClients, Types};
        matches!(self, If | Location | LimitExcept | Types | Server | Map | Geo | SplitClients)
    }
}

impl Row {
    /// What becomes of it, in two words.
    pub fn fate(&self) -> &'static str {
        match self.fate {
            Fate::Native(_) | Fate::Built(_) => "native",
            Fate::NoEffect => "no effect",
            Fate::NeedsNginx => "needs nginx",
            Fate::Refused => "refused",
        }
    }

    pub(crate) fn has_block(&self) -> Option<bool> {
        match self.fate {
            Fate::Native(_) | Fate::NoEffect => Some(false),
            Fate::Built(build) => Some(build.has_block()),
            Fate::NeedsNginx | Fate::Refused => None,
        }
    }
}

/// As many as there are.
const MANY: usize = usize::MAX;

const M: u8 = Level::Main.bit();
const H: u8 = Level::Http.bit();
const S: u8 = Level::Server.bit();
const L: u8 = Level::Location.bit();
const SIF: u8 = Level::ServerIf.bit();
const LIF: u8 = Level::LocationIf.bit();
const LMT: u8 = Level::LimitExcept.bit();
const STREAM: u8 = Level::Stream.bit();
const HSL: u8 = H | S | L;

/// What becomes of a directive: `once` reads the only argument into a field that may be said once; `whole` does so with
/// the whole directive; `add` reads a directive into one more entry; `some` into one
/// more or none; `more` into several; `with` is a function.
macro_rules! fate {
    (once($($field:ident).+, $read:ident)) => {
        Fate::Native(|_, directive, settings| {
            let value = $crate::read::$read(&directive.arguments()[0])?;
            $crate::read::once(&mut settings.$($field).+, directive, value)
        })
    };
    (whole($($field:ident).+, $read:path)) => {
        Fate::Native(|reader, directive, settings| {
            let value = $read(reader, directive)?;
            $crate::read::once(&mut settings.$($field).+, directive, value)
        })
    };
    (add($($field:ident).+, $read:path)) => {
        Fate::Native(|reader, directive, settings| {
            settings.$($field).+.push($read(reader, directive)?);
            Ok(())
        })
    };
    (some($($field:ident).+, $read:path)) => {
        Fate::Native(|reader, directive, settings| {
            settings.$($field).+.extend($read(reader, directive)?);
            Ok(())
        })
    };
    (more($($field:ident).+, $read:path)) => {
        Fate::Native(|reader, directive, settings| {
            settings.$($field).+.0.extend($read(reader, directive)?);
            Ok(())
        })
    };
    (with($read:path)) => { Fate::Native($read) };
    (built($build:ident)) => { Fate::Built(Build::$build) };
    (no_effect()) => { Fate::NoEffect };
    (needs_nginx()) => { Fate::NeedsNginx };
    (refused()) => { Fate::Refused };
}

/// Rows of one module: name, levels, arguments at least and at most, what becomes of it, what it does.
macro_rules! rows {
    ($module:expr; $($name:expr, $levels:expr, $least:expr, $most:expr, $kind:ident($($with:tt)*), $doc:expr;)*) => {
        &[$(Row {
            name: $name,
            module: $module,
            levels: Levels($levels),
            arguments: ($least, $most),
            fate: fate!($kind($($with)*)),
            doc: $doc,
        },)*]
    };
}

use {fate, rows};

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
