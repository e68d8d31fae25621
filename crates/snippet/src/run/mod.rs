//! What programs do: pure, with every step counted.

mod asks;
mod escape;
mod machine;
mod referer;
mod state;
mod tables;

pub use asks::Asks;
pub use escape::{redirect as unescaped_redirect, stays_in_query};
pub use machine::Machine;
pub use referer::is_invalid_referer;
pub use state::{Exceeded, State, Traced};
pub use tables::{Makes, Table, Tables};

use crate::Other;
use crate::typed::{
    Comparison, Condition, Piece, Program, Return, Rewrite, Step, Task, Template, Then, Uri,
};
use model::{Shown, Variable, hide_in_url};
use std::borrow::Cow;
use std::fmt;

/// What a program asks of a request.
pub trait Request {
    /// A variable; `$uri`, `$document_uri`, `$args`, `$query_string`, `$is_args` and `$arg_…` are never asked for: the
    /// [`State`] has them.
    fn variable(&self, variable: &Variable) -> Cow<'_, str>;

    /// A variable that only snippets know.
    fn other(&self, variable: &Other) -> Cow<'_, str>;

    /// About how many bytes are looked through for one of them.
    fn looked_through(&self, piece: &Piece) -> usize;
}

/// Whose program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A server's, before locations are looked for: they are looked for in any case.
    Server,
    /// A location's.
    Location,
}

/// What a program led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What happens next.
    pub next: Next,
    /// The last `if` that was entered: its settings count, an index into
    /// [`Scope::branches`](crate::typed::Scope::branches).
    pub branch: Option<usize>,
    /// Whether it ended before its last step: what the controller has behind it does not run either.
    pub ended: bool,
}

/// What happens after a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The request goes on where it is.
    Continue,
    /// The path is another: the location is looked for again.
    Search,
    /// The request is answered.
    Answer(Reply),
}

/// An answer of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The page of a status, or what `error_page` says for it.
    Status(u16),
    /// A body.
    Text(u16, String),
    /// A redirect; relative ones are made absolute as `absolute_redirect` says. No control characters are in it.
    Redirect(u16, String),
    /// 444: the connection is closed without an answer.
    Close,
}

impl fmt::Display for Reply {
    /// Without texts of a snippet, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Text(status, text) => write!(f, "{status} with {} bytes", text.len()),
            Self::Redirect(status, to) => write!(f, "{status} to {}", hide_in_url(to)),
            Self::Close => f.write_str("the connection is closed"),
        }
    }
}

/// What a program could not do: 500, as in nginx.
const FAILED: Next = Next::Answer(Reply::Status(500));

/// Runs `program`. Path, query, captures and variables change in the machine's state.
pub fn run(program: &Program, owner: Owner, machine: &mut Machine<'_, impl Request>) -> Outcome {
    let mut run = Run { machine, owner, changed: false, quotes: true, branch: None };
    let flow = run.steps(&program.steps);
    let ended = !matches!(flow, Ok(Flow::Go));
    let next = match flow {
        Ok(Flow::Answer(answer)) => Next::Answer(answer),
        Ok(Flow::Go | Flow::End) if run.changed && owner == Owner::Location => {
            match run.machine.state.search_again() {
                true => Next::Search,
                false => FAILED,
            }
        }
        Ok(Flow::Go | Flow::End) => Next::Continue,
        Err(Exceeded) => FAILED,
    };
    Outcome { next, branch: run.branch, ended }
}

struct Run<'r, 'm, R> {
    machine: &'r mut Machine<'m, R>,
    owner: Owner,
    /// Whether the path is another and no `break` said that it does not matter.
    changed: bool,
    /// Whether groups are escaped in values: nginx does so until a `rewrite` has changed the path.
    quotes: bool,
    branch: Option<usize>,
}

/// What a step leads to.
enum Flow {
    Go,
    End,
    Answer(Reply),
}

impl<R: Request> Run<'_, '_, R> {
    fn steps(&mut self, steps: &[Step]) -> Result<Flow, Exceeded> {
        for step in steps {
            self.machine.state.step()?;
            self.machine.state.owner.clone_from(&step.owner);
            match self.step(step)? {
                Flow::Go => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Go)
    }

    fn step(&mut self, step: &Step) -> Result<Flow, Exceeded> {
        match &step.task {
            Task::Set(name, template) => {
                let value = self.value(template)?;
                self.machine.state.trace(self.owner, step.at, || {
                    format!("set {name} to \"{}\"", template.shown())
                });
                self.machine.state.set(name, value)?;
                Ok(Flow::Go)
            }
            Task::If(block) => {
                let holds = self.condition(&block.condition)?;
                let said = if holds { "if: entered" } else { "if: passed by" };
                self.machine.state.trace(self.owner, step.at, || said.to_owned());
                if !holds {
                    return Ok(Flow::Go);
                }
                if self.owner == Owner::Location {
                    self.branch = block.branch;
                }
                self.steps(&block.steps)
            }
            Task::Return(answer) => {
                let answer = self.answer(answer)?;
                self.machine.state.trace(self.owner, step.at, || format!("return: {answer}"));
                Ok(Flow::Answer(answer))
            }
            Task::Rewrite(rewrite) => {
                let flow = self.rewrite(rewrite)?;
                let state = &mut self.machine.state;
                let Some(flow) = flow else {
                    state.trace(self.owner, step.at, || "rewrite: does not match".to_owned());
                    return Ok(Flow::Go);
                };
                if state.story.is_none() {
                    // A query may be long, and a program may rewrite again and again.
                    return Ok(flow);
                }
                let (path, query) = (state.path.clone(), state.query.clone());
                // What a snippet says of a query may be a secret; what the client said is its own.
                let is_own = matches!(&rewrite.to, Uri::Path { query: Some(_), .. });
                state.trace(self.owner, step.at, || match (&flow, query.as_str()) {
                    (Flow::Answer(answer), _) => format!("rewrite: {answer}"),
                    (_, "") => format!("rewrite: now at \"{path}\""),
                    (_, query) => {
                        let hidden = || hide_in_url(&format!("?{query}")).split_off(1);
                        let query = if is_own { hidden() } else { query.to_owned() };
                        format!("rewrite: now at \"{path}\" with \"{query}\"")
                    }
                });
                Ok(flow)
            }
            Task::Break => {
                self.machine.state.trace(self.owner, step.at, || "break".to_owned());
                self.changed = false;
                Ok(Flow::End)
            }
        }
    }

    fn value(&mut self, template: &Template) -> Result<String, Exceeded> {
        match self.quotes {
            true => self.machine.expand_quoted(template),
            false => self.machine.expand(template),
        }
    }

    fn condition(&mut self, condition: &Condition) -> Result<bool, Exceeded> {
        let value = self.machine.expand(&condition.variable)?;
        Ok(match &condition.comparison {
            Comparison::Set => !value.is_empty() && value != "0",
            Comparison::Equals(other) => value == self.value(other)?,
            Comparison::Differs(other) => value != self.value(other)?,
            Comparison::Matches(regex) => self.machine.state.matches_or_forgets(regex, &value)?,
            Comparison::DoesNotMatch(regex) => {
                !self.machine.state.matches_or_forgets(regex, &value)?
            }
        })
    }

    fn answer(&mut self, answer: &Return) -> Result<Reply, Exceeded> {
        Ok(match answer {
            Return::Status(444) => Reply::Close,
            Return::Status(status) => Reply::Status(*status),
            Return::Text(status, text) => Reply::Text(*status, self.answering(*status, text)?),
            Return::Redirect(status, location) => {
                Reply::Redirect(*status, escape::header(&self.answering(*status, location)?))
            }
        })
    }

    /// A text that is answered with `status`.
    fn answering(&mut self, status: u16, text: &Template) -> Result<String, Exceeded> {
        self.machine.state.answering = Some(status);
        let text = self.machine.expand(text);
        self.machine.state.answering = None;
        text
    }

    /// None if it does not match.
    fn rewrite(&mut self, rewrite: &Rewrite) -> Result<Option<Flow>, Exceeded> {
        let path = self.machine.state.path.clone();
        if !self.machine.state.matches_or_forgets(&rewrite.regex, &path)? {
            return Ok(None);
        }
        let old = std::mem::take(&mut self.machine.state.query);
        let kept = if rewrite.keeps_query { old.as_str() } else { "" };
        match &rewrite.to {
            Uri::Redirect(redirect) => {
                self.machine.state.query.clone_from(&old);
                let mut location =
                    escape::redirect(&self.machine.expand_quoted(&redirect.location)?);
                if !kept.is_empty() {
                    location.push(if redirect.has_query { '&' } else { '?' });
                    location.push_str(kept);
                }
                let status = redirect.status;
                Ok(Some(Flow::Answer(Reply::Redirect(status, escape::header(&location)))))
            }
            Uri::Path { path, query, then } => {
                self.machine.state.query.clone_from(&old);
                let path = self.machine.expand(path)?;
                let new =
                    query.as_ref().map(|query| self.machine.expand_quoted(query)).transpose()?;
                let state = &mut self.machine.state;
                state.query = match new {
                    None => kept.to_owned(),
                    Some(new) if kept.is_empty() => new,
                    // It may come through here again and again.
                    Some(new) if new.len() + kept.len() > state::QUERY => return Err(Exceeded),
                    Some(new) => {
                        state.steps_of(kept.len())?;
                        format!("{new}&{kept}")
                    }
                };
                if path.is_empty() {
                    return Ok(Some(Flow::Answer(Reply::Status(500))));
                }
                state.path = path;
                state.rewritten = true;
                state.led_by.clone_from(&state.owner);
                self.quotes = false;
                self.changed = *then != Then::Break;
                Ok(Some(if *then == Then::Next { Flow::Go } else { Flow::End }))
            }
        }
    }
}
