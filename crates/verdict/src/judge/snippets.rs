//! What a snippet may have decided by what the log does not have.

use super::{Decision, End};
use crate::known::Known;
use crate::log::Record;
use model::Variable;
use model::snippet::{
    Comparison, GlobalScope, Name, Piece, Pieces, Return, Scope, Settings, Step, Task, Uri,
};

/// Why it cannot be told.
pub(super) const BY_SNIPPET: &str = "a snippet decides it by what the log does not have (header fields, cookies): add their $http_… or $cookie_… to log-format-upstream";

/// Whether what was logged may be what a snippet makes of a request that has more than the log shows.
pub(super) fn may_decide(record: &Record, answer: &Decision, known: &Known) -> bool {
    let Some((server, index)) = answer.place.as_ref().filter(|_| !answer.routed) else {
        return false;
    };
    let of_location = known.location(server, *index);
    let of_location = of_location.and_then(|location| location.policy.snippet.as_deref());
    let of_server = known.server(server).and_then(|server| server.snippet.as_deref());
    let mut does = Does::default();
    of_location.into_iter().chain(of_server).for_each(|scope| does.scope(scope));
    let is_possible = answer.end == End::Snippet
        || does.leads_elsewhere
        || record.tried != Some(true) && does.answers(record.status);
    is_possible && does.asks_for_more(record, known.http_snippet())
}

/// What programs may do, and what they look at.
#[derive(Default)]
struct Does<'a> {
    /// Statuses of their own.
    statuses: Vec<u16>,
    /// Whether a page of their own may stand for a status.
    has_pages: bool,
    /// Whether another location or another upstream may have the request.
    leads_elsewhere: bool,
    /// What decides, or is part of an answer.
    looked_at: Vec<&'a Piece>,
    set: Vec<(&'a Name, Vec<&'a Piece>)>,
}

impl<'a> Does<'a> {
    fn scope(&mut self, scope: &'a Scope) {
        self.steps(&scope.program.steps);
        self.has_pages |= !scope.settings.answers.error_pages.is_empty();
        self.leads_elsewhere |= scope.branches.iter().any(|it: &Settings| it.pass.is_some());
        scope.locations.iter().for_each(|location| self.scope(&location.scope));
    }

    fn steps(&mut self, steps: &'a [Step]) {
        for step in steps {
            match &step.task {
                Task::Set(name, text) => self.set.push((name, pieces(text))),
                Task::If(block) => {
                    self.looked_at.extend(pieces(&block.condition.variable));
                    match &block.condition.comparison {
                        Comparison::Equals(text) | Comparison::Differs(text) => {
                            self.looked_at.extend(pieces(text));
                        }
                        Comparison::Set | Comparison::Matches(_) | Comparison::DoesNotMatch(_) => {}
                    }
                    self.steps(&block.steps);
                }
                Task::Return(answer) => match answer {
                    Return::Status(status) | Return::Text(status, _) => self.statuses.push(*status),
                    Return::Redirect(status, to) => {
                        self.statuses.push(*status);
                        self.looked_at.extend(pieces(to));
                    }
                },
                Task::Rewrite(rewrite) => {
                    self.looked_at.extend(pieces(rewrite));
                    match &rewrite.to {
                        Uri::Redirect(redirect) => self.statuses.push(redirect.status),
                        Uri::Path { .. } => self.leads_elsewhere = true,
                    }
                }
                Task::Break => {}
            }
        }
    }

    fn answers(&self, status: u16) -> bool {
        self.statuses.contains(&status) || self.has_pages && !self.statuses.is_empty()
    }

    /// Whether something that it looks at, by itself or through variables of snippets, is not in the log.
    fn asks_for_more(&self, record: &Record, http: Option<&GlobalScope>) -> bool {
        let mut open = self.looked_at.clone();
        let mut seen: Vec<&Name> = Vec::new();
        while let Some(piece) = open.pop() {
            let name = match piece {
                Piece::Text(_) | Piece::Capture(_) => continue,
                Piece::Known(variable) if is_shown(variable, record) => continue,
                Piece::Other(other) if other.row.name == "binary_remote_addr" => {
                    if record.client.is_some() {
                        continue;
                    }
                    return true;
                }
                Piece::Other(other) if other.row.name == "invalid_referer" => {
                    if record.shows("referer") {
                        continue;
                    }
                    return true;
                }
                Piece::Known(_) | Piece::Other(_) => return true,
                Piece::Own(name) => name,
            };
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let found = self.made_of(name, http);
            let is_of_request = || {
                Variable::named(name.text()).is_some_and(|variable| !is_shown(&variable, record))
            };
            match found {
                None if is_of_request() => return true,
                None => {}
                Some(found) => open.extend(found),
            }
        }
        false
    }

    /// What a variable of snippets is made of; none if nobody makes it.
    fn made_of(&self, name: &Name, http: Option<&'a GlobalScope>) -> Option<Vec<&'a Piece>> {
        let set = self.set.iter().filter(|(set, _)| *set == name);
        let set = set.map(|(_, pieces)| pieces.clone());
        let http = http.into_iter();
        let maps = http.clone().flat_map(|http| &http.maps).filter(|it| it.name == *name);
        let geos = http.clone().flat_map(|http| &http.geos).filter(|it| it.name == *name);
        let splits = http.flat_map(|http| &http.splits).filter(|it| it.name == *name);
        let made = set.chain(maps.map(pieces)).chain(geos.map(pieces)).chain(splits.map(pieces));
        made.reduce(|mut all, more| {
            all.extend(more);
            all
        })
    }
}

fn pieces(value: &impl Pieces) -> Vec<&Piece> {
    let mut all = Vec::new();
    value.pieces(&mut |piece| all.push(piece));
    all
}

/// Whether the log says what a variable was.
fn is_shown(variable: &Variable, record: &Record) -> bool {
    match variable {
        Variable::RequestHeader(name) => {
            name == "host" || record.shows(&name.replace('_', "-").to_ascii_lowercase())
        }
        Variable::Cookie(name) => record.shows("cookie") || record.shows(&format!("cookie {name}")),
        Variable::ContentType => record.shows("content-type"),
        Variable::RemoteAddr => record.client.is_some(),
        Variable::Request
        | Variable::RequestMethod
        | Variable::RequestUri
        | Variable::EscapedRequestUri
        | Variable::Uri
        | Variable::DocumentUri
        | Variable::Args
        | Variable::QueryString
        | Variable::IsArgs
        | Variable::Argument(_)
        | Variable::Scheme
        | Variable::Https
        | Variable::Host
        | Variable::ServerName
        | Variable::Subdomain
        | Variable::ServerPort
        | Variable::ServerProtocol
        | Variable::Http2
        | Variable::ProxyUpstreamName
        | Variable::Namespace
        | Variable::IngressName
        | Variable::ServiceName
        | Variable::ServicePort
        | Variable::LocationPath
        | Variable::BestHttpHost
        | Variable::PassAccessScheme
        | Variable::PassServerPort
        | Variable::PassPort => true,
        _ => false,
    }
}
