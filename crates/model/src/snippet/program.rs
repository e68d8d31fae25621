//! Programs of the rewrite module.

use super::{Name, Position, Regex, Template};
use crate::Secret;
use serde::Serialize;
use std::sync::Arc;

/// What the rewrite module does at one level, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step, and where it stands in its snippet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Where.
    pub at: Position,
    /// The namespace that says so; see [`Scope::belong_to`](super::Scope::belong_to).
    #[serde(skip)]
    pub owner: Option<Arc<str>>,
    /// What.
    pub task: Task,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Task {
    /// `set`: also `$args` and `$limit_rate`, under those names.
    Set(Name, Template),
    /// `if`.
    If(IfBlock),
    /// `return`.
    Return(Return),
    /// `rewrite`.
    Rewrite(Rewrite),
    /// `break`.
    Break,
}

/// `if (…) { … }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IfBlock {
    /// When.
    pub condition: Condition,
    /// What is done then; no other `if` among it.
    pub steps: Vec<Step>,
    /// The settings of the block, an index into [`Scope::branches`](super::Scope::branches): they count from here on.
    /// None in a server.
    pub branch: Option<usize>,
}

/// The condition of an `if`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// What is looked at: one variable.
    pub variable: Template,
    /// What is asked of it.
    pub comparison: Comparison,
}

/// What a condition asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Comparison {
    /// Neither empty nor `0`.
    Set,
    /// `=`
    Equals(Template),
    /// `!=`
    Differs(Template),
    /// `~` and `~*`
    Matches(Secret<Regex>),
    /// `!~` and `!~*`
    DoesNotMatch(Secret<Regex>),
}

/// `return`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Return {
    /// The page of a status; 444 closes the connection without an answer.
    Status(u16),
    /// A body of its own, in the type that `default_type` and the path say.
    Text(u16, Template),
    /// 301, 302, 303, 307, 308 and where to.
    Redirect(u16, Template),
}

/// `rewrite`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rewrite {
    /// What the path is compared with.
    pub regex: Regex,
    /// What is done with a path that matches.
    pub to: Uri,
    /// Whether the query of the request is kept, behind that of the replacement.
    pub keeps_query: bool,
}

/// The replacement of a `rewrite`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Uri {
    /// Another path, and a query of its own.
    Path {
        /// The path.
        path: Template,
        /// What follows its `?`.
        query: Option<Template>,
        /// What happens next.
        then: Then,
    },
    /// The client is sent elsewhere.
    Redirect(Redirect),
}

/// The replacement of a `rewrite` that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// 301 or 302.
    pub status: u16,
    /// Where to.
    pub location: Template,
    /// Whether `location` has a `?` already.
    pub has_query: bool,
}

/// What follows a `rewrite`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Then {
    /// The next step; at the end of the program the location is looked for again.
    Next,
    /// `last`: the location is looked for again, now.
    Last,
    /// `break`: this location goes on.
    Break,
}
