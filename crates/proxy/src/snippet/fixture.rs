//! What the tests of snippets share: requests of fixed variables, and snippets as they are written.

use model::Variable;
use model::snippet::{Other, Piece, Scope};
use snippet::run::{Machine, Request, State, Tables};
use snippet::{Context, understand};
use std::borrow::Cow;

/// A request whose variables are fixed.
#[derive(Debug, Default)]
pub(crate) struct Fixed {
    pub path: String,
    pub query: String,
    pub variables: Vec<(String, String)>,
}

impl Fixed {
    pub(crate) fn of(variables: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { variables: variables.iter().map(own).collect(), ..Self::default() }
    }

    fn value(&self, name: &str) -> Cow<'_, str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        Cow::Borrowed(found.map(|(_, value)| value.as_str()).unwrap_or_default())
    }
}

impl Request for Fixed {
    fn variable(&self, variable: &Variable) -> Cow<'_, str> {
        self.value(&variable.name())
    }

    fn other(&self, variable: &Other) -> Cow<'_, str> {
        self.value(&variable.name())
    }

    fn looked_through(&self, _: &Piece) -> usize {
        0
    }
}

/// Does something on a machine for a request.
pub(crate) fn with_machine<T>(
    request: &Fixed,
    work: impl FnOnce(&mut Machine<'_, Fixed>) -> T,
) -> T {
    let tables = Tables::default();
    let state = State::new(&request.path, &request.query, false);
    work(&mut Machine::new(request, state, &tables))
}

/// What a `configuration-snippet` means.
pub(crate) fn location(text: &str) -> Scope {
    understand(Context::Location, text).expect("the test writes a snippet").scope
}
