//! What snippets say at one place, with everything that it inherits.

use crate::answer::Watch;
use model::snippet::{Headers, LimitExcept, Program, Regex, Scope, Settings, VirtualName};
use snippet::run::Asks;
use std::collections::HashMap;
use std::sync::Arc;

/// What snippets say at one place: a location, an `if` block, a server.
#[derive(Debug, Default)]
pub struct Level {
    /// Its scope: the program, and `limit_except`. None in an `if` block, and where everything is inherited.
    pub scope: Option<Arc<Scope>>,
    /// The settings in force: its own, and what it inherits. What the controller writes into each location by itself
    /// hides what servers and the http level say about the same.
    pub settings: Arc<Settings>,
    /// The expression of the location, where its texts use what it matches.
    pub captures: Option<Regex>,
    /// Expressions of the locations around that name what they match, the outermost first.
    pub around: Vec<Regex>,
    /// The spots of its `if` blocks, by [`Scope::branches`].
    pub branches: Vec<usize>,
    /// What its texts ask of a request.
    pub asks: Asks,
    /// `internal`
    pub internal: bool,
    /// Whether it is a location that snippets have, or an `if` block in one.
    pub own: bool,
    /// The namespace whose location it is; none: nobody's, or the operator's.
    pub owner: Option<Arc<str>>,
    /// What of its settings is not the location's of an Ingress that it is within.
    pub within: Within,
}

/// What an `if` block, or a location within one of an Ingress, says besides of the header section of answers: what the
/// controller writes into the location comes before that, or is hidden by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// How many of the last entries of `more_set_headers` and `more_clear_headers` are its own.
    pub more: usize,
    /// Whether it has an `add_header`, which hides all those around.
    pub adds: bool,
}

impl Within {
    /// The same one level further in.
    pub(super) fn and(self, headers: &Headers) -> Self {
        Self { more: self.more + headers.more.0.len(), adds: self.adds || !headers.add.is_empty() }
    }
}

impl Level {
    /// The program.
    pub fn program(&self) -> Option<&Program> {
        let program = self.scope.as_ref().map(|scope| &scope.program);
        program.filter(|program| !program.steps.is_empty())
    }

    /// Whether a request that a namespace leads may come to what clients may not; the operator leads everywhere, and
    /// what is the operator's is for everybody.
    pub fn is_open_to(&self, leader: Option<&Arc<str>>) -> bool {
        self.owner.is_none() || leader.is_none() || self.owner.as_ref() == leader
    }

    /// `limit_except`
    pub fn limit_except(&self) -> &[LimitExcept] {
        self.scope.as_ref().map_or(&[][..], |scope| &scope.limit_except)
    }

    /// Header sections of answers that its texts ask for.
    pub fn watch(&self) -> Watch {
        Watch { sent: self.asks.sent, upstream: self.asks.upstream }
    }
}

/// What snippets say of a host.
#[derive(Debug)]
pub struct OfSite {
    /// The spot of the server itself.
    pub server: usize,
    /// The spots of locations named `@…`, by those names.
    pub named: HashMap<String, usize>,
    /// Names of a server of an `http-snippet`, if expressions are among them.
    pub names: Vec<VirtualName>,
}
