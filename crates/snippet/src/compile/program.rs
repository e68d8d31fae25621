//! The rewrite module: `set`, `if`, `return`, `rewrite`, `break`.

use super::{Compiler, inner};
use crate::Position;
use crate::level::Level;
use crate::mistake::shown;
use crate::read::{header_value, invalid, is_digits};
use crate::syntax::{Directive, Word};
use crate::table::{Build, Fate};
use crate::typed::{
    Comparison, Condition, IfBlock, Piece, Redirect, Return, Rewrite, Scope, Settings, Step, Task,
    Template, Then, Uri,
};
use crate::variables::names_upstream;
use crate::{Mistake, Needed};

impl Compiler<'_> {
    /// A step that is no `if`.
    pub(super) fn step(&mut self, build: Build, directive: &Directive) -> Option<Step> {
        let task = match build {
            Build::Set => self.set(directive),
            Build::Return => self.return_(directive).map(Task::Return),
            Build::Rewrite => self.rewrite(directive).map(Task::Rewrite),
            _ => Ok(Task::Break),
        };
        Some(Step { at: directive.at(), owner: None, task: self.value(task)? })
    }

    fn set(&mut self, directive: &Directive) -> Result<Task, Mistake> {
        let words = directive.arguments();
        let name = self.reader.names.changeable(&words[0].text, words[0].at)?;
        let value = self.reader.template(&words[1])?;
        if names_upstream(&name.0) {
            let id = value.literal().ok_or_else(|| {
                let text = format!("{name} without variables: write namespace-service-port");
                Mistake::refused(words[1].at, text)
            })?;
            self.reader.need(directive, Needed::Upstream(id.to_owned()));
        }
        Ok(Task::Set(name, value))
    }

    fn return_(&mut self, directive: &Directive) -> Result<Return, Mistake> {
        let words = directive.arguments();
        let (status, value) = match words {
            [url] if is_url(&url.text) => (302, Some(url)),
            words => (status(&words[0])?, words.get(1)),
        };
        Ok(match (status, value) {
            (301..=303 | 307 | 308, value) => Return::Redirect(status, self.location_value(value)?),
            // An error without words has a page, as if nothing had been said (ngx_http_script_return_code).
            (400.., Some(text)) if text.text.is_empty() => Return::Status(status),
            (_, Some(text)) => Return::Text(status, self.reader.template(text)?),
            (0..=399, None) => Return::Text(status, Template::default()),
            (_, None) => Return::Status(status),
        })
    }

    /// What goes into `Location`.
    fn location_value(&self, word: Option<&Word>) -> Result<Template, Mistake> {
        word.map_or_else(|| Ok(Template::default()), |word| header_value(&self.reader, word))
    }

    fn rewrite(&mut self, directive: &Directive) -> Result<Rewrite, Mistake> {
        let words = directive.arguments();
        let regex = self.reader.regex(&words[0].text, false, words[0].at)?;
        let keeps_query = !words[1].text.ends_with('?');
        let text = words[1].text.strip_suffix('?').unwrap_or(&words[1].text);
        if words[1].text.is_empty() {
            return Err(Mistake::refused(words[1].at, "an empty replacement"));
        }
        let to = Word { text: text.to_owned(), at: words[1].at };
        let url = is_url(&to.text).then_some(302);
        let (redirect, then) = match words.get(2).map(|flag| flag.text.as_str()) {
            None if url.is_some() => (url, Then::Last),
            None => (None, Then::Next),
            Some("last") => (url, Then::Last),
            Some("break") => (url, Then::Break),
            Some("redirect") => (Some(302), Then::Last),
            Some("permanent") => (Some(301), Then::Last),
            Some(_) => {
                return Err(invalid(
                    &words[2],
                    "flag of a rewrite; last, break, redirect and permanent are",
                ));
            }
        };
        let to = match redirect {
            Some(status) => {
                let location = header_value(&self.reader, &to)?;
                let has_query = location
                    .pieces
                    .iter()
                    .any(|piece| matches!(piece, Piece::Text(text) if text.contains('?')));
                Uri::Redirect(Redirect { status, location, has_query })
            }
            None => self.path(&to, then)?,
        };
        Ok(Rewrite { regex, to, keeps_query })
    }

    /// A replacement whose first `?` begins a query of its own.
    fn path(&self, to: &Word, then: Then) -> Result<Uri, Mistake> {
        let path = self.reader.template(to)?;
        let split = path.pieces.iter().enumerate().find_map(|(index, piece)| match piece {
            Piece::Text(text) => Some((index, text.find('?')?)),
            _ => None,
        });
        let Some((index, at)) = split else {
            return Ok(Uri::Path { path, query: None, then });
        };
        let (mut path, mut query) = (path.pieces.to_vec(), Vec::new());
        query.extend(path.drain(index..));
        if let Some(Piece::Text(text)) = query.first_mut() {
            let before = text[..at].to_owned();
            text.drain(..=at);
            if !before.is_empty() {
                path.push(Piece::Text(before));
            }
        }
        query.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        let (path, query) = (Template { pieces: path.into() }, Template { pieces: query.into() });
        Ok(Uri::Path { path, query: Some(query), then })
    }

    pub(super) fn if_block(&mut self, level: Level, directive: &Directive, scope: &mut Scope) {
        let condition = self.condition(directive);
        let condition = self.value(condition);
        let inside = match level {
            Level::Server => Level::ServerIf,
            _ => Level::LocationIf,
        };
        let mut settings = Settings::default();
        let mut steps = Vec::new();
        for directive in inner(directive) {
            let Some(row) = self.row(inside, directive) else { continue };
            match row.fate {
                Fate::Built(build) => steps.extend(self.step(build, directive)),
                _ => {
                    self.setting(inside, directive, row, &mut settings);
                    self.no_uri_here(directive, &settings);
                }
            }
        }
        let branch = (inside == Level::LocationIf).then(|| branch(scope, settings));
        let Some(condition) = condition else { return };
        let task = Task::If(IfBlock { condition, steps, branch });
        scope.program.steps.push(Step { at: directive.at(), owner: None, task });
    }

    /// What is between the parentheses of an `if`.
    fn condition(&mut self, directive: &Directive) -> Result<Condition, Mistake> {
        let words = between_parentheses(directive)?;
        let at = |index: usize| words.get(index).map_or(directive.at(), |word| word.at);
        let first = words.first().map_or("", |word| word.text.as_str());
        if let Some(test) = first.strip_prefix('!').unwrap_or(first).strip_prefix('-') {
            return Err(match (test, words.len()) {
                ("f" | "d" | "e" | "x", 2) => {
                    let text = format!("if ({first} …) looks at files, of which there are none");
                    Mistake::needs_nginx(at(0), text)
                }
                _ => bad_condition(at(0), first),
            });
        }
        let Some(name) = first.strip_prefix('$').filter(|name| !name.is_empty()) else {
            return Err(bad_condition(at(0), first));
        };
        let variable = self.condition_variable(name, at(0))?;
        let comparison = match words.as_slice() {
            [_] => Comparison::Set,
            [_, operator, value] => self.comparison(operator, value)?,
            _ => return Err(bad_condition(at(0), &format!("{first} with {} words", words.len()))),
        };
        Ok(Condition { variable, comparison })
    }

    /// A condition begins with one variable, without braces and with nothing behind it.
    fn condition_variable(&self, name: &str, at: Position) -> Result<Template, Mistake> {
        let template = self.reader.template(&Word { text: format!("${name}"), at })?;
        match &*template.pieces {
            [Piece::Capture(_)] => Err(Mistake::refused(at, format!("unknown variable ${name}"))),
            [Piece::Text(_)] | [] => Err(bad_condition(at, name)),
            [_] if !name.starts_with('{') => Ok(template),
            _ => Err(bad_condition(at, &format!("${name}"))),
        }
    }

    fn comparison(&mut self, operator: &Word, value: &Word) -> Result<Comparison, Mistake> {
        let mut regex = |ignore_case| self.reader.regex(&value.text, ignore_case, value.at);
        Ok(match operator.text.as_str() {
            "~" => Comparison::Matches(regex(false)?.into()),
            "~*" => Comparison::Matches(regex(true)?.into()),
            "!~" => Comparison::DoesNotMatch(regex(false)?.into()),
            "!~*" => Comparison::DoesNotMatch(regex(true)?.into()),
            "=" => Comparison::Equals(self.reader.template(value)?),
            "!=" => Comparison::Differs(self.reader.template(value)?),
            text => {
                let text = format!("unexpected \"{}\" in a condition", shown(text));
                return Err(Mistake::refused(operator.at, text));
            }
        })
    }
}

/// The index of a branch with these settings; blocks that say the same share one.
fn branch(scope: &mut Scope, settings: Settings) -> usize {
    let known = scope.branches.iter().position(|known| *known == settings);
    known.unwrap_or_else(|| {
        scope.branches.push(settings);
        scope.branches.len() - 1
    })
}

/// The words of a condition without its parentheses, each of which may stand alone or touch a word.
fn between_parentheses(directive: &Directive) -> Result<Vec<Word>, Mistake> {
    let mut words = directive.arguments().to_vec();
    let whole = || {
        let words: Vec<&str> =
            directive.arguments().iter().map(|word| word.text.as_str()).collect();
        bad_condition(directive.at(), &words.join(" "))
    };
    let first = words.first_mut().ok_or_else(whole)?;
    first.text = first.text.strip_prefix('(').ok_or_else(whole)?.to_owned();
    if first.text.is_empty() {
        words.remove(0);
    } else {
        first.at.column += 1;
    }
    let last = words.last_mut().ok_or_else(whole)?;
    last.text = last.text.strip_suffix(')').ok_or_else(whole)?.to_owned();
    if last.text.is_empty() {
        words.pop();
    }
    Ok(words)
}

fn bad_condition(at: Position, text: &str) -> Mistake {
    Mistake::refused(at, format!("invalid condition \"{}\"", shown(text)))
}

/// Whether a replacement redirects, whatever its flag.
fn is_url(text: &str) -> bool {
    ["http://", "https://", "$scheme"].iter().any(|start| text.starts_with(start))
}

fn status(word: &Word) -> Result<u16, Mistake> {
    let status = word.text.parse().ok().filter(|status| is_digits(&word.text) && *status <= 999);
    if status.is_some_and(|status: u16| status < 200) {
        return Err(Mistake::refused(word.at, "a status below 200 ends no request"));
    }
    status.ok_or_else(|| invalid(word, "status, nor a URL"))
}
