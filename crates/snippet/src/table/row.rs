//! What one row of the table says.

use crate::level::{Level, Levels};
use crate::mistake::Mistake;
use crate::read::Reader;
use crate::syntax::Directive;
use crate::typed::Settings;

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
    /// The same, where its value must be one.
    Idle(Read),
    /// It takes an nginx, unless it is switched off: that it is here anyway.
    OffOnly,
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
            Fate::NoEffect | Fate::Idle(_) => "no effect",
            Fate::OffOnly | Fate::NeedsNginx => "needs nginx",
            Fate::Refused => "refused",
        }
    }

    /// Whether it takes no nginx where it is switched off.
    pub(crate) fn is_off_only(&self) -> bool {
        matches!(self.fate, Fate::OffOnly)
    }

    /// What is done with such a directive.
    pub(crate) fn fate_of(&self, directive: &Directive) -> Fate {
        let is_off = || match directive.arguments() {
            [only] => only.text.eq_ignore_ascii_case("off") || only.text == "0",
            _ => false,
        };
        match self.fate {
            Fate::OffOnly if is_off() && directive.block.is_none() => Fate::NoEffect,
            Fate::OffOnly => Fate::NeedsNginx,
            fate => fate,
        }
    }

    pub(crate) fn has_block(&self) -> Option<bool> {
        match self.fate {
            Fate::Native(_) | Fate::NoEffect | Fate::Idle(_) => Some(false),
            Fate::Built(build) => Some(build.has_block()),
            Fate::OffOnly | Fate::NeedsNginx | Fate::Refused => None,
        }
    }
}

/// As many as there are.
pub(super) const MANY: usize = usize::MAX;

pub(super) const M: u8 = Level::Main.bit();
pub(super) const H: u8 = Level::Http.bit();
pub(super) const S: u8 = Level::Server.bit();
pub(super) const L: u8 = Level::Location.bit();
pub(super) const SIF: u8 = Level::ServerIf.bit();
pub(super) const LIF: u8 = Level::LocationIf.bit();
pub(super) const LMT: u8 = Level::LimitExcept.bit();
pub(super) const STREAM: u8 = Level::Stream.bit();
pub(super) const HSL: u8 = H | S | L;

/// What becomes of a directive: `once` reads the only argument into a field that may be said once; `whole` does so with
/// the whole directive; `add` reads a directive into one more entry; `some` into one
/// more or none; `more` into several; `with` is a function. What is
/// `idle` is read like `once`, what is `idle_whole` like `whole`, and means nothing here; what is `off_only` means
/// nothing where it is switched off.
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
    (idle($($field:ident).+, $read:ident)) => {
        Fate::Idle(|_, directive, settings| {
            let value = $crate::read::$read(&directive.arguments()[0])?;
            $crate::read::once(&mut settings.$($field).+, directive, value)
        })
    };
    (idle_whole($($field:ident).+, $read:path)) => {
        Fate::Idle(|reader, directive, settings| {
            let value = $read(reader, directive)?;
            $crate::read::once(&mut settings.$($field).+, directive, value)
        })
    };
    (built($build:ident)) => { Fate::Built(Build::$build) };
    (no_effect()) => { Fate::NoEffect };
    (off_only()) => { Fate::OffOnly };
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

pub(super) use {fate, rows};
