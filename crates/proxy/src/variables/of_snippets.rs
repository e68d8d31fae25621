//! Variables of snippets in texts of the controller: what a program has set, a table says, or only snippets know. And
//! the controller's own ones, where a snippet sets them or a table of the ConfigMap makes them: in nginx the last table
//! of a variable counts, and `http-snippet` stands behind the template's.

use super::of_place::settled;
use crate::answer::Watch;
use crate::exchange::{Exchange, Place};
use crate::snippet::Running;
use model::snippet::{Name, Piece, Template as Text};
use model::{Part, Steps, Template, Variable};
use snippet::run::{Asks, Exceeded, Machine, Makes, State, Table, Tables};
use std::borrow::Cow;
use std::sync::Arc;

/// Appends the value of a variable of snippets; nothing where it has none, or finding it takes more than a request may.
#[cold]
pub(super) fn push(name: &Arc<str>, exchange: &Exchange, out: &mut String) {
    match set(name, exchange) {
        Some(value) => out.push_str(value),
        None => match computed(name, exchange) {
            Ok(value) => out.push_str(&value),
            // No limit is evaded by it: the request ends.
            Err(Exceeded) => exchange.texts.fail(),
        },
    }
}

/// About how many bytes are looked through for a value: all that programs know of the request, at worst.
pub(super) fn looked_through(exchange: &Exchange) -> usize {
    let state = exchange.snippet.as_deref().map(|running| running.state.size());
    // Without a program a copy of path and query is made, which may be an upstream's.
    state.unwrap_or(exchange.request.head_size.max(exchange.request.target.len()))
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
fn computed(name: &Arc<str>, exchange: &Exchange) -> Result<String, Exceeded> {
    aside(exchange, |machine| machine.expand(&text(name)))
}

/// What a table says that is asked for a request by the controller.
#[cold]
pub(crate) fn by_table(table: &Table, exchange: &Exchange) -> Result<String, Exceeded> {
    aside(exchange, |machine| table.value(machine))
}

/// Does something on a machine of its own, with what the request has.
fn aside(
    exchange: &Exchange,
    work: impl FnOnce(&mut Machine<'_, Exchange>) -> Result<String, Exceeded>,
) -> Result<String, Exceeded> {
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
    let value = work(&mut machine);
    // Where there are too few, the machine has said so already.
    let _ = exchange.steps.take(left - machine.state.steps_of_patterns.left());
    value
}

/// What snippets make of a variable of the controller; none where none of them does. `makes` says whether a table does.
fn made<'e>(
    name: &'static str,
    exchange: &'e Exchange,
    makes: impl FnOnce(Makes) -> bool,
) -> Option<Result<Cow<'e, str>, Exceeded>> {
    let own = || exchange.snippet.as_ref()?.state.own(name);
    if let Some(own) = own() {
        return Some(Ok(Cow::Borrowed(own)));
    }
    let by_table = || Some(computed(&name.into(), exchange).map(Cow::Owned));
    makes(exchange.generation.tables.makes()).then(by_table)?
}

/// `$loggable`, where snippets make it. What takes more than a request may have is logged: nobody hides by it.
pub(crate) fn is_loggable(exchange: &Exchange) -> Option<bool> {
    let said = made("loggable", exchange, |makes| makes.loggable)?;
    Some(said.map_or(true, |said| !matches!(&*said, "" | "0")))
}

/// `$full_x_forwarded_for`, where snippets make it.
pub(crate) fn forwarded_for(exchange: &Exchange) -> Option<Cow<'_, str>> {
    let said = made("full_x_forwarded_for", exchange, |makes| makes.forwarded_for)?;
    Some(said.unwrap_or_else(|Exceeded| {
        exchange.texts.fail();
        Cow::Borrowed("")
    }))
}

/// Whether snippets make `close` of `$connection_upgrade`.
pub(crate) fn connection_ends(exchange: &Exchange) -> bool {
    let said = made("connection_upgrade", exchange, |makes| makes.connection);
    said.is_some_and(|said| said.is_ok_and(|said| said.eq_ignore_ascii_case("close")))
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
