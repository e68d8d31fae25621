//! Variables and texts: a request, its state, and the tables of the http level.

use super::state::TEXT;
use super::{Exceeded, Request, State, Tables, escape};
use crate::typed::{Name, Piece, Template};
use crate::variables::of_request;
use model::Variable;
use std::borrow::Cow;

/// Tables that look up tables.
pub(super) const DEPTH: u32 = 16;

/// What programs run on.
#[derive(Debug)]
pub struct Machine<'m, R> {
    /// The request.
    pub request: &'m R,
    /// What changes of it.
    pub state: State,
    /// The tables of the http level.
    pub tables: &'m Tables,
    depth: u32,
}

impl<'m, R: Request> Machine<'m, R> {
    /// A machine for one request.
    pub fn new(request: &'m R, state: State, tables: &'m Tables) -> Self {
        Self { request, state, tables, depth: 0 }
    }

    /// The text of a template.
    pub fn expand(&mut self, template: &Template) -> Result<String, Exceeded> {
        self.write(template, false)
    }

    /// The text of a template that becomes a header: variables such as `$uri` may hold what would end it early.
    pub fn expand_header(&mut self, template: &Template) -> Result<String, Exceeded> {
        let text = escape::header(&self.write(template, false)?);
        self.state.field(text.len())?;
        Ok(text)
    }

    /// The text of a template that becomes a parameter: it counts as a header does.
    pub fn expand_parameter(&mut self, template: &Template) -> Result<String, Exceeded> {
        let text = self.write(template, false)?;
        self.state.field(text.len())?;
        Ok(text)
    }

    /// The text of a template that becomes part of a query or a redirect.
    pub(super) fn expand_quoted(&mut self, template: &Template) -> Result<String, Exceeded> {
        self.write(template, true)
    }

    fn write(&mut self, template: &Template, quotes: bool) -> Result<String, Exceeded> {
        let mut text = String::new();
        for piece in template.pieces.iter() {
            self.state.step()?;
            self.look(piece)?;
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Known(variable) => text.push_str(&self.known(variable)),
                Piece::Other(variable) => text.push_str(&self.request.other(variable)),
                Piece::Own(name) => text.push_str(&self.own(name)?),
                Piece::Capture(group) if quotes && self.state.quoted => {
                    text.push_str(&escape::query(self.state.capture(*group)));
                }
                Piece::Capture(group) => text.push_str(self.state.capture(*group)),
            }
            if text.len() > TEXT {
                return Err(Exceeded);
            }
        }
        self.state.steps_of(text.len())?;
        Ok(text)
    }

    /// Counts what is looked through to find a value. A query is parted at each `&` for it, which is dearer.
    fn look(&mut self, piece: &Piece) -> Result<(), Exceeded> {
        let bytes = match piece {
            Piece::Known(Variable::Argument(_)) => self.state.query.len().saturating_mul(4),
            piece => self.request.looked_through(piece),
        };
        self.state.steps_of(bytes)
    }

    fn known(&self, variable: &Variable) -> Cow<'_, str> {
        match variable {
            Variable::Uri | Variable::DocumentUri => Cow::Borrowed(&self.state.path),
            Variable::Args | Variable::QueryString => Cow::Borrowed(&self.state.query),
            Variable::IsArgs if self.state.query.is_empty() => Cow::Borrowed(""),
            Variable::IsArgs => Cow::Borrowed("?"),
            Variable::Argument(name) => Cow::Borrowed(argument(&self.state.query, name)),
            Variable::Status => match (self.request.variable(variable), self.state.answering) {
                (none, Some(status)) if none == "000" => Cow::Owned(status.to_string()),
                (said, _) => said,
            },
            variable => self.request.variable(variable),
        }
    }

    /// A declared variable: what was set, else what a table says, else what the request has under that name.
    fn own(&mut self, name: &Name) -> Result<String, Exceeded> {
        if let Some(value) = self.state.own(&name.0) {
            return Ok(value.to_owned());
        }
        if let Some((_, value)) = self.state.remembered.iter().find(|(known, _)| known == name) {
            return Ok(value.clone());
        }
        let tables = self.tables;
        if let Some(table) = tables.named(name) {
            if self.depth == DEPTH {
                return Err(Exceeded);
            }
            self.depth += 1;
            let value = table.value(self);
            self.depth -= 1;
            let value = value?;
            if !table.is_volatile() {
                self.state.remember(name, &value)?;
            }
            return Ok(value);
        }
        let piece = of_request(&name.0);
        piece.as_ref().map_or(Ok(()), |piece| self.look(piece))?;
        Ok(match piece {
            Some(Piece::Known(variable)) => self.known(&variable).into_owned(),
            Some(Piece::Other(variable)) => self.request.other(&variable).into_owned(),
            _ => String::new(),
        })
    }
}

/// `$arg_name`: the first argument of that name, without regard to case, as it is written.
fn argument<'q>(query: &'q str, name: &str) -> &'q str {
    let arguments = query.split('&').filter_map(|argument| argument.split_once('='));
    arguments
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map_or("", |(_, value)| value)
}
