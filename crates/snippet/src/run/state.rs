//! What changes of a request while programs run, within bounds.

use super::Owner;
use crate::Position;
use crate::typed::{Name, Regex};
use crate::variables::SET_BY_LOCATIONS;
use model::{Spent, Steps, bytes_of_text, text_of_bytes};
use std::sync::Arc;

/// Steps of all programs of one request: directives, pieces of text, keys and expressions of maps that are tried.
const STEPS: u32 = 10_000;
/// Bytes of one text that a program makes.
pub(super) const TEXT: usize = 64 << 10;
/// Bytes of a query to which a `rewrite` adds.
pub(super) const QUERY: usize = 256 << 10;
/// Bytes of all variables of a request, [`SLOT`] of them for each.
const VARIABLES: usize = 256 << 10;
/// Bytes that a variable takes besides its value.
const SLOT: usize = size_of::<Own>();
/// Bytes of all fields of header sections, and of parameters, that are filled in for a request.
const FIELDS: usize = 256 << 10;
/// How often the location of a request may be looked for again, as in nginx.
const SEARCHES: u32 = 10;

/// More steps or longer texts than a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded;

/// What a request has that a question of it to an authenticator has not (nginx: a subrequest).
#[derive(Debug)]
pub struct Main {
    path: String,
    query: String,
    rewritten: bool,
    requeried: bool,
    captures: Vec<String>,
}

/// One line of the story of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Whether a server or a location says so.
    pub of: Owner,
    /// The namespace whose snippet it is; none: the operator's.
    pub namespace: Option<Arc<str>>,
    /// Where it stands in its snippet.
    pub at: Position,
    /// What happened.
    pub text: String,
}

/// A variable, and the namespace that has set it.
#[derive(Clone, Debug)]
struct Own {
    name: Name,
    value: String,
    owner: Option<Arc<str>>,
}

/// What programs know and change of one request; it lives as long as the request, through every search for a location.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// `$uri`: the path, decoded and normalised.
    pub path: String,
    /// `$args`
    pub query: String,
    /// Whether the path came with `%` or `+`: captures are then escaped where they become part of a query.
    pub quoted: bool,
    /// The status of the `return` whose text is made: `$status` where no `error_page` shows another one.
    pub answering: Option<u16>,
    /// Whether a `rewrite` changed the path: upstreams get what it says, not what the client wrote.
    pub rewritten: bool,
    /// Whether `set` changed the query: upstreams get the new one.
    pub requeried: bool,
    /// The story, if somebody asks for it.
    pub story: Option<Vec<Traced>>,
    /// The namespace that acts; none: the operator.
    pub owner: Option<Arc<str>>,
    /// The namespace that led the request on by a `rewrite`; none: the operator, or nobody.
    pub led_by: Option<Arc<str>>,
    /// The namespace whose location or server the request has come to; none: nobody's.
    place: Option<Arc<str>>,
    own: Vec<Own>,
    /// Values of maps that are remembered.
    pub(super) remembered: Vec<(Name, String)>,
    captures: Vec<String>,
    steps: u32,
    bytes: usize,
    fields: usize,
    searches: u32,
    /// What the regular expressions of the request may take yet: those of its location, too.
    pub steps_of_patterns: Steps,
}

impl State {
    /// The state of a request as it came.
    pub fn new(path: &str, query: &str, quoted: bool) -> Self {
        Self { path: path.to_owned(), query: query.to_owned(), quoted, ..Self::default() }
    }

    /// About how many bytes it takes, of which a copy is made where a text is computed aside from the programs.
    pub fn size(&self) -> usize {
        let one = |text: &String| size_of::<Own>() + text.len();
        let own = self.own.iter().map(|own| &own.value);
        let remembered = self.remembered.iter().map(|(_, value)| value);
        let texts = own.chain(remembered).chain(&self.captures).map(one).sum::<usize>();
        self.path.len() + self.query.len() + texts
    }

    /// A question of the request begins: it has a path of its own, no query and no groups of expressions. Variables
    /// are those of the request.
    pub fn ask(&mut self, path: String) -> Main {
        Main {
            path: std::mem::replace(&mut self.path, path),
            query: std::mem::take(&mut self.query),
            rewritten: self.rewritten,
            requeried: self.requeried,
            captures: std::mem::take(&mut self.captures),
        }
    }

    /// The question is over.
    pub fn go_on(&mut self, main: Main) {
        let Main { path, query, rewritten, requeried, captures } = main;
        (self.path, self.query, self.captures) = (path, query, captures);
        (self.rewritten, self.requeried) = (rewritten, requeried);
    }

    /// Bytes that programs have made of the request and that it holds: variables, fields, the path, the query, groups
    /// of expressions.
    pub fn held(&self) -> usize {
        let groups: usize = self.captures.iter().map(String::len).sum();
        self.bytes + self.fields + self.path.len() + self.query.len() + groups
    }

    /// A variable that a program or an authenticator has set.
    pub fn own(&self, name: &str) -> Option<&str> {
        self.own.iter().find(|own| &*own.name.0 == name).map(|own| own.value.as_str())
    }

    /// The request comes to a location of the controller's, which sets some variables anew: what another snippet made
    /// of them leads nowhere from here.
    pub fn meet_controller(&mut self) {
        self.forget(SET_BY_LOCATIONS);
    }

    /// These variables are what they are without any program.
    pub fn forget(&mut self, names: &[&str]) {
        self.retain(|own| !names.contains(&&*own.name.0));
    }

    /// Keeps some variables; the others hold nothing any more.
    fn retain(&mut self, stays: impl Fn(&Own) -> bool) {
        for gone in self.own.extract_if(.., |own| !stays(own)) {
            self.bytes -= gone.value.len() + SLOT;
        }
    }

    /// The request comes to a location of a namespace, or to one that is nobody's: what other namespaces have set of
    /// the variables that are everybody's is not for it, nor are values of tables and groups of expressions that were
    /// found there. A tenant's own variables have its name in theirs. Whether another namespace's place is left.
    pub fn come_to(&mut self, owner: Option<&Arc<str>>) -> bool {
        let leaves = self.place.is_some() && self.place.as_ref() != owner;
        if leaves {
            self.bytes -=
                self.remembered.iter().map(|(_, value)| value.len() + SLOT).sum::<usize>();
            self.remembered.clear();
            self.captures.clear();
        }
        self.place = owner.cloned();
        self.owner = owner.cloned();
        let counts = |own: &Own| own.owner.is_none() || own.owner.as_ref() == owner;
        self.retain(|own| own.name.0.contains('/') || counts(own));
        leaves
    }

    /// Counts what fills a field of a header section in.
    pub(super) fn field(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.fields += bytes;
        if self.fields > FIELDS { Err(Exceeded) } else { Ok(()) }
    }

    /// Remembers what a table said.
    pub(super) fn remember(&mut self, name: &Name, value: &str) -> Result<(), Exceeded> {
        self.bytes += value.len() + SLOT;
        self.remembered.push((name.clone(), value.to_owned()));
        if self.bytes > VARIABLES { Err(Exceeded) } else { Ok(()) }
    }

    /// Sets a variable; `$args` is the query.
    pub fn set(&mut self, name: &Name, value: String) -> Result<(), Exceeded> {
        if &*name.0 == "args" {
            self.query = value;
            self.requeried = true;
            return Ok(());
        }
        self.bytes += value.len();
        let owner = self.owner.clone();
        match self.own.iter_mut().find(|own| own.name == *name) {
            Some(own) => {
                self.bytes -= own.value.len();
                (own.value, own.owner) = (value, owner);
            }
            None => {
                self.bytes += SLOT;
                self.own.push(Own { name: name.clone(), value, owner });
            }
        }
        if self.bytes > VARIABLES { Err(Exceeded) } else { Ok(()) }
    }

    /// Group 0 to 9 of the last match.
    pub fn capture(&self, group: usize) -> &str {
        self.captures.get(group).map_or("", String::as_str)
    }

    pub(super) fn step(&mut self) -> Result<(), Exceeded> {
        self.steps += 1;
        if self.steps > STEPS { Err(Exceeded) } else { Ok(()) }
    }

    /// Counts a text that is made or looked at: a long one is as many steps as it has kilobytes.
    pub(super) fn steps_of(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.steps += u32::try_from(bytes >> 10).unwrap_or(STEPS);
        if self.steps > STEPS { Err(Exceeded) } else { Ok(()) }
    }

    /// Counts one more search for a location, by a program or an `error_page`; whether the request may have it.
    pub fn search_again(&mut self) -> bool {
        self.searches += 1;
        self.searches <= SEARCHES
    }

    /// Whether `text` matches, as bytes; the groups are kept, those with names as variables. What came before stays if
    /// not.
    pub fn matches(&mut self, regex: &Regex, text: &str) -> Result<bool, Exceeded> {
        self.step()?;
        self.steps_of(text.len())?;
        let bytes = bytes_of_text(text);
        let found = regex.pattern.captures(&bytes, &self.steps_of_patterns);
        let Some(found) = found.map_err(|Spent| Exceeded)? else { return Ok(false) };
        let group = |group: usize| {
            // It may part the bytes of a character.
            text_of_bytes(found.get(group).copied().flatten().unwrap_or_default()).into_owned()
        };
        self.captures = (0..found.len().min(10)).map(group).collect();
        for (number, name) in &regex.names {
            self.step()?;
            self.set(name, group(*number))?;
        }
        Ok(true)
    }

    /// As [`Self::matches`], for the rewrite module, where a failed match forgets the groups before it.
    pub(super) fn matches_or_forgets(
        &mut self,
        regex: &Regex,
        text: &str,
    ) -> Result<bool, Exceeded> {
        let matches = self.matches(regex, text)?;
        if !matches {
            self.captures.clear();
        }
        Ok(matches)
    }

    pub(super) fn trace(&mut self, of: Owner, at: Position, text: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(Traced { of, namespace: self.owner.clone(), at, text: text() });
        }
    }
}
