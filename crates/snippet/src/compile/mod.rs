//! From directives to typed values: what a snippet means, or all that is wrong with it.

mod http;
mod location;
mod maps;
mod program;
mod recipe;
mod stream;

pub use stream::{StreamListen, StreamServer};

use crate::level::{Context, Level};
use crate::mistake::{meant, shown};
use crate::read::Reader;
use crate::syntax::{Block, Bounds, Directive, Word};
use crate::table::{Build, Fate, Row, find, names};
use crate::typed::{GlobalScope, LocationKind, Scope, Settings};
use crate::variables::Names;
use crate::{Mistake, Need, Note};
use model::Pattern;

/// Mistakes of one snippet that are said; who has more mends these first.
const MISTAKES: usize = 20;

/// Expressions of one snippet that are tried for endless backtracking.
const PROBES: usize = 100;

/// What counts of the settings of an `auth-snippet`, beside its program.
const ASKED_WITH: [&str; 13] = [
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_buffers",
    "proxy_connect_timeout",
    "proxy_http_version",
    "proxy_next_upstream",
    "proxy_next_upstream_timeout",
    "proxy_next_upstream_tries",
    "proxy_pass_request_headers",
    "proxy_read_timeout",
    "proxy_request_buffering",
    "proxy_send_timeout",
    "proxy_set_header",
];

/// What changes the question, or what becomes of the answer, in nginx alone; beside `proxy_ssl_…`.
const ASKED_WITH_THERE: [&str; 6] = [
    "error_page",
    "more_clear_input_headers",
    "more_set_input_headers",
    "proxy_method",
    "proxy_pass_request_body",
    "proxy_set_body",
];

/// What a snippet means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// What a snippet of a location or a server says.
    pub scope: Scope,
    /// What an `http-snippet` says.
    pub http: GlobalScope,
    /// What a `stream-snippet` says.
    pub streams: Vec<StreamServer>,
    /// What it says without effect.
    pub notes: Vec<Note>,
    /// What must be there where it counts.
    pub needs: Vec<Need>,
    /// Its regular expressions.
    pub patterns: Vec<Pattern>,
}

/// Reads `directives` as a snippet of `place`, in which `names` are declared.
pub(crate) fn compile(
    place: Context,
    directives: &[Directive],
    names: &Names,
) -> Result<Meaning, Vec<Mistake>> {
    let reader = Reader::new(names, &Bounds::of(place), PROBES);
    let mut compiler = Compiler { reader, mistakes: Vec::new() };
    let mut meaning = Meaning::default();
    // nginx takes the word once.
    meaning.scope.internal = place == Context::Auth;
    match place.level() {
        Level::Http => compiler.global(directives, &mut meaning.http),
        Level::Stream => compiler.stream(directives, &mut meaning.streams),
        level => compiler.scope(level, directives, &mut meaning.scope, None),
    }
    if place == Context::Auth {
        compiler.unused(directives);
    }
    let Compiler { reader, mistakes } = compiler;
    meaning.scope.internal &= place != Context::Auth;
    meaning.notes = reader.notes;
    meaning.needs = reader.needs;
    meaning.patterns = reader.patterns;
    match mistakes.is_empty() {
        true => Ok(meaning),
        false => Err(mistakes),
    }
}

pub(crate) struct Compiler<'n> {
    reader: Reader<'n>,
    mistakes: Vec<Mistake>,
}

/// The location that a level is in, if a snippet has it.
type Around<'a> = Option<&'a LocationKind>;

impl Compiler<'_> {
    /// Keeps a mistake.
    fn wrong(&mut self, mistake: Mistake) {
        if self.mistakes.len() < MISTAKES {
            self.mistakes.push(mistake);
        }
    }

    /// The value, or nothing where it is wrong.
    fn value<T>(&mut self, read: Result<T, Mistake>) -> Option<T> {
        read.map_err(|mistake| self.wrong(mistake)).ok()
    }

    /// One level: everything but what stands at http level.
    fn scope(
        &mut self,
        level: Level,
        directives: &[Directive],
        scope: &mut Scope,
        around: Around<'_>,
    ) {
        for directive in directives {
            if let Some(row) = self.row(level, directive) {
                self.one(level, directive, row, scope, around);
            }
        }
    }

    fn one(
        &mut self,
        level: Level,
        directive: &Directive,
        row: &Row,
        scope: &mut Scope,
        around: Around<'_>,
    ) {
        match row.fate_of(directive) {
            Fate::Native(_) | Fate::NoEffect | Fate::Idle(_) => {
                self.setting(level, directive, row, &mut scope.settings);
                self.no_uri(directive, &scope.settings, around);
            }
            Fate::OffOnly | Fate::NeedsNginx => {
                if !self.is_recipe(level, directive, &mut scope.settings) {
                    self.wrong(Mistake::needs_nginx(directive.at(), said(directive, row)));
                }
            }
            Fate::Refused => self.wrong(Mistake::refused(directive.at(), said(directive, row))),
            Fate::Built(build) => match build {
                Build::Set | Build::Return | Build::Rewrite | Build::Break => {
                    if let Some(step) = self.step(build, directive) {
                        scope.program.steps.push(step);
                    }
                }
                Build::If => self.if_block(level, directive, scope),
                Build::Location => self.location(level, directive, scope, around),
                Build::LimitExcept => self.limit_except(directive, scope),
                Build::Types => self.types(directive, &mut scope.settings),
                Build::Internal if scope.internal => {
                    self.wrong(Mistake::refused(directive.at(), "\"internal\" is said twice"))
                }
                Build::Internal => scope.internal = true,
                Build::Listen => self.wrong(Mistake::refused(directive.at(), said(directive, row))),
                Build::ServerName => self.reader.idle(level, directive, row.doc),
                Build::Server
                | Build::Map
                | Build::Geo
                | Build::SplitClients
                | Build::RequestZone
                | Build::ConnectionZone
                | Build::StreamPass
                | Build::StreamProxy => {
                    self.wrong(not_here(directive, "it stands in an http-snippet"))
                }
            },
        }
    }

    /// Notes what the question to an authenticator is asked without.
    fn unused(&mut self, directives: &[Directive]) {
        for directive in directives {
            let counts = find(directive.name()).first().is_none_or(|row| match row.fate {
                Fate::Native(_) => ASKED_WITH.contains(&row.name),
                Fate::Built(build) => !matches!(build, Build::LimitExcept | Build::Types),
                // Of those it is said already.
                Fate::NoEffect | Fate::Idle(_) | Fate::OffOnly => true,
                Fate::NeedsNginx | Fate::Refused => true,
            });
            if !counts {
                self.reader.note(directive, "the authenticator is asked without it.");
                if ASKED_WITH_THERE.contains(&directive.name())
                    || directive.name().starts_with("proxy_ssl_")
                {
                    self.reader.heeded_there();
                }
            }
            if directive.name() == "if" {
                self.unused(inner(directive));
            }
        }
    }

    /// Whether it is the one program in Lua that is understood.
    fn is_recipe(&mut self, level: Level, directive: &Directive, settings: &mut Settings) -> bool {
        let (Level::Location, "access_by_lua_block", Some(Block::Foreign(program))) =
            (level, directive.name(), &directive.block)
        else {
            return false;
        };
        let Some(name) = recipe::second_cookie(program) else { return false };
        let known = self.reader.names.template(&format!("${name}"), directive.at());
        self.value(known);
        settings.access.cookies_apart = Some(true);
        true
    }

    /// A directive that is no block.
    fn setting(&mut self, level: Level, directive: &Directive, row: &Row, settings: &mut Settings) {
        let read = match row.fate_of(directive) {
            Fate::Native(read) => read(&mut self.reader, directive, settings),
            Fate::NoEffect => {
                self.reader.idle(level, directive, row.doc);
                Ok(())
            }
            // Its value is judged all the same.
            Fate::Idle(read) => {
                self.reader.idle(level, directive, row.doc);
                read(&mut self.reader, directive, settings)
            }
            Fate::OffOnly | Fate::NeedsNginx => {
                Err(Mistake::needs_nginx(directive.at(), said(directive, row)))
            }
            Fate::Refused | Fate::Built(_) => {
                Err(Mistake::refused(directive.at(), said(directive, row)))
            }
        };
        self.value(read);
    }

    /// The row of a directive that may stand here, with as many arguments as it takes.
    fn row(&mut self, level: Level, directive: &Directive) -> Option<&'static Row> {
        let rows = find(directive.name());
        let Some(first) = rows.first() else {
            let hint = meant(directive.name(), names());
            let text = format!("unknown directive \"{}\"{hint}", shown(directive.name()));
            self.wrong(Mistake::refused(directive.at(), text));
            return None;
        };
        let Some(row) = rows.iter().find(|row| row.levels.has(level)) else {
            self.wrong(not_here(directive, &format!("it stands in {}", first.levels)));
            return None;
        };
        let given = directive.arguments().len();
        let wrong_block = row.has_block().is_some_and(|block| block != directive.block.is_some());
        let text = match (wrong_block, &directive.block) {
            (true, None) => format!("\"{}\" has no \"{{\"", directive.name()),
            (true, Some(_)) => format!("\"{}\" ends in \";\", not in a block", directive.name()),
            _ if given < row.arguments.0 || given > row.arguments.1 => {
                let hint = semicolon(directive);
                format!("\"{}\" takes {}, not {given}{hint}", directive.name(), arguments(row))
            }
            _ => return Some(row),
        };
        self.wrong(Mistake::refused(directive.at(), text));
        None
    }
}

/// How many arguments a directive takes, as text.
pub(crate) fn arguments(row: &Row) -> String {
    match row.arguments {
        (1, 1) => "1 argument".to_owned(),
        (1, usize::MAX) => "1 argument or more".to_owned(),
        (least, usize::MAX) => format!("{least} arguments or more"),
        (least, most) if least == most => format!("{least} arguments"),
        (least, most) => format!("{least} to {most} arguments"),
    }
}

/// Says that a `;` may be missing, where a word on a later line is a directive.
fn semicolon(directive: &Directive) -> String {
    let is_directive =
        |word: &&Word| word.at.line > directive.at().line && !find(&word.text).is_empty();
    let next = directive.arguments().iter().find(is_directive);
    next.map_or_else(String::new, |word| {
        format!("; does a \";\" lack before \"{}\"?", shown(&word.text))
    })
}

fn said(directive: &Directive, row: &Row) -> String {
    format!("{}: {}", directive.name(), row.doc)
}

pub(crate) fn not_here(directive: &Directive, where_else: &str) -> Mistake {
    Mistake::refused(
        directive.at(),
        format!("\"{}\" is not allowed here: {where_else}", directive.name()),
    )
}

/// The directives of a block; [`Compiler::row`] made sure that there is one.
fn inner(directive: &Directive) -> &[Directive] {
    match &directive.block {
        Some(Block::Directives(directives)) => directives,
        _ => &[],
    }
}
