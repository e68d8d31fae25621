//! Variables of snippets in texts of the controller: what a program has set, a table says, or only snippets know.

use super::settled;
use crate::answer::Watch;
use crate::exchange::{Exchange, Place};
use crate::snippet::Running;
use model::snippet::{Name, Piece, Template as Text};
use model::{Part, Steps, Template, Variable};
use snippet::run::{Asks, Machine, State, Tables};
use std::sync::Arc;

/// Appends the value of a variable of snippets; nothing where it has none, or finding it takes more than a request may.
#[cold]
pub(super) fn push(name: &Arc<str>, exchange: &Exchange, out: &mut String) {
    match set(name, exchange) {
        Some(value) => out.push_str(value),
        None => out.push_str(&computed(name, exchange)),
    }
}

/// What a program or an authenticator has set: everybody's, or that of the namespace whose location it is.
fn set<'e>(name: &str, exchange: &'e Exchange) -> Option<&'e str> {
    let state = &exchange.snippet.as_ref()?.state;
    state.own(name).or_else(|| {
        let place = exchange.place.as_ref()?;
        let origin = settled(exchange, place).and_then(|spot| spot.location.origin.as_deref());
        let owner = origin.map(|origin| &origin.namespace).or_else(|| Place::owner(place))?;
        state.own(&Name::of(owner, &Name(name.into())).0)
    })
}

/// What a table says, else what the request has under that name.
fn computed(name: &Arc<str>, exchange: &Exchange) -> String {
    let mut state = match exchange.snippet.as_deref() {
        Some(Running { state, .. }) => state.clone(),
        None => {
            let query = route::path::text(exchange.query().unwrap_or_default());
            State::new(&route::path::text(&exchange.path), &query, false)
        }
    };
    let left = exchange.steps.left();
    (state.steps_of_patterns, state.story) = (Steps::new(left), None);
    let mut machine = Machine::new(exchange, state, &exchange.generation.tables);
    let value = machine.expand(&text(name));
    // Where there are too few, the machine has said so already.
    let _ = exchange.steps.take(left - machine.state.steps_of_patterns.left());
    value.unwrap_or_default()
}

fn text(name: &Arc<str>) -> Text {
    Text { pieces: [Piece::Own(Name(Arc::clone(name)))].into() }
}

/// Header sections of answers that variables of snippets lead to.
pub(crate) fn watch<'t>(
    templates: impl IntoIterator<Item = &'t Template>,
    tables: &Tables,
) -> Watch {
    let Asks { sent, upstream, captures: _, counts: _ } = asked(templates, tables);
    Watch { sent, upstream }
}

/// Whether variables of snippets lead to numbers of connections.
pub(crate) fn counts<'t>(
    templates: impl IntoIterator<Item = &'t Template>,
    tables: &Tables,
) -> bool {
    tables.count() || asked(templates, tables).counts
}

fn asked<'t>(templates: impl IntoIterator<Item = &'t Template>, tables: &Tables) -> Asks {
    let parts = templates.into_iter().flat_map(Template::parts);
    let asked = parts.filter_map(|part| match part {
        Part::Variable(Variable::OfSnippets(name)) => Some(tables.asks(&[&text(name)])),
        Part::Variable(_) | Part::Text(_) | Part::Capture(_) => None,
    });
    asked.fold(Asks::default(), Asks::or)
}
